# All tables that are made from the tidy ones.

#' Writes every table of an experiment beside its plan
#'
#' @param plan as from `read_plan`
#' @param root folder of the project, for the published claims
#' @section Errors: a missing or broken table or record
write_tables <- function(plan, root) {
  tables <- read_tidies(plan)
  tidy <- stacked(tables)
  records <- records_of(plan, tidy)
  cells <- read_cells(plan)
  seconds <- set_seconds(plan)
  write <- function(table, name, ...) write_csv(table, result_path(plan, name, ...), digits = 10)
  for (workload in names(tables)) {
    write(summarise_workload(tables[[workload]], plan, cells), "summary", workload = workload)
  }
  published <- read_claims(file.path(root, "published", "claims.json"))
  # Comparisons start from the summaries as they are written, with the digits that a reader sees.
  write(comparison_table(stacked(read_summaries(plan), SUMMARY_COLUMNS), plan, seconds), "comparisons")
  write(test_claims(published, tidy, plan, host_sockets(plan, tidy), seconds, claim_seconds(plan)), "claims")
  write(footprint_table(records, plan), "footprint")
  write(sets_table(tidy, records, plan), "sets")
  write(choices_table(tidy, plan), "choices")
  if (is_spread(plan)) {
    write(nodes_table(tidy, records, plan), "nodes")
  }
}
