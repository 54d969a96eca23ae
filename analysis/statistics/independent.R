# Ratios of means of two independent samples: runs that nothing pairs, as those of two testbeds.

#' Ratio of the means of two independent samples, with Fieller's interval for unequal variances
#'
#' The ratio q is kept wherever Welch's t test does not tell the second sample from q times the first.  The
#' degrees of freedom are Satterthwaite's for that q, and so the limits are found numerically.  Where the
#' first sample's mean can't be told from zero, the set that is kept is unbounded, and no interval is given.
#'
#' @param first,second runs; nothing pairs them
#' @param level of confidence
#' @return list: `ratio` (second to first), `low`, `high` and `state`: "interval", "unbounded" (no limits),
#'   "constant" (neither varies, and so there are no limits) or "single run" (of either, and no limits)
#' @source E. C. Fieller, Some problems in interval estimation, Journal of the Royal Statistical Society B 16,
#'   1954; with Satterthwaite's degrees of freedom as in A. C. Tamhane, B. R. Logan, Finding the maximum safe
#'   dose level for heteroscedastic data, Journal of Biopharmaceutical Statistics 14, 2004
independent_ratio <- function(first, second, level = LEVEL) {
  ratio <- mean(second) / mean(first)
  result <- function(state, low = NA_real_, high = NA_real_) {
    list(ratio = ratio, low = low, high = high, state = state)
  }
  if (min(length(first), length(second)) < 2) {
    return(result("single run"))
  }
  if (all_equal(first) && all_equal(second)) {
    return(result("constant"))
  }
  error <- stats::var(first) / length(first)
  t_first <- stats::qt((1 + level) / 2, length(first) - 1)
  if (mean(first)^2 <= t_first^2 * error) {
    return(result("unbounded"))
  }
  excess <- function(q) {
    found <- welch(q * first, second)
    found$distance - stats::qt((1 + level) / 2, found$freedom) * found$error
  }
  step <- welch(ratio * first, second)$error / abs(mean(first))
  limit <- function(direction) {
    inner <- ratio
    reach <- step
    while (excess(ratio + direction * reach) <= 0) {
      inner <- ratio + direction * reach
      reach <- 2 * reach
    }
    stats::uniroot(excess, sort(c(inner, ratio + direction * reach)), tol = 1e-12 * abs(ratio))$root
  }
  result("interval", limit(-1), limit(1))
}

#' What Welch's t test compares
#'
#' @param first,second runs
#' @return list: `distance` of the means, its standard `error`, and Satterthwaite's degrees of `freedom`
#' @source B. L. Welch, The generalization of "Student's" problem, Biometrika 34, 1947
welch <- function(first, second) {
  n <- c(length(first), length(second))
  parts <- c(stats::var(first), stats::var(second)) / n
  list(distance = abs(mean(second) - mean(first)), error = sqrt(sum(parts)),
       freedom = sum(parts)^2 / sum(parts^2 / (n - 1)))
}

#' Test whether the means of two independent samples differ: Welch's t test
#'
#' It belongs to the interval of `independent_ratio`: where that has limits it excludes the ratio 1 if, and
#' only if, this p value is below 1 - level.
#'
#' @param first,second runs; nothing pairs them
#' @return p value; NA wherever `independent_ratio` gives no limits
independent_p_value <- function(first, second) {
  if (independent_ratio(first, second)$state != "interval") {
    return(NA_real_)
  }
  found <- welch(first, second)
  2 * stats::pt(-found$distance / found$error, found$freedom)
}

#' Test whether the means of two independent samples are equal but for less than an effect: two one-sided
#' tests
#'
#' It belongs to the interval of `independent_ratio` at the level 90 %: where that has limits it lies within
#' the effect if, and only if, this p value is below 5 %.
#'
#' @param first,second runs of two testbeds
#' @param effect a share
#' @return p value; NA wherever `independent_ratio` gives no limits
#' @source as of `paired_equal_p`
independent_equal_p <- function(first, second, effect) {
  if (independent_ratio(first, second)$state != "interval") {
    return(NA_real_)
  }
  one_sided <- function(q, direction) {
    found <- welch(q * first, second)
    stats::pt(-direction * (mean(second) - q * mean(first)) / found$error, found$freedom)
  }
  max(one_sided(1 - effect, 1), one_sided(1 + effect, -1))
}
