# The functions under test, captured logs, and small results folders made from them.

project <- normalizePath(file.path("..", "..", ".."))
source(file.path(project, "analysis", "load.R"), local = environment())
load_rooms(project, "reanalysis", environment())

#' Whether the long tests run, which try every case (`make test-long`)
in_long_tests <- nzchar(Sys.getenv("STRATA_LONG"))

#' Some of many like cases, drawn by chance but always the same; in the long tests all of them
some_of <- function(cases, share = 0.15) {
  if (in_long_tests) {
    return(cases)
  }
  set.seed(2014)
  cases[sort(sample.int(length(cases), ceiling(share * length(cases))))]
}

#' A captured log
fixture <- function(workload, name = "smoke") {
  readLines(file.path(project, "workloads", workload, "fixtures", paste0(name, ".log")))
}

#' The parameters with which the captured logs were made
asked_for <- list(
  stream = list(threads = 2, elements = 20000000, trials = 10),
  linpack = list(threads = 2, sizes = list(1000), min_trials = 3, min_seconds = 0.2),
  randomaccess = list(threads = 2, log2 = 24, updates_per_word = 4, min_seconds = 1),
  pxz = list(threads = 2, level = 2, bytes = 25165824, corpus = NULL, min_seconds = 1)
)

#' The metrics of the workloads, as in a plan
planned_metrics <- list(
  stream = list(copy = list(label = "Copy", unit = "GB/s", better = "higher"),
                scale = list(label = "Scale", unit = "GB/s", better = "higher"),
                add = list(label = "Add", unit = "GB/s", better = "higher"),
                triad = list(label = "Triad", unit = "GB/s", better = "higher")),
  linpack = list(gflops = list(label = "Rate", unit = "GFLOPS", better = "higher")),
  randomaccess = list(gups = list(label = "Updates", unit = "GUPS", better = "higher")),
  pxz = list(throughput = list(label = "Throughput", unit = "MB/s", better = "higher"))
)

#' A list with some elements replaced
updated <- function(x, ...) {
  new <- list(...)
  x[names(new)] <- new
  x
}

#' A parser
parser_of <- function(workload) {
  load_parser(project, workload)
}

#' A log as of a run that took `slower` times as long
#'
#' Rates follow from the scaled times and from the work, as the programs compute them.
slow_log <- function(lines, slower) {
  objects <- lapply(lines, jsonlite::parse_json)
  header <- Find(function(object) !is.null(object$tool), objects)
  vapply(seq_along(lines), function(i) {
    object <- objects[[i]]
    for (key in intersect(c("seconds", "best_seconds", "mean_seconds", "worst_seconds"), names(object))) {
      object[[key]] <- as.double(sprintf("%.9g", object[[key]] * slower))
    }
    for (key in intersect(c("microseconds", "microseconds_of_all"), names(object))) {
      object[[key]] <- round(object[[key]] * slower)
    }
    rate <- intersect(c("gbps", "gflops", "gflops_of_all", "gups", "gups_of_all"), names(object))
    if (length(rate) == 1) {
      object[[rate]] <- signif(1e-9 * work_of(object, header) / c(object$seconds, object$best_seconds), 6)
    }
    with_values(lines[[i]], object)
  }, "")
}

#' What a line of a log counts: bytes, operations or updates
work_of <- function(object, header) {
  if (!is.null(object$kernel)) {
    c(copy = 16, scale = 16, add = 24, triad = 24)[[object$kernel]] * header$elements
  } else if (!is.null(object$n)) {
    (2 / 3 * object$n^3 + 2 * object$n^2) * c(object$trials, 1)[[1]]
  } else {
    header$updates_per_pass * c(object$passes, 1)[[1]]
  }
}

#' A line with its numbers replaced
with_values <- function(line, object) {
  pattern <- "\"([a-z_0-9]+)\": ([0-9.e+-]+)"
  at <- gregexpr(pattern, line)
  keys <- sub(pattern, "\\1", regmatches(line, at)[[1]])
  values <- vapply(keys, function(key) sprintf("%.12g", object[[key]]), "")
  regmatches(line, at) <- list(sprintf("\"%s\": %s", keys, values))
  line
}

#' The SHA-256 of files
sha256 <- function(paths) {
  substr(system2("sha256sum", shQuote(paths), stdout = TRUE), 1, 64)
}

#' A results folder as after a run
#'
#' Runs vary by `spread` (relative standard deviation) and by the environment's entry in `slower`.
#'
#' @return path of its plan.json
make_results <- function(environments = c("native", "docker", "vm"), workloads = names(asked_for),
                         repetitions = 3, slower = c(docker = 1.02, vm = 1.25), spread = 0.01,
                         labels = environments, titles = workloads, seed = 1,
                         results = file.path(tempfile("run-"), "results")) {
  set.seed(seed)
  dir.create(results, recursive = TRUE)
  environment_entries <- lapply(labels, function(label) {
    list(label = label, layers = list(), available = TRUE)
  })
  workload_entries <- Map(function(name, title) {
    list(title = title, metrics = planned_metrics[[name]], parameters = asked_for[[name]])
  }, workloads, titles)
  plan <- list(format = 2, scale = "smoke", seed = seed, repetitions = repetitions,
               image = list(recipe = "0123abcd"),
               environments = stats::setNames(environment_entries, environments),
               workloads = stats::setNames(workload_entries, workloads))
  cells <- do.call(rbind, lapply(seq_len(repetitions), function(block) {
    do.call(rbind, lapply(sample(environments), function(environment) {
      data.frame(block = block, environment = environment, workload = sample(workloads), repetition = block)
    }))
  }))
  cells <- cbind(position = seq_len(nrow(cells)), cells)
  write_json(plan, file.path(results, "plan.json"))
  write_csv(cells, file.path(results, "plan.csv"))
  for (i in seq_len(nrow(cells))) {
    factor <- if (cells$environment[i] %in% names(slower)) slower[[cells$environment[i]]] else 1
    factor <- factor * exp(stats::rnorm(1, 0, spread))
    write_cell(results, cells[i, ], slow_log(fixture(cells$workload[i]), factor))
  }
  file.path(results, "plan.json")
}

#' Writes a log and its record
write_cell <- function(results, cell, lines, change = identity) {
  parameters <- asked_for[[cell$workload]]
  parameters$min_seconds <- if (!is.null(parameters$min_seconds)) 0
  base <- file.path(results, "raw", cell$environment, cell$workload, cell$repetition)
  dir.create(dirname(base), recursive = TRUE, showWarnings = FALSE)
  log <- paste0(base, ".log")
  writeLines(lines, log)
  moment <- function(seconds) {
    format(as.POSIXct("2026-01-01", tz = "UTC") + 2 * cell$position + seconds, "%Y-%m-%dT%H:%M:%OS3Z")
  }
  write_json(change(list(
    format = 1, environment = cell$environment, workload = cell$workload, repetition = cell$repetition,
    block = cell$block, position = list(planned = cell$position, actual = cell$position), scale = "smoke",
    parameters = parameters, commands = list(list(step = "run", exit = 0)),
    checks = list(list(name = "ran to its end", passed = TRUE)),
    image = list(recipe = "0123abcd", id = "f00", manifest_sha256 = "cafe"),
    started = moment(0), ended = moment(1), seconds = 1, quiet = list(flags = list()),
    log = list(bytes = file.size(log), sha256 = sha256(log))
  )), paste0(base, ".json"))
}

#' Writes JSON as the other parts do
write_json <- function(x, path) {
  writeLines(jsonlite::toJSON(x, auto_unbox = TRUE, null = "null", digits = NA), path)
}

#' Runs a script of the analysis
#'
#' @return list: `status` and the lines of `output`, standard output and error together
run_r <- function(script, ...) {
  output <- suppressWarnings(system2(file.path(R.home("bin"), "Rscript"),
                                     shQuote(c(file.path(project, "analysis", script), ...)),
                                     stdout = TRUE, stderr = TRUE))
  status <- attr(output, "status")
  list(status = if (is.null(status)) 0L else status, output = as.character(output))
}

#' Evaluates an expression in another working directory
in_folder <- function(path, expression) {
  before <- setwd(path)
  on.exit(setwd(before))
  force(expression)
}

#' What the files of a stack's layers tell of it, as the plan has it
planned_told <- function(layers) {
  networks <- c(bridge = "bridge with NAT", host = "its host\u2019s")
  lapply(layers, function(layer) {
    options <- layer[[1]]
    switch(names(layer),
      chroot = list(kind = "bare", title = "change of root", network = "the host\u2019s",
                    data = "the host\u2019s disk"),
      docker = c(list(kind = "container", title = "Docker container"),
                 if (length(options) > 0) list(network = networks[[options$network]], data = options$data)),
      vm = list(kind = "machine", title = "virtual machine"),
      list(kind = "sandbox", title = names(layer)))
  })
}
