#!/usr/bin/env Rscript
# Tests the published claims against what was measured here.
#
# Usage: Rscript analysis/claims.R --plan results/plan.json --out results/claims.csv results/tidy/NAME.csv ...

file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", file, fixed = TRUE))))
for (part in c("cli", "files", "plan", "cells", "machines", "statistics", "averages", "summaries",
               "evidence", "published", "claiming")) {
  source(file.path(root, "analysis", paste0(part, ".R")), encoding = "UTF-8")
}

run_script("claims.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), rest = "tidy tables")
  plan <- read_plan(options$plan)
  tidy <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), lapply(options$rest, read_tidy, plan = plan)))
  published <- read_claims(file.path(root, "published", "claims.json"))
  write_csv(test_claims(published, tidy, plan, host_sockets(plan, tidy)), options$out, digits = 10)
})
