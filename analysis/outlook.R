#!/usr/bin/env Rscript
# Usage: outlook.R RESULTS TABLES WIDTH BUDGET
# Prints as JSON what would decide the ratios and claims of RESULTS: {"ratios", "claims", "most"}.
# strata/claim/outlook.py reads it.  TABLES holds tidy/ and laps/.
# WIDTH: the half-width to forecast, as a share.  BUDGET: seconds of a run, or NA.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "claims", "forecast")

# Prints the forecasts for ratios and claims (rows of forecast_ratios and forecast_claims) as JSON.
# folder: path of results.
# tables: path of the folder that holds tidy/ and laps/.
# width: half-width to forecast, as a share, in digits.
# budget: seconds of a run in digits, or "NA".
print_outlook <- function(folder, tables, width, budget) {
  results <- read_results(folder, tables)
  # as.numeric warns of a budget "NA".
  ratios <- forecast_ratios(results, as.numeric(width), suppressWarnings(as.numeric(budget)))
  published <- read_published(folder, ROOT)
  claims <- forecast_claims(results, published)
  # Whether the experiment has a workload of the claim.
  claims$planned <- vapply(claims$workload, function(name) {
    workloads <- unlist(published$workload_groups[[name]] %or% name)
    any(workloads %in% c("*", names(results$plan$workloads)))
  }, NA)
  outlook <- list(ratios = ratios %or% list(), claims = claims, most = results$plan$repetitions)
  cat(jsonlite::toJSON(outlook, na = "null", digits = NA, auto_unbox = TRUE))
}

run_script(print_outlook, "outlook.R RESULTS TABLES WIDTH BUDGET", 4)
