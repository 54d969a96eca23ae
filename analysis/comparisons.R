#!/usr/bin/env Rscript
# All comparisons with native, of all workloads: their p values adjusted as one family, and how each is read.
#
# Usage: Rscript analysis/comparisons.R --plan results/plan.json --out results/comparisons.csv
#          results/summary/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("comparisons.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "summaries")
  plan <- read_plan(options$plan)
  summaries <- lapply(options$rest, read_summary, plan = plan)
  write_csv(comparison_table(do.call(rbind, c(list(empty_table(SUMMARY_COLUMNS)), summaries)), plan,
                             set_seconds(plan)), options$out, digits = 10)
})
