# The design of the experiment: the order of the runs, how many there were and why, and how comparisons are
# counted.

#' How the order of the runs was made, and whether it was kept
#'
#' @param evidence as from `read_evidence`
#' @return text
order_text <- function(evidence) {
  plan <- evidence$plan
  planned <- field_numbers(evidence$records, "position", "planned")
  actual <- field_numbers(evidence$records, "position", "actual")
  kept <- !anyNA(c(planned, actual)) && !is.unsorted(actual[order(planned)], strictly = TRUE)
  paste0("There are ", linked(counted(plan$repetitions, "block"), "plan"), "; the seed is ",
         linked(format(plan$seed, scientific = FALSE), "plan"), ". ",
         if (length(evidence$records) > 0 && kept) "The runs were made in the planned order.",
         if (!kept) "Not all runs were made in the planned order, as the records show.")
}

#' How many blocks there were, and why
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where the number was set beforehand
precision_text <- function(evidence) {
  asked <- evidence$plan$precision
  if (is.null(asked)) {
    return("")
  }
  rule <- paste0("Blocks were added until every mean\u2019s 95", THIN, "% interval was within \u00b1",
                 linked(percent(asked$target), "plan"), " of it, from ", linked(fixed(asked$min, 0), "plan"),
                 " on and to ", linked(fixed(asked$max, 0), "plan"), " at most; the rule sees widths alone, ",
                 "and never the differences between environments.")
  last <- evidence$precision
  if (is.null(last)) {
    return(paste(rule, "How that went is not available."))
  }
  widest <- last$widest
  width <- if (is.numeric(widest$half_width)) paste0("\u00b1", percent(widest$half_width)) else "no interval"
  all_runs <- function(text) linked(text, "records")
  paste0(rule, " ", all_runs(counted(last$block, "block")), if (last$block == 1) " was" else " were",
         " measured, because ", last$reason, "; ", all_runs(fixed(last$reached, 0)), " of ",
         all_runs(counted(last$metrics, "mean")), if (last$reached == 1) " was" else " were",
         " within it, and the widest was ", linked(width, workload_list(widest$workload)), " (",
         widest$workload, " ", words(widest$metric), " in ",
         in_sentence(environment_labels(evidence$plan, widest$environment)), "). Stopping by the width ",
         "narrows the final intervals a little.")
}

#' How the number of comparisons is allowed for
#'
#' @param evidence as from `read_evidence`
#' @return text
multiplicity_text <- function(evidence) {
  rows <- ratios(evidence, all = TRUE)
  tested <- sum(!is.na(rows$p_adjusted))
  if (tested == 0) {
    return("No ratio has an interval, so that no difference is called.")
  }
  called <- sum(rows$verdict %in% c("slower", "faster"))
  alone <- sum(rows$p_value < SIGNIFICANCE, na.rm = TRUE)
  all_runs <- function(text) linked(text, "records")
  paste0("There are ", all_runs(counted(tested, "comparison")), " with native that have an interval; ",
         all_runs(fixed(alone, 0)), if (alone == 1) " excludes" else " exclude", " equality when ",
         "looked at alone, ", all_runs(fixed(sum(rows$p_adjusted < SIGNIFICANCE, na.rm = TRUE), 0)),
         " after the adjustment, and ",
         if (called == 0) "no difference" else all_runs(counted(called, "difference")),
         if (called <= 1) " is" else " are", " called: those above the minimum effect.")
}

#' How well the medians are known, and what more would take
#'
#' @param evidence as from `read_evidence`
#' @return text
runs_needed_text <- function(evidence) {
  rows <- evidence$comparisons
  target <- paste0("\u00b1", percent(wanted_precision(evidence$plan)))
  known <- rows[!is.na(rows$runs_needed), ]
  unnarrowed <- grepl("many-runs", rows$flags, fixed = TRUE)
  beyond <- sum(unnarrowed)
  most <- if (beyond > 0) {
    paste0(linked(counted(beyond, "series", "series"), shared_source(rows[unnarrowed, ])),
           " would need more than ", counted(MOST_RUNS, "run"), ".")
  }
  if (nrow(known) == 0) {
    return(paste(c(paste0("How many would bring the medians to ", target,
                          " can\u2019t be estimated", if (beyond == 0) " from these runs", "."), most),
                 collapse = " "))
  }
  least <- known[which.min(known$runs_needed), ]
  most_needed <- known[which.max(known$runs_needed), ]
  span <- if (least$runs_needed == most_needed$runs_needed) {
    linked(fixed(least$runs_needed, 0), shared_source(known))
  } else {
    paste0(linked(fixed(least$runs_needed, 0), source_id(least)), " to ",
           linked(fixed(most_needed$runs_needed, 0), source_id(most_needed)), " (half of them at most ",
           linked(fixed(floor(stats::median(known$runs_needed)), 0), shared_source(known)), ")")
  }
  paste(c(paste0("To know the medians to ", target, ", the series need ", span, " runs."), most),
        collapse = " ")
}
