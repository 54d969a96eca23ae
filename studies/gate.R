#!/usr/bin/env Rscript
# Usage: Rscript studies/gate.R [RUNS]
# Simulates `strata gate` on costs that are known, and prints how often each verdict comes, as
# Markdown tables: with blocks of one session, looked at as planned, and with sessions.

source("studies/common.R")
source_analysis("testbeds", "budgets")
runs <- as.integer(c(commandArgs(TRUE), 1000)[[1]])

# The planned numbers of blocks and of sessions: they have to be those of strata/gate/command.py.
LOOKS <- c(8, 16, 32, 64, 128)
SESSION_LOOKS <- c(3, 4, 6, 8, 12)
# The number of budgets in the gate.
BUDGETS <- 4

# Judges a budget at each planned interim analysis ("look"), until one decides or all are done.
# looks: numbers of blocks or sessions at the analyses, in ascending order.
# at_most: the budget, as a share.
# by_session: whether the numbers are of sessions.
# compare: function of a number of blocks or sessions that returns their comparison, a row of
# estimate_mean_ratio.
# Returns a character vector: the last analysis's verdict, and its number of blocks or sessions.
decide_by_looks <- function(looks, at_most, by_session, compare) {
  for (n in looks) {
    row <- cbind(series = "x", compare(n))
    result <- judge_budget(row, at_most, ALPHA / length(looks), ALPHA / length(looks) / BUDGETS,
                           by_session)
    if (result$verdict != "undecided") break
  }
  c(result$verdict, n)
}

# Prints a row of the Markdown table: how often each verdict came, and the median of the looks.
# label: text of the first cell.
# verdicts: matrix with a column of decide_by_looks for each run.
print_rates <- function(label, verdicts) {
  # Returns the per cent of runs with a verdict.
  compute_percent <- function(verdict) 100 * mean(verdicts[1, ] == verdict)
  cat(sprintf("| %s | %.1f %% | %.1f %% | %.1f %% | %.0f |\n", label,
              compute_percent("within"), compute_percent("beyond"), compute_percent("undecided"),
              stats::median(as.numeric(verdicts[2, ]))))
}

set.seed(1)
cat("| true cost, budget, scatter of a block, correlation | within | beyond | undecided |",
    "blocks, median |\n|---|---|---|---|---|\n")
for (scatter in c(0.02, 0.05)) {
  for (ar in c(0, 0.3)) {
    for (case in list(c(0, 0.02), c(0.02, 0.02), c(0.05, 0.02), c(0, 0.05), c(0.05, 0.05),
                      c(0.1, 0.05))) {
      verdicts <- replicate(runs, {
        ratios <- (1 - case[[1]]) * exp(scatter * draw_noise(max(LOOKS), ar))
        compare_first_blocks <- function(n) estimate_mean_ratio(ratios[seq_len(n)])
        decide_by_looks(LOOKS, case[[2]], FALSE, compare_first_blocks)
      })
      print_rates(sprintf("%g %%, %g %%, %g %%, %g", 100 * case[[1]], 100 * case[[2]],
                          100 * scatter, ar), verdicts)
    }
  }
}

cat("\n| true cost more, budget, scatter of a session | within | beyond | undecided |",
    "sessions, median |\n|---|---|---|---|---|\n")
for (scatter in c(0.005, 0.01, 0.03)) {
  for (case in list(c(0, 0.02), c(0.02, 0.02), c(0.05, 0.02))) {
    verdicts <- replicate(runs, {
      before <- exp(scatter * stats::rnorm(6))
      after <- (1 - case[[1]]) * exp(scatter * stats::rnorm(max(SESSION_LOOKS)))
      decide_by_looks(SESSION_LOOKS, case[[2]], TRUE, function(n) {
        compare_side_samples(list(after[seq_len(n)], before), TRUE, "blocks")
      })
    })
    print_rates(sprintf("%g %%, %g %%, %g %%", 100 * case[[1]], 100 * case[[2]], 100 * scatter),
                verdicts)
  }
}

# `strata compare` of equal versions: how often a row is called different at 2 %, among eight.
ROWS <- 8
cat("\n| sessions on each side | scatter of a session | blocks, scatter | called different |",
    "equivalent |\n|---|---|---|---|---|\n")
for (sessions in c(1, 3, 6)) {
  for (scatter in c(0, 0.01, 0.03)) {
    verdicts <- replicate(runs, {
      sides <- lapply(1:2, function(side) {
        blocks <- lapply(stats::rnorm(sessions, 0, scatter), function(effect) {
          exp(effect + 0.03 * draw_noise(20, 0.3))
        })
        if (sessions == 1) blocks[[1]] else vapply(blocks, compute_geometric_mean, 0)
      })
      row <- compare_side_samples(sides, sessions > 1, "blocks")
      row <- row[rep(1, ROWS), ]
      add_verdicts(row, seq_len(ROWS), MARGIN, min_n = INTERVAL_BLOCKS)$verdict[[1]]
    })
    cat(sprintf("| %d | %g %% | 20, 3 %% | %.1f %% | %.1f %% |\n", sessions, 100 * scatter,
                100 * mean(verdicts == "different"), 100 * mean(verdicts == "equivalent")))
  }
}
