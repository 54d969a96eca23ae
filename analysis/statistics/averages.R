# What is right to average, and how: costs by the arithmetic mean, rates over equal work by the harmonic one,
# percentiles not at all.  A metric's declaration says what it is (`statistic` in workload.yaml).

#' Harmonic mean of rates over equal work: the rate of all work over all time
#'
#' @param x rates, above zero
#' @return number
#' @source J. E. Smith, Characterizing computer performance with a single number, Communications of the ACM
#'   31, 1988
harmonic_mean <- function(x) {
  1 / mean(1 / x)
}

#' The average of runs, with its interval
#'
#' The interval of a harmonic mean is that of the mean of the costs, the reciprocals, turned round.
#'
#' @param x runs
#' @param statistic one of STATISTICS
#' @param level of confidence
#' @return list: mean, low, high; NA for percentiles, of which only the median over the runs is known, and low
#'   and high NA where they can't be estimated
average_of <- function(x, statistic, level = LEVEL) {
  switch(
    statistic,
    mean = c(list(mean = mean(x)), as.list(interval_of_mean(x, level))),
    harmonic = {
      costs <- interval_of_mean(1 / x, level)
      bounded <- isTRUE(costs[["low"]] > 0)
      list(mean = harmonic_mean(x), low = if (bounded) 1 / costs[["high"]] else NA_real_,
           high = if (bounded) 1 / costs[["low"]] else NA_real_)
    },
    percentile = list(mean = NA_real_, low = NA_real_, high = NA_real_)
  )
}

#' Ratio of paired runs, by what is right for their statistic
#'
#' The ratio of two harmonic means is that of the means of the costs, the other way round, and so are its
#' interval and its test.
#'
#' @param measured,reference runs of two environments; elements at one place are of one set
#' @param statistic one of STATISTICS
#' @param level of confidence
#' @return as from `paired_ratio`; `p_value`, as from `paired_p_value`; `equal_p`, as from `paired_equal_p`;
#'   and `scatter`, the standard deviation of the pairs about the ratio as a share of the reference's mean, NA
#'   without an interval
compare_runs <- function(measured, reference, statistic, level = LEVEL) {
  switch(
    statistic,
    mean = compare_means(measured, reference, level),
    harmonic = compare_means(1 / reference, 1 / measured, level),
    percentile = median_ratio(measured, reference, level)
  )
}

#' Ratio of paired means, with the tests that belong to it
#'
#' @inheritParams compare_runs
#' @return as from `compare_runs`
compare_means <- function(measured, reference, level = LEVEL) {
  found <- paired_ratio(measured, reference, level)
  scatter <- stats::sd(measured - found$ratio * reference) / mean(reference)
  c(found, list(p_value = paired_p_value(measured, reference), equal_p = paired_equal_p(measured, reference),
                scatter = if (found$state == "interval") scatter else NA_real_))
}

#' Median of the ratios of pairs, with its distribution-free interval and the sign test that belongs to it
#'
#' The interval excludes 1 if, and only if, the p value is below 1 - level: both count the pairs on the rarer
#' side of 1, and pairs at 1 count for both sides.  The two one-sided tests of `equal_p` are sign
#' tests too.  The scatter is that which would give means an interval of this width.
#'
#' @inheritParams compare_runs
#' @return as from `compare_runs`; the state "few pairs" is that of fewer pairs than an interval takes
#' @source W. J. Conover, Practical Nonparametric Statistics, 3rd ed., 1999, sections 3.2 and 3.4
median_ratio <- function(measured, reference, level = LEVEL) {
  ratios <- measured / reference
  n <- length(ratios)
  limits <- interval_of_median(ratios, level)
  state <- if (n < 2) {
    c("no pair", "one pair")[[n + 1]]
  } else if (all_equal(ratios)) {
    "constant"
  } else if (is.na(limits[["low"]])) {
    "few pairs"
  } else {
    "interval"
  }
  known <- state == "interval"
  rarer <- min(sum(ratios <= 1), sum(ratios >= 1))
  beyond <- max(sum(ratios <= 1 - MINIMUM_EFFECT), sum(ratios >= 1 + MINIMUM_EFFECT))
  half <- (limits[["high"]] - limits[["low"]]) / 2
  list(ratio = if (n == 0) NA_real_ else stats::median(ratios),
       low = if (known) limits[["low"]] else NA_real_, high = if (known) limits[["high"]] else NA_real_,
       n = n, state = state, p_value = if (known) min(1, 2 * stats::pbinom(rarer, n, 0.5)) else NA_real_,
       equal_p = if (known) stats::pbinom(beyond, n, 0.5) else NA_real_,
       scatter = if (known) half * sqrt(n) / quantile_t((1 + level) / 2, n) else NA_real_)
}

#' The levels that rows of the summary are told by
#'
#' @param rows of a summary
#' @return data frame: value, low, high, the mean and its interval, or the median and its own where there is
#'   no mean; `median`, TRUE where it is that
levels_of <- function(rows) {
  median <- is.na(rows$mean) & !is.na(rows$median)
  data.frame(value = ifelse(median, rows$median, rows$mean),
             low = ifelse(median, rows$median_low, rows$mean_low),
             high = ifelse(median, rows$median_high, rows$mean_high), median = median)
}
