# The A/A test of the rule that decides on sets: equal environments, measured for as long as the rule asks.
# Any interval that does not hold the ratio 1 is wrong, and each such comparison is a false call.

# How a machine may change over the time of the budget, in shares of its level: a steady drift and the
# standard deviation of a random walk's end.  A share of the sets is disturbed: flagged, and one of its runs
# is slower.
MACHINES <- list(
  "steady machine" = list(drift = 0, walk = 0, disturbed = 0),
  "drift of 25 %" = list(drift = 0.25, walk = 0, disturbed = 0),
  "random walk of 25 %" = list(drift = 0, walk = 0.25, disturbed = 0),
  "random walk of 25 %, one set of twenty disturbed" = list(drift = 0, walk = 0.25, disturbed = 0.05)
)

# What a run of a disturbed set may lose.
SLOWED <- 0.5

# Workloads as on a machine of two processors: the relative standard deviation of a run, and what it costs.
SIMULATED_WORKLOADS <- data.frame(
  workload = c("short", "long", "even"), noise = c(0.08, 0.07, 0.03), seconds = c(0.6, 3.4, 1.5)
)

# Rules under which is measured: the default, whose claims ask of one ratio of some workloads for less than
# the target once all are within that, by sets that hold its environments alone; the same without claims, one
# that its budget ends, and one without a budget.  Then those whose end is most closely tied to a single
# width, at targets that take about twice the first stage: as it is (five times as often, since it is the
# worst case), and half of it for comparison; and percentiles.
RULES <- list(
  "claims, target 2 %, budget 25 min" = list(
    precision = list(min = 3, max = 300, target = 0.02, budget = 1500), environments = 4, workloads = 1:3,
    claims = c(0.02, 0.013, 0.008)
  ),
  "target 2 %, budget 25 min" = list(precision = list(min = 3, max = 300, target = 0.02, budget = 1500),
                                     environments = 4, workloads = 1:3),
  "target 2 %, budget 12 min" = list(precision = list(min = 3, max = 300, target = 0.02, budget = 720),
                                     environments = 4, workloads = 1:3),
  "target 2 %, no budget" = list(precision = list(min = 3, max = 300, target = 0.02), environments = 4,
                                 workloads = 1:3),
  "one ratio, target 1.4 %" = list(precision = list(min = 3, max = 300, target = 0.014), environments = 2,
                                   workloads = 3, times = 5),
  "one ratio, target 2 %, first stage of 10" = list(precision = list(min = 3, max = 300, target = 0.02),
                                                    environments = 2, workloads = 3, first_stage = 10),
  "one ratio of percentiles, target 2 %" = list(precision = list(min = 3, max = 300, target = 0.02),
                                                environments = 2, workloads = 3, compare = median_ratio)
)

# Seconds over which a machine changes where there is no budget.
TIME_OF_CHANGE <- 1500

#' The order in which the sets of a round are measured
#'
#' @param new numbers of new sets of the workloads
#' @return for each set the number of its workload: spread over as many blocks as the most new sets, in random
#'   order in each
order_of_sets <- function(new) {
  workload <- rep(seq_along(new), new)
  block <- ceiling(sequence(new) * max(new) / rep(new, new))
  workload[order(block, stats::runif(length(block)))]
}

#' Measures the sets of a round
#'
#' @param machine list: `time` and `walk` so far, and `scenario`, one of MACHINES, with `over`, the seconds
#'   over which it changes
#' @param workloads rows of SIMULATED_WORKLOADS
#' @param new numbers of new sets of the workloads
#' @param environments how many there are
#' @param narrow how many of the new sets of each workload, the last ones, hold the first two alone
#' @return list: `machine` as it is then; `values`, for each workload a matrix with a row for each set and a
#'   column for each environment, NA where a set does not hold it; `disturbed`, for each workload whether its
#'   sets were
measure_sets <- function(machine, workloads, new, environments, narrow = 0 * new) {
  scenario <- machine$scenario
  sets <- order_of_sets(new)
  numbered <- stats::ave(sets, sets, FUN = seq_along)
  size <- ifelse(numbered > (new - narrow)[sets], 2, environments)
  of_set <- rep(seq_along(sets), size)
  # Within a set in random order.
  environment <- order(of_set, stats::runif(length(of_set))) - rep(cumsum(size) - size, size)
  seconds <- workloads$seconds[sets][of_set]
  time <- machine$time + cumsum(seconds)
  walk <- machine$walk + cumsum(scenario$walk * sqrt(seconds / scenario$over) * stats::rnorm(length(time)))
  level <- (1 + scenario$drift * time / scenario$over) * exp(walk)
  disturbed <- stats::runif(length(sets)) < scenario$disturbed
  victim <- rep(ceiling(stats::runif(length(sets)) * size), size)
  slowed <- disturbed[of_set] & environment == victim
  value <- level * (1 + workloads$noise[sets][of_set] * stats::rnorm(length(time))) * (1 - SLOWED * slowed)
  table <- matrix(NA_real_, length(sets), environments)
  table[cbind(of_set, environment)] <- value
  machine[c("time", "walk")] <- list(time[[length(time)]], walk[[length(walk)]])
  list(machine = machine,
       values = lapply(seq_along(new), function(i) table[sets == i, , drop = FALSE]),
       disturbed = lapply(seq_along(new), function(i) disturbed[sets == i]))
}

#' Whether something holds of each interval
#'
#' @param ratios for each workload a list of ratios as from `paired_ratio`
#' @param holds function of one that has limits
#' @return logical vector, FALSE of those without limits
limits <- function(ratios, holds) {
  vapply(unlist(ratios, recursive = FALSE), function(found) found$state == "interval" && holds(found), NA)
}

#' One simulated experiment under the rule
#'
#' @param rule one of RULES
#' @param scenario one of MACHINES
#' @param retries how often a disturbed set may be measured again
#' @return list: `different`, for each ratio whether its interval excludes 1; `above` and `below`, whether all
#'   of its interval at INNER_LEVEL lies on that side of 1; `rounds`; `sets` of each workload that count;
#'   `reached`, for each workload whether all its ratios are within the target
simulate_stopping <- function(rule, scenario, retries = 2) {
  precision <- rule$precision
  workloads <- SIMULATED_WORKLOADS[rule$workloads, ]
  names <- workloads$workload
  compare <- if (is.null(rule$compare)) paired_ratio else rule$compare
  cost <- stats::setNames(workloads$seconds * rule$environments, names)
  # A claim is about the first of the ratios.
  claims <- data.frame(claim = names, half_width = 0, target = Inf, n = 0, seconds = workloads$seconds * 2)
  claims$target[seq_along(rule$claims)] <- rule$claims
  scenario$over <- c(precision$budget, TIME_OF_CHANGE)[[1]]
  machine <- list(time = 0, walk = 0, scenario = scenario)
  values <- lapply(names, function(name) NULL)
  disturbed <- lapply(names, function(name) NULL)
  aside <- set_aside(list())
  rounds <- 0
  new <- rep(precision$min, length(names))
  narrow <- 0 * new
  repeat {
    measured <- measure_sets(machine, workloads, new, rule$environments, narrow)
    machine <- measured$machine
    values <- Map(rbind, values, measured$values)
    disturbed <- Map(c, disturbed, measured$disturbed)
    left <- c(precision$budget, Inf)[[1]] - machine$time
    flagged <- lapply(disturbed, which)
    again <- sets_again(data.frame(workload = rep(names, lengths(flagged)), repetition = unlist(flagged)),
                        aside, retries, cost, left)
    left <- left - sum(cost[again$workload])
    compared <- function(level) {
      Map(function(name, table) {
        out <- c(aside$repetition[aside$workload == name], again$repetition[again$workload == name])
        lapply(seq_len(rule$environments)[-1], function(environment) {
          kept <- setdiff(which(!is.na(table[, environment])), out)
          compare(table[kept, environment], table[kept, 1], level)
        })
      }, names, values)
    }
    ratios <- compared(LEVEL)
    widest <- vapply(ratios, function(of_one) max(vapply(of_one, ratio_half_width, 0)), 0)
    pairs <- function(ratio) vapply(ratios, function(of_one) as.double(of_one[[ratio(of_one)]]$n), 0)
    counted <- pairs(length)
    again_of <- vapply(names, function(name) sum(again$workload == name), 0)
    claims$half_width <- vapply(ratios, function(of_one) ratio_half_width(of_one[[1]]), 0)
    claims$n <- pairs(function(of_one) 1)
    # What counts of narrow sets counts for claims alone.
    more <- next_sets(counted, again_of, widest, cost, precision, left, claims,
                      most = precision$max - (claims$n - counted),
                      most_claimed = rep(precision$max, length(names)),
                      first_stage = c(rule$first_stage, FIRST_STAGE)[[1]])
    new <- again_of + more
    narrow <- more * (attr(more, "claims") && rule$environments > 2)
    if (any(again_of > 0)) {
      told <- Map(function(name, table) {
        list(sets = nrow(table), again = again$repetition[again$workload == name])
      }, names, values)
      aside <- rbind(aside, set_aside(list(list(workloads = told))))
    }
    rounds <- rounds + 1
    if (all(new == 0)) {
      above <- function(level) limits(compared(level), function(found) found$low > 1)
      below <- function(level) limits(compared(level), function(found) found$high < 1)
      return(list(different = above(LEVEL) | below(LEVEL), above = above(INNER_LEVEL),
                  below = below(INNER_LEVEL), rounds = rounds, sets = counted,
                  reached = widest <= precision$target))
    }
  }
}

#' How often the rule's intervals do not hold the truth
#'
#' The ratios of an experiment are not independent, so that the error of the rate is that of a mean over
#' experiments.  An interval at INNER_LEVEL lies on either side of the truth at half of its own rate: at no
#' more than that two environments are called equal whose ratio is a minimum effect away from 1.
#'
#' @param rules,machines named lists, as RULES and MACHINES
#' @param replicates experiments for each combination; of a rule with `times` so many times as many
#' @param seed of the random numbers
#' @return data frame: rule, machine, experiments, comparisons, `false_calls` (their share), `error` (its
#'   standard error), `coverage` with its 95 % interval (`low`, `high`), `above` and `below`, the shares of
#'   intervals at INNER_LEVEL that lie on that side of the truth, and means over the experiments: `sets` of a
#'   workload, `rounds`, and `reached`, the share of workloads within the target
stopping_rates <- function(rules, machines, replicates, seed) {
  cases <- expand.grid(rule = names(rules), machine = names(machines), stringsAsFactors = FALSE)
  # Each case has random numbers of its own, so that they may be simulated at the same time.
  rows <- parallel::mclapply(seq_len(nrow(cases)), function(i) {
    set.seed(seed + i)
    rule <- rules[[cases$rule[[i]]]]
    count <- replicates * max(1, rule$times)
    found <- lapply(seq_len(count), function(replicate) {
      simulate_stopping(rule, machines[[cases$machine[[i]]]])
    })
    share <- vapply(found, function(one) mean(one$different), 0)
    error <- stats::sd(share) / sqrt(count)
    coverage <- 1 - mean(share)
    mean_of <- function(name) mean(vapply(found, function(one) mean(one[[name]]), 0))
    data.frame(cases[i, ], experiments = count,
               comparisons = sum(vapply(found, function(one) length(one$different), 0)),
               false_calls = mean(share), error = error, coverage = coverage,
               low = coverage - stats::qnorm(0.975) * error, high = coverage + stats::qnorm(0.975) * error,
               above = mean_of("above"), below = mean_of("below"),
               sets = mean_of("sets"), rounds = mean_of("rounds"), reached = mean_of("reached"))
  }, mc.cores = parallel::detectCores(), mc.preschedule = FALSE)
  do.call(rbind, rows)
}
