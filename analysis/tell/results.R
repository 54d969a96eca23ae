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
  others <- rows[rows$environment != REFERENCE, ]
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
      vapply(unique(others$environment), function(name) {
        level_sentence(others[others$environment == name, ])
      }, "")
    } else {
      series_sentences(others, evidence$plan)
    },
    driver_text(evidence, workload)
  ), collapse = " ")
}

#' How the environments compare with native in a workload, emulated ones together and last
#'
#' @param rows of the comparisons, of environments other than native
#' @param plan as from `read_plan`
#' @return sentences
series_sentences <- function(rows, plan) {
  emulated <- rows$environment %in% emulated_environments(plan)
  one <- length(unique(rows$series)) == 1
  told <- if (one) one_series_sentences(rows[!emulated, ]) else several_series_sentences(rows[!emulated, ])
  answers <- family_answers(rows[emulated & !is.na(rows$ratio), ], plan)
  c(told, paste0(names(answers), ": ", answers, ".", recycle0 = TRUE), unpaired_sentence(rows))
}

#' How the environments compare with native in a workload of one series
#'
#' @param rows of the comparisons, one for each environment other than native
#' @return sentences, one for each verdict
one_series_sentences <- function(rows) {
  known <- rows[!is.na(rows$ratio), ]
  named <- function(part, usual) {
    listed(paste0(in_sentence(part$environment_label), " at ", ratio_text(part, n = FALSE),
                  ifelse(part$ratio_n == usual, "",
                         paste0(NO_BREAK, "(", linked(n_is(part$ratio_n), source_id(part)), ")"))))
  }
  sentences <- vapply(split(known, factor(known$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) {
      return("")
    }
    head <- verdict_head(part$verdict[[1]])
    usual <- most_frequent(part$ratio_n)
    paste0(head, " (", linked(counted(usual, "pair"), shared_source(part)), "): ", named(part, usual), ".")
  }, "")
  sentences[sentences != ""]
}

#' Which environments share no set with native
#'
#' @param rows of the comparisons, without native
#' @return one sentence, or NULL where all do
unpaired_sentence <- function(rows) {
  labels <- unique(in_sentence(rows$environment_label[is.na(rows$ratio)]))
  if (length(labels) > 0) {
    paste0(listed(labels), if (length(labels) == 1) " shares" else " share", " no set with native",
           if (any(!is.na(rows$ratio[rows$environment_label %in% labels]))) " in a metric", ".")
  }
}

#' How the environments compare with native in a workload of several series
#'
#' @param rows of the comparisons, of environments other than native
#' @return sentences, one for each verdict
several_series_sentences <- function(rows) {
  known <- rows[!is.na(rows$ratio), ]
  all <- length(unique(rows$series))
  sentences <- vapply(split(known, factor(known$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) {
      return("")
    }
    each <- split(part, factor(part$environment, unique(part$environment)))
    pairs <- paste0(n_is(n_text(part$ratio_n)), NO_BREAK, if (all(part$ratio_n == 1)) "pair" else "pairs")
    paste0(verdict_head(part$verdict[[1]]), " (", linked(pairs, shared_source(part)), "): ",
           paste(vapply(each, series_named, "", all = all), collapse = "; "), ".")
  }, "")
  sentences[sentences != ""]
}

#' The series of one environment that have one verdict
#'
#' @param rows of the comparisons
#' @param all how many series the workload has
#' @param most series that are named; of more the range is told
#' @return text such as "Docker in copy (95 % [93, 97])" or "Docker in 4 of 8 metrics, at 95 % to 99 %"
series_named <- function(rows, all, most = 2) {
  label <- in_sentence(rows$environment_label[[1]])
  if (nrow(rows) <= most) {
    return(paste(label, "in", listed(paste0(lower_first(rows$metric_label), " (", ratio_text(rows, n = FALSE),
                                            ")"))))
  }
  costs <- any(rows$better == "lower")
  known <- data.frame(ratio = rows$ratio, low = rows$ratio_low, high = rows$ratio_high)
  known <- if (costs) performance_of(rows) else known
  decimals <- mapply(percent_decimals, known$low, known$high)
  paste0(label, " in ", if (nrow(rows) == all) "all" else paste(fixed(nrow(rows), 0), "of"), " ",
         fixed(all, 0), " metrics, at ",
         span_told(100 * known$ratio, decimals, source_id(rows), paste0(THIN, "%")),
         if (costs) " of its performance")
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
