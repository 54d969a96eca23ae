# Compares environments that differ in exactly one choice.  A choice that a workload cannot notice
# is a control: every difference that is found in it is false.

#' Find the pairs of environments that differ in one choice
#'
#' @param plan contents of plan.json
#' @return data frame: base, environment, choice (layer and option, for example "docker network", or
#'   the layer that one of them has more), touches ("network" or "data" if the two differ in nothing
#'   else; otherwise ""); NULL if there are no pairs.  Emulated and unavailable environments are in
#'   no pair.
find_choice_pairs <- function(plan) {
  is_usable <- function(entry) isTRUE(entry$available) && !isTRUE(entry$emulated)
  entries <- Filter(is_usable, plan$environments)
  if (length(entries) < 2) return(NULL)
  stack_rows(lapply(utils::combn(names(entries), 2, simplify = FALSE), function(pair) {
    choice <- find_single_choice(entries[[pair[[1]]]], entries[[pair[[2]]]])
    if (is.null(choice)) return(NULL)
    if (choice$reversed) pair <- rev(pair)
    data.frame(base = pair[[1]], environment = pair[[2]], choice = choice$choice,
               touches = choice$touches)
  }))
}

# Finds the one choice in which two environments of the plan differ: a list of choice and touches as
# of find_choice_pairs, and reversed (whether the first has a layer more).  NULL if they differ in
# none or in several.
find_single_choice <- function(first, second) {
  stacks <- lapply(list(first$layers, second$layers), lapply, sort_options)
  if (length(stacks[[1]]) != length(stacks[[2]])) return(find_added_layer(stacks))
  positions <- which(!mapply(identical, stacks[[1]], stacks[[2]]))
  if (length(positions) != 1) return(NULL)
  layers <- lapply(stacks, function(stack) stack[[positions]])
  if (names(layers[[1]]) != names(layers[[2]])) return(NULL)
  option <- find_differing_option(lapply(layers, `[[`, 1))
  if (is.null(option)) return(NULL)
  descriptions <- lapply(list(first, second), function(entry) entry$descriptions[[positions]])
  touches <- list_differing_keys(descriptions)
  if (length(touches) != 1 || !touches %in% c("network", "data")) touches <- ""
  list(choice = paste(names(layers[[1]]), option), reversed = FALSE, touches = touches)
}

# Sorts the options of a layer (a list of one: its options, named by the layer) by their names, so
# that equal layers are identical.
sort_options <- function(layer) {
  lapply(layer, function(options) options[sort(as.character(names(options)))])
}

# Finds the choice (see find_single_choice) where one of two stacks is the other with one layer
# more; NULL if the stacks differ in more than that.
find_added_layer <- function(stacks) {
  sizes <- lengths(stacks)
  shorter <- stacks[[which.min(sizes)]]
  longer <- stacks[[which.max(sizes)]]
  is_added <- function(i) identical(longer[-i], shorter)
  added <- Filter(is_added, seq_along(longer))
  if (length(added) == 0) return(NULL)
  list(choice = names(longer[[added[[1]]]]), touches = "", reversed = sizes[[1]] > sizes[[2]])
}

# Returns the name of the one option in which two lists of options differ; NULL if they differ in
# none or in several.
# An option that holds several settings follows from the option that names them, and does not count
# unless it is the only difference: then one of its settings is the choice.
find_differing_option <- function(options) {
  differing <- list_differing_keys(options)
  holds_settings <- function(key) {
    any(vapply(options, function(side) is.list(side[[key]]) && !is.null(names(side[[key]])), NA))
  }
  named <- Filter(Negate(holds_settings), differing)
  if (length(named) == 0 && length(differing) == 1) {
    named <- list_differing_keys(lapply(options, `[[`, differing))
  }
  if (length(named) == 1) named
}

#' Tell whether a workload can notice a choice
#'
#' A workload with a step in a fresh system can notice everything.
#'
#' @param touches see find_choice_pairs: "network", "data" (the place of data) or "", which every
#'   workload can notice
#' @param workload in the plan's `workloads`
#' @return logical; where FALSE, the comparison is a control
can_notice <- function(touches, workload) {
  # Steps may hold steps.
  has_step <- function(steps, test) {
    any(vapply(steps, function(step) test(step) || has_step(step$steps, test), NA))
  }
  cell <- workload$cell
  if (has_step(cell$steps, function(step) !is.null(step$fresh))) return(TRUE)
  is_at_client <- function(step) identical(step$at, "client")
  switch(touches,
         data = !identical(workload$storage, FALSE),
         network = length(cell$ports) > 0 || has_step(cell$steps, is_at_client),
         TRUE)
}

#' Compare the environments of each choice in the headline series
#'
#' @param results list of read_results
#' @return data frame, written as choices.csv: the columns of compare_environments and add_verdicts,
#'   choice, control ("yes" or "no") and family ("choices" or "controls", whose verdicts each share
#'   an error rate); NULL if there are no comparisons
compare_choices <- function(results) {
  pairs <- find_choice_pairs(results$plan)
  headlines <- results$tidy[results$tidy$headline, ]
  rows <- stack_rows(lapply(seq_len(NROW(pairs)), function(i) {
    changed <- headlines[headlines$environment == pairs$environment[[i]], ]
    base <- headlines[headlines$environment == pairs$base[[i]], ]
    if (nrow(changed) == 0) return(NULL)
    compared <- compare_environments(pair_environments(changed, base))
    if (is.null(compared)) return(NULL)
    noticed <- vapply(results$plan$workloads[compared$workload], function(workload) {
      can_notice(pairs$touches[[i]], workload)
    }, NA)
    cbind(compared, choice = pairs$choice[[i]], control = ifelse(noticed, "no", "yes"),
          family = ifelse(noticed, "choices", "controls"))
  }))
  if (is.null(rows)) return(NULL)
  # One verdict for each choice, pair of environments and workload.
  stack_rows(lapply(split(rows, rows$family), function(family) {
    keys <- paste(family$choice, family$reference, family$environment, family$workload)
    add_verdicts(family, match(keys, unique(keys)))
  }))
}
