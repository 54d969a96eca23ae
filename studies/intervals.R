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

rate <- function(hits) {
  limits <- stats::binom.test(sum(hits), length(hits))$conf.int
  sprintf("%.1f [%.1f, %.1f]", 100 * mean(hits), 100 * limits[[1]], 100 * limits[[2]])
}

set.seed(1)
cat("| noise | blocks | difference | interval holds the truth | different | equivalent |\n")
cat("|---|---|---|---|---|---|\n")
for (noise in names(NOISE)) {
  for (blocks in c(5, 20)) {
    for (loss in c(0, 0.02, 0.05)) {
      found <- stack_rows(lapply(seq_len(runs), function(i) {
        compare_pairs(exp(log(1 - loss) + SD * NOISE[[noise]](blocks)))
      }))
      holds <- found$low <= 1 - loss & found$high >= 1 - loss
      verdict <- verdict_of(found$p, found$p_equivalent)
      cat(sprintf("| %s | %d | %g %% | %s | %s | %s |\n", noise, blocks, 100 * loss, rate(holds),
                  rate(verdict == "different"), rate(verdict == "equivalent")))
    }
  }
}
