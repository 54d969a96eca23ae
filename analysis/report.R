#!/usr/bin/env Rscript
# Writes the paper from the results, as PDF or as a web page.
#
# Usage: Rscript analysis/report.R --plan results/plan.json --out paper/report.pdf [--partial]
# and the same with paper/report.html.
# The other results lie beside the plan.  With --partial the paper is made of the cells that are there, and
# says so; otherwise a missing cell is an error.  What is written is whole or not there at all.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "paper")

run_script("report.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), switches = "partial")
  say("reading the results")
  evidence <- read_evidence(options$plan, root, options$partial)
  write_paper(evidence, root, options$out)
  say(options$out, " is written")
})
