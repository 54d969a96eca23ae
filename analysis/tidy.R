#!/usr/bin/env Rscript
# Reads the logs and records of one workload into its tidy table.
#
# Usage: Rscript analysis/tidy.R --plan results/plan.json --workload NAME --out results/tidy/NAME.csv
#          [--partial]
# With --partial cells that were not measured are left out; otherwise they are an error.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "read")

run_script("tidy.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "workload", "out"), switches = "partial")
  plan <- read_plan(options$plan)
  planned_workload(plan, options$workload)
  table <- tidy_workload(plan, options$workload, load_parser(root, options$workload), options$partial)
  write_csv(table, options$out)
})
