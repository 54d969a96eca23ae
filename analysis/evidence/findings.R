# What is found in the evidence: the series and ratios that are told of, and the figures that were drawn.

#' What tables and sentences tell of: of a sweep, a few points
#'
#' @param evidence as from `read_evidence`
#' @return rows of the comparisons
told <- function(evidence) {
  evidence$comparisons[evidence$comparisons$headline, ]
}

#' The comparisons with native, without native itself
#'
#' @param evidence as from `read_evidence`
#' @param environment name of one environment, or NULL for all
#' @param all whether those are meant too that no table tells of
#' @return rows of the comparisons that have a ratio
ratios <- function(evidence, environment = NULL, all = FALSE) {
  rows <- if (all) evidence$comparisons else told(evidence)
  rows <- rows[!is.na(rows$ratio) & rows$environment != REFERENCE, ]
  if (is.null(environment)) rows else rows[rows$environment == environment, ]
}

#' Whether a figure was drawn
#'
#' @param evidence as from `read_evidence`
#' @param name of the figure's file without its ending
#' @return TRUE or FALSE
has_figure <- function(evidence, name) {
  length(evidence$records) > 0 && file.exists(figure_path(evidence, name))
}

#' Where a figure lies
#'
#' @param evidence as from `read_evidence`
#' @param name of the figure's file without its ending
#' @return path
figure_path <- function(evidence, name) {
  result_path(evidence$plan, "figure", stem = name, ending = "pdf")
}
