#!/usr/bin/env Rscript
# Usage: outlook.R RESULTS TABLES WIDTH BUDGET
# Prints as JSON what would decide the ratios and claims of RESULTS; TABLES holds tidy/ and laps/.
# WIDTH: the half-width that is wanted, as a share.  BUDGET: seconds of a run, or NA.

# Each function runs too seldom to be worth compiling.
invisible(compiler::enableJIT(0))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
for (file in c("read", "statistics", "claims", "forecast")) {
  source(file.path(analysis, paste0(file, ".R")))
}

main <- function(folder, tables, width, budget) {
  results <- read_results(folder, tables)
  ratios <- forecast_ratios(results, as.numeric(width), suppressWarnings(as.numeric(budget)))
  claims <- forecast_claims(results, read_published(folder, dirname(analysis)))
  outlook <- list(ratios = ratios %or% list(), claims = claims, most = results$plan$repetitions)
  cat(jsonlite::toJSON(outlook, na = "null", digits = NA, auto_unbox = TRUE))
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 4) {
  stop("usage: outlook.R RESULTS TABLES WIDTH BUDGET", call. = FALSE)
}
do.call(main, as.list(arguments))
