#!/usr/bin/env Rscript
# Usage: compare.R SIDES.json OUT [EFFECT]: sets two or more folders of results side by side.
# SIDES: [{"name", "results", "source", "sha256"}, ...], in their order.  EFFECT: the smallest
# difference that matters, as a share.  Writes comparison.csv, provenance.csv, index.html and
# outcome.json into OUT.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
root <- normalizePath(file.path(here, ".."))
files <- c("read", "statistics", "sides", "words", "show", "figures", "render")
for (file in files) suppressMessages(source(file.path(root, "analysis", paste0(file, ".R"))))

main <- function(listing, out, effect = MARGIN) {
  sides <- lapply(jsonlite::read_json(listing), read_side)
  rows <- compare_sides(sides, effect)
  origins <- origins_apart(sides)
  outcome <- outcome_of_sides(rows, sides, effect)
  dir.create(out, recursive = TRUE, showWarnings = FALSE)
  write <- function(name, make) put_file(file.path(out, name), make)
  write("comparison.csv", function(part) utils::write.csv(rows, part, row.names = FALSE, na = ""))
  write("provenance.csv", function(part) utils::write.csv(origins, part, row.names = FALSE))
  values <- list(sides = sides, rows = rows, origins = origins, outcome = outcome, effect = effect)
  render_document(root, "compare.Rmd", file.path(normalizePath(out), "index.html"), "A comparison", values)
  write("outcome.json", function(part) jsonlite::write_json(outcome, part, auto_unbox = TRUE))
}

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 2:3) stop("usage: compare.R SIDES.json OUT [EFFECT]", call. = FALSE)
effect <- if (length(arguments) > 2) as.numeric(arguments[[3]]) else MARGIN
tryCatch(main(arguments[[1]], arguments[[2]], effect), error = function(e) {
  message(conditionMessage(e))
  quit(status = 1)
})
