#!/usr/bin/env Rscript
# Draws the figure of one workload, or the run-order figure of several: OUT.pdf, OUT.png, and OUT.csv, what is
# drawn.
#
# Usage: Rscript analysis/figure.R --plan results/plan.json --summary results/summary/NAME.csv
#          --tidy results/tidy/NAME.csv --out results/figures/NAME
#        Rscript analysis/figure.R --order --plan results/plan.json --out results/figures/order
#          results/tidy/NAME.csv ...

file <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", file, fixed = TRUE))))
for (part in c("cli", "files", "plan", "cells", "statistics", "summaries", "theme", "figures")) {
  source(file.path(root, "analysis", paste0(part, ".R")))
}

run_script("figure.R", function(arguments) {
  by_order <- "--order" %in% arguments
  options <- parse_options(arguments, required = c("plan", "out", if (!by_order) c("summary", "tidy")),
                           switches = if (by_order) "order", rest = if (by_order) "tidy tables")
  plan <- read_plan(options$plan)
  if (by_order) {
    draw_order(lapply(options$rest, read_tidy, plan = plan), plan, options$out)
  } else {
    draw_workload(read_summary(options$summary, plan), read_tidy(options$tidy, plan), plan, options$out)
  }
})
