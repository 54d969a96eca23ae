#!/usr/bin/env Rscript
# Tests the published claims against what was measured here.
#
# Usage: Rscript analysis/claims.R --plan results/plan.json --out results/claims.csv results/tidy/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("claims.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  published <- read_claims(file.path(root, "published", "claims.json"))
  found <- test_claims(published, tidy, plan, host_sockets(plan, tidy), set_seconds(plan),
                       claim_seconds(plan))
  write_csv(found, options$out, digits = 10)
})
