# What a run repeats, one after the other.

#' How long each repetition within a run took
#'
#' A benchmark that repeats equal work prints an object for each: with `pass` or `trial`, and `seconds` or
#' `microseconds`.
#'
#' @param path of a log
#' @return seconds in the order of the run; none where the workload tells of no repetitions, or of several
#'   kinds
#' @section Errors: not a text file; broken_log
read_passes <- function(path) {
  objects <- Filter(function(one) any(c("pass", "trial") %in% names(one)), read_json_lines(log_lines(path)))
  # Repetitions of another size are other work.
  kinds <- unique(lapply(objects, function(one) one[["n"]]))
  seconds <- vapply(objects, function(one) {
    as.double(c(one[["seconds"]], one[["microseconds"]] * 1e-6, NA_real_)[[1]])
  }, 0)
  if (length(kinds) == 1 && !anyNA(seconds) && all(seconds > 0)) seconds else double()
}
