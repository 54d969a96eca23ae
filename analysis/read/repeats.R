# What a benchmark repeats within a run, condensed by its parser to one value.

#' Harmonic mean of rates over equal work: the rate of all work over all time
#'
#' @param x rates, above zero
#' @return number
#' @source J. E. Smith, Characterizing computer performance with a single number, Communications of the ACM
#'   31, 1988
harmonic_mean <- function(x) {
  1 / mean(1 / x)
}

# Samples that must lie beyond a percentile: with fewer, as for the 90th of fewer than 30 samples, it is
# little more than the largest one.
SAMPLES_BEYOND <- 3

#' Percentile of the samples of one run, for parsers: the nearest rank, a value that was measured
#'
#' Samples of different runs are never pooled, and percentiles of different runs never averaged.
#'
#' @param samples measured values of one run
#' @param share of the samples that lie at or below the percentile, between 0 and 1
#' @return number; NA from so few samples that fewer than SAMPLES_BEYOND lie beyond it on either side
#' @source T. Hoefler, R. Belli, Scientific benchmarking of parallel computing systems, SC 2015; nearest rank:
#'   R. J. Hyndman, Y. Fan, Sample quantiles in statistical packages, American Statistician 50, 1996,
#'   definition 1
percentile <- function(samples, share) {
  if (length(samples) * min(share, 1 - share) < SAMPLES_BEYOND - 1e-9) {
    return(NA_real_)
  }
  unname(stats::quantile(samples, share, type = 1))
}
