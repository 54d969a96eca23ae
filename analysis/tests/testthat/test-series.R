series_of <- function(factors, metric = "throughput", workload = "redis") {
  data.frame(workload = workload, metric = metric, factors = factors)
}

sweep <- series_of(c("test=SET;connections=1", "test=SET;connections=30", "test=GET;connections=1",
                     "test=GET;connections=4", "test=GET;connections=50;pipeline=10"))

test_that("factors are found by their whole names, and taken away", {
  factors <- c("test=SET;connections=4", "my_test=x", "")
  expect_equal(factor_of(factors, "test"), c("SET", "", ""))
  expect_equal(factor_of(factors, "connections"), c("4", "", ""))
  expect_equal(without_factor(factors, "connections"), c("test=SET", "my_test=x", ""))
  expect_equal(factor_numbers("p=99.90", "p"), 99.9)
  expect_error(factor_numbers(c("n=1", "n=many"), "n"), "'many' is none")
  expect_error(factor_numbers("m=1", "n"), "'' is none")
})

test_that("series are selected by values, lists, absence and extremes", {
  expect_equal(which(selected(sweep)), 1:5)
  expect_equal(which(selected(sweep, "latency")), integer())
  expect_equal(which(selected(sweep, NULL, list(test = "SET"))), 1:2)
  expect_equal(which(selected(sweep, NULL, list(pipeline = "none"))), 1:4)
  expect_equal(which(selected(sweep, NULL, list(pipeline = 10))), 5)
  expect_equal(which(selected(sweep, NULL, list(connections = list(1, 50)))), c(1, 3, 5))
  # The largest is that of each set of the other factors, after all else was narrowed down.
  expect_equal(which(selected(sweep, NULL, list(connections = "largest"))), c(2, 4, 5))
  ends <- list(connections = list("smallest", "largest"), test = "SET")
  expect_equal(which(selected(sweep, NULL, ends)), 1:2)
  expect_equal(which(selected(sweep, NULL, list(threads = "largest"))), integer())
  expect_equal(selected(series_of("percentile=99.90"), NULL, list(percentile = 99.9)), TRUE)
})

test_that("a workload without figures has one, of its runs", {
  plan <- sweep_plan(c("netperf", "redis"))
  expect_equal(figures_of(plan, "netperf"), list(netperf = list(kind = "runs")))
  expect_equal(names(figures_of(plan, "redis")),
               paste0("redis-", c("throughput", "latency", "p99", "tradeoff", "pipelined")))
})

test_that("a figure draws its metrics where they have its factor", {
  rows <- rbind(sweep, series_of("test=SET;connections=1", "latency"), series_of("", "version"))
  expect_equal(which(drawn_in(list(kind = "sweep", metric = "throughput", along = "connections"), rows)), 1:5)
  pair <- list(kind = "against", metric = "latency", against = "throughput", along = "connections",
               where = list(pipeline = "none"))
  expect_equal(which(drawn_in(pair, rows)), c(1:4, 6))
  expect_equal(which(drawn_in(list(kind = "sweep", metric = "throughput", along = "pipeline"), rows)), 5)
  expect_equal(which(drawn_in(list(kind = "runs", metrics = list("version")), rows)), 7)
  expect_equal(which(drawn_in(list(kind = "runs"), rows)), 1:7)
})

test_that("tables tell of what is declared, else of runs and of the ends of sweeps, else of all", {
  plan <- sweep_plan(c("netperf", "redis", "fio"))
  told <- function(rows, plan) which(is_headline(rows, plan))
  expect_equal(told(sweep, plan), c(2, 4, 5))
  plan$workloads$redis$headline <- NULL
  expect_equal(told(sweep, plan), c(2, 4, 5))
  expect_equal(told(series_of(c("", "a=1"), "latency", "netperf"), plan), 1:2)
  fio <- series_of(c("job=a;direction=read", "job=random-read-16;percentile=50.00",
                     "job=random-read-16;percentile=90.00"), c("iops", rep("latency_percentile", 2)), "fio")
  expect_equal(told(fio, plan), 1:2)
  # A sweep is told of by its largest point, whatever order its points come in.
  mixed <- rbind(fio, sweep[5:1, ])
  expect_equal(told(mixed, plan), c(1, 2, 4, 5, 7))
  plan$workloads$redis$headline <- list(list(metric = "latency"))
  expect_equal(told(sweep, plan), 1:5)
  plan$workloads$redis$headline <- list(list(metric = "throughput", where = list(connections = 1)))
  expect_equal(told(sweep, plan), c(1, 3))
})
