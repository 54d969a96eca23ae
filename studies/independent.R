#!/usr/bin/env Rscript
# Usage: Rscript studies/independent.R RESULTS [ROUNDS [IMAGES]]
# Times xz and Linpack whole, without Strata's laps, slices and freezing, and prints a table of the
# ratios to native beside Strata's own.  RESULTS has pxz, linpack or both, natively and in Docker
# with and without gVisor.  ROUNDS: how often each program runs in each environment (20).  IMAGES:
# the folder of Strata's images (/var/cache/strata/images).
#
# In each round every program runs once in a container of each kind and once in a chroot of the
# same image, in random order, by `docker exec` and `chroot`, with the arguments of Strata's
# records.  A container in which nothing is measured is paused: an idle sandbox takes processor time
# from the others' runs.  The rounds are taken twice, four by turns: in containers that stay up
# through all of them, and in containers that are new for each four, as Strata's are new in each
# block.  A ratio is of the seconds that the program prints for its work, by round, with Student's
# interval.

RUNTIMES <- c("docker" = "runc", "docker-gvisor" = "strata-runsc-host")
PROGRAMS <- c("pxz", "linpack")
# How many rounds new containers are up: about as many as Strata's cells have laps.
GROUP <- 4
# Runs a command in a paused container, which is its first argument, and pauses it again.
RUN_PAUSED <- "
docker unpause \"$1\" >/dev/null
code=0
docker exec \"$@\" || code=$?
docker pause \"$1\" >/dev/null
exit \"$code\"
"

# Runs a command to its end, and returns the lines that it prints.
run_command <- function(argv) {
  lines <- suppressWarnings(system2(argv[[1]], shQuote(argv[-1]), stdout = TRUE, timeout = 300))
  if (!is.null(attr(lines, "status"))) stop(paste(c(argv, lines), collapse = " "), call. = FALSE)
  lines
}

# Reads the commands of a native cell of a workload: list of step and argv.
read_commands <- function(folder, workload) {
  record <- Sys.glob(file.path(folder, "raw", "native", workload, "*.json"))[[1]]
  commands <- lapply(jsonlite::read_json(record)$commands, function(command) {
    list(step = command$step, argv = unlist(command$argv))
  })
  unique(commands)
}

# Reads the seconds that a run of xz or Linpack printed for its work.
read_seconds <- function(lines) {
  values <- lapply(grep("^\\{", lines, value = TRUE), jsonlite::fromJSON)
  of_xz <- unlist(lapply(values, function(value) value$microseconds_of_all)) / 1e6
  of_linpack <- unlist(lapply(values, function(value) {
    if (!is.null(value$gflops_of_all)) value$seconds
  }))
  sum(of_xz, of_linpack)
}

# Prints a ratio and its interval, from the mean of logarithms and a half-width.
format_interval <- function(mean, half_width) {
  ends <- 100 * exp(mean + half_width * c(0, -1, 1))
  sprintf("%.1f %% [%.1f, %.1f]", ends[[1]], ends[[2]], ends[[3]])
}

# Executes a function of the prefixes of commands (list by environment) while all systems are up.
with_systems <- function(image, tree, measure) {
  data <- tempfile("data")
  dir.create(data)
  mounts <- c("mount --bind", data, file.path(tree, "data"), "&& mount --bind /proc",
              file.path(tree, "proc"), "&& mount --bind /dev", file.path(tree, "dev"),
              "&& exec chroot", tree, "\"$@\"")
  native <- c("unshare", "--mount", "sh", "-c", paste(mounts, collapse = " "), "sh")
  containers <- character()
  on.exit({
    if (length(containers) > 0) {
      try(run_command(c("docker", "unpause", containers)), silent = TRUE)
      run_command(c("docker", "rm", "--force", "--volumes", containers))
    }
    unlink(data, recursive = TRUE)
  })
  for (name in names(RUNTIMES)) {
    containers[[name]] <- run_command(c("docker", "run", "--detach", "--network", "host",
                                        "--runtime", RUNTIMES[[name]], "--volume", "/data", image,
                                        "sleep", "infinity"))
    run_command(c("docker", "pause", containers[[name]]))
  }
  measure(c(list(native = native),
            lapply(containers, function(id) c("sh", "-uc", RUN_PAUSED, "strata", id))))
}

# Executes the steps of all programs that come before their runs.
prepare <- function(prefixes, commands) {
  for (steps in commands) for (prefix in prefixes) for (command in steps) {
    if (command$step != "run") run_command(c(prefix, command$argv))
  }
}

# Measures all programs: data frame of workload, environment, round and seconds.
measure_rounds <- function(prefixes, commands, rounds) {
  rows <- expand.grid(environment = names(prefixes), workload = names(commands),
                      round = seq_len(rounds), stringsAsFactors = FALSE)
  rows <- rows[order(rows$round, rows$workload, stats::runif(nrow(rows))), ]
  rows$seconds <- NA_real_
  for (at in seq_len(nrow(rows))) {
    steps <- Filter(function(command) command$step == "run", commands[[rows$workload[[at]]]])
    lines <- run_command(c(prefixes[[rows$environment[[at]]]], steps[[1]]$argv))
    rows$seconds[[at]] <- read_seconds(lines)
  }
  rows
}

# Measures all rounds in containers that stay up and in new ones, by turns: the data frames of
# measure_rounds(), as list of `stays up` and `new`.
measure_both <- function(image, tree, commands, rounds) {
  groups <- split(seq_len(rounds), (seq_len(rounds) - 1) %/% GROUP)
  with_systems(image, tree, function(prefixes) {
    prepare(prefixes, commands)
    rows <- lapply(groups, function(group) {
      old <- measure_rounds(prefixes, commands, length(group))
      new <- with_systems(image, tree, function(new_prefixes) {
        prepare(new_prefixes, commands)
        measure_rounds(new_prefixes, commands, length(group))
      })
      list("stays up" = old, "new" = new)
    })
    # Rounds get numbers of their own through all groups.
    sapply(c("stays up", "new"), function(name) {
      do.call(rbind, Map(function(group, pair) {
        pair[[name]]$round <- group[pair[[name]]$round]
        pair[[name]]
      }, groups, rows))
    }, simplify = FALSE)
  })
}

main <- function(folder, rounds = "20", images = "/var/cache/strata/images") {
  recipe <- jsonlite::read_json(file.path(folder, "plan.json"))$image$recipe
  name <- paste0("reference=*/image:", substr(recipe, 1, 12))
  image <- run_command(c("docker", "image", "ls", "--quiet", "--filter", name))[[1]]
  workloads <- intersect(PROGRAMS, list.files(file.path(folder, "raw", "native")))
  commands <- sapply(workloads, read_commands, folder = folder, simplify = FALSE)
  measured <- measure_both(image, file.path(images, recipe, "tree"), commands, as.integer(rounds))
  comparisons <- utils::read.csv(file.path(folder, "comparisons.csv"))
  comparisons <- comparisons[comparisons$headline == "yes" & !is.na(comparisons$low), ]
  cat("| program | environment | containers | by itself | Strata | Strata / by itself |\n")
  cat("|---|---|---|---|---|---|\n")
  for (workload in workloads) for (environment in names(RUNTIMES)) for (kind in names(measured)) {
    of_environment <- function(name) {
      rows <- measured[[kind]][measured[[kind]]$workload == workload, ]
      rows <- rows[rows$environment == name, ]
      rows$seconds[order(rows$round)]
    }
    logs <- log(of_environment("native") / of_environment(environment))
    half_width <- stats::qt(0.975, length(logs) - 1) * stats::sd(logs) / sqrt(length(logs))
    other <- comparisons[comparisons$workload == workload &
                           comparisons$environment == environment, ][1, ]
    other_half_width <- log(other$high / other$low) / 2
    cells <- c(format_interval(mean(logs), half_width),
               format_interval(log(other$ratio), other_half_width),
               format_interval(log(other$ratio) - mean(logs),
                               sqrt(half_width ^ 2 + other_half_width ^ 2)))
    cat("|", paste(c(workload, environment, kind, cells), collapse = " | "), "|\n")
  }
}

do.call(main, as.list(commandArgs(TRUE)))
