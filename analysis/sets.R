#!/usr/bin/env Rscript
# What the sets say of every ratio to native: how much of the variance lies between them, what pairing gains,
# and the ratio with the sets that were disturbed and without them.
#
# Usage: Rscript analysis/sets.R --plan results/plan.json --out results/sets.csv results/tidy/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("sets.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  write_csv(sets_table(tidy, records_of(plan, tidy), plan), options$out, digits = 10)
})
