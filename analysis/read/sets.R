# Sets: a workload once in each of the environments that are compared, one run right after the other.  Which
# were decided on, and which are set aside because the machine was disturbed meanwhile.

#' The environments whose runs make sets
#'
#' @param plan as from `read_plan`
#' @return names of those that can be measured and are not emulated
paired_environments <- function(plan) {
  paired <- vapply(plan$environments, function(entry) isTRUE(entry$available) && !isTRUE(entry$emulated), NA)
  names(plan$environments)[as.logical(paired)]
}

#' The sets that are set aside
#'
#' What is set aside was disturbed and is measured again.  The first of a round's new repetitions of a
#' workload take the places of those that are set aside, in their order.
#'
#' @param decisions as from `decisions_of`
#' @return data frame: workload, repetition, and `by`, the repetition that takes its place
set_aside <- function(decisions) {
  rows <- lapply(decisions, function(decision) {
    lapply(names(decision$workloads), function(workload) {
      entry <- decision$workloads[[workload]]
      again <- as.double(unlist(entry$again))
      data.frame(workload = rep(workload, length(again)), repetition = again,
                 by = entry$sets + seq_along(again))
    })
  })
  none <- data.frame(workload = character(), repetition = numeric(), by = numeric())
  do.call(rbind, c(list(none), unlist(rows, recursive = FALSE)))
}

#' Whether runs count, or belong to sets that are set aside
#'
#' @param plan as from `read_plan`
#' @param runs data frame with environment, workload and repetition
#' @param aside as from `set_aside`
#' @return "yes" or "no" for each; a run of an emulated machine belongs to no set and counts
counts_of <- function(plan, runs, aside = set_aside(decisions_of(plan))) {
  left_out <- runs$environment %in% paired_environments(plan) &
    paste(runs$workload, runs$repetition) %in% paste(aside$workload, aside$repetition)
  ifelse(left_out, "no", "yes")
}

#' The sets in which the machine was disturbed
#'
#' @param plan as from `read_plan`
#' @param records list of records
#' @return data frame: workload, repetition
disturbed_sets <- function(plan, records) {
  disturbed <- Filter(function(record) {
    record$environment %in% paired_environments(plan) && length(field(record, "quiet", "flags")) > 0
  }, records)
  unique(data.frame(workload = vapply(disturbed, `[[`, "", "workload"),
                    repetition = field_numbers(disturbed, "repetition")))
}

#' The rows that count
#'
#' @param rows of a tidy table or of the cells
#' @return those whose set was not set aside
counted_rows <- function(rows) {
  rows[rows$counts == "yes", ]
}
