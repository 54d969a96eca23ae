#!/usr/bin/env Rscript
# What the nodes differ by on which sets were measured: their levels, and the ratios to native on each.
#
# Usage: Rscript analysis/nodes.R --plan results/plan.json --out results/nodes.csv results/tidy/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("nodes.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  write_csv(nodes_table(tidy, records_of(plan, tidy), plan), options$out, digits = 10)
})
