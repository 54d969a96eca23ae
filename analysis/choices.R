# Compares environments that differ in exactly one choice.  A comparison is a control if the choice
# cannot affect the workload: every difference that is found in it is false.

#' Find the pairs of environments that differ in one choice
#'
#' Emulated and unavailable environments are in no pair.
#'
#' @param plan contents of plan.json
#' @return data frame, one row for each pair: base, environment, choice (layer and option, for
#'   example "docker network", or the name of the layer that only `environment` has), touches
#'   ("network" or "data" if the choice affects nothing else; otherwise ""); NULL without pairs
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

# Finds the only choice in which two environments differ.
# first, second: entries of the plan's `environments`.
# Returns a list of choice and touches (columns of find_choice_pairs) and reversed (whether the
# first one has the additional layer); NULL if they differ in no choice or in several.
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

# Sorts the options of a layer by their names, so that equal layers are identical.
# layer: a list with one element, the options, whose name is that of the layer.
sort_options <- function(layer) {
  lapply(layer, function(options) options[sort(as.character(names(options)))])
}

# Finds the layer that one of two stacks has in addition to all layers of the other.
# stacks: list of two lists of layers, of different lengths.
# Returns the list of find_single_choice; NULL if the stacks differ in more than one layer.
find_added_layer <- function(stacks) {
  layer_counts <- lengths(stacks)
  shorter <- stacks[[which.min(layer_counts)]]
  longer <- stacks[[which.max(layer_counts)]]
  is_additional <- function(i) identical(longer[-i], shorter)
  # Of two equal layers, one above the other, either may be the additional one.
  positions <- Filter(is_additional, seq_along(longer))
  if (length(positions) == 0) return(NULL)
  list(choice = names(longer[[positions[[1]]]]), touches = "",
       reversed = layer_counts[[1]] > layer_counts[[2]])
}

# Returns the name of the only option in which two layers differ; NULL if they differ in no option
# or in several.
# options: list of the two layers' options.
# An option that is a mapping of settings follows from the option that names them, and does not
# count.  If it is the only difference, one of its settings is the choice.
find_differing_option <- function(options) {
  keys <- list_differing_keys(options)
  has_settings <- function(key) {
    is_mapping <- function(value) is.list(value) && !is.null(names(value))
    any(vapply(options, function(side) is_mapping(side[[key]]), NA))
  }
  choices <- Filter(Negate(has_settings), keys)
  if (length(choices) == 0 && length(keys) == 1) {
    choices <- list_differing_keys(lapply(options, `[[`, keys))
  }
  if (length(choices) == 1) choices
}

#' Return whether a choice can affect a workload
#'
#' Every choice can affect a workload that has a step in a fresh system.
#'
#' @param touches column of find_choice_pairs: "network", "data" (where data are stored) or "",
#'   which affects every workload
#' @param workload entry of the plan's `workloads`
#' @return logical; if FALSE, the comparison is a control
can_affect <- function(touches, workload) {
  # Returns whether any step, or any step within a step, passes a test.
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
    rows <- headlines[headlines$environment == pairs$environment[[i]], ]
    base_rows <- headlines[headlines$environment == pairs$base[[i]], ]
    if (nrow(rows) == 0) return(NULL)
    comparisons <- compare_environments(pair_environments(rows, base_rows))
    if (is.null(comparisons)) return(NULL)
    is_affected <- vapply(results$plan$workloads[comparisons$workload], function(workload) {
      can_affect(pairs$touches[[i]], workload)
    }, NA)
    cbind(comparisons, choice = pairs$choice[[i]], control = ifelse(is_affected, "no", "yes"),
          family = ifelse(is_affected, "choices", "controls"))
  }))
  if (is.null(rows)) return(NULL)
  # One verdict for each choice, pair of environments and workload.
  stack_rows(lapply(split(rows, rows$family), function(family) {
    keys <- paste(family$choice, family$reference, family$environment, family$workload)
    add_verdicts(family, match(keys, unique(keys)))
  }))
}
