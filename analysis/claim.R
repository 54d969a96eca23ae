#!/usr/bin/env Rscript
# Usage: claim.R RESULTS CLAIMS.json OUT.html
# Tests the claim in CLAIMS.json with RESULTS, whose tables exist: writes a page, and prints the
# rows of the claim, with what would decide it, as JSON.

# Each function runs too seldom to be worth compiling.
invisible(compiler::enableJIT(0))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
files <- c("read", "statistics", "claims", "forecast", "format", "markdown_tables", "figures",
           "render")
for (file in files) suppressMessages(source(file.path(root, "analysis", paste0(file, ".R"))))

main <- function(folder, claims, out) {
  results <- read_results(folder)
  published <- jsonlite::read_json(claims)
  rows <- forecast_claims(results, published)
  claim <- published$claims[[1]]
  parts <- list_part_intervals(claim, published, results$tidy, describe_run(results))
  values <- list(results = results, rows = rows, claim = claim, parts = parts)
  out <- file.path(normalizePath(dirname(out)), basename(out))
  render_document(root, "claim.Rmd", out, values = values)
  cat(jsonlite::toJSON(rows, na = "null", digits = NA))
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 3) stop("usage: claim.R RESULTS CLAIMS.json OUT.html", call. = FALSE)
do.call(main, as.list(arguments))
