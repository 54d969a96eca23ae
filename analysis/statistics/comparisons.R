# Ratios to native: how each is read, and all of them as one family.

# The readings of a ratio, as of `verdict`, in the order in which they are told.
VERDICTS <- c("slower", "faster", "equal", "open", "unknown")

#' How a ratio to native is read
#'
#' A difference is called only where the adjusted p value of the paired comparison is below 5 % and the ratio
#' itself is away from 1 by more than the minimum effect.  Equal is what two one-sided tests find to be within
#' the minimum effect: no difference that matters is left.
#'
#' @param ratio,low,high ratio to native and its interval; vectors of one length, with NA for what is not
#'   known
#' @param better "higher" or "lower", for each
#' @param p p values as from `paired_p_value`, adjusted by `adjusted_p_values` over all comparisons
#' @param equal_p p values as from `paired_equal_p`
#' @param minimum effect, as a share
#' @return character vector: "slower", "faster", "equal", "open" (an interval too wide for any of these),
#'   "unknown" (no interval) or "" (no ratio)
verdict <- function(ratio, low, high, better, p, equal_p, minimum = MINIMUM_EFFECT) {
  bounded <- !is.na(ratio) & !is.na(low) & !is.na(high)
  significant <- bounded & !is.na(p) & p < SIGNIFICANCE
  called <- significant & abs(ratio - 1) > minimum + 1e-9
  slower <- called & xor(ratio > 1, better == "higher")
  equal <- bounded & !is.na(equal_p) & equal_p < SIGNIFICANCE
  ifelse(is.na(ratio), "", ifelse(!bounded, "unknown", ifelse(
    slower, "slower", ifelse(called, "faster", ifelse(equal, "equal", "open"))
  )))
}

#' The summaries with what the paper says of each row
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS
#' @param plan as from `read_plan`
#' @param seconds as from `set_seconds`
#' @return the summary in the order of the plan's workloads and metrics, of the factors, and of the
#'   environments, with the columns `environment_label`, `title` (of the workload), `metric_label` (with its
#'   factors), `name` (of workload and metric), `series` (the same number for rows that are compared),
#'   `headline` (whether tables and sentences tell of it), `p_adjusted` (over all comparisons with native of
#'   all workloads, which are one family), `verdict`, `smallest_called` and, where a comparison of paired
#'   environments is open, those of `more_sets` and `more_minutes`
compare <- function(summary, plan, seconds = numeric()) {
  workloads <- names(plan$workloads)
  if (nrow(summary) == 0) {
    text <- c("environment_label", "title", "metric_label", "name", "verdict")
    summary[text] <- list(character())
    summary$series <- integer()
    summary$headline <- logical()
    summary[c("p_adjusted", SEEN_COLUMNS)] <- list(numeric())
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
                             summary$p_adjusted, summary$equal_p)
  summary[SEEN_COLUMNS] <- what_could_be_seen(summary, plan, seconds)
  rownames(summary) <- NULL
  summary
}

# What could have been seen in a comparison, and what it would take to decide it.
SEEN_COLUMNS <- c("smallest_called", "more_sets", "more_sets_low", "more_sets_high", "more_minutes")

#' What could have been seen in comparisons, and what it would take to decide those that are open
#'
#' @param rows of all comparisons with native, with their `verdict`
#' @param plan,seconds as of `compare`
#' @return data frame with the columns of SEEN_COLUMNS; NA where nothing is to be told
what_could_be_seen <- function(rows, plan, seconds) {
  p <- largest_called_p(rows$p_value)
  needed <- pairs_to_decide(rows$ratio, rows$scatter, rows$ratio_n, p)
  more <- more_sets(needed, rows$ratio_n)
  more[rows$verdict != "open" | !rows$environment %in% paired_environments(plan), ] <- NA_real_
  data.frame(smallest_called = smallest_called(rows$scatter, rows$ratio_n, p), more,
             more_minutes = minutes_of(more$more_sets, rows$workload, seconds))
}

# The columns of comparisons.csv.
COMPARISON_COLUMNS <- c("environment", "workload", "metric", "unit", "better", "factors", "ratio",
                        "ratio_low", "ratio_high", "ratio_n", "scatter", "p_value", "p_adjusted", "equal_p",
                        "reading", SEEN_COLUMNS)

#' All comparisons with native
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS, of all workloads
#' @param plan,seconds as of `compare`
#' @return data frame with the columns of COMPARISON_COLUMNS, a row for each ratio, in the order of `compare`;
#'   `reading` is one of VERDICTS
comparison_table <- function(summary, plan, seconds = numeric()) {
  rows <- compare(summary, plan, seconds)
  rows$reading <- rows$verdict
  rows <- rows[!is.na(rows$ratio), COMPARISON_COLUMNS]
  rownames(rows) <- NULL
  rows
}
