# Whether enough runs were measured: repetitions are added until every mean is known well enough.

#' Relative half-width of the interval of a mean, or of a median where there is no mean
#'
#' @param summary rows of a summary
#' @return numeric vector, a share of the mean; infinite where there is no interval; zero where the runs do
#'   not vary
relative_half_width <- function(summary) {
  level <- levels_of(summary)
  width <- (level$high - level$low) / 2 / abs(level$value)
  width[is.na(width)] <- Inf
  constant <- summary$n > 1 & !is.na(summary$min) & summary$min == summary$max
  width[constant] <- 0
  width
}

#' Whether enough blocks were measured
#'
#' The rule looks at the widths of intervals alone and never at the differences between environments, so that
#' a run does not end because its result looks good.  (Looking at the data to decide when to stop still
#' narrows the final intervals a little; the paper says how many blocks there were and why.)
#'
#' @param summary summaries of all workloads after a block, of a sweep only the points that stand for it
#' @param precision list of min, max (blocks) and target (largest relative half-width of a mean's interval)
#' @param block number of blocks measured so far
#' @return list of block, target, enough, reason, metrics and reached (how many there are, and how many are
#'   within the target), and widest: environment, workload, metric, factors and half_width (null if there is
#'   no interval)
#' @source R. Maricq et al.: Taming Performance Variability. OSDI 2018, for repetitions up to a given
#'   precision
enough_runs <- function(summary, precision, block) {
  widths <- relative_half_width(summary)
  within <- widths <= precision$target
  widest <- which.max(widths)
  all_within <- all(within)
  reason <- if (all_within) {
    "the target was reached"
  } else if (block >= precision$max) {
    "the largest number of blocks was reached"
  } else {
    "more blocks are needed"
  }
  list(
    block = block, target = precision$target, enough = all_within || block >= precision$max, reason = reason,
    metrics = nrow(summary), reached = sum(within),
    widest = c(
      as.list(summary[widest, c("environment", "workload", "metric", "factors")]),
      list(half_width = if (is.finite(widths[[widest]])) widths[[widest]])
    )
  )
}
