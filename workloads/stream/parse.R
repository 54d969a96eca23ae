# STREAM: the best rate of each of the four kernels.

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @source bytes of an iteration: J. D. McCalpin, Memory bandwidth and machine balance in current high
#'   performance computers, IEEE TCCA Newsletter, 1995
#' @section Errors: broken_log
parse_stream <- function(lines, parameters) {
  bytes <- c(copy = 16, scale = 16, add = 24, triad = 24)
  log <- read_log(lines, header = "tool", kernel = "kernel", check = "verified")
  header <- require_one(log, "header")
  check <- require_one(log, "check")
  require_that(identical(header$tool, "strata-stream"), "this is not a log of STREAM")
  require_asked(header, parameters, c("threads", "elements", "trials"))
  require_close("array_bytes", number(header, "array_bytes"), 8 * number(header, "elements"), tolerance = 0)
  require_that(isTRUE(check$verified), "the result was not verified")
  require_that(number(check, "error", zero = TRUE) <= number(check, "limit"), "the error is above its limit")
  require_that(identical(lapply(log$kernel, `[[`, "kernel"), as.list(names(bytes))),
               "the log should hold each of the kernels ", paste(names(bytes), collapse = ", "), " once")
  rate <- numbers(log$kernel, "gbps")
  best <- numbers(log$kernel, "best_seconds")
  middle <- numbers(log$kernel, "mean_seconds")
  rounded <- 1 + 1e-8
  require_that(all(best <= middle * rounded & middle <= numbers(log$kernel, "worst_seconds") * rounded),
               "best, mean and worst time are not in order")
  require_rounded("gbps", rate, 1e-9 * unname(bytes) * number(header, "elements") / best)
  measured(names(bytes), "GB/s", rate)
}
