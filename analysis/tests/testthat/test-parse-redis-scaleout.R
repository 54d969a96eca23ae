asked_scaleout <- list(systems = 1, ports = list(17000, 17064), pinned_ports = list(19048, 19112),
                       stats_port = 22222, setups = list("baseline", "half", "scale-out", "pinned"),
                       connections = 100, baseline_connections = 1000, pipeline = 30, data_bytes = 1,
                       keys = 5000, settle_seconds = 1, seconds = 2)

test_that("set-ups of one server and of many are read, with what they gain", {
  values <- parser_of("redis-scaleout")(fixture("redis-scaleout"), asked_scaleout)
  of <- function(metric) values[values$metric == metric, ]
  factors <- paste0("setup=", c("baseline", "half", "scale-out", "pinned"), ";servers=", c(1, 2, 2, 2))
  expect_equal(of("throughput")$factors, factors)
  expect_equal(of("throughput")$value, c(70005.2, 17664.9, 16617.7, 16137.5))
  expect_equal(of("speedup")$factors, factors[3:4])
  expect_equal(of("speedup")$value, c(16617.7, 16137.5) / 70005.2)
  expect_equal(of("get_share")$value, c(74.9223, 75.0524, 75.1703, 75.1372))
  expect_equal(of("driver_share")$value[[1]], 1.40276)
  # The baseline has nothing between the load generator and its server.
  expect_equal(of("proxy_share")$factors, factors[2:4])
  expect_declared("redis-scaleout", rbind(of("throughput"), of("speedup")))
})

test_that("a log of Redis at scale is read whole or not at all", {
  expect_all_or_nothing("redis-scaleout", fixture("redis-scaleout"), asked_scaleout)
})

test_that("servers that are spread over systems are read", {
  values <- parser_of("redis-scaleout")(fixture("redis-scaleout"),
                                        updated(asked_scaleout, systems = 2, ports = list(17000)))
  expect_equal(nrow(values), 4 + 2 + 4 + 4 + 3)
})

test_that("what Redis at scale was not asked for, or did wrongly, is refused", {
  lines <- fixture("redis-scaleout")
  differs <- function(reason, ...) {
    expect_refused("redis-scaleout", lines, updated(asked_scaleout, ...), reason)
  }
  differs("set-ups", setups = list())
  differs("the set-up should be scale-out", setups = list("baseline", "scale-out", "half", "pinned"))
  differs("object", ports = list(17000))
  differs("connections should be 25", connections = 50)
  differs("connections should be 400", baseline_connections = 400)
  differs("pipeline", pipeline = 1)
  differs("keys", keys = 250000)
  differs("less than 10 s", seconds = 10)
  alters <- function(from, to, reason) {
    broken <- sub(from, to, lines, fixed = TRUE)
    expect_false(identical(broken, lines))
    expect_refused("redis-scaleout", broken, asked_scaleout, reason)
  }
  alters("\"gets\": 173610", "\"gets\": 173611", "looked up")
  alters("\"sets\": 58110", "\"sets\": 58210", "a server's rate")
  alters("\"seconds\": 3.310042", "\"seconds\": 3.310142", "a server's rate")
  alters("\"total\": 70005.2", "\"total\": 70005.3", "the rate of all")
  alters("\"get_share\": 74.9223", "\"get_share\": 74.9224", "the share of GET")
  alters("\"failed\": 0", "\"failed\": 1", "rejected or failed")
  alters("\"driver_seconds\": 0.34", "\"driver_seconds\": 0.35", "driver_share")
  alters("[55,9]", "[56,9]", "each of 64 keys once")
  alters("[55,9]", "[64,0]", "holds none")
  alters("\"processes\": 8", "\"processes\": 7", "processes should be 8")
  alters("redis-benchmark", "memtier", "not a log of redis-benchmark")
  # The mix of the first set-up, made that of a load that forgot one of its processes; all else goes with it.
  mix <- gsub("\"get_share\": 74.9223", "\"get_share\": 100",
              gsub("\"sets\": 58110, ", "\"sets\": 0, ", lines, fixed = TRUE), fixed = TRUE)
  expect_refused("redis-scaleout", mix, asked_scaleout, "sets should be a positive number")
})
