# The nodes on which cells were measured: machines of one kind, among which whole sets were shared out.

#' The node of each record
#'
#' @param records list of records
#' @return names; NA where a record tells of none
nodes_of <- function(records) {
  vapply(records, function(record) {
    name <- field(record, "node", "name")
    if (is.character(name)) name else NA_character_
  }, "")
}

#' What nodes are called in tables and in the paper: their own names are the machines' and private
#'
#' @param names as from `nodes_of`
#' @return texts "node 1", "node 2" ..., by the order of the names, however a locale would have it
node_labels <- function(names) {
  known <- sort(unique(names[!is.na(names)]), method = "radix")
  ifelse(is.na(names), "a node that is not told", paste("node", match(names, known)))
}

#' The sets that were not measured on one node
#'
#' They were completed later, somewhere else, and so their runs are not compared.
#'
#' @param records list of records
#' @return texts, as of `set_key`
torn_sets <- function(records) {
  found <- unique(data.frame(key = vapply(records, set_key, ""), node = nodes_of(records)))
  unique(found$key[duplicated(found$key)])
}

#' Whether the cells of a plan were measured on several nodes
#'
#' @param plan as from `read_plan`
#' @return TRUE or FALSE
is_spread <- function(plan) {
  isTRUE(plan$spread)
}
