# How long a run is to be: what a longer one gains in precision, and what it costs in sets.

# Lengths that are looked at, in seconds, from the shortest up.
SHORTEST <- 0.05
# The time for which widths are told, in seconds.
TOLD_TIME <- 600

LENGTH_COLUMNS <- c(
  workload = "character", length = "numeric", sets = "numeric", sd = "numeric", sd_low = "numeric",
  sd_high = "numeric", cell_seconds = "numeric", half_width = "numeric", between = "numeric",
  within = "numeric", best_length = "numeric"
)

#' The rate of the beginning of a run
#'
#' @param passes seconds of equal repetitions
#' @param length seconds: the repetitions are those that begin before
#' @return repetitions a second
rate_of_first <- function(passes, length) {
  count <- sum(cumsum(passes) - passes < length - 1e-12)
  count / sum(passes[seq_len(count)])
}

#' Variance of the ratios to native, were runs of this length
#'
#' @param passes list by set of lists by environment of seconds, the first being native's
#' @param length seconds
#' @return mean over the other environments of the variance over the sets of the ratio's logarithm
variance_at <- function(passes, length) {
  rates <- vapply(passes, function(set) {
    vapply(set, rate_of_first, 0, length = length)
  }, double(length(passes[[1]])))
  mean(apply(log(rates[-1, , drop = FALSE]) - rep(log(rates[1, ]), each = nrow(rates) - 1), 1, stats::var))
}

#' Components of the variance of a ratio, and the length of runs that follows
#'
#' The variance of runs of length L is taken for b + w / L: b between runs, whatever their length, and w
#' within them.  A cell that takes c seconds beside its run then decides most in a given time with
#' L = sqrt(c w / b).
#'
#' @param lengths seconds
#' @param variances at these lengths
#' @param overhead c, seconds
#' @return list: `between`, `within` (not below zero) and `best`, seconds; 0 or infinite where one of the
#'   components is not seen
#' @source T. Kalibera, R. Jones, Rigorous benchmarking in reasonable time, ISMM 2013, section 7
length_components <- function(lengths, variances, overhead) {
  fitted <- stats::lm.fit(cbind(1, 1 / lengths), variances)$coefficients
  if (fitted[[2]] <= 0) {
    fitted <- c(mean(variances), 0)
  } else if (fitted[[1]] <= 0) {
    fitted <- c(0, sum(variances / lengths) / sum(1 / lengths^2))
  }
  list(between = fitted[[1]], within = fitted[[2]], best = sqrt(overhead * fitted[[2]] / fitted[[1]]))
}

#' What runs of other lengths would have decided
#'
#' A run is taken for shorter by leaving out its end.  Only undisturbed sets count of which every run is
#' there.
#'
#' @param plan as from `read_plan`
#' @param workload name
#' @return data frame with LENGTH_COLUMNS, a row for each length up to that of the shortest run: `sd`,
#'   standard deviation of the logarithm of a ratio to native, with its 95 % interval by the chi-squared
#'   distribution (as of one environment, since all share native); `cell_seconds`, what a cell of that length
#'   takes; `half_width` of a ratio's interval after TOLD_TIME of such sets; and the components and the best
#'   length of `length_components`.  No row where runs repeat nothing, or there are less than three sets.
lengths_of_workload <- function(plan, workload) {
  paired <- lasting_environments(plan)
  cells <- read_cells(plan)
  cells <- cells[cells$workload == workload & cells$environment %in% paired, ]
  cells <- cells[file.exists(cell_path(plan, "log", cells)) & file.exists(cell_path(plan, "record", cells)), ]
  environments <- intersect(c(REFERENCE, setdiff(paired, REFERENCE)), cells$environment)
  records <- lapply(cell_path(plan, "record", cells), read_json)
  disturbed <- vapply(records, function(record) length(field(record, "quiet", "flags")) > 0, NA)
  runs <- table(cells$repetition)
  whole <- setdiff(names(which(runs == length(unique(cells$environment)))), cells$repetition[disturbed])
  passes <- lapply(whole, function(set) {
    lapply(environments, function(name) {
      own <- cells$environment == name & cells$repetition == as.integer(set)
      read_passes(cell_path(plan, "log", cells[own, ]))
    })
  })
  repeated <- all(vapply(unlist(passes, recursive = FALSE), length, 0L) > 1)
  if (!REFERENCE %in% paired || length(paired) < 2 || length(whole) < 3 || !repeated) {
    return(NULL)
  }
  total <- vapply(unlist(passes, recursive = FALSE), sum, 0)
  lengths <- SHORTEST * 2^(0:ceiling(log2(min(total) / SHORTEST)))
  lengths <- unique(pmin(lengths, min(total)))
  overhead <- seconds_of_sets(plan, cells) / length(paired) - mean(total)
  variance <- vapply(lengths, variance_at, 0, passes = passes)
  free <- length(whole) - 1
  components <- length_components(lengths, variance, overhead)
  seconds <- overhead + lengths
  sets <- TOLD_TIME / (seconds * length(paired))
  data.frame(
    workload = workload, length = lengths, sets = length(whole), sd = sqrt(variance),
    sd_low = sqrt(variance * free / stats::qchisq(0.975, free)),
    sd_high = sqrt(variance * free / stats::qchisq(0.025, free)), cell_seconds = seconds,
    half_width = stats::qt(0.975, pmax(sets - 1, 1)) * sqrt(variance / sets),
    between = components$between, within = components$within, best_length = components$best
  )
}
