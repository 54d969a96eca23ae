# Which sets are measured next.  Widths of intervals, costs, the budget and disturbances of the machine
# decide, and never a difference between environments.

# Sets that every workload gets before widths decide anything.  A run that may end after fewer ends most often
# where its width is too small by chance, and its intervals cover too little (docs/statistics.md).
FIRST_STAGE <- 20

# Whoever is not within the target gets sets until that share of it is foreseen.  A round is then worth its
# while, and there are few at which it might end by chance.
AIM <- 0.9

# How many times the sets of a workload there are after a round at most: what few sets tell of a width is too
# rough to spend half of the time on it.
GROWTH <- 2

# The half-width that stands for one that can't be told yet: as wide as the ratio itself.
UNKNOWN_WIDTH <- 1

#' Relative half-width of an interval
#'
#' @param value what the interval is of
#' @param low,high its limits
#' @param constant whether the runs do not vary
#' @return a share of the value; infinite where there is no interval; zero where the runs do not vary
relative_half_width <- function(value, low, high, constant) {
  if (constant) {
    0
  } else if (is.na(low) || is.na(high)) {
    Inf
  } else {
    (high - low) / 2 / abs(value)
  }
}

#' How well the headline ratios of a workload are known
#'
#' They are the ratios to native of each other environment that every set holds, of a sweep at the points that
#' tables tell of.  Where there is none, as without native, the means take their place.
#'
#' @param tidy rows of the workload
#' @param plan as from `read_plan`
#' @param counts "yes" or "no" for each row, as from `counts_of`: runs that do not count tell of no width
#' @return data frame: environment, workload, metric, factors, half_width as from `relative_half_width`, and
#'   n, the pairs or runs that it is of
headline_widths <- function(tidy, plan, counts = "yes") {
  paired <- lasting_environments(plan)
  by_ratio <- REFERENCE %in% paired && length(paired) > 1
  series <- unique(tidy[tidy$environment %in% paired, c("environment", "workload", "metric", "factors")])
  series <- series[is_headline(series, plan), ]
  series <- series[!(by_ratio & series$environment == REFERENCE), ]
  runs_of <- function(one, environment) {
    tidy[counts == "yes" & tidy$environment == environment & tidy$metric == one$metric &
           tidy$factors == one$factors, ]
  }
  told <- vapply(seq_len(nrow(series)), function(i) {
    one <- series[i, ]
    metrics <- metrics_of(plan, one$workload)
    statistic <- metrics$statistic[metrics$metric == one$metric]
    runs <- runs_of(one, one$environment)
    if (by_ratio) {
      pairs <- paired_runs(runs, runs_of(one, REFERENCE))
      c(ratio_half_width(compare_runs(pairs$measured, pairs$reference, statistic)), length(pairs$measured))
    } else {
      c(level_half_width(runs$value, statistic), nrow(runs))
    }
  }, c(0, 0))
  series$half_width <- told[1, ]
  series$n <- told[2, ]
  rownames(series) <- NULL
  series
}

#' The claim about a workload that is closest to being decided, of those that take narrower intervals
#'
#' @param widths as from `headline_widths`, of one workload
#' @param claimed as from `claimed_widths`; NULL where claims ask for nothing
#' @return list: claim, half_width, target and n (pairs) of that ratio of it which is farthest from its
#'   target, and environments, all that its ratios are of, with native; the claim "", zero, infinity, zero and
#'   none where there is no such claim
claim_ahead <- function(widths, claimed) {
  none <- list(claim = "", half_width = 0, target = Inf, n = 0, environments = character())
  if (is.null(claimed)) {
    return(none)
  }
  key <- function(table) paste(table$environment, table$workload, table$metric, table$factors, sep = "\r")
  found <- claimed[key(claimed) %in% key(widths), ]
  found$target <- found$half_width
  found[c("half_width", "n")] <- widths[match(key(found), key(widths)), c("half_width", "n")]
  found <- found[order(-found$half_width / found$target), ]
  ahead <- found[!duplicated(found$claim) & found$half_width > found$target, ]
  if (nrow(ahead) == 0) {
    return(none)
  }
  ahead <- ahead[nrow(ahead), ]
  of <- sort(unique(c(REFERENCE, found$environment[found$claim == ahead$claim])), method = "radix")
  c(as.list(ahead[c("claim", "half_width", "target", "n")]), list(environments = of))
}

#' Relative half-width of the interval of a ratio
#'
#' @param found as from `compare_runs`
#' @return as from `relative_half_width`
ratio_half_width <- function(found) {
  relative_half_width(found$ratio, found$low, found$high, found$state == "constant")
}

#' Relative half-width of the interval of a mean, or of the median where there is no mean
#'
#' @param x runs
#' @param statistic one of STATISTICS
#' @return as from `relative_half_width`
level_half_width <- function(x, statistic) {
  constant <- length(x) > 1 && all_equal(x)
  if (statistic == "percentile") {
    limits <- interval_of_median(x)
    return(relative_half_width(stats::median(x), limits[["low"]], limits[["high"]], constant))
  }
  average <- average_of(x, statistic)
  relative_half_width(average$mean, average$low, average$high, constant)
}

#' What cells and sets cost
#'
#' A cell costs the time from its start to its end, in which its system is brought up, and the time that lies
#' between it and the next one: the median of those, so that an interruption of the run is none.  Cells that
#' were measured in turns are one in this: what lies behind them, in which their logs are put in place, is
#' shared.
#'
#' @param records list of records
#' @param plan as from `read_plan`
#' @return list: `spent`, the seconds of all cells; `cell`, the seconds of one more cell, a matrix with a row
#'   for each environment whose runs make sets and a column for each workload of the plan, NA where none was
#'   measured; and `set`, those of one more set of each workload, named by it, of the environments that every
#'   set holds
costs_of <- function(records, plan) {
  actual <- field_numbers(records, "position", "actual")
  # Nodes measure at the same time, and each counts for itself.
  node <- if (is_spread(plan)) node_labels(nodes_of(records)) else rep("", length(records))
  turn <- order(node, actual)
  records <- records[turn]
  together <- measured_together(records)
  gap <- gaps_between(records, together, node[turn], actual[turn])
  seconds <- field_numbers(records, "seconds") + gap
  environment <- factor(vapply(records, `[[`, "", "environment"), paired_environments(plan))
  workload <- factor(vapply(records, `[[`, "", "workload"), names(plan$workloads))
  cell <- tapply(seconds, list(environment, workload), mean)
  list(spent = sum(seconds), cell = cell,
       set = colSums(cell[lasting_environments(plan), , drop = FALSE], na.rm = TRUE))
}

#' What is still to be spent on environments that have a largest number of sets of their own
#'
#' @param cell as from `costs_of`
#' @param cells the plan's cells so far, as from `read_cells`
#' @param plan as from `read_plan`
#' @return seconds until each has it
still_to_spend <- function(cell, cells, plan) {
  most <- largest_numbers(plan)
  seconds <- vapply(names(most), function(name) {
    planned <- factor(cells$workload[cells$environment == name], colnames(cell))
    sum(pmax(most[[name]] - table(planned), 0) * cell[name, ], na.rm = TRUE)
  }, 0)
  sum(seconds)
}

#' Which cells were measured together
#'
#' @param records list of records in the order of their measurement
#' @return numbers: the same for cells that took turns, another one for each other cell
measured_together <- function(records) {
  of_set <- vapply(records, function(record) {
    if (is.null(record$interleaved)) "" else paste(record$workload, record$repetition)
  }, "")
  cumsum(of_set == "" | of_set != c("", utils::head(of_set, -1)))
}

#' The time that lies behind each cell until the next one
#'
#' @param records list of records in the order of their measurement
#' @param together as from `measured_together`
#' @param node label of each record's node
#' @param actual each record's place in the order of measurement on its node
#' @return seconds for each record: the median of those behind cells that were measured alone or together as
#'   it was, shared by those of the same; 0 where none is known
gaps_between <- function(records, together, node, actual) {
  last <- cumsum(rle(together)$lengths)
  started <- as.double(moments(records, "started"))
  ended <- as.double(moments(records, "ended"))
  begin <- tapply(started, together, min)
  end <- tapply(ended, together, max)
  following <- which(utils::head(node[last], -1) == node[utils::head(last, -1) + 1] &
                       actual[utils::head(last, -1) + 1] - actual[utils::head(last, -1)] == 1)
  size <- rle(together)$lengths
  behind <- rep(NA_real_, length(last))
  behind[following] <- begin[following + 1] - end[following]
  alone <- size == 1
  typical <- function(which) {
    known <- behind[!is.na(behind)]
    alike <- behind[which & !is.na(behind)]
    if (length(known) == 0) 0 else stats::median(if (length(alike) > 0) alike else known)
  }
  rep(ifelse(alone, typical(alone), typical(!alone)) / size, size)
}

#' The disturbed sets that are measured again
#'
#' Whether a set was disturbed, the flags of its runs tell, which look at the machine and not at what was
#' measured.
#'
#' @param disturbed data frame of disturbed sets: workload, repetition
#' @param aside as from `set_aside`: those that were measured again already
#' @param retries how often a set may be measured again
#' @param costs seconds of a set of each workload, named by it
#' @param left seconds that may be spent
#' @return rows of `disturbed`, in the order of their repetitions
sets_again <- function(disturbed, aside, retries, costs, left) {
  key <- function(sets, repetition = sets$repetition) paste(sets$workload, repetition)
  found <- disturbed[!key(disturbed) %in% key(aside), ]
  # How many sets one has taken the place of: those of a set come earlier than its own.
  times <- stats::setNames(numeric(nrow(aside)), key(aside, aside$by))
  for (i in seq_along(times)) {
    times[[i]] <- 1 + sum(times[names(times) == key(aside)[[i]]])
  }
  before <- times[key(found)]
  found <- found[is.na(before) | before < retries, ]
  found <- found[retries > 0 & !is.na(found$repetition), ]
  found <- found[order(found$repetition, match(found$workload, names(costs))), ]
  affordable <- logical(nrow(found))
  for (i in seq_along(affordable)) {
    affordable[[i]] <- costs[[found$workload[[i]]]] <= left
    left <- left - affordable[[i]] * costs[[found$workload[[i]]]]
  }
  found[affordable, ]
}

#' Relative half-width that is foreseen after more sets, at the variance seen so far
#'
#' It shrinks with the square root of the number of sets, and with Student's factor.
#'
#' @param half_width relative half-widths from `counted` sets
#' @param counted,after numbers of sets
#' @return relative half-widths after so many sets
foreseen_half_width <- function(half_width, counted, after) {
  factor <- function(sets) stats::qt((1 + LEVEL) / 2, pmax(sets - 1, 1)) / sqrt(pmax(sets, 1))
  ifelse(is.finite(half_width), half_width, UNKNOWN_WIDTH) * factor(after) / factor(counted)
}

#' What a round may spend where widths decide
#'
#' @param left seconds of the budget that are left; infinite without one
#' @param budget seconds, NULL without one
#' @param seconds that a set of each workload that asks for some costs
#' @return half of what is left, or all of it where little is: less than a tenth of the budget, or half of it
#'   less than a set of each takes
round_allowance <- function(left, budget, seconds) {
  if (is.null(budget) || left < budget / 10 || left / 2 < sum(seconds)) left else left / 2
}

#' Gives sets in the order in which they are asked for, as far as the time allows
#'
#' @param asking number of a workload for each set that is asked for
#' @param seconds cost of a set of each workload
#' @param left seconds that may be spent
#' @return how many sets each workload gets
given_sets <- function(asking, seconds, left) {
  given <- numeric(length(seconds))
  while (length(asking) > 0) {
    fits <- cumsum(seconds[asking]) <= left
    now <- asking[seq_len(match(FALSE, fits, length(fits) + 1) - 1)]
    given <- given + tabulate(now, length(given))
    left <- left - sum(seconds[now])
    # Once a workload's sets are too dear, another's may still be paid.
    rest <- asking[-seq_len(length(now) + 1)]
    asking <- rest[!rest %in% asking[length(now) + 1]]
  }
  given
}

#' How many further sets each workload gets in the next round
#'
#' First all get as many as the first stage has, where widths play no part.  Then sets are given one by one
#' where the distance to the target is largest for its cost: the share by which the half-width that is
#' foreseen exceeds it.
#'
#' @param counted sets of each workload that the widths are from
#' @param again sets of each that are measured again
#' @param half_width widest relative half-width of each
#' @param seconds cost of a set of each
#' @param precision list: `target`, `budget`, NULL where there is none; `max`, sets of a workload at most
#' @param left seconds that may be spent; infinite without a budget
#' @param first_stage sets of the first stage
#' @param most sets of each that may count at most
#' @return numbers
#' @source C. Stein, A two-sample test for a linear hypothesis whose power is independent of the variance,
#'   Annals of Mathematical Statistics 16, 1945, for a first stage; P. Hall, Asymptotic theory of triple
#'   sampling for sequential estimation of a mean, Annals of Statistics 9, 1981, for few large rounds after it
further_sets <- function(counted, again, half_width, seconds, precision, left,
                         first_stage = FIRST_STAGE, most = rep(precision$max, length(counted))) {
  target <- precision$target
  kept <- counted + again
  if (is.null(target)) {
    return(numeric(length(kept)))
  }
  # Of what could not be measured there is nothing more to hope for.
  missing <- ifelse(kept > 0, pmax(pmin(first_stage, most) - kept, 0), 0)
  if (any(missing > 0)) {
    # Who has fewest comes first.
    asking <- rep(seq_along(kept), missing)
    return(given_sets(asking[order(kept[asking] + sequence(missing))], seconds, left))
  }
  # What each workload asks for, set by set, and the distance that each would lessen.
  distances <- lapply(seq_along(kept), function(i) {
    before <- kept[[i]] + seq_len(max(0, min(most[[i]], GROWTH * kept[[i]]) - kept[[i]])) - 1
    share <- foreseen_half_width(half_width[[i]], counted[[i]], before) / target
    share[half_width[[i]] > target & share > AIM] - AIM
  })
  asking <- rep(seq_along(kept), lengths(distances))
  asking <- asking[order(-unlist(distances) / seconds[asking])]
  given_sets(asking, seconds, round_allowance(left, precision$budget, seconds[unique(asking)]))
}

#' How many further sets each workload gets for its claims, once all are within the target
#'
#' Those come first whose claim takes the least time, so that as many as can be are decided.  Such a set holds
#' the environments of the claim alone.
#'
#' @inheritParams further_sets
#' @param claims data frame with a row for each workload: half_width, target and n (pairs) as from
#'   `claim_ahead`; seconds, what a set of the claim's environments costs
#' @param most sets of each that may count at most, for claims
#' @return numbers
claim_sets <- function(again, claims, precision, left, most) {
  kept <- claims$n + again
  half_width <- ifelse(is.finite(claims$half_width), claims$half_width, UNKNOWN_WIDTH)
  # A width shrinks with the square root of the sets.
  needed <- pmax(ceiling(claims$n * (half_width / (AIM * claims$target))^2) - kept, 0)
  needed[half_width <= claims$target] <- 0
  asked <- pmin(needed, pmax(0, pmin(most, GROWTH * kept) - kept))
  first <- order(needed * claims$seconds)
  asking <- rep(first, asked[first])
  given_sets(asking, claims$seconds, round_allowance(left, precision$budget, claims$seconds[unique(asking)]))
}

#' How many further sets each workload gets in the next round, for the target and then for the claims
#'
#' @inheritParams further_sets
#' @param claims as of `claim_sets`
#' @param most_claimed sets of each that may count at most where they are for claims
#' @param ... for `further_sets`
#' @return numbers, with the attribute `claims`: whether they are for those
next_sets <- function(counted, again, half_width, seconds, precision, left, claims,
                      most = rep(precision$max, length(counted)), most_claimed = most, ...) {
  more <- further_sets(counted, again, half_width, seconds, precision, left, most = most, ...)
  for_claims <- !is.null(precision$target) && all(more == 0)
  if (for_claims) {
    more <- claim_sets(again, claims, precision, left, most_claimed)
  }
  structure(more, claims = for_claims)
}

#' What is decided after the last block of a round
#'
#' @param tables list of tidy tables, named by the workloads
#' @param records list of the records of all cells so far
#' @param cells the plan's cells so far, as from `read_cells`
#' @param plan as from `read_plan`
#' @param block number of blocks so far
#' @param before the decisions before this one, as from `decisions_of`
#' @param claimed as from `claimed_widths`; NULL where claims ask for nothing
#' @return the decision, as it stands in results/precision
decide_round <- function(tables, records, cells, plan, block, before = list(), claimed = NULL) {
  aside <- set_aside(before)
  narrow <- narrow_sets(before)
  precision <- plan$precision
  costs <- costs_of(records, plan)
  left <- if (is.null(precision$budget)) Inf else precision$budget - costs$spent
  again <- sets_again(disturbed_sets(plan, records), aside, precision$retries, costs$set, left)
  left <- left - sum(costs$set[again$workload]) - still_to_spend(costs$cell, cells, plan)
  out <- rbind(aside[c("workload", "repetition")], again[c("workload", "repetition")])
  counts <- lapply(tables, function(runs) {
    # A set may count for nothing for another reason.
    ifelse(runs$counts == "no", "no", counts_of(plan, runs, out))
  })
  widths <- do.call(rbind, unname(Map(headline_widths, tables, list(plan), counts)))
  paired <- paired_environments(plan)
  state <- do.call(rbind, lapply(names(tables), function(name) {
    tidy <- tables[[name]][counts[[name]] == "yes", ]
    own <- widths[widths$workload == name, ]
    planned <- cells$repetition[cells$workload == name & cells$environment %in% paired]
    counted <- unique(tidy$repetition[tidy$environment %in% paired])
    whole <- setdiff(counted, narrow$repetition[narrow$workload == name])
    data.frame(
      workload = name, sets = max(c(0, planned)), again = sum(again$workload == name),
      counted = length(whole), narrow = length(counted) - length(whole),
      seconds = costs$set[[name]], half_width = max(own$half_width, if (nrow(own) == 0) Inf)
    )
  }))
  # A set that could not be measured takes the place of one that could.
  lost <- state$sets - state$counted - state$narrow - as.vector(table(factor(out$workload, state$workload)))
  state$most <- precision$max - lost - state$narrow
  ahead <- lapply(state$workload, function(name) claim_ahead(widths[widths$workload == name, ], claimed))
  claims <- do.call(rbind, lapply(ahead, function(one) as.data.frame(one[names(one) != "environments"])))
  claims$environments <- lapply(ahead, `[[`, "environments")
  claims$seconds <- mapply(function(name, of) sum(costs$cell[of, name], na.rm = TRUE), state$workload,
                           claims$environments)
  more <- next_sets(state$counted, state$again, state$half_width, state$seconds, precision, left, claims,
                    state$most, precision$max - lost)
  state$more <- as.vector(more)
  told_decision(state, claims, attr(more, "claims"), again, widths, plan, block, costs$spent)
}

#' The decision as it stands in results/precision
#'
#' @param state data frame with a row for each workload: workload, sets, seconds, half_width, again, counted,
#'   most, more
#' @param claims as of `claim_sets`, with the environments of each
#' @param for_claims whether the sets of this round are for those
#' @param again as from `sets_again`
#' @param widths as from `headline_widths`, of all workloads
#' @param plan as from `read_plan`
#' @param block number of blocks so far
#' @param spent seconds
#' @return list
told_decision <- function(state, claims, for_claims, again, widths, plan, block, spent) {
  precision <- plan$precision
  state$became <- became(state, precision, claims$claim != "")
  widest <- utils::head(widths[which.max(widths$half_width), ], 1)
  known <- function(width) if (is.finite(width)) width
  list(
    block = block, enough = all(state$again + state$more == 0), reason = round_reason(state$became),
    target = precision$target, budget_seconds = precision$budget, spent_seconds = round(spent, 3),
    metrics = nrow(widths),
    reached = if (!is.null(precision$target)) {
      first_stage <- state$workload[state$counted >= FIRST_STAGE]
      sum(widths$half_width <= precision$target & widths$workload %in% first_stage)
    },
    widest = if (nrow(widest) == 1) {
      c(as.list(widest[c("environment", "workload", "metric", "factors")]),
        list(half_width = known(widest$half_width)))
    },
    workloads = sapply(state$workload, function(name) {
      own <- state[state$workload == name, ]
      claim <- claims[state$workload == name & claims$claim != "", ]
      reason <- workload_reason(own, precision, if (for_claims) claim)
      list(sets = own$sets, seconds = round(own$seconds, 3), half_width = known(own$half_width),
           claim = if (nrow(claim) == 1) {
             list(id = claim$claim, half_width = known(claim$half_width), target = claim$target,
                  seconds = round(claim$seconds, 3))
           },
           again = I(again$repetition[again$workload == name]), more = own$more,
           environments = if (for_claims && own$more > 0) held_alone(claim$environments[[1]], plan),
           reason = reason)
    }, simplify = FALSE)
  )
}

#' The environments that sets hold, where others are not in them
#'
#' @param environments names
#' @param plan as from `read_plan`
#' @return the names, for JSON; NULL where they are those that every set holds
held_alone <- function(environments, plan) {
  if (!setequal(environments, lasting_environments(plan))) I(environments)
}

#' What becomes of workloads
#'
#' @param state as of `told_decision`
#' @param precision of the plan
#' @param claimed whether a claim about each takes narrower intervals
#' @return "more" sets, only some "again", or none: because of the "target", "max" or the "budget", since the
#'   number is "fixed", or since "nothing" was measured
became <- function(state, precision, claimed) {
  ended <- if (is.null(precision$target)) {
    "fixed"
  } else {
    ifelse(state$half_width <= precision$target & state$counted >= FIRST_STAGE & !claimed, "target",
           ifelse(state$counted >= state$most, "max", "budget"))
  }
  ifelse(state$more > 0, "more",
         ifelse(state$again > 0, "again", ifelse(state$counted == 0, "nothing", ended)))
}

#' Why a run goes on or ends
#'
#' @param became as from `became`, of all workloads
#' @return text that can stand after "because"
round_reason <- function(became) {
  reasons <- c(
    more = "more sets are needed", again = "disturbed sets are measured again",
    budget = "the budget was spent", max = "the largest number of sets was reached",
    target = "the target was reached", fixed = "the number of sets was set beforehand",
    nothing = "nothing could be measured"
  )
  reasons[[which(names(reasons) %in% became)[[1]]]]
}

#' Why a workload gets so many sets
#'
#' @param own its row of the state
#' @param precision of the plan
#' @param claim its row of the claims, where the sets of this round are for those
#' @return a sentence
workload_reason <- function(own, precision, claim = NULL) {
  share <- function(x) sprintf("\u00b1 %.1f %%", 100 * x)
  sets <- function(count, what) paste(count, what, if (count == 1) "set" else "sets")
  known <- is.finite(own$half_width)
  width <- if (known) {
    paste("Its widest headline interval is", share(own$half_width))
  } else {
    "It has a headline value without an interval"
  }
  gets <- paste("and it gets", sets(own$more, "more"))
  foreseen <- foreseen_half_width(own$half_width, own$counted, own$counted + own$again + own$more)
  told <- switch(
    own$became,
    more = if (own$counted + own$again < FIRST_STAGE) {
      paste0("Each workload has ", FIRST_STAGE, " sets before widths decide, ", gets)
    } else if (NROW(claim) == 1) {
      paste0(width, ", ", gets, " of ", listed(claim$environments[[1]]), " for ", claim$claim,
             ", whose interval is to be ", share(claim$target))
    } else {
      paste0(width, ", ", gets, if (known) paste(", which should bring it to", share(foreseen)))
    },
    again = width,
    target = paste0(width, ", which is within the target of ", share(precision$target)),
    max = paste0(width, ", and it has the largest number of sets"),
    budget = paste0(width, ", and what is left of the budget is too little for more"),
    fixed = "The number of its sets was set beforehand",
    nothing = "None of its sets could be measured"
  )
  again <- if (own$again > 0) {
    paste0("; ", sets(own$again, "disturbed"), if (own$again == 1) " is" else " are", " measured again")
  }
  paste0(told, again, ".")
}
