# What measuring takes, as the decisions or the records tell it.

#' What one more set of each workload takes
#'
#' @param plan as from `read_plan`
#' @return named numbers, seconds: as the last decision on more sets has it; without one the median of the
#'   times from the first start to the last end in the sets of which all cells are there; NA where none is
#'   known
set_seconds <- function(plan) {
  last <- utils::tail(decisions_of(plan), 1)
  told <- if (length(last) == 1) last[[1]]$workloads
  cells <- read_cells(plan)
  cells <- cells[cells$environment %in% paired_environments(plan), ]
  vapply(names(plan$workloads), function(workload) {
    seconds <- told[[workload]]$seconds
    own <- cells[cells$workload == workload, ]
    if (is.numeric(seconds)) as.double(seconds) else seconds_of_sets(plan, own)
  }, 0)
}

#' What one more set for each claim takes that sets were asked for
#'
#' @param plan as from `read_plan`
#' @return numbers, seconds of a set that holds the claim's environments alone, named by the claim: as the
#'   last decision has it
claim_seconds <- function(plan) {
  last <- utils::tail(decisions_of(plan), 1)
  claims <- Filter(Negate(is.null), lapply(if (length(last) == 1) last[[1]]$workloads, `[[`, "claim"))
  known <- Filter(function(claim) is.numeric(claim$seconds), claims)
  stats::setNames(vapply(known, function(claim) as.double(claim$seconds), 0), vapply(known, `[[`, "", "id"))
}

#' What a set took, as the records tell it
#'
#' @param plan as from `read_plan`
#' @param cells of a workload in the paired environments
#' @return seconds; NA where none is known
seconds_of_sets <- function(plan, cells) {
  paths <- cell_path(plan, "record", cells)
  paths[cell_key(cells) %in% cell_key(read_left_out(plan))] <- NA
  whole <- Filter(function(paths) all(file.exists(paths)), split(paths, cells$repetition))
  seconds <- vapply(whole, function(paths) {
    period <- as.numeric(measured_period(lapply(paths, read_json)))
    if (length(period) == 2) period[[2]] - period[[1]] else NA_real_
  }, 0)
  stats::median(c(seconds, NA_real_), na.rm = TRUE)
}
