#!/usr/bin/env Rscript
# Says after a block whether every mean is known well enough, or whether more blocks are needed.
#
# Usage: Rscript analysis/precision.R --plan results/plan.json --block NUMBER
#          --out results/precision/NUMBER.json

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("precision.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "block", "out"))
  plan <- read_plan(options$plan)
  block <- as.integer(options$block)
  summaries <- lapply(names(plan$workloads), function(workload) {
    cells <- read_cells(plan, block)
    tidy <- tidy_workload(plan, workload, load_parser(root, workload), cells = cells)
    summary <- summarise_workload(tidy, plan, cells)
    # Of a sweep, the points that tables tell of count; the others are measured as often.
    summary[is_headline(summary, plan), ]
  })
  write_json(enough_runs(do.call(rbind, summaries), plan$precision, block), options$out)
})
