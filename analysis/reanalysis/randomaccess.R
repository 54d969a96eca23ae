# RandomAccess (GUPS): blocks appended to one log, two sockets first, then one.

#' Updates per second in billions below which a run used two sockets: 128 updates at a time are shared by
#' the threads, so that the machine's two sockets are about 3.6 times slower (0.012) than one (0.045)
GUPS_OF_TWO_SOCKETS <- 0.025

#' Reads a log of RandomAccess
#'
#' Only native runs name their processors; for the others the rate tells the sockets.  Where both are there
#' and contradict each other, the run is not used.  The file's name is not asked: the logs that are named
#' after a single socket are copies of the runs on two.
#'
#' @param lines of the log
#' @return as from `imported`; factor `sockets`
read_randomaccess <- function(lines) {
  starts <- grep("^Running gups", lines)
  starts <- if (length(starts) == 0) grep("^Main table size", lines) else starts
  read <- lapply(blocks_of(lines, starts), function(at) gups_block(lines, at))
  block_values(Filter(Negate(is.null), lapply(read, `[[`, "value")), c(
    lapply(read, `[[`, "problem"),
    if (length(starts) == 0) list(problems(1, "no run of RandomAccess in this file"))
  ))
}

#' Reads one run of RandomAccess
#'
#' @param lines of the log
#' @param at numbers of the block's lines
#' @return list: `value`, one row, or `problem`
gups_block <- function(lines, at) {
  block <- lines[at]
  place <- grep("Billion\\(10\\^9\\) Updates +per second", block)
  if (length(place) != 1) {
    reason <- if (length(place) == 0) "a run that ends without a rate" else "a run with several rates"
    return(list(problem = problems(at[[1]], reason)))
  }
  rate <- suppressWarnings(as.numeric(sub(" .*", "", trimws(block[[place]]))))
  sockets <- if (isTRUE(rate < GUPS_OF_TWO_SOCKETS)) 2L else 1L
  reason <- gups_fault(block, rate, sockets)
  if (!is.null(reason)) {
    return(list(problem = problems(at[[place]], reason)))
  }
  value <- readings("gups", "GUPS", rate, paste0("sockets=", sockets), NA, at[[place]])
  list(value = cbind(value, key = block_key(block, "^(CPU time used|Real time used)|Updates +per second")))
}

#' What is wrong with a run of RandomAccess
#'
#' @param block its lines
#' @param rate that it printed
#' @param sockets that the rate tells
#' @return text; NULL where nothing is
gups_fault <- function(block, rate, sockets) {
  if (!isTRUE(is.finite(rate) && rate > 0)) {
    return("the rate is not a positive number")
  }
  if (!any(grepl("^Found [0-9]+ errors in [0-9]+ locations \\(passed\\)", block))) {
    return("a run whose verification did not pass or is missing")
  }
  expected <- first_number(block, "^Number of updates = ([0-9]+)") /
    first_number(block, "^Real time used = ([0-9.]+)") / 1e9
  if (!is.na(expected) && abs(expected / rate - 1) > 1e-4) {
    return("the rate contradicts the updates and the time")
  }
  if (!sockets_named(block) %in% c(NA, sockets)) {
    return("the processors it names contradict its rate")
  }
  NULL
}
