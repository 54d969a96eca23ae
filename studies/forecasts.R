#!/usr/bin/env Rscript
# Usage: Rscript studies/forecasts.R [RESULTS...]
# Holds forecasts against stored runs, whose tables exist, or without them against simulated ones:
# of each headline ratio only the first blocks are looked at, the rest is forecast, and then looked
# at.  Prints Markdown tables.

source("studies/common.R")
source_analysis("claims", "forecast")
# How many of the first blocks a forecast sees.
FIRST <- c(5, 10, 20)
# A forecast holds if it is within this factor of what came.
NEAR <- 1.5

# Compares forecasts from the first blocks of a series with all its blocks.
# ratios: of its blocks, in their order.  first: how many blocks the forecasts see.
# Returns a data frame of one row: first, n (all blocks), width (the half-width after all), and
# width_factor and blocks_factor, the forecasts of width and blocks as multiples of what came; NULL
# if there are less than half as many blocks to forecast as were seen, or no interval.
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
  wanted <- 1.1 * width
  reached <- INTERVAL_BLOCKS + max(which(widths > wanted), 0)
  data.frame(first = first, n = n, width = width,
             width_factor = forecast_half_width(pilot, n) / width,
             blocks_factor = forecast_blocks(pilot, wanted) / reached)
}

# Returns the ratios of each headline series and environment of a run, in the order of its blocks:
# list of vectors.  folder: of results, whose tables exist.
list_series <- function(folder) {
  pairs <- pair_with_native(read_results(folder)$tidy)
  pairs <- pairs[pairs$headline, ]
  pairs <- pairs[order(pairs$repetition), ]
  split(pairs$ratio, paste(pairs$environment, make_keys(pairs)))
}

# Draws 400 series, each of the ratios of 40 blocks whose neighbours have the correlation `ar`; the
# true ratio is 1.
simulate_series <- function(ar) {
  lapply(1:400, function(i) {
    noise <- if (ar == 0) stats::rnorm(40) else as.vector(stats::arima.sim(list(ar = ar), 40))
    exp(0.03 * noise)
  })
}

# Prints the rows of the table for one run: one for each number of first blocks that leaves a series
# enough to forecast.
# name: of the run.  series: list of vectors of ratios.
print_rows <- function(name, series) {
  rows <- stack_rows(lapply(series, function(ratios) {
    stack_rows(lapply(FIRST, function(first) compare_forecasts(ratios, first)))
  }))
  for (first in intersect(FIRST, rows$first)) {
    part <- rows[rows$first == first, ]
    # Returns how many forecasts were near, as text.
    count_near <- function(factors) {
      sprintf("%d of %d", sum(pmax(factors, 1 / factors) <= NEAR, na.rm = TRUE), length(factors))
    }
    cat(sprintf("| %s | %d | %s | %s |\n", name, first, count_near(part$width_factor),
                count_near(part$blocks_factor)))
  }
}

set.seed(1)
folders <- commandArgs(TRUE)
cat("| run | first blocks | half-width within a factor of 1.5 | blocks to a width |\n",
    "|---|---:|---:|---:|\n", sep = "")
for (folder in folders) print_rows(basename(dirname(normalizePath(folder))), list_series(folder))
if (length(folders) == 0) {
  for (ar in c(0, 0.3)) print_rows(paste("correlation", ar), simulate_series(ar))
}
