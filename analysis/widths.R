#!/usr/bin/env Rscript
# Usage: widths.R RESULTS TABLES
# TABLES holds tidy/ and laps/.  Prints the relative half-widths of intervals as JSON.
# strata/results/decide.py decides by them which blocks follow.  It sees ratios and verdicts only if
# the plan names a margin, by which differences decide.

# Each function runs too seldom to be worth compiling.
invisible(compiler::enableJIT(0))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
for (file in c("read", "statistics", "claims")) {
  source(file.path(analysis, paste0(file, ".R")))
}

# Lists the half-widths of intervals as shares of their ratios; NULL of no rows.
# rows: workload, environment, reference, n, ratio, low, high, scatter; id: a claim's, or empty;
# bounds, published: the claim's tolerance and value.
list_widths <- function(rows, id = "", bounds = c(NA_real_, NA_real_), published = NA_real_) {
  if (is.null(rows)) return(NULL)
  half_width <- ifelse(rows$scatter < 1e-12, 0, (rows$high - rows$low) / 2 / rows$ratio)
  shown <- if (is.null(rows$verdict)) NA_real_ else 1
  data.frame(id = id, workload = rows$workload, environment = rows$environment,
             reference = rows$reference, n = rows$n, half_width = half_width,
             low = bounds[[1]], high = bounds[[2]], published = published,
             verdict = rows$verdict %or% "", ratio = rows$ratio * shown, from = rows$low * shown,
             to = rows$high * shown)
}

# Lists the half-widths of headline ratios to native, or of levels if native or all other
# environments are missing.  With a margin in the plan, the ratios have verdicts.
list_headline_widths <- function(results) {
  rows <- results$tidy[results$tidy$headline, ]
  if (nrow(rows) == 0) return(NULL)
  native <- rows$environment == NATIVE
  if (any(native) && !all(native)) {
    pairs <- pair_with_native(rows)
    by_margin <- !is.null(results$plan$precision$margin)
    return(list_widths(if (by_margin) compare_with_native(results, pairs)
                       else compare_environments(pairs)))
  }
  summary <- summarise_runs(rows)
  list_widths(transform(summary, ratio = mean, low = mean_low, high = mean_high,
                        scatter = sd / mean, reference = ""))
}

# Lists the half-widths of a claim's parts.  A part that cannot be tested leaves a claim at best
# tested in part: such a claim gets blocks only where blocks are measured for claims alone.
list_claim_widths <- function(claim, published, results) {
  claims_alone <- is.null(results$plan$precision$target)
  context <- describe_run(results)
  parts <- list_claim_parts(claim, published, results$tidy, context)
  transferred <- transfer_claim(claim, published)
  if (claims_alone && !is.null(transferred)) {
    parts <- c(parts, list_claim_parts(transferred$claim, transferred$published, results$tidy,
                                       context))
  }
  tested <- Filter(function(part) is.null(part$reason), parts)
  if (length(tested) < length(parts) && !claims_alone) return(NULL)
  value <- NA_real_
  if (identical(claim$published$unit, "ratio")) value <- as.numeric(claim$published$value)
  stack_rows(lapply(tested, function(part) {
    row <- cbind(part[c("workload", "environment", "reference")], compare_part(part, 1 - ALPHA))
    list_widths(row, claim$id, part$bounds, value)
  }))
}

main <- function(folder, tables) {
  results <- read_results(folder, tables)
  # Blocks narrow the interval within a session alone, whatever it is for.
  results$tidy$session <- rep("", nrow(results$tidy))
  published <- read_published(folder, dirname(analysis))
  widths <- stack_rows(c(list(list_headline_widths(results)),
                         lapply(published$claims, list_claim_widths, published, results)))
  cat(jsonlite::toJSON(widths %or% list(), na = "null", digits = NA))
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: widths.R RESULTS TABLES", call. = FALSE)
do.call(main, as.list(arguments))
