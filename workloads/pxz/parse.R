# Parallel xz: text compressed in a second, over all passes.

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @section Errors: broken_log
parse_pxz <- function(lines, parameters) {
  log <- read_log(lines, corpus = "corpus", warmup = "round_trip", header = "tool", pass = "pass",
                  total = "passes")
  corpus <- require_one(log, "corpus")
  header <- require_one(log, "header")
  total <- require_one(log, "total")
  require_that(is.character(header$tool) && startsWith(header$tool, "xz "), "this is not a log of xz")
  require_asked(header, parameters,
                c("threads", "level", if (!is.null(parameters$block_bytes)) "block_bytes"))
  require_that(isTRUE(require_one(log, "warmup")$round_trip), "what was compressed does not come back")
  if (is.null(parameters$corpus)) {
    require_that(identical(corpus$corpus, "gcide"), "the corpus is not the one that was asked for")
    require_asked(corpus, parameters, "bytes")
  } else {
    require_that(!identical(corpus$corpus, "gcide"), "the corpus is not the one that was asked for")
  }
  bytes <- number(header, "bytes")
  passes <- number(total, "passes")
  microseconds <- number(total, "microseconds_of_all")
  bytes_of_all <- number(total, "bytes_of_all")
  require_close("bytes", bytes, number(corpus, "bytes"), tolerance = 0)
  require_counted(log$pass, "pass", passes)
  require_close("bytes_of_all", bytes_of_all, bytes * passes, tolerance = 0)
  require_close("microseconds_of_all", microseconds, sum(numbers(log$pass, "microseconds")), tolerance = 0)
  require_that(microseconds >= trunc(asked(parameters, "min_seconds") * 1e6),
               "the passes took ", plain(microseconds), " microseconds, less than was asked for")
  measured("throughput", "MB/s", bytes_of_all / microseconds)
}
