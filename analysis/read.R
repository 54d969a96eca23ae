# Reads a folder of results into data frames, and separates emulated environments from the others.

NATIVE <- "native"

# Columns of the tidy tables that hold strings, even if all their values look like numbers.
TEXT_COLUMNS <- c("metric", "unit", "counts", "log", "how")

# The prefix of the columns of factors, as in strata/results/tidy.py.  A field is empty if its row
# lacks the factor.
FACTOR <- "factor_"

# A session ends if no cell was measured for so many seconds.
SESSION_GAP <- 3600

# Returns a value, or `default` if the value is NULL.  An NA, an empty text and an empty vector are
# returned as they are.
`%or%` <- function(value, default) if (is.null(value)) default else value

#' Read the claims that a project tests
#'
#' The key `claims` of the plan may name their file; published/claims.json is the default.  The file
#' is looked for beside the folder of results, where an experiment in a folder of its own has it,
#' and then in the project.
#'
#' @param results folder of results, with plan.json
#' @param project folder of the project
#' @return list as in published/claims.json
#' @section Errors: the file is in neither folder
read_published <- function(results, project) {
  plan <- jsonlite::read_json(file.path(results, "plan.json"))
  paths <- file.path(c(dirname(normalizePath(results)), project),
                     plan$claims %or% "published/claims.json")
  jsonlite::read_json(paths[file.exists(paths)][[1]])
}

#' Bind data frames with the same columns below one another; only their factors may differ
#'
#' A column that the first table lacks is lost without a message, unless it is a factor's.
#'
#' @param tables list of data frames and NULLs; NULLs and names of the list are ignored
#' @return data frame with the columns of the first table, then all factors (a table without a
#'   factor gives "" for it); NULL if all tables are NULL
stack_rows <- function(tables) {
  tables <- Filter(Negate(is.null), unname(tables))
  if (length(tables) == 0) return(NULL)
  # Returns one column of all tables.
  bind_column <- function(name) {
    columns <- lapply(tables, function(table) {
      is_absent_factor <- startsWith(name, FACTOR) && !name %in% names(table)
      if (is_absent_factor) rep("", nrow(table)) else table[[name]]
    })
    do.call(c, columns)
  }
  columns <- unique(c(names(tables[[1]]), unlist(lapply(tables, list_factor_columns))))
  list2DF(lapply(stats::setNames(nm = columns), bind_column))
}

# Returns the names of a data frame's columns of factors, with their prefix, in their order.
list_factor_columns <- function(rows) grep(paste0("^", FACTOR), names(rows), value = TRUE)

#' Expand the word "factors" in a list of columns to the columns of all factors
#'
#' @param columns names of columns
#' @param rows data frame
#' @return names of columns
expand_factors <- function(columns, rows) {
  unlist(lapply(columns, function(name) {
    if (name == "factors") list_factor_columns(rows) else name
  }))
}

#' Make a key for each row, a text that is equal for rows with equal values in some columns
#'
#' Keys are for comparison only.  "\r" separates values, since no value holds it.  Keys of two data
#' frames are comparable only if both have the same columns of factors.
#'
#' @param rows data frame, or NULL, which has no keys
#' @param columns names of columns; "factors" stands for the columns of all factors
#' @return character vector, an element for each row
make_keys <- function(rows, columns = c("workload", "metric", "factors")) {
  values <- unname(as.list(rows[expand_factors(columns, rows)]))
  do.call(paste, c(list(rep("", NROW(rows))), values, sep = "\r"))
}

#' Get the values of one factor
#'
#' @param rows data frame
#' @param name the factor's name, without its prefix
#' @return strings, for example "4"; "" if a row lacks the factor
get_factor <- function(rows, name) {
  rows[[paste0(FACTOR, name)]] %or% rep("", nrow(rows))
}

#' List the keys that only one of two lists has, or whose values differ
#'
#' @param pair list of two named lists
#' @return names of the keys; NULL if neither list has keys
list_differing_keys <- function(pair) {
  keys <- unique(unlist(lapply(pair, names)))
  Filter(function(key) !identical(pair[[1]][[key]], pair[[2]][[key]]), keys)
}

#' Read the results of an experiment
#'
#' The scripts of this folder and the documents rely on the names of the entries.
#'
#' @param folder path of the folder that holds plan.json, plan.csv and raw/
#' @param tables path of the folder that holds tidy/ and laps/
#' @return list:
#'   folder, plan;
#'   environments, metrics (data frames in the plan's order);
#'   all (rows of the tidy tables that prefer_whole_runs returns, with the columns of label_rows and
#'   `laps`, a list of the values of each row's laps), tidy (the rows that count, of environments
#'   that are not emulated), emulated (the rows that count, of emulated machines and of the native
#'   runs at their sizes);
#'   planned (rows of plan.csv with `log`), records (of the planned cells that were measured, named
#'   by their log), sessions (data frame of assign_sessions);
#'   valid (whether the scale can answer a question), sizes (rules of the sizes), invalid (workloads
#'   that answer no question, because the scale is tiny or a size rule is broken)
#' @section Errors: the plan or all values are missing; an environment or metric is not in the plan
read_results <- function(folder, tables = folder) {
  plan_path <- file.path(folder, "plan.json")
  if (!file.exists(plan_path)) {
    stop(plan_path, ": missing: `snakemake --cores 1 paper/report.pdf` writes it; or name its ",
         "folder", call. = FALSE)
  }
  plan <- jsonlite::read_json(plan_path)
  environments <- stack_rows(Map(describe_environment, names(plan$environments), plan$environments))
  metrics <- stack_rows(Map(list_metrics, names(plan$workloads), plan$workloads))
  # Tables of workloads that are not planned were left by an earlier plan.
  rows <- stack_rows(lapply(names(plan$workloads), read_values, tables))
  if (NROW(rows) == 0) stop(folder, "/tidy: no value was measured", call. = FALSE)
  require_planned(rows, metrics, environments, folder)
  rows <- label_rows(rows, metrics, environments)
  rows$headline <- is_headline(rows, plan)
  planned <- read_planned_cells(folder)
  records <- read_records(planned$log, folder)
  sessions <- assign_sessions(records)
  rows <- cbind(rows, get_run_times(rows, records),
                sessions[match(rows$log, sessions$log), c("session", "machine")])
  rows <- prefer_whole_runs(rows)
  emulated_names <- environments$environment[environments$emulated]
  is_emulated <- rows$environment %in% emulated_names
  counts <- rows$counts == "yes"
  is_measured <- function(record) !record$environment %in% emulated_names
  sizes <- collect_size_rules(Filter(is_measured, records))
  # The sizes of the scale "tiny" are made for tests.
  valid <- plan$scale != "tiny"
  invalid <- names(plan$workloads)
  if (valid) invalid <- unique(sizes$workload[sizes$holds %in% FALSE])
  list(folder = folder, plan = plan, environments = environments, metrics = metrics, all = rows,
       planned = planned, tidy = rows[!is_emulated & counts, ],
       emulated = rows[is_emulated & counts, ], records = records, sessions = sessions,
       valid = valid, sizes = sizes, invalid = invalid)
}

# Reads plan.csv, which has a row for each planned cell, and adds `log`: the path of the cell's log
# in the project, for example "results/raw/native/stream/1.log".
# folder: path of the results.
read_planned_cells <- function(folder) {
  planned <- read_table(file.path(folder, "plan.csv"))
  planned$log <- do.call(sprintf, c("results/raw/%s/%s/%s.log",
                                    planned[c("environment", "workload", "repetition")]))
  planned
}

# Stops unless the plan has the metric and the environment of every row.
# rows: tidy rows.
# metrics, environments: data frames of read_results.
# folder: path of the results, for the message.
require_planned <- function(rows, metrics, environments, folder) {
  planned_metrics <- paste(metrics$workload, metrics$metric)
  unplanned <- c(setdiff(paste(rows$workload, rows$metric), planned_metrics),
                 setdiff(rows$environment, environments$environment))
  if (length(unplanned) > 0) {
    stop(folder, "/tidy: ", unplanned[[1]], " is not in ", file.path(folder, "plan.json"),
         call. = FALSE)
  }
}

#' Assign each cell to its session: one sitting on one machine, with its engines started once
#'
#' A session ends with a boot of the machine, with a start of Docker's daemon, and where no cell was
#' measured for SESSION_GAP.  A cell whose record lacks the boot or the daemon's start does not end
#' a session.
#'
#' @param records list of records, named by their logs
#' @return data frame, one row for each record in the order of measurement on each machine: log,
#'   session (machine and first start, for example "host-2026-11-27T10:05:00Z"; equal for the cells
#'   of a session) and machine
assign_sessions <- function(records) {
  get_node_fact <- function(record, key) as.character(record$node[[key]] %or% NA)
  runs <- data.frame(log = as.character(names(records)),
                     machine = vapply(records, function(record) record$node$machine %or% "", ""),
                     boot = vapply(records, get_node_fact, "", "boot"),
                     docker = vapply(records, get_node_fact, "", "docker"),
                     started = get_timestamps(records, "started"),
                     ended = get_timestamps(records, "ended"))
  runs <- runs[order(runs$machine, runs$started, method = "radix"), ]
  rownames(runs) <- NULL
  by_machine <- split(runs, factor(runs$machine, unique(runs$machine)))
  sessions <- stack_rows(lapply(by_machine, function(runs) {
    is_begin <- is_session_begin(runs)
    session_start <- runs$started[is_begin][cumsum(is_begin)]
    timestamp <- as.POSIXct(session_start, origin = "1970-01-01", tz = "UTC")
    session <- paste0(runs$machine, "-", format(timestamp, "%Y-%m-%dT%H:%M:%SZ"))
    data.frame(log = runs$log, session = session, machine = runs$machine)
  }))
  sessions %or% data.frame(log = character(), session = character(), machine = character())
}

# Returns for each run, or each part of a session, whether a session begins with it.  The first run
# begins a session.
# runs: data frame of the runs of one machine, sorted by started: started, ended (seconds since
# 1970), boot (the boot's ID) and docker (the daemon's start); boot and docker may be NA.
is_session_begin <- function(runs) {
  previous_end <- c(-Inf, cummax(runs$ended)[-nrow(runs)])
  runs$started - previous_end > SESSION_GAP | is_changed(runs$boot) | is_changed(runs$docker)
}

# Returns whether each value differs from the last value before it that is not NA.  The first value,
# and NA, do not count as changed.
# values: vector with at least one element.
is_changed <- function(values) {
  # For each position, the position of the last value up to it that is not NA; 0 if there is none.
  last_positions <- cummax(ifelse(is.na(values), 0, seq_along(values)))
  # Each NA is replaced by the value before it.  The NA in front stands for position 0.
  filled_values <- c(NA, values)[last_positions + 1]
  previous_values <- c(NA, filled_values[-length(filled_values)])
  (filled_values != previous_values) %in% TRUE
}

# Returns the timestamps that records have under a key, such as "started", in seconds since 1970.
# A timestamp that is missing, or that is not in the form of parse_timestamps, gives NA.
get_timestamps <- function(records, key) {
  parse_timestamps(vapply(records, function(record) record[[key]] %or% NA_character_, ""))
}

# Converts timestamps of records and tables to seconds since 1970.
# texts: strings in UTC and ISO 8601, for example "2026-11-27T10:05:00.123Z"; what follows the
# seconds is ignored.
# Returns numbers; NA for a string in another form, without a warning.
parse_timestamps <- function(texts) {
  as.numeric(as.POSIXct(texts, format = "%Y-%m-%dT%H:%M:%OS", tz = "UTC"))
}

#' Describe the sessions of a folder of results, with the facts of their machines
#'
#' tables.R writes the result to sessions.csv, which pooling.R reads.
#'
#' @param results list of read_results
#' @return data frame, one row for each session: session, machine, from, to (UTC, ISO 8601), boot
#'   and docker_start (the boot's ID and the start of Docker's daemon), cells (number), and the
#'   facts of SESSION_FACTS and ENGINE_FACTS as strings.  Several values of a fact are joined by
#'   "; "; a fact that no record has is ""
describe_sessions <- function(results) {
  # Joins the distinct values of a fact, sorted, by semicolons, for example "6.1; 6.8".
  join_facts <- function(records, get_value) {
    values <- unlist(lapply(records, function(record) {
      value <- get_value(record) %or% ""
      if (is.numeric(value)) format(value, scientific = FALSE, digits = 15) else value
    }))
    # Records have "not available" where the host hides a fact.
    facts <- setdiff(unique(values), c("", "not available"))
    paste(sort(facts, method = "radix"), collapse = "; ")
  }
  logs <- split(results$sessions$log,
                factor(results$sessions$session, unique(results$sessions$session)))
  stack_rows(Map(function(session, logs) {
    records <- unname(results$records[logs])
    host <- lapply(SESSION_FACTS, function(key) join_facts(records, make_host_getter(key)))
    engines <- lapply(ENGINE_FACTS, function(get_value) join_facts(records, get_value))
    # Timestamps of one form sort by time.
    from_to <- range(vapply(records, `[[`, "", "started"), vapply(records, `[[`, "", "ended"))
    machine <- results$sessions$machine[[match(session, results$sessions$session)]]
    node <- lapply(c(boot = "boot", docker_start = "docker"), function(key) {
      join_facts(records, function(record) record$node[[key]])
    })
    data.frame(session = session, machine = machine, from = from_to[[1]], to = from_to[[2]],
               node, cells = length(logs), stats::setNames(host, SESSION_FACTS), engines)
  }, names(logs), logs))
}

# Makes a function of a record that returns a fact of its host; NULL if the record lacks it.
# key: the fact's key in `observed.host.static`, for example "kernel".
make_host_getter <- function(key) function(record) record$observed$host$static[[key]]

# The facts of a session, which are columns of sessions.csv: keys of `observed.host.static` of
# records, and functions of records.
SESSION_FACTS <- c("cpu_model", "cpus", "memory_bytes", "cache_bytes", "kernel", "os",
                   "virtualization")
ENGINE_FACTS <- list(
  docker = function(record) record$system$docker$engine,
  gvisor = function(record) record$system$docker$sandbox$version,
  vm = function(record) record$system$vm$accelerator
)

#' Keep one row for each value of a cell: the one of whole runs, or else the one of runs in slices
#'
#' A value in slices is compared with values of whole runs by native's value in both ways in the
#' same block: pair_runs uses the three columns that are added here.
#'
#' @param rows tidy rows with `laps`, and with `together` of get_run_times; `how` is "whole" or
#'   "slices"
#' @return the rows that are kept, with native_laps (list: the laps of native in slices, measured
#'   together with a row in slices; NULL for rows of whole runs), scale (native's value in whole
#'   runs as a share of its value in slices) and lap_scale (list: this share for each lap).  The
#'   scales of whole runs are 1.  Those of runs in slices are NA if native lacks either kind of run
prefer_whole_runs <- function(rows) {
  keys <- paste(make_keys(rows), rows$repetition, sep = "\r")
  is_whole <- rows$how == "whole"
  # Returns for each row the position of native's row of the same series and block that was measured
  # together with it, or NA.
  # is_candidate: logical vector, whether each row may be such a row of native.
  find_native <- function(is_candidate) {
    native_rows <- which(is_candidate & rows$environment == NATIVE)
    partners <- native_rows[match(keys, keys[native_rows])]
    is_together <- (rows$together[partners] == rows$together & rows$together != "") %in% TRUE
    replace(partners, !is_together, NA)
  }
  slices_at <- find_native(!is_whole)
  whole_at <- find_native(is_whole)
  rows$native_laps <- ifelse(is_whole | is.na(slices_at), list(NULL), rows$laps[slices_at])
  rows$scale <- ifelse(is_whole, 1, rows$value[whole_at] / rows$value[slices_at])
  # Laps are compared one by one only if native took as many in slices as whole ones.
  rows$lap_scale <- Map(function(whole_laps, laps) {
    if (length(whole_laps) == length(laps)) whole_laps / laps else NA_real_
  }, rows$laps[whole_at], rows$native_laps)
  rows$lap_scale[is_whole] <- list(1)
  cells <- paste(rows$environment, keys)
  rows <- rows[is_whole | !cells %in% cells[is_whole], ]
  rownames(rows) <- NULL
  rows
}

# Returns when each tidy row was measured.
# rows: tidy rows.
# records: list of records, named by their logs; each log of `rows` has one.
# Returns a data frame with a row for each of `rows`, in their order.  is_paired relies on its
# columns:
#   together: the same string for runs whose laps were interleaved; "" for others
#   started, ended: seconds since 1970
#   block_seconds: the time of all cells of the row's block
get_run_times <- function(rows, records) {
  records <- records[unique(rows$log)]
  together <- vapply(records, function(record) paste(unlist(record$together), collapse = " "), "")
  cells <- rows[match(names(records), rows$log), ]
  block <- paste(cells$workload, cells$repetition)
  runs <- data.frame(together = together, started = get_timestamps(records, "started"),
                     ended = get_timestamps(records, "ended"),
                     block_seconds = stats::ave(get_cell_seconds(records), block, FUN = sum))
  times <- runs[match(rows$log, names(records)), ]
  rownames(times) <- NULL
  times
}

# Returns how long the cell of each record took, in seconds; NA if the record lacks it.
get_cell_seconds <- function(records) {
  vapply(records, function(record) as.numeric(record$seconds %or% NA), 0)
}

#' Read the values of a workload, and the values of their laps, as strata/results/tidy.py wrote them
#'
#' @param workload the workload's name
#' @param tables path of the folder that holds tidy/ and laps/
#' @return rows of the tidy table with laps (a list of numeric vectors, empty without laps);
#'   description (of the factors, for readers) and sort_key (a string by which rows of a metric are
#'   sorted), which label_rows uses and removes; NULL if there is no table
read_values <- function(workload, tables) {
  path <- file.path(tables, "tidy", paste0(workload, ".csv"))
  if (!file.exists(path)) return(NULL)
  rows <- read_table(path, TEXT_COLUMNS)
  keys <- c("environment", "repetition", "how", "metric", "factors")
  laps <- read_table(file.path(tables, "laps", basename(path)), c("metric", "how"))
  values <- split(laps$value, make_keys(laps, keys))
  rows$laps <- lapply(unname(values[make_keys(rows, keys)]), as.numeric)
  rows$description <- describe_factors(rows)
  rows$sort_key <- pad_numbers(make_keys(rows, "factors"))
  rows
}

# Reads the record beside each log.
# logs: paths in the project, for example "results/raw/native/stream/1.log".
# folder: the path of the folder of results, which takes the place of "results".
# Returns a list of records, named by the paths of the logs; a log without a record is left out.
read_records <- function(logs, folder) {
  paths <- stats::setNames(sub("log$", "json", sub("^results", folder, logs)), logs)
  lapply(paths[file.exists(paths)], jsonlite::read_json)
}

#' Collect the size rules of workloads, and whether they held in all runs
#'
#' @param records list of records; their `sizes` are the rules
#' @return data frame, one row for each rule of a workload: workload, rule, source, unchecked (the
#'   reason if the rule is not checked, else ""), value (of a run that broke the rule, else the
#'   minimum of all runs), least (the minimum that the rule allows), holds (logical; NA if no run
#'   shows it); NULL if there are no rules
collect_size_rules <- function(records) {
  rows <- stack_rows(lapply(unname(records), function(record) {
    stack_rows(lapply(record$sizes, function(rule) {
      data.frame(workload = record$workload, rule = rule$rule, source = rule$source,
                 unchecked = rule$unchecked %or% "", value = rule$value %or% NA_real_,
                 least = rule$least %or% NA_real_, holds = rule$holds %or% NA)
    }))
  }))
  if (is.null(rows)) return(NULL)
  key <- paste(rows$workload, rows$rule)
  # The first row of each rule is kept: the row of a broken rule, else that of the smallest value.
  is_broken <- rows$holds %in% FALSE
  rows <- rows[order(match(key, unique(key)), !is_broken, rows$value), ]
  rows[!duplicated(rows[c("workload", "rule")]), ]
}

#' Read a CSV table of results
#'
#' @param path the file's path
#' @param text names of the columns that hold strings; factors are strings, too
#' @return data frame; the types of other columns follow from their values, an empty column is
#'   numeric, and an empty field in such a column is NA
read_table <- function(path, text = character()) {
  rows <- utils::read.csv(path, colClasses = "character", na.strings = character(),
                          check.names = FALSE)
  value_columns <- setdiff(names(rows), c(text, list_factor_columns(rows)))
  rows[value_columns] <- lapply(rows[value_columns], function(column) {
    # type.convert would make logical values of an empty column.
    if (all(column == "")) return(as.numeric(column))
    utils::type.convert(column, as.is = TRUE, na.strings = "")
  })
  rows
}

#' Describe an environment of the plan
#'
#' @param name the environment's name
#' @param entry its entry in `environments` of plan.json, which strata/experiment/plan.py writes
#' @return data frame of one row: environment, label, available, reason (why it is not available, or
#'   ""), family ("containers", "sandboxes", "machines"; "" for native), otherwise (whether a daemon
#'   or options make it differ from the environment of claims), emulated (whether its values are in
#'   no comparison), counterpart (whether it is native at the sizes of emulated machines)
describe_environment <- function(name, entry) {
  kinds <- vapply(entry$descriptions, function(layer) layer$kind %or% "", "")
  has_vm <- vapply(entry$layers, function(layer) "vm" %in% names(layer), NA)
  has_sandbox <- vapply(entry$layers, function(layer) !is.null(layer[[1]]$sandbox), NA)
  # Each later assignment overrules the earlier ones: a container in a machine is of the machines.
  family <- "containers"
  if ("sandbox" %in% kinds || any(has_sandbox)) family <- "sandboxes"
  if ("machine" %in% kinds || any(has_vm)) family <- "machines"
  if (name == NATIVE) family <- ""
  data.frame(environment = name, label = entry$label, available = entry$available,
             reason = entry$reason %or% "", family = family,
             otherwise = !is.null(entry$otherwise),
             emulated = isTRUE(entry$emulated) || isTRUE(entry$counterpart),
             counterpart = isTRUE(entry$counterpart))
}

#' List the metrics of a workload of the plan
#'
#' @param workload the workload's name
#' @param entry its entry in `workloads` of plan.json
#' @return data frame, one row for each metric: workload, title, question (the title if the workload
#'   declares none), metric, metric_label, better ("higher" or "lower")
list_metrics <- function(workload, entry) {
  stack_rows(Map(function(name, metric) {
    data.frame(workload = workload, title = entry$title, question = entry$question %or% entry$title,
               metric = name, metric_label = metric$label, better = metric$better)
  }, names(entry$metrics), entry$metrics))
}

# Adds labels to rows, and sorts them.
# rows: rows of read_values of all workloads.
# metrics, environments: data frames of read_results, which have all metrics and environments of the
# rows.
# Returns rows with title, question, metric_label, better, label and series, in the plan's order of
# workloads and metrics, then by factors, by the plan's order of environments, and by repetitions.
# All tables and figures keep this order.
label_rows <- function(rows, metrics, environments) {
  metric_at <- match(paste(rows$workload, rows$metric), paste(metrics$workload, metrics$metric))
  rows <- cbind(rows, metrics[metric_at, c("title", "question", "metric_label", "better")])
  environment_at <- match(rows$environment, environments$environment)
  rows$label <- environments$label[environment_at]
  separator <- ifelse(rows$description == "", "", ", ")
  rows$series <- paste0(rows$title, " ", rows$metric_label, separator, rows$description)
  rows <- rows[order(metric_at, rows$sort_key, environment_at, rows$repetition, method = "radix"),
               setdiff(names(rows), c("description", "sort_key"))]
  rownames(rows) <- NULL
  rows
}

# Pads the whole numbers in strings to 12 digits with zeros, so that the strings sort by their
# numbers: "job 4" becomes "job 000000000004".  Longer numbers stay as they are.
pad_numbers <- function(texts) {
  padded <- gsub("([0-9]+)", "000000000000\\1", texts)
  gsub("0*([0-9]{12})(?![0-9])", "\\1", padded, perl = TRUE)
}

# Factors whose values are shown without the factor's name.
SELF_EXPLANATORY <- c("test", "job", "operation", "setup", "direction")

#' Describe the factors of each row for readers
#'
#' @param rows data frame
#' @param columns names of the columns of factors, with their prefix
#' @return strings, for example "SET, connections 4".  The names of factors in SELF_EXPLANATORY are
#'   left out; a factor that a row lacks is left out with its value.
describe_factors <- function(rows, columns = list_factor_columns(rows)) {
  descriptions <- lapply(columns, function(column) {
    name <- substring(column, nchar(FACTOR) + 1)
    text <- rows[[column]]
    if (!name %in% SELF_EXPLANATORY) text <- paste(name, text)
    ifelse(rows[[column]] == "", NA, gsub("[=_]", " ", text))
  })
  join_present <- function(...) paste(stats::na.omit(c(...)), collapse = ", ")
  if (length(columns) == 0) return(rep("", nrow(rows)))
  unname(do.call(mapply, c(list(join_present), descriptions)))
}

#' Return for each row whether its series is a headline, which alone decides verdicts
#'
#' A workload may declare its headlines.  Otherwise they are the series of its figures, where only
#' the largest point of a sweep counts.  If they match none of a workload's rows, all its series are
#' headlines.
#'
#' @param rows tidy rows
#' @param plan contents of plan.json
#' @return logical vector, for each row
is_headline <- function(rows, plan) {
  headline <- rep(FALSE, nrow(rows))
  for (workload in unique(rows$workload)) {
    positions <- which(rows$workload == workload)
    selections <- list_headline_selections(plan$workloads[[workload]])
    matches <- lapply(selections, is_selected, rows = rows[positions, ])
    is_any_match <- Reduce(`|`, matches, rep(FALSE, length(positions)))
    headline[positions] <- if (any(is_any_match)) is_any_match else TRUE
  }
  headline
}

# Lists the headlines of a workload as selections in the form of is_selected.
# entry: the workload's entry in the plan's `workloads`.
list_headline_selections <- function(entry) {
  if (!is.null(entry$headline)) return(entry$headline)
  figures <- Filter(function(figure) figure$kind %in% c("runs", "sweep"), entry$figures)
  lapply(figures, function(figure) {
    where <- figure$where
    if (figure$kind == "sweep") where <- c(where, stats::setNames(list("largest"), figure$along))
    list(metric = figure$metrics %or% figure$metric, where = where)
  })
}

#' Return for each row whether a selection includes it
#'
#' @param selection list: metric (names; NULL for all) and where (a list named by factors, of their
#'   values, "none", "largest" or "smallest").  "largest" and "smallest" are those of the rows that
#'   match the metric and the factors before it in the list.
#' @param rows data frame: metric, and columns of factors
#' @return logical vector, for each row
is_selected <- function(selection, rows) {
  is_match <- is.null(selection$metric) | rows$metric %in% unlist(selection$metric)
  for (name in names(selection$where)) {
    values <- get_factor(rows, name)
    allowed_values <- as.character(unlist(selection$where[[name]]))
    # as.numeric warns of values that are not numbers; these are neither largest nor smallest.
    numbers <- suppressWarnings(as.numeric(values))
    has_factor <- if (identical(allowed_values, "largest")) {
      !is.na(numbers) & numbers == max(numbers[is_match], -Inf, na.rm = TRUE)
    } else if (identical(allowed_values, "smallest")) {
      !is.na(numbers) & numbers == min(numbers[is_match], Inf, na.rm = TRUE)
    } else {
      # A row that lacks the factor has "" as its value, which selections call "none".
      values %in% replace(allowed_values, allowed_values == "none", "")
    }
    is_match <- is_match & has_factor
  }
  is_match
}
