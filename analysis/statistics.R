# Means, ratios and verdicts.  A block is one workload, once in each environment, side by side in
# random order.  The runs of a block are paired, and all tests are of logarithms of their ratios.
# Sources of the methods: docs/statistics.md.

# The smallest difference that matters, set before measuring.
MARGIN <- 0.02
# The same as a distance of logarithms.
EDGE <- -log(1 - MARGIN)
# The error rate of tests and intervals.
ALPHA <- 0.05
# With fewer pairs Wilcoxon's test has no interval at 95 %.
PERCENTILE_PAIRS <- 6
# Limits of the estimated correlation of neighbouring blocks.
LEAST_CORRELATION <- 0.15
MOST_CORRELATION <- 0.8

#' Test the ratios of blocks against the smallest difference that matters
#'
#' @param ratios numbers above 0, in the order of measurement
#' @param percentile whether the ratios are of percentiles, which are compared by ranks
#' @param level confidence level of the interval
#' @return the row of compare_values, with scatter (standard deviation of the logarithms) and se
#'   (standard error of their mean)
compare_pairs <- function(ratios, percentile = FALSE, level = 1 - ALPHA) {
  logs <- suppressWarnings(log(ratios))
  row <- compare_values(list(logs), percentile, level, items = "blocks", quantity = "ratio")
  row$scatter <- if (length(logs) > 1 && all(is.finite(logs))) stats::sd(logs) else NA_real_
  row$se <- NA_real_
  if (row$why == "") {
    row$se <- if (percentile) row$scatter / sqrt(row$n) else estimate_standard_error(logs)$se
  }
  row
}

#' Compare two samples that share no blocks, or describe one sample
#'
#' Samples share no blocks if they are of two experiments, or of logs whose runs are not paired.
#'
#' @param x,y values in the order of measurement; y is NULL for x alone
#' @param how "ratio" (x / y), "difference" (x - y) or "level" (x); only the p values of a ratio
#'   have a meaning
#' @param percentile,level as in compare_pairs
#' @param edge logarithm of the smallest ratio that matters
#' @return the row of compare_values; `ratio` is the ratio, difference or level
compare_samples <- function(x, y = NULL, how = "ratio", percentile = FALSE, level = 1 - ALPHA,
                            edge = EDGE) {
  samples <- Filter(Negate(is.null), list(x, y))
  if (how == "ratio") {
    logs <- lapply(samples, function(values) suppressWarnings(log(values)))
    return(compare_values(logs, percentile, level, edge))
  }
  # Values are divided by the largest, so that no square overflows or vanishes.
  largest <- max(abs(unlist(samples)), 0)
  if (!is.finite(largest) || largest == 0) largest <- 1
  compare_values(lapply(samples, `/`, largest), percentile, level, edge,
                 function(value) value * largest)
}

#' Test the location of one sample, or the distance between two samples, against the margin
#'
#' Different: a test of the null hypothesis that the distance lies within the margin (McCarthy and
#' Smyth 2009).  Equivalent: two one-sided tests (Schuirmann 1987).  Means are compared by Student's
#' test and for two samples by Welch's (1947); percentiles by the test of Wilcoxon and for two
#' samples by the test of Wilcoxon, Mann and Whitney.
#'
#' @param samples list of one or two numeric vectors
#' @param percentile,level,edge as in compare_samples
#' @param transform_back function from the scale of the samples to the scale of the result
#' @param items,quantity nouns for `why`, such as "blocks" and "ratio"
#' @return data frame of one row: n (of the smaller sample), ratio, low, high, p, p_equivalent, why
#'   (the reason if there is no interval); unknown values are NA, and none is NaN
compare_values <- function(samples, percentile, level, edge = EDGE, transform_back = exp,
                           items = "runs", quantity = "value") {
  n <- min(lengths(samples))
  distance <- Reduce(`-`, lapply(samples, if (percentile) stats::median else mean))
  finite <- all(is.finite(unlist(samples)))
  row <- list2DF(list(
    n = n, ratio = if (n > 0 && finite) transform_back(distance) else NA_real_,
    low = NA_real_, high = NA_real_, p = NA_real_, p_equivalent = NA_real_,
    why = explain_missing_interval(samples, percentile, items, quantity)
  ))
  if (row$why != "") return(row)
  result <- if (percentile) test_ranks(samples, level, edge) else test_means(samples, level, edge)
  if (anyNA(result)) {
    row$why <- paste("too many", items, "give the same", quantity)
    return(row)
  }
  ends <- c("ratio", "low", "high")
  result[ends] <- lapply(result[ends], transform_back)
  row[names(result)] <- result
  row
}

# Why samples cannot have an interval; "" if they can.
explain_missing_interval <- function(samples, percentile, items, quantity) {
  least <- if (percentile) PERCENTILE_PAIRS else 3
  if (min(lengths(samples)) < least) return(paste("fewer than", least, items))
  # The logarithm of a value that is not above 0 is not finite.
  if (!all(is.finite(unlist(samples)))) return(paste("not all", items, "give a", quantity))
  if (any(vapply(samples, stats::sd, 0) >= 1e-12)) return("")
  side <- if (length(samples) > 1) " of a side" else ""
  paste0("all ", items, side, " give the same ", quantity)
}

#' Test means by Student's test, or by Welch's for two samples
#'
#' @param samples,level,edge as in compare_values
#' @return list: ratio, low, high (on the samples' scale), p, p_equivalent
test_means <- function(samples, level, edge) {
  errors <- lapply(samples, estimate_standard_error)
  variances <- vapply(errors, function(error) error$se ^ 2, 0)
  se <- sqrt(sum(variances))
  # Satterthwaite's degrees of freedom.
  df <- sum(variances) ^ 2 / sum(variances ^ 2 / vapply(errors, `[[`, 0, "df"))
  distance <- Reduce(`-`, lapply(samples, mean))
  half_width <- stats::qt((1 + level) / 2, df) * se
  compute_tail <- function(value) stats::pt(value / se, df)
  # Of all distances within the margin, the one at its edge has the largest p.
  list(ratio = distance, low = distance - half_width, high = distance + half_width,
       p = compute_tail(edge - abs(distance)) + compute_tail(-edge - abs(distance)),
       p_equivalent = compute_tail(abs(distance) - edge))
}

#' Estimate the standard error of a mean whose neighbouring values may be correlated
#'
#' The number of independent values follows from the correlation of neighbours (Bartlett 1946),
#' corrected for its bias (Marriott and Pope 1954).  The correlation counts as 0.15 at least, since
#' few blocks do not show it.  The mean of values that do not vary has no error.
#'
#' @param values numbers in the order of measurement, at least two
#' @return list: se, df (degrees of freedom)
estimate_standard_error <- function(values) {
  n <- length(values)
  residuals <- values - mean(values)
  estimated <- 0
  if (any(residuals != 0)) {
    estimated <- sum(residuals[-1] * residuals[-n]) / sum(residuals ^ 2)
  }
  unbiased <- estimated + (1 + 4 * estimated) / n
  correlation <- min(max(LEAST_CORRELATION, unbiased), MOST_CORRELATION)
  independent <- n * (1 - correlation) / (1 + correlation)
  list(se = stats::sd(values) / sqrt(independent), df = max(independent - 1, 2))
}

#' Test medians by ranks: by Wilcoxon's test, for two samples by the test of Mann and Whitney
#'
#' @param samples,level,edge as in compare_values
#' @return list as of test_means; NA if too many values are equal for an interval
test_ranks <- function(samples, level, edge) {
  second <- if (length(samples) > 1) samples[[2]]
  test <- function(...) {
    suppressWarnings(stats::wilcox.test(samples[[1]], second, conf.int = TRUE, ...))
  }
  compute_p <- function(edge, side) test(mu = edge, alternative = side)$p.value
  two_sided <- tryCatch(test(conf.level = level), error = function(error) NULL)
  if (is.null(two_sided)) return(NA)
  # Twice the smaller p is never less than the sum of both.
  list(ratio = two_sided$estimate[[1]], low = two_sided$conf.int[[1]],
       high = two_sided$conf.int[[2]],
       p = min(1, 2 * compute_p(edge, "greater"), 2 * compute_p(-edge, "less")),
       p_equivalent = max(compute_p(-edge, "greater"), compute_p(edge, "less")))
}

#' Choose the verdicts of comparisons
#'
#' @param p_adjusted p values of a difference, adjusted within their family; NA without an interval
#' @param p_equivalent p values of equivalence, which are not adjusted
#' @return "different", "equivalent" or "undecided" for each
choose_verdict <- function(p_adjusted, p_equivalent) {
  known <- !is.na(p_adjusted)
  ifelse(known & p_adjusted < ALPHA, "different",
         ifelse(known & p_equivalent < ALPHA, "equivalent", "undecided"))
}

#' Estimate how many blocks would decide a comparison with a probability of 80 %
#'
#' It assumes that ratio and scatter stay as they are.
#'
#' @param ratio the estimated ratio
#' @param scatter standard deviation of the logarithms of independent blocks
#' @return number of blocks, 3 at least; NA if no number is enough
estimate_blocks_needed <- function(ratio, scatter) {
  distance <- abs(log(ratio))
  # Equivalence takes two one-sided tests: at 90 % each, both succeed with 80 % at least.
  power <- if (distance > EDGE) 0.8 else 0.9
  n <- tryCatch(
    stats::power.t.test(delta = max(abs(distance - EDGE), 1e-4), sd = scatter, sig.level = ALPHA,
                        power = power, type = "one.sample", alternative = "one.sided")$n,
    error = function(error) NA_real_
  )
  max(ceiling(n), 3)
}

# The columns that identify a series, and those that identify a comparison of it.
SERIES_KEYS <- c("workload", "title", "question", "metric", "metric_label", "factors", "series",
                 "unit", "better", "headline")
COMPARISON_KEYS <- c(SERIES_KEYS, "percentile", "environment", "label")

#' Summarise each series of each environment: mean and median with their 95 % intervals
#'
#' The mean has Student's interval, the median the interval of its order statistics.
#'
#' @param tidy tidy rows
#' @return data frame: the columns of a comparison without `question`, n, mean, sd, mean_low,
#'   mean_high, median, median_low, median_high, min, max; NULL of no rows
summarise_runs <- function(tidy) {
  map_groups(tidy, setdiff(COMPARISON_KEYS, "question"), function(rows) {
    x <- rows$value
    n <- length(x)
    half_width <- NA_real_
    if (n > 1) half_width <- stats::qt(1 - ALPHA / 2, n - 1) * stats::sd(x) / sqrt(n)
    # The interval of the median ends at the rank-th smallest and the rank-th largest value.
    rank <- stats::qbinom(ALPHA / 2, n, 0.5)
    ends <- if (rank < 1) c(NA_real_, NA_real_) else sort(x)[c(rank, n + 1 - rank)]
    list2DF(list(n = n, mean = mean(x), sd = stats::sd(x), mean_low = mean(x) - half_width,
                 mean_high = mean(x) + half_width, median = stats::median(x),
                 median_low = ends[[1]], median_high = ends[[2]], min = min(x), max = max(x)))
  })
}

#' Add levels that agree with the ratios
#'
#' Native's level is its mean or median with the interval of it.  The level of another environment
#' is native's times the ratio of the blocks, with the interval of the ratio; without a ratio it is
#' the environment's mean or median, without an interval.
#'
#' @param summary,comparisons tables of summarise_runs and compare_with_native, or NULL
#' @return summary with level, level_low, level_high; NULL of no summary
add_levels <- function(summary, comparisons) {
  if (is.null(summary)) return(NULL)
  choose_estimate <- function(mean, median) {
    ifelse(summary$percentile, summary[[median]], summary[[mean]])
  }
  native <- summary$environment == NATIVE
  level <- choose_estimate("mean", "median")
  native_level <- level[native][match(make_keys(summary), make_keys(summary)[native])]
  at <- match(paste(make_keys(summary), summary$environment),
              paste(make_keys(comparisons), comparisons$environment))
  scale_native_level <- function(column) {
    ratio <- if (is.null(comparisons)) rep(NA_real_, length(at)) else comparisons[[column]][at]
    native_level * ratio ^ ifelse(summary$better == "higher", 1, -1)
  }
  estimate <- scale_native_level("ratio")
  ends <- cbind(scale_native_level("low"), scale_native_level("high"))
  summary$level <- ifelse(is.na(estimate), level, estimate)
  summary$level_low <- ifelse(native, choose_estimate("mean_low", "median_low"),
                              pmin(ends[, 1], ends[, 2]))
  summary$level_high <- ifelse(native, choose_estimate("mean_high", "median_high"),
                               pmax(ends[, 1], ends[, 2]))
  summary
}

#' Apply a function to each group of rows, and bind the results below one another
#'
#' @param rows data frame
#' @param keys names of the columns by which rows are grouped; "factors" stands for all factors
#' @param make function of the rows of a group that returns a data frame or NULL
#' @return data frame of the keys and the columns of `make`, groups in the order of their first
#'   rows; NULL if no group gives a row
map_groups <- function(rows, keys, make) {
  keys <- expand_factors(keys, rows)
  group <- make_keys(rows, keys)
  places <- unname(split(seq_len(nrow(rows)), factor(group, unique(group))))
  results <- lapply(places, function(at) make(rows[at, ]))
  first <- rep(vapply(places, `[[`, 1L, 1), vapply(results, NROW, 1L))
  bound <- stack_rows(results)
  if (!is.null(bound)) cbind(rows[first, keys], bound, row.names = NULL)
}

#' Pair the runs, or the laps, of two environments in the same blocks
#'
#' @param rows,reference tidy rows of one series in the two environments
#' @return data frame, one row for each pair: repetition (the block), ratio (of rows to reference)
pair_runs <- function(rows, reference) {
  at <- match(rows$repetition, reference$repetition)
  measured <- rows[!is.na(at), ]
  base <- reference[at[!is.na(at)], ]
  divide_block <- function(i) {
    laps <- measured$laps[[i]]
    base_laps <- base$laps[[i]]
    paired <- length(laps) > 0 && length(laps) == length(base_laps)
    if (paired) laps / base_laps else measured$value[[i]] / base$value[[i]]
  }
  ratios <- lapply(seq_len(nrow(measured)), divide_block)
  data.frame(repetition = rep(measured$repetition, lengths(ratios)),
             ratio = as.numeric(unlist(ratios)))
}

#' Summarise the pairs of each block by their pseudomedian
#'
#' @param pairs rows of pair_runs
#' @return data frame, one row for each block: repetition, ratio
summarise_blocks <- function(pairs) {
  ratios <- tapply(pairs$ratio, pairs$repetition, pseudomedian)
  data.frame(repetition = as.numeric(names(ratios)), ratio = as.vector(ratios))
}

#' The pseudomedian of positive values (Hodges and Lehmann 1963)
#'
#' It is the median of the geometric means of all pairs of values, including each value with itself.
#' With normal noise it is nearly as precise as the mean, and it withstands nearly a third of wild
#' values.
#'
#' @param x numbers above 0
#' @return number
pseudomedian <- function(x) {
  means <- outer(log(x), log(x), `+`) / 2
  exp(stats::median(means[upper.tri(means, diag = TRUE)]))
}

#' Pair the runs of two environments in every series
#'
#' @param rows,reference tidy rows of the two environments
#' @return data frame: the columns of a comparison, reference, repetition, and ratio (performance as
#'   a share of the reference's); NULL if no runs are paired
pair_environments <- function(rows, reference) {
  places <- split(seq_len(nrow(reference)), make_keys(reference))
  map_groups(rows, COMPARISON_KEYS, function(series) {
    base <- reference[places[[make_keys(series[1, ])]], ]
    pairs <- pair_runs(series, base)
    if (nrow(pairs) == 0) return(NULL)
    if (series$better[[1]] == "lower") pairs$ratio <- 1 / pairs$ratio
    cbind(reference = base$environment[[1]], pairs)
  })
}

#' Pair the runs of all environments with native's
#'
#' @param tidy tidy rows
#' @return data frame of pair_environments
pair_with_native <- function(tidy) {
  pair_environments(tidy[tidy$environment != NATIVE, ], tidy[tidy$environment == NATIVE, ])
}

#' List the ratio of every block in every comparison
#'
#' @param pairs data frame of pair_environments, or NULL
#' @return data frame: the columns of a comparison, reference, repetition, ratio; NULL of no pairs
list_block_ratios <- function(pairs) {
  if (!is.null(pairs)) map_groups(pairs, c(COMPARISON_KEYS, "reference"), summarise_blocks)
}

#' Compare two environments in every series
#'
#' @param pairs data frame of pair_environments, or NULL
#' @return data frame, one row for each series: the columns of a comparison, reference, those of
#'   compare_pairs, slow_n (number of pairs) and slow (10 % quantile of their ratios, from ten pairs
#'   on); NULL of no pairs
compare_environments <- function(pairs) {
  if (is.null(pairs)) return(NULL)
  map_groups(pairs, c(COMPARISON_KEYS, "reference"), function(series) {
    row <- compare_pairs(summarise_blocks(series)$ratio, series$percentile[[1]])
    slow <- NA_real_
    if (nrow(series) >= 10) slow <- stats::quantile(series$ratio, 0.1, names = FALSE)
    cbind(row, slow_n = nrow(series), slow = slow)
  })
}

#' Compare all environments with native
#'
#' @param results list of read_results
#' @param pairs data frame of pair_with_native, or NULL
#' @return data frame of compare_environments with the columns of add_verdicts, and `family`, within
#'   which p values are adjusted; NULL of no pairs
compare_with_native <- function(results, pairs = pair_with_native(results$tidy)) {
  rows <- compare_environments(pairs)
  if (is.null(rows)) return(NULL)
  environments <- results$environments
  rows$family <- environments$family[match(rows$environment, environments$environment)]
  add_verdicts(rows)
}

#' Add the verdicts of comparisons, with p values adjusted within families
#'
#' @param rows data frame: ratio, p, p_equivalent, se, n, why, family
#' @return rows with p_adjusted (Benjamini and Hochberg 1995), verdict, direction ("slower" or
#'   "faster" if different) and more (how many further blocks would decide, if undecided)
add_verdicts <- function(rows) {
  rows$p_adjusted <- stats::ave(rows$p, rows$family, FUN = function(p) stats::p.adjust(p, "BH"))
  rows$verdict <- choose_verdict(rows$p_adjusted, rows$p_equivalent)
  rows$direction <- ifelse(rows$verdict != "different", "",
                           ifelse(rows$ratio < 1, "slower", "faster"))
  needed <- mapply(estimate_blocks_needed, rows$ratio, rows$se * sqrt(rows$n))
  rows$more <- ifelse(rows$verdict == "undecided" & rows$why == "", pmax(needed - rows$n, 1),
                      NA_real_)
  rows
}

#' Estimate the share of variance between blocks, which cancels out of ratios
#'
#' @param tidy tidy rows
#' @return data frame, one row for each headline series: workload, title, series, blocks, share and
#'   p (of an F test); NULL of series with fewer than three blocks or two environments
estimate_block_share <- function(tidy) {
  headlines <- tidy[tidy$headline, ]
  map_groups(headlines, c("workload", "title", "series"), function(rows) {
    blocks <- length(unique(rows$repetition))
    environments <- length(unique(rows$environment))
    if (blocks < 3 || environments < 2) return(NULL)
    rows$repetition <- factor(rows$repetition)
    # R warns of values that do not vary, since they fit perfectly.
    model <- stats::lm(log(value) ~ environment + repetition, rows)
    tests <- suppressWarnings(stats::anova(model))
    f <- tests["repetition", "F value"]
    data.frame(blocks = blocks, share = max(0, (f - 1) / (f + environments - 1)),
               p = tests["repetition", "Pr(>F)"])
  })
}

#' Summarise emulated machines, whose ratios to native have neither interval nor verdict
#'
#' They are compared with the native runs at the sizes of emulated machines, if there are any.
#'
#' @param results list of read_results
#' @return table of summarise_runs with `ratio` (of means, as performance); NULL if nothing was
#'   emulated
summarise_emulated <- function(results) {
  if (nrow(results$emulated) == 0) return(NULL)
  summary <- summarise_runs(results$emulated)
  counterparts <- results$environments$environment[results$environments$beside %in% TRUE]
  native <- summarise_runs(results$tidy[results$tidy$environment == NATIVE, ])
  if (length(counterparts) > 0) native <- summary[summary$environment %in% counterparts, ]
  native_mean <- NA_real_
  if (!is.null(native)) native_mean <- native$mean[match(summary$series, native$series)]
  summary$ratio <- (summary$mean / native_mean) ^ ifelse(summary$better == "higher", 1, -1)
  summary
}
