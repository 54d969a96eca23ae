#!/usr/bin/env Rscript
# Compares the results of two testbeds.
#
# Usage: Rscript analysis/compare.R --first FOLDER --second FOLDER --first-name TEXT --second-name TEXT
#          --out FOLDER [--effect SHARE]
# FIRST and SECOND are folders of results.  Writes into OUT comparison.csv, provenance.csv, the figure
# compared.pdf, .png and .csv, index.html, and outcome.json.

if (!l10n_info()[["UTF-8"]]) {
  invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
}
file <- gsub("~+~", " ", sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)),
             fixed = TRUE)
root <- dirname(dirname(normalizePath(file)))
for (part in c("cli", "files", "plan", "cells", "statistics", "averages", "summaries", "wording", "links",
               "series", "evidence", "findings", "tables", "provenance", "html", "theme", "figures",
               "ratio_figure", "compare_statistics", "compare_sides", "compare_figure", "compare_page")) {
  source(file.path(root, "analysis", paste0(part, ".R")), encoding = "UTF-8")
}

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
