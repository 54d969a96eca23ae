asked_nuttcp <- list(directions = list("transmit", "receive"), streams = 1, seconds = 1, warmup_seconds = 0.5,
                     rate_mbit = 500, port = 25000, data_ports = list(25101), paced_ports = list(25201),
                     netserver_port = 25865, netserver_data_port = 25866, server_cpu = 0, client_cpu = 1)

#' A log with the objects of `observe: cpu` replaced: a function from their number and a field to its value
observed_anew <- function(lines, key, values) {
  at <- grep("^\\{\"observed\":", lines)
  for (i in seq_along(at)) {
    lines[at[i]] <- sub(paste0("\"", key, "\": [^,}]*"), paste0("\"", key, "\": ", values[i]), lines[at[i]])
  }
  lines
}

test_that("transfers and their cost are read", {
  values <- parser_of("nuttcp")(fixture("nuttcp"), asked_nuttcp)
  megabyte <- 1048576
  expect_equal(values, data.frame(
    metric = rep(c("throughput", "cpu_seconds_per_gb", "stream"), 2),
    unit = rep(c("Gbit/s", "s/GB", "Gbit/s"), 2),
    value = c(5.010891, 2.28 / (62.0517 * megabyte) * 1e9, 5.74836,
              7.5129494, 0.74 / (61.0684 * megabyte) * 1e9, 8.44319),
    factors = rep(c("direction=transmit", "direction=receive"), each = 3)
  ))
  expect_equal(values$value[c(2, 5)], c(35.0414, 11.5562), tolerance = 1e-5)
  expect_declared("nuttcp", values)
})

test_that("cycles are read where the host counts them", {
  lines <- observed_anew(fixture("nuttcp"), "cycles", c("1000", "200001000", "7000000000", "7100000000"))
  values <- parser_of("nuttcp")(lines, asked_nuttcp)
  cycles <- values[values$metric == "cycles_per_byte", ]
  expect_equal(cycles$value, c(2e8 / (62.0517 * 2^20), 1e8 / (61.0684 * 2^20)))
  expect_equal(cycles$factors, c("direction=transmit", "direction=receive"))
  expect_equal(nrow(values), 8)
  expect_declared("nuttcp", values)
})

test_that("a cost of less than the fixed rate is marked", {
  values <- parser_of("nuttcp")(fixture("nuttcp", "slow"), asked_nuttcp)
  cost <- values$metric == "cpu_seconds_per_gb"
  expect_equal(values$factors[cost], paste0("direction=", c("transmit", "receive"), ";rate=not-reached"))
  expect_equal(values$value[cost][1], (2076.2 - 2073.91) / (45.0509 * 2^20) * 1e9)
  expect_false(any(grepl("rate", values$factors[!cost])))
})

test_that("more than one connection is a factor of what nuttcp measured", {
  lines <- gsub("\"streams\": 1", "\"streams\": 4", fixture("nuttcp"))
  values <- parser_of("nuttcp")(lines, updated(asked_nuttcp, streams = 4))
  expect_equal(values$factors[1:3], c(rep("direction=transmit;connections=4", 2), "direction=transmit"))
})

test_that("a log of nuttcp is read whole or not at all", {
  expect_all_or_nothing("nuttcp", fixture("nuttcp"), asked_nuttcp)
})

test_that("what nuttcp was not asked for is refused", {
  lines <- fixture("nuttcp")
  differs <- function(reason, ...) expect_refused("nuttcp", lines, updated(asked_nuttcp, ...), reason)
  differs("object 3", directions = list("transmit"))
  differs("throughput in direction receive", directions = list("receive", "transmit"))
  differs("does not say which directions", directions = list())
  differs("streams should be 2", streams = 2)
  differs("seconds should be 10", seconds = 10)
  differs("rate is not the one", rate_mbit = 400)
  differs("port that was asked for", netserver_data_port = 25867)
  differs("processor 0", client_cpu = 0)
  expect_refused("nuttcp", lines, list())
  expect_refused("nuttcp", fixture("netperf"), asked_nuttcp)
})

test_that("results of nuttcp that do not go together are refused", {
  lines <- fixture("nuttcp")
  paced <- grep("^megabytes=62.0517", lines)
  refused <- function(from, to, reason, at = paced) {
    expect_refused("nuttcp", changed(lines, at, from, to), asked_nuttcp, reason)
  }
  refused("megabytes=62.0517", "megabytes=62.6722", "rate_Mbps")
  refused("rate_Mbps=499.9803", "rate_Mbps=504.98", "rate_Mbps")
  refused("real_seconds=1.04", "real_seconds=0.52", "less than was asked for")
  refused("real_seconds=1.04", "real_seconds=nan", "real_seconds")
  refused("megabytes=62.0517", "megabytes=0.0000", "megabytes")
  refused(" rx_cpu=0", "", "rx_cpu")
  twice <- changed(lines, paced, "megabytes=62.0517 real_seconds=1.04 rate_Mbps=499.9803",
                   "megabytes=124.1034 real_seconds=1.04 rate_Mbps=999.9606")
  expect_refused("nuttcp", twice, asked_nuttcp, "rate should be 500 Mbit/s, and was 999.9606")
  classic <- append(lines, "nuttcp-t: Info=\"attempting_to_switch_to_deprecated_classic_mode\"", paced - 1)
  expect_refused("nuttcp", classic, asked_nuttcp, "found no server")
  refused("\"rate_mbit\": 500", "\"rate_mbit\": null", "rate is not the one", at = paced - 1)
  refused("\"rate_mbit\": null", "\"rate_mbit\": 500", "rate is not the one",
          at = grep("\"point\": \"throughput\"", lines)[1])
})

test_that("a transfer may end some hundredths of a second early, as it does on a busy machine", {
  lines <- fixture("nuttcp")
  at <- grep("^megabytes=62.0517", lines)
  early <- changed(lines, at, "real_seconds=1.04 rate_Mbps=499.9803", "real_seconds=0.97 rate_Mbps=536.6275")
  expect_gt(nrow(parser_of("nuttcp")(early, asked_nuttcp)), 0)
  expect_silent(require_lasted("it ran", 0.9, 1))
  expect_error(require_lasted("it ran", 0.89, 1), "it ran 0.89 s, less than was asked for")
  expect_silent(require_lasted("it ran", 28.5, 30))
  expect_error(require_lasted("it ran", 28.4, 30), "less than was asked for")
})

test_that("what netperf says of a stream must go together", {
  lines <- fixture("nuttcp")
  refused <- function(key, to, reason) {
    at <- grep(paste0("^", key, "="), lines)[1]
    lines[at] <- paste0(key, "=", to)
    expect_refused("nuttcp", lines, asked_nuttcp, reason)
  }
  refused("THROUGHPUT", "5848.36", "THROUGHPUT")
  refused("LOCAL_BYTES_XFERD", "713003948", "THROUGHPUT")
  refused("REMOTE_BYTES_XFERD", "624303872", "REMOTE_BYTES_XFERD")
  refused("ELAPSED_TIME", "0.80", "less than was asked for")
  refused("DIRECTION", "Send", "did not run TCP_MAERTS")
  refused("THROUGHPUT_UNITS", "Trans/s", "did not run TCP_MAERTS")
  refused("PROTOCOL", "UDP", "did not run TCP_MAERTS")
  expect_refused("nuttcp", sub("TCP_MAERTS", "TCP_STREAM", lines), asked_nuttcp,
                 "stream in direction transmit")
})

test_that("an observation that cannot be of its transfer is refused", {
  lines <- fixture("nuttcp")
  refused <- function(key, values, reason) {
    expect_refused("nuttcp", observed_anew(lines, key, values), asked_nuttcp, reason)
  }
  refused("busy_seconds", c(2288.06, 2288.06, 2292.61, 2293.35), "cannot have been busy")
  refused("busy_seconds", c(2290.34, 2288.06, 2292.61, 2293.35), "cannot have been busy")
  refused("busy_seconds", c(2288.06, 2290.54, 2292.61, 2293.35), "cannot have been busy for 2.48 s in 1.17 s")
  refused("seconds", c(2337.86, 2338.7, 2341.11, 2342.23), "observed for 0.84 s of a transfer of 1.04 s")
  refused("seconds", c(2339.03, 2337.86, 2341.11, 2342.23), "observed for")
  refused("cpus", c(2, 4, 2, 2), "number of processors")
  refused("cycles", c("null", "5", "6", "7"), "both before and after")
  refused("cycles", c("5", "5", "6", "7"), "no cycles")
  expect_refused("nuttcp", sub("\"observed\": \"cpu\"", "\"observed\": \"disk\"", lines), asked_nuttcp,
                 "something else")
  expect_refused("nuttcp", sub(", \"cycles\": null", "", lines), asked_nuttcp, "both before and after")
})
