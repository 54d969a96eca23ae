# Sets against one another: how the machine moved from set to set, what it gains that a ratio compares runs of
# one set, and what becomes of the ratios with the sets that were disturbed and without them.

#' The values of a series in its sets
#'
#' @param runs rows of a tidy table of one metric and set of factors
#' @return matrix with a row for each repetition that all of these environments ran, a column for each
#'   environment
values_of_sets <- function(runs) {
  values <- tapply(runs$value, list(runs$repetition, runs$environment), sum)
  values[stats::complete.cases(values), , drop = FALSE]
}

#' How much of the variance lies between the sets
#'
#' The logarithms of the values are taken as the sum of what the environment adds, what the set adds and what
#' is left (two ways, one value in each place).  With E environments and mean squares of the sets, S, and of
#' what is left, R, the components are (S - R) / E between the sets and R within them; the share of the first
#' is (F - 1) / (F + E - 1) with F = S / R, and F over its expectation has an F distribution, which gives the
#' limits.  Logarithms, since a machine that slows down does so by a share.
#'
#' @param values as from `values_of_sets`
#' @param level of confidence
#' @return list: `sets` and `environments`, their numbers; `between` (share of the variance), `low` and
#'   `high`; `sd_between` and `sd_within`, standard deviations as shares of the value; `p_value`, Friedman's
#'   test of equal sets.  All NA from fewer than two sets or environments, or where nothing varies within the
#'   sets
#' @source S. R. Searle, G. Casella, C. E. McCulloch, Variance Components, 1992; M. Friedman, The use of ranks
#'   to avoid the assumption of normality implicit in the analysis of variance, Journal of the American
#'   Statistical Association 32, 1937
variance_between <- function(values, level = LEVEL) {
  sets <- nrow(values)
  environments <- ncol(values)
  logs <- log(values)
  left <- logs - outer(rowMeans(logs), colMeans(logs), "+") + mean(logs)
  freedom <- c(sets - 1, (sets - 1) * (environments - 1))
  within <- sum(left^2) / freedom[[2]]
  if (min(sets, environments) < 2 || within <= 1e-24) {
    return(list(sets = sets, environments = environments, between = NA_real_, low = NA_real_,
                high = NA_real_, sd_between = NA_real_, sd_within = NA_real_, p_value = NA_real_))
  }
  ratio <- environments * stats::var(rowMeans(logs)) / within
  share <- function(ratio) max(0, (ratio - 1) / (ratio + environments - 1))
  tail <- (1 + level) / 2
  list(
    sets = sets, environments = environments, between = share(ratio),
    low = share(ratio / stats::qf(tail, freedom[[1]], freedom[[2]])),
    high = share(ratio * stats::qf(tail, freedom[[2]], freedom[[1]])),
    sd_between = sqrt(max(0, ratio - 1) * within / environments), sd_within = sqrt(within),
    p_value = stats::friedman.test(t(values))$p.value
  )
}

#' Ratio of runs as if nothing paired them, by what is right for their statistic
#'
#' @inheritParams compare_runs
#' @return as from `independent_ratio`; no limits for percentiles, whose ratio is that of pairs
unpaired_ratio <- function(measured, reference, statistic) {
  switch(
    statistic,
    mean = independent_ratio(reference, measured),
    harmonic = independent_ratio(1 / measured, 1 / reference),
    percentile = list(ratio = NA_real_, low = NA_real_, high = NA_real_, state = "percentile")
  )
}

#' The level of each set
#'
#' @param tidy rows of the tidy tables of the series that are told of
#' @param plan as from `read_plan`
#' @return data frame in the order of measurement: workload, metric, factors, repetition, block, counts, order
#'   (mean place of its runs in the order of measurement), n (environments), level (mean over the
#'   environments that every set holds of the value relative to the mean of those runs of the environment that
#'   count), and band: by how much 95 % of the levels would be away from 1 at most, were there no difference
#'   between sets (NA where that can't be told)
levels_of_sets <- function(tidy, plan) {
  runs <- tidy[tidy$environment %in% lasting_environments(plan), ]
  series <- paste(runs$workload, runs$metric, runs$factors, sep = "\r")
  found <- lapply(split(runs, factor(series, unique(series))), function(own) {
    counted <- counted_rows(own)
    means <- tapply(counted$value, counted$environment, mean)
    own$level <- own$value / as.vector(means[own$environment])
    own <- own[!is.na(own$level), ]
    own <- own[order(own$repetition), ]
    of_set <- function(x, f) as.vector(tapply(x, own$repetition, f))
    within <- variance_between(values_of_sets(counted))$sd_within
    n <- of_set(own$level, length)
    data.frame(own[!duplicated(own$repetition),
                   c("workload", "metric", "factors", "repetition", "block", "counts")],
               order = of_set(own$order, mean), n = n, level = of_set(own$level, mean),
               band = stats::qnorm((1 + LEVEL) / 2) * within / sqrt(n))
  })
  found <- do.call(rbind, unname(found))
  if (is.null(found)) {
    return(empty_table(c(workload = "character", metric = "character", factors = "character",
                         repetition = "integer", block = "integer", counts = "character",
                         order = "numeric", n = "integer", level = "numeric", band = "numeric")))
  }
  found <- found[order(found$order), ]
  rownames(found) <- NULL
  found
}

#' What the sets say of every ratio to native that is told of
#'
#' @param tidy rows of the tidy tables of all workloads
#' @param records list of the records beside their logs
#' @param plan as from `read_plan`
#' @return data frame with the columns of SET_COLUMNS, a row for each ratio of paired environments, in the
#'   order of the plan's workloads, metrics and environments
sets_table <- function(tidy, records, plan) {
  disturbed <- set_key(disturbed_sets(plan, records))
  runs <- tidy[tidy$environment %in% paired_environments(plan), ]
  runs <- runs[is_headline(runs, plan), ]
  rows <- lapply(told_series(runs, plan), function(series) {
    own <- runs[runs$workload == series$workload & runs$metric == series$metric &
                  runs$factors == series$factors, ]
    lasting <- own$environment %in% lasting_environments(plan)
    spread <- variance_between(values_of_sets(counted_rows(own[lasting, ])))
    others <- setdiff(intersect(names(plan$environments), own$environment), REFERENCE)
    lapply(if (REFERENCE %in% own$environment) others, function(environment) {
      ratio <- function(kept, compared = compare_runs) {
        pairs <- paired_runs(kept[kept$environment == environment, ], kept[kept$environment == REFERENCE, ])
        compared(pairs$measured, pairs$reference, series$statistic)
      }
      counted <- ratio(counted_rows(own))
      apart <- ratio(counted_rows(own), unpaired_ratio)
      every <- ratio(own)
      quiet <- ratio(own[!set_key(own) %in% disturbed, ])
      data.frame(
        environment = environment, workload = series$workload, metric = series$metric, unit = own$unit[[1]],
        factors = series$factors, sets = spread$sets, environments = spread$environments,
        between = spread$between, between_low = spread$low, between_high = spread$high,
        sd_between = spread$sd_between, sd_within = spread$sd_within, friedman_p = spread$p_value,
        ratio = counted$ratio, ratio_low = counted$low, ratio_high = counted$high, ratio_n = counted$n,
        unpaired_low = apart$low, unpaired_high = apart$high,
        all_ratio = every$ratio, all_low = every$low, all_high = every$high, all_n = every$n,
        quiet_ratio = quiet$ratio, quiet_low = quiet$low, quiet_high = quiet$high, quiet_n = quiet$n
      )
    })
  })
  do.call(rbind, c(list(empty_table(SET_COLUMNS)), unlist(rows, recursive = FALSE)))
}

#' The series of runs
#'
#' @param runs rows of tidy tables
#' @param plan as from `read_plan`
#' @return list in the order of the plan's workloads and metrics, and of the factors: each a list of workload,
#'   metric, factors, and `better` and `statistic` of the metric
told_series <- function(runs, plan) {
  series <- unique(runs[c("workload", "metric", "factors")])
  metrics <- do.call(rbind, lapply(intersect(names(plan$workloads), series$workload), function(workload) {
    cbind(workload = workload, metrics_of(plan, workload))
  }))
  place <- match(paste(series$workload, series$metric), paste(metrics$workload, metrics$metric))
  series <- cbind(series, metrics[place, c("better", "statistic")])
  series <- series[order(place, natural_rank(series$factors)), ]
  lapply(seq_len(nrow(series)), function(i) as.list(series[i, ]))
}
