# RandomAccess: the rate of updates over all passes.

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @section Errors: broken_log
parse_randomaccess <- function(lines, parameters) {
  log <- read_log(lines, header = "tool", pass = "pass", total = "passes")
  header <- require_one(log, "header")
  total <- require_one(log, "total")
  require_that(identical(header$tool, "strata-randomaccess"), "this is not a log of RandomAccess")
  require_asked(header, parameters, c("threads", "log2"))
  words <- 2^number(header, "log2")
  updates <- number(header, "updates_per_pass")
  require_close("table_bytes", number(header, "table_bytes"), 8 * words, tolerance = 0)
  require_close("updates_per_pass", updates, words * asked(parameters, "updates_per_word"), tolerance = 0)
  passes <- number(total, "passes")
  seconds <- numbers(log$pass, "seconds")
  all_seconds <- number(total, "seconds")
  rate <- number(total, "gups_of_all")
  require_counted(log$pass, "pass", passes)
  require_that(isTRUE(total$verified), "the table was not verified")
  require_that(number(total, "wrong_share", zero = TRUE) <= number(total, "limit"),
               "too many words are wrong")
  require_rounded("gups", numbers(log$pass, "gups"), 1e-9 * updates / seconds)
  require_close("seconds of all passes", all_seconds, sum(seconds), tolerance = 2 * OF_NINE_DIGITS)
  require_rounded("gups_of_all", rate, 1e-9 * updates * passes / all_seconds)
  require_that(all_seconds >= asked(parameters, "min_seconds") * (1 - 1e-8),
               "the passes took ", plain(all_seconds), " s, less than was asked for")
  measured("gups", "GUPS", rate)
}
