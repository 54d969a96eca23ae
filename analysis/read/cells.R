# From the raw logs and records of one workload to its tidy table.

#' The tidy table of a workload
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @param parse the workload's parser, a function of lines and parameters
#' @param partial whether cells that were not measured are left out; otherwise they are an error
#' @param cells the plan's cells, as from `read_cells`
#' @return data frame with the columns of TIDY_COLUMNS; in the order of the plan, of its metrics, and of the
#'   log
#' @section Errors: a missing log, a broken log or record, records that disagree; each names the file and the
#'   reason
tidy_workload <- function(plan, workload, parse, partial = FALSE, cells = read_cells(plan)) {
  metrics <- metrics_of(plan, workload)
  cells <- cells[cells$workload == workload, ]
  cells$log <- cell_path(plan, "log", cells)
  cells$record <- cell_path(plan, "record", cells)
  cells <- cells[order(cells$position), ]
  there <- file.exists(cells$log)
  missing <- !there & !was_refused(plan, cells)
  if (!partial && any(missing)) {
    stop(sum(missing), " of ", nrow(cells), " cells of ", workload, " were not measured: ",
         shortened(cells$log[missing]), call. = FALSE)
  }
  unable <- read_inability(plan, read_planned(plan))
  note_unplanned(plan$results, workload, c(cells$log, cell_path(plan, "log", unable)))
  cells <- cells[there, ]
  records <- lapply(cells$record, read_json)
  if (is_spread(plan)) {
    cells$counts[set_key(cells) %in% torn_sets(records)] <- "no"
  }
  values <- Map(parse_cell, cells$log, records, MoreArgs = list(parse = parse, metrics = metrics))
  bind_values(values, records, cells, basename(normalizePath(plan$results)))
}

#' Says which logs are left out because the plan does not hold their cells
#'
#' @param results folder of results
#' @param workload its name
#' @param planned paths of the logs that the plan holds
note_unplanned <- function(results, workload, planned) {
  folders <- file.path(results, "raw", list.files(file.path(results, "raw")), workload)
  found <- unlist(lapply(folders, list.files, pattern = "[.]log$", full.names = TRUE))
  others <- setdiff(found, planned)
  if (length(others) > 0) {
    message("left out, since the plan does not hold them: ", shortened(others))
  }
}

#' The parser of a workload
#'
#' @param root folder of the project
#' @param workload its name
#' @return the function `parse_W` of workloads/W/parse.R
#' @section Errors: there is none
load_parser <- function(root, workload) {
  path <- file.path(root, "workloads", workload, "parse.R")
  if (!file.exists(path)) {
    stop_about(path, "no such file; every workload needs a parser")
  }
  functions <- new.env(parent = environment(load_parser))
  sys.source(path, functions)
  name <- paste0("parse_", gsub("-", "_", workload, fixed = TRUE))
  if (!is.function(functions[[name]])) {
    stop_about(path, "it does not define ", name)
  }
  functions[[name]]
}

#' What one log holds
#'
#' @param log path of the log
#' @param record its record
#' @param parse the workload's parser
#' @param metrics as from `metrics_of`
#' @return data frame as the parser's, in the order of the metrics
#' @section Errors: a broken log; values that are not those of the workload's metrics
parse_cell <- function(log, record, parse, metrics) {
  values <- tryCatch(parse_laps(log_lines(log), record, parse, metrics), error = function(e) {
    stop_about(log, conditionMessage(e))
  })
  fault <- values_fault(values, metrics)
  if (length(fault) > 0) {
    stop_about(log, fault[[1]])
  }
  values[order(match(values$metric, metrics$metric)), ]
}

# What marks lines of a log, and what stands for what is not known.
LOGS <- read_contract("logs")

#' What was measured in all laps of a cell
#'
#' @param lines the log's lines
#' @param record its record
#' @param parse the workload's parser
#' @param metrics as from `metrics_of`
#' @return data frame as from `parse_systems`; of several laps the mean, of rates over equal work the harmonic
#'   one
#' @section Errors: those of the parser, which tell the lap; a log that does not hold each lap, or laps that
#'   tell of different things
parse_laps <- function(lines, record, parse, metrics) {
  laps <- split_laps(lines, record$commands)
  if (length(laps) == 1) {
    return(parse_systems(lines, record, parse))
  }
  values <- lapply(seq_along(laps), function(lap) {
    record$commands <- Filter(function(command) is.null(command$lap) || command$lap == lap, record$commands)
    tryCatch(parse_systems(laps[[lap]], record, parse), error = function(e) {
      broken_log("lap ", lap, ": ", conditionMessage(e))
    })
  })
  first <- values[[1]]
  told <- names(first) != "value"
  same <- vapply(values, function(lap) identical(lap[, told], first[, told]), NA)
  require_that(all(same), "lap ", which(!same)[1], " tells of other metrics than lap 1")
  measured <- matrix(vapply(values, function(lap) as.double(lap$value), double(nrow(first))), nrow(first))
  over_equal_work <- metrics$statistic[match(first$metric, metrics$metric)] %in% "harmonic"
  first$value <- ifelse(over_equal_work, apply(measured, 1, harmonic_mean), rowMeans(measured))
  first
}

#' The lines of a log by laps
#'
#' What was printed in a lap stands after a line `{"lap": K}`, and what came before all of them at the
#' beginning.
#'
#' @param lines the log's lines
#' @param commands of the record
#' @return list: for each lap its lines, behind those that came before all of them; where there is but one,
#'   all
#' @section Errors: broken_log, where the laps are not those of the record's commands
split_laps <- function(lines, commands) {
  mark <- LOGS$lap
  pattern <- gsub("([{}])", "\\\\\\1", paste0("^", mark$before, "([0-9]+)", mark$after, "$"))
  at <- grep(pattern, lines, useBytes = TRUE)
  ran <- unique(unlist(lapply(commands, `[[`, "lap")))
  require_that(identical(sub(pattern, "\\1", lines[at]), as.character(ran)),
               "the log should hold ", length(ran), " laps in their order, and it does not")
  if (length(ran) == 0) {
    return(list(lines))
  }
  of <- findInterval(seq_along(lines), at)
  lapply(seq_along(ran), function(lap) lines[of == 0 | (of == lap & !seq_along(lines) %in% at)])
}

#' What was measured in each of the equal systems that ran at the same time
#'
#' A load generator at the client reaches all systems, so that what it printed is parsed as it is.
#'
#' @param lines the log's lines
#' @param record its record
#' @param parse the workload's parser
#' @return data frame as the parser's; where there are several systems and no load generator measured them
#'   together, with the factor `system`, their number from 0, as the last one
#' @section Errors: those of the parser, which tell the system; a log that does not hold the systems' outputs
parse_systems <- function(lines, record, parse) {
  count <- systems_at_once(record)
  if (count == 1) {
    return(parse(lines, record$parameters))
  }
  parts <- split_systems(lines, record$commands, count)
  measures <- vapply(record$commands, function(command) {
    identical(command$step, "run") && identical(command$at, "client")
  }, NA)
  if (any(measures)) {
    return(parse(parts$client, record$parameters))
  }
  do.call(rbind, lapply(seq_len(count) - 1, function(system) {
    values <- tryCatch(parse(parts$systems[[system + 1]], record$parameters), error = function(e) {
      broken_log("system ", system, ": ", conditionMessage(e))
    })
    factor <- rep(paste0("system=", system), nrow(values))
    values$factors <- ifelse(values$factors == "", factor, paste0(values$factors, ";", factor))
    values
  }))
}

#' The lines of a log of several equal systems, by whose they are
#'
#' What a system printed stands after a line `{"system": K}`.  At the beginning and after `{"system": null}`
#' stands what is of none of them: the client's, and what was observed.
#'
#' @param lines the log's lines
#' @param commands of the record
#' @param count how many systems there are
#' @return list: `client`, the lines that are of no system; `systems`, for each system its lines and, at their
#'   places, what was observed
#' @section Errors: broken_log, where the log is not made of the outputs of the record's commands
split_systems <- function(lines, commands, count) {
  mark <- LOGS$system
  pattern <- gsub("([{}])", "\\\\\\1", paste0("^", mark$before, "(", mark$none, "|[0-9]+)", mark$after, "$"))
  at <- grep(pattern, lines, useBytes = TRUE)
  told <- sub(pattern, "\\1", lines[at])
  ran <- unlist(lapply(commands, `[[`, "system"))
  # Where the client does it all, no command ran in a system.
  in_all <- length(ran) == 0 || setequal(ran, seq_len(count) - 1)
  require_that(in_all && identical(told[told != mark$none], as.character(ran)),
               "the log should hold the outputs of ", length(ran), " commands in ", count,
               " systems in their order, and it does not")
  of <- c(mark$none, told)[findInterval(seq_along(lines), at) + 1]
  marks <- seq_along(lines) %in% at
  observed <- of == mark$none & startsWith(lines, LOGS$observed)
  list(client = lines[of == mark$none & !marks],
       systems = lapply(seq_len(count) - 1, function(system) {
         lines[(of == system & !marks) | observed]
       }))
}

#' What is wrong with the values of a parser
#'
#' @param values data frame of a parser
#' @param metrics as from `metrics_of`
#' @return the reasons why they can't be used; none where they can
values_fault <- function(values, metrics) {
  known <- match(values$metric, metrics$metric)
  absent <- setdiff(metrics$metric[!metrics$optional], values$metric)
  c(
    if (anyNA(known)) paste0("the parser returns ", values$metric[is.na(known)][[1]], ", which is no metric"),
    if (length(absent) > 0) paste("no value of", absent[[1]]),
    if (!identical(values$unit, metrics$unit[known])) "the parser returns another unit than the workload's",
    if (!is.numeric(values$value) || !all(is.finite(values$value) & values$value > 0)) {
      "a value is not positive"
    },
    if (anyDuplicated(values[c("metric", "factors")]) > 0) "the parser returns a value twice"
  )
}

#' One table of the values of all cells
#'
#' @param values list of data frames, one for each cell
#' @param records list of records
#' @param cells data frame with a row for each record
#' @param results name of the folder of results
#' @return data frame with the columns of TIDY_COLUMNS
bind_values <- function(values, records, cells, results) {
  of_cell <- rep(seq_len(nrow(cells)), vapply(values, nrow, 0L))
  of_values <- function(name, type) {
    as.vector(unlist(lapply(values, `[[`, name), use.names = FALSE), type)
  }
  data.frame(
    cells[of_cell, c("environment", "workload", "repetition")],
    # Block and place in the plan of its time, which may have grown since.
    block = vapply(records, function(record) as.double(record$block), 0)[of_cell],
    position = vapply(records, function(record) as.double(record$position$planned), 0)[of_cell],
    order = vapply(records, function(record) as.double(record$position$actual), 0)[of_cell],
    metric = of_values("metric", "character"), unit = of_values("unit", "character"),
    value = of_values("value", "numeric"), factors = of_values("factors", "character"),
    check = rep("passed", length(of_cell)), counts = cells$counts[of_cell],
    log = cell_path(list(results = results), "log", cells)[of_cell],
    row.names = NULL
  )
}

#' Which logs their parsers refuse
#'
#' @param plan as from `read_plan`
#' @param logs their paths, of any workloads of the plan
#' @param root folder of the project
#' @return named list: log to the reason; empty where all are taken
#' @section Errors: a workload without a parser; a record that can't be read
refused_logs <- function(plan, logs, root) {
  workloads <- basename(dirname(logs))
  parsers <- sapply(unique(workloads), load_parser, root = root, simplify = FALSE)
  metrics <- sapply(unique(workloads), metrics_of, plan = plan, simplify = FALSE)
  reasons <- Map(function(log, workload) {
    record <- read_json(sub("log$", "json", log))
    tryCatch({
      parse_cell(log, record, parsers[[workload]], metrics[[workload]])
      NULL
    }, error = function(e) sub(paste0(log, ": "), "", conditionMessage(e), fixed = TRUE))
  }, logs, workloads)
  Filter(Negate(is.null), reasons)
}
