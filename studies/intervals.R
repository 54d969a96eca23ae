#!/usr/bin/env Rscript
# Usage: studies/intervals.R [RUNS]: how often intervals and verdicts are right, by simulation; a Markdown
# table. Noise of a block's ratio: normal; autocorrelated (0.3); one in ten ten times as wide; both.  A/A: no
# difference; positive controls: 2 % and 5 %.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
for (file in c("read", "statistics")) source(file.path(here, "..", "analysis", paste0(file, ".R")))
runs <- as.integer(c(commandArgs(TRUE), 2000)[[1]])
NOISE <- list(
  normal = function(n) stats::rnorm(n),
  autocorrelated = function(n) as.vector(stats::arima.sim(list(ar = 0.3), n, sd = sqrt(1 - 0.09))),
  contaminated = function(n) stats::rnorm(n) * ifelse(stats::runif(n) < 0.1, 10, 1),
  both = function(n) NOISE$autocorrelated(n) * ifelse(stats::runif(n) < 0.1, 10, 1)
)
SD <- 0.02

# Blocks are added by ten, up to 60, until the half-width of Student's interval is 1 %: what the scheduling
# does.
stopped <- function(draw) {
  d <- draw(60)
  for (n in seq(10, 60, 10)) {
    if (stats::qt(0.975, n - 1) * stats::sd(d[seq_len(n)]) / sqrt(n) < 0.01) break
  }
  compare_pairs(exp(d[seq_len(n)]), 1)
}

rate <- function(hits) {
  limits <- stats::binom.test(sum(hits), length(hits))$conf.int
  sprintf("%.1f [%.1f, %.1f]", 100 * mean(hits), 100 * limits[[1]], 100 * limits[[2]])
}

set.seed(1)
cat("| noise | blocks | difference | interval holds the truth | different | equivalent |\n")
cat("|---|---|---|---|---|---|\n")
for (noise in names(NOISE)) {
  for (blocks in c("5", "20", "until narrow")) {
    for (loss in c(0, 0.02, 0.05)) {
      draw <- function(n) log(1 - loss) + SD * NOISE[[noise]](n)
      found <- stack_rows(lapply(seq_len(runs), function(i) {
        if (blocks == "until narrow") stopped(draw) else compare_pairs(exp(draw(as.integer(blocks))), 1)
      }))
      holds <- found$low <= 1 - loss & found$high >= 1 - loss
      verdict <- verdict_of(found$p, found$p_equivalent)
      cat(sprintf("| %s | %s | %g %% | %s | %s | %s |\n", noise, blocks, 100 * loss, rate(holds),
                  rate(verdict == "different"), rate(verdict == "equivalent")))
    }
  }
}
