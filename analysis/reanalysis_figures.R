#!/usr/bin/env Rscript
# Draws the figures of the original paper from the published raw results, beside the values as printed.
#
# Usage: Rscript analysis/reanalysis_figures.R --differences results/reanalysis/differences.csv --out FOLDER
# Writes figure-3, figure-5 ... figure-13, each as PDF and PNG and what it draws as CSV.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "reanalysis")

run_script("reanalysis_figures.R", function(arguments) {
  options <- parse_options(arguments, required = c("differences", "out"))
  draw_original_figures(read_differences(options$differences), options$out)
})
