asked_netperf <- list(tests = list("TCP_RR", "UDP_RR"), placements = list("apart", "together"),
                      request_bytes = 100, response_bytes = 200, seconds = 1, warmup_seconds = 1,
                      port = 22865, data_port = 22866, server_cpu = 0, client_cpu = 1)

#' A log without the sections that open with a key and have a text in their head
without <- function(lines, open, close, text) {
  from <- grep(paste0("^\\{\"", open, "\": .*", text), lines)
  ends <- grep(paste0("^\\{\"", close, "\": "), lines)
  lines[-unlist(lapply(from, function(at) at:min(ends[ends > at])))]
}

test_that("round trips are read", {
  values <- parser_of("netperf")(fixture("netperf"), asked_netperf)
  expect_equal(values, data.frame(
    metric = c(rep(c("latency", "p50", "p99"), 2), rep("latency_together", 2)), unit = "us",
    value = c(62.611, 62, 91, 58.237, 58, 84, 6.209, 5.317),
    factors = c(rep(c("test=TCP_RR", "test=UDP_RR"), each = 3), "test=TCP_RR", "test=UDP_RR")
  ))
  expect_declared("netperf", values)
})

test_that("a log of netperf is read whole or not at all", {
  expect_all_or_nothing("netperf", fixture("netperf"), asked_netperf)
})

test_that("one test or one placement can be asked for by itself", {
  lines <- fixture("netperf")
  apart <- without(lines, "point", "end", "together")
  values <- parser_of("netperf")(apart, updated(asked_netperf, placements = list("apart")))
  expect_equal(values$metric, rep(c("latency", "p50", "p99"), 2))
  expect_refused("netperf", apart, asked_netperf, "object 9 of the log should be point, and is done")
  tcp <- without(without(lines, "warmup", "warmed", "UDP_RR"), "point", "end", "UDP_RR")
  values <- parser_of("netperf")(tcp, updated(asked_netperf, tests = list("TCP_RR")))
  expect_equal(values$factors, rep("test=TCP_RR", 4))
  expect_refused("netperf", tcp, asked_netperf, "object 3 of the log should be warmup, and is point")
  expect_refused("netperf", tcp, updated(asked_netperf, tests = list("UDP_RR")), "test should be UDP_RR")
})

test_that("ends that are not pinned are read", {
  lines <- sub("\"cpu\": 1", "\"cpu\": null", without(fixture("netperf"), "point", "end", "together"))
  free <- updated(asked_netperf, placements = list("apart"))
  expect_refused("netperf", lines, free, "processor 1")
  free["client_cpu"] <- list(NULL)
  expect_equal(nrow(parser_of("netperf")(lines, free)), 6)
})

test_that("what netperf was not asked for is refused", {
  lines <- fixture("netperf")
  for (key in c("request_bytes", "response_bytes", "data_port", "client_cpu", "server_cpu")) {
    other <- asked_netperf
    other[[key]] <- other[[key]] + 1
    expect_refused("netperf", lines, other)
    expect_refused("netperf", lines, asked_netperf[setdiff(names(asked_netperf), key)])
  }
  differs <- function(reason, ...) expect_refused("netperf", lines, updated(asked_netperf, ...), reason)
  differs("seconds should be 2", seconds = 2)
  differs("test should be UDP_RR", tests = list("UDP_RR", "TCP_RR"))
  differs("with the ends together", placements = list("together", "apart"))
  differs("does not say which tests", tests = list())
  differs("does not say which tests", placements = list())
})

test_that("numbers of netperf that do not go together are refused", {
  lines <- fixture("netperf")
  of_tcp <- grep("^\\{\"point\": \"TCP_RR\"", lines)[1]
  change <- function(key, by) {
    at <- grep(paste0("^", key, "="), lines)
    at <- at[at > of_tcp][1]
    lines[at] <- paste0(key, "=", if (is.numeric(by)) as.numeric(sub(".*=", "", lines[at])) * by else by)
    lines
  }
  for (key in c("REQUEST_SIZE", "RESPONSE_SIZE", "DEST_PORT", "ELAPSED_TIME", "LOCAL_SEND_CALLS",
                "LOCAL_RECV_CALLS", "THROUGHPUT", "RT_LATENCY")) {
    for (by in list(1.01, 0.99, 0, -1, "nan", "")) {
      expect_refused("netperf", change(key, by), asked_netperf)
    }
  }
  expect_refused("netperf", change("THROUGHPUT_UNITS", "10^6bits/s"), asked_netperf, "did not run TCP_RR")
  expect_refused("netperf", change("PROTOCOL", "UDP"), asked_netperf, "did not run TCP_RR")
  expect_refused("netperf", change("P50_LATENCY", 20), asked_netperf, "not in order")
  expect_refused("netperf", change("P99_LATENCY", 50), asked_netperf, "not in order")
  expect_refused("netperf", change("MIN_LATENCY", 10), asked_netperf, "not in order")
  expect_refused("netperf", change("MAX_LATENCY", 0.01), asked_netperf, "not in order")
})

test_that("a lost datagram is noticed", {
  # The exchange stops early in the second: a quarter of the transactions, each timed as before.
  lines <- fixture("netperf")
  at <- function(key) grep(paste0("^", key, "="), lines)[4]
  lines[at("LOCAL_SEND_CALLS")] <- "LOCAL_SEND_CALLS=4294"
  lines[at("LOCAL_RECV_CALLS")] <- "LOCAL_RECV_CALLS=4293"
  lines[at("THROUGHPUT")] <- "THROUGHPUT=4292.84"
  lines[at("RT_LATENCY")] <- "RT_LATENCY=232.946"
  expect_refused("netperf", lines, asked_netperf, "was a packet lost")
})
