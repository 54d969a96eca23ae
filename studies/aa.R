#!/usr/bin/env Rscript
# Usage: Rscript studies/aa.R FOLDER PROJECT...
# Measures how often two names of one environment are called different, and prints and writes the
# rates to FOLDER/measured.csv.  Each PROJECT has its tidy tables, and next to `native` the
# environment `native-again`, or environments such as `braked-2`, whose names end with the per cent
# of performance that a brake takes.
# There are two ways of comparison: in blocks, as in the paper; and unpaired, which is customary,
# with all runs of one name before those of the other and Welch's test (1947).

source("studies/common.R")
arguments <- commandArgs(TRUE)
if (length(arguments) < 2) stop("usage: studies/aa.R FOLDER PROJECT...", call. = FALSE)

#' Summarise how often comparisons find a difference
#'
#' @param comparisons data frame, one row for each comparison: low, high (the interval of a ratio;
#'   NA counts as no difference), taken (the share of performance that a brake takes)
#' @return data frame of one row: comparisons (number), different (number of intervals that
#'   exclude 1), share (of such intervals) with its 95 % interval low and high, promised (the share
#'   of intervals of these widths that should exclude 1 if `taken` is the whole difference), beyond
#'   (the share of intervals that lie outside of MARGIN)
summarise_rates <- function(comparisons) {
  is_different <- (comparisons$low > 1 | comparisons$high < 1) %in% TRUE
  limits <- stats::binom.test(sum(is_different), length(is_different))$conf.int
  effect <- if (is.null(comparisons$taken)) 0 else -log(1 - comparisons$taken)
  # In units of a half-width, 1.96 standard errors; intervals above and below 1 both count.
  half_widths <- log(comparisons$high / comparisons$low) / 2
  distance <- effect / half_widths
  expected_shares <- stats::pnorm(1.96 * (distance - 1)) + stats::pnorm(1.96 * (-distance - 1))
  is_beyond <- comparisons$high < 1 - MARGIN | comparisons$low > 1 / (1 - MARGIN)
  data.frame(comparisons = length(is_different), different = sum(is_different),
             share = mean(is_different), low = limits[[1]], high = limits[[2]],
             promised = mean(expected_shares, na.rm = TRUE),
             beyond = mean(is_beyond %in% TRUE))
}

# Compares two samples of values by Welch's test of their logarithms.
# Returns a data frame of low and high, the 95 % interval of the ratio of the geometric means, of
# values to reference.
compare_unpaired <- function(values, reference) {
  interval <- exp(stats::t.test(log(values), log(reference))$conf.int)
  data.frame(low = interval[[1]], high = interval[[2]])
}

# Compares one environment of a project with native, in blocks and unpaired.
# name: name of the environment; that of a brake ends with its per cent, for example braked-2.
# headlines: tidy rows of headline metrics.
# order: order of the project's runs, the key `order` of its configuration.
# Returns a data frame with a row for each series and way: order, comparison ("in blocks" or
# "unpaired"), taken (the share of performance that a brake takes), low and high (the interval of
# the ratio).
compare_with_native_twice <- function(name, headlines, order) {
  native <- headlines[headlines$environment == NATIVE, ]
  environment <- headlines[headlines$environment == name, ]
  paired <- compare_environments(pair_environments(environment, native))
  series_keys <- c("workload", "metric", "factors")
  unpaired <- map_groups(rbind(environment, native), series_keys, function(rows) {
    values <- split(rows$value, rows$environment == NATIVE)
    compare_unpaired(values[["FALSE"]], values[["TRUE"]])
  })
  columns <- c("low", "high")
  taken <- if (grepl("^braked", name)) as.numeric(sub("^braked-", "", name)) / 100 else 0
  # In an order without blocks no runs are pairs.
  in_blocks <- NULL
  if (!is.null(paired)) {
    in_blocks <- cbind(order = order, comparison = "in blocks", taken = taken, paired[columns])
  }
  rbind(in_blocks,
        cbind(order = order, comparison = "unpaired", taken = taken, unpaired[columns]))
}

# Computes how often the comparisons of all projects find a difference.
# projects: paths of projects, whose tables exist.
# Returns rows of summarise_rates, one for each order, comparison and taken.
compute_rates <- function(projects) {
  comparisons <- stack_rows(lapply(projects, function(project) {
    results <- read_results(file.path(project, "results"))
    headlines <- results$tidy[results$tidy$headline, ]
    environments <- setdiff(unique(headlines$environment), NATIVE)
    stack_rows(lapply(environments, compare_with_native_twice, headlines, results$plan$order))
  }))
  map_groups(comparisons, c("order", "comparison", "taken"), summarise_rates)
}

rates <- compute_rates(arguments[-1])
is_number <- vapply(rates, is.numeric, NA)
rates[is_number] <- lapply(rates[is_number], signif, 4)
utils::write.csv(rates, file.path(arguments[[1]], "measured.csv"), row.names = FALSE, quote = FALSE)
print(rates, row.names = FALSE)
