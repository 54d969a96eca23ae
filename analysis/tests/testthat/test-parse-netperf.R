asked_netperf <- list(tests = list("TCP_RR", "UDP_RR"), request_bytes = 100, response_bytes = 200,
                      seconds = 1, warmup_seconds = 1, port = 22865, data_port = 22866,
                      server_cpu = 0, client_cpu = 1)

test_that("round trips are read", {
  values <- parser_of("netperf")(fixture("netperf"), asked_netperf)
  expect_equal(values, data.frame(
    metric = rep(c("latency", "p50", "p99"), 2), unit = "us", value = c(76.249, 50, 690, 199.212, 40, 3935),
    factors = rep(c("test=TCP_RR", "test=UDP_RR"), each = 3)
  ))
  expect_declared("netperf", values)
})

test_that("a log of netperf is read whole or not at all", {
  expect_all_or_nothing("netperf", fixture("netperf"), asked_netperf)
})

test_that("one test can be asked for by itself", {
  lines <- fixture("netperf")
  warmups <- c(grep("^\\{\"warmup\": \"UDP_RR\"", lines), grep("^\\{\"warmed\": \"UDP_RR\"", lines))
  points <- c(grep("^\\{\"point\": \"UDP_RR\"", lines), grep("^\\{\"end\": \"UDP_RR\"", lines))
  lines <- lines[-c(warmups[1]:warmups[2], points[1]:points[2])]
  values <- parser_of("netperf")(lines, updated(asked_netperf, tests = list("TCP_RR")))
  expect_equal(values$factors, rep("test=TCP_RR", 3))
  expect_refused("netperf", lines, asked_netperf, "object 3 of the log should be warmup, and is point")
  expect_refused("netperf", lines, updated(asked_netperf, tests = list("UDP_RR")), "test should be UDP_RR")
})

test_that("what netperf was not asked for is refused", {
  lines <- fixture("netperf")
  for (key in c("request_bytes", "response_bytes", "data_port", "client_cpu")) {
    other <- asked_netperf
    other[[key]] <- other[[key]] + 1
    expect_refused("netperf", lines, other)
    expect_refused("netperf", lines, asked_netperf[setdiff(names(asked_netperf), key)])
  }
  expect_refused("netperf", lines, updated(asked_netperf, seconds = 2), "seconds should be 2")
  expect_refused("netperf", lines, updated(asked_netperf, tests = list("UDP_RR", "TCP_RR")),
                 "test should be UDP_RR")
  expect_refused("netperf", lines, updated(asked_netperf, tests = list()), "does not say which tests")
})

test_that("numbers of netperf that do not go together are refused", {
  lines <- fixture("netperf")
  of_tcp <- grep("^\\{\"point\": \"TCP_RR\"", lines)
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
  expect_refused("netperf", change("P99_LATENCY", 20), asked_netperf, "not in order")
  expect_refused("netperf", change("MIN_LATENCY", 10), asked_netperf, "not in order")
  expect_refused("netperf", change("MAX_LATENCY", 0.01), asked_netperf, "not in order")
})

test_that("a lost datagram is noticed", {
  # The exchange stops in the middle of the second: half of the transactions, each timed as before.
  lines <- fixture("netperf")
  at <- function(key) utils::tail(grep(paste0("^", key, "="), lines), 1)
  lines[at("LOCAL_SEND_CALLS")] <- "LOCAL_SEND_CALLS=2511"
  lines[at("LOCAL_RECV_CALLS")] <- "LOCAL_RECV_CALLS=2510"
  lines[at("THROUGHPUT")] <- "THROUGHPUT=2509.90"
  lines[at("RT_LATENCY")] <- "RT_LATENCY=398.422"
  expect_refused("netperf", lines, asked_netperf, "was a packet lost")
})
