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
