#!/usr/bin/env Rscript
# Decides after a round which sets are measured next: what was disturbed again, and where intervals are wide.
#
# Usage: Rscript analysis/precision.R --plan results/plan.json --block NUMBER
#          --out results/precision/NUMBER.json

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("precision.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "block", "out"))
  plan <- read_plan(options$plan)
  block <- as.integer(options$block)
  cells <- read_cells(plan, block)
  tables <- sapply(names(plan$workloads), function(workload) {
    tidy_workload(plan, workload, load_parser(root, workload), cells = cells)
  }, simplify = FALSE)
  records <- records_of(plan, do.call(rbind, unname(tables)))
  # What was decided later, in a run that went further, plays no part.
  before <- decisions_of(plan, before = block)
  claimed <- if (isTRUE(plan$precision$claims)) {
    tidy <- do.call(rbind, unname(tables))
    published <- read_claims(file.path(root, "published", "claims.json"))
    claimed_widths(published, tidy, plan, host_sockets(plan, tidy))
  }
  write_json(decide_round(tables, records, cells, plan, block, before, claimed), options$out)
})
