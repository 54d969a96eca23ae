# Two samples that share no blocks: two experiments, or logs whose runs are not paired.

#' One sample against another, or alone
#'
#' Welch's test (1947), with the standard error of values of which neighbours are alike; of percentiles that
#' of Wilcoxon, Mann and Whitney.  Ratios are compared by their logarithms.
#'
#' @param x,y values in the order in which they were measured; y is NULL for x alone
#' @param how "ratio" (x to y), "difference" (x less y) or "level" (x)
#' @param percentile whether they are percentiles of samples
#' @param level of the interval
#' @param edge logarithm of the smallest ratio that matters; the p values are of ratios alone
#' @return data frame of one row: n (of the smaller one), ratio (or difference, or level), low, high, p,
#'   p_equivalent, why (no interval)
compare_samples <- function(x, y = NULL, how = "ratio", percentile = FALSE, level = 1 - ALPHA, edge = EDGE) {
  to <- if (how == "ratio") log else identity
  back <- if (how == "ratio") exp else identity
  sides <- lapply(Filter(Negate(is.null), list(x, y)), to)
  n <- min(lengths(sides))
  center <- if (percentile) stats::median else mean
  away <- Reduce(`-`, lapply(sides, center))
  row <- data.frame(n = n, ratio = if (n > 0) back(away) else NA_real_, low = NA_real_, high = NA_real_,
                    p = NA_real_, p_equivalent = NA_real_, why = "")
  least <- if (percentile) PERCENTILE_PAIRS else 3
  if (n < least) row$why <- paste("fewer than", least, "runs")
  else if (all(vapply(sides, stats::sd, 0) < 1e-12)) row$why <- "all runs give the same value"
  if (row$why != "") return(row)
  found <- if (percentile) two_by_ranks(sides, level, edge) else two_by_mean(sides, level, edge)
  found[c("ratio", "low", "high")] <- lapply(found[c("ratio", "low", "high")], back)
  row[names(found)] <- found
  row
}

two_by_mean <- function(sides, level, edge) {
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

two_by_ranks <- function(sides, level, edge) {
  test <- function(...) suppressWarnings(stats::wilcox.test(sides[[1]], sides[[2]], conf.int = TRUE, ...))
  p <- function(edge, side) test(mu = edge, alternative = side)$p.value
  both <- test(conf.level = level)
  list(ratio = both$estimate[[1]], low = both$conf.int[[1]], high = both$conf.int[[2]],
       p = min(1, 2 * p(edge, "greater"), 2 * p(-edge, "less")),
       p_equivalent = max(p(-edge, "greater"), p(edge, "less")))
}
