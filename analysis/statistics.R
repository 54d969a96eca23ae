# Means, ratios, verdicts.  A block is one workload, once in each environment, side by side in random order: its runs
# are pairs, and everything is said of the logarithms of their ratios.  Sources: docs/statistics.md.

MARGIN <- 0.02   # the smallest difference that matters, set before measuring
ALPHA <- 0.05
PERCENTILE_PAIRS <- 6   # below that Wilcoxon's test has no interval at 95 %
EDGE <- -log(1 - MARGIN)

#' Ratio of two paired samples, tested against the smallest difference that matters
#'
#' Different: a test of the null hypothesis that the ratio lies within the margin (McCarthy and Smyth 2009).  Equivalent:
#' two one-sided tests (Schuirmann 1987).  Student's tests of the mean logarithm; of percentiles Wilcoxon's.
#'
#' @param x,y values in the same blocks, all above 0
#' @param percentile whether they are percentiles of samples
#' @param level of the interval
#' @return data frame of one row: n, ratio, low, high, p, p_equivalent, scatter (of the logarithms), why (no interval)
compare_pairs <- function(x, y, percentile = FALSE, level = 1 - ALPHA) {
  d <- log(x / y)
  d <- d[is.finite(d)]
  n <- length(d)
  center <- if (percentile) stats::median else mean
  row <- data.frame(n = n, ratio = if (n > 0) exp(center(d)) else NA_real_, low = NA_real_, high = NA_real_,
                    p = NA_real_, p_equivalent = NA_real_, scatter = if (n > 1) stats::sd(d) else NA_real_, why = "")
  least <- if (percentile) PERCENTILE_PAIRS else 3
  if (n < least) row$why <- paste("fewer than", least, "blocks")
  else if (row$scatter < 1e-12) row$why <- "all blocks give the same ratio"
  if (row$why != "") return(row)
  test <- function(...) {
    if (percentile) suppressWarnings(stats::wilcox.test(d, conf.int = TRUE, ...)) else stats::t.test(d, ...)
  }
  one_sided <- function(edge, side) test(mu = edge, alternative = side)$p.value
  both <- test(conf.level = level)
  row[c("ratio", "low", "high")] <- exp(c(both$estimate, both$conf.int))
  beyond <- c(one_sided(EDGE, "greater"), one_sided(-EDGE, "less"))
  # Student's: the sum is that of McCarthy and Smyth; of ranks twice the smaller, which is never less.
  row$p <- if (percentile) min(1, 2 * min(beyond)) else sum_beyond(row, d)
  row$p_equivalent <- max(one_sided(-EDGE, "greater"), one_sided(EDGE, "less"))
  row
}

# P(|T| as far beyond the edge as was seen), were the ratio at the edge: the largest p of all ratios within it.
sum_beyond <- function(row, d) {
  se <- row$scatter / sqrt(row$n)
  sum(stats::pt((c(EDGE, -EDGE) - abs(mean(d))) / se, row$n - 1))
}

#' The verdict of a comparison: p adjusted within its family, p of the equivalence not
verdict_of <- function(p_adjusted, p_equivalent) {
  ifelse(p_adjusted %in% NA, "undecided", ifelse(p_adjusted < ALPHA, "different",
                                                  ifelse(p_equivalent < ALPHA, "equivalent", "undecided")))
}

#' Blocks with which a difference, or its absence, would be told with 80 % probability, if ratio and scatter stay
blocks_to_decide <- function(ratio, scatter) {
  delta <- abs(log(ratio))
  distance <- max(abs(delta - EDGE), 1e-4)
  n <- tryCatch(stats::power.t.test(delta = distance, sd = scatter, sig.level = ALPHA, power = if (delta > EDGE) 0.8 else 0.9,
                                    type = "one.sample", alternative = "one.sided")$n, error = function(e) NA_real_)
  max(ceiling(n), 3)
}

SERIES <- c("workload", "title", "question", "metric", "metric_label", "factors", "series", "unit", "better", "headline")

#' Mean with Student's interval, median with that of order statistics
summarise_runs <- function(tidy) {
  keys <- c(setdiff(SERIES, "question"), "environment", "label")
  by_group(tidy, keys, function(rows) {
    x <- rows$value
    n <- length(x)
    half <- if (n > 1) stats::qt(1 - ALPHA / 2, n - 1) * stats::sd(x) / sqrt(n) else NA_real_
    rank <- stats::qbinom(ALPHA / 2, n, 0.5)   # the interval is from the rank-th smallest to the rank-th largest
    median <- if (rank < 1) c(NA_real_, NA_real_) else sort(x)[c(rank, n + 1 - rank)]
    data.frame(n = n, mean = mean(x), sd = stats::sd(x), mean_low = mean(x) - half, mean_high = mean(x) + half,
               median = stats::median(x), median_low = median[[1]], median_high = median[[2]], min = min(x), max = max(x))
  })
}

# What a function makes of each group of rows, behind the columns that make the group; in their order.
by_group <- function(rows, keys, make) {
  group <- do.call(paste, c(rows[keys], sep = "\r"))
  parts <- split(seq_len(nrow(rows)), factor(group, unique(group)))
  stack_rows(lapply(unname(parts), function(at) {
    made <- make(rows[at, ])
    if (!is.null(made)) cbind(rows[at[[1]], keys], made, row.names = NULL)
  }))
}

#' Values of two environments in the same blocks, those of laps in the same laps
#'
#' @return data frame: value and against, one row per block (of laps the pair with the median ratio stands for it)
pair_rows <- function(rows, reference) {
  keys <- intersect(c("repetition", "lap"), names(rows))
  found <- merge(rows[c(keys, "value")], stats::setNames(reference[c(keys, "value")], c(keys, "against")), by = keys)
  found$ratio <- found$value / found$against
  found
}

of_blocks <- function(pairs) {
  if (!"lap" %in% names(pairs)) pairs$ratio else as.vector(tapply(pairs$ratio, pairs$repetition, stats::median))
}

#' One environment against another, every series
#'
#' @param rows,reference tidy rows of the two
#' @param looks how often it was asked whether there are enough blocks: p is multiplied by it, the wider interval is
#'   that of Bonferroni
compare_environments <- function(rows, reference, looks = 1) {
  by_group(rows, c(SERIES, "environment", "label"), function(own) {
    other <- reference[reference$workload == own$workload[[1]] & reference$metric == own$metric[[1]] &
                         reference$factors == own$factors[[1]], ]
    pairs <- pair_rows(own, other)
    if (nrow(pairs) == 0) return(NULL)
    if (own$better[[1]] == "lower") pairs$ratio <- 1 / pairs$ratio
    ratio <- of_blocks(pairs)
    row <- compare_pairs(ratio, 1, own$percentile[[1]])
    wide <- compare_pairs(ratio, 1, own$percentile[[1]], 1 - ALPHA / looks)
    row[c("p", "p_equivalent")] <- lapply(row[c("p", "p_equivalent")], function(p) pmin(p * looks, 1))
    cbind(reference = reference$environment[[1]], row, looks = looks, wide_low = wide$low, wide_high = wide$high,
          slow = if (nrow(pairs) >= 10) stats::quantile(pairs$ratio, 0.1, names = FALSE) else NA_real_,
          slow_n = nrow(pairs))
  })
}

#' Adjusts p values within families (Benjamini and Hochberg 1995) and says what follows
decide <- function(rows) {
  rows$p_adjusted <- stats::ave(rows$p, rows$family, FUN = function(p) stats::p.adjust(p, "BH"))
  rows$verdict <- verdict_of(rows$p_adjusted, rows$p_equivalent)
  rows$direction <- ifelse(rows$verdict != "different", "", ifelse(rows$ratio < 1, "slower", "faster"))
  needed <- mapply(blocks_to_decide, rows$ratio, rows$scatter)
  rows$more <- ifelse(rows$verdict == "undecided" & rows$why == "", pmax(needed - rows$n, 1), NA_real_)
  rows
}

#' All comparisons with native
compare_all <- function(results) {
  tidy <- results$tidy
  others <- tidy[tidy$environment != NATIVE, ]
  rows <- compare_environments(others, tidy[tidy$environment == NATIVE, ], results$looks)
  if (is.null(rows)) return(NULL)
  rows$family <- results$environments$family[match(rows$environment, results$environments$environment)]
  decide(rows)
}

#' How much of a series' variance lies between the blocks, and so falls out of a ratio
share_of_blocks <- function(tidy) {
  by_group(tidy[tidy$headline, ], c("workload", "title", "series"), function(rows) {
    if ("lap" %in% names(rows)) rows <- stats::aggregate(value ~ repetition + environment, rows, stats::median)
    blocks <- length(unique(rows$repetition))
    width <- length(unique(rows$environment))
    if (blocks < 3 || width < 2) return(NULL)
    rows$repetition <- factor(rows$repetition)
    table <- stats::anova(stats::lm(log(value) ~ environment + repetition, rows))
    f <- table["repetition", "F value"]
    data.frame(blocks = blocks, share = max(0, (f - 1) / (f + width - 1)), p = table["repetition", "Pr(>F)"])
  })
}

#' Emulated machines: the level, and how it stands to native's; without a verdict
emulated_table <- function(results) {
  if (nrow(results$emulated) == 0) return(NULL)
  found <- summarise_runs(results$emulated)
  native <- summarise_runs(results$tidy[results$tidy$environment == NATIVE, ])
  at <- match(paste(found$series), paste(native$series))
  found$ratio <- (found$mean / native$mean[at]) ^ ifelse(found$better == "higher", 1, -1)
  found
}
