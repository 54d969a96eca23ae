#!/usr/bin/env Rscript
# Usage: compare.R SIDES.json OUT [EFFECT]
# Compares two or more folders of results, and writes comparison.csv, provenance.csv, index.html and
# outcome.json into OUT.
# SIDES.json: [{"name", "results", "source", "sha256"}, ...] in the order of the sides.
# EFFECT: the smallest difference that matters, as a share.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
files <- c("read", "statistics", "testbeds", "format", "markdown_tables", "figures", "render")
for (file in files) suppressMessages(source(file.path(root, "analysis", paste0(file, ".R"))))

main <- function(listing, out, effect = MARGIN) {
  sides <- lapply(jsonlite::read_json(listing), read_side)
  rows <- compare_sides(sides, effect)
  origins <- compare_origins(sides)
  outcome <- summarise_outcome(rows, sides, effect)
  dir.create(out, recursive = TRUE, showWarnings = FALSE)
  write_file <- function(name, write) replace_file(file.path(out, name), write)
  write_file("comparison.csv", function(part) {
    utils::write.csv(rows, part, row.names = FALSE, na = "")
  })
  write_file("provenance.csv", function(part) utils::write.csv(origins, part, row.names = FALSE))
  values <- list(sides = sides, rows = rows, origins = origins, outcome = outcome, effect = effect)
  page <- file.path(normalizePath(out), "index.html")
  render_document(root, "compare.Rmd", page, "A comparison", values)
  write_file("outcome.json", function(part) {
    jsonlite::write_json(outcome, part, auto_unbox = TRUE)
  })
}

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 2:3) stop("usage: compare.R SIDES.json OUT [EFFECT]", call. = FALSE)
effect <- if (length(arguments) > 2) as.numeric(arguments[[3]]) else MARGIN
tryCatch(main(arguments[[1]], arguments[[2]], effect), error = function(error) {
  message(conditionMessage(error))
  quit(status = 1)
})
