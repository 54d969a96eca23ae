# The records of cells: their fields, whether they are sound, and what they say of the systems that were
# measured.

#' The record of a cell
#'
#' @param cell row of the plan, with `record` and `log`, the paths of its files
#' @param plan as from `read_plan`
#' @return the record as nested lists
#' @section Errors: no record; a record of another cell or another log; a command or a check that failed
read_record <- function(cell, plan) {
  record <- read_json(cell$record)
  wrong <- tryCatch(record_fault(record, cell), error = function(e) "it is not laid out as a record")
  if (length(wrong) > 0) {
    stop_about(cell$record, wrong[[1]])
  }
  record
}

#' What is wrong with a record
#'
#' @inheritParams read_record
#' @param record the record
#' @return the reasons why the cell can't be used; none where it can
record_fault <- function(record, cell) {
  c(identity_fault(record, cell), outcome_fault(record, cell))
}

#' Whether a record is that of its cell
#'
#' @inheritParams record_fault
#' @return the reasons why it is not; none where it is
identity_fault <- function(record, cell) {
  says <- function(key) is_number(record[[key]], cell[[key]])
  order <- record$position$actual
  c(
    if (!is_number(record$format, 1)) "not a record of format 1",
    if (!identical(record$environment, cell$environment)) "it is of another environment than its path",
    if (!identical(record$workload, cell$workload)) "it is of another workload than its path",
    if (!says("repetition")) "it is of another repetition than its path",
    if (!says("block")) "it is of another block than the plan's",
    if (!is.numeric(record$position$planned)) "it does not say which place it was planned for",
    if (!is.numeric(order) || !isTRUE(order >= 1)) "it does not say in which order it was measured"
  )
}

#' Whether a cell succeeded and left the log that it recorded
#'
#' @inheritParams record_fault
#' @return the reasons why it did not; none where it did
outcome_fault <- function(record, cell) {
  exits <- lapply(record$commands, `[[`, "exit")
  passed <- vapply(record$checks, function(check) isTRUE(check$passed), NA)
  c(
    if (length(exits) == 0) "it holds no command",
    if (!all(vapply(exits, is_number, NA, expected = 0))) "a command failed",
    if (length(passed) == 0) "nothing was checked",
    if (!all(passed)) paste("a check failed:", record$checks[!passed][[1]]$name),
    if (!is_number(record$log$bytes, file.size(cell$log))) paste(cell$log, "has another size than it says"),
    if (!is.character(record$log$sha256)) "it does not hold the digest of its log",
    if (!is.character(record$image$manifest_sha256)) "it does not say in which image it was measured"
  )
}

#' Whether a value of a record is a certain number
#'
#' @param value the value, of any kind
#' @param expected the number
#' @return TRUE or FALSE
is_number <- function(value, expected) {
  is.numeric(value) && length(value) == 1 && !is.na(value) && value == expected
}

#' Checks that the cells of one table belong together
#'
#' They must come from one image and, but for the number of threads, which is what an environment has
#' processors, have the same parameters.  No two can have been measured at the same time.
#'
#' @param records list of records
#' @param cells data frame with a row for each record
#' @section Errors: two records that disagree
check_agreement <- function(records, cells) {
  agree <- function(what, values, within) {
    first <- match(within, within)
    differ <- which(values != values[first])
    if (length(differ) > 0) {
      stop_about(cells$record[differ[[1]]], "it has ", what, " other than ", cells$record[first[differ[[1]]]])
    }
  }
  text <- function(x) vapply(x, function(value) paste(deparse(value), collapse = ""), "")
  if (length(records) > 0) {
    manifests <- vapply(records, function(record) record$image$manifest_sha256, "")
    agree("an image", manifests, rep("", length(records)))
    fixed <- lapply(records, function(record) {
      names <- setdiff(sort(names(record$parameters), method = "radix"), "threads")
      record$parameters[names]
    })
    agree("parameters", text(fixed), rep("", length(records)))
    agree("a number of threads", text(lapply(records, function(record) record$parameters$threads)),
          cells$environment)
    actual <- vapply(records, function(record) as.double(record$position$actual), 0)
    twice <- anyDuplicated(actual)
    if (twice > 0) {
      stop_about(cells$record[twice], "its place in the order of measurement is that of ",
                 cells$record[match(actual[twice], actual)])
    }
  }
}

#' Checks that logs are those that were recorded
#'
#' @param records list of records
#' @param cells data frame with a row for each record and the column `log`
#' @section Errors: a log with another digest
check_digests <- function(records, cells) {
  if (length(records) == 0) {
    return(invisible())
  }
  recorded <- vapply(records, function(record) record$log$sha256, "")
  found <- system2("xargs", c("-d", shQuote("\\n"), "sha256sum", "--"), input = cells$log, stdout = TRUE)
  differ <- which(length(found) != nrow(cells) | substr(found, 1, 64) != recorded)
  if (length(differ) > 0) {
    stop_about(cells$log[differ[[1]]], "it is not the log that was recorded: its SHA-256 differs")
  }
}

#' A field of a record
#'
#' @param record the record
#' @param ... names that lead to the field
#' @return its value; NULL where there is none
field <- function(record, ...) {
  for (name in c(...)) {
    if (!is.list(record)) {
      return(NULL)
    }
    record <- record[[name]]
  }
  record
}

#' A number that a field of every record holds
#'
#' @param records list of records
#' @param ... names that lead to the field
#' @return numeric vector; NA where the field is missing or "not available"
field_numbers <- function(records, ...) {
  vapply(records, function(record) {
    value <- field(record, ...)
    if (is.numeric(value) && length(value) == 1) as.double(value) else NA_real_
  }, 0)
}

#' The time over which was measured
#'
#' @param records list of records
#' @return POSIXct vector: the first start and the last end; empty where none is known
measured_period <- function(records) {
  time <- function(key) {
    text <- as.character(unlist(lapply(records, `[[`, key)))
    as.POSIXct(sub("Z$", "", text), format = "%Y-%m-%dT%H:%M:%OS", tz = "UTC")
  }
  times <- c(time("started"), time("ended"))
  if (all(is.na(times))) as.POSIXct(character(), tz = "UTC") else range(times, na.rm = TRUE)
}

#' How many sockets the host has, as it was observed
#'
#' @param plan as from `read_plan`
#' @param tidy rows of the tidy tables
#' @return the fewest that a run saw; NA where none told
host_sockets <- function(plan, tidy) {
  logs <- unique(tidy$log)
  seen <- vapply(file.path(dirname(plan$results), sub("[.]log$", ".json", logs)), function(path) {
    sockets <- field(if (file.exists(path)) read_json(path), "observed", "host", "static", "sockets")
    if (is.numeric(sockets)) as.double(sockets) else NA_real_
  }, 0)
  if (all(is.na(seen))) NA_real_ else min(seen, na.rm = TRUE)
}

#' The records beside the logs of tidy tables
#'
#' @param plan as from `read_plan`
#' @param tidy rows of the tidy tables
#' @return list of records, each with its `path` as the logs' are given
#' @section Errors: a record is missing or broken
records_of <- function(plan, tidy) {
  lapply(sub("[.]log$", ".json", unique(tidy$log)), function(path) {
    record <- read_json(file.path(dirname(plan$results), path))
    record$path <- path
    record
  })
}

#' The systems that were brought up, each by the record of the first cell that it ran
#'
#' The cells of an environment in a block share one system, so that what it took to bring it up was measured
#' once and not for each cell.
#'
#' @param records list of records
#' @return list of records in the order of measurement, one for each system; records that tell of no system
#'   are left out
systems_of <- function(records) {
  id <- lapply(records, field, "system", "id")
  told <- vapply(id, is.character, NA)
  records <- records[told]
  turn <- order(field_numbers(records, "position", "actual"))
  records <- records[turn]
  records[!duplicated(unlist(id[told])[turn])]
}

#' The systems that were brought up by themselves, not together with equal ones
#'
#' @param records list of records
#' @return list of records, as from `systems_of`
single_systems <- function(records) {
  Filter(function(record) systems_at_once(record) == 1, systems_of(records))
}

#' How many equal systems ran a cell at the same time
#'
#' @param record of the cell
#' @return whole number; 1 where the record tells nothing of it
systems_at_once <- function(record) {
  count <- field(record, "system", "parts")
  if (is.null(count)) 1 else count
}

#' The systems that are virtual machines
#'
#' @param evidence as from `read_evidence`
#' @return list of records, as from `systems_of`
machine_systems <- function(evidence) {
  Filter(function(record) is.list(field(record, "system", "vm")), systems_of(evidence$records))
}

#' The lines of a log
#'
#' @param path the log
#' @return character vector
#' @section Errors: not a text file
log_lines <- function(path) {
  lines <- unlist(strsplit(read_text(path), "\n", fixed = TRUE, useBytes = TRUE))
  Encoding(lines) <- "UTF-8"
  lines
}

#' The first description of itself that a program printed
#'
#' @param path of the log
#' @return named list; with `huge_page_bytes`, the largest in the log, where it is printed; empty where there
#'   is none
read_head <- function(path) {
  lines <- log_lines(path)
  lines <- lines[startsWith(lines, "{")]
  named <- grep("\"tool\"", lines, fixed = TRUE, value = TRUE)
  head <- if (length(named) == 0) {
    list()
  } else {
    tryCatch(jsonlite::parse_json(named[[1]]), error = function(e) list())
  }
  pages <- regmatches(lines, regexpr("(?<=\"huge_page_bytes\": )[0-9]+", lines, perl = TRUE))
  if (length(pages) > 0) {
    head$huge_page_bytes <- max(as.double(pages))
  }
  head
}
