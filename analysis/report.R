#!/usr/bin/env Rscript
# Usage: report.R OUT [RESULTS]
# Makes the paper of RESULTS (default: results), as PDF or web page by the ending of OUT.  OUT is
# written completely or not at all, and its bytes depend on the results only.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "costs", "claims", "forecast", "format", "paper_data",
           "markdown_tables", "figures", "statements", "render")

# Writes the paper of a folder of results.
# out: path of the paper, which ends in .pdf or .html.
# results: path of the folder with all tables of analysis/tables.R.
write_paper <- function(out, results = "results") {
  if (!grepl("[.](pdf|html)$", out)) {
    stop(out, ": a paper ends in .pdf or .html", call. = FALSE)
  }
  paper <- read_paper(results, ROOT)
  render_document(ROOT, "report.Rmd", out, values = list(paper = paper))
}

run_script(write_paper, "report.R OUT.pdf|OUT.html [RESULTS]", 1, 2)
