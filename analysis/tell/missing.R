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

#' A reason without the objects of JSON by which a step tells its log where it is
#'
#' @param reason texts, as records have them
#' @return texts
in_words <- function(reason) {
  gsub("; [a-z]+ said last: *(?=;|$)", "", gsub("\\{\"[^{}]*\\}( / )?", "", reason), perl = TRUE)
}

#' What environments were found unable to do
#'
#' @param evidence as from `read_evidence`
#' @param environments names; all unless given
#' @return character vector of one sentence for each environment and workload, with the first reason
unable_sentences <- function(evidence, environments = unique(evidence$unable$environment)) {
  if (NROW(evidence$unable) == 0) {
    return(character())
  }
  unable <- evidence$unable[evidence$unable$environment %in% environments, ]
  unable <- unable[!duplicated(unable[c("environment", "workload")]), ]
  vapply(seq_len(nrow(unable)), function(i) {
    row <- unable[i, ]
    done <- any(evidence$comparisons$environment == row$environment &
                  evidence$comparisons$workload == row$workload)
    paste0(evidence$plan$workloads[[row$workload]]$title,
           if (done) " could not be done in every run in " else " cannot be done in ",
           in_sentence(environment_labels(evidence$plan, row$environment)), ": ", in_words(row$reason), ".")
  }, "")
}

#' Which environments were found unable to do something, without the reasons
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where all could do all
unable_sentence <- function(evidence) {
  unable <- evidence$unable
  if (NROW(unable) == 0) {
    return(NULL)
  }
  done <- paste(evidence$comparisons$environment, evidence$comparisons$workload)
  unable <- unable[!paste(unable$environment, unable$workload) %in% done, ]
  if (nrow(unable) == 0) {
    return(NULL)
  }
  titles <- vapply(unable$workload, function(name) evidence$plan$workloads[[name]]$title, "")
  parts <- vapply(split(titles, factor(unable$environment, unique(unable$environment))), function(own) {
    listed(unique(own))
  }, "")
  labels <- in_sentence(environment_labels(evidence$plan, names(parts)))
  paste0("What an environment was found unable to do is a result too: ",
         paste0(labels, " cannot do ", parts, collapse = "; "), ".")
}

#' The workloads that emulated machines were not asked for
#'
#' @param evidence as from `read_evidence`
#' @param among names of workloads
#' @return those of them, in the order of the plan; none where there are no such machines
left_out <- function(evidence, among = names(evidence$plan$workloads)) {
  available <- evidence$environments$name[evidence$environments$available]
  machines <- intersect(emulated_environments(evidence$plan), available)
  own <- names(evidence$plan$workloads)
  own[length(machines) > 0 & own %in% among & own %in% unlist(evidence$plan$not_emulated)]
}

#' Which workloads emulated machines were not asked for, for what lacks them
#'
#' @inheritParams left_out
#' @param why what follows, up to the end of the sentence
#' @return one sentence, or NULL where they were asked for all
left_out_note <- function(evidence, among = names(evidence$plan$workloads), why = "") {
  names <- left_out(evidence, among)
  if (length(names) > 0) {
    titles <- vapply(evidence$plan$workloads[names], `[[`, "", "title", USE.NAMES = FALSE)
    paste0("Emulated virtual machines were not asked for ", listed(titles), ", by choice of the experiment",
           why, ".")
  }
}

#' Which workloads emulated machines were not asked for, and what follows from that
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where they were asked for all
left_out_sentence <- function(evidence) {
  left_out_note(evidence, why = ": they say nothing about virtual machines on hardware")
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
#' @return character vector of one sentence for each workload and environment, with the reasons that are
#'   known; environments that lack the same runs of a workload for the same reason stand in one
missing_sentences <- function(evidence) {
  cells <- evidence$cells[!evidence$cells$measured, ]
  if (nrow(cells) == 0) {
    return(character())
  }
  groups <- split(seq_len(nrow(cells)), paste(cells$workload, cells$environment), drop = TRUE)
  groups <- groups[order(vapply(groups, min, 0))]
  first <- cells[vapply(groups, `[[`, 0L, 1), ]
  lacks <- vapply(groups, function(at) {
    reasons <- in_words(unique(evidence$failed[at]))
    reasons <- reasons[reasons != ""]
    paste0(if (length(at) == 1) "repetition " else "repetitions ",
           linked(ranges(cells$repetition[at]), "missing"), " (",
           if (length(reasons) > 0) linked(paste(reasons, collapse = "; "), "missing") else "not tried", ").")
  }, "")
  alike <- paste(first$workload, lacks)
  vapply(split(seq_along(groups), factor(alike, unique(alike))), function(of) {
    names <- intersect(names(evidence$plan$environments), first$environment[of])
    paste0(evidence$plan$workloads[[first$workload[of[[1]]]]]$title, " in ",
           listed(in_sentence(environment_labels(evidence$plan, names))), ", ", lacks[[of[[1]]]])
  }, "", USE.NAMES = FALSE)
}
