asked_redis <- list(connections = list(1, 4, 100), pipelines = list(1, 10), tests = list("set", "get"),
                    data_bytes = 50, requests = 10000, keyspace = 2000, warmup_requests = 2000, port = 16379,
                    server_cpu = 0, client_cpu = 1)
asked_single <- updated(asked_redis, connections = list(1000), pipelines = list(1), tests = list("set"),
                        data_bytes = 1, requests = 20000, keyspace = 2147483647)
asked_single["client_cpu"] <- list(NULL)
asked_lists <- updated(asked_redis, connections = list(3), pipelines = list(7), requests = 1000,
                       tests = list("sadd", "lpush", "lpop"))

test_that("a sweep of Redis is read", {
  values <- parser_of("redis")(fixture("redis"), asked_redis)
  expect_equal(nrow(values), 3 * 2 * 2 * 3)
  some <- values[c(1:8, 36), ]
  expect_equal(some$metric, c(rep(c("throughput", "latency", "p99", "throughput"), each = 2), "p99"))
  expect_equal(some$unit, c(rep(c("requests/s", "ms", "ms", "requests/s"), each = 2), "ms"))
  expect_equal(some$value, c(8354.22, 5871.99, 0.116, 0.167, 1.599, 1.767, 69444.45, 133333.33, 2.927))
  expect_equal(some$factors, c(rep(c("test=SET;connections=1", "test=GET;connections=1"), 3),
                               "test=SET;connections=1;pipeline=10", "test=GET;connections=1;pipeline=10",
                               "test=GET;connections=100;pipeline=10"))
  expect_equal(anyDuplicated(values[c("metric", "factors")]), 0)
  expect_declared("redis", values)
})

test_that("one instance with many connections that are not pinned is read", {
  values <- parser_of("redis")(fixture("redis", "single-instance"), asked_single)
  expect_equal(values, measured(c("throughput", "latency", "p99"), c("requests/s", "ms", "ms"),
                                c(98522.17, 5.934, 12.615), "test=SET;connections=1000"))
})

test_that("other commands, and requests that fill no pipeline, are read", {
  values <- parser_of("redis")(fixture("redis", "lists"), asked_lists)
  expect_equal(values$value[1:3], c(250249.98, 91000, 83416.66))
  expect_equal(values$factors[1:3], paste0("test=", c("LPUSH", "LPOP", "SADD"), ";connections=3;pipeline=7"))
})

test_that("a log of Redis is read whole or not at all", {
  expect_all_or_nothing("redis", fixture("redis"), asked_redis)
  expect_all_or_nothing("redis", fixture("redis", "single-instance"), asked_single)
})

test_that("what Redis was not asked for is refused", {
  lines <- fixture("redis")
  differs <- function(reason, ...) expect_refused("redis", lines, updated(asked_redis, ...), reason)
  differs("object 11", connections = list(1, 4))
  differs("connections should be 5", connections = list(1, 5, 100))
  differs("connections should be 100", connections = list(100, 4, 1))
  differs("pipeline should be 10", pipelines = list(10, 1))
  differs("does not say which points", pipelines = list())
  differs("commands are not those", tests = list("get"))
  differs("commands are not those", tests = list("get", "set"))
  differs("data_bytes should be 3", data_bytes = 3)
  differs("requests should be 500000", requests = 500000)
  differs("keyspace", keyspace = 100000)
  differs("processor 0", client_cpu = 0)
  expect_refused("redis", lines, list())
  expect_refused("redis", fixture("netperf"), asked_redis)
})

test_that("a table that does not go with what was asked is refused", {
  lines <- fixture("redis")
  set <- grep("^\"SET\",\"8354.22\"", lines)
  refused <- function(from, to, reason, at = set) {
    expect_refused("redis", changed(lines, at, from, to), asked_redis, reason)
  }
  for (rate in c("8354.92", "8437.76", "4177.3", "83542.20")) {
    refused("8354.22", rate, "not that of 10000 requests|do not go together")
  }
  refused("8354.22", "0.00", "zero")
  refused("8354.22", "inf", "not complete")
  refused("8354.22", "-8354.22", "not complete")
  refused("\"0.116\"", "\"0.000\"", "zero")
  refused("\"0.116\"", "\"1.160\"", "do not go together")
  refused("\"0.116\"", "\"0.011\"", "not in order|do not go together")
  refused("\"0.055\"", "\"0.355\"", "not in order")
  refused("\"1.599\"", "\"0.155\"", "not in order")
  refused("\"14.799\"", "\"1.499\"", "not in order")
  refused("\"SET\"", "\"GET\"", "one row for each")
  refused(",\"14.799\"", "", "not complete")
  expect_refused("redis", changed(lines, set - 1, "p99_latency_ms", "p99.9_latency_ms"), asked_redis,
                 "not the one that is known")
  swapped <- lines
  swapped[set + 0:1] <- lines[set + 1:0]
  expect_refused("redis", swapped, asked_redis, "one row for each")
})

test_that("requests that the server did not answer, or with an error, are refused", {
  lines <- fixture("redis")
  set <- grep("^cmdstat_set:", lines)[3]
  refused <- function(from, to, reason, at = set) {
    expect_refused("redis", changed(lines, at, from, to), asked_redis, reason)
  }
  refused("calls=10000", "calls=9999", "should have counted 10000 of set, and counted 9999")
  refused("calls=10000", "calls=10010", "and counted 10010")
  refused("failed_calls=0", "failed_calls=1", "tell once of set")
  refused("rejected_calls=0", "rejected_calls=1", "tell once of set")
  refused("cmdstat_set", "cmdstat_sadd", "tell once of set")
  refused("cmdstat_set", "cmdstat", "and nothing else")
  refused("9924", "9923", "looked up 9999 keys", at = set + 1)
  refused("76", "77", "looked up 10001 keys", at = set + 2)
})
