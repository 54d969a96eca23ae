#!/usr/bin/env Rscript
# Usage: widths.R RESULTS TABLES
# Prints the relative half-widths of intervals as JSON, the rows of list_widths.  TABLES holds tidy/
# and laps/.  strata/results/decide.py decides by the half-widths which blocks follow, and relies on
# the keys.  It gets ratios and verdicts only if the plan has a margin, so that differences decide.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "claims")

# Lists the half-widths of intervals as shares of their ratios; NULL if rows is NULL.
# rows: data frame of workload, environment, reference, n, ratio, low, high, scatter; and of verdict
# if differences may decide.
# id: the claim's ID, or "".
# bounds: the lower and the upper bound of the claim's tolerance; NA without one.
# published: the claim's published ratio; NA without one.
# A scatter below NO_SCATTER gives a half-width of 0.
# Without a verdict the ratio and the ends of its interval (from, to) are NA: then the decision
# about further blocks must not depend on differences.
list_widths <- function(rows, id = "", bounds = c(NA_real_, NA_real_), published = NA_real_) {
  if (is.null(rows)) return(NULL)
  half_width <- ifelse(rows$scatter < NO_SCATTER, 0, (rows$high - rows$low) / 2 / rows$ratio)
  widths <- data.frame(id = id, workload = rows$workload, environment = rows$environment,
                       reference = rows$reference, n = rows$n, half_width = half_width,
                       low = bounds[[1]], high = bounds[[2]], published = published,
                       verdict = rows$verdict %or% "", ratio = NA_real_, from = NA_real_,
                       to = NA_real_)
  if (!is.null(rows$verdict)) widths[c("ratio", "from", "to")] <- rows[c("ratio", "low", "high")]
  widths
}

# Lists the half-widths of headline ratios to native, or of levels if native or all other
# environments are missing, as rows of list_widths; NULL if there are none.  If the plan has a
# margin, the ratios have verdicts.
# results: list of read_results.
list_headline_widths <- function(results) {
  rows <- results$tidy[results$tidy$headline, ]
  if (nrow(rows) == 0) return(NULL)
  is_native <- rows$environment == NATIVE
  if (any(is_native) && !all(is_native)) {
    pairs <- pair_with_native(rows)
    if (is.null(results$plan$precision$margin)) return(list_widths(compare_environments(pairs)))
    return(list_widths(compare_with_native(results, pairs)))
  }
  summary <- summarise_runs(rows)
  list_widths(transform(summary, ratio = mean, low = mean_low, high = mean_high,
                        scatter = sd / mean, reference = ""))
}

# Lists the half-widths of a claim's parts, as rows of list_widths; NULL if there are none.  A claim
# with a part that cannot be tested is at best tested in part: it has rows only if the plan has no
# width (`target`), so that blocks are measured for claims alone.
# claim: an entry of `claims` in `published`.
# published: list with the form of published/claims.json.
# results: list of read_results.
list_claim_widths <- function(claim, published, results) {
  only_claims <- is.null(results$plan$precision$target)
  context <- make_claim_context(results)
  parts <- list_claim_parts(claim, published, results$tidy, context)
  transferred <- transfer_claim(claim, published)
  if (only_claims && !is.null(transferred)) {
    parts <- c(parts, list_claim_parts(transferred$claim, transferred$published, results$tidy,
                                       context))
  }
  testable_parts <- Filter(is_testable, parts)
  if (length(testable_parts) < length(parts) && !only_claims) return(NULL)
  # Only a value that is a ratio can be compared with the ratio's interval.
  value <- NA_real_
  if (identical(claim$published$unit, "ratio")) value <- as.numeric(claim$published$value)
  stack_rows(lapply(testable_parts, function(part) {
    row <- cbind(part[c("workload", "environment", "reference")],
                 estimate_claim_part(part, 1 - ALPHA))
    list_widths(row, claim$id, part$bounds, value)
  }))
}

# Prints the half-widths of headline ratios and of claims as JSON.
# folder: path of results.
# tables: path of the folder that holds tidy/ and laps/.
print_widths <- function(folder, tables) {
  results <- read_results(folder, tables)
  # More blocks narrow only the interval within a session, so that all count as one session's.
  results$tidy$session <- rep("", nrow(results$tidy))
  published <- read_published(folder, ROOT)
  widths <- stack_rows(c(list(list_headline_widths(results)),
                         lapply(published$claims, list_claim_widths, published, results)))
  cat(jsonlite::toJSON(widths %or% list(), na = "null", digits = NA))
}

run_script(print_widths, "widths.R RESULTS TABLES", 2)
