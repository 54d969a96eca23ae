#!/usr/bin/env Rscript
# Draws a figure of one workload, or of several the run-order figure, that of the drift or that of all ratios
# to native: OUT.pdf, OUT.png, and OUT.csv, what is drawn.
#
# Usage: Rscript analysis/figure.R --plan results/plan.json --summary results/summary/NAME.csv
#          --tidy results/tidy/NAME.csv --out results/figures/NAME [--workload NAME --figure NAME-FIGURE]
#        Rscript analysis/figure.R --order --plan results/plan.json --out results/figures/order
#          results/tidy/NAME.csv ...; and the same with --drift
#        Rscript analysis/figure.R --ratios --plan results/plan.json --out results/figures/ratios
#          results/summary/NAME.csv ...

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "draw")

run_script("figure.R", function(arguments) {
  kind <- intersect(unlist(FIGURES$shared), sub("^--", "", arguments))
  several <- length(kind) > 0
  options <- parse_options(arguments, required = c("plan", "out", if (!several) c("summary", "tidy")),
                           optional = if (!several) c("workload", "figure"), switches = kind,
                           rest = if (several) if ("ratios" %in% kind) "summaries" else "tidy tables")
  plan <- read_plan(options$plan)
  if (isTRUE(options$order)) {
    draw_order(lapply(options$rest, read_tidy, plan = plan), plan, options$out)
  } else if (isTRUE(options$drift)) {
    draw_drift(lapply(options$rest, read_tidy, plan = plan), plan, options$out)
  } else if (isTRUE(options$ratios)) {
    draw_ratios(lapply(options$rest, read_summary, plan = plan), plan, root, options$out)
  } else {
    figure <- FIGURES$undeclared
    if (!is.null(options$figure)) {
      figures <- figures_of(plan, c(options$workload, "")[[1]])
      figure <- figures[[match.arg(options$figure, names(figures))]]
    }
    draw_workload(read_summary(options$summary, plan), read_tidy(options$tidy, plan), plan, root, options$out,
                  figure)
  }
})
