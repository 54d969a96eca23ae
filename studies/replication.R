#!/usr/bin/env Rscript
# Usage: Rscript studies/replication.R [RUNS]
# Simulates `strata reproduce` on originals and replications whose truth is known, and prints as a
# Markdown table how often ratios agree and how often a change is found.

source("studies/common.R")
source_analysis("testbeds", "replication")
runs <- as.integer(c(commandArgs(TRUE), 500)[[1]])

# The number of ratios of an archive; only the first one changed.
ROWS <- 8

# Simulates the blocks of one side.
# ratio: the true ratio.
# blocks: number of blocks in each session.
# scatter: standard deviation of the logarithms of blocks within a session.
# sessions: number of sessions.
# between: standard deviation of the logarithms of sessions.
# Returns a data frame of share (a block's ratio) and session.
simulate_side <- function(ratio, blocks, scatter, sessions, between) {
  effects <- rep(stats::rnorm(sessions, 0, between), each = blocks)
  data.frame(share = ratio * exp(effects + stats::rnorm(blocks * sessions, 0, scatter)),
             session = paste(rep(seq_len(sessions), each = blocks)))
}

# Simulates one `strata reproduce` of ROWS ratios; returns the outcome of each ratio.
# case: a row of `cases`.
# change: the true ratio of the first row in the replication; all other true ratios, and those of
# the original, are 1.
simulate_reproduction <- function(case, change) {
  rows <- lapply(seq_len(ROWS), function(i) {
    ratio <- if (i == 1) change else 1
    # The original is drawn first: the printed numbers depend on this order.
    original <- simulate_side(1, case$blocks, case$scatter, case$sessions, case$between)
    replication <- simulate_side(ratio, case$blocks, case$scatter, 1, case$between)
    predict_replication(original, replication)
  })
  judge_replications(stack_rows(rows), 0.05)$outcome
}

set.seed(1)
cat("| blocks, scatter, sessions there, scatter of a session | agree | undecided |",
    "any false *differs* | 5 % found |\n|---|---:|---:|---:|---:|\n")
cases <- expand.grid(blocks = c(10, 20, 40), scatter = c(0.01, 0.02), sessions = 1, between = 0)
cases <- rbind(cases, data.frame(blocks = 20, scatter = 0.02, sessions = c(1, 1, 12),
                                 between = c(0.01, 0.03, 0.01)))
for (i in seq_len(nrow(cases))) {
  case <- cases[i, ]
  same <- replicate(runs, simulate_reproduction(case, 1))
  changed <- replicate(runs, simulate_reproduction(case, 0.95))
  cat(sprintf("| %g, %g %%, %g, %g %% | %.1f %% | %.1f %% | %.1f %% | %.1f %% |\n", case$blocks,
              100 * case$scatter, case$sessions, 100 * case$between, 100 * mean(same == "agrees"),
              100 * mean(same == "undecided"), 100 * mean(colSums(same == "differs") > 0),
              100 * mean(changed[1, ] == "differs")))
}
