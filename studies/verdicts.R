#!/usr/bin/env Rscript
# Usage: Rscript studies/verdicts.R [RUNS]
# Simulates whole papers whose truth is known, and prints how often their verdicts are right, as
# Markdown tables.  Each paper has three containers and four workloads, one of which has four series
# whose ratios correlate by 0.9; all ratios share native's noise.  The sandbox of the default
# experiment counts among the verdicts too.

source("studies/common.R")
runs <- as.integer(c(commandArgs(TRUE), 500)[[1]])

# Blocks, and the standard deviation of a block's ratio, of each workload in a run of `make paper`.
WORKLOADS <- data.frame(workload = c("stream", "pxz", "linpack", "randomaccess"),
                        series = c(4, 1, 1, 1), blocks = c(36, 35, 20, 30),
                        sd = c(0.035, 0.05, 0.05, 0.05))
CONTAINERS <- 3
VERDICTS <- nrow(WORKLOADS) * (CONTAINERS + 1)

# Simulates the noise of the series of a workload in one environment.
# n: number of blocks.
# series: number of series; several ones share nine tenths of their variance.
# ar: correlation of neighbouring blocks.
# Returns a matrix with a row for each block and a column for each series.
draw_series_noise <- function(n, series, ar) {
  if (series == 1) return(as.matrix(draw_noise(n, ar)))
  sqrt(0.9) * draw_noise(n, ar) + sqrt(0.1) * replicate(series, draw_noise(n, ar))
}

# Simulates one paper in which every container has the share `truth` of native's performance.
# ar: correlation of neighbouring blocks.
# Returns rows of estimate_mean_ratio, one for each series and container, with workload and
# environment.
simulate_paper <- function(truth, ar) {
  stack_rows(lapply(seq_len(nrow(WORKLOADS)), function(i) {
    workload <- WORKLOADS[i, ]
    native <- draw_series_noise(workload$blocks, workload$series, ar)
    stack_rows(lapply(seq_len(CONTAINERS), function(container) {
      noise <- (draw_series_noise(workload$blocks, workload$series, ar) - native) / sqrt(2)
      rows <- apply(truth * exp(workload$sd * noise), 2, estimate_mean_ratio, simplify = FALSE)
      cbind(workload = workload$workload, environment = container, stack_rows(rows))
    }))
  }))
}

# Returns the verdict on each workload and environment of a simulated paper at one margin:
# "different", "equivalent" or "undecided".
# The function has to decide in the same way as decide_workloads of analysis/statistics.R.
# rows: rows of simulate_paper.
# margin: the smallest difference that matters, as a share.
decide_simulated_paper <- function(rows, margin) {
  key <- paste(rows$workload, rows$environment)
  level <- 1 - 2 * ALPHA / VERDICTS
  bounds <- c(1 - margin, 1 / (1 - margin))
  vapply(split(rows, key), function(parts) {
    inner <- compute_intervals(parts, level)
    outer <- compute_intervals(parts, 1 - (1 - level) / nrow(parts))
    judgement <- judge_parts(inner, outer, parts$n, bounds[[1]], bounds[[2]])
    if (any(judgement$outside)) return("different")
    if (all(judgement$within)) "equivalent" else "undecided"
  }, "")
}

set.seed(1)
cat("| containers have | correlation | margin | papers with an equivalent workload",
    "| papers with a different one | equivalent, of 12 |\n|---|---|---|---|---|---|\n")
for (ar in c(0, 0.3)) {
  for (truth in c(1, 0.98, 0.95)) {
    papers <- lapply(seq_len(runs), function(i) simulate_paper(truth, ar))
    for (margin in MARGINS) {
      verdicts <- lapply(papers, decide_simulated_paper, margin)
      # Returns the per cent of papers in which any workload has a verdict.
      compute_percent <- function(verdict) {
        100 * mean(vapply(verdicts, function(of_paper) any(of_paper == verdict), NA))
      }
      equivalent <- mean(vapply(verdicts, function(of_paper) sum(of_paper == "equivalent"), 0))
      cat(sprintf("| %g %% | %g | %g %% | %.1f %% | %.1f %% | %.1f |\n", 100 * truth, ar,
                  100 * margin, compute_percent("equivalent"), compute_percent("different"),
                  equivalent))
    }
  }
}

cat("\n| parts of a claim, all true | blocks | correlation | an interval misses a part |\n",
    "|---|---|---|---|\n", sep = "")
for (parts in c(2, 5, 10, 17)) {
  for (blocks in c(5, 6, 8, 10)) {
    for (ar in c(0, 0.3)) {
      missed <- vapply(seq_len(runs), function(i) {
        # Percentiles have wide tails: one block in ten has three times the noise.
        rows <- stack_rows(lapply(seq_len(parts), function(part) {
          wide <- ifelse(stats::runif(blocks) < 0.1, 3, 1)
          estimate_mean_ratio(exp(0.05 * wide * draw_noise(blocks, ar)), 1 - ALPHA / parts)
        }))
        any(rows$low > 1 | rows$high < 1)
      }, NA)
      cat(sprintf("| %d | %d | %g | %.1f %% |\n", parts, blocks, ar, 100 * mean(missed)))
    }
  }
}

# Simulates the times of laps, which are about 1.
# laps: number of laps in each block.
# blocks: number of blocks.
# share: share of the laps that stall, which take 1.5 times as long.
# Returns a matrix with a row for each lap and a column for each block.
simulate_lap_times <- function(laps, blocks, share) {
  noise <- matrix(exp(stats::rnorm(laps * blocks, 0, 0.05)), laps)
  noise * ifelse(stats::runif(laps * blocks) < share, 1.5, 1)
}

# Simulates native without stalled laps, and Docker with a share of them.
# laps, blocks, share: parameters of simulate_lap_times.
# Returns two logical values: whether the two are equivalent, and whether compare_stalls finds the
# stalls.
simulate_stalls <- function(laps, blocks, share) {
  native <- simulate_lap_times(laps, blocks, 0)
  docker <- simulate_lap_times(laps, blocks, share)
  row <- estimate_mean_ratio(colSums(native) / colSums(docker))
  judgement <- judge_rows(row, 1 - 2 * ALPHA / VERDICTS)
  # The columns of tidy values that compare_stalls reads.
  tidy <- data.frame(environment = rep(c(NATIVE, "docker"), each = blocks), headline = TRUE,
                     better = "higher", repetition = rep(seq_len(blocks), 2), together = "",
                     started = 0, ended = 0, block_seconds = 0, how = "whole", scale = 1)
  tidy$laps <- c(asplit(1 / native, 2), asplit(1 / docker, 2))
  for (key in setdiff(COMPARISON_KEYS, names(tidy))) tidy[[key]] <- "x"
  c(judgement$within, compare_stalls(tidy)$p < ALPHA)
}

cat("\n| laps, blocks | stalled laps | equivalent at 2 % | stalls found |\n|---|---|---|---|\n")
for (design in list(c(4, 35), c(8, 20), c(8, 36))) {
  for (share in c(0, 0.05, 0.1)) {
    results <- replicate(runs, simulate_stalls(design[[1]], design[[2]], share))
    cat(sprintf("| %d, %d | %g %% | %.1f %% | %.1f %% |\n", design[[1]], design[[2]], 100 * share,
                100 * mean(results[1, ]), 100 * mean(results[2, ])))
  }
}
