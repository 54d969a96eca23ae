# Redis: requests per second and their latency, by command, connections and pipelining.

# redis-benchmark's table: its header, and the commands in the order in which it runs them.
redis_columns <- c("test", "rps", "avg_latency_ms", "min_latency_ms", "p50_latency_ms", "p95_latency_ms",
                   "p99_latency_ms", "max_latency_ms")
redis_order <- c("set", "get", "lpush", "lpop", "sadd")

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`test`, `connections`; `pipeline` where it is not 1)
#' @section Errors: broken_log
parse_redis <- function(lines, parameters) {
  connections <- as.double(unlist(parameters$connections))
  pipelines <- as.double(unlist(parameters$pipelines))
  count <- length(connections) * length(pipelines)
  require_that(count > 0, "the record does not say which points were asked for")
  points <- read_sweep(lines, c("warmup", "warmed", rep(c("point", "end"), count), "done"))
  all_measured(Map(redis_point, points, rep(connections, each = length(pipelines)),
                   rep(pipelines, length(connections)), MoreArgs = list(parameters = parameters)))
}

#' What was measured at one point
#'
#' @param point as from `read_sweep`
#' @param connections,pipeline what was asked for
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @section Errors: broken_log
redis_point <- function(point, connections, pipeline, parameters) {
  head <- point$head
  require_that(is.character(head$client) && startsWith(head$client, "redis-benchmark "),
               "this is not a log of redis-benchmark")
  require_asked(head, list(connections = connections, pipeline = pipeline), c("connections", "pipeline"))
  require_asked(head, parameters, c("data_bytes", "keyspace", "requests"))
  require_pinned(head, parameters)
  asked_tests <- as.character(unlist(parameters$tests))
  require_that(identical(head$tests, paste(asked_tests, collapse = ",")),
               "the commands are not those that were asked for")
  tests <- redis_order[redis_order %in% asked_tests]
  table <- redis_table(point$lines)
  require_that(identical(table$test, toupper(tests)), "there should be one row for each of ",
               paste(tests, collapse = ", "))
  # A connection sends its requests by the pipeline, the last ones too.
  requests <- ceiling(asked(parameters, "requests") / pipeline) * pipeline
  check_redis_server(point$lines, tests, requests)
  check_redis_table(table, requests, connections * pipeline)
  factors <- paste0("test=", table$test, ";connections=", plain(connections),
                    if (pipeline != 1) paste0(";pipeline=", plain(pipeline)))
  all_measured(list(measured("throughput", "requests/s", table$rps, factors),
                    measured("latency", "ms", table$avg_latency_ms, factors),
                    measured("p99", "ms", table$p99_latency_ms, factors)))
}

#' The table that redis-benchmark prints
#'
#' @param lines the lines of a point
#' @return list of the columns of `redis_columns`
#' @section Errors: broken_log, where there is none or a row is not complete
redis_table <- function(lines) {
  lines <- grep("^\"", lines, value = TRUE, useBytes = TRUE)
  header <- paste0("\"", redis_columns, "\"", collapse = ",")
  require_that(length(lines) > 1 && identical(lines[[1]], header),
               "redis-benchmark's table is not the one that is known")
  complete <- "^\"[A-Z]+\"(,\"[0-9]+[.][0-9]+\"){7}$"
  require_that(all(grepl(complete, lines[-1], useBytes = TRUE)),
               "a row of redis-benchmark's table is not complete")
  cells <- unlist(strsplit(gsub("\"", "", lines[-1], fixed = TRUE), ",", fixed = TRUE))
  table <- split(cells, factor(redis_columns, redis_columns))
  c(table["test"], lapply(table[-1], as.double))
}

#' Checks that the server did all that was asked for, and without errors
#'
#' @param lines the lines of a point
#' @param tests the commands
#' @param requests how many of each there should be
#' @section Errors: broken_log
check_redis_server <- function(lines, tests, requests) {
  count <- function(pattern, name) {
    found <- grep(pattern, lines, value = TRUE, useBytes = TRUE)
    require_that(length(found) == 1, "the server should tell once of ", name)
    as.double(sub(pattern, "\\1", found, useBytes = TRUE))
  }
  require_that(sum(startsWith(lines, "cmdstat_")) == length(tests),
               "the server should tell of ", paste(tests, collapse = ", "), " and nothing else")
  for (test in tests) {
    calls <- count(paste0("^cmdstat_", test, ":calls=([0-9]+),.*,rejected_calls=0,failed_calls=0$"), test)
    require_that(calls == requests, "the server should have counted ", plain(requests), " of ", test,
                 ", and counted ", plain(calls))
  }
  looked_up <- count("^keyspace_hits:([0-9]+)$", "hits") + count("^keyspace_misses:([0-9]+)$", "misses")
  require_that(looked_up == requests * ("get" %in% tests), "the server looked up ", plain(looked_up), " keys")
}

#' Checks that rates and latencies agree with one another and with what was asked
#'
#' @param table as from `redis_table`
#' @param requests how many of each command there were
#' @param under_way how many may be under way at once
#' @section Errors: broken_log
check_redis_table <- function(table, requests, under_way) {
  require_that(all(table$rps > 0, table$avg_latency_ms > 0, table$p99_latency_ms > 0),
               "a rate or a latency is zero")
  # redis-benchmark takes the time in whole milliseconds, and prints a rate of single precision.
  milliseconds <- requests * 1000 / table$rps
  rounding <- milliseconds * (0.006 / table$rps + 2e-7)
  require_that(all(abs(milliseconds - round(milliseconds)) <= rounding + 1e-6),
               "a rate is not that of ", plain(requests), " requests in a time that redis-benchmark can tell")
  # Latencies are kept to three digits.
  require_that(all(table$min_latency_ms <= table$p50_latency_ms,
                   table$p50_latency_ms <= table$p95_latency_ms,
                   table$p95_latency_ms <= table$p99_latency_ms,
                   table$p99_latency_ms <= table$max_latency_ms * 1.001 + 0.001,
                   table$min_latency_ms <= table$avg_latency_ms + 0.001,
                   table$avg_latency_ms <= table$max_latency_ms + 0.001),
               "the latencies are not in order")
  # By Little's law the mean number under way is rate times latency.
  mean_under_way <- table$rps * table$avg_latency_ms / 1000
  most <- under_way * (1.02 + 1.5 / milliseconds) + table$rps * 5e-7
  require_that(all(mean_under_way <= most & mean_under_way >= 0.1 * under_way),
               "rate and latency do not go together with ", plain(under_way), " requests under way")
}
