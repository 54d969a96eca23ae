# All figures of an experiment, from its tables.

#' Draws every figure of an experiment into its folder
#'
#' @param plan as from `read_plan`
#' @param root folder of the project, for what was published
#' @section Errors: a missing or broken table
draw_all <- function(plan, root) {
  tidy <- read_tidies(plan)
  summaries <- read_summaries(plan)
  out <- function(stem) file.path(plan$results, "figures", stem)
  for (workload in names(tidy)) {
    figures <- figures_of(plan, workload)
    for (stem in names(figures)) {
      draw_workload(summaries[[workload]], tidy[[workload]], plan, root, out(stem), figures[[stem]])
    }
  }
  draw_answers(summaries, plan, out("answers"))
  draw_ratios(summaries, plan, root, out("ratios"))
  draw_order(tidy, plan, out("order"))
  draw_drift(tidy, plan, out("drift"))
  claims <- lapply(c(FALSE, TRUE), read_tested_claims, path = result_path(plan, "claims"))
  draw_claims(stacked(claims, CLAIM_COLUMNS), root, out("claims"))
  draw_footprint(read_known(result_path(plan, "footprint"), FOOTPRINT_COLUMNS, plan), plan, out("footprint"))
}
