# The workloads: what was run, with which parameters, and what every run was checked for.

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

#' The names of the checks that every run passed
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return texts
checks_of <- function(evidence, workload) {
  records <- Filter(function(record) record$workload == workload, evidence$records)
  unique(unlist(lapply(records, function(record) vapply(record$checks, function(check) check$name, ""))))
}
