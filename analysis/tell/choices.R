# What a single choice costs, in a table and in sentences; and the controls, where it can cost nothing.

#' A choice in words
#'
#' @param rows of the choices
#' @param plan as from `read_plan`
#' @return texts such as "network: host, not bridge"
choice_text <- function(rows, plan) {
  vapply(seq_len(nrow(rows)), function(i) {
    row <- rows[i, ]
    if (row$option != "") {
      return(paste0(words(row$option), ": ", row$to, ", not ", row$from))
    }
    entry <- plan$environments[[row$environment]]
    at <- which(vapply(entry$layers, names, "") == row$layer)
    titles <- vapply(entry$told[at], `[[`, "", "title")
    paste(if (row$to == "below") "below it a" else "on top of it a", c(titles, row$layer)[[1]])
  }, "")
}

#' The choices of which the paper tells: those without an emulated machine
#'
#' @param evidence as from `read_evidence`
#' @return rows of the choices, controls last
told_choices <- function(evidence) {
  rows <- evidence$choices[evidence$choices$emulated == "no", ]
  rows[order(rows$control), ]
}

#' What every single choice costs
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where no pair of environments differs in one choice
table_of_choices <- function(evidence) {
  rows <- told_choices(evidence)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  labels <- function(names) environment_labels(evidence$plan, names)
  choice <- choice_text(rows, evidence$plan)
  group <- paste(rows$control, rows$environment, rows$base)
  starts <- !duplicated(group)
  decimals <- mapply(percent_decimals, rows$ratio_low, rows$ratio_high)
  cells <- cbind(
    ifelse(starts, paste0(upper_first(choice), ifelse(rows$control == "yes", " (control)", "")), ""),
    ifelse(starts, paste(labels(rows$environment), "to", labels(rows$base)), ""),
    series_names(rows, evidence$plan), or_dash(fixed(100 * rows$ratio, decimals)),
    or_dash(ratio_interval(rows$ratio_low, rows$ratio_high, decimals)), fixed(rows$ratio_n, 0),
    or_dash(p_text(rows$p_adjusted)), or_dash(ifelse(rows$reading == "", "", reading(rows$reading)))
  )
  table <- new_table(
    "choices", "Pairs of environments that differ in one choice alone",
    list(column("Choice"), column("Environments"), column("Workload and metric"),
         column("%", "right", "Ratio"), column(paste0("95", THIN, "% interval"), "right", "Ratio"),
         column("Pairs", "right", "Ratio"), column("p", "right", "Ratio"),
         column("Reading", "left", "Ratio")),
    cells, group_starts = starts,
    notes = c(
      paste("Read as the ratios to native are. p: adjusted over the choices that the workload can notice,",
            "and by itself over the controls, of which it can notice nothing."),
      if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs.")
    )
  )
  table$sources[, 4:7] <- workload_list(rows$workload)
  table
}

#' What of single choices concerns no question: the controls, and what holds an emulated machine
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where no pair of environments differs in one choice
choices_text <- function(evidence) {
  rows <- told_choices(evidence)
  paste(c(
    if (nrow(rows) > 0 && all(rows$control == "yes")) {
      "No workload measured here can notice one of these choices."
    },
    controls_sentence(rows),
    emulated_choices(evidence)
  ), collapse = " ")
}

#' What the single choices cost that workloads can notice
#'
#' @param evidence as from `read_evidence`
#' @param workloads names
#' @return sentences, one for each pair of environments
question_choices <- function(evidence, workloads) {
  rows <- told_choices(evidence)
  rows <- rows[rows$control == "no" & rows$workload %in% workloads, ]
  pairs <- paste(rows$environment, rows$base)
  vapply(split(rows, factor(pairs, unique(pairs))), choice_sentence, "", evidence = evidence)
}

#' What one choice costs
#'
#' @param rows of the choices, of one pair of environments
#' @param evidence as from `read_evidence`
#' @return one sentence
choice_sentence <- function(rows, evidence) {
  labels <- in_sentence(environment_labels(evidence$plan, c(rows$environment[[1]], rows$base[[1]])))
  rows$name <- series_names(rows, evidence$plan)
  parts <- vapply(split(rows, factor(rows$reading, VERDICTS)), function(part) {
    if (nrow(part) == 0) {
      return("")
    }
    part <- part[order(-abs(log(part$ratio))), ]
    shown <- utils::head(part, 3)
    what <- c(slower = "slower in", faster = "faster in",
              equal = paste("within", percent(MINIMUM_EFFECT, 0), "in"),
              open = "not told apart in", unknown = "compared without an interval in")
    values <- linked(percent_interval(shown$ratio, shown$ratio_low, shown$ratio_high),
                     workload_list(shown$workload))
    paste0(what[[part$reading[[1]]]], " ", linked(fixed(nrow(part), 0), "records"), " (",
           if (nrow(part) > 3) "most: ", paste(paste0(shown$name, ": ", values), collapse = "; "), ")")
  }, "")
  paste0(upper_first(choice_text(rows[1, ], evidence$plan)), " (", labels[[1]], " against ", labels[[2]],
         "): of ", linked(counted(nrow(rows), "metric"), "records"), " that can notice it, ",
         listed(parts[parts != ""]), ".")
}

#' How often controls were called different
#'
#' @param rows of the choices
#' @return sentences; NULL where there is no control
controls_sentence <- function(rows) {
  calls <- false_calls(rows)
  if (calls$tested == 0) {
    return(NULL)
  }
  all_runs <- function(text) linked(text, "records")
  rate <- function(count, limits) {
    share <- percent_interval(count / calls$tested, limits[[1]], limits[[2]])
    paste0(all_runs(fixed(count, 0)), " (", all_runs(share), ")")
  }
  paste0("Where a workload cannot notice a choice, there is nothing to find, and the pair is a control. Of ",
         all_runs(counted(calls$tested, "control")), ", ", rate(calls$called, calls$called_limits),
         if (calls$called == 1) " was" else " were", " called slower or faster, each of them falsely; ",
         rate(calls$below, calls$below_limits), if (calls$below == 1) " has" else " have",
         " a p value below 5", THIN, "% before the adjustment, where one in twenty is expected. Metrics of ",
         "the same runs go together, so that these intervals are somewhat too narrow.")
}

#' Where the choices with an emulated machine are
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where there are none
emulated_choices <- function(evidence) {
  rows <- evidence$choices[evidence$choices$emulated == "yes", ]
  pairs <- nrow(unique(rows[c("environment", "base")]))
  if (pairs > 0) {
    paste0(linked(counted(pairs, "more pair"), "records"), if (pairs == 1) " holds" else " hold",
           " an emulated machine: results/choices.csv has them, and they say nothing about KVM.")
  }
}
