#!/usr/bin/env Rscript
# Usage: Rscript studies/forecasts.R [RESULTS...]
# Compares forecasts from the first blocks of each headline ratio with all its blocks, and prints a
# Markdown table.  RESULTS are folders of stored runs, whose tables exist; without them runs are
# simulated.

source("studies/common.R")
source_analysis("claims", "forecast")
# How many of the first blocks a forecast sees.
FIRST <- c(5, 10, 20)
# A forecast counts as near if it is within this factor of the outcome.
NEAR <- 1.5

# Compares forecasts from the first blocks of a series with all its blocks.
# ratios: a number for each block, in the order of measurement.
# first: number of blocks that the forecasts see.
# Returns a data frame of one row: first, n (number of all blocks), width (the half-width after
# them), width_factor and blocks_factor (the forecasts of the half-width and of the number of blocks
# for 110 % of it, each divided by the outcome); NULL if further blocks are fewer than half of
# `first`, or if there is no interval.
compare_forecasts <- function(ratios, first) {
  n <- length(ratios)
  if (n < 1.5 * first) return(NULL)
  whole <- estimate_mean_ratio(ratios)
  pilot <- estimate_mean_ratio(ratios[seq_len(first)])
  if (is.na(whole$se) || is.na(pilot$se)) return(NULL)
  width <- forecast_half_width(whole, n)
  # The half-width after each block, and the block from which on it stays within 110 % of the last.
  widths <- vapply(seq(INTERVAL_BLOCKS, n), function(i) {
    row <- estimate_mean_ratio(ratios[seq_len(i)])
    if (is.na(row$se)) Inf else forecast_half_width(row, i)
  }, 0)
  target <- 1.1 * width
  blocks_to_target <- INTERVAL_BLOCKS + max(which(widths > target), 0)
  data.frame(first = first, n = n, width = width,
             width_factor = forecast_half_width(pilot, n) / width,
             blocks_factor = forecast_blocks(pilot, target) / blocks_to_target)
}

# Reads the ratios of each headline series and environment of a run, in the order of its blocks.
# folder: path of results, whose tables exist.
# Returns a list of numeric vectors, one for each series and environment.
read_ratio_series <- function(folder) {
  pairs <- pair_with_native(read_results(folder)$tidy)
  pairs <- pairs[pairs$headline, ]
  pairs <- pairs[order(pairs$repetition), ]
  split(pairs$ratio, paste(pairs$environment, make_keys(pairs)))
}

# Simulates 400 series of the ratios of 40 blocks, whose neighbours have the correlation `ar`; the
# true ratio is 1.  Returns a list of numeric vectors.
simulate_series <- function(ar) {
  lapply(1:400, function(i) {
    noise <- if (ar == 0) stats::rnorm(40) else as.vector(stats::arima.sim(list(ar = ar), 40))
    exp(0.03 * noise)
  })
}

# Prints the rows of the Markdown table for one run: one for each element of FIRST after which a
# series has enough further blocks.
# name: name of the run.
# series: list of numeric vectors of ratios.
print_forecast_rows <- function(name, series) {
  rows <- stack_rows(lapply(series, function(ratios) {
    stack_rows(lapply(FIRST, function(first) compare_forecasts(ratios, first)))
  }))
  for (first in intersect(FIRST, rows$first)) {
    rows_of_first <- rows[rows$first == first, ]
    # Returns how many forecasts were near, for example "3 of 4".
    format_near_count <- function(factors) {
      sprintf("%d of %d", sum(pmax(factors, 1 / factors) <= NEAR, na.rm = TRUE), length(factors))
    }
    cat(sprintf("| %s | %d | %s | %s |\n", name, first,
                format_near_count(rows_of_first$width_factor),
                format_near_count(rows_of_first$blocks_factor)))
  }
}

set.seed(1)
folders <- commandArgs(TRUE)
cat("| run | first blocks | half-width within a factor of 1.5 | blocks to a width |\n",
    "|---|---:|---:|---:|\n", sep = "")
for (folder in folders) {
  print_forecast_rows(basename(dirname(normalizePath(folder))), read_ratio_series(folder))
}
if (length(folders) == 0) {
  for (ar in c(0, 0.3)) print_forecast_rows(paste("correlation", ar), simulate_series(ar))
}
