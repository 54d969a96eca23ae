#!/usr/bin/env Rscript
# Simulates how often intervals over sessions contain the true ratio, and prints the values of
# docs/statistics.md, "Sessions and machines".  It takes about a minute.

source("studies/common.R")

EXPERIMENTS <- 2000
BLOCKS <- 10
# Standard deviations of the logarithm of a ratio: of a block, a session, and a machine.
BLOCK_SD <- 0.02
SESSION_SD <- 0.03
MACHINE_SD <- 0.05

#' Simulate one comparison whose true ratio over all machines is 1
#'
#' @param sessions numbers of sessions, an element for each machine
#' @return named numeric vector: session, machine, machines (1 if the interval contains the true
#'   ratio of the first session, of the first machine, of all machines, else 0), another (1 if the
#'   prediction interval contains another machine's ratio; NA without such an interval), width
#'   (half of the interval's width)
simulate_comparison <- function(sessions) {
  machine <- rep(seq_along(sessions), sessions)
  machine_means <- stats::rnorm(length(sessions), 0, MACHINE_SD)
  session_means <- machine_means[machine] + stats::rnorm(sum(sessions), 0, SESSION_SD)
  session <- rep(seq_along(machine), each = BLOCKS)
  ratios <- exp(session_means[session] + stats::rnorm(length(session), 0, BLOCK_SD))
  row <- compare_sessions(ratios, session, machine[session])
  # Returns whether the ratio with this logarithm lies in an interval.
  is_in_interval <- function(logarithm, low = row$low, high = row$high) {
    low <= exp(logarithm) & exp(logarithm) <= high
  }
  c(session = is_in_interval(session_means[[1]]), machine = is_in_interval(machine_means[[1]]),
    machines = is_in_interval(0),
    another = is_in_interval(stats::rnorm(1, 0, MACHINE_SD), row$next_low, row$next_high),
    width = (row$high - row$low) / 2)
}

designs <- list("1 machine, 1 session" = 1, "1 machine, 2 sessions" = 2,
                "1 machine, 3 sessions" = 3, "1 machine, 5 sessions" = 5,
                "5 machines, 1 session each" = rep(1, 5), "5 machines, 3 sessions each" = rep(3, 5),
                "5 machines, 1 to 5 sessions" = 1:5,
                "8 machines, 1 or 3 sessions" = rep(c(1, 3), 4))
set.seed(2014)
for (name in names(designs)) {
  means <- rowMeans(replicate(EXPERIMENTS, simulate_comparison(designs[[name]])))
  cat(sprintf("| %s |%s ± %.1f %% |\n", name,
              paste(sprintf(" %.1f |", 100 * means[1:4]), collapse = ""), 100 * means[["width"]]))
}
