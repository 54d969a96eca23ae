# The results with their intervals.

#' The results with their intervals
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_of_intervals <- function(evidence) {
  rows <- told(evidence)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  half <- (rows$mean_high - rows$mean_low) / 2
  decimals <- mapply(decimals_for, half, ifelse(is.na(rows$mean), 0, rows$mean))
  # A median without an interval has the digits of its mean.
  around <- (rows$median_high - rows$median_low) / 2
  of_median <- mapply(decimals_for, ifelse(is.na(around), half, around), rows$median)
  with_median <- any(!is.na(rows$median_low))
  with_ratio <- any(!is.na(rows$ratio))
  with_need <- any(!is.na(rows$runs_needed)) || any(grepl("many-runs", rows$flags))
  target <- paste0("\u00b1", percent(wanted_precision(evidence$plan)))
  starts <- !duplicated(rows$series)
  flags <- flag_letters(rows$flags)
  everywhere <- flags$everywhere
  ratio_decimals <- mapply(percent_decimals, rows$ratio_low, rows$ratio_high)
  missing_ratio <- ifelse(rows$environment == REFERENCE, "", EM_DASH)
  cells <- cbind(
    ifelse(starts, paste0(rows$name, " (", rows$unit, ")"), ""),
    rows$environment_label,
    fixed(rows$n, 0),
    or_dash(fixed(rows$mean, decimals)),
    or_dash(interval(rows$mean_low, rows$mean_high, decimals)),
    fixed(rows$median, of_median),
    if (with_median) or_dash(interval(rows$median_low, rows$median_high, of_median)),
    ifelse(is.na(rows$ratio), missing_ratio, fixed(100 * rows$ratio, ratio_decimals)),
    ifelse(is.na(rows$ratio_low), missing_ratio,
           ratio_interval(rows$ratio_low, rows$ratio_high, ratio_decimals)),
    ifelse(is.na(rows$ratio), missing_ratio, fixed(rows$ratio_n, 0)),
    ifelse(is.na(rows$p_adjusted), missing_ratio, p_text(rows$p_adjusted)),
    ifelse(rows$verdict == "", missing_ratio, reading(rows$verdict)),
    if (with_need) or_dash(ifelse(grepl("many-runs", rows$flags), paste(">", fixed(MOST_RUNS, 0)),
                                  fixed(rows$runs_needed, 0))),
    flags$letters
  )
  interval_head <- paste0("95", THIN, "% interval")
  columns <- list(
    column("Workload and metric"), column("Environment"), column("n", "right"),
    column("Mean", "right", "Level"), column(interval_head, "right", "Level"),
    column("Median", "right", "Level"), if (with_median) column(interval_head, "right", "Level"),
    column("%", "right", "Ratio to native"), column(interval_head, "right", "Ratio to native"),
    column("Pairs", "right", "Ratio to native"), column("p", "right", "Ratio to native"),
    column("Reading", "left", "Ratio to native"), if (with_need) column(paste("Runs for", target), "right"),
    column("Flags", "left")
  )
  unflagged <- flags$letters == ""
  minimum <- percent(MINIMUM_EFFECT, 0)
  notes <- c(
    if (with_ratio) {
      paste0("p: adjusted over all comparisons ",
             c("of this table", "with native, those of sweeps too")[[1 + (of_sweeps(evidence) != "")]],
             ". Reading: slower or faster where it is below ",
             "0.05 and the ratio differs from 100", THIN, "% by more than ", minimum, "; \u201c",
             reading("equal"), "\u201d where two one-sided tests at 5", THIN, "% exclude a difference of ",
             minimum, " (the interval at 90", THIN, "% lies within); open otherwise.")
    },
    if (with_need) {
      paste0("Runs for ", target, ": how many would bring the limits of the median\u2019s interval that ",
             "near, as estimated from these runs; not available from fewer than ", FEWEST_RUNS, ".")
    },
    statistic_notes(rows),
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs."),
    if (length(everywhere) > 0) paste("All rows:", paste(everywhere, collapse = " ")),
    untold_text(evidence),
    narrow_note(evidence, rows$workload), emulation_note(evidence),
    left_out_note(evidence, rows$workload),
    flags$notes
  )
  numbers <- which(vapply(Filter(Negate(is.null), columns), function(one) one$align == "right", NA))
  keep <- rep(TRUE, ncol(cells))
  keep[ncol(cells)] <- !all(unflagged)
  keep[ncol(cells) - with_need - 5:1] <- with_ratio
  table <- new_table("intervals", paste0(
    "Means and medians", if (with_ratio) ", ratios of means paired by set,", " and their 95", THIN,
    "% intervals", of_sweeps(evidence),
    if (evidence$partial) " (partial)"
  ), Filter(Negate(is.null), columns)[keep], cells[, keep, drop = FALSE], group_starts = starts,
  notes = notes)
  table$sources[, which(keep) %in% numbers] <- source_id(rows)
  table
}

#' Letters for flags
#'
#' @param flags texts of codes separated by ";", "" where there are none
#' @return list: `letters`, a text for each element such as "a, c"; `notes`, the meanings named by their
#'   letters; and `everywhere`, the meanings of flags that all of several elements have, which get no letter.
#'   A code without a known meaning stands for itself.
flag_letters <- function(flags) {
  codes <- strsplit(flags, ";", fixed = TRUE)
  known <- flag_meanings()
  present <- unique(unlist(codes))
  present <- c(names(known)[names(known) %in% present], setdiff(present, names(known)))
  meanings <- ifelse(present %in% names(known), known[present], sentence(words(gsub("-", " ", present))))
  meanings <- with_percent(unname(meanings))
  count <- vapply(present, function(code) sum(vapply(codes, function(x) code %in% x, NA)), 0L)
  common <- length(flags) > 1 & count == length(flags)
  lettered <- present[!common]
  letter <- c(letters, paste0(rep(letters, each = 26), letters))[seq_along(lettered)]
  list(letters = vapply(codes, function(code) {
    paste(letter[lettered %in% code], collapse = ", ")
  }, ""), notes = stats::setNames(meanings[!common], letter), everywhere = meanings[common])
}
