#!/usr/bin/env Rscript
# Usage: widths.R RESULTS TIDY: how wide the intervals are, on standard output.  strata/results/decide.py
# decides by them which blocks follow; how large a ratio is, it does not see.

invisible(compiler::enableJIT(0))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
for (file in c("read", "statistics", "claims")) source(file.path(here, paste0(file, ".R")))

# A row for each; `half_width` is relative, NA where there is no interval.  id: of a claim, or empty.
widths <- function(rows, id = "", bounds = c(NA_real_, NA_real_)) {
  if (is.null(rows)) return(NULL)
  half <- ifelse(rows$scatter < 1e-12, 0, (rows$high - rows$low) / 2 / rows$ratio)
  data.frame(id = id, workload = rows$workload, environment = rows$environment, n = rows$n, half_width = half,
             low = bounds[[1]], high = bounds[[2]])
}

# Headline ratios to native; levels, where there is nothing else or no native.
of_headlines <- function(rows) {
  if (nrow(rows) == 0) return(NULL)
  native <- rows$environment == NATIVE
  if (any(native) && !all(native)) return(widths(compare_environments(pairs_of_native(rows))))
  found <- summarise_runs(rows)
  widths(transform(found, ratio = mean, low = mean_low, high = mean_high, scatter = sd / mean))
}

# The parts of a claim that narrower intervals can decide: it can be tested here as a whole, has both limits,
# and compares with native.
of_claim <- function(claim, published, results) {
  bounds <- tolerance_of(claim)
  parts <- claim_parts(claim, published, results$tidy, here_of(results))
  of_native <- vapply(parts, function(part) identical(part$reference, NATIVE), NA)
  if (!all(of_native) || !(bounds[[1]] < bounds[[2]]) %in% TRUE) return(NULL)
  stack_rows(lapply(parts, function(part) {
    widths(cbind(part[c("workload", "environment")], compare_part(part, 1 - ALPHA)), claim$id, bounds)
  }))
}

main <- function(folder, tidy) {
  results <- read_results(folder, tidy)
  published <- jsonlite::read_json(file.path(dirname(here), "published", "claims.json"))
  found <- stack_rows(c(list(of_headlines(results$tidy[results$tidy$headline, ])),
                        lapply(published$claims, of_claim, published, results)))
  cat(jsonlite::toJSON(found %or% list(), na = "null", digits = NA))
}

main(commandArgs(TRUE)[[1]], commandArgs(TRUE)[[2]])
