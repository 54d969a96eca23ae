# Forecasts how many further blocks, and how much time, would decide the ratios and claims of a run,
# and which difference a budget would show.  All forecasts assume that ratio and scatter do not
# change.

# The largest number of blocks that a forecast tries: no run comes near it, and bisection is fast.
MAX_BLOCKS <- 1e6

#' Forecast the half-width of a ratio's interval
#'
#' @param row row of estimate_mean_ratio that has an interval
#' @param n number of all blocks, those of `row` included
#' @return half-width of the 95 % interval as a share of the ratio
forecast_half_width <- function(row, n) {
  scatter <- row$se * sqrt(row$n)
  sinh(stats::qt(1 - ALPHA / 2, forecast_df(row, n)) * scatter / sqrt(n))
}

# Forecasts the degrees of freedom of the interval of n blocks: at least 2, like those of
# estimate_standard_error.  The effective number of blocks is assumed to grow in proportion to n.
# row: row of estimate_mean_ratio with an interval.
# n: number of all blocks, those of `row` included.
forecast_df <- function(row, n) {
  # df is clamped at 2, so that df + 1 may exceed the effective number of blocks, which the standard
  # error shows.
  effective_n <- pmin(row$df + 1, (row$scatter / row$se) ^ 2)
  pmax(n * effective_n / row$n - 1, 2)
}

#' Forecast how many blocks give a ratio's interval a half-width
#'
#' @param row row of estimate_mean_ratio
#' @param width half-width of the 95 % interval, as a share of the ratio, above 0
#' @return total number of blocks, at least INTERVAL_BLOCKS; NA if `row` has no interval, or if
#'   MAX_BLOCKS are not enough
forecast_blocks <- function(row, width) {
  if (is.na(row$se)) return(NA_real_)
  is_enough <- function(n) forecast_half_width(row, n) <= width
  if (!is_enough(MAX_BLOCKS)) return(NA_real_)
  # Bisection: `high` is always enough; `low` is not, or is fewer than an interval needs.
  low <- INTERVAL_BLOCKS - 1
  high <- MAX_BLOCKS
  while (high - low > 1) {
    middle <- (low + high) %/% 2
    if (is_enough(middle)) high <- middle else low <- middle
  }
  high
}

#' Make a function that forecasts the seconds of a block from the median times of measured cells
#'
#' @param results list of read_results
#' @return function of environments (names) and a workload (its name), which returns the seconds of
#'   a block with one cell in each environment; NA if one of them was not measured
make_block_time_forecaster <- function(results) {
  cells <- vapply(results$records, function(record) {
    paste(record$environment, record$workload, sep = "\r")
  }, "")
  # One cell that took long does not move the median.
  medians <- tapply(get_cell_seconds(results$records), cells, stats::median)
  function(environments, workload) {
    seconds <- medians[paste(unique(environments), workload, sep = "\r")]
    if (anyNA(seconds)) NA_real_ else sum(seconds)
  }
}

#' Forecast how many more blocks would decide each headline ratio
#'
#' @param results list of read_results
#' @param width half-width that an interval shall have, as a share of the ratio
#' @param budget seconds of a whole run, shared evenly by its workloads; NA if there is none
#' @return data frame, one row for each ratio; NULL if there are no ratios.  strata/claim/outlook.py
#'   reads its columns as keys:
#'   environment, label, workload, series, n, ratio, low, high, verdict;
#'   seconds: of a block of native and the environment;
#'   width_more: further blocks until the interval has the half-width;
#'   verdict_more: further blocks until a verdict, with the probability POWER; NA if it has one;
#'   difference: the smallest loss, as a share, that the budget would show with the probability
#'   POWER; NA without a budget, or if it pays for fewer than VERDICT_BLOCKS blocks
forecast_ratios <- function(results, width, budget = NA) {
  rows <- compare_with_native(results)
  if (is.null(rows)) return(NULL)
  rows <- rows[rows$headline, ]
  groups <- number_verdicts(rows)
  verdict_count <- max(groups, 0)
  # The error rate of each row: verdicts share ALPHA evenly, and so do the rows of a verdict.
  outer_alpha <- ALPHA / (verdict_count * tabulate(groups, verdict_count)[groups])
  forecast_seconds <- make_block_time_forecaster(results)
  tidy <- results$tidy
  workload_budget <- budget / length(unique(tidy$workload))
  rows[c("seconds", "width_more", "difference")] <- NA_real_
  for (i in seq_len(nrow(rows))) {
    row <- rows[i, ]
    rows$seconds[[i]] <- forecast_seconds(c(NATIVE, row$environment), row$workload)
    rows$width_more[[i]] <- max(forecast_blocks(row, width) - row$n, 0)
    environments <- tidy$environment[tidy$workload == row$workload]
    blocks <- workload_budget / forecast_seconds(environments, row$workload)
    if (is.na(blocks) || is.na(row$se) || blocks < VERDICT_BLOCKS) next
    df <- forecast_df(row, blocks)
    quantiles <- stats::qt(1 - outer_alpha[[i]], df) + stats::qt(POWER, df)
    limit <- log(1 - MARGIN) - quantiles * row$se * sqrt(row$n / blocks)
    rows$difference[[i]] <- 1 - exp(limit)
  }
  rows$verdict_more <- rows$more
  rows[c("environment", "label", "workload", "series", "n", "ratio", "low", "high", "verdict",
         "seconds", "width_more", "verdict_more", "difference")]
}

#' Forecast what would decide a claim
#'
#' A part whose ratio lies outside of its tolerance is forecast to contradict the claim; the other
#' parts are forecast to lie within theirs.
#'
#' @inheritParams test_claim
#' @param forecast_seconds function of make_block_time_forecaster
#' @param width half-width that the interval of every part shall have, as a share of its ratio,
#'   whether or not the part decides; NA if the verdict alone matters
#' @return data frame of one row: more (further blocks that decide with the probability POWER, or
#'   give the width) and seconds (of these blocks).  Both are NA if no part can be tested, if a part
#'   has no interval or if no number is enough; seconds is also NA if a cell was not measured
forecast_claim <- function(claim, published, values, context, forecast_seconds, width = NA) {
  parts <- Filter(is_testable, list_claim_parts(claim, published, values, context))
  estimates <- stack_rows(lapply(parts, function(part) {
    row <- estimate_claim_part(part, 1 - ALPHA)
    environments <- setdiff(c(part$environment, part$reference), "")
    block_seconds <- forecast_seconds(environments, part$workload)
    if (!is.na(width)) {
      # Only rows of paired blocks have the scatter that the forecast of a width takes.
      total_blocks <- if (is.null(row$scatter)) NA_real_ else forecast_blocks(row, width)
      more <- max(total_blocks - row$n, 0)
      return(data.frame(within = TRUE, more = more, seconds = more * block_seconds))
    }
    # A tolerance may begin at 0, which has no logarithm.
    bounds <- log(pmax(part$bounds, 1e-9))
    ends <- ifelse(is.na(bounds), c(-Inf, Inf), bounds)
    distance <- min(log(row$ratio) - ends[[1]], ends[[2]] - log(row$ratio))
    is_within <- (distance >= 0) %in% TRUE
    alpha <- if (is_within) ALPHA else ALPHA / length(parts) / 2
    # Within two bounds, two tests have to succeed.
    power <- if (is_within && all(is.finite(ends))) POWER_OF_TWO else POWER
    scatter <- row$se * sqrt(row$n)
    total_blocks <- estimate_blocks_at_distance(abs(distance), scatter, alpha, power)
    more <- max(total_blocks - row$n, 1)
    data.frame(within = is_within, more = more, seconds = more * block_seconds)
  }))
  if (is.null(estimates)) return(data.frame(more = NA_real_, seconds = NA_real_))
  # One part outside of its tolerance contradicts the claim: the one that is decided first counts.
  # All parts have to lie within to reproduce it: the one that is decided last counts.
  outside <- estimates[!estimates$within, ]
  if (nrow(outside) > 0) return(outside[order(outside$seconds)[[1]], c("more", "seconds")])
  data.frame(more = max(estimates$more), seconds = max(estimates$seconds))
}

#' Forecast what would decide the claims that a run leaves undecided
#'
#' @param results list of read_results
#' @param published list as in published/claims.json
#' @param width half-width of intervals, as a share, or NA: the parameter of forecast_claim
#' @return data frame of test_claims with more and seconds (see forecast_claim), which are NA for
#'   claims that are decided or not tested.  strata/claim/ reads the columns as keys
forecast_claims <- function(results, published, width = NA) {
  context <- make_claim_context(results)
  forecast_seconds <- make_block_time_forecaster(results)
  rows <- test_claims(published, results$tidy, context)
  forecasts <- lapply(seq_len(nrow(rows)), function(i) {
    if (!rows$verdict[[i]] %in% c("undecided", "tested in part")) {
      return(data.frame(more = NA_real_, seconds = NA_real_))
    }
    claim <- Find(function(claim) claim$id == rows$id[[i]], published$claims)
    # The second row of a claim is about the environment that stands for its product.
    if (rows$transferred[[i]] != "") {
      transferred <- transfer_claim(claim, published)
      claim <- transferred$claim
      published <- transferred$published
    }
    forecast_claim(claim, published, results$tidy, context, forecast_seconds, width)
  })
  cbind(rows, stack_rows(forecasts))
}
