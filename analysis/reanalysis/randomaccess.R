# RandomAccess (GUPS): blocks appended to one log, two sockets first, then one.

#' Updates per second in billions below which a run used two sockets: 128 updates at a time are shared by the threads,
#' so that the machine's two sockets are about 3.6 times slower (0.012) than one (0.045)
GUPS_OF_TWO_SOCKETS <- 0.025

#' Reads a log of RandomAccess
#'
#' Only native runs name their processors.  For the others the rate tells the sockets, and where it tells another
#' number than the block's header, or where a block of two sockets follows one of a single socket, the block is not used.
#' The file's name is not asked: the logs named after a single socket are copies of the runs on two.
#'
#' @param lines of the log
#' @return as from `imported`; factor `sockets`
read_randomaccess <- function(lines) {
  starts <- grep("^Running gups", lines)
  starts <- c(if (length(starts) == 0) grep("^Main table size", lines), starts)
  read <- lapply(blocks_of(lines, starts), function(at) gups_block(lines, at))
  values <- Filter(Negate(is.null), lapply(read, `[[`, "value"))
  single <- vapply(values, function(value) value$factors == "sockets=1", NA)
  late <- !single & cumsum(single) > 0
  late_problems <- lapply(unname(values[late]), function(value) {
    problems(value$line, "its rate is that of two sockets, and it comes after runs on one: its sockets can't be told")
  })
  values <- values[!late]
  block_values(values, c(lapply(read, `[[`, "problem"), late_problems,
                     if (length(starts) == 0) list(problems(1, "no run of RandomAccess in this file"))))
}

#' Reads one run of RandomAccess
#'
#' @param lines of the log
#' @param at numbers of the block's lines
#' @return list: `value`, one row, or `problem`
gups_block <- function(lines, at) {
  block <- lines[at]
  rate_line <- grep("Billion\\(10\\^9\\) Updates +per second", block)
  unusable <- function(reason, line = at[[1]]) list(problem = problems(line, reason))
  if (length(rate_line) != 1) {
    return(unusable(if (length(rate_line) == 0) "a run that ends without a rate" else "a run with several rates"))
  }
  rate <- suppressWarnings(as.numeric(sub(" .*", "", trimws(block[[rate_line]]))))
  if (!isTRUE(is.finite(rate) && rate > 0)) {
    return(unusable("the rate is not a positive number", at[[rate_line]]))
  }
  if (!any(grepl("^Found [0-9]+ errors in [0-9]+ locations \\(passed\\)", block))) {
    return(unusable("a run whose verification did not pass or is missing"))
  }
  updates <- first_number(block, "^Number of updates = ([0-9]+)")
  seconds <- first_number(block, "^Real time used = ([0-9.]+)")
  if (!is.na(updates) && !is.na(seconds) && abs(updates / seconds / 1e9 / rate - 1) > 1e-4) {
    return(unusable("the rate contradicts the updates and the time", at[[rate_line]]))
  }
  by_rate <- if (rate < GUPS_OF_TWO_SOCKETS) 2L else 1L
  named <- sockets_named(block)
  if (!is.na(named) && named != by_rate) {
    return(unusable("the processors it names contradict its rate", at[[rate_line]]))
  }
  value <- readings("gups", "GUPS", rate, paste0("sockets=", by_rate), NA, at[[rate_line]])
  list(value = cbind(value, key = block_key(block, "^(CPU time used|Real time used)|Updates +per second")))
}
