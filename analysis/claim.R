#!/usr/bin/env Rscript
# Usage: claim.R RESULTS CLAIMS.json OUT.html WIDTH
# Tests the claim in CLAIMS.json with RESULTS, whose tables exist: writes a page, and prints the
# rows of the claim, with what would decide it, as JSON.
# WIDTH: the half-width to forecast instead of a verdict, as a share, or NA.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "claims", "forecast", "format", "markdown_tables", "figures",
           "render")

# Writes the page of a claim, and prints its rows as JSON.  strata/claim/command.py reads their
# columns as keys, and takes the last row if there are two.
# folder: path of results.
# claims: path of a file with one claim.
# out: path of the page.
# width: half-width to forecast, as a share, in digits; "NA" forecasts a verdict.
write_claim_page <- function(folder, claims, out, width) {
  results <- read_results(folder)
  published <- jsonlite::read_json(claims)
  # as.numeric warns of a width "NA".
  rows <- forecast_claims(results, published, suppressWarnings(as.numeric(width)))
  claim <- published$claims[[1]]
  parts <- list_part_intervals(claim, published, results$tidy, make_claim_context(results))
  values <- list(results = results, rows = rows, claim = claim, parts = parts)
  render_document(ROOT, "claim.Rmd", out, values = values)
  cat(jsonlite::toJSON(rows, na = "null", digits = NA))
}

run_script(write_claim_page, "claim.R RESULTS CLAIMS.json OUT.html WIDTH", 4)
