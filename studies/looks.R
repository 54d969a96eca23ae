#!/usr/bin/env Rscript
# Usage: Rscript studies/looks.R [EXPERIMENTS]
# Simulates `strata try`: two environments are compared with native, and tested after each planned
# number of blocks, until both are decided.  Prints how often a verdict is false, by the true ratio
# and the correlation of neighbouring blocks, next to one test at the end.

source("studies/common.R")

# The numbers of blocks at the interim analyses ("looks").
LOOKS <- c(5, 8, 12, 20, 32, 50, 80, 128)
# The standard deviation of the logarithm of a block's ratio.
SCATTER <- 0.03

# Simulates the ratios of one environment in as many blocks as the last analysis has.
# ratio: the true ratio.
# correlation: correlation of neighbouring blocks, from 0 on and below 1.
# Returns a numeric vector.
simulate_ratios <- function(ratio, correlation) {
  noise <- stats::arima.sim(list(ar = correlation), max(LOOKS), n.start = 50,
                            sd = SCATTER * sqrt(1 - correlation ^ 2))
  ratio * exp(as.numeric(noise))
}

# Simulates one `strata try` of two environments with the same true ratio.
# ratio, correlation: parameters of simulate_ratios.
# looks: number of analyses that share the error rate; with 1 each analysis is tested at the whole
# rate, which is naive.
# last: number of blocks at the last analysis.
# Returns a named numeric vector: different and equivalent (1 if any environment has this verdict,
# else 0), decided (the share of environments with a verdict), blocks (their mean number).
simulate_try <- function(ratio, correlation, looks, last) {
  ratios <- replicate(2, simulate_ratios(ratio, correlation), simplify = FALSE)
  verdicts <- rep("undecided", 2)
  blocks <- rep(0, 2)
  for (look in LOOKS[LOOKS <= last]) {
    blocks[verdicts == "undecided"] <- look
    rows <- stack_rows(Map(function(values, n) {
      estimate_mean_ratio(values[seq_len(n)])
    }, ratios, blocks))
    # The same as in add_verdicts of analysis/statistics.R, but faster.
    judgement <- judge_rows(rows, 1 - 2 * ALPHA / (2 * looks))
    verdicts <- rep("undecided", 2)
    verdicts[judgement$within] <- "equivalent"
    verdicts[judgement$outside] <- "different"
    if (all(verdicts != "undecided")) break
  }
  c(different = any(verdicts == "different"), equivalent = any(verdicts == "equivalent"),
    decided = mean(verdicts != "undecided"), blocks = mean(blocks))
}

# Prints a table of simulations of `strata try`, with shares in per cent.
# experiments: number of simulations for each row.
print_simulations <- function(experiments = 1000) {
  set.seed(2026)
  settings <- expand.grid(correlation = c(0, 0.3), ratio = c(1, 0.98, 0.95), last = c(20, 128))
  results <- Map(function(correlation, ratio, last) {
    trials <- replicate(experiments, simulate_try(ratio, correlation, length(LOOKS), last))
    naive <- replicate(experiments, simulate_try(ratio, correlation, 1, last))
    data.frame(ratio = ratio, correlation = correlation, last = last,
               different = 100 * mean(trials["different", ]),
               equivalent = 100 * mean(trials["equivalent", ]),
               decided = 100 * mean(trials["decided", ]), blocks = mean(trials["blocks", ]),
               naive_different = 100 * mean(naive["different", ]),
               naive_equivalent = 100 * mean(naive["equivalent", ]))
  }, settings$correlation, settings$ratio, settings$last)
  print(stack_rows(results), digits = 3)
}

do.call(print_simulations, as.list(as.numeric(commandArgs(TRUE))))
