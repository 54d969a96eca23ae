# What could not be measured, and what is missing.

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
