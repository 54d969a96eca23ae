# The records of cells: their fields, which cells failed, and what they say of the measured systems.

#' The files of cells
#'
#' @param plan as from `read_plan`
#' @param kind of file: "log", "record" or "failed"
#' @param cells data frame with environment, workload and repetition
#' @return paths
cell_path <- function(plan, kind, cells) {
  result_path(plan, kind, environment = cells$environment, workload = cells$workload,
              repetition = cells$repetition)
}

#' What is recorded of cells that failed
#'
#' @param plan as from `read_plan`
#' @param cells data frame with environment, workload and repetition
#' @return list with an element for each cell: the record, NULL where there is none
failed_records <- function(plan, cells) {
  lapply(cell_path(plan, "failed", cells), function(path) if (file.exists(path)) read_json(path))
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

#' Moments that records tell
#'
#' @param records list of records
#' @param key "started" or "ended"
#' @return POSIXct vector; NA where it is not told
moments <- function(records, key) {
  text <- vapply(records, function(record) as.character(c(record[[key]], NA)[[1]]), "")
  as.POSIXct(sub("Z$", "", text), format = "%Y-%m-%dT%H:%M:%OS", tz = "UTC")
}

#' The time over which was measured
#'
#' @param records list of records
#' @return POSIXct vector: the first start and the last end; empty where none is known
measured_period <- function(records) {
  times <- c(moments(records, "started"), moments(records, "ended"))
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
#' Several cells can share one system, so that what it took to bring it up was measured once and not for each
#' cell.
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
