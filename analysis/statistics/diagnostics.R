# What else is to be known of a series of runs: whether they are normal, independent and free of drift,
# which of them stand apart, and how many more would be needed.  The rules are those of intervals.R.

# How well a median should be known, as a share of it, and the most runs that are thought of for that.
TARGET <- 0.01
MOST_RUNS <- 1000

# Fewer runs say too little of the values that were not measured.
FEWEST_RUNS <- 10

#' How many runs the median's interval would need to be as narrow as wanted
#'
#' The distribution-free interval of the median of s runs is thought of over all samples of s that can be
#' drawn from these runs with replacement; s is enough where the means of both its limits lie within the
#' target.  The means are exact (the k-th smallest of s draws is at most the i-th smallest run with a
#' probability that is a beta distribution's), so that no random numbers are needed.  Nothing is assumed of
#' the distribution, but values that were not measured can't be known, so that few runs give no answer.
#'
#' @param x runs
#' @param target largest distance of the limits from the median, as a share of it
#' @param most the cap
#' @param level of confidence
#' @return number of runs; Inf where the cap is not enough; NA from fewer than FEWEST_RUNS runs or where
#'   all are equal
#' @source R. Maricq et al., Taming Performance Variability, OSDI 2018, whose CONFIRM draws without
#'   replacement, and so can't look beyond the runs there are
runs_needed <- function(x, target = TARGET, most = MOST_RUNS, level = LEVEL) {
  n <- length(x)
  if (n < FEWEST_RUNS || all_equal(x)) {
    return(NA_real_)
  }
  sorted <- sort(x)
  middle <- stats::median(x)
  steps <- sorted - c(sorted[-1], 0)
  mean_of_smallest <- function(k, s) {
    # Summed by parts: steps between values times the chance to lie below.
    colSums(steps * matrix(stats::pbeta(rep(seq_len(n) / n, length(s)), rep(k, each = n),
                                        rep(s + 1 - k, each = n)), n))
  }
  near <- function(limit) abs(limit - middle) <= target * abs(middle)
  # In batches, each of which costs little more than a single one.
  for (from in seq(1, most, 50)) {
    s <- from:min(from + 49, most)
    rank <- vapply(s, median_rank, 0, level = level)
    s <- s[!is.na(rank)]
    rank <- rank[!is.na(rank)]
    enough <- s[near(mean_of_smallest(rank, s)) & near(mean_of_smallest(s + 1 - rank, s))]
    if (length(enough) > 0) {
      return(enough[[1]])
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
