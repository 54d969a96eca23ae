#!/usr/bin/env Rscript
# Draws all figures into results/figures from the tables: those of each workload and those of all workloads
# together.  Each is a PDF, a PNG and an SVG, and a CSV file of what it draws.  A figure without values says
# so.
#
# Usage: Rscript analysis/figures.R --plan results/plan.json

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "draw")

run_script("figures.R", function(arguments) {
  draw_all(read_plan(parse_options(arguments, required = "plan")$plan), root)
})
