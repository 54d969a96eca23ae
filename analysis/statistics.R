# Means, ratios and verdicts.  A block is one workload, once in each environment, side by side in
# random order.  The runs of a block are paired; intervals are of the logarithms of their ratios.
# Sources of the methods: docs/statistics.md.

# The smallest difference that matters, set before measuring, and others for the appendix.
# SMALLEST_DIFFERENCE of strata/experiment/precision.py has the same value.
MARGIN <- 0.02
MARGINS <- c(0.01, 0.02, 0.05)
# The error rate of intervals, and of all verdicts of a table together.
ALPHA <- 0.05
# The minimum number of blocks for an interval, and for a verdict.
INTERVAL_BLOCKS <- 3
VERDICT_BLOCKS <- 5
# The minimum number of sessions for an interval that holds for their machine, and the minimum
# number of machines for one that holds for machines.
MACHINE_SESSIONS <- 3
POOLED_MACHINES <- 5
# Limits of the estimated correlation of neighbouring blocks.
MIN_CORRELATION <- 0.15
MAX_CORRELATION <- 0.8
# A lap stalled if it took so many times the median of its cell's laps.
STALL <- 1.2
# A smaller standard deviation is an error of rounding: the values do not vary.
NO_SCATTER <- 1e-12
# The probability with which a test is to find what it looks for: one test, and each of two tests
# that both have to.
POWER <- 0.8
POWER_OF_TWO <- 0.9

#' Estimate the mean ratio of blocks, with its interval
#'
#' The mean is geometric.  Ratios that are not all above 0 give no interval.
#'
#' @param ratios a number for each block, in the order of measurement
#' @param level confidence level of the interval
#' @return the row of estimate_difference, with scatter (standard deviation of the logarithms)
estimate_mean_ratio <- function(ratios, level = 1 - ALPHA) {
  # log warns of a ratio below 0, which becomes NaN; the row then says why it has no interval.
  logs <- suppressWarnings(log(ratios))
  row <- estimate_difference(list(logs), level, items = "blocks", quantity = "ratio")
  row$scatter <- if (length(logs) > 1 && all(is.finite(logs))) stats::sd(logs) else NA_real_
  row
}

#' Compare two samples that share no blocks, or describe one sample
#'
#' Samples share no blocks if they are of two experiments, or of logs whose runs are not paired.
#'
#' @param values,reference numbers in the order of measurement; reference is NULL for one sample
#' @param how "ratio" (of values to reference), "difference" (values less reference) or "level" (the
#'   mean of values alone); the key `how` of published/claims.json
#' @param level confidence level of the interval
#' @param items noun for the values in `why`, for example "blocks"; used for ratios only
#' @param estimate_error function of a sample that returns se and df; used for ratios only
#' @return the row of estimate_difference; `ratio` is the ratio, the difference or the mean; se is
#'   on the scale of logarithms for a ratio, else on the scale of shares of the largest value
compare_samples <- function(values, reference = NULL, how = "ratio", level = 1 - ALPHA,
                            items = "runs", estimate_error = estimate_standard_error) {
  samples <- Filter(Negate(is.null), list(values, reference))
  if (how == "ratio") {
    logs <- lapply(samples, function(sample) suppressWarnings(log(sample)))
    return(estimate_difference(logs, level, items = items, estimate_error = estimate_error))
  }
  # Values are divided by the largest, so that no square overflows or vanishes.
  largest <- max(abs(unlist(samples)), 0)
  if (!is.finite(largest) || largest == 0) largest <- 1
  estimate_difference(lapply(samples, `/`, largest), level,
                      transform_back = function(value) value * largest)
}

#' Estimate the mean of one sample, or the difference between the means of two, with its interval
#'
#' The interval is Student's for one sample, and Welch's (1947) for two.
#'
#' @param samples list of one or two numeric vectors; the second mean is subtracted from the first
#' @param level confidence level of the interval
#' @param transform_back function from the scale of the samples to the scale of the result: exp
#'   turns a difference of logarithms into a ratio
#' @param items,quantity nouns for `why`, for example "blocks" and "ratio"
#' @param estimate_error function of a sample that returns se and df
#' @return data frame of one row: n (of the smaller sample), ratio (the estimate), low, high; se and
#'   df (standard error and degrees of freedom on the scale of the samples); why (the reason if the
#'   row has no interval, which tables and sentences show; else "").  Unknown values are NA, not NaN
estimate_difference <- function(samples, level, transform_back = exp, items = "runs",
                                quantity = "value", estimate_error = estimate_standard_error) {
  n <- min(lengths(samples))
  # The distance of one sample is its mean.
  distance <- Reduce(`-`, lapply(samples, mean))
  is_finite <- all(is.finite(unlist(samples)))
  row <- list2DF(list(
    n = n, ratio = if (n > 0 && is_finite) transform_back(distance) else NA_real_,
    low = NA_real_, high = NA_real_, se = NA_real_, df = NA_real_,
    why = explain_missing_interval(samples, items, quantity)
  ))
  if (row$why != "") return(row)
  errors <- lapply(samples, estimate_error)
  variances <- vapply(errors, function(error) error$se ^ 2, 0)
  row$se <- sqrt(sum(variances))
  # Satterthwaite's degrees of freedom.
  row$df <- sum(variances) ^ 2 / sum(variances ^ 2 / vapply(errors, `[[`, 0, "df"))
  half_width <- stats::qt((1 + level) / 2, row$df) * row$se
  row$low <- transform_back(distance - half_width)
  row$high <- transform_back(distance + half_width)
  row
}

#' Estimate the mean ratio of blocks of several sessions, which are nested in machines
#'
#' With POOLED_MACHINES or more machines, the interval comes from pool_machines, and holds for
#' machines.  With MACHINE_SESSIONS or more sessions of one machine, it is Student's interval of the
#' sessions' means, and holds for the machine.  Otherwise it is the interval of all blocks, and
#' holds within these sessions.  A session counts only if it has INTERVAL_BLOCKS blocks.
#'
#' @param ratios a number for each block, in the order of measurement
#' @param sessions,machines the name of each ratio's session and machine
#' @param level confidence level of the interval
#' @return the row of estimate_mean_ratio with sessions and machines (numbers), holds (the scope of
#'   the interval: "session", "sessions", "machine" or "machines"), next_low and next_high (the
#'   interval that holds another machine's ratio; NA unless the scope is "machines")
compare_sessions <- function(ratios, sessions, machines, level = 1 - ALPHA) {
  row <- estimate_mean_ratio(ratios, level)
  row$sessions <- length(unique(sessions))
  row$machines <- length(unique(machines))
  row$holds <- if (row$sessions > 1) "sessions" else "session"
  row[c("next_low", "next_high")] <- NA_real_
  if (row$why != "") return(row)
  session_means <- summarise_sessions(log(ratios), sessions, machines)
  estimate <- estimate_mean_of_sessions(session_means)
  if (is.null(estimate)) return(row)
  # Returns the two ends of an interval around the mean, as ratios.
  compute_ends <- function(se, df) {
    exp(estimate$mean + c(-1, 1) * stats::qt((1 + level) / 2, df) * se)
  }
  row$n <- sum(session_means$n)
  row$ratio <- exp(estimate$mean)
  row[c("low", "high")] <- compute_ends(estimate$se, estimate$df)
  row[c("se", "df", "holds")] <- estimate[c("se", "df", "holds")]
  row$sessions <- nrow(session_means)
  row$machines <- length(unique(session_means$machine))
  if (!is.null(estimate$next_se)) {
    row[c("next_low", "next_high")] <- compute_ends(estimate$next_se, estimate$next_df)
  }
  row
}

# Summarises each session that has at least INTERVAL_BLOCKS values.
# values: logarithms of ratios.  sessions, machines: names.  Each has an element for each block, in
# the order of measurement.
# Returns a data frame of session, machine, n, mean and se (standard error within the session), one
# row for each session; NULL if no session has enough values.
summarise_sessions <- function(values, sessions, machines) {
  blocks <- split(seq_along(values), factor(sessions, unique(sessions)))
  stack_rows(lapply(blocks, function(positions) {
    if (length(positions) < INTERVAL_BLOCKS) return(NULL)
    first <- positions[[1]]
    data.frame(session = sessions[[first]], machine = machines[[first]], n = length(positions),
               mean = mean(values[positions]), se = estimate_standard_error(values[positions])$se)
  }))
}

# Estimates the mean over sessions that are nested in machines.
# means: data frame of summarise_sessions, or NULL.
# Returns a list of mean, se, df and holds (the scope of compare_sessions), with next_se and
# next_df if pool_machines gives them; NULL if the sessions are too few or their means do not vary.
estimate_mean_of_sessions <- function(means) {
  count <- NROW(means)
  machines <- length(unique(means$machine))
  if (machines >= POOLED_MACHINES) return(c(pool_machines(means), holds = "machines"))
  if (machines != 1 || count < MACHINE_SESSIONS) return(NULL)
  scatter <- stats::sd(means$mean)
  if (scatter < NO_SCATTER) return(NULL)
  list(mean = mean(means$mean), se = scatter / sqrt(count), df = count - 1, holds = "machine")
}

#' Pool the means of machines that differ at random
#'
#' The variance between machines follows Paule and Mandel (1982).  The interval follows Hartung and
#' Knapp (2001), but is never narrower than the variances of the machines' means allow.  The
#' interval for another machine follows Higgins, Thompson and Spiegelhalter (2009).
#'
#' @param means data frame of summarise_sessions, of three machines at least
#' @return list: mean, se, df; next_se and next_df (of another machine's mean)
pool_machines <- function(means) {
  machines <- split(means, means$machine)
  session_counts <- vapply(machines, nrow, 1L)
  machine_means <- vapply(machines, function(sessions) mean(sessions$mean), 0)
  sum_squared_deviations <- function(values) sum((values - mean(values)) ^ 2)
  # The variance of a session's mean comes from the machines with several sessions, or from within
  # the sessions if that is larger.
  squares <- vapply(machines, function(sessions) sum_squared_deviations(sessions$mean), 0)
  variance_between <- sum(squares) / max(sum(session_counts - 1), 1)
  variance_within <- vapply(machines, function(sessions) mean(sessions$se ^ 2), 0)
  # The minimum variance keeps every weight finite.
  variances <- pmax(variance_between, variance_within, 1e-12) / session_counts
  df <- length(machine_means) - 1
  compute_weights <- function(heterogeneity) 1 / (variances + heterogeneity)
  compute_spread <- function(weights) {
    sum(weights * (machine_means - stats::weighted.mean(machine_means, weights)) ^ 2)
  }
  # The expectation of the spread is df; the heterogeneity is chosen so that it has this value.
  compute_excess <- function(heterogeneity) compute_spread(compute_weights(heterogeneity)) - df
  heterogeneity <- 0
  if (compute_excess(0) > 0) {
    # With a heterogeneity of `upper` the spread is at most 1, and so below its expectation.
    upper <- sum_squared_deviations(machine_means)
    heterogeneity <- stats::uniroot(compute_excess, c(0, upper), tol = 1e-12)$root
  }
  weights <- compute_weights(heterogeneity)
  variance_of_mean <- max(compute_spread(weights) / df, 1) / sum(weights)
  list(mean = stats::weighted.mean(machine_means, weights), se = sqrt(variance_of_mean), df = df,
       next_se = sqrt(heterogeneity + variance_of_mean), next_df = df - 1)
}

#' Compute the confidence intervals of ratios, by Student's t of their logarithms
#'
#' @param rows data frame of estimate_mean_ratio: ratio, and se and df of its logarithm (NA without
#'   an interval)
#' @param level confidence level
#' @return data frame of low and high, a row for each of `rows`; both are NA for a row without an
#'   interval
compute_intervals <- function(rows, level) {
  # Without an interval, df is 0, of which qt() warns.
  half_width <- suppressWarnings(stats::qt((1 + level) / 2, rows$df)) * rows$se
  data.frame(low = rows$ratio * exp(-half_width), high = rows$ratio * exp(half_width))
}

# Returns a clause that explains why samples cannot have an interval; "" if they can.
# samples, items, quantity: parameters of estimate_difference.
explain_missing_interval <- function(samples, items, quantity) {
  if (min(lengths(samples)) < INTERVAL_BLOCKS) {
    return(paste("fewer than", INTERVAL_BLOCKS, items))
  }
  # The logarithm of a value that is not above 0 is not finite.
  if (!all(is.finite(unlist(samples)))) return(paste("not all", items, "give a", quantity))
  if (any(vapply(samples, stats::sd, 0) >= NO_SCATTER)) return("")
  side <- if (length(samples) > 1) " of a side" else ""
  paste0("all ", items, side, " give the same ", quantity)
}

#' Estimate the standard error of a mean whose neighbouring values may be correlated
#'
#' The number of independent values follows from the correlation of neighbours (Bartlett 1946),
#' corrected for its bias (Marriott and Pope 1954).  A correlation below MIN_CORRELATION counts as
#' MIN_CORRELATION, since few blocks do not show it, and one above MAX_CORRELATION as
#' MAX_CORRELATION.  The mean of values that do not vary has no error.
#' studies/stopping.py computes the same in Python, and has to follow every change.
#'
#' @param values finite numbers in the order of measurement, at least two
#' @return list: se, df (degrees of freedom, at least two: Student's t with fewer has no variance)
estimate_standard_error <- function(values) {
  n <- length(values)
  residuals <- values - mean(values)
  # The correlation of each value with the next one; values that do not vary count as uncorrelated.
  lag1 <- 0
  if (sum(residuals ^ 2) > 0) {
    lag1 <- sum(residuals[-1] * residuals[-n]) / sum(residuals ^ 2)
  }
  lag1_corrected <- lag1 + (1 + 4 * lag1) / n
  correlation <- min(max(MIN_CORRELATION, lag1_corrected), MAX_CORRELATION)
  # The number of independent values whose mean would have the same standard error.
  effective_n <- n * (1 - correlation) / (1 + correlation)
  list(se = stats::sd(values) / sqrt(effective_n), df = max(effective_n - 1, 2))
}

#' Estimate the standard error of the mean of independent values, for example of sessions' means
#'
#' @param values numbers, at least two
#' @return list: se, df (degrees of freedom)
estimate_independent_error <- function(values) {
  list(se = stats::sd(values) / sqrt(length(values)), df = length(values) - 1)
}

#' Judge whether parts, such as the series of a workload, lie within bounds or outside of them
#'
#' At least one part is given.  A part lies within its bounds if its inner interval does, and
#' outside if its outer interval does.  The caller decides on all parts together: they lie within if
#' every part does (intersection-union test, Berger 1982), and outside if any part does.
#'
#' @param inner,outer data frames, one row for each part: low, high
#' @param n number of blocks of each part
#' @param low,high bounds of each part
#' @param min_n the minimum number of blocks for a verdict
#' @return list: within and outside (logical, for each part; FALSE without an interval or with fewer
#'   blocks than min_n), decisive (position of the part that decides: one that lies outside, else
#'   the one that is farthest from lying within)
judge_parts <- function(inner, outer, n, low, high, min_n = VERDICT_BLOCKS) {
  has_enough <- rep_len(n >= min_n, nrow(inner))
  # Comparisons with a missing interval give NA, which counts as FALSE.
  within <- (has_enough & inner$low >= low & inner$high <= high) %in% TRUE
  outside <- (has_enough & (outer$high < low | outer$low > high)) %in% TRUE
  # How far the inner interval reaches beyond a bound, as a ratio to the bound.
  excess <- pmax(low / inner$low, inner$high / high)
  excess[is.na(excess)] <- Inf
  list(within = within, outside = outside,
       decisive = order(!outside, has_enough, -excess)[[1]])
}

#' Estimate how many blocks would decide a comparison with a probability of 80 % (POWER)
#'
#' It assumes that ratio and scatter stay as they are.  A ratio within the margin is taken to be
#' equivalent, and a ratio beyond it to be different.
#'
#' @param ratio the estimated ratio
#' @param scatter standard deviation of the logarithms of independent blocks
#' @param margin the smallest difference that matters
#' @param alpha error rate of each one-sided test
#' @return total number of blocks, at least VERDICT_BLOCKS; NA if ratio or scatter is NA, or if no
#'   number is enough
estimate_blocks_needed <- function(ratio, scatter, margin = MARGIN, alpha = ALPHA) {
  distance <- abs(log(ratio))
  edge <- -log(1 - margin)
  # Equivalence takes two one-sided tests: at 90 % each, both succeed with 80 % at least.
  power <- if ((distance > edge) %in% TRUE) POWER else POWER_OF_TWO
  estimate_blocks_at_distance(abs(distance - edge), scatter, alpha, power)
}

#' Estimate the number of blocks that tell a ratio from a limit
#'
#' @param distance between the logarithms of ratio and limit, at least 0
#' @param scatter standard deviation of the logarithms of independent blocks
#' @param alpha error rate of the one-sided test
#' @param power its probability of success
#' @return total number of blocks, at least VERDICT_BLOCKS; NA if distance or scatter is NA, or if
#'   no number is enough
estimate_blocks_at_distance <- function(distance, scatter, alpha, power) {
  if (is.na(distance) || is.na(scatter)) return(NA_real_)
  # At a distance of 0 no number would be enough, and power.t.test finds none.
  n <- tryCatch(
    stats::power.t.test(delta = max(distance, 1e-4), sd = scatter, sig.level = alpha,
                        power = power, type = "one.sample", alternative = "one.sided")$n,
    error = function(error) NA_real_
  )
  max(ceiling(n), VERDICT_BLOCKS)
}

# The columns that identify a series, and the columns that identify a comparison of it; "factors"
# stands for the columns of all factors.
SERIES_KEYS <- c("workload", "title", "question", "metric", "metric_label", "factors", "series",
                 "unit", "better", "headline")
COMPARISON_KEYS <- c(SERIES_KEYS, "environment", "label")

#' Summarise each series of each environment: mean and median with their 95 % intervals
#'
#' The mean has Student's interval, the median the interval of its order statistics.
#'
#' @param tidy tidy rows, as read_results returns them
#' @return data frame: the columns of a comparison without `question`, how (the runs were taken), n,
#'   mean, sd, mean_low, mean_high, median, median_low, median_high, min, max; NULL if there are no
#'   rows.  The ends of intervals are NA for too few values.  summary.csv has these columns and
#'   those of add_levels
summarise_runs <- function(tidy) {
  map_groups(tidy, setdiff(COMPARISON_KEYS, "question"), function(rows) {
    values <- rows$value
    n <- length(values)
    mean_value <- mean(values)
    half_width <- compute_half_width(values)
    # The interval of the median ends at the rank-th smallest and the rank-th largest value.
    rank <- stats::qbinom(ALPHA / 2, n, 0.5)
    ends <- if (rank < 1) c(NA_real_, NA_real_) else sort(values)[c(rank, n + 1 - rank)]
    list2DF(list(how = paste(unique(rows$how), collapse = "; "), n = n, mean = mean_value,
                 sd = stats::sd(values), mean_low = mean_value - half_width,
                 mean_high = mean_value + half_width, median = stats::median(values),
                 median_low = ends[[1]], median_high = ends[[2]], min = min(values),
                 max = max(values)))
  })
}

# Returns half of the width of the 95 % interval of the mean of values, by Student's t; NA for fewer
# than two values.
compute_half_width <- function(values) {
  n <- length(values)
  if (n < 2) return(NA_real_)
  stats::qt(1 - ALPHA / 2, n - 1) * stats::sd(values) / sqrt(n)
}

#' Add estimated values that agree with the ratios, in the unit of the metric: the columns `level`
#'
#' Native's estimate is its mean with its interval.  The estimate of another environment is native's
#' mean times the ratio of the blocks, with the interval of the ratio; without a ratio it is the
#' environment's mean, without an interval (NA).
#'
#' @param summary table of summarise_runs, or NULL
#' @param comparisons table of compare_with_native, or NULL
#' @return summary with level, level_low, level_high (columns of summary.csv, which tables.R lists);
#'   NULL if there is no summary
add_levels <- function(summary, comparisons) {
  if (is.null(summary)) return(NULL)
  native <- summary$environment == NATIVE
  native_level <- summary$mean[native][match(make_keys(summary), make_keys(summary)[native])]
  compared_at <- match(paste(make_keys(summary), summary$environment),
                       paste(make_keys(comparisons), comparisons$environment))
  # Returns native's mean times a column of `comparisons`, for each row of the summary; a ratio is
  # of performance, so that a cost is divided by it.
  scale_native_level <- function(column) {
    ratio <- rep(NA_real_, nrow(summary))
    if (!is.null(comparisons)) ratio <- comparisons[[column]][compared_at]
    native_level * ratio ^ ifelse(summary$better == "higher", 1, -1)
  }
  estimate <- scale_native_level("ratio")
  ends <- cbind(scale_native_level("low"), scale_native_level("high"))
  summary$level <- ifelse(is.na(estimate), summary$mean, estimate)
  summary$level_low <- ifelse(native, summary$mean_low, pmin(ends[, 1], ends[, 2]))
  summary$level_high <- ifelse(native, summary$mean_high, pmax(ends[, 1], ends[, 2]))
  summary
}

#' Apply a function to each group of rows, and bind the results below one another
#'
#' @param rows data frame
#' @param keys names of the columns by which rows are grouped; "factors" stands for all factors
#' @param compute function of the rows of a group that returns a data frame or NULL
#' @return data frame of the keys and the columns of `compute`, groups in the order of their first
#'   rows; NULL if no group gives a row
map_groups <- function(rows, keys, compute) {
  keys <- expand_factors(keys, rows)
  group <- make_keys(rows, keys)
  groups <- unname(split(seq_len(nrow(rows)), factor(group, unique(group))))
  results <- lapply(groups, function(positions) compute(rows[positions, ]))
  # Each row of a result has the keys of its group's first row.
  first <- rep(vapply(groups, `[[`, 1L, 1), vapply(results, NROW, 1L))
  bound <- stack_rows(results)
  if (!is.null(bound)) cbind(rows[first, keys], bound, row.names = NULL)
}

#' Pair the runs of one series in two environments, block by block
#'
#' A run in slices and a whole run are not compared directly: each is first divided by native's run
#' of its own kind in the same block (`scale`, and `lap_scale` for each lap).
#'
#' @param rows,reference tidy rows of one series in the two environments; `reference` has at most
#'   one row for each repetition, and rows without a partner are left out
#' @return data frame, one row for each pair (see is_paired): session and machine (of the row),
#'   repetition (the block), ratio (of rows to reference), robust (the pseudomedian of the ratios of
#'   their laps; the ratio where the laps cannot be compared one by one)
pair_runs <- function(rows, reference) {
  partners <- match(rows$repetition, reference$repetition)
  partners[!is_paired(rows, reference[partners, ])] <- NA
  paired_rows <- rows[!is.na(partners), ]
  base <- reference[partners[!is.na(partners)], ]
  is_same_kind <- paired_rows$how == base$how
  ratio <- paired_rows$value / base$value * ifelse(is_same_kind, 1, paired_rows$scale / base$scale)
  paired_rows$lap_scale[is_same_kind] <- list(1)
  base$lap_scale[is_same_kind] <- list(1)
  robust <- mapply(function(laps, base_laps, scale, base_scale, ratio) {
    has_lap_pairs <- length(laps) > 1 && length(laps) == length(base_laps)
    if (!has_lap_pairs || anyNA(scale / base_scale)) return(ratio)
    compute_pseudomedian(laps / base_laps * (scale / base_scale))
  }, paired_rows$laps, base$laps, paired_rows$lap_scale, base$lap_scale, ratio)
  data.frame(paired_rows[c("session", "machine", "repetition")], ratio = ratio,
             robust = as.numeric(robust))
}

# Returns whether each tidy row forms a pair with the row of `reference` at the same position; a row
# of NA forms none.
# Two rows form a pair if they were measured together, and in the same way (`how`) or in ways that
# native's scales compare.  They were measured together if their laps were interleaved, or if the
# gap between them is no longer than the block's cells take.
# strata/results/pairs.py decides by the same rule which blocks are measured again: both must agree.
is_paired <- function(rows, reference) {
  is_comparable <- rows$how == reference$how | !is.na(rows$scale + reference$scale)
  # Seconds between the end of the earlier run and the start of the later one.
  gap <- pmax(rows$started, reference$started) - pmin(rows$ended, reference$ended)
  is_interleaved <- rows$together != "" & reference$together != ""
  is_together <- ifelse(is_interleaved, rows$together == reference$together,
                        gap <= rows$block_seconds)
  (is_together & is_comparable) %in% TRUE
}

#' Compute the pseudomedian of positive values (Hodges and Lehmann 1963)
#'
#' It is the median of the geometric means of all pairs of values, including each value with itself.
#' With normal noise it is nearly as precise as the mean, and it withstands nearly a third of wild
#' values.
#'
#' @param values numbers above 0, at least one
#' @return number
compute_pseudomedian <- function(values) {
  means <- outer(log(values), log(values), `+`) / 2
  exp(stats::median(means[upper.tri(means, diag = TRUE)]))
}

#' Pair the runs of environments with the runs of a reference in every series
#'
#' @param rows tidy rows of one or more environments
#' @param reference tidy rows of the environment with which they are compared
#' @return data frame: the columns of a comparison, reference, and the columns of pair_runs
#'   (ratios are of performance as a share of the reference's); NULL if no runs are paired
pair_environments <- function(rows, reference) {
  reference_at <- split(seq_len(nrow(reference)), make_keys(reference))
  map_groups(rows, COMPARISON_KEYS, function(series) {
    # The reference may lack the series: then `base` has no rows.
    base <- reference[reference_at[[make_keys(series[1, ])]], ]
    pairs <- pair_runs(series, base)
    if (nrow(pairs) == 0) return(NULL)
    ratios <- c("ratio", "robust")
    if (series$better[[1]] == "lower") pairs[ratios] <- 1 / pairs[ratios]
    cbind(reference = base$environment[[1]], pairs)
  })
}

#' Pair the runs of all environments with native's
#'
#' @param tidy tidy rows, as read_results returns them
#' @return data frame of pair_environments; NULL if no runs are paired
pair_with_native <- function(tidy) {
  pair_environments(tidy[tidy$environment != NATIVE, ], tidy[tidy$environment == NATIVE, ])
}

#' Compare environments with their reference in every series
#'
#' @param pairs data frame of pair_environments, or NULL
#' @return data frame, one row for each series: the columns of a comparison, reference, the columns
#'   of compare_sessions; robust, robust_low and robust_high (ratio, low and high by the robust
#'   ratios); robust_differs (whether the 95 % interval of the quotient of the two ratios excludes
#'   1); NULL if there are no pairs
compare_environments <- function(pairs) {
  if (is.null(pairs)) return(NULL)
  map_groups(pairs, c(COMPARISON_KEYS, "reference"), function(series) {
    robust <- compare_sessions(series$robust, series$session, series$machine)
    quotient <- estimate_mean_ratio(series$robust / series$ratio)
    cbind(compare_sessions(series$ratio, series$session, series$machine), robust = robust$ratio,
          robust_low = robust$low, robust_high = robust$high,
          robust_differs = (quotient$low > 1 | quotient$high < 1) %in% TRUE)
  })
}

#' Compare all environments with native
#'
#' @param results list of read_results
#' @param pairs data frame of pair_with_native, or NULL
#' @return data frame of compare_environments with the columns of add_verdicts, and `family`
#'   ("containers", "sandboxes" or "machines"); NULL if there are no pairs.  comparisons.csv is made
#'   of it
compare_with_native <- function(results, pairs = pair_with_native(results$tidy)) {
  rows <- add_families(compare_environments(pairs), results)
  if (is.null(rows)) return(NULL)
  precision <- results$plan$precision
  add_verdicts(rows, number_verdicts(rows), precision$margin %or% MARGIN,
               precision$looks %or% 1)
}

# Adds `family`, the family of each row's environment (describe_environment); NULL stays NULL.
# results: list of read_results.
add_families <- function(rows, results) {
  if (is.null(rows)) return(NULL)
  environments <- results$environments
  rows$family <- environments$family[match(rows$environment, environments$environment)]
  rows
}

#' Give each headline row the number of its verdict, which is of a workload in an environment
#'
#' @param rows data frame: environment, workload, headline
#' @return numbers from 1 without gaps, in the order of the rows; NA for rows that are not headlines
number_verdicts <- function(rows) {
  keys <- paste(rows$environment, rows$workload, sep = "\r")
  keys[!rows$headline] <- NA
  match(keys, unique(keys[!is.na(keys)]))
}

#' Add the intervals that decide, and the verdict of each row
#'
#' All verdicts of a table share the error rate ALPHA (Bonferroni).  Planned interim analyses
#' ("looks" in the plan) share it, too, if differences decide how many blocks are measured.  A row
#' is equivalent if its interval for all verdicts lies within the margin.  It is different if the
#' interval that also allows for the number of rows of its verdict lies outside of the margin.
#'
#' @param rows data frame: ratio, low, se, df, n, why
#' @param groups number of the verdict that each row belongs to, from 1 without gaps, as
#'   number_verdicts gives them; NA for rows without a verdict
#' @param margin the smallest difference that matters, as a share above 0 and below 1
#' @param looks number of analyses, the final one included, in which verdicts may be reached while
#'   blocks are added
#' @param min_n the minimum number of blocks for a verdict
#' @return rows with low_all, high_all and level_all (the interval for all verdicts and its level),
#'   verdict ("different", "equivalent", "undecided"; "" without one), direction ("slower" or
#'   "faster" if different, else "") and more (how many further blocks would decide an undecided
#'   row; NA for other rows, and if the interval is of sessions instead of blocks)
add_verdicts <- function(rows, groups, margin = MARGIN, looks = 1, min_n = VERDICT_BLOCKS) {
  group_count <- max(groups, 0, na.rm = TRUE)
  # The number of tests that share the error rate; one-sided tests at alpha have intervals of the
  # level 1 - 2 alpha.
  test_count <- group_count * looks
  rows_of_verdict <- tabulate(as.integer(groups), group_count)[groups]
  level <- 1 - 2 * ALPHA / max(test_count, 1)
  inner <- compute_intervals(rows, level)
  outer <- compute_intervals(rows, 1 - 2 * ALPHA / (test_count * rows_of_verdict))
  judgement <- judge_parts(inner, outer, rows$n, 1 - margin, 1 / (1 - margin), min_n)
  rows[c("low_all", "high_all")] <- inner
  rows$level_all <- level
  rows[is.na(groups), c("low_all", "high_all", "level_all")] <- NA_real_
  # Each later assignment overrules the earlier ones.
  rows$verdict <- rep("undecided", nrow(rows))
  rows$verdict[judgement$within] <- "equivalent"
  rows$verdict[judgement$outside] <- "different"
  rows$verdict[is.na(groups)] <- ""
  rows$direction <- ifelse(rows$ratio < 1, "slower", "faster")
  rows$direction[rows$verdict != "different"] <- ""
  total_blocks <- mapply(estimate_blocks_needed, rows$ratio, rows$se * sqrt(rows$n), margin,
                         ALPHA / max(test_count, 1))
  is_of_blocks <- !(rows$holds %or% "") %in% c("machine", "machines")
  has_forecast <- rows$verdict == "undecided" & rows$why == "" & is_of_blocks
  rows$more <- ifelse(has_forecast, pmax(total_blocks - rows$n, 1), NA_real_)
  rows
}

#' Decide on each workload in each environment, from all its headline series
#'
#' It judges the rows again at the margin.  tables.R writes the results to verdicts.csv, and
#' studies/verdicts.R decides in the same way.
#'
#' @param rows data frame of compare_with_native
#' @param margin the smallest difference that matters
#' @param looks number of analyses that share the error rate, the final one included
#' @return data frame, one row for each workload and environment: workload, title, environment,
#'   label, family, reference, margin, verdict, direction, more (the largest of its rows), and of
#'   the series that decides: series, n, sessions, machines, holds, ratio, low, high (the interval
#'   that decides) and level; NULL if there are no rows
decide_workloads <- function(rows, margin = MARGIN, looks = 1) {
  if (is.null(rows)) return(NULL)
  headlines <- rows[rows$headline, ]
  headlines <- add_verdicts(headlines, number_verdicts(headlines), margin, looks)
  keys <- c("workload", "title", "environment", "label", "family", "reference")
  map_groups(headlines, keys, function(parts) {
    level <- parts$level_all[[1]]
    outer_level <- 1 - (1 - level) / nrow(parts)
    outer <- compute_intervals(parts, outer_level)
    inner <- data.frame(low = parts$low_all, high = parts$high_all)
    judgement <- judge_parts(inner, outer, parts$n, 1 - margin, 1 / (1 - margin))
    decisive <- judgement$decisive
    verdict <- if (all(judgement$within)) "equivalent" else "undecided"
    if (any(judgement$outside)) verdict <- "different"
    interval <- (if (verdict == "different") outer else inner)[decisive, ]
    # Without undecided rows, `more` is NULL.
    more <- if (verdict == "undecided") stats::na.omit(parts$more)
    data.frame(margin = margin, verdict = verdict,
               direction = if (verdict == "different") parts$direction[[decisive]] else "",
               more = if (length(more) > 0) max(more) else NA_real_,
               series = parts$series[[decisive]],
               parts[decisive, c("n", "sessions", "machines", "holds", "ratio")],
               low = interval$low, high = interval$high,
               level = if (verdict == "different") outer_level else level)
  })
}

#' Compare how often laps stall in an environment and natively
#'
#' A lap stalled if it took more than STALL times the median of its cell's laps.  Laps in slices are
#' compared with native's laps in slices.  A one-sided sign test over the blocks asks whether the
#' share of stalled laps is more often larger in the environment than natively; blocks with equal
#' shares are left out, and p is 1 if all are equal.  Cells with a single lap, and cells without a
#' partner of native's, are left out.
#'
#' @param tidy tidy rows, as read_results returns them
#' @return data frame, one row for each headline series and environment with laps: the columns of a
#'   comparison, reference, laps, share and reference_share (of laps that stalled), p; NULL without
#'   laps
compare_stalls <- function(tidy) {
  rows <- tidy[tidy$headline, ]
  # Returns how many laps of a cell stalled.
  # laps: rates if `better` is "higher", else times.
  count_stalls <- function(laps, better) {
    times <- if (better == "higher") 1 / laps else laps
    sum(times > STALL * stats::median(times))
  }
  rows$lap_count <- lengths(rows$laps)
  rows$stall_count <- mapply(count_stalls, rows$laps, rows$better)
  rows <- rows[rows$lap_count > 1, ]
  reference <- rows[rows$environment == NATIVE, ]
  make_block_keys <- function(rows) paste(make_keys(rows), rows$repetition)
  partners <- match(make_block_keys(rows), make_block_keys(reference))
  partners[!is_paired(rows, reference[partners, ])] <- NA
  base_laps <- ifelse(rows$how == "slices", rows$native_laps, reference$laps[partners])
  rows$base_stall_count <- mapply(count_stalls, base_laps, rows$better)
  rows$base_count <- lengths(base_laps)
  rows <- rows[rows$environment != NATIVE & !is.na(partners), ]
  if (nrow(rows) == 0) return(NULL)
  map_groups(rows, COMPARISON_KEYS, function(series) {
    base_shares <- series$base_stall_count / series$base_count
    difference <- series$stall_count / series$lap_count - base_shares
    unequal_blocks <- sum(difference != 0)
    larger_blocks <- sum(difference > 0)
    p <- 1
    if (unequal_blocks > 0) {
      p <- stats::pbinom(larger_blocks - 1, unequal_blocks, 0.5, lower.tail = FALSE)
    }
    data.frame(reference = NATIVE, laps = sum(series$lap_count),
               share = sum(series$stall_count) / sum(series$lap_count),
               reference_share = sum(series$base_stall_count) / sum(series$base_count), p = p)
  })
}

#' Compare how often the machine was disturbed in each environment's laps and in native's
#'
#' Fisher's exact test uses whole runs only, since no other environment runs during them.  The
#' environment itself may have caused a difference.
#'
#' @param results list of read_results
#' @return data frame, one row for each environment whose laps were judged: environment, label;
#'   laps, left_out (numbers of all laps, and of those that do not count); runs, disturbed, steal,
#'   busy (numbers of all whole runs, of the disturbed ones, and of those that the hypervisor or
#'   other processes disturbed); p (of the test against native; NA for native itself, and if either
#'   has no whole run); NULL if no laps were judged
compare_disturbances <- function(results) {
  environments <- results$environments
  records <- Filter(function(record) length(record$laps) > 0, results$records)
  names <- vapply(records, `[[`, "", "environment")
  rows <- stack_rows(lapply(intersect(environments$environment, names), function(name) {
    laps <- do.call(c, lapply(unname(records[names == name]), `[[`, "laps"))
    runs <- do.call(c, lapply(laps, `[[`, "runs"))
    causes <- lapply(Filter(function(run) run$how == "whole", runs), `[[`, "disturbed_by")
    count_cause <- function(cause) sum(vapply(causes, function(run) cause %in% unlist(run), NA))
    list2DF(list(environment = name, laps = length(laps),
                 left_out = sum(!vapply(laps, `[[`, NA, "counts")), runs = length(causes),
                 steal = count_cause("steal"), busy = count_cause("busy"),
                 disturbed = sum(lengths(causes) > 0)))
  }))
  if (is.null(rows)) return(NULL)
  rows$label <- environments$label[match(rows$environment, environments$environment)]
  native <- rows[rows$environment == NATIVE, ]
  rows$p <- vapply(seq_len(nrow(rows)), function(i) {
    row <- rows[i, ]
    if (row$runs == 0 || sum(native$runs) == 0 || row$environment == NATIVE) return(NA_real_)
    sides <- rbind(row, native)
    stats::fisher.test(cbind(sides$disturbed, sides$runs - sides$disturbed))$p.value
  }, 0)
  rows
}

#' Estimate the share of variance that lies between blocks, which cancels out of ratios
#'
#' The values are above 0: the model is additive for their logarithms, in blocks and environments.
#' The share is exact for balanced series, with one value of each environment in each block, and an
#' approximation for others.
#'
#' @param tidy tidy rows, as read_results returns them
#' @return data frame, one row for each headline series: workload, title, series, blocks (number),
#'   share (at least 0; NaN if the values do not vary) and p (of the F test of the blocks).  A
#'   series with fewer than three blocks or two environments has no row; NULL if no series has one.
#'   blocks.csv holds it
estimate_block_share <- function(tidy) {
  headlines <- tidy[tidy$headline, ]
  map_groups(headlines, c("workload", "title", "series"), function(rows) {
    blocks <- length(unique(rows$repetition))
    environments <- length(unique(rows$environment))
    if (blocks < 3 || environments < 2) return(NULL)
    rows$repetition <- factor(rows$repetition)
    model <- stats::lm(log(value) ~ environment + repetition, rows)
    # R warns of values that do not vary, since they fit perfectly.
    tests <- suppressWarnings(stats::anova(model))
    f_value <- tests["repetition", "F value"]
    # The share of the variance between blocks, by the expectations of the mean squares.
    data.frame(blocks = blocks, share = max(0, (f_value - 1) / (f_value + environments - 1)),
               p = tests["repetition", "Pr(>F)"])
  })
}

#' Summarise emulated machines for emulated.csv, with ratios to native without interval or verdict
#'
#' Emulated machines are compared with the native runs at their sizes if the plan has such runs,
#' else with native's other runs.
#'
#' @param results list of read_results
#' @return table of summarise_runs with `ratio` (of means, as performance); NULL if nothing was
#'   emulated
summarise_emulated <- function(results) {
  if (nrow(results$emulated) == 0) return(NULL)
  summary <- summarise_runs(results$emulated)
  counterparts <- results$environments$environment[results$environments$counterpart %in% TRUE]
  native <- summarise_runs(results$tidy[results$tidy$environment == NATIVE, ])
  if (length(counterparts) > 0) native <- summary[summary$environment %in% counterparts, ]
  native_mean <- NA_real_
  if (!is.null(native)) native_mean <- native$mean[match(summary$series, native$series)]
  summary$ratio <- (summary$mean / native_mean) ^ ifelse(summary$better == "higher", 1, -1)
  summary
}
