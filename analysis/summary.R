#!/usr/bin/env Rscript
# Summarises the tidy table of one workload: means, medians, ratios to native, their intervals, and what is to
# be known of the runs behind them.
#
# Usage: Rscript analysis/summary.R --plan results/plan.json --tidy results/tidy/NAME.csv
#          --out results/summary/NAME.csv

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("summary.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "tidy", "out"))
  plan <- read_plan(options$plan)
  summary <- summarise_workload(read_tidy(options$tidy, plan), plan, read_cells(plan))
  write_csv(summary, options$out, digits = 10)
})
