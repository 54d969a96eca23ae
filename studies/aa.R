#!/usr/bin/env Rscript
# Usage: studies/aa.R FOLDER PROJECT...: how often two names of one environment, `native` and `native-again`,
# are called different, with `native-again` made worse by 0, 2 and 5 %; writes measured.csv to FOLDER, and
# prints it.  The tidy tables of the projects are made.  Blocks are compared as the paper does; the customary
# way is all runs of one name before those of the other, and Welch's test (1947).

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
for (file in c("read", "statistics")) source(file.path(here, "..", "analysis", paste0(file, ".R")))
arguments <- commandArgs(TRUE)
if (length(arguments) < 2) stop("usage: studies/aa.R FOLDER PROJECT...", call. = FALSE)

# `different`: the interval excludes 1; `beyond`: they are called different by more than the margin.
rates <- function(found) {
  different <- (found$low > 1 | found$high < 1) %in% TRUE
  limits <- stats::binom.test(sum(different), length(different))$conf.int
  beyond <- verdict_of(found$p, found$p_equivalent) == "different"
  data.frame(comparisons = length(different), different = sum(different), share = mean(different),
             low = limits[[1]], high = limits[[2]], beyond = mean(beyond))
}

unpaired <- function(x, y) {
  test <- function(...) stats::t.test(log(x), log(y), ...)
  p <- function(mu, side) test(mu = mu, alternative = side)$p.value
  data.frame(low = exp(test()$conf.int[[1]]), high = exp(test()$conf.int[[2]]),
             p = min(1, 2 * p(EDGE, "greater"), 2 * p(-EDGE, "less")),
             p_equivalent = max(p(-EDGE, "greater"), p(EDGE, "less")))
}

# With `loss`, the values of one name are made worse by that share: a positive control on noise that was
# measured.
measured <- function(loss) {
  rows <- stack_rows(lapply(arguments[-1], function(project) {
    results <- read_results(file.path(project, "results"))
    results$tidy <- results$tidy[results$tidy$headline, ]
    native <- results$tidy$environment == NATIVE
    share <- (1 - loss) ^ ifelse(results$tidy$better == "higher", 1, -1)
    results$tidy$value[!native] <- (results$tidy$value * share)[!native]
    results$tidy$laps[!native] <- mapply(function(laps, share) {
      paste(as.numeric(strsplit(laps, ";")[[1]]) * share, collapse = ";")
    }, results$tidy$laps, share)[!native]
    paired <- compare_environments(results$tidy[!native, ], results$tidy[native, ])
    apart <- by_group(results$tidy, c("workload", "metric", "factors"), function(own) {
      values <- split(own$value, own$environment == NATIVE)
      unpaired(values[["FALSE"]], values[["TRUE"]])
    })
    columns <- c("low", "high", "p", "p_equivalent")
    rbind(cbind(order = results$plan$order, comparison = "in blocks", loss = loss, paired[columns]),
          cbind(order = results$plan$order, comparison = "unpaired", loss = loss, apart[columns]))
  }))
  by_group(rows, c("order", "comparison", "loss"), rates)
}

table <- stack_rows(lapply(c(0, 0.02, 0.05), measured))
numbers <- vapply(table, is.numeric, NA)
table[numbers] <- lapply(table[numbers], signif, 4)
utils::write.csv(table, file.path(arguments[[1]], "measured.csv"), row.names = FALSE, quote = FALSE)
print(table, row.names = FALSE)
