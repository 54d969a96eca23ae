#!/usr/bin/env Rscript
# Writes the paper of the reanalysis.
#
# Usage: Rscript analysis/reanalysis_paper.R --tables results/reanalysis --out paper/reanalysis.pdf
#        [--claims results/claims.csv]
# The folder holds the tables and the figures; the claims are those that were tested on the machine at hand.
# The PDF is written whole or not at all.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "reanalysis")

run_script("reanalysis_paper.R", function(arguments) {
  options <- parse_options(arguments, required = c("tables", "out"), optional = "claims")
  write_reanalysis(read_reanalysis(options$tables, root, options$claims), root, options$out)
  say(options$out, " is written")
})
