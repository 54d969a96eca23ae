# netperf: the times of round trips, by test.

# What netperf prints of a test, in this order.
netperf_keys <- c(
  "PROTOCOL", "REQUEST_SIZE", "RESPONSE_SIZE", "DEST_PORT", "ELAPSED_TIME", "LOCAL_SEND_CALLS",
  "LOCAL_RECV_CALLS", "THROUGHPUT", "THROUGHPUT_UNITS", "RT_LATENCY", "MIN_LATENCY", "MEAN_LATENCY",
  "STDDEV_LATENCY", "P50_LATENCY", "P90_LATENCY", "P99_LATENCY", "MAX_LATENCY", "LOCAL_CONG_CONTROL",
  "REMOTE_CONG_CONTROL"
)

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`test`)
#' @section Errors: broken_log
parse_netperf <- function(lines, parameters) {
  tests <- as.character(unlist(parameters$tests))
  placements <- as.character(unlist(parameters$placements))
  count <- length(tests) * length(placements)
  require_that(count > 0, "the record does not say which tests were asked for")
  points <- read_sweep(lines, c(rep(c("warmup", "warmed"), length(tests)), rep(c("point", "end"), count),
                                "done"))
  all_measured(Map(netperf_test, points, rep(tests, length(placements)),
                   rep(placements, each = length(tests)), MoreArgs = list(parameters = parameters)))
}

#' What one test measured
#'
#' The mean is the time over the number of transactions, as in the original.  The percentiles come from a
#' histogram of whole microseconds, and of coarser steps above 100.
#'
#' @param point as from `read_sweep`
#' @param test,placement what was asked for
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @section Errors: broken_log
netperf_test <- function(point, test, placement, parameters) {
  require_that(identical(point$head$point, test) && identical(point$head$placement, placement),
               "the test should be ", test, " with the ends ", placement)
  require_that(is.character(point$head$tool) && startsWith(point$head$tool, "Netperf "),
               "this is not a log of netperf")
  require_asked(point$head, parameters, c("request_bytes", "response_bytes", "seconds"))
  own <- if (placement == "together") "server_cpu" else "client_cpu"
  require_pinned(point$head, stats::setNames(parameters[own], "client_cpu"))
  found <- read_settings(point$lines, netperf_keys)
  require_that(identical(found$PROTOCOL, sub("_RR", "", test)) &&
                 identical(found$THROUGHPUT_UNITS, "Trans/s"),
               "netperf did not run ", test)
  require_that(number(found, "REQUEST_SIZE") == asked(parameters, "request_bytes") &&
                 number(found, "RESPONSE_SIZE") == asked(parameters, "response_bytes") &&
                 number(found, "DEST_PORT") == asked(parameters, "data_port"),
               "netperf did not use the sizes and the port that were asked for")
  check_netperf_rate(found, asked(parameters, "seconds"))
  check_netperf_latency(found)
  factors <- paste0("test=", test)
  if (placement == "together") {
    return(measured("latency_together", "us", number(found, "RT_LATENCY"), factors))
  }
  measured(c("latency", "p50", "p99"), "us",
           c(number(found, "RT_LATENCY"), number(found, "P50_LATENCY"), number(found, "P99_LATENCY")),
           factors)
}

#' Checks that the rate of a test is that of its transactions and its time
#'
#' @param found as from `read_settings`
#' @param seconds the time that was asked for
#' @section Errors: broken_log
check_netperf_rate <- function(found, seconds) {
  elapsed <- number(found, "ELAPSED_TIME")
  rate <- number(found, "THROUGHPUT")
  sent <- number(found, "LOCAL_SEND_CALLS")
  received <- number(found, "LOCAL_RECV_CALLS")
  require_lasted("the test took", elapsed, seconds)
  require_that(abs(sent - received) <= 1, plain(sent), " requests had ", plain(received), " responses")
  # The time is printed in hundredths of a second.
  require_close("THROUGHPUT", rate, received / elapsed, tolerance = 0.006 / elapsed + 2 / received)
}

#' Checks that the latencies of a test agree with one another and with its rate
#'
#' A lost datagram stops the exchange until the time is over: the rate falls, and the round trips that were
#' timed do not show it.
#'
#' @param found as from `read_settings`
#' @section Errors: broken_log
check_netperf_latency <- function(found) {
  mean <- number(found, "RT_LATENCY")
  rate <- number(found, "THROUGHPUT")
  timed <- number(found, "MEAN_LATENCY")
  spread <- c(number(found, "MIN_LATENCY"), number(found, "P50_LATENCY"), number(found, "P90_LATENCY"),
              number(found, "P99_LATENCY"), number(found, "MAX_LATENCY"))
  require_close("RT_LATENCY", mean, 1e6 / rate, tolerance = 6e-4 / mean + 6e-3 / rate)
  require_that(timed <= 1 + 1.05 * mean && mean <= 1 + 2 * timed,
               "the round trips that were timed took ", plain(timed),
               " us, and by their number ", plain(mean), " us: was a packet lost?")
  # A percentile is the lower end of its step in the histogram, which may lie below the minimum.
  require_that(!is.unsorted(spread * c(0.9, 1, 1, 1, 1.1)) && timed >= spread[1] && timed <= spread[5],
               "the latencies are not in order")
}
