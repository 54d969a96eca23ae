# Forecasts whose truth is known.

source(file.path(root, "analysis", "forecast.R"))

test_that("a forecast of the width of now is the width of now, and blocks reach a width", {
  set.seed(2)
  row <- estimate_mean_ratio(exp(stats::rnorm(20, 0, 0.05)))
  now <- sinh(log(row$high / row$low) / 2)
  expect_equal(forecast_half_width(row, row$n), now)
  n <- forecast_blocks(row, now / 3)
  expect_lte(forecast_half_width(row, n), now / 3)
  expect_gt(forecast_half_width(row, n - 1), now / 3)
  expect_equal(forecast_blocks(row, 10), INTERVAL_BLOCKS)
  expect_true(is.na(forecast_blocks(estimate_mean_ratio(c(1, 1)), 0.1)))
})

test_that("three blocks forecast the width that as many independent ones have later", {
  row <- estimate_mean_ratio(exp(c(-0.02, 0.03, -0.01)))
  independent <- 20 * (1 - MIN_CORRELATION) / (1 + MIN_CORRELATION)
  later <- sinh(stats::qt(0.975, independent - 1) * row$scatter / sqrt(independent))
  expect_equal(forecast_half_width(row, 20), later)
})

# Results as read_results returns them, whose cells take so many seconds.
make_timed <- function(values, seconds = 10) {
  results <- make_results(values)
  environments <- unique(values$environment)
  results$records <- lapply(environments, function(name) {
    list(environment = name, workload = "stream", seconds = seconds)
  })
  results
}

test_that("a ratio's forecast tells what width, verdict and budget take", {
  results <- make_timed(make_values(native = 10, docker = 9.9, n = 20, noise = 0.03))
  row <- forecast_ratios(results, width = 0.005, budget = 2000)
  expect_equal(row$seconds, 20)
  expect_gt(row$width_more, 0)
  expect_gt(row$verdict_more, 0)
  expect_true(row$difference > MARGIN && row$difference < 0.1)
  more_time <- forecast_ratios(results, width = 0.005, budget = 20000)
  expect_lt(more_time$difference, row$difference)
  expect_equal(forecast_ratios(results, width = 0.5)$width_more, 0)
  expect_true(is.na(forecast_ratios(results, width = 0.5)$difference))
})

test_that("one cell that took long does not move the seconds of a block", {
  results <- make_timed(make_values(native = 10, docker = 9.9, n = 20, noise = 0.03))
  results$records <- c(rep(results$records, 3), lapply(results$records, modifyList,
                                                       list(seconds = 1000)))
  expect_equal(forecast_ratios(results, width = 0.005)$seconds, 20)
})

published <- list(
  publications = list(one = list(label = "One")),
  environments = list(native = list(label = "Native", measured_as = list("native")),
                      docker = list(label = "Docker", measured_as = list("docker")))
)
make_claim <- function(low, high) {
  list(id = "a", publication = "one", place = "p", statement = "s", workload = "stream",
       pairs = list(list("docker", "native")), tolerance = list(low = low, high = high))
}
forecast <- function(low, high, ratio, n = 10, noise = 0.03, width = NA) {
  results <- make_timed(make_values(native = 10, docker = 10 * ratio, n = n, noise = noise))
  results$plan <- list(machine = list(cpus = 2))
  results$environments <- cbind(results$environments, emulated = FALSE, otherwise = FALSE)
  forecast_claims(results, c(published, list(claims = list(make_claim(low, high)))), width)
}

test_that("a claim's forecast follows the distance from its limits", {
  near <- forecast(0.98, 1.02, 1)
  expect_equal(near$verdict, "undecided")
  expect_gt(near$more, 5)
  expect_equal(near$seconds, 20 * near$more)
  expect_lt(forecast(0.96, 1.04, 1)$more, near$more)
  # On the limit no number of blocks decides.
  on_limit <- forecast(exp(mean(log(near$ratio))), 1.5, 1)
  expect_gt(on_limit$more, 1000)
  decided <- forecast(0.8, 1.2, 1)
  expect_equal(c(decided$verdict, is.na(decided$more)), c("reproduced", "TRUE"))
})

test_that("a claim's forecast follows the width that is wanted", {
  wide <- forecast(0.98, 1.02, 1, width = 0.01)
  expect_gt(forecast(0.98, 1.02, 1, width = 0.005)$more, 3 * wide$more)
  expect_equal(wide$seconds, 20 * wide$more)
  expect_equal(forecast(0.98, 1.02, 1, width = 0.5)$more, 0)
  expect_true(is.na(forecast(0.98, 1.02, 1, width = 1e-9)$more))
})

test_that("a forecast holds: so many blocks decide in most cases", {
  decided <- vapply(1:40, function(seed) {
    set.seed(seed)
    pilot <- make_values(native = 10, docker = 10, n = 40, noise = 0.03, seed = seed)
    results <- make_timed(pilot)
    row <- forecast_claim(make_claim(0.98, 1.02), published, pilot, CONTEXT,
                          make_block_time_forecaster(results))
    n <- 40 + row$more
    again <- make_values(native = 10, docker = 10, n = n, noise = 0.03, seed = seed + 1000)
    claims <- c(published, list(claims = list(make_claim(0.98, 1.02))))
    test_claims(claims, again, CONTEXT)$verdict == "reproduced"
  }, NA)
  expect_gt(mean(decided), 0.6)
})
