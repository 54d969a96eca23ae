# Intervals, tests and verdicts against known truth.

test_that("blocks' noise falls out of a ratio, whichever way is better", {
  rows <- compare_all(made_results(made_values(native = 10, docker = 9)))
  expect_equal(rows$ratio, 0.9, tolerance = 0.01)
  expect_lt(rows$high - rows$low, 0.02)
  expect_equal(rows[c("verdict", "direction")], data.frame(verdict = "different", direction = "slower"))
  costs <- compare_all(made_results(made_values(native = 10, docker = 9, better = "lower")))
  expect_equal(costs$ratio, 1 / rows$ratio)
  expect_equal(costs$direction, "faster")
})

test_that("a difference is tested against the margin and not against nothing", {
  # One per cent, found with certainty, is no difference that matters.
  rows <- compare_all(made_results(made_values(native = 10, docker = 9.9)))
  expect_lt(rows$high, 1)
  expect_equal(rows$verdict, "equivalent")
  # Three per cent with an interval that holds two is undecided, and says what would decide it.
  open <- compare_all(made_results(made_values(native = 10, docker = 9.7, noise = 0.012)))
  expect_equal(open$verdict, "undecided")
  expect_gt(open$more, 0)
})

test_that("what would decide is what R's own power says, from where the test is made", {
  needed <- function(distance, power) {
    found <- power.t.test(delta = distance, sd = 0.02, sig.level = 0.05, power = power, type = "one.sample",
                          alternative = "one.sided")
    ceiling(found$n)
  }
  edge <- -log(0.98)
  expect_equal(blocks_to_decide(0.96, 0.02), needed(-log(0.96) - edge, 0.8))
  expect_equal(blocks_to_decide(0.99, 0.02), needed(edge + log(0.99), 0.9))
})

test_that("a level is native's by the ratio, and over it where less is better", {
  for (better in c("higher", "lower")) {
    rows <- made_values(native = 10, docker = 9, better = better)
    levels <- add_levels(summarise_runs(rows), compare_all(made_results(rows)))
    native <- levels$environment == "native"
    expect_equal(levels$level[native], levels$mean[native])
    expect_equal(levels$level[!native], 0.9 * levels$level[native], tolerance = 0.002)
    expect_true(all(levels$level_low < levels$level & levels$level < levels$level_high))
  }
})

test_that("an interval is Student's, with as many blocks as are independent", {
  # Neighbours that are opposed count as correlated by 0.15: of ten blocks 7.4 are independent.
  d <- 0.03 + rep(c(0.01, -0.01), 5)
  found <- compare_pairs(exp(d))
  blocks <- 10 * 0.85 / 1.15
  half <- qt(0.975, blocks - 1) * sd(d) / sqrt(blocks)
  expect_equal(log(c(found$low, found$high)), 0.03 + c(-half, half))
  # Neighbours that are alike tell less: as their correlation says, without its bias.
  waves <- 0.03 + 0.01 * sin(1:20)
  correlation <- acf(waves, 1, plot = FALSE)$acf[[2]]
  alike <- correlation + (1 + 4 * correlation) / 20
  expect_equal(error_of_mean(waves)$se, sd(waves) / sqrt(20 * (1 - alike) / (1 + alike)))
  drift <- compare_pairs(exp(sort(d)))
  expect_gt(log(drift$high / drift$low), 4 * half)
  expect_gt(drift$p, found$p)
})

test_that("no larger p is in the margin than at its edge", {
  d <- c(0.03, 0.05, 0.02, 0.04)
  edge <- -log(0.98)
  error <- error_of_mean(d)
  tails <- pt(c(edge - mean(d), -edge - mean(d)) / error$se, error$df)
  expect_equal(compare_pairs(exp(d))$p, sum(tails))
  expect_equal(compare_pairs(exp(-d))$p, sum(tails))
})

test_that("without an interval there is a reason and no verdict", {
  expect_equal(compare_pairs(c(1.1, 1.2))$why, "fewer than 3 blocks")
  expect_equal(compare_pairs(1 + 1:5 / 10, percentile = TRUE)$why, "fewer than 6 blocks")
  expect_equal(compare_pairs(1 + 1:6 / 10, percentile = TRUE)$why, "")
  expect_equal(compare_pairs(rep(0.5, 9))$why, "all blocks give the same ratio")
  expect_equal(verdict_of(NA, NA), "undecided")
})

test_that("families do not lend one another significance", {
  p <- data.frame(p = c(0.03, 1e-9, 1e-9, 1e-9), p_equivalent = 1, ratio = 0.9, se = 0.004, n = 8, why = "",
                  family = c("containers", rep("machines", 3)))
  p <- rbind(p, transform(p[1, ], p = 0.9))
  expect_equal(decide(p)$verdict[[1]], "undecided")
  expect_equal(decide(transform(p, family = "all"))$verdict[[1]], "different")
})

test_that("a few slow laps leave a block's ratio as it is, and rare slowness is shown", {
  rows <- made_values(native = 10, docker = 10)
  lap <- function(value, slow) paste(value * c(1, 1.1, 0.9, 1, rep(slow, 2), 1, 1.2, 0.8, 1), collapse = ";")
  rows$laps <- mapply(lap, rows$value, ifelse(rows$environment == "docker", 0.5, 1))
  # The mean of the laps would be a tenth less.
  rows$value <- rows$value * ifelse(rows$environment == "docker", 0.9, 1)
  found <- compare_all(made_results(rows))
  expect_equal(found$verdict, "equivalent")
  expect_equal(c(found$n, found$slow_n), c(8, 80))
  expect_lt(found$slow, 0.55)
  # Of two laps it is the geometric mean, of more what R's own test estimates.
  expect_equal(pseudomedian(c(0.8, 1.25)), 1)
  laps <- exp(sin(1:11))
  of_r <- wilcox.test(log(laps), conf.int = TRUE)$estimate[[1]]
  expect_equal(log(pseudomedian(laps)), of_r, tolerance = 1e-4)
  # It is the ratio that a tenth of the pairs stay below.
  rows$value <- 10
  laps <- list(native = rep(10, 10), docker = 11:20)
  rows$laps <- vapply(laps[rows$environment], paste, "", collapse = ";")
  expect_equal(compare_all(made_results(rows))$slow, quantile(rep(11:20 / 10, 8), 0.1, names = FALSE))
})

test_that("summaries have Student's interval, and a median's from six runs on", {
  rows <- summarise_runs(made_values(native = 10, n = 5))
  expect_true(is.na(rows$median_low))
  six <- summarise_runs(made_values(native = 10, n = 6))
  expect_equal(c(six$median_low, six$median_high), c(six$min, six$max))
  expect_equal(summarise_runs(made_values(native = 10, n = 20))$median_low,
               sort(made_values(native = 10, n = 20)$value)[[6]])
  of_r <- t.test(made_values(native = 10, n = 6)$value)$conf.int
  expect_equal(c(six$mean_low, six$mean_high), as.vector(of_r))
})

test_that("groups stand in their order behind their keys, without those of which nothing is made", {
  rows <- data.frame(key = c("b", "b", "a", "c"), of = "x", value = 1:4)
  made <- by_group(rows, c("key", "of"), function(group) {
    if (group$key[[1]] != "a") data.frame(sum = sum(group$value))
  })
  expect_equal(made, data.frame(key = c("b", "c"), of = "x", sum = 3:4))
})

test_that("what lies between blocks is told", {
  expect_gt(share_of_blocks(made_values(native = 10, docker = 10))$share, 0.9)
  # Shrout and Fleiss 1979, ICC(3, 1).
  rows <- made_values(native = 10, docker = 9, vm = 8, noise = 0.05)
  x <- log(matrix(rows$value, ncol = 3))
  rest <- x - outer(rowMeans(x), colMeans(x), "+") + mean(x)
  between <- 3 * var(rowMeans(x))
  within <- sum(rest^2) / (7 * 2)
  expect_equal(share_of_blocks(rows)$share, (between - within) / (between + 2 * within))
})
