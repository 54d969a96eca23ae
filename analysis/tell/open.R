# What stays open: what could have been seen, and what it would take to decide.

#' The comparisons that are open, each with what could have been seen
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing is open
table_of_open <- function(evidence) {
  rows <- ratios(evidence)
  rows <- rows[rows$verdict == "open", ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  rows <- rows[order(rows$series), ]
  starts <- !duplicated(rows$series)
  cells <- cbind(
    ifelse(starts, rows$name, ""), rows$environment_label,
    percent_interval(rows$ratio, rows$ratio_low, rows$ratio_high), fixed(rows$ratio_n, 0),
    or_dash(rough_percent(rows$scatter)), or_dash(seen_percent(rows$smallest_called, ">")),
    or_dash(sets_number(rows$more_sets)), or_dash(sets_range(rows)), or_dash(minutes_number(rows))
  )
  more <- "More sets to decide"
  columns <- list(
    column("Workload and metric"), column("Environment"), column("Ratio to native", "right"),
    column("Pairs", "right"), column("Scatter", "right"), column("Called from", "right"),
    column("Number", "right", more), column(paste0("95", THIN, "%"), "right", more),
    column("Minutes", "right", more)
  )
  emulated <- !rows$environment %in% paired_environments(evidence$plan)
  notes <- c(
    paste0("Scatter: standard deviation of the pairs about the ratio. Called from: the smallest difference ",
           "from native that these pairs would have called, never below ", percent(MINIMUM_EFFECT, 0), "."),
    paste0("More sets: how many more of the workload would decide, with ", percent(POWER, 0), " probability ",
           "and if ratio and scatter stay as they were seen; 95", THIN, "%: the same at the limits of the ",
           "variance\u2019s interval. One more set serves all environments and metrics of its workload."),
    if (any(is.na(rows$more_sets) & !emulated)) {
      paste0(EM_DASH, ": not available from fewer than ", FEWEST_PAIRS, " pairs.")
    },
    if (any(emulated)) "Emulated machines test no claim, and get no more sets."
  )
  table <- new_table("open", "Comparisons that stay open: what could have been seen, and what would decide",
                     columns, cells, group_starts = starts, notes = notes)
  table$sources[, 3:9] <- source_id(rows)
  table
}

#' What stays open of a workload
#'
#' @param rows of the comparisons
#' @return one sentence, or NULL where nothing is open
open_sentence <- function(rows) {
  rows <- rows[rows$verdict == "open" & !is.na(rows$smallest_called), ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  at <- function(place) linked(seen_percent(rows$smallest_called[place]), source_id(rows[place, ]))
  least <- which.min(rows$smallest_called)
  most <- which.max(rows$smallest_called)
  span <- if (seen_percent(rows$smallest_called[least]) == seen_percent(rows$smallest_called[most])) {
    at(most)
  } else {
    paste(at(least), "to", at(most))
  }
  known <- rows[!is.na(rows$more_sets), ]
  paste0("Where this is open, a difference of ", span, " would have been called", if (nrow(known) > 0) {
    worst <- known[which.max(known$more_sets), ]
    paste0("; if ratio and scatter stay as seen, ", linked(sets_text(worst), source_id(worst)),
           " would decide ", if (nrow(known) == 1) "it" else "all of it")
  }, ".")
}

#' What it would take, in words
#'
#' @param row of the comparisons or of the claims, with those of `more_sets` and `more_minutes`
#' @return text such as "12 more sets (5 to 80; 3 minutes)"
sets_text <- function(row) {
  minutes <- minutes_number(row)
  number <- sets_number(row$more_sets)
  told <- c(if (sets_range(row) != number) sets_range(row),
            if (minutes != "") paste(minutes, if (minutes == "1") "minute" else "minutes"))
  paste0(number, " more set", if (row$more_sets != 1) "s",
         if (length(told) > 0) paste0(" (", paste(told, collapse = "; "), ")"))
}

#' Numbers of sets
#'
#' @param sets numbers
#' @return texts; "more than 1,000" for more, "" where it is not known
sets_number <- function(sets) {
  ifelse(!is.na(sets) & sets > MOST_RUNS, paste("more than", fixed(MOST_RUNS, 0)), fixed(sets, 0))
}

#' What is not known of a number of sets
#'
#' @param rows with those of `more_sets`
#' @return texts such as "5 to 80"; "" where it is not known
sets_range <- function(rows) {
  low <- sets_number(rows$more_sets_low)
  high <- sets_number(rows$more_sets_high)
  ifelse(is.na(rows$more_sets), "", ifelse(low == high, low, paste(low, "to", high)))
}

#' Minutes of more sets
#'
#' @param rows with `more_sets` and `more_minutes`
#' @return texts; "" where they are not known, or so many as nobody will measure
minutes_number <- function(rows) {
  ifelse(is.na(rows$more_minutes) | rows$more_sets > MOST_RUNS, "", ifelse(
    rows$more_minutes < 1, "<1", fixed(rows$more_minutes, 0)
  ))
}

#' What of the published claims was decided
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL without claims
decided_sentence <- function(evidence) {
  counts <- table(factor(evidence$claims$verdict, CLAIM_VERDICTS))
  if (sum(counts) == 0) {
    return(NULL)
  }
  of_runs <- function(n) linked(fixed(n, 0), if (sum(counts[1:3]) > 0) "records" else "plan")
  decided <- sum(counts[1:2])
  paste0("Of ", counted(sum(counts), "published claim"), ", ", if (decided == 0) "none" else of_runs(decided),
         if (decided <= 1) " is" else " are", " decided here", if (decided > 0) {
           paste0(" (", of_runs(counts[[1]]), " reproduced, ", of_runs(counts[[2]]), " contradicted)")
         }, ", ", of_runs(counts[[3]]),
         if (counts[[3]] == 1) " stays" else " stay", " open, and ",
         linked(fixed(counts[[4]], 0), if (counts[[4]] > 0) "table-untested" else "plan"),
         " can\u2019t be tested here.")
}
