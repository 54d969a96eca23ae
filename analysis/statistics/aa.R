# The A/A test: an environment measured twice under two names.  Whatever calls them different is wrong, so the
# share of such calls is the share of false alarms, which should be the nominal 5 %.

NOMINAL <- 0.05

# How a machine may change while it is measured, in shares of the mean over a whole experiment: a steady
# drift, the standard deviation of the random walk's end, and of independent noise.
SCENARIOS <- list(
  "steady machine" = list(drift = 0, walk = 0, noise = 0.01),
  "drift of 3 %" = list(drift = 0.03, walk = 0, noise = 0.01),
  "random walk of 3 %" = list(drift = 0, walk = 0.03, noise = 0.01)
)

#' Whether the two are called different, as the paper calls it: means paired by set
#'
#' @param first,second values of the two names, in the order of the sets
#' @return list of different (the interval of the ratio excludes 1) and by (the ratio's distance from 1)
call_paired <- function(first, second) {
  found <- paired_ratio(second, first)
  different <- !is.na(found$low) && !is.na(found$high) && (found$low > 1 || found$high < 1)
  list(different = different, by = abs(found$ratio - 1))
}

#' Whether the two are called different by the test that is customary for measurements in no sets
#'
#' @inheritParams call_paired
#' @return as `call_paired`
#' @source B. L. Welch: The generalization of "Student's" problem. Biometrika 34 (1947)
call_unpaired <- function(first, second) {
  if (stats::sd(first) == 0 && stats::sd(second) == 0) {
    return(list(different = mean(first) != mean(second), by = abs(mean(second) / mean(first) - 1)))
  }
  test <- stats::t.test(first, second)
  list(different = test$p.value < NOMINAL, by = abs(mean(second) / mean(first) - 1))
}

#' The calls of many comparisons as one row
#'
#' @param calls list of results of `call_paired` or `call_unpaired`
#' @return data frame with one row: comparisons, different (how many), share with its exact 95 % interval
#'   (low, high), and called: the share that is also beyond the minimum effect
#' @source C. J. Clopper, E. S. Pearson: The use of confidence or fiducial limits. Biometrika 26 (1934)
share_of_calls <- function(calls) {
  different <- vapply(calls, `[[`, NA, "different")
  by <- vapply(calls, `[[`, 0, "by")
  interval <- stats::binom.test(sum(different), length(different))$conf.int
  data.frame(
    comparisons = length(different), different = sum(different), share = mean(different),
    low = interval[[1]], high = interval[[2]], called = mean(different & by > MINIMUM_EFFECT)
  )
}

#' The values of one experiment
#'
#' @param project folder of a project whose tidy tables are made
#' @return data frame with the columns experiment, order (of measurement: blocks or sequential), workload,
#'   metric, factors, environment, repetition, value; without sets that are set aside
#' @section Errors: a table is missing or broken
read_alike <- function(project) {
  plan <- read_plan(file.path(project, "results", "plan.json"))
  tables <- lapply(names(plan$workloads), function(workload) {
    read_tidy(result_path(plan, "tidy", workload = workload), plan)
  })
  tidy <- do.call(rbind, tables)
  columns <- c("workload", "metric", "factors", "environment", "repetition", "value")
  data.frame(experiment = project, order = plan$order, tidy[counts_of(plan, tidy) == "yes", columns])
}

#' How often the two names were called different on a real machine
#'
#' @param values as from `read_alike`, of all experiments
#' @return data frame with a row for each order and way of comparing, as from `share_of_calls`
compare_alike <- function(values) {
  ways <- list("paired by set" = call_paired, "unpaired" = call_unpaired)
  rows <- lapply(sort(unique(values$order)), function(order) {
    of_order <- values[values$order == order, ]
    series <- split(of_order, of_order[c("experiment", "workload", "metric", "factors")], drop = TRUE)
    lapply(names(ways), function(way) {
      calls <- lapply(series, function(one) {
        pairs <- paired_runs(one[one$environment != REFERENCE, ], one[one$environment == REFERENCE, ])
        ways[[way]](pairs$reference, pairs$measured)
      })
      data.frame(order = order, comparison = way, share_of_calls(calls))
    })
  })
  do.call(rbind, unlist(rows, recursive = FALSE))
}

#' The machine's state at every measurement of an experiment
#'
#' @param count number of measurements
#' @param scenario list of drift, walk and noise, as in SCENARIOS
#' @return numeric vector of values whose true mean is 1 for both names
machine_values <- function(count, scenario) {
  steps <- stats::rnorm(count, sd = scenario$walk / sqrt(count))
  1 + scenario$drift * seq_len(count) / count + cumsum(steps) + stats::rnorm(count, sd = scenario$noise)
}

#' One simulated experiment
#'
#' @param order blocks (both names in random order in every block) or sequential (all of one, then of the
#'   other)
#' @param repetitions runs of each name
#' @param scenario as for `machine_values`
#' @return list of first and second, the values of the two names in the order of their runs
simulate_experiment <- function(order, repetitions, scenario) {
  values <- machine_values(2 * repetitions, scenario)
  is_first <- if (order == "blocks") {
    as.vector(vapply(seq_len(repetitions), function(block) sample(c(TRUE, FALSE)), c(NA, NA)))
  } else {
    rep(c(TRUE, FALSE), each = repetitions)
  }
  list(first = values[is_first], second = values[!is_first])
}

#' How often the two names are called different on machines that change in known ways
#'
#' @param scenarios named list of scenarios
#' @param repetitions numbers of runs of each name
#' @param replicates experiments for each combination
#' @param seed of the random numbers
#' @return data frame: machine, repetitions, order, comparison, and the columns of `share_of_calls`
simulate_alike <- function(scenarios, repetitions, replicates, seed) {
  set.seed(seed)
  ways <- list(
    list(order = "blocks", comparison = "paired by set", call = call_paired),
    list(order = "sequential", comparison = "unpaired", call = call_unpaired)
  )
  cases <- expand.grid(machine = names(scenarios), repetitions = repetitions, way = seq_along(ways),
                       stringsAsFactors = FALSE)
  rows <- lapply(seq_len(nrow(cases)), function(i) {
    case <- cases[i, ]
    way <- ways[[case$way]]
    calls <- lapply(seq_len(replicates), function(replicate) {
      do.call(way$call, simulate_experiment(way$order, case$repetitions, scenarios[[case$machine]]))
    })
    data.frame(machine = case$machine, repetitions = case$repetitions, order = way$order,
               comparison = way$comparison, share_of_calls(calls))
  })
  do.call(rbind, rows)
}
