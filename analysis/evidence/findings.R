# What the data say, in sentences.  Every sentence must stay true for any data: where an environment, an
# interval or native itself is missing, it says so.

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

#' Factors as text behind the label of a metric
#'
#' @param factors such as "order=1000;clients=4", "" where there are none
#' @return texts such as ", order 1,000, clients 4"
factor_text <- function(factors) {
  vapply(strsplit(factors, ";", fixed = TRUE), function(pairs) {
    if (length(pairs) == 0) {
      return("")
    }
    name <- sub("=.*", "", pairs)
    value <- sub("^[^=]*=?", "", pairs)
    number <- suppressWarnings(as.numeric(value))
    value <- ifelse(is.na(number), value, quantity(number))
    paste0(", ", paste0(words(name), NO_BREAK, value, collapse = ", "))
  }, "")
}

#' What tables and sentences tell of: of a sweep, a few points
#'
#' @param evidence as from `read_evidence`
#' @return rows of the comparisons
told <- function(evidence) {
  evidence$comparisons[evidence$comparisons$headline, ]
}

#' What a caption says where not everything is told of
#'
#' @param evidence as from `read_evidence`
#' @return part of a sentence; "" where all is
of_sweeps <- function(evidence) {
  if (all(evidence$comparisons$headline)) "" else ", of sweeps at the points that stand for them"
}

#' Where the rest of the sweeps is
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where tables and sentences tell of everything
untold_text <- function(evidence) {
  rows <- evidence$comparisons
  if (all(rows$headline)) {
    return(NULL)
  }
  drawn <- rep(FALSE, nrow(rows))
  for (workload in unique(rows$workload)) {
    own <- rows$workload == workload
    drawn[own] <- Reduce(`|`, lapply(figures_of(evidence$plan, workload), drawn_in, series = rows[own, ]))
  }
  drawn <- drawn[!rows$headline]
  untold <- rows[!rows$headline, ]
  count <- function(part) linked(fixed(length(unique(part$series)), 0), shared_source(part))
  paste0("Of sweeps, these are the points that stand for them. Of ",
         linked(counted(length(unique(rows$series)), "series", "series"), "records"), ", ",
         if (any(drawn)) {
           paste0(count(untold[drawn, ]), " more are in the figures of ",
                  listed(unique(untold$title[drawn])))
         },
         if (any(drawn) && !all(drawn)) ", and ",
         if (!all(drawn)) paste0(count(untold[!drawn, ]), " of ", listed(unique(untold$title[!drawn])),
                                 " in none"),
         "; all are in results/summary and results/comparisons.csv.")
}

#' The comparisons with native, without native itself
#'
#' @param evidence as from `read_evidence`
#' @param environment name of one environment, or NULL for all
#' @param all whether those are meant too that no table tells of
#' @return rows of the comparisons that have a ratio
ratios <- function(evidence, environment = NULL, all = FALSE) {
  rows <- if (all) evidence$comparisons else told(evidence)
  rows <- rows[!is.na(rows$ratio) & rows$environment != REFERENCE, ]
  if (is.null(environment)) rows else rows[rows$environment == environment, ]
}

#' The title of the paper, by the kinds of environments that were measured
#'
#' @param evidence as from `read_evidence`
#' @return text
paper_title <- function(evidence) {
  environments <- evidence$environments
  present <- unique(environments$kind[environments$measured > 0])
  kinds <- c("virtual machines", "containers", "containers in virtual machines", "bare Linux",
             "other environments")
  present <- kinds[kinds %in% present]
  if (all(c("virtual machines", "containers") %in% present)) {
    present <- setdiff(present, "containers in virtual machines")
  }
  machines <- environments$name[environments$measured > 0 & grepl("virtual machines", environments$kind)]
  if (length(machines) > 0 && all(machines %in% emulated_environments(evidence$plan))) {
    present <- sub("virtual machines", "emulated virtual machines", present)
  }
  subject <- if (length(present) == 0) "virtual machines and containers" else listed(present)
  titled <- gsub("\\b(?!in\\b|and\\b)([a-z])", "\\U\\1", subject, perl = TRUE)
  paste0(titled, if (length(present) == 0) ": Nothing Measured Yet" else ", Measured Again",
         if (evidence$partial && length(present) > 0) " (Partial Results)")
}

#' The abstract
#'
#' @param evidence as from `read_evidence`
#' @return one text
abstract_text <- function(evidence) {
  environments <- evidence$environments
  others <- environments$name[environments$measured > 0 & environments$name != REFERENCE]
  emulated <- intersect(others, emulated_environments(evidence$plan))
  paste(c(
    scope_sentence(evidence),
    if (evidence$partial) partial_sentence(evidence),
    if (nrow(ratios(evidence)) > 0) {
      paste0("Ratios are of means paired by block, with 95", THIN, "% intervals by Fieller\u2019s method; a ",
             "difference is called only where it is significant with the false-discovery rate of all ",
             "comparisons held at 5", THIN, "%, and the ratio differs from equality by more than ",
             percent(MINIMUM_EFFECT, 0), ".")
    },
    vapply(setdiff(others, emulated), function(name) {
      overview(evidence, name, examples = if (length(others) > 4) 1 else 2)
    }, ""),
    emulated_sentence(evidence, emulated),
    if (nrow(ratios(evidence)) == 0) "No environment can be compared with native.",
    unavailable_sentence(environments),
    if (evidence$plan$scale != "paper") {
      paste0("The sizes are those of the scale \u201c", evidence$plan$scale, "\u201d, which tries the ",
             "method and not the machine at full size.")
    }
  ), collapse = " ")
}

#' What is to be said of emulated virtual machines in few words
#'
#' @param evidence as from `read_evidence`
#' @param names of those that were measured
#' @return text, or NULL where there are none
emulated_sentence <- function(evidence, names) {
  if (length(names) == 0) {
    return(NULL)
  }
  rows <- ratios(evidence)
  rows <- rows[rows$environment %in% names & !is.na(rows$ratio_low), ]
  costs <- rows$better == "lower"
  rows[costs, c("ratio", "ratio_low", "ratio_high")] <-
    1 / rows[costs, c("ratio", "ratio_high", "ratio_low")]
  paste0(
    "Hardware acceleration was not proven on this machine, so that the virtual machines are emulated in ",
    "software", if (nrow(rows) > 0) {
      told <- function(column, place) {
        row <- rows[place(rows[[column]]), ]
        linked(percent(row[[column]]), source_id(row))
      }
      paste0(", at ", told("ratio", which.min), " to ", told("ratio", which.max),
             " of native (intervals from ", told("ratio_low", which.min), " to ",
             told("ratio_high", which.max), ", ",
             linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), if (any(costs)) {
               "; where less is better, the inverse"
             }, ")")
    }, "; nothing here speaks of KVM."
  )
}

#' What was measured, in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
scope_sentence <- function(evidence) {
  environments <- evidence$environments[evidence$environments$measured > 0, ]
  if (nrow(environments) == 0) {
    return("Nothing was measured.")
  }
  titles <- unique(vapply(evidence$records, function(record) record$workload, ""))
  titles <- vapply(intersect(names(evidence$plan$workloads), titles),
                   function(name) evidence$plan$workloads[[name]]$title, "")
  blocks <- length(unique(vapply(evidence$records, function(record) record$block, 0)))
  paste0("On one machine (", machine_phrase(evidence), ") we ran ", listed(titles), " in ",
         linked(counted(nrow(environments), "environment"), "records"), " (",
         listed(in_sentence(environments$label)), "), all made of one image, in ",
         linked(counted(blocks, "block"), "records"), " of random order: ",
         linked(counted(length(evidence$records), "run"), "records"), ".")
}

#' The machine in a few words
#'
#' @param evidence as from `read_evidence`
#' @return text such as "Intel Xeon, 2 CPUs, 25.3 GB of memory"
machine_phrase <- function(evidence) {
  machine <- evidence$plan$machine
  models <- unique(unlist(lapply(evidence$records, field, "observed", "host", "static", "cpu_model")))
  models <- setdiff(models, NOT_AVAILABLE)
  model <- if (length(models) == 1) gsub("\\((R|TM)\\)| CPU", "", models)
  parts <- c(if (length(model) == 1) linked(model, "records"),
             if (is.numeric(machine$cpus)) linked(counted(machine$cpus, "CPU"), "plan"),
             if (is.numeric(machine$memory_bytes)) {
               paste(linked(bytes(machine$memory_bytes), "plan"), "of memory")
             })
  if (length(parts) == 0) "of unknown kind" else paste(parts, collapse = ", ")
}

#' How an environment compares with native over all metrics
#'
#' @param evidence as from `read_evidence`
#' @param environment its name
#' @param examples differences that are named with their numbers, of each kind
#' @return one sentence
overview <- function(evidence, environment, examples = 2) {
  rows <- ratios(evidence, environment)
  label <- in_sentence(evidence$environments$label[evidence$environments$name == environment])
  if (nrow(rows) == 0) {
    return(paste0(label, " has no ratio to native."))
  }
  if (nrow(rows) == 1) {
    return(paste0("In ", rows$name, ", ", label, " is at ", ratio_text(rows), " of native: ",
                  verdict_phrase(rows$verdict), "."))
  }
  parts <- vapply(split(rows, factor(rows$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) "" else overview_part(part, examples)
  }, "")
  parts <- parts[parts != ""]
  first <- if (startsWith(parts[[1]], "is ")) "" else "is "
  paste0("Of ", linked(counted(nrow(rows), "metric"), environment_list(environment)), ", ", label, " ", first,
         listed(parts), ".")
}

#' One kind of finding over several metrics
#'
#' @param rows of the comparisons, with one verdict
#' @param examples that are named with their numbers
#' @return part of a sentence
overview_part <- function(rows, examples) {
  rows <- rows[order(-abs(log(rows$ratio))), ]
  count <- nrow(rows)
  what <- c(
    slower = "slower than native in", faster = "faster than native in",
    equal = paste("within", percent(MINIMUM_EFFECT, 0), "of native in"),
    open = "not told apart from native in", unknown = "compared without an interval in"
  )[[rows$verdict[[1]]]]
  shown <- utils::head(rows, examples)
  named <- if (rows$verdict[[1]] %in% c("slower", "faster")) {
    paste0(" (", if (count > nrow(shown)) "most in ",
           paste(paste0(shown$name, ": ", ratio_text(shown)), collapse = "; "),
           ")")
  } else if (rows$verdict[[1]] != "unknown") {
    paste0(" (", if (count > 1) "intervals" else "interval", " from ",
           linked(percent(min(rows$ratio_low)), source_id(rows[which.min(rows$ratio_low), ])), " to ",
           linked(percent(max(rows$ratio_high)), source_id(rows[which.max(rows$ratio_high), ])), ", ",
           linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), ")")
  }
  paste0(what, " ", linked(fixed(count, 0), shared_source(rows)), named)
}

#' A ratio with its interval and its number of pairs
#'
#' @param rows of the comparisons
#' @param n whether the number of pairs is named
#' @return texts such as "96.2 % [95.0, 97.4], n = 5", linked to their runs
ratio_text <- function(rows, n = TRUE) {
  text <- percent_interval(rows$ratio, rows$ratio_low, rows$ratio_high)
  linked(if (n) paste0(text, ", ", n_is(rows$ratio_n)) else text, source_id(rows))
}

#' What a verdict means
#'
#' @param verdict one of VERDICTS
#' @return text that follows a colon
verdict_phrase <- function(verdict) {
  minimum <- percent(MINIMUM_EFFECT, 0)
  c(
    slower = "it is slower", faster = "it is faster",
    equal = paste("a difference of", minimum, "or more is excluded"),
    open = "no difference is shown, and none is excluded", unknown = "there is no interval, and so no finding"
  )[[verdict]]
}

#' Which environments could not be measured
#'
#' @param environments as from `environment_table`
#' @return one sentence, or NULL where all were available
unavailable_sentence <- function(environments) {
  labels <- in_sentence(environments$label[!environments$available])
  if (length(labels) > 0) {
    paste0(listed(labels), if (length(labels) == 1) " is" else " are", " not available on this machine.")
  }
}

#' How much of the plan is missing
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
partial_sentence <- function(evidence) {
  cells <- evidence$cells
  paste0("The results are partial: ", linked(fixed(sum(!cells$measured), 0), "missing"), " of ",
         linked(counted(nrow(cells), "planned run"), "plan"),
         " ", if (sum(!cells$measured) == 1) "is" else "are", " missing.")
}

#' The runs that are missing
#'
#' @param evidence as from `read_evidence`
#' @return character vector of one sentence for each environment and workload, with the reasons that are known
missing_sentences <- function(evidence) {
  cells <- evidence$cells[!evidence$cells$measured, ]
  if (nrow(cells) == 0) {
    return(character())
  }
  groups <- split(seq_len(nrow(cells)), paste(cells$workload, cells$environment), drop = TRUE)
  unname(vapply(groups[order(vapply(groups, min, 0))], function(at) {
    reasons <- unique(evidence$failed[at])
    reasons <- reasons[reasons != ""]
    paste0(evidence$plan$workloads[[cells$workload[at[[1]]]]]$title, " in ",
           in_sentence(environment_labels(evidence$plan, cells$environment[at[[1]]])), ", ",
           if (length(at) == 1) "repetition " else "repetitions ",
           linked(ranges(cells$repetition[at]), "missing"), " (",
           if (length(reasons) > 0) linked(paste(reasons, collapse = "; "), "missing") else "not tried", ").")
  }, ""))
}

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
    }
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
                                     " no block with native.")
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

#' The most frequent of numbers
#'
#' @param n numbers
#' @return the one that stands there most often, the largest of several such; 0 where there are none
most_frequent <- function(n) {
  counts <- table(n)
  max(0, as.numeric(names(counts)[counts == max(counts, 0)]))
}

#' Numbers of runs as text
#'
#' @param n numbers
#' @return text such as "5" or "4 to 5"
n_text <- function(n) {
  if (min(n) == max(n)) fixed(n[[1]], 0) else paste(min(n), "to", max(n))
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
    return(paste0(label, " shares no block with native, so that there is no ratio."))
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

#' The line under the title
#'
#' @param evidence as from `read_evidence`
#' @return text
dateline <- function(evidence) {
  period <- measured_period(evidence$records)
  paste(c(
    if (length(period) == 2 && !anyNA(period)) {
      paste("Measured", linked(period_text(period), "records"))
    } else {
      "Nothing measured"
    },
    paste("scale", evidence$plan$scale),
    paste("seed", linked(format(evidence$plan$seed, scientific = FALSE), "plan"))
  ), collapse = " \u00b7 ")
}
