# STREAM of the HPC Challenge suite: one block a run, the best of ten passes for each kernel.

#' Reads a log of STREAM
#'
#' The threads that a run asked for tell its sockets: 32 are both, 16 are one.
#'
#' @param lines of the log
#' @return as from `imported`; metrics copy, scale, add, triad in GB/s (10^9 bytes); factor `sockets`
read_stream <- function(lines) {
  starts <- grep("^Running stream", lines)
  starts <- if (length(starts) == 0) grep("^This system uses [0-9]+ bytes per", lines) else starts
  read <- lapply(blocks_of(lines, starts), function(at) stream_block(lines, at))
  block_values(Filter(Negate(is.null), lapply(read, `[[`, "value")), c(
    lapply(read, `[[`, "problem"),
    if (length(starts) == 0) list(problems(1, "no run of STREAM in this file"))
  ))
}

#' Reads one run of STREAM
#'
#' @param lines of the log
#' @param at numbers of the block's lines
#' @return list: `value`, four rows, or `problem`
stream_block <- function(lines, at) {
  block <- lines[at]
  unusable <- function(reason) list(problem = problems(at[[1]], reason))
  kernels <- c("Copy", "Scale", "Add", "Triad")
  place <- vapply(kernels, function(kernel) {
    found <- grep(paste0("^", kernel, ": +[0-9]"), block)
    if (length(found) == 1) found else NA_integer_
  }, 0L)
  if (anyNA(place)) {
    return(unusable(paste("a run that does not hold one rate for each kernel; without:",
                          paste(kernels[is.na(place)], collapse = ", "))))
  }
  rates <- suppressWarnings(as.numeric(sub("^[A-Za-z]+: +([^ ]+).*$", "\\1", block[place])))
  unit <- sub("^.*Rate \\(([^)]*)\\).*$", "\\1", grep("Rate \\(", block, value = TRUE))
  threads <- first_number(block, "^Number of Threads requested = ([0-9]+)")
  sockets <- unname(c("32" = 2L, "16" = 1L)[as.character(threads)])
  fault <- stream_fault(block, rates, unit, sockets)
  if (!is.null(fault)) {
    return(unusable(fault))
  }
  if (unit == "MB/s") rates <- rates / 1000
  value <- readings(tolower(kernels), "GB/s", rates, paste0("sockets=", sockets), NA, at[place])
  list(value = cbind(value, key = block_key(block, "^(Copy|Scale|Add|Triad):")))
}

#' What is wrong with a run of STREAM
#'
#' @param block its lines
#' @param rates that it printed
#' @param unit texts: that of the rates, as often as it is named
#' @param sockets that its threads tell, or NA
#' @return text; NULL where nothing is
stream_fault <- function(block, rates, unit, sockets) {
  if (!all(is.finite(rates) & rates > 0)) {
    return("a rate that is not a positive number")
  }
  if (!any(grepl("^Solution Validates", block))) {
    return("a run whose solution did not validate")
  }
  if (length(unit) != 1 || !unit %in% c("GB/s", "MB/s")) {
    return("the unit of the rates is not told")
  }
  if (is.na(sockets) || !sockets_named(block) %in% c(NA, sockets)) {
    return("its sockets can't be told from its threads, or contradict the processors it names")
  }
  NULL
}
