#!/usr/bin/env Rscript
# How long runs are to be: what runs of other lengths would have decided in the same time
# (docs/run-lengths.md).
#
# Usage: Rscript analysis/lengths.R --plan results/plan.json --out lengths.csv

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("lengths.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"))
  plan <- read_plan(options$plan)
  rows <- lapply(names(plan$workloads), lengths_of_workload, plan = plan)
  table <- do.call(rbind, c(list(empty_table(LENGTH_COLUMNS)), rows))
  write_csv(table, options$out, digits = 3)
  print(table, row.names = FALSE)
})
