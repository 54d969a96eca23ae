#!/usr/bin/env Rscript
# Draws a figure of one workload, or one of all of them (the answers, the run order, the drift, all ratios to
# native, the claims, the footprint): OUT.pdf, OUT.png, OUT.svg, and OUT.csv, what is drawn.
#
# Usage: Rscript analysis/figure.R --plan results/plan.json --summary results/summary/NAME.csv
#          --tidy results/tidy/NAME.csv --out results/figures/NAME [--workload NAME --figure NAME-FIGURE]
#        Rscript analysis/figure.R --order --plan results/plan.json --out results/figures/order
#          results/tidy/NAME.csv ...; and the same with --drift
#        Rscript analysis/figure.R --ratios --plan results/plan.json --out results/figures/ratios
#          results/summary/NAME.csv ...; and the same with --answers
#        Rscript analysis/figure.R --claims --plan results/plan.json --out results/figures/claims
#          results/claims.csv; and the same with --footprint

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "draw")

run_script("figure.R", function(arguments) {
  kind <- intersect(unlist(FIGURES$shared), sub("^--", "", arguments))
  several <- length(kind) > 0
  options <- parse_options(arguments, required = c("plan", "out", if (!several) c("summary", "tidy")),
                           optional = if (!several) c("workload", "figure"), switches = kind,
                           rest = if (several) "tables")
  plan <- read_plan(options$plan)
  tidy <- function() lapply(options$rest, read_tidy, plan = plan)
  if (several) {
    switch(kind[[1]],
           answers = draw_answers(lapply(options$rest, read_summary, plan = plan), plan, options$out),
           order = draw_order(tidy(), plan, options$out),
           drift = draw_drift(tidy(), plan, options$out),
           ratios = draw_ratios(lapply(options$rest, read_summary, plan = plan), plan, root, options$out),
           claims = draw_claims(rbind(read_tested_claims(options$rest[[1]]),
                                      read_tested_claims(options$rest[[1]], transferred = TRUE)), root,
                                options$out),
           footprint = draw_footprint(read_known(options$rest[[1]], FOOTPRINT_COLUMNS, plan), plan,
                                      options$out))
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
