#!/usr/bin/env Rscript
# Sets the results of several dates or machines side by side.
#
# Usage: Rscript analysis/history.R --sides FILE --out FOLDER [--effect SHARE]
# FILE is JSON: {"sides": [{"name", "results", "source", "sha256", "paper"}, ...]} in their order, where
# `results` is a folder of results, `source` what it is from, `sha256` that file's (or null), and `paper` the
# way from OUT to a copy of its paper (or null).  Writes into OUT history.csv, ratios.csv, provenance.csv, the
# figure changes.pdf, .png, .svg and .csv, index.html, and outcome.json.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "compare")

run_script("history.R", function(arguments) {
  options <- parse_options(arguments, required = c("sides", "out"), optional = "effect")
  effect <- if (is.null(options$effect)) MINIMUM_EFFECT else as.numeric(options$effect)
  sides <- lapply(read_json(options$sides)$sides, function(told) {
    c(read_side(told$results, told$name), told[c("source", "sha256", "paper")])
  })
  history <- history_of(sides, effect)
  ratios <- ratios_beside(sides)
  differences <- stats::setNames(origins_apart(sides), c("item", side_names(sides)))
  at <- function(name) file.path(options$out, name)
  write_csv(history, at("history.csv"), digits = 10)
  write_csv(ratios, at("ratios.csv"), digits = 10)
  write_csv(differences, at("provenance.csv"))
  draw_history(history, sides, effect, at("changes"))
  page <- history_page(history, ratios, differences, sides, effect, at("changes"), root)
  write_whole(at("index.html"), function(temporary) writeLines(page, temporary, useBytes = TRUE))
  write_json(c(outcome_of(history), list(text = history_text(history, sides, effect))), at("outcome.json"))
})
