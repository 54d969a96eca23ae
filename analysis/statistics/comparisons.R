# Ratios to native: how each is read, and all of them as one family.

MINIMUM_EFFECT <- 0.02

# The readings of a ratio, as of `verdict`, in the order in which they are told.
VERDICTS <- c("slower", "faster", "equal", "open", "unknown")

#' How a ratio to native is read
#'
#' A difference is called only where the adjusted p value of the paired comparison is below 5 % and the ratio
#' itself is away from 1 by more than the minimum effect.  Where the whole interval lies within the minimum
#' effect, no difference that matters is left.
#'
#' @param ratio,low,high ratio to native and its interval; vectors of one length, with NA for what is not
#'   known
#' @param better "higher" or "lower", for each
#' @param p p values as from `paired_p_value`, adjusted by `adjusted_p_values` over all comparisons
#' @param minimum effect, as a share
#' @return character vector: "slower", "faster", "equal", "open" (an interval too wide for any of these),
#'   "unknown" (no interval) or "" (no ratio)
verdict <- function(ratio, low, high, better, p, minimum = MINIMUM_EFFECT) {
  bounded <- !is.na(ratio) & !is.na(low) & !is.na(high)
  significant <- bounded & !is.na(p) & p < SIGNIFICANCE
  called <- significant & abs(ratio - 1) > minimum + 1e-9
  slower <- called & xor(ratio > 1, better == "higher")
  equal <- bounded & low >= 1 - minimum - 1e-9 & high <= 1 + minimum + 1e-9
  ifelse(is.na(ratio), "", ifelse(!bounded, "unknown", ifelse(
    slower, "slower", ifelse(called, "faster", ifelse(equal, "equal", "open"))
  )))
}

#' The summaries with what the paper says of each row
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS
#' @param plan as from `read_plan`
#' @return the summary in the order of the plan's workloads and metrics, of the factors, and of the
#'   environments, with the columns `environment_label`, `title` (of the workload), `metric_label` (with its
#'   factors), `name` (of workload and metric), `series` (the same number for rows that are compared),
#'   `headline` (whether tables and sentences tell of it), `p_adjusted` (over all comparisons with native of
#'   all workloads, which are one family) and `verdict`
compare <- function(summary, plan) {
  workloads <- names(plan$workloads)
  if (nrow(summary) == 0) {
    text <- c("environment_label", "title", "metric_label", "name", "verdict")
    summary[text] <- list(character())
    summary$series <- integer()
    summary$headline <- logical()
    summary$p_adjusted <- numeric()
    return(summary)
  }
  metrics <- do.call(rbind, lapply(workloads, function(workload) {
    cbind(workload = workload, metrics_of(plan, workload))
  }))
  key <- paste(metrics$workload, metrics$metric)
  place <- match(paste(summary$workload, summary$metric), key)
  environment <- match(summary$environment, names(plan$environments))
  order <- order(place, natural_rank(summary$factors), environment)
  summary <- summary[order, ]
  place <- place[order]
  summary$environment_label <- environment_labels(plan, summary$environment)
  summary$title <- vapply(summary$workload, function(name) plan$workloads[[name]]$title, "",
                          USE.NAMES = FALSE)
  summary$metric_label <- trimws(paste0(metrics$label[place], factor_text(summary$factors)))
  summary$name <- paste0(summary$title, " ", lower_first(summary$metric_label))
  series <- paste(place, summary$factors)
  summary$series <- match(series, unique(series))
  summary$headline <- is_headline(summary, plan)
  summary$p_adjusted <- adjusted_p_values(summary$p_value)
  summary$verdict <- verdict(summary$ratio, summary$ratio_low, summary$ratio_high, summary$better,
                             summary$p_adjusted)
  rownames(summary) <- NULL
  summary
}

# The columns of comparisons.csv.
COMPARISON_COLUMNS <- c("environment", "workload", "metric", "unit", "better", "factors", "ratio",
                        "ratio_low", "ratio_high", "ratio_n", "p_value", "p_adjusted", "reading")

#' All comparisons with native
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS, of all workloads
#' @param plan as from `read_plan`
#' @return data frame with the columns of COMPARISON_COLUMNS, a row for each ratio, in the order of `compare`;
#'   `reading` is one of VERDICTS
comparison_table <- function(summary, plan) {
  rows <- compare(summary, plan)
  rows$reading <- rows$verdict
  rows <- rows[!is.na(rows$ratio), COMPARISON_COLUMNS]
  rownames(rows) <- NULL
  rows
}
