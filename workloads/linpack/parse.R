# Linpack: the rate over all solutions of each size.

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`n`, the order of the matrix)
#' @source count of operations: J. Dongarra, P. Luszczek, A. Petitet, The LINPACK benchmark: past, present and
#'   future, Concurrency and Computation 15, 2003
#' @section Errors: broken_log
parse_linpack <- function(lines, parameters) {
  log <- read_log(lines, header = "tool", trial = "trial", size = "trials")
  header <- require_one(log, "header")
  require_that(identical(header$tool, "strata-linpack"), "this is not a log of Linpack")
  require_asked(header, parameters, "threads")
  n <- numbers(log$size, "n")
  require_that(identical(n, as.double(unlist(parameters$sizes))),
               "the sizes should be ", paste(plain(unlist(parameters$sizes)), collapse = ", "),
               ", and the log holds ", paste(plain(n), collapse = ", "))
  trials <- split(log$trial, factor(numbers(log$trial, "n"), n))
  require_that(sum(lengths(trials)) == length(log$trial), "a trial is of no size that was asked for")
  rate <- mapply(linpack_rate, log$size, trials, MoreArgs = list(parameters = parameters))
  measured("gflops", "GFLOPS", rate, paste0("order=", plain(n)))
}

#' The rate over all solutions of one size
#'
#' @param size object that sums the size up
#' @param trials objects of its trials
#' @param parameters the record's parameters
#' @return GFLOPS
#' @section Errors: broken_log
linpack_rate <- function(size, trials, parameters) {
  n <- number(size, "n")
  operations <- 2 / 3 * n^3 + 2 * n^2
  count <- number(size, "trials")
  seconds <- numbers(trials, "seconds")
  residual <- numbers(trials, "residual", zero = TRUE)
  total <- number(size, "seconds")
  rate <- number(size, "gflops_of_all")
  require_counted(trials, "trial", count)
  require_that(isTRUE(size$verified), "the solution of size ", plain(n), " was not verified")
  require_that(all(residual < number(size, "limit")), "a residual is above its limit")
  require_close("worst_residual", number(size, "worst_residual", zero = TRUE), max(residual), tolerance = 0)
  require_rounded("gflops", numbers(trials, "gflops"), 1e-9 * operations / seconds)
  require_close("seconds of all trials", total, sum(seconds), tolerance = 2 * OF_NINE_DIGITS)
  require_rounded("gflops_of_all", rate, 1e-9 * operations * count / total)
  require_that(count >= asked(parameters, "min_trials") &&
                 total >= asked(parameters, "min_seconds") * (1 - 1e-8),
               "size ", plain(n), " ran ", plain(count), " trials in ", plain(total),
               " s, less than was asked for")
  rate
}
