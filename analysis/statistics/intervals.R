# One small function for each statistic.  The unit is the independent run; a vector of runs is in the order of
# measurement wherever the order matters.  What can't be estimated from the runs there are is NA.

LEVEL <- 0.95
SIGNIFICANCE <- 0.05

# How well a median should be known, as a share of it, and the most runs that are thought of for that.
TARGET <- 0.01
MOST_RUNS <- 1000

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
  ranks <- seq_len(n %/% 2)
  enough <- 1 - 2 * stats::pbinom(ranks - 1, n, 0.5) >= level
  if (any(enough)) max(ranks[enough]) else NA_integer_
}

#' Ratio of two paired means, with Fieller's interval
#'
#' The ratio q is kept wherever the mean of `measured - q * reference` over the pairs differs from zero by no
#' more than Student's t allows.  That is a quadratic inequality in q, so that the interval accounts for the
#' variation of both and for their correlation within a block.  Where the reference's mean can't be told from
#' zero, the set that is kept is unbounded, and no interval is given.
#'
#' @param measured,reference runs of two environments; elements at one place are of one block
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

#' Test whether two paired means differ: Student's t test of the differences within the blocks
#'
#' It belongs to the interval of `paired_ratio`: where that has limits it excludes the ratio 1 if, and only
#' if, this p value is below 1 - level, since Fieller's set at the ratio 1 is this very test.
#'
#' @param measured,reference runs of two environments; elements at one place are of one block
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
  tested <- which(!is.na(p))
  falling <- tested[order(p[tested], decreasing = TRUE)]
  rank <- rev(seq_along(falling))
  p[falling] <- cummin(pmin(1, p[falling] * length(falling) / rank))
  p
}

#' How many runs the median's interval would need to be as narrow as wanted
#'
#' The distribution-free interval of the median of s runs is thought of over all samples of s that can be
#' drawn from these runs with replacement; s is enough where the means of both its limits lie within the
#' target.  The means are exact (the k-th smallest of s draws is at most the i-th smallest run with a
#' probability that is a beta distribution's), so that no random numbers are needed.  Nothing is assumed of
#' the distribution, but runs that were not measured can't be known: from few runs the answer is a rough one.
#'
#' @param x runs
#' @param target largest distance of the limits from the median, as a share of it
#' @param most the cap
#' @param level of confidence
#' @return number of runs; Inf where the cap is not enough; NA from fewer than five runs or where all are
#'   equal
#' @source R. Maricq et al., Taming Performance Variability, OSDI 2018, whose CONFIRM draws without
#'   replacement, and so can't look beyond the runs there are
runs_needed <- function(x, target = TARGET, most = MOST_RUNS, level = LEVEL) {
  n <- length(x)
  if (n < 5 || all_equal(x)) {
    return(NA_real_)
  }
  sorted <- sort(x)
  middle <- stats::median(x)
  mean_of_smallest <- function(k, s) {
    sum(sorted * diff(c(0, stats::pbeta(seq_len(n) / n, k, s + 1 - k))))
  }
  for (s in seq_len(most)) {
    rank <- median_rank(s, level)
    if (!is.na(rank)) {
      limits <- c(mean_of_smallest(rank, s), mean_of_smallest(s + 1 - rank, s))
      if (all(abs(limits - middle) <= target * abs(middle))) {
        return(s)
      }
    }
  }
  Inf
}

#' Shapiro and Wilk's test of normality
#'
#' @param x runs
#' @return p value; NA from fewer than three runs or where all are equal
#' @source S. S. Shapiro, M. B. Wilk, An analysis of variance test for normality, Biometrika 52, 1965
normality <- function(x) {
  if (length(x) < 3 || length(x) > 5000 || all_equal(x)) {
    return(NA_real_)
  }
  stats::shapiro.test(x)$p.value
}

#' Autocorrelation of successive runs
#'
#' @param x runs in the order of measurement
#' @return coefficient at lag 1; NA from fewer than five runs or where all are equal
lag1_autocorrelation <- function(x) {
  n <- length(x)
  if (n < 5 || all_equal(x)) {
    return(NA_real_)
  }
  centred <- x - mean(x)
  sum(centred[-1] * centred[-n]) / sum(centred^2)
}

#' Limits of the autocorrelation of independent runs
#'
#' @param n number of runs
#' @param level of confidence
#' @return named vector low, high
#' @source R. L. Anderson, Distribution of the serial correlation coefficient, Annals of Mathematical
#'   Statistics 13, 1942
autocorrelation_limits <- function(n, level = LEVEL) {
  half <- stats::qnorm((1 + level) / 2) * sqrt(n - 2)
  c(low = (-1 - half) / (n - 1), high = (-1 + half) / (n - 1))
}

#' Test of drift: Kendall's rank correlation of the runs with the order of measurement
#'
#' The p value is exact below 50 runs without ties, and of the normal approximation elsewhere.  Five runs are
#' the fewest from which a two-sided p value below 0.05 is possible.
#'
#' @param x runs in the order of measurement
#' @return p value; NA from fewer than five runs or where all are equal
#' @source H. B. Mann, Nonparametric tests against trend, Econometrica 13, 1945
drift <- function(x) {
  n <- length(x)
  if (n < 5 || all_equal(x)) {
    return(NA_real_)
  }
  exact <- n < 50 && anyDuplicated(x) == 0
  stats::cor.test(seq_len(n), x, method = "kendall", exact = exact)$p.value
}

#' Runs that stand far from the others
#'
#' A run is an outlier where its modified z score, 0.6745 (x - median) / MAD, is above 3.5 in size.  Where
#' more than half of the runs are equal the MAD is zero, and every other run is an outlier.  The rule is
#' generous with few runs: of five that are normal it marks one in a fifth of all cases, which is why an
#' outlier is shown and never dropped.
#'
#' @param x runs
#' @return logical vector; all FALSE from fewer than five runs
#' @source B. Iglewicz, D. C. Hoaglin, How to Detect and Handle Outliers, ASQC Quality Press, 1993
outliers <- function(x) {
  away <- abs(x - stats::median(x))
  length(x) >= 5 & 0.6745 * away > 3.5 * stats::median(away)
}

#' Whether all runs are equal
#'
#' @param x runs
#' @return TRUE or FALSE
all_equal <- function(x) {
  length(unique(x)) <= 1
}
