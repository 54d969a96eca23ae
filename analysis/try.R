#!/usr/bin/env Rscript
# Usage: try.R RESULTS OUT.html
# Makes the one-page report of an experiment of `strata try` from its tables.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "format", "paper_data", "markdown_tables", "figures", "render")

# Writes the HTML page of `strata try --html`.
# folder: path of results, whose tables exist.
# out: path of the page.
write_try_page <- function(folder, out) {
  # paper/try.Rmd uses the tables by these names.
  names <- c(comparisons = "comparisons", summary = "summary", runs = "runs")
  tables <- lapply(names, read_result_table, folder)
  render_document(ROOT, "try.Rmd", out, values = c(tables, list(results = read_results(folder))))
}

run_script(write_try_page, "try.R RESULTS OUT.html", 2)
