# nuttcp: throughput of bulk transfers, and what the host's processors spend on them at a fixed rate.

# What netperf prints of a stream, in this order.
stream_keys <- c(
  "PROTOCOL", "DIRECTION", "DEST_PORT", "ELAPSED_TIME", "LOCAL_BYTES_XFERD", "REMOTE_BYTES_XFERD",
  "THROUGHPUT", "THROUGHPUT_UNITS", "LOCAL_TRANSPORT_RETRANS", "REMOTE_TRANSPORT_RETRANS",
  "LOCAL_CONG_CONTROL", "REMOTE_CONG_CONTROL"
)

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`direction`; `connections` where there is more than one;
#'   `rate=not-reached` where a cost is of less than the rate that was asked for, and compares with no other)
#' @section Errors: broken_log
parse_nuttcp <- function(lines, parameters) {
  directions <- as.character(unlist(parameters$directions))
  count <- length(directions)
  require_that(count > 0, "the record does not say which directions were asked for")
  of_direction <- c("point", "end", "observed", "point", "end", "observed", "point", "end")
  points <- read_sweep(lines, c(rep(c("warmup", "warmed"), count), rep(of_direction, count), "done"))
  observed <- Filter(function(object) "observed" %in% names(object), read_json_lines(lines))
  require_that(all(vapply(observed, function(object) identical(object$observed, "cpu"), NA)),
               "something else than the processors was observed")
  all_measured(lapply(seq_len(count), function(i) {
    nuttcp_direction(points[3 * i - 2:0], observed[2 * i - 1:0], directions[i], parameters)
  }))
}

#' What was measured in one direction
#'
#' @param points its three points, as from `read_sweep`: unlimited, at the fixed rate, by netperf
#' @param observed what was observed before and after the second
#' @param direction "transmit" or "receive"
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors
#' @section Errors: broken_log
nuttcp_direction <- function(points, observed, direction, parameters) {
  asked_rate <- asked(parameters, "rate_mbit")
  streams <- asked(parameters, "streams")
  free <- nuttcp_transfer(points[[1]], "throughput", direction, NULL, parameters)
  paced <- nuttcp_transfer(points[[2]], "cost", direction, asked_rate, parameters)
  # What stands in the socket's buffer at the start is not paced.
  require_that(paced$rate_Mbps <= 1.1 * asked_rate, "the rate should be ", plain(asked_rate),
               " Mbit/s, and was ", plain(paced$rate_Mbps))
  factors <- paste0("direction=", direction, if (streams != 1) paste0(";connections=", plain(streams)))
  at_rate <- paste0(factors, if (paced$rate_Mbps < 0.9 * asked_rate) ";rate=not-reached")
  cost <- host_cost(observed, paced)
  all_measured(list(
    measured("throughput", "Gbit/s", free$rate_Mbps / 1000, factors),
    if (!is.null(cost$cycles)) measured("cycles_per_byte", "cycles/B", cost$cycles, at_rate),
    measured("cpu_seconds_per_gb", "s/GB", cost$seconds * 1e9, at_rate),
    measured("stream", "Gbit/s", netperf_stream(points[[3]], direction, parameters) / 1000,
             paste0("direction=", direction))
  ))
}

#' What nuttcp says of one transfer
#'
#' @param point as from `read_sweep`
#' @param name,direction,rate what was asked for; `rate` in Mbit/s, NULL where it was not limited
#' @param parameters the record's parameters
#' @return list of numbers, by nuttcp's names; `megabytes` are of 2^20 bytes
#' @section Errors: broken_log
nuttcp_transfer <- function(point, name, direction, rate, parameters) {
  head <- point$head
  require_that(identical(head$point, name) && identical(head$direction, direction),
               "the point should be ", name, " in direction ", direction)
  require_that(is.character(head$tool) && startsWith(head$tool, "nuttcp-"), "this is not a log of nuttcp")
  require_that("rate_mbit" %in% names(head) && identical(as.double(head$rate_mbit), as.double(rate)),
               "the rate is not the one that was asked for")
  require_asked(head, parameters, c("streams", "seconds"))
  require_pinned(head, parameters)
  require_that(!any(grepl("classic_mode", point$lines, fixed = TRUE, useBytes = TRUE)),
               "nuttcp found no server")
  result <- grep("^megabytes=", point$lines, value = TRUE, useBytes = TRUE)
  require_that(length(result) == 1, "there should be one result of nuttcp, and there are ", length(result))
  words <- strsplit(result, " ", fixed = TRUE)[[1]]
  found <- stats::setNames(lapply(sub("^[^=]*=", "", words), text_or_number), sub("=.*", "", words))
  seconds <- number(found, "real_seconds")
  number(found, "tx_cpu", zero = TRUE)
  number(found, "rx_cpu", zero = TRUE)
  require_lasted("the transfer took", seconds, asked(parameters, "seconds"))
  # The time is printed in hundredths of a second.
  require_close("rate_Mbps", number(found, "rate_Mbps"),
                number(found, "megabytes") * 8 * 2^20 / 1e6 / seconds, tolerance = 0.006 / seconds + 1e-5)
  found
}

#' What the host's processors spent on each byte
#'
#' All that they did meanwhile: both ends where the client is on the same host, and whatever else ran.
#'
#' @param observed objects of before and after
#' @param transfer as from `nuttcp_transfer`
#' @return list: `seconds` of a processor; `cycles`, NULL where the host does not count them
#' @section Errors: broken_log
host_cost <- function(observed, transfer) {
  bytes <- transfer$megabytes * 2^20
  elapsed <- diff(numbers(observed, "seconds"))
  busy <- diff(numbers(observed, "busy_seconds", zero = TRUE))
  cpus <- numbers(observed, "cpus")
  require_that(cpus[1] == cpus[2], "the number of processors changed")
  seconds <- transfer$real_seconds
  require_that(elapsed >= seconds - max(0.1, 0.05 * seconds), "the processors were observed for ",
               plain(elapsed), " s of a transfer of ", plain(seconds), " s")
  # Both are counted in ticks of a hundredth of a second, the latter in several sums on each processor.
  most <- cpus[1] * elapsed + max(0.1, 0.05 * cpus[1])
  require_that(busy > 0 && busy <= most, "the processors cannot have been busy for ", plain(busy), " s in ",
               plain(elapsed), " s")
  counted <- vapply(observed, function(object) !is.null(object$cycles), NA)
  require_that(all(vapply(observed, function(object) "cycles" %in% names(object), NA)) &&
                 counted[1] == counted[2], "the cycles were not counted both before and after")
  cycles <- if (counted[1]) diff(numbers(observed, "cycles", zero = TRUE)) / bytes
  require_that(is.null(cycles) || cycles > 0, "no cycles were counted")
  list(seconds = busy / bytes, cycles = cycles)
}

#' The throughput that netperf says
#'
#' @param point as from `read_sweep`
#' @param direction "transmit" or "receive"
#' @param parameters the record's parameters
#' @return Mbit/s
#' @section Errors: broken_log
netperf_stream <- function(point, direction, parameters) {
  head <- point$head
  sends <- direction == "receive"
  require_that(identical(head$point, "stream") && identical(head$direction, direction) &&
                 identical(head$test, if (sends) "TCP_STREAM" else "TCP_MAERTS"),
               "the point should be stream in direction ", direction)
  require_that(is.character(head$tool) && startsWith(head$tool, "Netperf "), "this is not a log of netperf")
  require_asked(head, parameters, "seconds")
  require_pinned(head, parameters)
  found <- read_settings(point$lines, stream_keys)
  require_that(identical(found$PROTOCOL, "TCP") && identical(found$THROUGHPUT_UNITS, "10^6bits/s") &&
                 identical(found$DIRECTION, if (sends) "Send" else "Receive"),
               "netperf did not run ", head$test)
  require_that(number(found, "DEST_PORT") == asked(parameters, "netserver_data_port"),
               "netperf did not use the port that was asked for")
  elapsed <- number(found, "ELAPSED_TIME")
  rate <- number(found, "THROUGHPUT")
  bytes <- c(number(found, "LOCAL_BYTES_XFERD"), number(found, "REMOTE_BYTES_XFERD"))
  require_lasted("the transfer took", elapsed, asked(parameters, "seconds"))
  # The time is printed in hundredths of a second.
  require_close("THROUGHPUT", rate, bytes[1] * 8 / 1e6 / elapsed, tolerance = 0.006 / elapsed + 1e-4)
  # What is under way in the sockets' buffers at the end was counted at one end only.
  require_close("REMOTE_BYTES_XFERD", bytes[2], bytes[1], tolerance = max(0.02, 2^24 / bytes[1]))
  rate
}
