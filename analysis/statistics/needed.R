# What could have been seen with the pairs there are, and how many more would decide what stays open.

# The share of cases in which so many more sets would decide, if ratio and scatter stay as they were seen.
POWER <- 0.8

# With fewer pairs their scatter is known too badly to say anything of more of them.
FEWEST_PAIRS <- 5

# More sets than these are told as "more than".
MOST_SETS <- 1e6

#' The largest p value with which each comparison would have been called, as things are with the others
#'
#' The procedure of Benjamini and Hochberg rejects a hypothesis where its p value is at most k / m of the
#' level and at least k of the m p values are, for some k.  So with those of the others as they are, its own
#' may be as large as the largest k / m of the level that at least k - 1 others do not exceed.
#'
#' @param p p values of one family; NA where there was no test
#' @return numbers at the same places
largest_called_p <- function(p) {
  count <- sum(!is.na(p))
  steps <- SIGNIFICANCE * seq_len(count) / count
  reached <- findInterval(steps, sort(p))
  vapply(p, function(own) {
    if (is.na(own)) NA_real_ else max(steps[reached - (own <= steps) >= seq_along(steps) - 1])
  }, 0)
}

#' The smallest difference from native that would have been called
#'
#' A test of Student rejects where the mean difference is farther from zero than its quantile times the
#' standard error.
#'
#' @param scatter as from `pair_scatter`
#' @param n pairs
#' @param p largest p value that is called
#' @param minimum effect, below which no difference is called
#' @return share of native's mean; NA where there is no test
smallest_called <- function(scatter, n, p, minimum = MINIMUM_EFFECT) {
  pmax(minimum, quantile_t(1 - p / 2, n) * scatter / sqrt(n))
}

#' How many pairs bring a limit of an interval to where it decides
#'
#' With so many, the limit is on this side of what it has to exclude with the given power.  The quantiles are
#' those of the pairs there are, from which the scatter was estimated.
#'
#' @param distance of the ratio from what is to be excluded, as a share of native's mean
#' @param scatter,n as for `smallest_called`
#' @param alpha level of the one-sided test
#' @param power probability of deciding
#' @return numbers of pairs, not rounded; infinite where the distance is zero or below
#' @source S. A. Julious, Sample sizes for clinical trials with Normal data, Statistics in Medicine 23, 2004,
#'   with Student's quantiles in the normal's place
pairs_for <- function(distance, scatter, n, alpha, power = POWER) {
  needed <- ((quantile_t(1 - alpha, n) + quantile_t(power, n)) * scatter / distance)^2
  ifelse(distance > 1e-9, needed, Inf)
}

#' How many pairs would decide a comparison, if its ratio and its scatter stay as they were seen
#'
#' Where the ratio is away from 1 by more than the minimum effect that is to call the difference, elsewhere to
#' exclude both differences of the size of the minimum effect, each with half of what the power leaves.
#'
#' @param ratio,scatter,n of the comparisons
#' @param p largest p values that are called
#' @param minimum effect
#' @return numbers of pairs, not rounded
pairs_to_decide <- function(ratio, scatter, n, p, minimum = MINIMUM_EFFECT) {
  away <- abs(ratio - 1)
  called <- pmax(pairs_for(away, scatter, n, p / 2), pairs_for(away - minimum, scatter, n, 0.5))
  equal <- pairs_for(minimum - away, scatter, n, SIGNIFICANCE, (1 + POWER) / 2)
  ifelse(away > minimum, called, equal)
}

#' How many more sets that are, with what is not known of the scatter
#'
#' @param needed as from `pairs_to_decide`
#' @param n pairs there are
#' @return data frame: more_sets, and more_sets_low and more_sets_high, the same at the limits of the 95 %
#'   interval of the variance (of normal differences, a chi-squared distribution's); NA from fewer than
#'   FEWEST_PAIRS pairs; at most MOST_SETS
more_sets <- function(needed, n) {
  more <- function(factor) {
    sets <- pmin(pmax(ceiling(needed * factor - n), 1), MOST_SETS)
    ifelse(n < FEWEST_PAIRS, NA_real_, sets)
  }
  freedom <- pmax(n - 1, 1)
  tail <- (1 - LEVEL) / 2
  data.frame(more_sets = more(1), more_sets_low = more(freedom / stats::qchisq(1 - tail, freedom)),
             more_sets_high = more(freedom / stats::qchisq(tail, freedom)))
}

#' What it would take to decide a claim, if the ratios and scatters of its parts stay as they were seen
#'
#' A part whose ratio lies outside of the tolerance would contradict it, so that the first such part to be
#' shown outside decides; without one all parts must be shown within.
#'
#' @param ratio,scatter,n of the parts
#' @param from,to limits of the tolerance; NA for no limit
#' @param verdicts of the parts, as from `claim_verdict`
#' @param workload of the parts
#' @param seconds as from `set_seconds`
#' @return list: more_sets, more_sets_low and more_sets_high, as from `more_sets`, of the workload that takes
#'   most, and more_minutes, of all workloads
claim_needs <- function(ratio, scatter, n, from, to, verdicts, workload, seconds) {
  from <- if (is.na(from)) -Inf else from
  to <- if (is.na(to)) Inf else to
  beyond <- pmax(from - ratio, ratio - to)
  outside <- beyond > 0
  power <- if (is.finite(from) && is.finite(to)) (1 + POWER) / 2 else POWER
  needed <- ifelse(outside, pairs_for(beyond, scatter, n, SIGNIFICANCE / 2 / length(ratio)),
                   pairs_for(-beyond, scatter, n, SIGNIFICANCE, power))
  more <- more_sets(needed, n)
  rows <- if (any(outside %in% TRUE)) {
    which.min(ifelse(outside, more$more_sets, NA_real_))
  } else {
    by_workload <- split(which(verdicts != "reproduced"), workload[verdicts != "reproduced"])
    vapply(by_workload, function(at) at[[order(-more$more_sets[at], na.last = FALSE)[[1]]]], 0L)
  }
  if (length(rows) == 0) {
    return(as.list(c(more[NA_integer_, ], more_minutes = NA_real_)))
  }
  minutes <- sum(minutes_of(more$more_sets[rows], workload[rows], seconds))
  c(more[rows[[order(-more$more_sets[rows], na.last = FALSE)[[1]]]], ], list(more_minutes = minutes))
}

#' Student's quantile for a mean of pairs
#'
#' @param share probability
#' @param n pairs
#' @return number; NA from fewer than two pairs
quantile_t <- function(share, n) {
  freedom <- ifelse(n >= 2, n - 1, NA_real_)
  stats::qt(share, freedom)
}

#' What more sets take
#'
#' @param sets numbers
#' @param workload name for each
#' @param seconds as from `set_seconds`
#' @return minutes; NA where it is not known what a set takes
minutes_of <- function(sets, workload, seconds) {
  unname(sets * seconds[workload] / 60)
}
