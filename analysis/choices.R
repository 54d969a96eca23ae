#!/usr/bin/env Rscript
# What every single choice costs: pairs of environments that differ in nothing else, and their ratios.
#
# Usage: Rscript analysis/choices.R --plan results/plan.json --out results/choices.csv
#          results/tidy/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("choices.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  write_csv(choices_table(tidy, plan), options$out, digits = 10)
})
