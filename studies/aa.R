#!/usr/bin/env Rscript
# Usage: studies/aa.R FOLDER PROJECT...: how often two names of one environment are called different; of
# projects whose tidy tables are made, each environment beside `native`: `native-again`, or one whose name
# ends with the share that a brake takes of it.  Writes measured.csv to FOLDER, and prints it.  Blocks are
# compared as the paper does; the customary way is all runs of one name before those of the other, and
# Welch's test (1947).

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
for (file in c("read", "statistics")) source(file.path(here, "..", "analysis", paste0(file, ".R")))
arguments <- commandArgs(TRUE)
if (length(arguments) < 2) stop("usage: studies/aa.R FOLDER PROJECT...", call. = FALSE)

# `different`: the interval excludes 1; `promised`: how often intervals of their widths should exclude it,
# were the share that is taken all of the difference; `beyond`: they are called different by more than the
# margin.
rates <- function(found) {
  different <- (found$low > 1 | found$high < 1) %in% TRUE
  limits <- stats::binom.test(sum(different), length(different))$conf.int
  beyond <- verdict_of(found$p, found$p_equivalent) == "different"
  effect <- if (is.null(found$taken)) 0 else -log(1 - found$taken)
  widths <- effect / (log(found$high / found$low) / 2)
  promised <- stats::pnorm(1.96 * (widths - 1)) + stats::pnorm(1.96 * (-widths - 1))
  data.frame(comparisons = length(different), different = sum(different), share = mean(different),
             low = limits[[1]], high = limits[[2]], promised = mean(promised, na.rm = TRUE),
             beyond = mean(beyond))
}

unpaired <- function(x, y) {
  test <- function(...) stats::t.test(log(x), log(y), ...)
  p <- function(mu, side) test(mu = mu, alternative = side)$p.value
  data.frame(low = exp(test()$conf.int[[1]]), high = exp(test()$conf.int[[2]]),
             p = min(1, 2 * p(EDGE, "greater"), 2 * p(-EDGE, "less")),
             p_equivalent = max(p(-EDGE, "greater"), p(EDGE, "less")))
}

measured <- function(projects) {
  rows <- stack_rows(lapply(projects, function(project) {
    results <- read_results(file.path(project, "results"))
    tidy <- results$tidy[results$tidy$headline, ]
    native <- tidy[tidy$environment == NATIVE, ]
    stack_rows(lapply(setdiff(unique(tidy$environment), NATIVE), function(name) {
      other <- tidy[tidy$environment == name, ]
      paired <- compare_environments(pairs_of(other, native))
      apart <- by_group(rbind(other, native), c("workload", "metric", "factors"), function(own) {
        values <- split(own$value, own$environment == NATIVE)
        unpaired(values[["FALSE"]], values[["TRUE"]])
      })
      columns <- c("low", "high", "p", "p_equivalent")
      taken <- if (grepl("^braked", name)) as.numeric(sub("^braked-", "", name)) / 100 else 0
      rbind(cbind(order = results$plan$order, comparison = "in blocks", taken = taken, paired[columns]),
            cbind(order = results$plan$order, comparison = "unpaired", taken = taken, apart[columns]))
    }))
  }))
  by_group(rows, c("order", "comparison", "taken"), rates)
}

table <- measured(arguments[-1])
numbers <- vapply(table, is.numeric, NA)
table[numbers] <- lapply(table[numbers], signif, 4)
utils::write.csv(table, file.path(arguments[[1]], "measured.csv"), row.names = FALSE, quote = FALSE)
print(table, row.names = FALSE)
