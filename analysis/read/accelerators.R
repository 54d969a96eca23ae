# Virtual machines: which environments have one, and how its processor was accelerated.

# What accelerators are called.
ACCELERATORS <- vapply(read_contract("accelerators"), `[[`, "", "name")

#' The kinds of the layers of an environment, as their files tell them
#'
#' @param entry of the plan's environments
#' @return texts: "bare", "container", "sandbox", "machine"
layer_kinds <- function(entry) {
  as.character(unlist(lapply(entry$told, `[[`, "kind")))
}

#' Whether an environment has a virtual machine among its layers
#'
#' @param entry of the plan's environments
#' @return TRUE or FALSE
has_machine <- function(entry) {
  "machine" %in% layer_kinds(entry)
}

#' Whether hardware acceleration was proven for an environment
#'
#' The name stands in brackets, since `$accelerator` would find `accelerator_reason` where it is absent.
#'
#' @param entry of the plan's environments
#' @return TRUE or FALSE; FALSE for one without a virtual machine
is_accelerated <- function(entry) {
  identical(entry[["accelerator"]], "kvm")
}

#' The environments with a virtual machine that is not accelerated
#'
#' @param plan as from `read_plan`
#' @return their names
emulated_environments <- function(plan) {
  emulated <- vapply(plan$environments, function(entry) has_machine(entry) && !is_accelerated(entry), NA)
  names(plan$environments)[as.logical(emulated)]
}

#' An accelerator in words
#'
#' @param name as in plans and records; "" where none is told
#' @return text
accelerator_text <- function(name) {
  if (name == "") "no accelerator that is told" else in_known_words(name, ACCELERATORS)
}

#' A name in words
#'
#' @param name text
#' @param known named character vector
#' @return its words; the name itself where it is not known
in_known_words <- function(name, known) {
  if (name %in% names(known)) known[[name]] else name
}
