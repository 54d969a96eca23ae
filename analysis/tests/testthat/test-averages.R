# Averages, and the ratios that go with them.

test_that("rates over equal work have the mean of all work over all time", {
  seconds <- c(2, 4, 8)
  expect_equal(harmonic_mean(100 / seconds), 300 / sum(seconds))
  expect_equal(harmonic_mean(5), 5)
})

test_that("a harmonic mean has the interval and the ratio of its costs, turned round", {
  x <- c(10, 11, 9.5, 10.2, 10.4, 9.9)
  y <- c(20, 21, 19.5, 20.9, 20.1, 20.3)
  costs <- stats::t.test(1 / x)$conf.int
  average <- average_of(x, "harmonic")
  expect_equal(unlist(average), c(mean = harmonic_mean(x), low = 1 / costs[[2]], high = 1 / costs[[1]]))
  ratio <- compare_runs(x, y, "harmonic")
  expect_equal(ratio$ratio, harmonic_mean(x) / harmonic_mean(y))
  expect_true(ratio$low < ratio$ratio && ratio$ratio < ratio$high)
  expect_equal(ratio$p_value, stats::t.test(1 / x, 1 / y, paired = TRUE)$p.value)
  # From two runs that differ tenfold the mean cost may be zero, and the rate without limit.
  expect_equal(average_of(c(1, 10), "harmonic")[c("low", "high")], list(low = NA_real_, high = NA_real_))
  expect_equal(compare_runs(x, y, "mean")[1:5], paired_ratio(x, y))
})

test_that("percentiles are not averaged, and compared by the median of the pairs' ratios", {
  expect_true(all(is.na(unlist(average_of(1:9, "percentile")))))
  reference <- c(10, 20, 30, 40, 50, 60)
  found <- compare_runs(reference * c(1.1, 1.3, 1.2, 1.15, 1.25, 1.4), reference, "percentile")
  expect_equal(found$ratio, 1.225)
  expect_equal(c(found$low, found$high), c(1.1, 1.4))
  expect_equal(found$p_value, stats::binom.test(0, 6)$p.value)
  state <- function(n) median_ratio(reference[seq_len(n)] + seq_len(n)^2, reference[seq_len(n)])$state
  expect_equal(vapply(c(0, 1, 2, 5, 6), state, ""),
               c("no pair", "one pair", "few pairs", "few pairs", "interval"))
  expect_equal(median_ratio(2 * reference, reference)$state, "constant")
})

test_that("the interval of the median ratio excludes equality exactly where the sign test rejects", {
  set.seed(8)
  for (i in 1:300) {
    n <- sample(6:20, 1)
    ratios <- exp(stats::rnorm(n, stats::runif(1, -1, 1)))
    ratios[sample(n, 1)] <- 1
    found <- median_ratio(ratios, rep(1, n))
    expect_equal(found$low > 1 || found$high < 1, found$p_value < 0.05)
  }
})

test_that("the interval of the median ratio covers the truth", {
  set.seed(9)
  covered <- vapply(1:2000, function(i) {
    found <- median_ratio(2 * exp(stats::rnorm(9)), rep(1, 9))
    found$low <= 2 && 2 <= found$high
  }, NA)
  expect_gt(mean(covered), 0.945)
})

test_that("the summary averages as the metric's declaration asks", {
  path <- make_results(c("native", "docker"), "pxz", 6, spread = 0.1)
  plan <- read_plan(path)
  tidy <- tidied(plan, "pxz")
  summary_as <- function(statistic) {
    plan$workloads$pxz$metrics$throughput$statistic <- statistic
    summarise_workload(tidy, plan, read_cells(plan))
  }
  native <- tidy$value[tidy$environment == "native"]
  expect_equal(summary_as(NULL), summary_as("mean"))
  expect_equal(summary_as(NULL)$statistic, c("mean", "mean"))
  expect_equal(summary_as("harmonic")$mean[[1]], harmonic_mean(native))
  percentiles <- summary_as("percentile")
  expect_true(all(is.na(percentiles[c("mean", "sd", "mean_low", "mean_high")])))
  expect_equal(levels_of(percentiles)$value[[1]], stats::median(native))
  expect_equal(percentiles$ratio_method, c("", "median of ratios paired by set"))
  expect_error(summary_as("median"), "workloads.pxz.metrics.throughput.statistic: 'median' should be mean or")
})

test_that("the paper tells percentiles by their median, and says so", {
  rows <- rbind(summary_row("native", n = 6),
                summary_row("docker", n = 6, ratio = 1.1, low = 1.05, high = 1.2))
  rows$statistic <- "percentile"
  rows[c("median_low", "median_high")] <- cbind(rows$mean_low, rows$mean_high)
  rows[c("mean", "sd", "mean_low", "mean_high")] <- NA_real_
  evidence <- small_evidence(list(rows))
  expect_match(read_aloud(workload_text(evidence, "stream")),
               "Native reached 10.00 GB/s [9.80, 10.20] (median and 95 % interval, n = 6)", fixed = TRUE)
  expect_match(table_of_intervals(evidence)$notes, "no mean is taken.*STREAM copy", all = FALSE)
  expect_equal(table_as_printed(evidence)$cells[[3]], "10.00")
})

test_that("two testbeds are compared by what is right for the statistic", {
  first <- c(10, 11, 9.5, 10.2)
  second <- c(20, 21, 19.5)
  row <- function(statistic) {
    series <- data.frame(environment = "native", workload = "redis", metric = "m", unit = "ms",
                         better = "lower", factors = "", statistic = statistic)
    compare_series(series, first, second, "", MINIMUM_EFFECT)
  }
  expect_equal(row("mean")$ratio, mean(second) / mean(first))
  harmonic <- row("harmonic")
  expect_equal(c(harmonic$mean_first, harmonic$ratio),
               c(harmonic_mean(first), harmonic_mean(second) / harmonic_mean(first)))
  expect_true(harmonic$ratio_low < harmonic$ratio && harmonic$ratio < harmonic$ratio_high)
  percentiles <- row("percentile")
  expect_equal(percentiles$ratio, stats::median(second) / stats::median(first))
  expect_true(all(is.na(percentiles[c("mean_first", "mean_second", "ratio_low", "p_value")])))
})
