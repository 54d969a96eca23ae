#!/usr/bin/env Rscript
# What it took to bring the environments up, from the records beside the logs of the tidy tables.
#
# Usage: Rscript analysis/footprint.R --plan results/plan.json --out results/footprint.csv
#          results/tidy/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("footprint.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  write_csv(footprint_table(records_of(plan, tidy), plan), options$out, digits = 10)
})
