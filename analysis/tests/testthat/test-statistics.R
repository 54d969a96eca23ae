test_that("the interval of the mean is that of t.test", {
  set.seed(1)
  for (n in c(2, 3, 5, 30)) {
    x <- rnorm(n, 100, 3)
    expect_equal(unname(interval_of_mean(x)), as.vector(t.test(x)$conf.int))
    expect_equal(unname(interval_of_mean(x, 0.9)), as.vector(t.test(x, conf.level = 0.9)$conf.int))
  }
})

test_that("no interval of the mean is made up", {
  expect_equal(interval_of_mean(3), c(low = NA_real_, high = NA_real_))
  expect_equal(interval_of_mean(c(3, 3, 3)), c(low = NA_real_, high = NA_real_))
})

test_that("the ranks of the median's interval are those of the tables", {
  lower <- c("6" = 1, "7" = 1, "8" = 1, "9" = 2, "10" = 2, "11" = 2, "12" = 3, "13" = 3, "14" = 3, "15" = 4,
             "16" = 4, "17" = 5, "18" = 5, "19" = 5, "20" = 6, "25" = 8, "30" = 10, "40" = 14, "50" = 18)
  for (n in names(lower)) {
    expect_equal(median_rank(as.numeric(n)), lower[[n]])
  }
  for (n in 1:5) {
    expect_equal(median_rank(n), NA_integer_)
  }
  expect_equal(median_rank(8, 0.99), 1)
  for (n in c(60:80, 999, 1000)) {
    covers <- 1 - 2 * stats::pbinom(seq_len(n %/% 2) - 1, n, 0.5) >= 0.95
    expect_equal(median_rank(n), max(which(covers)))
  }
  expect_equal(median_rank(7, 0.99), NA_integer_)
})

test_that("the interval of the median holds order statistics", {
  x <- c(9, 2, 7, 4, 10, 1, 3, 8, 6, 5)
  expect_equal(interval_of_median(x), c(low = 2, high = 9))
  expect_equal(interval_of_median(x[1:6]), c(low = 1, high = 10))
  expect_equal(interval_of_median(x[1:5]), c(low = NA_real_, high = NA_real_))
  expect_equal(interval_of_median(7), c(low = NA_real_, high = NA_real_))
  set.seed(2)
  covered <- replicate(4000, {
    interval <- interval_of_median(rexp(10))
    interval[["low"]] <= log(2) && log(2) <= interval[["high"]]
  })
  expect_equal(mean(covered), 1 - 2 * pbinom(1, 10, 0.5), tolerance = 0.01)
})

test_that("Fieller's interval of a small example is that found by hand", {
  # means 10 and 9, variances 1 and 1, covariance 0.5, three pairs; t(0.975, 2)^2 / 3 = 6.1709...
  reference <- c(9, 10, 11)
  measured <- c(9, 8, 10)
  t2 <- 4.302652729749464^2 / 3
  limits <- Re(polyroot(c(81 - t2, -2 * (90 - 0.5 * t2), 100 - t2)))
  found <- paired_ratio(measured, reference)
  expect_equal(c(found$ratio, found$low, found$high), c(0.9, sort(limits)))
  expect_equal(c(found$low, found$high), c(0.68026, 1.17237), tolerance = 1e-5)
  expect_equal(found$n, 3)
  expect_equal(found$state, "interval")
})

test_that("the limits of Fieller's interval are where a paired t test is just significant", {
  set.seed(3)
  reference <- rnorm(7, 100, 5)
  measured <- 0.9 * reference + rnorm(7, 0, 2)
  found <- paired_ratio(measured, reference)
  for (limit in c(found$low, found$high)) {
    expect_equal(t.test(measured, limit * reference, paired = TRUE)$p.value, 0.05)
  }
  expect_gt(t.test(measured, found$ratio * reference, paired = TRUE)$p.value, 0.999)
})

test_that("Fieller's interval covers the truth as often as it says, for pairs that vary together", {
  set.seed(4)
  for (truth in c(0.5, 0.98)) {
    covered <- replicate(4000, {
      block <- rnorm(5, 0, 0.05)
      found <- paired_ratio(truth * (1 + block + rnorm(5, 0, 0.02)), 1 + block + rnorm(5, 0, 0.02))
      found$low <= truth && truth <= found$high
    })
    expect_equal(mean(covered), 0.95, tolerance = 0.015)
  }
})

test_that("pairing narrows the interval where blocks vary", {
  block <- c(-5, 3, 8, -2, 0, 6)
  measured <- 90 + block + c(0.1, -0.1, 0.2, 0, -0.2, 0.1)
  paired <- paired_ratio(measured, 100 + block)
  mixed <- paired_ratio(measured, 100 + rev(block))
  expect_lt(paired$high - paired$low, (mixed$high - mixed$low) / 3)
})

test_that("a ratio without an interval says why", {
  state <- function(...) paired_ratio(...)$state
  expect_equal(state(numeric(), numeric()), "no pair")
  expect_equal(paired_ratio(numeric(), numeric())$ratio, NA_real_)
  expect_equal(paired_ratio(9, 10),
               list(ratio = 0.9, low = NA_real_, high = NA_real_, n = 1L, state = "one pair"))
  expect_equal(paired_ratio(c(9, 9, 9), c(10, 10, 10))[c("ratio", "low", "state")],
               list(ratio = 0.9, low = NA_real_, state = "constant"))
  expect_equal(paired_ratio(c(9, 18), c(10, 20))[c("ratio", "high", "state")],
               list(ratio = 0.9, high = NA_real_, state = "constant"))
  expect_equal(paired_ratio(c(5, 6, 5), c(1, 20, 3))[c("low", "high", "state")],
               list(low = NA_real_, high = NA_real_, state = "unbounded"))
  expect_equal(state(c(9, 9, 9), c(10, 10, 11)), "interval")
})

test_that("tests of normality and drift are those of R, where they can be made", {
  set.seed(5)
  x <- rexp(20)
  expect_equal(normality(x), shapiro.test(x)$p.value)
  expect_lt(normality(x), 0.05)
  expect_equal(c(normality(1:2), normality(c(2, 2, 2)), drift(1:4), drift(rep(1, 9))), rep(NA_real_, 4))
  expect_false(is.na(normality(c(1, 2, 4))))
  expect_equal(drift(c(1, 2, 3, 4, 5)), 2 / factorial(5))
  expect_equal(drift(c(5, 4, 3, 2, 1)), 2 / factorial(5))
  expect_gt(drift(c(3, 1, 5, 2, 4)), 0.5)
  expect_silent(drift(c(1, 2, 2, 3, 4, 5)))
  expect_false(is.na(drift(seq_len(60))))
})

test_that("the drift test rejects independent runs no more often than it says", {
  set.seed(6)
  expect_lt(mean(replicate(2000, drift(rnorm(6))) < 0.05), 0.065)
})

test_that("the autocorrelation is that of acf, and its limits hold independent runs", {
  set.seed(7)
  x <- cumsum(rnorm(12))
  expect_equal(lag1_autocorrelation(x), acf(x, plot = FALSE)$acf[[2]])
  expect_equal(lag1_autocorrelation(c(1, 2, 3, 4, 5)), 0.4)
  expect_equal(c(lag1_autocorrelation(1:4), lag1_autocorrelation(rep(2, 8))), c(NA_real_, NA_real_))
  expect_equal(autocorrelation_limits(11), c(low = (-1 - 1.959964 * 3) / 10, high = (-1 + 1.959964 * 3) / 10),
               tolerance = 1e-6)
  for (n in c(5, 10, 30)) {
    limits <- autocorrelation_limits(n)
    outside <- replicate(2000, {
      r <- lag1_autocorrelation(rnorm(n))
      r < limits[["low"]] || r > limits[["high"]]
    })
    expect_lt(mean(outside), 0.07)
  }
})

test_that("outliers are those of the modified z score", {
  expect_equal(which(outliers(c(10, 10.1, 9.9, 10.2, 9.8, 12))), 6)
  # median 10, MAD 1: the limit is 10 + 3.5 / 0.6745 = 15.189
  expect_false(any(outliers(c(8, 9, 10, 11, 15.18))))
  expect_equal(which(outliers(c(8, 9, 10, 11, 15.2))), 5)
  expect_equal(which(outliers(c(5, 5, 5, 5, 5.1))), 5)
  expect_false(any(outliers(rep(5, 5))))
  expect_false(any(outliers(c(1, 1, 1, 100))))
})

test_that("the p value of a pair is that of the paired t test, and agrees with Fieller's interval", {
  set.seed(5)
  for (n in c(3, 5, 12)) {
    for (effect in c(0, 0.005, 0.02)) {
      reference <- rnorm(n, 100, 2)
      measured <- reference * (1 + effect) + rnorm(n)
      p <- paired_p_value(measured, reference)
      expect_equal(p, t.test(measured, reference, paired = TRUE)$p.value)
      found <- paired_ratio(measured, reference)
      expect_equal(p < 0.05, found$low > 1 || found$high < 1)
      half <- paired_ratio(measured, reference, level = 1 - p)
      expect_equal(min(abs(c(half$low, half$high) - 1)), 0, tolerance = 1e-9)
    }
  }
  expect_equal(paired_p_value(10, 11), NA_real_)
  expect_equal(paired_p_value(c(2, 4, 6), c(1, 2, 3)), NA_real_)
  expect_equal(paired_p_value(c(102, 103, 104), c(101, 102, 103)), 0)
})

test_that("p values are adjusted as Benjamini and Hochberg's table has it, and as R does", {
  published <- c(0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262,
                 0.5719,
                 0.6528, 0.7590, 1)
  expect_equal(sum(adjusted_p_values(published) <= 0.05), 4)
  set.seed(2)
  p <- c(runif(20), NA, 0.01, 0.01, 0)
  expect_equal(adjusted_p_values(p), p.adjust(p, "BH"))
  expect_equal(adjusted_p_values(c(NA_real_, NA)), c(NA_real_, NA_real_))
  expect_equal(adjusted_p_values(numeric()), numeric())
})

test_that("calls by adjusted p values hold the false-discovery rate where plain ones do not", {
  set.seed(11)
  rate <- function(adjust) {
    mean(vapply(1:400, function(i) {
      true <- rep(c(TRUE, FALSE), c(4, 16))
      called <- adjust(2 * pnorm(-abs(rnorm(20, ifelse(true, 3.5, 0))))) < 0.05
      if (any(called)) mean(!true[called]) else 0
    }, 0))
  }
  expect_lt(rate(adjusted_p_values), 0.055)
  expect_gt(rate(identity), 0.1)
})

test_that("the runs needed are those at which simulated intervals are narrow enough", {
  set.seed(3)
  x <- rnorm(40, 100, 3)
  s <- runs_needed(x)
  reach <- function(s) {
    limits <- rowMeans(replicate(4000, interval_of_median(sample(x, s, replace = TRUE))))
    max(abs(limits - median(x))) / median(x)
  }
  expect_lt(reach(s), 0.0103)
  expect_gt(reach(s - 3), 0.0099)
  expect_lt(runs_needed(x, 0.05), runs_needed(x, 0.02))
  expect_equal(runs_needed(7 * x), s)
  expect_equal(runs_needed(rev(x)), s)
})

test_that("runs needed are never fewer than an interval takes, nor more than the cap", {
  expect_equal(runs_needed(rep(c(100, 100.001, 99.999, 100.002, 100), 2)), 6)
  expect_equal(runs_needed(rep(c(1, 100), 5)), Inf)
  expect_equal(runs_needed(1:9), NA_real_)
  expect_equal(runs_needed(rep(5, 10)), NA_real_)
  x <- rep(c(98, 99, 100, 101, 102), 2)
  s <- runs_needed(x)
  expect_equal(runs_needed(x, most = s), s)
  expect_equal(runs_needed(x, most = s - 1), Inf)
})
