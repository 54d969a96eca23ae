# Judges the budgets of a gate: whether an environment costs at most its budget, or more.

#' Judge all budgets of a gate
#'
#' The data are judged at each planned interim analysis ("look"), while they grow.  Over all of
#' them, a budget that is exceeded passes with a probability of at most ALPHA.  The probability that
#' any budget fails although all are kept is at most ALPHA, too.
#'
#' @param request list, written by strata/gate/command.py: looks (the number of analyses, the final
#'   one included), gate (the number of budgets in the gate), sessions (folders of results, the last
#'   one measured now), budgets (a list for each: environment, workload, metric or NULL, reference,
#'   at_most, baseline (a list of folders), and blocks (how many of the last session count))
#' @return list with an entry of judge_budget for each budget, in their order
#' @section Errors: a baseline has another scale than the sessions
judge_budgets <- function(request) {
  folders <- unique(unlist(c(request$sessions, lapply(request$budgets, `[[`, "baseline"))))
  sessions <- lapply(stats::setNames(nm = folders), read_session)
  sessions_here <- sessions[unlist(request$sessions)]
  last_session <- sessions_here[[length(sessions_here)]]
  lapply(request$budgets, function(budget) {
    if (budget$workload %in% last_session$invalid) {
      why <- "its sizes break a rule, or are those of tests: see docs/sizes.md"
      return(make_not_comparable_verdict(why))
    }
    by_session <- length(budget$baseline) > 0
    rows <- if (by_session) {
      compare_with_baseline(sessions[unlist(budget$baseline)], sessions_here, budget)
    } else {
      compare_side_by_side(last_session, budget)
    }
    if (is.null(rows)) {
      why <- paste0("no run of ", budget$workload, " in ", budget$environment,
                    " is paired with one in ", budget$reference)
      return(make_not_comparable_verdict(why))
    }
    # The analyses share the error rate.  Only failures share it among the gate's budgets, too.
    within_alpha <- ALPHA / request$looks
    beyond_alpha <- ALPHA / request$looks / request$gate
    judge_budget(rows, budget$at_most, within_alpha, beyond_alpha, by_session)
  })
}

# Returns the verdict on a budget that cannot be judged, in the form of judge_budget.
# why: the reason, which the gate's report shows unchanged.
make_not_comparable_verdict <- function(why) list(verdict = "not comparable", why = why)

# Selects the rows of a budget's workload and metric; if the budget names no metric, the headline
# rows of its workload.
# rows: data frame with workload, metric and headline.
# budget: list of judge_budgets.
select_budget_rows <- function(rows, budget) {
  rows <- rows[rows$workload == budget$workload, ]
  if (is.null(budget$metric)) rows[rows$headline, ] else rows[rows$metric == budget$metric, ]
}

#' Compare the two environments of a budget within the blocks of one session
#'
#' @param session list of read_session
#' @param budget list: environment, reference, workload, metric (NULL: all headline metrics), blocks
#'   (how many count)
#' @return data frame, one row for each series: COMPARISON_KEYS, then the columns of
#'   estimate_mean_ratio; NULL if there are no pairs
compare_side_by_side <- function(session, budget) {
  rows <- select_budget_rows(session$tidy, budget)
  # Repetitions number the blocks.  Later blocks count at the next analysis, which has its own share
  # of the error rate.
  rows <- rows[rows$repetition <= budget$blocks, ]
  pairs <- pair_environments(rows[rows$environment == budget$environment, ],
                             rows[rows$environment == budget$reference, ])
  if (is.null(pairs)) return(NULL)
  map_groups(pairs, COMPARISON_KEYS, function(series) estimate_mean_ratio(series$ratio))
}

#' Compare an environment's ratio to native with its ratio in a baseline, session by session
#'
#' @param baseline,sessions_here lists of sessions, each a list of read_session
#' @param budget see compare_side_by_side; `blocks` is not used
#' @return data frame, one row for each series: series, ratio, low, high, why, n, se, df; NULL if no
#'   series has a ratio to native on both sides
#' @section Errors: the scales of the sessions differ
compare_with_baseline <- function(baseline, sessions_here, budget) {
  require_one_scale(c(baseline, sessions_here), c(rep("the baseline", length(baseline)),
                                            rep("this run", length(sessions_here))))
  # The names are for messages; source and sha256 describe archives, which a gate does not have.
  make_side <- function(name, sessions) {
    combine_sessions(sessions, list(name = name, source = "", sha256 = ""))
  }
  rows <- compare_two_sides(make_side("baseline", baseline), make_side("now", sessions_here))
  rows <- select_budget_rows(rows, budget)
  rows <- rows[rows$environment == budget$environment & rows$basis == BY_NATIVE, ]
  if (nrow(rows) > 0) cbind(rows["series"], get_decisive_estimates(rows), rows[c("n", "se", "df")])
}

#' Judge whether all series of a budget stay within it
#'
#' The budget is kept if the intervals of all series lie within it (intersection-union test), and
#' exceeded if the interval of any series lies beyond it.
#'
#' @param rows data frame with at least one row: series, ratio (of performance), low, high, why, n,
#'   se, df
#' @param at_most the budget: the largest allowed loss of performance, as a share (above 0, below 1)
#' @param within_alpha,beyond_alpha error rates of the verdicts "within" and "beyond"
#' @param by_session whether the samples are sessions, not blocks
#' @return list, whose keys strata/gate/reports.py reads: verdict ("within", "beyond", "undecided",
#'   "not comparable"), why (the reason of the last), parts (number of series), and of the series
#'   that decides: series, n, unit ("blocks" or "sessions"), ratio, low, high (95 %), low_all,
#'   high_all (the ends that decide), more (how many further blocks or sessions would decide; NA if
#'   the budget is decided or no number is known); only verdict and why if it is not comparable
judge_budget <- function(rows, at_most, within_alpha, beyond_alpha, by_session = FALSE) {
  # Sessions are independent, and fewer of them are enough than of blocks.
  min_samples <- if (by_session) INTERVAL_BLOCKS else VERDICT_BLOCKS
  # A one-sided test at alpha has an interval of the level 1 - 2 alpha.  One series is enough for
  # "beyond", so that the series share its error rate; "within" needs all of them.
  inner <- compute_intervals(rows, 1 - 2 * within_alpha)
  outer <- compute_intervals(rows, 1 - 2 * beyond_alpha / nrow(rows))
  # Any gain is within the budget.
  judgement <- judge_parts(inner, outer, rows$n, 1 - at_most, Inf, min_samples)
  verdict <- if (all(judgement$within)) "within" else "undecided"
  if (any(judgement$outside)) verdict <- "beyond"
  # A series that has enough samples and no interval would not get one by further samples.
  why <- rows$why[rows$why != "" & rows$n >= min_samples]
  if (verdict == "undecided" && length(why) > 0) return(make_not_comparable_verdict(why[[1]]))
  # More performance than native's is not a cost: it counts as none.
  total_samples <- mapply(estimate_blocks_needed, pmin(rows$ratio, 1), rows$se * sqrt(rows$n),
                          at_most, within_alpha)
  more <- NA_real_
  if (verdict == "undecided" && !anyNA(total_samples)) more <- max(total_samples - rows$n, 1)
  decisive <- judgement$decisive
  row <- rows[decisive, ]
  list(verdict = verdict, why = row$why, parts = nrow(rows), series = row$series, n = row$n,
       unit = if (by_session) "sessions" else "blocks", ratio = row$ratio, low = row$low,
       high = row$high, low_all = inner$low[[decisive]], high_all = outer$high[[decisive]],
       more = more)
}
