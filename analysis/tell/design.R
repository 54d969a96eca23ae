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
  # Nodes measure at the same time, and each counts for itself.
  node <- if (is_spread(plan)) node_labels(nodes_of(evidence$records)) else rep("", length(actual))
  kept <- !anyNA(c(planned, actual)) && !any(vapply(split(seq_along(actual), node), function(own) {
    is.unsorted(actual[own][order(planned[own])], strictly = TRUE)
  }, NA))
  emulated <- vapply(plan$environments, function(entry) isTRUE(entry$emulated), NA)
  paste0("All workloads have their sets in turn, in an order that follows from the seed ",
         linked(format(plan$seed, scientific = FALSE), "plan"), " alone. ",
         if (any(emulated)) {
           paste0("An emulated machine takes longer to bring up than a set to measure, and tests no claim: ",
                  "it has all workloads one after the other, and is fresh for each such pass. ")
         },
         if (length(evidence$records) > 0 && kept) {
           paste(if (length(unique(node)) > 1) "On each node the" else "The",
                 "runs were made in the planned order.")
         },
         if (!kept) "Not all runs were made in the planned order, as the records show.")
}

#' How many systems were up at a time, and which runs were made in turns
#'
#' @param evidence as from `read_evidence`
#' @return text
turns_text <- function(evidence) {
  alone <- "one system under test is up at a time"
  turns <- Filter(function(record) length(record$interleaved) > 0, evidence$records)
  if (length(turns) == 0) {
    return(paste0(sub("^o", "O", alone), "."))
  }
  laps <- vapply(turns, function(record) max(unlist(lapply(record$commands, `[[`, "lap"))), 0)
  laps <- paste(fixed(unique(range(laps)), 0), collapse = " to ")
  paste0(counted(length(turns), "run"), " of ", fixed(length(evidence$records), 0), " took turns with ",
         "others of their set, as interleaved trials: in each of ", laps, " laps all of these are made ",
         "once, one right after the other in an order drawn anew, and the value of a run is its mean ",
         "over the laps. Their systems are up together, and while one is measured nothing runs in the ",
         "others but a shell that waits for the next command. Otherwise ", alone, ".")
}

#' How many sets were planned
#'
#' @param plan as from `read_plan`
#' @return text such as "5 sets", and where more may be added "3 to 300 sets", of each workload
sets_planned <- function(plan) {
  open <- is.numeric(plan$precision$target)
  paste0(if (open) paste(fixed(plan$precision$min, 0), "to "), counted(plan$repetitions, "set"),
         " of each workload")
}

#' Which environments are in a part of the sets alone
#'
#' @param plan as from `read_plan`
#' @return sentence; NULL where each is in all
limits_text <- function(plan) {
  most <- largest_numbers(plan)
  if (length(most) > 0) {
    labels <- in_sentence(environment_labels(plan, names(most)))
    sets <- vapply(most, function(one) linked(fixed(one, 0), "plan"), "")
    paste0(listed(paste(labels, "is in", sets, "of them at most")), ", and decide",
           if (length(most) == 1) "s", " nothing about their number.")
  }
}

#' How many sets there were, and why
#'
#' @param evidence as from `read_evidence`
#' @return text
precision_text <- function(evidence) {
  plan <- evidence$plan
  asked <- plan$precision
  linked_plan <- function(text) linked(text, "plan")
  if (is.null(asked)) {
    return(paste(c(paste0(there(plan$repetitions), " ", linked_plan(counted(plan$repetitions, "set")),
                          " of each workload."), limits_text(plan)), collapse = " "))
  }
  rule <- paste0(
    there(asked$min), " at least ", linked_plan(counted(asked$min, "set")), " of each workload. ",
    if (length(largest_numbers(plan)) > 0) paste0(limits_text(plan), " "),
    if (!is.null(asked$target)) {
      paste0("More were added where the 95", THIN, "% interval of a ratio to native was farthest from ",
             "\u00b1", linked_plan(percent(asked$target)), " for what a set costs",
             if (isTRUE(asked$claims)) {
               paste(", and once all were within that, for published claims that take narrower intervals,",
                     "those first that take the least time, in sets of the environments alone that the",
                     "claim compares")
             },
             if (!is.null(asked$budget)) {
               paste0(", as long as ", linked_plan(paste(fixed(asked$budget / 60, 0), "minutes")),
                      " of measurement allowed")
             },
             "; the rule sees widths, costs and disturbances, and never the differences between ",
             "environments.")
    }
  )
  last <- evidence$precision
  if (is.null(last)) {
    return(paste(rule, "How that went is not available."))
  }
  if (is.null(asked$target)) {
    return(rule)
  }
  all_runs <- function(text) linked(text, "records")
  sets <- vapply(last$workloads, function(state) as.double(state$sets), 0)
  widest <- last$widest
  width <- if (is.numeric(widest$half_width)) paste0("\u00b1", percent(widest$half_width)) else "no interval"
  narrow <- table(factor(evidence$narrow$workload, names(sets)))
  for_claims <- vapply(fixed(narrow, 0), all_runs, "")
  for_claims <- ifelse(narrow > 0, paste0(" (", for_claims, " of them for claims)"), "")
  paste0(rule, " In the end there were ",
         listed(paste0(vapply(fixed(sets, 0), all_runs, ""), " of ", names(sets), for_claims)),
         ", because ", last$reason, "; ",
         all_runs(fixed(last$reached, 0)), " of ", all_runs(counted(last$metrics, "ratio")),
         if (last$reached == 1) " was" else " were", " within the target",
         if (!is.null(widest)) {
           paste0(", and the widest was ", linked(width, workload_list(widest$workload)), " (",
                  widest$workload, " ", words(widest$metric), " in ",
                  in_sentence(environment_labels(plan, widest$environment)), ")")
         },
         ".")
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
  paste0(there(tested), " ", all_runs(counted(tested, "comparison")), " with native that ",
         if (tested == 1) "has" else "have", " an interval; ",
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
                          " is not available", if (beyond == 0) {
                            paste0(": it takes ", FEWEST_RUNS, " runs that differ")
                          }, "."), most),
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
