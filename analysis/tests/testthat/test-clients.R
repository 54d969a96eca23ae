#' Records of a workload whose load came from outside
with_client <- function(link, workload = "stream", environments = c("native", "docker")) {
  lapply(environments, function(name) {
    record <- small_record(name, workload = workload)
    record$observed$client <- list(cpus = 2, link = link)
    record
  })
}

test_that("nothing is said of a client where none took part", {
  evidence <- list(plan = small_plan(), records = list(small_record("native")))
  expect_equal(client_text(evidence), "")
})

test_that("the client is described as it was observed", {
  link <- list(kind = "veth pair", mtu = 1500, rate = "not limited")
  evidence <- list(plan = small_plan(), records = c(with_client(link), list(small_record("native"))))
  text <- read_aloud(client_text(evidence))
  expect_match(text, "^The load of STREAM comes from outside .* a network namespace of the same host")
  expect_match(text, "an MTU of 1,?500 bytes and its rate is not limited")
  expect_match(client_text(evidence), linked(value_text(1500), "records"), fixed = TRUE)
})

test_that("a second machine and a rate are told", {
  link <- list(kind = "network of a second machine", mtu = 9000, rate = "1gbit")
  plan <- updated(small_plan(), client = list(kind = "ssh", rate = "1gbit"))
  text <- read_aloud(client_text(list(plan = plan, records = with_client(link))))
  expect_match(text, "from a second machine, reached over the network")
  expect_match(text, "a rate of 1gbit by a token bucket on both ends", fixed = TRUE)
  expect_no_match(text, "namespace")
})

test_that("what making the load took is told, and what half of it reached", {
  plan <- small_plan(c(native = "Native", docker = "Docker"))
  plan$workloads$stream$metrics <- list(
    throughput = list(label = "Throughput", unit = "requests/s", better = "higher"),
    driver_share = list(label = "Load generators", unit = "%", better = "lower"),
    proxy_share = list(label = "Proxies", unit = "%", better = "lower")
  )
  row <- function(environment, metric, mean, setup) {
    updated(summary_row(environment, metric = metric, mean = mean), unit = "%",
            factors = paste0("setup=", setup, ";servers=2"))
  }
  says <- function(driver, half) {
    rows <- list(
      row("native", "throughput", 100, "scale-out"), row("native", "throughput", 95, "half"),
      row("docker", "throughput", 100, "scale-out"), row("docker", "throughput", half, "half"),
      row("native", "driver_share", 10, "scale-out"), row("native", "proxy_share", 25.5, "scale-out"),
      row("docker", "driver_share", driver, "scale-out"), row("docker", "proxy_share", 20, "scale-out")
    )
    read_aloud(driver_text(small_evidence(rows, plan), "stream"))
  }
  text <- says(11, 90)
  expect_match(text, paste("at most 35.5 % of the processors\u2019 time at the client (Native, setup",
                           "scale-out, servers 2), of which the load generators had 10 %, not more than",
                           "half."),
               fixed = TRUE)
  expect_match(text, "With half of the connections it reached 90 to 95 % of the throughput", fixed = TRUE)
  text <- says(40, 95)
  expect_match(text, "had 40 %: more than half, so that in Docker what is measured may be the load",
               fixed = TRUE)
  expect_match(text, "it reached 95 % of the throughput", fixed = TRUE)
  expect_null(driver_text(small_evidence(list(summary_row("native")), plan), "stream"))
})

test_that("what half of the load reached is told of a sweep too, where it has half of the most", {
  plan <- small_plan(c(native = "Native", docker = "Docker"))
  plan$workloads$stream$metrics <- list(
    throughput = list(label = "Orders", unit = "orders/min", better = "higher"),
    driver_share = list(label = "Load generators", unit = "%", better = "lower")
  )
  plan$workloads$stream$figures <- list(
    list(name = "time", kind = "sweep", metric = "latency", along = "others"),
    list(name = "orders", kind = "sweep", metric = "throughput", along = "customers")
  )
  says <- function(levels) {
    rows <- lapply(levels, function(level) {
      lapply(c("native", "docker"), function(environment) {
        mean <- 100 - 10 * (level < 8) - 5 * (environment == "docker" && level < 8)
        updated(summary_row(environment, metric = "throughput", mean = mean),
                factors = paste0("customers=", level))
      })
    })
    shares <- list(updated(summary_row("native", metric = "driver_share", mean = 10), unit = "%",
                           factors = "customers=8"))
    read_aloud(driver_text(small_evidence(c(unlist(rows, recursive = FALSE), shares), plan), "stream"))
  }
  expect_match(says(c(2, 4, 8)), "With half of the customers (4 instead of 8) it reached 85 to 90 % of the",
               fixed = TRUE)
  expect_no_match(says(c(2, 8)), "half of the customers")
})
