asked_dvdstore <- list(systems = 1, ports = list(18100, 18200), size = "small", data_seed = 1,
                       buffer_bytes = 134217728, threads = list(2, 4), think_seconds = 0, ramp_seconds = 1,
                       warmup_seconds = 1, seconds = 4)

#' The fixture with a text replaced in the lines that match
shop_log <- function(pattern, old, new) {
  lines <- fixture("dvdstore")
  at <- grep(pattern, lines, fixed = TRUE)
  changed <- replace(lines, at, sub(old, new, lines[at], fixed = TRUE))
  stopifnot(!identical(changed, lines))
  changed
}

test_that("a sweep of the DVD shop is read", {
  values <- parser_of("dvdstore")(fixture("dvdstore"), asked_dvdstore)
  expect_equal(nrow(values), 2 * (3 + 2 * 5))
  few <- values[values$factors == "customers=2", ]
  expect_equal(few$metric, c("throughput", "committed", "driver_share"))
  expect_equal(few$unit, c("orders/min", "%", "%"))
  expect_equal(few$value, c(1890, 100 * 118 / 126, 5.79997))
  times <- values[startsWith(values$factors, "operation=purchase;"), ]
  expect_equal(times$value, c(32.971, 73.6, 36.3729, 79.1))
  expect_equal(times$metric, c("latency", "p95", "latency", "p95"))
  expect_equal(anyDuplicated(values[c("metric", "factors")]), 0)
  expect_declared("dvdstore", values[values$unit != "%", ])
})

test_that("a log of the DVD shop is read whole or not at all", {
  expect_all_or_nothing("dvdstore", fixture("dvdstore"), asked_dvdstore)
})

test_that("what the DVD shop was not asked for is refused", {
  differs <- function(reason, ...) {
    expect_refused("dvdstore", fixture("dvdstore"), updated(asked_dvdstore, ...), reason)
  }
  differs("object 11", threads = list(2))
  differs("threads should be 3", threads = list(3, 4))
  differs("object 3", systems = 2)
  differs("object 2", ports = list(18100))
  differs("not the one that was asked for", size = "medium")
  differs("data_seed should be 2", data_seed = 2)
  differs("seconds should be 20", seconds = 20)
  differs("think should be 1", think_seconds = 1)
  expect_refused("dvdstore", fixture("dvdstore"), list())
})

test_that("books that do not balance, or are not those of the load, are refused", {
  refused <- function(reason, ...) expect_refused("dvdstore", shop_log(...), asked_dvdstore, reason)
  refused("rows that are torn should be 0", "\"closed\": 1", "\"torn\": 0", "\"torn\": 1")
  refused("rows that are lost should be 0", "\"closed\": 0", "\"lost\": 0", "\"lost\": 2")
  refused("adrift", "\"closed\": 0", "\"adrift\": 0", "\"adrift\": -3")
  refused("least_stock", "\"closed\": 0", "\"least_stock\": 0", "\"least_stock\": -1")
  refused("new orders in the books", "\"closed\": 0", "\"new_orders\": 275", "\"new_orders\": 274")
  refused("cents in the books", "\"closed\": 1", "\"new_cents\": 5208355", "\"new_cents\": 5208354")
  refused("synchronous_commit should be on", "{\"", "\"synchronous_commit\": \"on\"",
          "\"synchronous_commit\": \"off\"")
  refused("the shops are not equal", "\"closed\": 1", "\"fsync\": \"on\"", "\"fsync\": \"off\"")
  refused("not every operation was checked", "\"opened\": 1", "\"checked\": 9", "\"checked\": 8")
})

test_that("a load generator that was the bottleneck is named", {
  lines <- shop_log("\"drove\": \"threads-4\"", "\"busiest_cpu_seconds\": 0.", "\"busiest_cpu_seconds\": 3.8")
  lines <- sub("\"driver_percent\": 8.08865, \"driver_cpu_seconds\": 0.647092",
               "\"driver_percent\": 90, \"driver_cpu_seconds\": 7.2", lines)
  expect_refused("dvdstore", lines, asked_dvdstore, "a load generator was busy")
})

test_that("counts and times of the DVD shop have to agree", {
  refused <- function(reason, ...) expect_refused("dvdstore", shop_log(...), asked_dvdstore, reason)
  refused("rounds should be", "\"drove\": \"threads-2\"", "\"rolled_back\": 8", "\"rolled_back\": 7")
  refused("the mean of browse", "\"operation\": \"browse\", \"of\": \"threads-2\"", "8173.5", "8174.5")
  refused("one line for each operation", "\"operation\": \"new\", \"of\": \"threads-2\"", "threads-2",
          "threads-4")
  few <- asked_dvdstore
  few$think_seconds <- 100
  lines <- sub("\"think\": 0.0", "\"think\": 100.0", fixture("dvdstore"), fixed = TRUE)
  expect_equal(nrow(parser_of("dvdstore")(lines, few)), 26)
})
