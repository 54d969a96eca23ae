#!/usr/bin/env Rscript
# Usage: Rscript studies/independent.R RESULTS [ROUNDS [IMAGES]]
# Times xz and Linpack whole, without Strata's laps, slices and freezing, and prints a table of the
# ratios to native beside Strata's own.  RESULTS has pxz and linpack, natively and in Docker with
# and without gVisor.  ROUNDS: how often each program runs in each environment (20).  IMAGES: the
# folder of Strata's images (/var/cache/strata/images).
#
# One container of each kind stays up and idles.  In each round every program runs once in each
# container and once in a chroot of the same image, in random order, by `docker exec` and `chroot`,
# with the arguments of Strata's records.  A ratio is of the seconds that the program prints for its
# work, by round, with Student's interval.

RUNTIMES <- c("docker" = "runc", "docker-gvisor" = "strata-runsc-host")
WORKLOADS <- c("pxz", "linpack")

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
    if (length(containers) > 0) run_command(c("docker", "rm", "--force", "--volumes", containers))
    unlink(data, recursive = TRUE)
  })
  for (name in names(RUNTIMES)) {
    containers[[name]] <- run_command(c("docker", "run", "--detach", "--network", "host",
                                        "--runtime", RUNTIMES[[name]], "--volume", "/data", image,
                                        "sleep", "infinity"))
  }
  measure(c(list(native = native), lapply(containers, function(id) c("docker", "exec", id))))
}

# Measures all programs: data frame of workload, environment, round and seconds.
measure_rounds <- function(prefixes, commands, rounds) {
  for (workload in WORKLOADS) for (prefix in prefixes) for (command in commands[[workload]]) {
    if (command$step != "run") run_command(c(prefix, command$argv))
  }
  rows <- expand.grid(environment = names(prefixes), workload = WORKLOADS, round = seq_len(rounds),
                      stringsAsFactors = FALSE)
  rows <- rows[order(rows$round, rows$workload, stats::runif(nrow(rows))), ]
  rows$seconds <- NA_real_
  for (at in seq_len(nrow(rows))) {
    steps <- Filter(function(command) command$step == "run", commands[[rows$workload[[at]]]])
    lines <- run_command(c(prefixes[[rows$environment[[at]]]], steps[[1]]$argv))
    rows$seconds[[at]] <- read_seconds(lines)
  }
  rows
}

main <- function(folder, rounds = "20", images = "/var/cache/strata/images") {
  recipe <- jsonlite::read_json(file.path(folder, "plan.json"))$image$recipe
  name <- paste0("reference=*/image:", substr(recipe, 1, 12))
  image <- run_command(c("docker", "image", "ls", "--quiet", "--filter", name))[[1]]
  commands <- sapply(WORKLOADS, read_commands, folder = folder, simplify = FALSE)
  rows <- with_systems(image, file.path(images, recipe, "tree"), function(prefixes) {
    measure_rounds(prefixes, commands, as.integer(rounds))
  })
  comparisons <- utils::read.csv(file.path(folder, "comparisons.csv"))
  comparisons <- comparisons[comparisons$headline == "yes" & !is.na(comparisons$low), ]
  cat("| program | environment | by itself | Strata | Strata / by itself |\n")
  cat("|---|---|---|---|---|\n")
  for (workload in WORKLOADS) for (environment in names(RUNTIMES)) {
    of_environment <- function(name) {
      rows$seconds[rows$workload == workload & rows$environment == name]
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
    cat("|", paste(c(workload, environment, cells), collapse = " | "), "|\n")
  }
}

do.call(main, as.list(commandArgs(TRUE)))
