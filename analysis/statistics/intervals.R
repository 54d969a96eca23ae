# One small function for each statistic.  The unit is the independent run; a vector of runs is in the order of
# measurement wherever the order matters.  What can't be estimated from the runs there are is NA.

LEVEL <- 0.95
SIGNIFICANCE <- 0.05

# The level of the interval that belongs to two one-sided tests.
INNER_LEVEL <- 1 - 2 * SIGNIFICANCE

# The smallest difference that matters, as a share of native.
MINIMUM_EFFECT <- 0.02

#' Student's t interval of the mean
#'
#' @param x runs
#' @param level of confidence
#' @return named vector low, high; NA from one run, or where all runs are equal, since then nothing is known
#'   of the variation
interval_of_mean <- function(x, level = LEVEL) {
  n <- length(x)
  if (n < 2 || all_equal(x)) {
    return(c(low = NA_real_, high = NA_real_))
  }
  half <- stats::qt((1 + level) / 2, n - 1) * stats::sd(x) / sqrt(n)
  c(low = mean(x) - half, high = mean(x) + half)
}

#' Distribution-free interval of the median
#'
#' The narrowest pair of order statistics, symmetric in rank, that covers the median at least at this level:
#' the number of runs below the median is binomial with probability 1/2.
#'
#' @param x runs
#' @param level of confidence
#' @return named vector low, high; NA where even the extremes do not reach the level (at 95 %, below 6 runs)
#' @source W. J. Conover, Practical Nonparametric Statistics, 3rd ed., 1999, section 3.2
interval_of_median <- function(x, level = LEVEL) {
  rank <- median_rank(length(x), level)
  sorted <- sort(x)
  c(low = sorted[rank], high = sorted[length(x) + 1 - rank])
}

#' Rank of the lower limit of the median's interval
#'
#' @param n number of runs
#' @param level of confidence
#' @return the largest k such that the k-th smallest and the k-th largest run cover the median at this level;
#'   NA where there is none
median_rank <- function(n, level = LEVEL) {
  # It is the binomial's quantile or beside it: that is not worked out for all ranks.
  ranks <- as.integer(stats::qbinom((1 - level) / 2, n, 0.5)) + -1:1
  ranks <- ranks[ranks >= 1 & ranks <= n %/% 2]
  enough <- 1 - 2 * stats::pbinom(ranks - 1, n, 0.5) >= level
  if (any(enough)) max(ranks[enough]) else NA_integer_
}

#' Ratio of two paired means, with Fieller's interval
#'
#' The ratio q is kept wherever the mean of `measured - q * reference` over the pairs differs from zero by no
#' more than Student's t allows.  That is a quadratic inequality in q, so that the interval accounts for the
#' variation of both and for their correlation within a set.  Where the reference's mean can't be told from
#' zero, the set that is kept is unbounded, and no interval is given.
#'
#' @param measured,reference runs of two environments; elements at one place are of one set
#' @param level of confidence
#' @return list: `ratio`, `low`, `high`, `n` (pairs) and `state`: "interval", "unbounded" (no limits),
#'   "constant" (no variation and so no limits), "one pair" or "no pair" (no ratio)
#' @source E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16,
#'   1954
paired_ratio <- function(measured, reference, level = LEVEL) {
  n <- length(measured)
  result <- function(state, ratio = NA_real_, low = NA_real_, high = NA_real_) {
    list(ratio = ratio, low = low, high = high, n = n, state = state)
  }
  if (n == 0) {
    return(result("no pair"))
  }
  ratio <- mean(measured) / mean(reference)
  if (n == 1) {
    return(result("one pair", ratio))
  }
  if (max(abs(measured - ratio * reference)) <= 1e-12 * max(abs(measured))) {
    return(result("constant", ratio))
  }
  t2 <- stats::qt((1 + level) / 2, n - 1)^2 / n
  a <- mean(reference)^2 - t2 * stats::var(reference)
  b <- mean(measured) * mean(reference) - t2 * stats::cov(measured, reference)
  c <- mean(measured)^2 - t2 * stats::var(measured)
  if (a <= 0) {
    return(result("unbounded", ratio))
  }
  half <- sqrt(max(b^2 - a * c, 0))
  result("interval", ratio, (b - half) / a, (b + half) / a)
}

#' Test whether two paired means differ: Student's t test of the differences within the sets
#'
#' It belongs to the interval of `paired_ratio`: where that has limits it excludes the ratio 1 if, and only
#' if, this p value is below 1 - level, since Fieller's set at the ratio 1 is this very test.
#'
#' @param measured,reference runs of two environments; elements at one place are of one set
#' @return p value; NA wherever `paired_ratio` gives no limits
#' @source Student, The probable error of a mean, Biometrika 6, 1908
paired_p_value <- function(measured, reference) {
  if (paired_ratio(measured, reference)$state != "interval") {
    return(NA_real_)
  }
  difference <- measured - reference
  n <- length(difference)
  error <- stats::sd(difference) / sqrt(n)
  2 * stats::pt(-abs(mean(difference)) / error, n - 1)
}

#' Test whether two paired means are equal but for less than the minimum effect: two one-sided tests
#'
#' It belongs to the interval of `paired_ratio` at the level 90 %: where that has limits it lies within the
#' minimum effect if, and only if, this p value is below 5 %.
#'
#' @param measured,reference runs of two environments; elements at one place are of one set
#' @param minimum effect, as a share
#' @return p value, the larger of the two; NA wherever `paired_ratio` gives no limits
#' @source D. J. Schuirmann, A comparison of the two one-sided tests procedure and the power approach, Journal
#'   of Pharmacokinetics and Biopharmaceutics 15, 1987
paired_equal_p <- function(measured, reference, minimum = MINIMUM_EFFECT) {
  if (paired_ratio(measured, reference)$state != "interval") {
    return(NA_real_)
  }
  one_sided <- function(difference) {
    n <- length(difference)
    stats::pt(-mean(difference) / (stats::sd(difference) / sqrt(n)), n - 1)
  }
  max(one_sided(measured - (1 - minimum) * reference), one_sided((1 + minimum) * reference - measured))
}

#' p values adjusted for the number of comparisons, so that the false-discovery rate is controlled
#'
#' Calling every difference whose adjusted p value is below 5 % keeps the expected share of false ones among
#' those called at 5 % at most.  That holds for independent comparisons and for positively dependent ones, as
#' are those with one common reference.
#'
#' @param p p values of one family; NA where there was no test, which does not count
#' @return adjusted p values, at the same places
#' @source Y. Benjamini, Y. Hochberg, Controlling the false discovery rate, Journal of the Royal Statistical
#'   Society B 57, 1995; for dependence Y. Benjamini, D. Yekutieli, Annals of Statistics 29, 2001
adjusted_p_values <- function(p) {
  stats::p.adjust(p, "BH")
}

#' Whether all runs are equal
#'
#' @param x runs
#' @return TRUE or FALSE
all_equal <- function(x) {
  length(unique(x)) <= 1
}
