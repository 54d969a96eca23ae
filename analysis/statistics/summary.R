# From the tidy table of one workload to its summary.

#' What the flags of a summary mean
#'
#' @return named character vector: code to sentence, in the order in which flags are printed
flag_meanings <- function() {
  c(
    "missing" = "Fewer runs were measured than planned.",
    "single-run" = "There is one run, from which neither deviation nor interval can be estimated.",
    "few-runs" = "Below six runs there is no distribution-free 95 % interval of the median.",
    "constant" = "The runs do not vary, so that no interval can be estimated.",
    "no-pair" = "No set holds both this environment and native, so that there is no ratio.",
    "one-pair" = "One set holds both this environment and native, so that the ratio has no interval.",
    "ratio-unbounded" = "The data do not bound the ratio to native, so that it has no interval.",
    "many-runs" = "To know the median as well as wanted, more runs would be needed than the cap of 1000.",
    "outlier" = "A run has a modified z score above 3.5; it is kept.",
    "non-normal" = "The test of Shapiro and Wilk rejects normality at 5 %.",
    "autocorrelated" = "Successive runs are correlated beyond the 95 % limits of independent ones.",
    "drift" = "The values rise or fall with the order of measurement (Kendall's test at 5 %).",
    "disturbed" = "The machine was disturbed in a run that counts."
  )
}

#' The summary of a workload, of the sets that count
#'
#' @param tidy as from `read_tidy`
#' @param plan as from `read_plan`
#' @param cells as from `read_cells`
#' @return data frame with the columns of SUMMARY_COLUMNS, in the order of the plan's environments, of its
#'   metrics, and of the factors
summarise_workload <- function(tidy, plan, cells) {
  if (!any(tidy$counts == "yes")) {
    return(empty_table(SUMMARY_COLUMNS))
  }
  workload <- tidy$workload[[1]]
  metrics <- metrics_of(plan, workload)
  tidy <- tidy[order(tidy$order), ]
  planned <- counted_rows(cells)
  planned <- table(planned$environment[planned$workload == workload])
  paired <- paired_environments(plan)
  native <- tidy[tidy$environment == REFERENCE, ]
  tidy <- counted_rows(tidy)
  place <- list(match(tidy$environment, names(plan$environments)), match(tidy$metric, metrics$metric),
                natural_rank(tidy$factors))
  group <- interaction(place, drop = TRUE, lex.order = TRUE)
  rows <- lapply(split(tidy, group), function(runs) {
    first <- runs[1, ]
    # Emulated machines are in no set: native's run of the same repetition stands beside theirs in any case.
    reference <- if (first$environment %in% paired) counted_rows(native) else native
    summarise_runs(runs, reference[reference$metric == first$metric & reference$factors == first$factors, ],
                   metrics[metrics$metric == first$metric, ], planned[[first$environment]],
                   wanted_precision(plan))
  })
  bound <- lapply(names(SUMMARY_COLUMNS), function(name) unlist(lapply(rows, `[[`, name), use.names = FALSE))
  as.data.frame(stats::setNames(bound, names(SUMMARY_COLUMNS)))
}

#' How well medians should be known
#'
#' @param plan as from `read_plan`
#' @return a share of the median: the target of the plan's precision, or TARGET where it has none
wanted_precision <- function(plan) {
  if (is.numeric(plan$precision$target)) plan$precision$target else TARGET
}

#' The summary of one environment, metric and set of factors
#'
#' @param runs rows of the tidy table, in the order of measurement
#' @param native rows of native for the same metric and factors; none where it was not measured
#' @param metric its row of `metrics_of`
#' @param planned number of runs that were planned
#' @param target as from `wanted_precision`
#' @return named list with an element for each of SUMMARY_COLUMNS
summarise_runs <- function(runs, native, metric, planned, target) {
  x <- runs$value
  average <- average_of(x, metric$statistic)
  median_interval <- interval_of_median(x)
  ratio <- ratio_to_native(runs, native, metric$statistic)
  needed <- runs_needed(x, target)
  tests <- list(normality_p = normality(x), autocorrelation = lag1_autocorrelation(x), drift_p = drift(x))
  c(
    as.list(runs[1, c("environment", "workload", "metric", "unit")]),
    list(better = metric$better, factors = runs$factors[[1]], n = length(x), statistic = metric$statistic,
         mean = average$mean, sd = if (is.na(average$mean)) NA_real_ else stats::sd(x),
         mean_low = average$low, mean_high = average$high, median = stats::median(x),
         median_low = median_interval[["low"]], median_high = median_interval[["high"]],
         min = min(x), max = max(x), ratio = ratio$ratio, ratio_low = ratio$low, ratio_high = ratio$high,
         ratio_n = ratio$n, ratio_method = ratio_method(ratio$state, metric$statistic),
         p_value = ratio$p_value, equal_p = ratio$equal_p, scatter = ratio$scatter,
         runs_needed = if (is.finite(needed)) needed else NA_real_),
    tests,
    list(flags = paste(flags_of(x, planned, ratio, tests, needed), collapse = ";"),
         logs = paste(runs$log[order(runs$repetition)], collapse = ";"))
  )
}

#' Ratio of an environment to native
#'
#' @inheritParams summarise_runs
#' @param statistic one of STATISTICS
#' @return as from `compare_runs`, over the sets that hold both; for native itself, and where native was not
#'   measured, all NA with the state ""
ratio_to_native <- function(runs, native, statistic) {
  if (nrow(native) == 0 || runs$environment[[1]] == REFERENCE) {
    return(list(ratio = NA_real_, low = NA_real_, high = NA_real_, n = NA_integer_, state = "",
                p_value = NA_real_, equal_p = NA_real_, scatter = NA_real_))
  }
  pairs <- paired_runs(runs, native)
  compare_runs(pairs$measured, pairs$reference, statistic)
}

#' The values of two environments in the sets that hold both
#'
#' @param runs,others rows of the tidy table, of one metric and set of factors
#' @return list of `measured` and `reference`, values of `runs` and of `others`, pair by pair
paired_runs <- function(runs, others) {
  pair <- match(runs$repetition, others$repetition)
  list(measured = runs$value[!is.na(pair)], reference = others$value[pair[!is.na(pair)]])
}

#' How a ratio and its interval were found
#'
#' @param state as of `compare_runs`, or ""
#' @param statistic one of STATISTICS
#' @return text
ratio_method <- function(state, statistic) {
  if (statistic == "percentile") {
    return(if (state %in% c("", "no pair")) "" else "median of ratios paired by set")
  }
  switch(state,
         interval = , unbounded = "Fieller paired by set",
         constant = , `one pair` = "paired by set",
         "")
}

#' The flags of a summary
#'
#' @param x runs in the order of measurement
#' @param planned number of runs that were planned
#' @param ratio as from `ratio_to_native`
#' @param tests list: normality_p, autocorrelation, drift_p
#' @param needed as from `runs_needed`
#' @return codes of `flag_meanings`, in its order
flags_of <- function(x, planned, ratio, tests, needed) {
  n <- length(x)
  limits <- autocorrelation_limits(max(n, 3))
  raised <- c(
    "missing" = n < planned,
    "single-run" = n == 1,
    "few-runs" = is.na(median_rank(n)),
    "constant" = (n > 1 && all_equal(x)) || ratio$state == "constant",
    "no-pair" = ratio$state == "no pair",
    "one-pair" = ratio$state == "one pair",
    "ratio-unbounded" = ratio$state == "unbounded",
    "many-runs" = is.infinite(needed),
    "outlier" = any(outliers(x)),
    "non-normal" = tests$normality_p < SIGNIFICANCE,
    "autocorrelated" = tests$autocorrelation < limits[["low"]] || tests$autocorrelation > limits[["high"]],
    "drift" = tests$drift_p < SIGNIFICANCE
  )
  names(flag_meanings())[raised[names(flag_meanings())] %in% TRUE]
}
