#!/usr/bin/env Rscript
# Makes all tables from the tidy ones: a summary of each workload in results/summary, comparisons.csv,
# claims.csv, footprint.csv, sets.csv and choices.csv, and nodes.csv if the plan is spread over nodes.
#
# Usage: Rscript analysis/tables.R --plan results/plan.json

# Compiling takes longer than it saves in so short a run.
invisible(compiler::enableJIT(0))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("tables.R", function(arguments) {
  write_tables(read_plan(parse_options(arguments, required = "plan")$plan), root)
})
