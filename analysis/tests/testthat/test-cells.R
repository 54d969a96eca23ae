#' A results folder that a test may break, its plan, and the tidy table
small <- function(...) {
  read_plan(make_results(c("native", "docker"), "pxz", 2, ...))
}
tidied <- function(plan, ...) tidy_workload(plan, plan_workload(plan), parser_of(plan_workload(plan)), ...)
plan_workload <- function(plan) names(plan$workloads)[[1]]
raw <- function(plan, ...) file.path(plan$results, "raw", ...)

#' Changes a record
rewrite <- function(path, change) {
  write_json(change(jsonlite::read_json(path)), path)
}

test_that("the tidy table holds every value in the order of the plan", {
  plan <- read_plan(make_results(repetitions = 2))
  cells <- read_cells(plan)
  for (workload in names(planned_metrics)) {
    tidy <- tidy_workload(plan, workload, parser_of(workload))
    metrics <- names(planned_metrics[[workload]])
    planned <- cells[cells$workload == workload, ]
    expect_equal(names(tidy), names(TIDY_COLUMNS))
    expect_equal(tidy$position, rep(planned$position, each = length(metrics)))
    expect_equal(tidy$metric, rep(metrics, nrow(planned)))
    expect_true(all(tidy$check == "passed"))
    expect_equal(tidy$log, sprintf("results/raw/%s/%s/%d.log", tidy$environment, workload,
                                   as.integer(tidy$repetition)))
    expect_true(all(file.exists(file.path(plan$results, "..", tidy$log))))
  }
})

test_that("values are those of the logs", {
  plan <- small(slower = c(docker = 2), spread = 0)
  tidy <- tidied(plan)
  expect_equal(tidy$value[tidy$environment == "native"], rep(25165824 / 1526668, 2))
  expect_equal(tidy$value[tidy$environment == "docker"], rep(25165824 / 1526668 / 2, 2))
})

test_that("several sizes keep their order", {
  plan <- read_plan(make_results("native", "linpack", 1, spread = 0))
  parameters <- list(threads = 2, sizes = list(500, 1500), min_trials = 2, min_seconds = 0)
  write_cell(plan$results, read_cells(plan)[1, ], fixture("linpack", "two-sizes"),
             function(r) updated(r, parameters = parameters))
  expect_equal(tidied(plan)$factors, c("order=500", "order=1500"))
})

test_that("a missing cell is an error, or left out where that is asked for", {
  plan <- small()
  unlink(raw(plan, "docker", "pxz", c("2.log", "2.json")))
  expect_error(tidied(plan), "1 of 4 cells of pxz were not measured: .*docker/pxz/2.log$")
  expect_equal(nrow(tidied(plan, partial = TRUE)), 3)
  unlink(raw(plan), recursive = TRUE)
  expect_error(tidied(plan), "4 of 4 cells")
  expect_equal(names(tidied(plan, partial = TRUE)), names(TIDY_COLUMNS))
  expect_equal(nrow(tidied(plan, partial = TRUE)), 0)
})

test_that("a log without its record is an error, partial or not", {
  plan <- small()
  unlink(raw(plan, "docker", "pxz", "2.json"))
  expect_error(tidied(plan), "docker/pxz/2.json: no such file")
  expect_error(tidied(plan, partial = TRUE), "docker/pxz/2.json: no such file")
})

test_that("a log that the plan does not hold is named", {
  plan <- small()
  file.copy(raw(plan, "native", "pxz", "1.log"), raw(plan, "native", "pxz", "9.log"))
  expect_message(tidied(plan), "left out, since the plan does not hold them: .*native/pxz/9.log")
})

test_that("a record that is not JSON is an error that names it", {
  plan <- small()
  path <- raw(plan, "docker", "pxz", "2.json")
  writeLines("{\"format\": 1,", path)
  expect_error(tidied(plan), "docker/pxz/2.json: not valid JSON")
  for (other in c("[]", "7", "\"text\"")) {
    writeLines(other, path)
    expect_error(tidied(plan), "docker/pxz/2.json: not a JSON object")
  }
})

test_that("a broken log is an error that names it and the reason", {
  plan <- small()
  cell <- read_cells(plan)[4, ]
  lines <- fixture("pxz")
  name <- paste0(cell$environment, "/pxz/2.log: ")
  write_cell(plan$results, cell, lines[-6])
  expect_error(tidied(plan), paste0(name, "the log does not end with"))
  write_cell(plan$results, cell, sub("\"pass\": 1", "\"pass\": 1 x", lines))
  expect_error(tidied(plan), paste0(name, "line 4 is not a complete JSON object"))
  write_cell(plan$results, cell, lines)
  bytes <- c(charToRaw("binary"), as.raw(0), charToRaw("garbage\n"))
  path <- raw(plan, cell$environment, "pxz", "2.log")
  writeBin(bytes, path)
  rewrite(sub("log$", "json", path), function(r) {
    updated(r, log = list(bytes = length(bytes), sha256 = sha256(path)))
  })
  expect_error(tidied(plan), paste0(name, "not a text file"))
})

test_that("a cell that was refused is left out, and no other that is missing", {
  plan <- small()
  unlink(raw(plan, "docker", "pxz", c("2.log", "2.json")))
  failed <- file.path(plan$results, "failed", "docker", "pxz", "2.json")
  dir.create(dirname(failed), recursive = TRUE)
  write_json(list(error = "its run step ended with exit code 1"), failed)
  expect_error(tidied(plan), "1 of 4 cells of pxz were not measured")
  write_json(list(error = "a value is not positive", refused = TRUE), failed)
  expect_equal(nrow(tidied(plan)), 3)
  unlink(raw(plan, "native", "pxz", "1.log"))
  expect_error(tidied(plan), "1 of 4 cells of pxz were not measured: .*native/pxz/1.log$")
})

test_that("logs that their parsers refuse are told with the reason, and no parser stops the others", {
  plan <- small()
  logs <- raw(plan, c("native", "docker"), "pxz", c("1.log", "2.log"))
  root <- file.path(test_path(), "..", "..", "..")
  expect_length(refused_logs(plan, logs, root), 0)
  lines <- sub("\"microseconds\": [0-9]+", "\"microseconds\": 1e400", fixture("pxz"))
  write_cell(plan$results, read_cells(plan)[read_cells(plan)$environment == "docker", ][2, ], lines)
  refused <- refused_logs(plan, logs, root)
  expect_equal(names(refused), logs[[2]])
  expect_match(refused[[1]], "^microseconds should be a positive number, and is Inf$")
})

test_that("text that is not ASCII beside the results does no harm", {
  plan <- small(spread = 0)
  write_cell(plan$results, read_cells(plan)[4, ], c("xz: \u2018warning\u2019", "xz: \xe9", fixture("pxz")))
  expect_equal(nrow(tidied(plan)), 4)
})

test_that("threads may differ between environments and only there", {
  plan <- small(spread = 0)
  for (i in 1:2) {
    cell <- read_cells(plan)
    cell <- cell[cell$environment == "docker" & cell$repetition == i, ]
    write_cell(plan$results, cell, sub("\"threads\": 2", "\"threads\": 1", fixture("pxz")),
               function(r) updated(r, parameters = updated(r$parameters, threads = 1)))
  }
  expect_equal(nrow(tidied(plan)), 4)
})

#' A log of several systems: the lines of each after a line that tells of it
of_systems <- function(...) {
  unlist(Map(function(number, lines) c(sprintf("{\"system\": %d}", number), lines), seq_along(list(...)) - 1,
             list(...)))
}

#' A record as of a cell in several systems, with a command in each, and some more
in_systems <- function(count, ...) {
  more <- list(...)
  function(record) {
    ran <- lapply(seq_len(count) - 1, function(number) list(step = "run", system = number, exit = 0))
    updated(record, system = list(parts = count), commands = c(ran, more))
  }
}

test_that("each of several systems is parsed by itself, and is a factor", {
  plan <- read_plan(make_results("native", "stream", 1, spread = 0))
  cell <- read_cells(plan)[1, ]
  log <- fixture("stream")
  write_cell(plan$results, cell, of_systems(log, slow_log(log, 2)), in_systems(2))
  tidy <- tidied(plan)
  expect_equal(tidy$metric, rep(c("copy", "scale", "add", "triad"), each = 2))
  expect_equal(tidy$factors, rep(c("system=0", "system=1"), 4))
  alone <- parser_of("stream")(log, asked_for$stream)
  expect_equal(tidy$value[tidy$factors == "system=0"], alone$value)
  expect_equal(tidy$value[tidy$factors == "system=1"], alone$value / 2, tolerance = 1e-5)
})

test_that("a system's number follows on the factors that a parser gives", {
  plan <- read_plan(make_results("native", "linpack", 1, spread = 0))
  parameters <- list(threads = 2, sizes = list(500, 1500), min_trials = 2, min_seconds = 0)
  log <- fixture("linpack", "two-sizes")
  write_cell(plan$results, read_cells(plan)[1, ], of_systems(log, log),
             function(r) in_systems(2)(updated(r, parameters = parameters)))
  expect_equal(tidied(plan)$factors, c("order=500;system=0", "order=1500;system=0", "order=500;system=1",
                                       "order=1500;system=1"))
})

test_that("a broken output of one system is an error that names it", {
  plan <- read_plan(make_results("native", "stream", 1, spread = 0))
  cell <- read_cells(plan)[1, ]
  log <- fixture("stream")
  told <- function(lines, record = in_systems(2)) {
    write_cell(plan$results, cell, lines, record)
    tidied(plan)
  }
  expect_equal(nrow(told(of_systems(log, log))), 8)
  expect_error(told(of_systems(log, log[-length(log)])), "1.log: system 1: the log does not end with")
  apart <- "should hold the outputs of 2 commands in 2 systems in their order, and it does not"
  expect_error(told(of_systems(log)), apart)
  expect_error(told(c(log, log)), apart)
  expect_error(told(of_systems(log, log, log)), apart)
  expect_error(told(sub("{\"system\": 1}", "{\"system\": 2}", of_systems(log, log), fixed = TRUE)), apart)
  # A tool cannot pass for a system: the record says how many commands printed something.
  expect_error(told(of_systems(c(log[1], "{\"system\": 1}", log[-1]), log)), apart)
  # Nothing stands before the first system but what the client printed, which no parser of a system sees.
  expect_error(told(c("{\"system\": null}", of_systems(log[-1], log))), "system 0: ")
  expect_error(told(of_systems(log, log), in_systems(3)),
               "should hold the outputs of 3 commands in 3 systems in their order")
  expect_error(told(of_systems(log, log), identity), "the keys system does not belong")
})

test_that("lines belong to a system, to the client, or, where they were observed, to every system", {
  lines <- c("{\"observed\": 1}", of_systems("a", c("b", "b")), "{\"system\": null}", "{\"observed\": 2}",
             "c", of_systems("d", character()))
  both <- list(list(system = 0), list(system = 1))
  commands <- c(both, list(list(at = "client")), both)
  parts <- split_systems(lines, commands, 2)
  expect_equal(parts$client, c("{\"observed\": 1}", "{\"observed\": 2}", "c"))
  expect_equal(parts$systems, list(c("{\"observed\": 1}", "a", "{\"observed\": 2}", "d"),
                                   c("{\"observed\": 1}", "b", "b", "{\"observed\": 2}")))
})

test_that("what a load generator at the client printed is of all systems together", {
  record <- in_systems(2, list(step = "run", at = "client", exit = 0))(list(parameters = list(p = 1)))
  seen <- NULL
  parse <- function(lines, parameters) {
    seen <<- lines
    measured("rate", "1/s", parameters$p)
  }
  lines <- c(of_systems("prepared", "prepared"), "{\"system\": null}", "{\"observed\": 1}", "{\"point\": 1}")
  expect_equal(parse_systems(lines, record, parse), measured("rate", "1/s", 1))
  expect_equal(seen, c("{\"observed\": 1}", "{\"point\": 1}"))
  # There may be nothing but the client's.
  alone <- updated(record, commands = record$commands[3])
  expect_equal(parse_systems("{\"point\": 1}", alone, parse)$value, 1)
  expect_equal(seen, "{\"point\": 1}")
  # A client that only warmed up measured nothing.
  record$commands[[3]]$step <- "warmup"
  expect_equal(parse_systems(lines, record, parse)$factors, c("system=0", "system=1"))
  expect_equal(seen, c("prepared", "{\"observed\": 1}"))
})

test_that("a parser that returns something else than the workload's metrics is an error", {
  plan <- small()
  returns <- function(...) function(lines, parameters) measured(...)
  expect_error(tidy_workload(plan, "pxz", returns("speed", "MB/s", 1)), "1.log: the parser returns speed")
  expect_error(tidy_workload(plan, "pxz", returns("throughput", "GB/s", 1)), "another unit")
  expect_error(tidy_workload(plan, "pxz", returns("throughput", "MB/s", -1)), "not positive")
  expect_error(tidy_workload(plan, "pxz", returns("throughput", "MB/s", NaN)), "not positive")
  expect_error(tidy_workload(plan, "pxz", returns("throughput", "MB/s", c(1, 2))), "a value twice")
  expect_error(tidy_workload(plan, "pxz", returns(character(), character(), numeric(), character())),
               "no value of throughput")
  expect_error(tidy_workload(plan, "pxz", function(lines, parameters) stop("oops")), "1.log: oops")
})

test_that("only a metric that is optional may have no values", {
  plan <- small()
  with_cycles <- function(optional) {
    plan$workloads$pxz$metrics$cycles <- list(label = "Cycles", unit = "1/B", better = "lower",
                                              optional = optional)
    plan
  }
  expect_error(tidied(with_cycles(FALSE)), "no value of cycles")
  expect_error(tidied(with_cycles(NULL)), "no value of cycles")
  expect_equal(tidied(with_cycles(TRUE)), tidied(plan))
})

test_that("a workload without a parser is an error", {
  expect_error(load_parser(project, "nonesuch"), "every workload needs a parser")
})

test_that("the script writes the table, from any folder and again the same", {
  plan <- small()
  out <- file.path(plan$results, "tidy", "pxz.csv")
  run <- function() {
    in_folder(dirname(plan$results), run_r("tidy.R", "--plan", "results/plan.json", "--workload", "pxz",
                                           "--out", "results/tidy/pxz.csv"))
  }
  expect_equal(run(), list(status = 0L, output = character()))
  expect_equal(read_tidy(out, plan), tidied(plan), tolerance = 1e-14)
  first <- readLines(out)
  expect_equal(run()$status, 0L)
  expect_equal(readLines(out), first)
  unlink(raw(plan, "docker", "pxz", "1.log"))
  failed <- run()
  expect_equal(failed$status, 1L)
  expect_equal(failed$output,
               "tidy.R: 1 of 4 cells of pxz were not measured: results/raw/docker/pxz/1.log")
  expect_equal(readLines(out), first)
})

#' The log of a cell of several laps
of_laps <- function(...) {
  parts <- list(...)
  unlist(Map(function(number, lines) c(sprintf("{\"lap\": %d}", number), lines), seq_along(parts), parts))
}

#' A record as of a cell of several laps, with a command in each system of each of them
in_laps <- function(count, systems = 1) {
  function(record) {
    ran <- lapply(seq_len(count), function(lap) {
      lapply(seq_len(systems) - 1, function(system) {
        c(list(step = "run", lap = lap, exit = 0), if (systems > 1) list(system = system))
      })
    })
    updated(record, system = list(parts = systems), commands = unlist(ran, recursive = FALSE))
  }
}

test_that("the value of several laps is their mean, of rates over equal work the harmonic one", {
  plan <- read_plan(make_results("native", "stream", 1, spread = 0))
  cell <- read_cells(plan)[1, ]
  log <- fixture("stream")
  write_cell(plan$results, cell, of_laps(log, slow_log(log, 2), log), in_laps(3))
  alone <- parser_of("stream")(log, asked_for$stream)$value
  expect_equal(tidied(plan)$value, alone * 2.5 / 3, tolerance = 1e-5)
  costs <- metrics_of(plan, "stream")
  costs$statistic <- "harmonic"
  record <- in_laps(3)(list(parameters = asked_for$stream))
  found <- parse_laps(of_laps(log, slow_log(log, 2), log), record, parser_of("stream"), costs)
  expect_equal(found$value, alone * 3 / 4, tolerance = 1e-5)
})

test_that("what was printed before all laps belongs to each, and systems have laps of their own", {
  plan <- read_plan(make_results("native", "pxz", 1, spread = 0))
  cell <- read_cells(plan)[1, ]
  log <- fixture("pxz")
  header <- which(startsWith(log, "{\"tool\""))[[1]] - 1
  before <- log[seq_len(header)]
  run <- log[-seq_len(header)]
  write_cell(plan$results, cell, c(before, of_laps(run, run)), in_laps(2))
  expect_equal(tidied(plan)$value, parser_of("pxz")(log, asked_for$pxz)$value)
  plan <- read_plan(make_results("native", "stream", 1, spread = 0))
  log <- fixture("stream")
  lines <- of_laps(of_systems(log, log), of_systems(log, slow_log(log, 2)))
  write_cell(plan$results, read_cells(plan)[1, ], lines, in_laps(2, systems = 2))
  tidy <- tidied(plan)
  alone <- parser_of("stream")(log, asked_for$stream)
  expect_equal(tidy$value[tidy$factors == "system=0"], alone$value)
  expect_equal(tidy$value[tidy$factors == "system=1"], alone$value * 3 / 4, tolerance = 1e-5)
})

test_that("a lap that is broken, missing or doubled is an error that names it", {
  plan <- read_plan(make_results("native", "stream", 1, spread = 0))
  cell <- read_cells(plan)[1, ]
  log <- fixture("stream")
  told <- function(lines, record = in_laps(2)) {
    write_cell(plan$results, cell, lines, record)
    tidied(plan)
  }
  expect_equal(nrow(told(of_laps(log, log))), 4)
  expect_error(told(of_laps(log, log[-length(log)])), "1.log: lap 2: the log does not end with")
  apart <- "should hold 2 laps in their order, and it does not"
  expect_error(told(of_laps(log)), apart)
  expect_error(told(log), apart)
  expect_error(told(of_laps(log, log, log)), apart)
  expect_error(told(of_laps(c(log[1], "{\"lap\": 2}", log[-1]), log)), apart)
  expect_error(told(of_laps(log, log), identity), "should hold 0 laps in their order")
})

test_that("laps that tell of different things are an error", {
  parse <- function(lines, parameters) measured(if (any(lines == "more")) c("a", "b") else "a", "1/s", 1)
  record <- in_laps(2)(list(parameters = list()))
  metrics <- data.frame(metric = c("a", "b"), statistic = "mean")
  expect_error(parse_laps(of_laps("x", "more"), record, parse, metrics),
               "lap 2 tells of other metrics than lap 1")
})
