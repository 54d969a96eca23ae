#!/usr/bin/env Rscript
# Usage: Rscript studies/independent.R RESULTS [ROUNDS [IMAGES]]
# Times xz and Linpack whole, without Strata's laps, slices and freezing, and prints a table of the
# ratios to native beside Strata's own.  RESULTS has pxz, linpack or both, natively and in Docker
# with and without gVisor.  ROUNDS: how many rounds there are (20).  IMAGES: the folder of Strata's
# images (/var/cache/strata/images).
#
# In each round every environment in random order is set up, every program runs RUNS times in it, by
# `docker exec` or `chroot`, with the arguments of Strata's records, and it is removed again.  So
# nothing else is up while a program runs: an idle sandbox interrupts other programs a thousand
# times a second, even after `docker pause`.  A ratio is of the mean seconds that the program prints
# for its work, by round, with Student's interval.

RUNTIMES <- c("docker" = "runc", "docker-gvisor" = "strata-runsc-host")
PROGRAMS <- c("pxz", "linpack")
# How often a program runs in a new system: about as many times as Strata's cells have laps.
RUNS <- 4

# Runs a command to its end, and returns the lines that it prints on standard output.  Stops if the
# command fails, or takes longer than five minutes.
# argv: the program and its arguments.
run_command <- function(argv) {
  lines <- suppressWarnings(system2(argv[[1]], shQuote(argv[-1]), stdout = TRUE, timeout = 300))
  if (!is.null(attr(lines, "status"))) stop(paste(c(argv, lines), collapse = " "), call. = FALSE)
  lines
}

# Reads the commands of a native cell of a workload from its record.
# workload: name of the workload.
# folder: path of results.
# Returns a list of the different commands in their order, each a list of step and argv.
read_commands <- function(workload, folder) {
  record <- Sys.glob(file.path(folder, "raw", "native", workload, "*.json"))[[1]]
  commands <- lapply(jsonlite::read_json(record)$commands, function(command) {
    list(step = command$step, argv = unlist(command$argv))
  })
  unique(commands)
}

# Parses the seconds that a run of xz or Linpack printed for its work.
# lines: the run's output; measure.sh of pxz and linpack.c print the objects in it.
parse_seconds <- function(lines) {
  objects <- lapply(grep("^\\{", lines, value = TRUE), jsonlite::fromJSON)
  xz_seconds <- unlist(lapply(objects, function(object) object$microseconds_of_all)) / 1e6
  linpack_seconds <- unlist(lapply(objects, function(object) {
    if (!is.null(object$gflops_of_all)) object$seconds
  }))
  sum(xz_seconds, linpack_seconds)
}

# Formats a ratio with its interval in per cent.
# mean, half_width: of the logarithm of the ratio.
format_interval <- function(mean, half_width) {
  percents <- 100 * exp(mean + half_width * c(0, -1, 1))
  sprintf("%.1f %% [%.1f, %.1f]", percents[[1]], percents[[2]], percents[[3]])
}

# Starts the system of an environment, measures in it, and removes it.
# environment: native, or a name of RUNTIMES.
# image: ID of the Docker image.
# tree: path of the image's files, natively the root of the system.
# measure: function of a prefix, the words that start a command in the system (character vector).
# Returns the result of measure.  The system is removed even if measure fails.
measure_in_system <- function(environment, image, tree, measure) {
  if (environment == "native") {
    data <- tempfile("data")
    dir.create(data)
    on.exit(unlink(data, recursive = TRUE))
    mounts <- c("mount --bind", data, file.path(tree, "data"), "&& mount --bind /proc",
                file.path(tree, "proc"), "&& mount --bind /dev", file.path(tree, "dev"),
                "&& exec chroot", tree, "\"$@\"")
    prefix <- c("unshare", "--mount", "sh", "-c", paste(mounts, collapse = " "), "sh")
  } else {
    container <- run_command(c("docker", "run", "--detach", "--network", "host", "--runtime",
                               RUNTIMES[[environment]], "--volume", "/data", image, "sleep",
                               "infinity"))
    on.exit(run_command(c("docker", "rm", "--force", "--volumes", container)))
    prefix <- c("docker", "exec", container)
  }
  measure(prefix)
}

# Prepares and runs each program RUNS times in one system.
# prefix: words that start a command in the system (character vector).
# commands: list of read_commands for each workload, by its name.
# Returns the mean seconds of each program's runs, a numeric vector named by workload.
measure_programs <- function(prefix, commands) {
  vapply(commands, function(steps) {
    is_run <- vapply(steps, function(command) command$step == "run", NA)
    for (command in steps[!is_run]) run_command(c(prefix, command$argv))
    run <- c(prefix, steps[is_run][[1]]$argv)
    mean(replicate(RUNS, parse_seconds(run_command(run))))
  }, 0)
}

# Measures all programs in all environments, in a new random order in each round.
# image: ID of the Docker image.
# tree: path of the image's files.
# commands: list of read_commands for each workload, by its name.
# rounds: number of rounds.
# Returns a data frame of environment, workload, round and seconds.
measure_rounds <- function(image, tree, commands, rounds) {
  environments <- c("native", names(RUNTIMES))
  rows <- lapply(seq_len(rounds), function(round) {
    lapply(sample(environments), function(environment) {
      seconds <- measure_in_system(environment, image, tree, function(prefix) {
        measure_programs(prefix, commands)
      })
      data.frame(environment = environment, workload = names(commands), round = round,
                 seconds = seconds)
    })
  })
  do.call(rbind, unlist(rows, recursive = FALSE))
}

# Measures the programs, and prints a Markdown table of their ratios to native beside Strata's.
# folder: path of results.
# rounds: number of rounds, as digits from the command line.
# images: path of the folder of Strata's images.
print_comparison <- function(folder, rounds = "20", images = "/var/cache/strata/images") {
  recipe <- jsonlite::read_json(file.path(folder, "plan.json"))$image$recipe
  name <- paste0("reference=*/image:", substr(recipe, 1, 12))
  image <- run_command(c("docker", "image", "ls", "--quiet", "--filter", name))[[1]]
  workloads <- intersect(PROGRAMS, list.files(file.path(folder, "raw", "native")))
  commands <- sapply(workloads, read_commands, folder = folder, simplify = FALSE)
  times <- measure_rounds(image, file.path(images, recipe, "tree"), commands, as.integer(rounds))
  comparisons <- utils::read.csv(file.path(folder, "comparisons.csv"))
  comparisons <- comparisons[comparisons$headline == "yes" & !is.na(comparisons$low), ]
  cat("| program | environment | by itself | Strata | Strata / by itself |\n")
  cat("|---|---|---|---|---|\n")
  for (workload in workloads) for (environment in names(RUNTIMES)) {
    # Returns the seconds of an environment in the order of the rounds.
    get_seconds <- function(name) {
      rows <- times[times$workload == workload & times$environment == name, ]
      rows$seconds[order(rows$round)]
    }
    logs <- log(get_seconds("native") / get_seconds(environment))
    half_width <- stats::qt(0.975, length(logs) - 1) * stats::sd(logs) / sqrt(length(logs))
    # Strata's first headline series of the workload.
    is_compared <- comparisons$workload == workload & comparisons$environment == environment
    strata <- comparisons[is_compared, ][1, ]
    strata_half_width <- log(strata$high / strata$low) / 2
    cells <- c(format_interval(mean(logs), half_width),
               format_interval(log(strata$ratio), strata_half_width),
               format_interval(log(strata$ratio) - mean(logs),
                               sqrt(half_width ^ 2 + strata_half_width ^ 2)))
    cat("|", paste(c(workload, environment, cells), collapse = " | "), "|\n")
  }
}

do.call(print_comparison, as.list(commandArgs(TRUE)))
