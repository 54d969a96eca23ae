# The functions under test, and small results folders.

project <- normalizePath(file.path("..", "..", ".."))
source(file.path(project, "analysis", "load.R"), local = environment())
load_rooms(project, "paper", environment())

#' The parameters of the runs
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

# What a run of each workload gave once, unrounded: bytes, operations or updates by seconds.
once <- list(
  stream = 0.02 * c(copy = 16 / 0.010276229, scale = 16 / 0.010577716, add = 24 / 0.013949604,
                    triad = 24 / 0.014535052),
  linpack = c(gflops = 13 * (2 / 3 + 0.002) / 0.204341117),
  randomaccess = c(gups = 6 * 0.067108864 / 1.18814111),
  pxz = c(throughput = 25165824 / 1526668)
)

#' What programs say of themselves
said_of_itself <- list(
  stream = list(tool = "strata-stream", threads = 2, huge_page_bytes = 484442112),
  linpack = list(tool = "strata-linpack", threads = 2, blas = "OpenBLAS 0.3.29", core = "Cooperlake"),
  randomaccess = list(tool = "strata-randomaccess", threads = 2, huge_page_bytes = 134217728),
  pxz = list(tool = "xz (XZ Utils) 5.8.1", threads = 2)
)

#' The rows of the tidy table of a cell that took `slower` times as long
cell_rows <- function(cell, slower) {
  value <- once[[cell$workload]]
  # As programs print it: rates with six digits, and times in whole microseconds.
  measured <- if (cell$workload == "pxz") 25165824 / round(1526668 * slower) else signif(value / slower, 6)
  data.frame(cell[c("environment", "workload", "repetition", "block", "position")], order = cell$position,
             metric = names(value), unit = planned_metrics[[cell$workload]][[1]]$unit, value = measured,
             factors = if (cell$workload == "linpack") "order=1000" else "", check = "passed",
             counts = "yes", log = cell_path(list(results = "results"), "log", cell), row.names = NULL)
}

#' The tidy table of a workload as it would be made now: of the logs that exist, and of the decisions
tidied <- function(plan, workload = names(plan$workloads)[[1]]) {
  tidy <- read_tidy(result_path(plan, "tidy", workload = workload), plan)
  cells <- read_cells(plan)
  there <- file.exists(file.path(dirname(plan$results), tidy$log))
  tidy <- tidy[there & cell_key(tidy) %in% cell_key(cells), ]
  tidy$counts <- cells$counts[match(cell_key(tidy), cell_key(cells))]
  tidy
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
  plan <- list(format = 3, scale = "smoke", seed = seed, repetitions = repetitions,
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
  rows <- lapply(seq_len(nrow(cells)), function(i) {
    factor <- if (cells$environment[i] %in% names(slower)) slower[[cells$environment[i]]] else 1
    factor <- factor * exp(stats::rnorm(1, 0, spread))
    write_cell(results, cells[i, ])
    cell_rows(cells[i, ], factor)
  })
  tidy <- do.call(rbind, rows)
  for (workload in workloads) {
    write_csv(tidy[tidy$workload == workload, ], file.path(results, "tidy", paste0(workload, ".csv")))
  }
  write_csv(empty_table(LEFT_OUT_COLUMNS), file.path(results, "left_out.csv"))
  file.path(results, "plan.json")
}

#' Writes a log, of which nothing is read here, and its record
write_cell <- function(results, cell, change = identity) {
  base <- file.path(results, "raw", cell$environment, cell$workload, cell$repetition)
  dir.create(dirname(base), recursive = TRUE, showWarnings = FALSE)
  log <- paste0(base, ".log")
  writeLines("{\"done\": true}", log)
  moment <- function(seconds) {
    format(as.POSIXct("2026-01-01", tz = "UTC") + 2 * cell$position + seconds, "%Y-%m-%dT%H:%M:%OS3Z")
  }
  write_json(change(list(
    format = 1, environment = cell$environment, workload = cell$workload, repetition = cell$repetition,
    block = cell$block, position = list(planned = cell$position, actual = cell$position), scale = "smoke",
    parameters = asked_for[[cell$workload]], program = said_of_itself[[cell$workload]],
    commands = list(list(step = "run", exit = 0)),
    checks = list(list(name = "ran to its end", passed = TRUE)),
    image = list(recipe = "0123abcd", id = "f00", manifest_sha256 = "cafe"),
    started = moment(0), ended = moment(1), seconds = 1, quiet = list(flags = list()),
    log = list(bytes = file.size(log), sha256 = strrep("0a", 32))
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
