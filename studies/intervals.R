#!/usr/bin/env Rscript
# Usage: Rscript studies/intervals.R [RUNS]
# Simulates how often intervals and verdicts are right, and prints a Markdown table.
# Noise of a block's ratio: normal; autocorrelated (0.3); contaminated, with one in ten ten times as
# wide; both.  A difference of 0 is an A/A test; 2 % and 5 % are positive controls.

source("studies/common.R")
runs <- as.integer(c(commandArgs(TRUE), 2000)[[1]])
# Functions that draw the noise of `n` blocks; without contamination its standard deviation is 1.
NOISE <- list(
  normal = function(n) stats::rnorm(n),
  autocorrelated = function(n) draw_noise(n, 0.3),
  contaminated = function(n) stats::rnorm(n) * ifelse(stats::runif(n) < 0.1, 10, 1),
  both = function(n) NOISE$autocorrelated(n) * ifelse(stats::runif(n) < 0.1, 10, 1)
)
SD <- 0.02

# Formats the share of TRUE in a logical vector in per cent, with its 95 % interval, for example
# "5.1 [4.2, 6.2]".
format_rate <- function(hits) {
  limits <- stats::binom.test(sum(hits), length(hits))$conf.int
  sprintf("%.1f [%.1f, %.1f]", 100 * mean(hits), 100 * limits[[1]], 100 * limits[[2]])
}

set.seed(1)
cat("| noise | blocks | difference | interval holds the truth | different | equivalent |\n")
cat("|---|---|---|---|---|---|\n")
for (noise in names(NOISE)) {
  for (blocks in c(5, 20)) {
    for (loss in c(0, 0.02, 0.05)) {
      rows <- stack_rows(lapply(seq_len(runs), function(i) {
        estimate_mean_ratio(exp(log(1 - loss) + SD * NOISE[[noise]](blocks)))
      }))
      holds <- rows$low <= 1 - loss & rows$high >= 1 - loss
      judgement <- judge_rows(rows, 1 - 2 * ALPHA)
      cat(sprintf("| %s | %d | %g %% | %s | %s | %s |\n", noise, blocks, 100 * loss,
                  format_rate(holds), format_rate(judgement$outside),
                  format_rate(judgement$within)))
    }
  }
}
