# Means, ratios, verdicts.  A block is one workload, once in each environment, side by side in random order:
# its runs are pairs, and everything is said of the logarithms of their ratios.  Sources: docs/statistics.md.

MARGIN <- 0.02   # the smallest difference that matters, set before measuring
ALPHA <- 0.05
PERCENTILE_PAIRS <- 6   # below that Wilcoxon's test has no interval at 95 %
EDGE <- -log(1 - MARGIN)
LEAST_ALIKE <- 0.15   # correlation of neighbouring blocks
MOST_ALIKE <- 0.8

#' Ratios of blocks, tested against the smallest difference that matters
#'
#' @param ratios in the order in which they were measured, all above 0
#' @param percentile,level whether they are of percentiles; of the interval
#' @return the row of compare_values, with scatter (of the logarithms) and se (of their mean)
compare_pairs <- function(ratios, percentile = FALSE, level = 1 - ALPHA) {
  d <- suppressWarnings(log(ratios))
  row <- compare_values(list(d), percentile, level, words = c("blocks", "ratio"))
  row$scatter <- if (length(d) > 1 && all(is.finite(d))) stats::sd(d) else NA_real_
  se <- function() if (percentile) row$scatter / sqrt(row$n) else error_of_mean(d)$se
  row$se <- if (row$why == "") se() else NA_real_
  row
}

#' Two samples that share no blocks (two experiments, or logs whose runs are not paired), or one alone
#'
#' @param x,y values in the order in which they were measured; y is NULL for x alone
#' @param how "ratio" (x to y), "difference" (x less y) or "level" (x); the p values are of ratios alone
#' @param percentile,level as above
#' @param edge logarithm of the smallest ratio that matters
compare_samples <- function(x, y = NULL, how = "ratio", percentile = FALSE, level = 1 - ALPHA, edge = EDGE) {
  sides <- Filter(Negate(is.null), list(x, y))
  if (how == "ratio") {
    return(compare_values(lapply(sides, function(x) suppressWarnings(log(x))), percentile, level, edge))
  }
  # In units of the largest, so that squares of what is huge or tiny are numbers too.
  size <- max(abs(unlist(sides)), 0)
  if (!is.finite(size) || size == 0) size <- 1
  compare_values(lapply(sides, `/`, size), percentile, level, edge, function(x) x * size)
}

#' One sample of distances, or the distance of two samples
#'
#' Different: a test of the null hypothesis that it lies within the margin (McCarthy and Smyth 2009).
#' Equivalent: two one-sided tests (Schuirmann 1987).  Student's tests of the mean, of two samples Welch's
#' (1947); of percentiles Wilcoxon's, of two samples that of Wilcoxon, Mann and Whitney.
#'
#' @param sides list of the one or two samples
#' @param back from their scale to that of what is told
#' @param words what there must be enough of, and what must vary
#' @return data frame of one row: n (of the smaller one), ratio, low, high, p, p_equivalent, why (there is no
#'   interval); what is not known is NA, and nothing is NaN
compare_values <- function(sides, percentile, level, edge = EDGE, back = exp, words = c("runs", "value")) {
  n <- min(lengths(sides))
  # A ratio of what is not above 0 has no logarithm.
  known <- all(is.finite(unlist(sides)))
  away <- Reduce(`-`, lapply(sides, if (percentile) stats::median else mean))
  row <- list2DF(list(n = n, ratio = if (n > 0 && known) back(away) else NA_real_, low = NA_real_,
                      high = NA_real_, p = NA_real_, p_equivalent = NA_real_, why = ""))
  least <- if (percentile) PERCENTILE_PAIRS else 3
  if (n < least) row$why <- paste("fewer than", least, words[[1]])
  else if (!known) row$why <- paste("not all", words[[1]], "give a", words[[2]])
  else if (all(vapply(sides, stats::sd, 0) < 1e-12)) {
    of <- if (length(sides) > 1) "of a side"
    row$why <- paste(c("all", words[[1]], of, "give the same", words[[2]]), collapse = " ")
  }
  if (row$why != "") return(row)
  found <- if (percentile) by_ranks(sides, level, edge) else by_mean(sides, level, edge)
  if (anyNA(found)) {
    row$why <- paste("too many", words[[1]], "give the same", words[[2]])
    return(row)
  }
  found[c("ratio", "low", "high")] <- lapply(found[c("ratio", "low", "high")], back)
  row[names(found)] <- found
  row
}

# P(|T| as far beyond the margin as was seen), were the distance at its edge, is the largest p of all
# within it.
by_mean <- function(sides, level, edge) {
  errors <- lapply(sides, error_of_mean)
  squares <- vapply(errors, function(one) one$se ^ 2, 0)
  se <- sqrt(sum(squares))
  # Satterthwaite's degrees of freedom.
  df <- sum(squares) ^ 2 / sum(squares ^ 2 / vapply(errors, `[[`, 0, "df"))
  away <- Reduce(`-`, lapply(sides, mean))
  half <- stats::qt((1 + level) / 2, df) * se
  p <- function(distance) stats::pt(distance / se, df)
  list(ratio = away, low = away - half, high = away + half, p = p(edge - abs(away)) + p(-edge - abs(away)),
       p_equivalent = p(abs(away) - edge))
}

#' Standard error of a mean of values of which neighbours are alike, and its degrees of freedom
#'
#' As many independent values are put for the blocks as follow from the correlation of neighbours (Bartlett
#' 1946), the bias of which is taken off (Marriott and Pope 1954); it is taken to be 0.15 at least, since few
#' blocks do not show it.  The mean of values that do not vary has no error.
error_of_mean <- function(d) {
  n <- length(d)
  e <- d - mean(d)
  seen <- if (any(e != 0)) sum(e[-1] * e[-n]) / sum(e ^ 2) else 0
  alike <- min(max(LEAST_ALIKE, seen + (1 + 4 * seen) / n), MOST_ALIKE)
  independent <- n * (1 - alike) / (1 + alike)
  list(se = stats::sd(d) / sqrt(independent), df = max(independent - 1, 2))
}

# NA where so many values are alike that R finds no interval.
by_ranks <- function(sides, level, edge) {
  other <- if (length(sides) > 1) sides[[2]]
  test <- function(...) suppressWarnings(stats::wilcox.test(sides[[1]], other, conf.int = TRUE, ...))
  p <- function(edge, side) test(mu = edge, alternative = side)$p.value
  both <- tryCatch(test(conf.level = level), error = function(e) NULL)
  if (is.null(both)) return(NA)
  # Twice the smaller is never less than the sum.
  list(ratio = both$estimate[[1]], low = both$conf.int[[1]], high = both$conf.int[[2]],
       p = min(1, 2 * p(edge, "greater"), 2 * p(-edge, "less")),
       p_equivalent = max(p(-edge, "greater"), p(edge, "less")))
}

#' The verdict of a comparison: p adjusted within its family, p of the equivalence not
verdict_of <- function(p_adjusted, p_equivalent) {
  known <- !is.na(p_adjusted)
  ifelse(known & p_adjusted < ALPHA, "different",
         ifelse(known & p_equivalent < ALPHA, "equivalent", "undecided"))
}

#' Blocks with which a difference, or its absence, would be told with 80 % probability, if ratio and scatter
#' stay
#'
#' @param scatter of the logarithms, were neighbours not alike
blocks_to_decide <- function(ratio, scatter) {
  delta <- abs(log(ratio))
  # Both one-sided tests have to succeed: with 90 % each, both do with 80 % at least.
  power <- if (delta > EDGE) 0.8 else 0.9
  n <- tryCatch(stats::power.t.test(delta = max(abs(delta - EDGE), 1e-4), sd = scatter, sig.level = ALPHA,
                                    power = power, type = "one.sample", alternative = "one.sided")$n,
                error = function(e) NA_real_)
  max(ceiling(n), 3)
}

SERIES <- c("workload", "title", "question", "metric", "metric_label", "factors", "series", "unit", "better",
            "headline")
# Those of a comparison.
PAIRED <- c(SERIES, "percentile", "environment", "label")

#' Mean with Student's interval, median with that of order statistics
summarise_runs <- function(tidy) {
  keys <- setdiff(PAIRED, "question")
  by_group(tidy, keys, function(rows) {
    x <- rows$value
    n <- length(x)
    half <- if (n > 1) stats::qt(1 - ALPHA / 2, n - 1) * stats::sd(x) / sqrt(n) else NA_real_
    # The interval is from the rank-th smallest to the rank-th largest.
    rank <- stats::qbinom(ALPHA / 2, n, 0.5)
    median <- if (rank < 1) c(NA_real_, NA_real_) else sort(x)[c(rank, n + 1 - rank)]
    list2DF(list(n = n, mean = mean(x), sd = stats::sd(x), mean_low = mean(x) - half,
                 mean_high = mean(x) + half, median = stats::median(x),
                 median_low = median[[1]], median_high = median[[2]], min = min(x), max = max(x)))
  })
}

#' Levels that agree with the ratios: native's own, and of the others native's times the ratio of the blocks
#'
#' The interval is native's own, of the others that of the ratio.  Where there is no ratio, it is their own
#' level, without an interval.
#'
#' @param summary,compared tables of summarise_runs and compare_all; NULL where nothing was measured, or
#'   compared
#' @return summary with level, level_low, level_high
add_levels <- function(summary, compared) {
  if (is.null(summary)) return(NULL)
  key <- function(rows) paste(rows$workload, rows$metric, rows$factors)
  value <- function(mean, median) ifelse(summary$percentile, summary[[median]], summary[[mean]])
  own <- value("mean", "median")
  native <- summary$environment == NATIVE
  base <- own[native][match(key(summary), key(summary)[native])]
  at <- match(paste(key(summary), summary$environment), paste(key(compared), compared$environment))
  of_ratio <- function(column) {
    ratio <- if (is.null(compared)) rep(NA_real_, length(at)) else compared[[column]][at]
    base * ratio ^ ifelse(summary$better == "higher", 1, -1)
  }
  ends <- cbind(of_ratio("low"), of_ratio("high"))
  summary$level <- ifelse(is.na(of_ratio("ratio")), own, of_ratio("ratio"))
  summary$level_low <- ifelse(native, value("mean_low", "median_low"), pmin(ends[, 1], ends[, 2]))
  summary$level_high <- ifelse(native, value("mean_high", "median_high"), pmax(ends[, 1], ends[, 2]))
  summary
}

# The rows that a function makes of each group of rows, behind the columns that make the group, in their
# order.
by_group <- function(rows, keys, make) {
  group <- do.call(paste, c(rows[keys], sep = "\r"))
  parts <- split(seq_len(nrow(rows)), factor(group, unique(group)))
  made <- lapply(unname(parts), function(at) make(rows[at, ]))
  first <- rep(vapply(unname(parts), `[[`, 1L, 1), vapply(made, NROW, 1L))
  made <- stack_rows(made)
  if (!is.null(made)) cbind(rows[first, keys], made, row.names = NULL)
}

#' Values of two environments in the same blocks, those of laps in the same laps
#'
#' @return data frame, one row per pair: repetition (the block), ratio
pair_rows <- function(rows, reference) {
  at <- match(rows$repetition, reference$repetition)
  one <- rows[!is.na(at), ]
  other <- reference[at[!is.na(at)], ]
  of_block <- function(i) {
    laps <- lapply(list(one$laps[[i]], other$laps[[i]]), function(text) as.numeric(strsplit(text, ";")[[1]]))
    paired <- length(laps[[1]]) > 0 && length(laps[[1]]) == length(laps[[2]])
    if (paired) laps[[1]] / laps[[2]] else one$value[[i]] / other$value[[i]]
  }
  ratios <- lapply(seq_len(nrow(one)), of_block)
  data.frame(repetition = rep(one$repetition, lengths(ratios)), ratio = as.numeric(unlist(ratios)))
}

#' The ratio of each block: of laps the pseudomedian of their pairs (Hodges and Lehmann 1963)
#'
#' @param pairs as of pair_rows
#' @return data frame, one row per block: repetition, ratio
of_blocks <- function(pairs) {
  ratios <- tapply(pairs$ratio, pairs$repetition, pseudomedian)
  data.frame(repetition = as.numeric(names(ratios)), ratio = as.vector(ratios))
}

#' The median of the geometric means of all pairs of values, each of a value and itself among them: of normal
#' noise nearly as good as the mean, and nearly a third of the values may be wild
pseudomedian <- function(x) {
  means <- outer(log(x), log(x), `+`) / 2
  exp(stats::median(means[upper.tri(means, diag = TRUE)]))
}

#' The performance of one environment as a share of another's, every series, pair by pair
#'
#' @param rows,reference tidy rows of the two
#' @return data frame: the columns that make a series, percentile, environment, label, reference, and those of
#'   pair_rows; NULL of no pair
pairs_of <- function(rows, reference) {
  key <- function(rows) paste(rows$workload, rows$metric, rows$factors, sep = "\r")
  places <- split(seq_len(nrow(reference)), key(reference))
  by_group(rows, PAIRED, function(own) {
    other <- reference[places[[key(own[1, ])]], ]
    pairs <- pair_rows(own, other)
    if (nrow(pairs) == 0) return(NULL)
    if (own$better[[1]] == "lower") pairs$ratio <- 1 / pairs$ratio
    cbind(reference = other$environment[[1]], pairs)
  })
}

#' The ratio of each block of pairs_of
block_ratios <- function(pairs) {
  if (!is.null(pairs)) by_group(pairs, c(PAIRED, "reference"), of_blocks)
}

#' One environment against another, every series
#'
#' @param pairs as of pairs_of
compare_environments <- function(pairs) {
  if (is.null(pairs)) return(NULL)
  by_group(pairs, c(PAIRED, "reference"), function(own) {
    row <- compare_pairs(of_blocks(own)$ratio, own$percentile[[1]])
    enough <- nrow(own) >= 10
    cbind(row, slow_n = nrow(own),
          slow = if (enough) stats::quantile(own$ratio, 0.1, names = FALSE) else NA_real_)
  })
}

#' Adjusts p values within families (Benjamini and Hochberg 1995) and says what follows
decide <- function(rows) {
  rows$p_adjusted <- stats::ave(rows$p, rows$family, FUN = function(p) stats::p.adjust(p, "BH"))
  rows$verdict <- verdict_of(rows$p_adjusted, rows$p_equivalent)
  rows$direction <- ifelse(rows$verdict != "different", "", ifelse(rows$ratio < 1, "slower", "faster"))
  needed <- mapply(blocks_to_decide, rows$ratio, rows$se * sqrt(rows$n))
  rows$more <- ifelse(rows$verdict == "undecided" & rows$why == "", pmax(needed - rows$n, 1), NA_real_)
  rows
}

#' All pairs with native
pairs_of_native <- function(tidy) {
  pairs_of(tidy[tidy$environment != NATIVE, ], tidy[tidy$environment == NATIVE, ])
}

#' All comparisons with native
#'
#' @param pairs as of pairs_of_native
compare_all <- function(results, pairs = pairs_of_native(results$tidy)) {
  rows <- compare_environments(pairs)
  if (is.null(rows)) return(NULL)
  rows$family <- results$environments$family[match(rows$environment, results$environments$environment)]
  decide(rows)
}

#' How much of a series' variance lies between the blocks, and so falls out of a ratio
share_of_blocks <- function(tidy) {
  by_group(tidy[tidy$headline, ], c("workload", "title", "series"), function(rows) {
    blocks <- length(unique(rows$repetition))
    width <- length(unique(rows$environment))
    if (blocks < 3 || width < 2) return(NULL)
    rows$repetition <- factor(rows$repetition)
    # Values that do not vary at all fit perfectly, of which R warns.
    table <- suppressWarnings(stats::anova(stats::lm(log(value) ~ environment + repetition, rows)))
    f <- table["repetition", "F value"]
    data.frame(blocks = blocks, share = max(0, (f - 1) / (f + width - 1)), p = table["repetition", "Pr(>F)"])
  })
}

#' Emulated machines: the level, and how it stands to native's; without a verdict
emulated_table <- function(results) {
  if (nrow(results$emulated) == 0) return(NULL)
  found <- summarise_runs(results$emulated)
  beside <- results$environments$environment[results$environments$beside %in% TRUE]
  native <- summarise_runs(results$tidy[results$tidy$environment == NATIVE, ])
  if (length(beside) > 0) native <- found[found$environment %in% beside, ]
  # There may be no native beside them.
  of_native <- if (is.null(native)) NA_real_ else native$mean[match(found$series, native$series)]
  found$ratio <- (found$mean / of_native) ^ ifelse(found$better == "higher", 1, -1)
  found
}
