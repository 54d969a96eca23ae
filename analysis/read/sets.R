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

#' The environments that every set holds
#'
#' @param plan as from `read_plan`
#' @return names of those whose runs make sets and that are not limited to fewer sets than there may be
lasting_environments <- function(plan) {
  setdiff(paired_environments(plan), names(largest_numbers(plan)))
}

#' The largest numbers of sets that environments have of their own
#'
#' @param plan as from `read_plan`
#' @return numbers, named by those of the environments whose runs make sets that may be in fewer than all
largest_numbers <- function(plan) {
  most <- unlist(lapply(plan$environments[paired_environments(plan)], `[[`, "max"))
  most[most < plan$repetitions]
}

#' The decisions of a run, one for each of its rounds
#'
#' The first is made after the least number of blocks, and each tells how many blocks the next round has: as
#' many as the workload with most new sets.  Whatever other decisions lie beside them are of another run.
#'
#' @param plan as from `read_plan`
#' @param before a block; of the decisions after it or later ones none is read
#' @return list of decisions, as in results/precision, in their order; empty where sets are not decided on
#' @section Errors: a file that is no decision
decisions_of <- function(plan, before = Inf) {
  found <- list()
  block <- plan$precision$min
  while (!is.null(block) && block < before) {
    path <- result_path(plan, "precision", block = block)
    if (!file.exists(path)) {
      break
    }
    decision <- read_json(path)
    new <- vapply(decision$workloads, function(entry) length(entry$again) + as.double(entry$more), 0)
    if (!is.logical(decision$enough) || (!decision$enough && sum(new) == 0)) {
      stop_about(path, "it decides neither on more sets nor that there are enough; remove it")
    }
    found <- c(found, list(decision))
    block <- if (!decision$enough) block + max(new)
  }
  found
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

#' The sets that were added for claims, which hold the environments of those alone
#'
#' @param decisions as from `decisions_of`
#' @return data frame: workload, repetition
narrow_sets <- function(decisions) {
  rows <- lapply(decisions, function(decision) {
    lapply(names(decision$workloads), function(workload) {
      entry <- decision$workloads[[workload]]
      more <- if (is.null(entry$environments)) 0 else as.double(entry$more)
      data.frame(workload = rep(workload, more),
                 repetition = entry$sets + length(entry$again) + seq_len(more))
    })
  })
  none <- data.frame(workload = character(), repetition = numeric())
  do.call(rbind, c(list(none), unlist(rows, recursive = FALSE)))
}

#' The cells of a plan
#'
#' @param plan as from `read_plan`
#' @param blocks how many of the plan's blocks; those that were needed, unless given
#' @return data frame in the order of measurement: position, block, environment, workload, repetition, and
#'   counts: "no" where the set was set aside before the end of these blocks, else "yes".  Cells in which an
#'   environment was found unable to do the workload have no results, and are not among them.
#' @section Errors: plan.csv is missing, broken, or names what plan.json does not know
read_cells <- function(plan, blocks = needed_blocks(plan)) {
  cells <- read_planned(plan)
  cells$counts <- counts_of(plan, cells, set_aside(decisions_of(plan, before = blocks)))
  unable <- read_inability(plan, cells)
  cells[cells$block <= blocks & !cell_key(cells) %in% cell_key(unable), ]
}

#' The cells that stand in the plan
#'
#' @param plan as from `read_plan`
#' @return data frame: position, block, environment, workload, repetition
#' @section Errors: plan.csv is missing, broken, or names what plan.json does not know
read_planned <- function(plan) {
  path <- result_path(plan, "cells")
  cells <- read_csv(path, c(position = "integer", block = "integer", environment = "character",
                            workload = "character", repetition = "integer"))
  check_known(cells, plan, path)
  if (anyDuplicated(cells[c("environment", "workload", "repetition")]) > 0) {
    stop_about(path, "a cell stands there twice")
  }
  cells
}

#' What names a cell
#'
#' @param cells data frame with environment, workload and repetition
#' @return texts
cell_key <- function(cells) {
  paste(cells$environment, cells$workload, cells$repetition)
}

#' What names a set
#'
#' @param runs a record, or a data frame of runs or sets
#' @return texts
set_key <- function(runs) {
  paste(runs$workload, runs$repetition)
}

#' The cells in which an environment was found unable to do the workload
#'
#' @param plan as from `read_plan`
#' @param cells data frame with environment, workload and repetition
#' @return data frame: environment, workload, repetition, reason
read_inability <- function(plan, cells) {
  doubtful <- vapply(plan$environments, function(entry) isTRUE(entry$doubtful), NA)
  cells <- cells[cells$environment %in% names(plan$environments)[as.logical(doubtful)] &
                   !cell_key(cells) %in% cell_key(read_left_out(plan)), ]
  reasons <- vapply(cell_path(plan, "record", cells), function(path) {
    reason <- if (file.exists(path)) field(read_json(path), "cannot", "reason")
    if (is.character(reason)) reason else NA_character_
  }, "", USE.NAMES = FALSE)
  found <- cells[c("environment", "workload", "repetition")]
  found$reason <- reasons
  found[!is.na(reasons), ]
}

#' How many blocks of a plan were needed
#'
#' @param plan as from `read_plan`
#' @return all of them, unless sets were decided on: then those up to the decision that there are enough
needed_blocks <- function(plan) {
  last <- utils::tail(decisions_of(plan), 1)
  if (length(last) == 1 && last[[1]]$enough) as.double(last[[1]]$block) else Inf
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
