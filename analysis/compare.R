#!/usr/bin/env Rscript
# Compares the results of two testbeds.
#
# Usage: Rscript analysis/compare.R --first FOLDER --second FOLDER --first-name TEXT --second-name TEXT
#          --out FOLDER [--effect SHARE]
# FIRST and SECOND are folders of results.  Writes into OUT comparison.csv, provenance.csv, the figure
# compared.pdf, .png and .csv, index.html, and outcome.json.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "compare")

run_script("compare.R", function(arguments) {
  options <- parse_options(arguments, required = c("first", "second", "first-name", "second-name", "out"),
                           optional = "effect")
  effect <- if (is.null(options$effect)) MINIMUM_EFFECT else as.numeric(options$effect)
  first <- read_side(options$first, options[["first-name"]])
  second <- read_side(options$second, options[["second-name"]])
  table <- compare_sides(first, second, effect)
  differences <- provenance_differences(first, second)
  at <- function(name) file.path(options$out, name)
  write_csv(table, at("comparison.csv"), digits = 10)
  write_csv(differences, at("provenance.csv"))
  draw_compared(table, first, second, effect, at("compared"))
  page <- compared_page(table, first, second, differences, effect, at("compared"), root)
  write_whole(at("index.html"), function(temporary) writeLines(page, temporary, useBytes = TRUE))
  outcome <- c(outcome_of(table), list(text = outcome_text(table, first, second, effect)))
  write_json(outcome, at("outcome.json"))
})
