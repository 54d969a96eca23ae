# The sets: how the machine moved from one to the next, what pairing gains, and which sets were disturbed.

#' What the sets say of a series
#'
#' @param evidence as from `read_evidence`
#' @return data frame, a row for each series of which sets were measured: workload, metric, factors, name,
#'   sets, between, between_low, between_high, friedman_p, and of its ratios to native the medians of the
#'   relative half-widths, `paired` and `unpaired`, and of `gain`, how many times as many sets it would take
#'   without pairing (NA where that can't be told)
sets_of_series <- function(evidence) {
  rows <- evidence$sets
  half <- function(low, high) (high - low) / 2 / rows$ratio
  rows$paired <- half(rows$ratio_low, rows$ratio_high)
  rows$unpaired <- half(rows$unpaired_low, rows$unpaired_high)
  rows$gain <- (rows$unpaired / rows$paired)^2
  rows$name <- series_names(rows, evidence$plan)
  found <- rows[!duplicated(rows$name), ]
  middle <- function(x) as.vector(tapply(x, rows$name, stats::median, na.rm = TRUE)[found$name])
  found[c("paired", "unpaired", "gain")] <- lapply(rows[c("paired", "unpaired", "gain")], middle)
  found
}

#' How much of the variance lies between the sets, and what pairing gains
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where there is no ratio to native in sets
table_of_sets <- function(evidence) {
  rows <- sets_of_series(evidence)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  share <- function(x) ifelse(is.na(x), "", fixed(100 * x, 0))
  cells <- cbind(
    rows$name, fixed(rows$sets, 0), or_dash(share(rows$between)),
    or_dash(interval(100 * rows$between_low, 100 * rows$between_high, 0)), or_dash(p_text(rows$friedman_p)),
    or_dash(fixed(100 * rows$paired, 1)), or_dash(fixed(100 * rows$unpaired, 1)),
    or_dash(fixed(rows$gain, 1))
  )
  table <- new_table(
    "sets", "How much of the variance lies between the sets, and what it gains to compare within them",
    list(column("Workload and metric"), column("Sets", "right"),
         column("%", "right", "Variance between sets"),
         column(paste0("95", THIN, "% interval"), "right", "Variance between sets"),
         column("p", "right", "Variance between sets"), column("paired", "right", "Half-width (%)"),
         column("unpaired", "right", "Half-width (%)"), column("Worth", "right")),
    cells,
    notes = c(
      paste("Variance: of the logarithms, without what the environments differ by; p is that of",
            "Friedman\u2019s test of equal sets."),
      paste("Half-width: of the intervals of the ratios to native, as a share of the ratio, in the median",
            "over the environments; unpaired, as if no two runs were of one set (Fieller\u2019s interval for",
            "independent samples). Worth: how many times as many sets would be needed without pairing."),
      if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs.")
    )
  )
  table$sources[, -1] <- workload_list(rows$workload)
  table
}

#' How much the machine drifted, and what pairing gained
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where nothing can be told
drift_text <- function(evidence) {
  rows <- sets_of_series(evidence)
  known <- rows[!is.na(rows$between), ]
  if (nrow(known) == 0) {
    return("")
  }
  of <- function(text, row) linked(text, workload_list(row$workload))
  span <- function(x, show) {
    ends <- c(which.min(x), which.max(x))
    shown <- vapply(ends, function(i) paste0(of(show(x[[i]]), known[i, ]), " (", known$name[[i]], ")"), "")
    if (length(unique(ends)) == 1) shown[[1]] else paste(shown, collapse = " to ")
  }
  rejected <- sum(known$friedman_p < SIGNIFICANCE, na.rm = TRUE)
  moved <- known[!is.na(known$gain), ]
  paste(c(
    paste0("Between the sets lies ", span(known$between, function(x) percent(x, 0)),
           " of the variance that the environments leave. Friedman\u2019s test tells the sets apart in ",
           linked(fixed(rejected, 0), "records"), " of ", linked(counted(nrow(known), "metric"), "records"),
           "."),
    if (nrow(moved) > 0) {
      all_runs <- function(text) linked(text, "records")
      paste0("A ratio is one of runs of the same sets, from which this part falls out: in the median over ",
             "the metrics its interval has a half-width of ", all_runs(percent(stats::median(moved$paired))),
             ", where without pairing it would have ", all_runs(percent(stats::median(moved$unpaired))),
             "; pairing is worth ", all_runs(fixed(stats::median(moved$gain), 1)),
             " times as many sets.")
    }
  ), collapse = " ")
}

#' How many sets there were, were disturbed and were set aside
#'
#' @param evidence as from `read_evidence`
#' @return list of texts, as of `set_key`, each once: `all`, `disturbed`, and `aside`, those that do not count
sets_measured <- function(evidence) {
  paired <- paired_environments(evidence$plan)
  records <- Filter(function(record) record$environment %in% paired, evidence$records)
  all <- unique(vapply(records, set_key, ""))
  cells <- evidence$cells
  list(all = all, disturbed = set_key(disturbed_sets(evidence$plan, records)),
       aside = intersect(all, set_key(cells[cells$counts %in% "no", ])))
}

#' What became of the sets that were disturbed
#'
#' @param evidence as from `read_evidence`
#' @return sentences; NULL where no set was disturbed
disturbed_text <- function(evidence) {
  sets <- sets_measured(evidence)
  if (length(sets$disturbed) == 0) {
    return(NULL)
  }
  all_runs <- function(n) linked(fixed(n, 0), "records")
  aside <- length(sets$aside)
  kept <- length(setdiff(sets$disturbed, sets$aside))
  were <- function(n) if (n == 1) " was" else " were"
  paste0(
    "Of ", linked(counted(length(sets$all), "set"), "records"), ", ", all_runs(length(sets$disturbed)),
    " held a flagged run. ",
    if (aside > 0) {
      paste0(all_runs(aside), were(aside), " measured again and set aside, by a rule that was set ",
             "beforehand and looks at the machine, not at the values. ")
    },
    if (kept > 0) {
      paste0(all_runs(kept), if (kept == 1) " counts" else " count", " like the undisturbed ones. ")
    },
    largest_change(evidence)
  )
}

#' How far the ratios move with the disturbed sets and without them
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
largest_change <- function(evidence) {
  rows <- evidence$sets
  # Ratios of costs may be of many times: what moves is told as a share of the ratio itself.
  change <- pmax(abs(rows$all_ratio / rows$ratio - 1), abs(rows$quiet_ratio / rows$ratio - 1), na.rm = TRUE)
  if (all(is.na(change))) {
    return("No ratio to native can be told with them and without.")
  }
  most <- rows[which.max(change), ]
  paste0("With all sets, or without any that was disturbed, no ratio to native moves by more than ",
         linked(percent(max(change, na.rm = TRUE), 1), workload_list(most$workload)),
         " of the one that is told (", series_names(most, evidence$plan), " in ",
         in_sentence(environment_labels(evidence$plan, most$environment)), ").")
}

#' The ratios to native with the disturbed sets and without them
#'
#' @param evidence as from `read_evidence`
#' @return a table of the ratios in which that makes a difference, or NULL where it makes none
table_of_sensitivity <- function(evidence) {
  rows <- evidence$sets
  rows <- rows[rows$all_n != rows$ratio_n | rows$quiet_n != rows$ratio_n, ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  name <- series_names(rows, evidence$plan)
  shown <- function(ratio, low, high, n) {
    decimals <- mapply(percent_decimals, low, high)
    cbind(or_dash(ifelse(is.na(ratio), "", fixed(100 * ratio, decimals))),
          or_dash(ratio_interval(low, high, decimals)), fixed(n, 0))
  }
  cells <- cbind(
    blank_repeats(name), environment_labels(evidence$plan, rows$environment),
    shown(rows$ratio, rows$ratio_low, rows$ratio_high, rows$ratio_n),
    shown(rows$all_ratio, rows$all_low, rows$all_high, rows$all_n),
    shown(rows$quiet_ratio, rows$quiet_low, rows$quiet_high, rows$quiet_n)
  )
  group <- function(spanner) {
    list(column("%", "right", spanner), column(paste0("95", THIN, "% interval"), "right", spanner),
         column("Pairs", "right", spanner))
  }
  table <- new_table(
    "sensitivity", "Ratios to native with the sets that were disturbed and without them",
    c(list(column("Workload and metric"), column("Environment")), group("Sets that count"),
      group("All sets"), group("Undisturbed sets")),
    cells, group_starts = !duplicated(name),
    notes = c("Ratios that are the same in all three are left out.",
              if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs."))
  )
  table$sources[, -(1:2)] <- workload_list(rows$workload)
  table
}
