# What a workload showed, in sentences.  Every sentence must stay true for any data: where an environment, an
# interval or native itself is missing, it says so.

#' What a workload showed
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return one text
workload_text <- function(evidence, workload) {
  rows <- told(evidence)
  rows <- rows[rows$workload == workload, ]
  others <- setdiff(unique(rows$environment), REFERENCE)
  if (nrow(rows) == 0) {
    return("No run of this workload was measured.")
  }
  native <- rows[rows$environment == REFERENCE, ]
  paste(c(
    if (nrow(native) > 0) {
      level_sentence(native)
    } else {
      "Native was not measured, so that there is no ratio to it."
    },
    if (nrow(native) == 0) {
      vapply(others, function(name) level_sentence(rows[rows$environment == name, ]), "")
    } else if (length(unique(rows$series)) == 1) {
      one_series_sentences(rows[rows$environment != REFERENCE, ])
    } else {
      numbers <- nrow(rows) - nrow(native) <= 16
      vapply(others, function(name) comparison_sentence(rows[rows$environment == name, ], numbers), "")
    },
    open_sentence(rows)
  ), collapse = " ")
}

#' How the environments compare with native in a workload of one series
#'
#' @param rows of the comparisons, one for each environment other than native
#' @return sentences, one for each verdict
one_series_sentences <- function(rows) {
  known <- rows[!is.na(rows$ratio), ]
  usual <- most_frequent(known$ratio_n)
  named <- function(part) {
    listed(paste0(in_sentence(part$environment_label), " at ", ratio_text(part, n = FALSE),
                  ifelse(part$ratio_n == usual, "",
                         paste0(NO_BREAK, "(", linked(n_is(part$ratio_n), source_id(part)), ")"))))
  }
  sentences <- vapply(split(known, factor(known$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) {
      return("")
    }
    head <- verdict_head(part$verdict[[1]])
    paste0(head, " (", linked(counted(usual, "pair"), shared_source(part)), "): ", named(part), ".")
  }, "")
  unpaired <- in_sentence(rows$environment_label[is.na(rows$ratio)])
  c(
    sentences[sentences != ""],
    if (length(unpaired) > 0) paste0(listed(unpaired), if (length(unpaired) == 1) " shares" else " share",
                                     " no set with native.")
  )
}

#' A verdict as the head of a list
#'
#' @param verdict some of VERDICTS
#' @return texts
verdict_head <- function(verdict) {
  minimum <- percent(MINIMUM_EFFECT, 0)
  c(slower = "Slower than native", faster = "Faster than native",
    equal = paste("Within", minimum, "of native"),
    open = paste("Not told apart from native, nor shown to be within", minimum, "of it"),
    unknown = "Compared with native without an interval")[verdict]
}

#' The level that an environment reaches
#'
#' @param rows of the comparisons, of one environment and workload
#' @param most metrics that are named
#' @return one sentence
level_sentence <- function(rows, most = 6) {
  label <- in_sentence(rows$environment_label[[1]])
  if (nrow(rows) > most) {
    return(paste0(label, " was measured in ",
                  linked(counted(nrow(rows), "series", "series"), shared_source(rows)), " (",
                  linked(n_is(n_text(rows$n)), shared_source(rows)), ")."))
  }
  known <- levels_of(rows)
  decimals <- mapply(decimals_for, (known$high - known$low) / 2, known$value)
  within <- interval(known$low, known$high, decimals)
  level <- paste0(fixed(known$value, decimals), NO_BREAK, rows$unit,
                  ifelse(within == "", "", paste0(" ", within)))
  level <- linked(level, source_id(rows))
  if (nrow(rows) > 1) {
    level <- paste(lower_first(rows$metric_label), level)
  }
  of_what <- c(if (!all(known$median)) "mean", if (any(known$median)) "median")
  of_what <- paste(of_what, collapse = ", of percentiles the ")
  paste0(label, " reached ", listed(level), " (", of_what,
         if (all(within == "")) " without an interval" else paste0(" and 95", THIN, "% interval"), ", ",
         linked(n_is(n_text(rows$n)), shared_source(rows)), ").")
}

#' How an environment compares with native in a workload
#'
#' @param rows of the comparisons, of one environment and workload
#' @param numbers whether the ratios are named, or only the metrics
#' @param most metrics that are named; more are counted
#' @return one sentence
comparison_sentence <- function(rows, numbers = TRUE, most = 6) {
  label <- in_sentence(rows$environment_label[[1]])
  rows <- rows[!is.na(rows$ratio), ]
  if (nrow(rows) == 0) {
    return(paste0(label, " shares no set with native, so that there is no ratio."))
  }
  if (nrow(rows) == 1) {
    return(paste0(label, " was at ", ratio_text(rows, n = FALSE), " of native (",
                  linked(counted(rows$ratio_n, "pair"), source_id(rows)), "): ",
                  verdict_phrase(rows$verdict), "."))
  }
  parts <- vapply(split(rows, factor(rows$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) {
      return("")
    }
    phrase <- c(
      slower = "slower in ", faster = "faster in ",
      equal = paste0("within ", percent(MINIMUM_EFFECT, 0), " in "),
      open = "not told apart in ", unknown = "without an interval in "
    )[[part$verdict[[1]]]]
    if (nrow(rows) > most) {
      paste0(phrase, linked(fixed(nrow(part), 0), shared_source(part)))
    } else {
      paste0(phrase, listed(paste0(lower_first(part$metric_label),
                                   if (numbers) paste0(" (", ratio_text(part, n = FALSE), ")"))))
    }
  }, "")
  paste0(label, " against native (", linked(paste0(n_is(n_text(rows$ratio_n)), NO_BREAK, "pairs"),
                                            shared_source(rows)), "): ",
         paste(parts[parts != ""], collapse = "; "), ".")
}
