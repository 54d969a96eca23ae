#!/usr/bin/env Rscript
# Writes the paper from the results, as PDF or as a web page.
#
# Usage: Rscript analysis/report.R --plan results/plan.json --out paper/report.pdf [--partial]
# and the same with paper/report.html.
# The other results lie beside the plan.  With --partial the paper is made of the cells that are there, and
# says so; otherwise a missing cell is an error.  What is written is whole or not there at all.

if (!l10n_info()[["UTF-8"]]) {
  invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
}
file <- gsub("~+~", " ", sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)),
             fixed = TRUE)
root <- dirname(dirname(normalizePath(file)))
for (part in c("cli", "files", "plan", "cells", "machines", "statistics", "averages", "summaries", "wording",
               "links", "series", "evidence", "published", "claiming", "findings", "tables", "claim_tables",
               "original_tables", "setup", "testbed", "quiet", "guests", "clients", "footprints",
               "footprint_tables", "threats", "provenance", "latex", "html", "html_runs", "figures", "curves",
               "writing", "captions", "document")) {
  source(file.path(root, "analysis", paste0(part, ".R")), encoding = "UTF-8")
}

run_script("report.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "out"), switches = "partial")
  say("reading the results")
  evidence <- read_evidence(options$plan, root, options$partial)
  write_paper(evidence, root, options$out)
  say(options$out, " is written")
})
