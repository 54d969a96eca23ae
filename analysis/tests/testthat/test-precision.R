rows <- function(low, high, n = 5, sd = 1) {
  count <- length(low)
  data.frame(
    environment = paste0("e", seq_len(count)), workload = "w", metric = "m", factors = "",
    n = n, mean = (low + high) / 2, mean_low = low, mean_high = high, median = NA_real_,
    median_low = NA_real_, median_high = NA_real_, min = 1, max = 1 + sd
  )
}

precision <- list(min = 2, max = 10, target = 0.05)

test_that("the half-width is a share of the mean", {
  expect_equal(relative_half_width(rows(c(95, 90), c(105, 110))), c(0.05, 0.1))
})

test_that("a mean without an interval is never known well enough, and one without variation is", {
  expect_equal(relative_half_width(rows(c(NA_real_, NA), c(NA_real_, NA), sd = c(NA, 0))), c(Inf, 0))
})

test_that("blocks are added until every interval is within the target", {
  found <- enough_runs(rows(c(95, 90), c(105, 110)), precision, 3)
  expect_false(found$enough)
  expect_equal(found$reached, 1)
  expect_equal(found$widest$environment, "e2")
  expect_equal(found$widest$half_width, 0.1)
  expect_true(enough_runs(rows(c(95, 96), c(105, 104)), precision, 3)$enough)
})

test_that("the cap ends it, and says so", {
  found <- enough_runs(rows(50, 150), precision, 10)
  expect_true(found$enough)
  expect_equal(found$reason, "the largest number of blocks was reached")
  expect_null(enough_runs(rows(NA_real_, NA_real_, sd = NA), precision, 10)$widest$half_width)
})

test_that("a difference between environments does not matter", {
  apart <- enough_runs(rows(c(1, 1000), c(1.2, 1200)), precision, 3)
  alike <- enough_runs(rows(c(1, 1), c(1.2, 1.2)), precision, 3)
  expect_equal(apart$enough, alike$enough)
  expect_equal(apart$reached, alike$reached)
})
