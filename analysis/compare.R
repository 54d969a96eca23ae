#!/usr/bin/env Rscript
# Usage: compare.R SIDES.json OUT [EFFECT]
# Compares two or more folders of results, and writes comparison.csv, provenance.csv, index.html and
# outcome.json into OUT.
# SIDES.json: [{"name", "results", "source", "sha256"}, ...] in the order of the sides.
# EFFECT: the smallest difference that matters, as a share.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "testbeds", "format", "markdown_tables", "figures", "render")

# Writes all files of a comparison into a folder.  strata/archive/compare.py writes the listing of
# sides, and turns `outcome` of outcome.json into an exit status.
# listing: path of SIDES.json.
# out: path of the folder, which is created if it is missing.
# effect: the smallest difference that matters, as a share (a number, or digits from the command
# line).
write_comparison <- function(listing, out, effect = MARGIN) {
  effect <- as.numeric(effect)
  sides <- lapply(jsonlite::read_json(listing), read_side)
  rows <- compare_sides(sides, effect)
  origins <- list_provenance_differences(sides)
  outcome <- summarise_comparison(rows, sides, effect)
  dir.create(out, recursive = TRUE, showWarnings = FALSE)
  replace_table(file.path(out, "comparison.csv"), rows)
  replace_table(file.path(out, "provenance.csv"), origins)
  values <- list(sides = sides, rows = rows, origins = origins, outcome = outcome, effect = effect)
  render_document(ROOT, "compare.Rmd", file.path(out, "index.html"), values = values)
  # outcome.json is written last: it shows that all other files are complete.
  replace_file(file.path(out, "outcome.json"), function(part) {
    jsonlite::write_json(outcome, part, auto_unbox = TRUE)
  })
}

run_script(write_comparison, "compare.R SIDES.json OUT [EFFECT]", 2, 3)
