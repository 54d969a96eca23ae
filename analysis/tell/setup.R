# What was set up: environments, workloads with their parameters, and the order of the runs.

#' The environments of the plan
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_environments <- function(evidence) {
  environments <- evidence$environments
  described <- lapply(unname(evidence$plan$environments), describe_layers)
  part <- function(name) vapply(described, `[[`, "", name)
  runs <- ifelse(environments$measured == environments$planned, fixed(environments$planned, 0),
                 paste(fixed(environments$measured, 0), "of", fixed(environments$planned, 0)))
  reasons <- !environments$available
  letter <- rep("", nrow(environments))
  letter[reasons] <- letters[(seq_len(sum(reasons)) - 1) %% 26 + 1]
  runs[reasons] <- NOT_AVAILABLE
  marks <- cbind(letter, "", "", "", "")
  notes <- paste0("Not available: ", ifelse(environments$reason == "", "no reason was given",
                                            environments$reason))[reasons]
  names(notes) <- letter[reasons]
  notes[] <- sentence(notes)
  table <- new_table(
    "environments",
    "The environments, what isolates each from the host, and the runs that were measured in it",
    list(column("Environment"), column("Isolation"), column("Network"), column("Data"),
         column("Runs", "right")),
    cbind(environments$label, part("isolation"), part("network"), part("data"), runs),
    marks = marks, notes = notes
  )
  table$sources[, 1:4] <- "plan"
  table$sources[, 5] <- ifelse(environments$measured > 0, environment_list(environments$name),
                               ifelse(environments$available, "missing", "plan"))
  table
}

#' What a stack of layers means
#'
#' @param environment entry of the plan
#' @return list of texts: isolation, network, data
describe_layers <- function(environment) {
  layers <- Map(describe_layer, unname(environment$layers), unname(environment$told))
  part <- function(name) unlist(lapply(layers, `[[`, name))
  list(isolation = or_dash(paste(part("isolation"), collapse = ", in it ")),
       network = or_dash(paste(part("network"), collapse = ", in it ")),
       data = or_dash(paste(part("data"), collapse = ", in it ")))
}

#' What a layer means
#'
#' @param layer list of one element: options by the layer's name
#' @param told what the layer's file says of it: title, and network and data where they are its own
#' @return list of texts, empty ones left out: isolation, network, data
describe_layer <- function(layer, told) {
  options <- as.list(layer[[1]])
  # What a profile asks for has a table of its own, and the label names the accelerator.
  said <- names(options)[!vapply(options, is.list, TRUE)]
  details <- setting_text(options[setdiff(said, c("network", "data", "accelerator"))])
  list(
    isolation = if (details == "") told$title else paste0(told$title, " (", details, ")"),
    network = told$network, data = told$data
  )
}

#' Settings as text
#'
#' @param settings named list of numbers, texts and lists of them; empty ones are left out, as are those that
#'   belong to an empty one (`corpus_sha1` to `corpus`)
#' @return one text such as "level 2, sizes 1,000 and 2,000"
setting_text <- function(settings) {
  empty <- names(settings)[vapply(settings, is.null, NA)]
  belongs <- vapply(names(settings), function(name) any(startsWith(name, paste0(empty, "_"))), NA)
  settings <- settings[!names(settings) %in% empty & !belongs]
  paste(vapply(names(settings), function(name) {
    paste0(words(name), NO_BREAK, value_text(settings[[name]]))
  }, ""), collapse = ", ")
}

#' A value of a setting as text
#'
#' @param value number, text, TRUE or FALSE, or a list of these
#' @return text; hashes are cut to twelve digits
value_text <- function(value) {
  if (length(value) == 0) {
    return("none")
  }
  texts <- vapply(value, function(one) {
    if (is.numeric(one)) {
      quantity(one)
    } else if (is.logical(one)) {
      if (isTRUE(one)) "yes" else "no"
    } else {
      sub("^([0-9a-f]{12})[0-9a-f]{20,}$", "\\1\u2026", paste(unlist(one), collapse = " "))
    }
  }, "")
  listed(unname(texts))
}

#' What was run, with which parameters
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_workloads <- function(evidence) {
  workloads <- evidence$plan$workloads
  rows <- vapply(names(workloads), function(name) {
    workload <- workloads[[name]]
    metrics <- metrics_of(evidence$plan, name)
    units <- paste0(lower_first(metrics$label), " (", metrics$unit, ", ", metrics$better, " is better)")
    if (length(unique(metrics$unit)) == 1 && length(unique(metrics$better)) == 1 && nrow(metrics) > 1) {
      units <- paste0(listed(lower_first(metrics$label)), " (", metrics$unit[[1]], ", ", metrics$better[[1]],
                      " is better)")
    }
    notes <- unlist(workload$notes)
    c(workload$title, sentence(listed(units)), sentence(parameters_text(evidence, name)),
      paste(c(sentence(paste("Warm-up:", workload$warmup)), sentence(as.character(notes)),
              if (length(checks_of(evidence, name)) > 0) {
                sentence(paste0("Checks: ", paste(checks_of(evidence, name), collapse = "; ")))
              }), collapse = " "))
  }, character(4))
  table <- new_table(
    "workloads", paste0("The workloads and their parameters at the scale \u201c", evidence$plan$scale,
                        "\u201d"),
    list(column("Workload", "wrap", weight = 0.5), column("Metrics", "wrap", weight = 0.95),
         column("Parameters", "wrap", weight = 1.2),
         column("Warm-up, notes and checks", "wrap", weight = 1.35)),
    t(unname(rows)), group_starts = rep(TRUE, length(workloads))
  )
  run <- unique(vapply(evidence$records, `[[`, "", "workload"))
  table$sources[, c(1, 3)] <- ifelse(names(workloads) %in% run, workload_list(names(workloads)), "plan")
  table
}

#' The parameters of a workload as they were in the runs
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return one text; where environments differ in a parameter, each value with its environments
parameters_text <- function(evidence, workload) {
  planned <- evidence$plan$workloads[[workload]]$parameters
  records <- Filter(function(record) record$workload == workload, evidence$records)
  for (name in names(planned)) {
    ruled <- is.list(planned[[name]]) && !is.null(names(planned[[name]]))
    if (ruled && length(records) == 0) {
      planned[name] <- list(if (planned[[name]]$rule == "cpus") "as the system has processors" else
        "the client\u2019s last")
    } else if (ruled) {
      seen <- vapply(records, function(record) value_text(record$parameters[[name]]), "")
      planned[[name]] <- grouped_text(seen, vapply(records, `[[`, "", "environment"), evidence)
    }
  }
  text <- setting_text(planned)
  if (text == "") "none" else text
}

#' The image in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
image_text <- function(evidence) {
  contents <- contents_text(evidence)
  paste0(linked(distribution_text(evidence), "image"),
         if (contents != NOT_AVAILABLE) paste(" with", linked(contents, "image")), ".")
}

#' Which environments are in the plan, and which of them could be measured
#'
#' @param evidence as from `read_evidence`
#' @return text
environments_text <- function(evidence) {
  environments <- evidence$environments
  if (all(environments$available)) {
    return(paste0("All ", linked(fixed(nrow(environments), 0), "plan"),
                  " of the plan were available on this machine."))
  }
  paste0(linked(fixed(sum(environments$available), 0), "plan"), " of the ",
         linked(fixed(nrow(environments), 0), "plan"), " of the plan were available. ",
         unavailable_sentence(environments), " The reasons are given there, and nothing was put in their ",
         "place.")
}

#' What every run was checked for
#'
#' @param evidence as from `read_evidence`
#' @return text
checks_text <- function(evidence) {
  checks <- vapply(evidence$records, function(record) length(record$checks), 0L)
  paste0("A run counts only if every command ended without an error and every check of its output passed",
         if (length(checks) > 0) paste0(", as did the ", linked(counted(sum(checks), "check"), "records"),
                                        " of the ", linked(counted(length(checks), "run"), "records"),
                                        " reported here"),
         ". A run that fails leaves no log among the results.")
}

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
