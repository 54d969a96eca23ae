# Published claims against what was measured: one verdict for each, from intervals and the stated tolerance.

#' The verdict on a claim
#'
#' A claim has parts: a ratio for each of its pairs of environments and each series.  A part is reproduced
#' where its whole interval at 90 % lies within the tolerance, which is what two one-sided tests at 5 % find;
#' contradicted where none of its wider interval does, which holds at 95 % together with those of the other
#' parts; and inconclusive otherwise or without an interval.  The claim is contradicted if any part is;
#' failing that it is not testable if any part is not, since the rest alone can't reproduce it; failing that
#' it is inconclusive if any part is; else it is reproduced.  That takes all parts, so that their tests need
#' no allowance for their number, while any one contradicts it.
#'
#' @param low,high limits of the wider intervals, one for each part; NA where there is none
#' @param from,to limits of the tolerance; NA for no limit
#' @param testable for each part whether it can be tested here
#' @param inner_low,inner_high limits of the intervals at 90 %
#' @return one of CLAIM_VERDICTS, with the attribute `parts`: the same for each part
#' @source D. J. Schuirmann as of `paired_equal_p`; R. L. Berger, Multiparameter hypothesis testing and
#'   acceptance sampling, Technometrics 24, 1982, for tests that all must reject
claim_verdict <- function(low, high, from, to, testable = rep(TRUE, length(low)), inner_low = low,
                          inner_high = high) {
  from <- if (is.na(from)) -Inf else from
  to <- if (is.na(to)) Inf else to
  known <- !is.na(low) & !is.na(high)
  within <- !is.na(inner_low) & !is.na(inner_high) & inner_low >= from & inner_high <= to
  parts <- ifelse(!testable, "not testable here", ifelse(known & (low > to | high < from), "contradicted",
                                                         ifelse(within, "reproduced", "inconclusive")))
  if (length(parts) == 0) {
    parts <- "not testable here"
  }
  order <- c("contradicted", "not testable here", "inconclusive", "reproduced")
  structure(order[min(match(parts, order))], parts = parts)
}

#' All claims, tested by the sets that count
#'
#' A claim about an environment for which one of this project may stand as a transfer has a second row where
#' that was measured: what was published for one product, tested on another.  Its verdict is one of
#' TRANSFERRED_VERDICTS, and `published_for` names the product; it is empty in all other rows.
#'
#' @param published as from `read_claims`
#' @param tidy rows of the tidy tables of all workloads
#' @param plan as from `read_plan`
#' @param sockets of the host; NA where that is not available
#' @param seconds as from `set_seconds`
#' @param of_claims as from `claim_seconds`
#' @return data frame with the columns of CLAIM_COLUMNS, a row for each claim, in their order, and behind it
#'   that of its transfer
test_claims <- function(published, tidy, plan, sockets, seconds = numeric(), of_claims = numeric()) {
  tidy <- counted_rows(tidy)
  rows <- unlist(lapply(published$claims, function(claim) {
    if (claim$id %in% names(of_claims)) {
      seconds[claim$workload] <- of_claims[claim$id]
    }
    claim_rows(claim, published, tidy, plan, sockets, seconds)
  }), recursive = FALSE)
  bound <- lapply(names(CLAIM_COLUMNS), function(name) unlist(lapply(rows, `[[`, name)))
  as.data.frame(stats::setNames(bound, names(CLAIM_COLUMNS)))
}

#' The rows of a claim: as it was published, and as it was transferred
#'
#' @inheritParams test_claims
#' @param claim an entry of the claims
#' @return list of one or two, as from `test_claim`
claim_rows <- function(claim, published, tidy, plan, sockets, seconds) {
  direct <- test_claim(claim, published, tidy, plan, sockets, seconds)
  products <- Filter(Negate(is.null), lapply(published$environments, `[[`, "transferred"))
  claim$pairs <- Filter(function(pair) any(unlist(pair) %in% names(products)), claim$pairs)
  if (length(claim$pairs) == 0) {
    return(list(direct))
  }
  for (name in names(products)) {
    published$environments[[name]]$measured_as <- products[[name]]$to
  }
  moved <- test_claim(claim, published, tidy, plan, sockets, seconds)
  if (moved$parts == 0) {
    if (direct$reason == "transferred") {
      direct[c("reason", "because")] <- moved[c("reason", "because")]
    }
    return(list(direct))
  }
  moved$verdict <- TRANSFERRED_VERDICTS[[moved$verdict]]
  named <- products[intersect(names(products), unlist(claim$pairs))]
  moved$published_for <- paste(unique(vapply(named, `[[`, "", "from")), collapse = ", ")
  list(direct, moved)
}

#' One claim, tested
#'
#' Where there are several parts, their wider intervals hold together at 95 % (Bonferroni), and the row shows
#' the part that is farthest from the tolerance, or nearest to its edge, with the interval that decided: of a
#' claim that was reproduced the one at 90 %.
#'
#' @inheritParams claim_rows
#' @return named list with an element for each of CLAIM_COLUMNS
test_claim <- function(claim, published, tidy, plan, sockets, seconds) {
  number <- function(x) if (is.null(x)) NA_real_ else as.double(x)
  from <- number(claim$tolerance$low)
  to <- number(claim$tolerance$high)
  row <- list(
    id = claim$id, publication = claim$publication, place = claim$place, statement = claim$statement,
    workload = claim$workload, published = number(claim$published$value),
    unit = c(claim$published$unit, "")[[1]], tolerance_low = from, tolerance_high = to,
    environment = "", reference = "", measured_workload = "", metric = "", factors = "", ratio = NA_real_,
    ratio_low = NA_real_, ratio_high = NA_real_, ratio_n = NA_real_, level = NA_real_, parts = 0,
    verdict = "not testable here",
    reason = c(claim$untestable$reason, "")[[1]], because = c(claim$untestable$because, "")[[1]],
    note = c(claim$note, "")[[1]], more_sets = NA_real_, more_sets_low = NA_real_,
    more_sets_high = NA_real_, more_minutes = NA_real_, published_for = "", logs = ""
  )
  if (!is.null(claim$untestable)) {
    return(row)
  }
  parts <- claim_parts(claim, published, tidy, plan, sockets)
  testable <- parts$reason == ""
  level <- 1 - (1 - LEVEL) / max(sum(testable), 1)
  found <- lapply(which(testable), function(i) measured_ratio(parts[i, ], tidy, level, claim, plan))
  interval <- function(key) {
    limits <- rep(NA_real_, nrow(parts))
    limits[testable] <- vapply(found, `[[`, 0, key)
    limits
  }
  low <- interval("low")
  high <- interval("high")
  inner_low <- interval("inner_low")
  inner_high <- interval("inner_high")
  verdict <- claim_verdict(low, high, from, to, testable, inner_low, inner_high)
  row$verdict <- as.vector(verdict)
  row$parts <- sum(testable)
  if (verdict == "not testable here") {
    row[c("reason", "because")] <- parts[which(!testable)[[1]], c("reason", "because")]
  }
  if (any(testable)) {
    beyond <- pmax(if (is.na(from)) -Inf else from - inner_low, if (is.na(to)) -Inf else inner_high - to)
    rank <- match(attr(verdict, "parts"), c("contradicted", "inconclusive", "reproduced"), 9)
    shown <- order(rank, -beyond)[[1]]
    part <- found[[match(shown, which(testable))]]
    if (attr(verdict, "parts")[[shown]] == "reproduced") {
      part[c("low", "high")] <- part[c("inner_low", "inner_high")]
      level <- INNER_LEVEL
    }
    row[c("environment", "reference", "measured_workload", "metric", "factors")] <-
      parts[shown, c("environment", "reference", "workload", "metric", "factors")]
    row[c("ratio", "ratio_low", "ratio_high", "ratio_n")] <- part[c("ratio", "low", "high", "n")]
    row$level <- level
    row$logs <- part$logs
    against <- parts$reference_factors[[shown]]
    if (against != parts$factors[[shown]]) {
      against <- gsub("=", " ", gsub(";", ", ", against))
      row$note <- trimws(paste0(row$note, " It is measured against ", against, "."))
    }
    if (verdict == "inconclusive") {
      if (is.na(part$low)) {
        row$because <- "there are too few runs for an interval"
      }
      needs <- claim_needs(interval("ratio"), interval("scatter"), interval("n"), from, to,
                           attr(verdict, "parts"), parts$workload, seconds)
      row[names(needs)] <- needs
    }
  }
  row
}

#' The half-width of an interval with which a claim would be reproduced
#'
#' The interval at 90 % of a ratio lies within the tolerance with a probability of 80 %, whether the ratio is
#' in the middle of it or 1, which is no difference, where that lies within it.
#'
#' @param from,to limits of the tolerance
#' @return half-width of the interval at LEVEL, as a share of the ratio
#' @source S. A. Julious, Sample sizes for clinical trials with normal data, Statistics in Medicine 23, 2004,
#'   for two one-sided tests
width_that_decides <- function(from, to) {
  ratios <- c((from + to) / 2, if (from < 1 && to > 1) 1)
  z <- stats::qnorm((1 + INNER_LEVEL) / 2)
  errors <- vapply(ratios, function(ratio) {
    within <- function(error) sum(stats::pnorm(c(ratio - from, to - ratio) / error - z)) - 1
    reach <- (to - from) / 2
    stats::uniroot(function(error) within(error) - POWER, reach * c(1e-6, 1), tol = reach * 1e-9)$root
  }, 0)
  min(stats::qnorm((1 + LEVEL) / 2) * errors / ratios)
}

#' How narrow intervals have to be for the claims about them
#'
#' It follows from the tolerances alone, and not from what was measured.  Claims that can't be tested as a
#' whole here, or by ratios to native, and those without a limit on either side, or with none between them,
#' ask for nothing.
#'
#' @inheritParams test_claims
#' @return data frame: environment, workload, metric and factors of a ratio to native, claim, and half_width
#'   as from `width_that_decides`
claimed_widths <- function(published, tidy, plan, sockets) {
  none <- data.frame(environment = character(), workload = character(), metric = character(),
                     factors = character(), claim = character(), half_width = numeric())
  found <- lapply(published$claims, function(claim) {
    limits <- c(claim$tolerance$low, claim$tolerance$high)
    if (!is.null(claim$untestable) || length(limits) < 2 || limits[[1]] == limits[[2]]) {
      return(none)
    }
    parts <- claim_parts(claim, published, tidy, plan, sockets)
    if (any(parts$reason != "" | parts$reference != REFERENCE | parts$reference_factors != parts$factors)) {
      return(none)
    }
    data.frame(parts[c("environment", "workload", "metric", "factors")], claim = claim$id,
               half_width = width_that_decides(limits[[1]], limits[[2]]))
  })
  do.call(rbind, c(list(none), found))
}

#' The parts of a claim: its pairs of environments in each of its series
#'
#' @inheritParams test_claim
#' @return data frame: environment, reference (names of the plan, "" where there is none), workload, metric,
#'   factors and reference_factors (of each of the two), reason (why it can't be tested, as of
#'   `untestable_reasons`, or "") and because
claim_parts <- function(claim, published, tidy, plan, sockets) {
  rows <- tidy[tidy$workload %in% claimed_workloads(claim, published, plan), ]
  if (nrow(rows) == 0) {
    about <- if (claim$workload == "*") "nothing" else paste("nothing of", claim$workload)
    return(untested_part(claim, reason = "workload", because = paste(about, "was measured")))
  }
  do.call(rbind, lapply(claim$pairs, function(pair) {
    names <- vapply(pair, measured_as, "", published = published, tidy = rows)
    obstacle <- environment_obstacle(pair, names, published, plan)
    if (!is.null(obstacle)) {
      return(do.call(untested_part, c(list(claim), obstacle)))
    }
    series <- unique(rows[rows$environment == names[[1]], c("workload", "metric", "factors")])
    wanted <- unlist(claim$metrics)
    series <- series[length(wanted) == 0 | series$metric %in% wanted, ]
    sized <- series[has_factors(series$factors, claim$factors), ]
    own <- lapply(unlist(pair), function(name) published$environments[[name]]$factors)
    sides <- lapply(own, function(factors) with_factors(sized$factors, factors))
    there <- paste(rows$environment, rows$workload, rows$metric, rows$factors)
    for (i in which(lengths(own) > 0 & nrow(sized) > 0)) {
      measured <- paste(names[[i]], sized$workload, sized$metric, sides[[i]]) %in% there
      sized <- sized[measured, ]
      sides <- lapply(sides, `[`, measured)
      claim$factors[names(own[[i]])] <- own[[i]]
    }
    obstacle <- series_obstacle(claim, series, sized, sockets, plan$machine$cpus)
    if (is.null(obstacle)) {
      sized$factors <- sides[[1]]
      data.frame(environment = names[[1]], reference = names[[2]], sized, reference_factors = sides[[2]],
                 reason = "", because = "", row.names = NULL)
    } else {
      do.call(untested_part, c(list(claim), obstacle))
    }
  }))
}

#' A part of a claim that can't be tested
#'
#' @param claim its entry
#' @param reason as of `untestable_reasons`
#' @param because text
#' @return data frame of one row, as from `claim_parts`
untested_part <- function(claim, reason, because) {
  data.frame(environment = "", reference = "", workload = claim$workload, metric = "", factors = "",
             reference_factors = "", reason = reason, because = because)
}

#' Why the environments of a claim can't be compared here
#'
#' @param pair their published names
#' @param names those of the plan, as from `measured_as`
#' @inheritParams test_claim
#' @return list of reason and because; NULL where they can
environment_obstacle <- function(pair, names, published, plan) {
  for (i in which(names == "")) {
    entry <- published$environments[[pair[[i]]]]
    moved <- !is.null(entry$transferred) && length(entry$measured_as) == 0
    return(list(reason = if (moved) "transferred" else "environment",
                because = absence(pair[[i]], published, plan)))
  }
  emulated <- Filter(Negate(is.null), lapply(seq_along(pair), function(i) {
    emulation_obstacle(published$environments[[pair[[i]]]], names[[i]], plan)
  }))
  if (length(emulated) > 0) emulated[[1]]
}

#' Why an environment can't stand for a published virtual machine
#'
#' An emulated virtual machine stands for no published environment.
#'
#' @param entry of the published environment
#' @param name of the plan's environment
#' @param plan as from `read_plan`
#' @return list of reason and because; NULL where it can
emulation_obstacle <- function(entry, name, plan) {
  here <- plan$environments[[name]]
  needed <- entry[["accelerator"]]
  emulated <- has_machine(here) && !is_accelerated(here)
  if (!emulated && (is.null(needed) || identical(here[["accelerator"]], needed))) {
    return(NULL)
  }
  why <- sub("[.]$", "", c(here[["accelerator_reason"]], "")[[1]])
  list(reason = "emulation",
       because = paste0(environment_labels(plan, name), " is not proven to be accelerated by hardware",
                        if (why != "") paste0(": ", why)))
}

#' Why a claim can't be tested by the series that were measured
#'
#' @inheritParams test_claim
#' @param series of the claim's workloads and metrics
#' @param sized those of them that have its factors
#' @param cpus processors of the host; NULL where that is not known
#' @return list of reason and because; NULL where it can
series_obstacle <- function(claim, series, sized, sockets, cpus = NULL) {
  if (nrow(series) == 0) {
    what <- paste(gsub("_", " ", unlist(claim$metrics)), collapse = ", ")
    list(reason = "metric", because = paste(what, "of", claim$workload, "was not measured"))
  } else if (nrow(sized) == 0) {
    what <- paste(names(claim$factors), unlist(claim$factors), collapse = ", ")
    list(reason = "size", because = paste(what, "was not measured"))
  } else if (is.numeric(claim$sockets) && !isTRUE(sockets >= claim$sockets)) {
    here <- if (is.na(sockets)) "the number here is not available" else paste("the host has", sockets)
    list(reason = "hardware", because = paste0("it takes ", claim$sockets, " sockets, and ", here))
  } else if (is.numeric(claim$processors) && !isTRUE(cpus >= claim$processors)) {
    here <- if (is.null(cpus)) "the number here is not available" else paste("the host has", cpus)
    list(reason = "hardware", because = paste0("it takes ", claim$processors, " processors, and ", here))
  }
}

#' The workloads that a claim is about
#'
#' @inheritParams test_claim
#' @return names
claimed_workloads <- function(claim, published, plan) {
  group <- published$workload_groups[[claim$workload]]
  if (claim$workload == "*") names(plan$workloads) else if (is.null(group)) claim$workload else unlist(group)
}

#' Which of the plan's environments stands for a published one
#'
#' @param environment its published name
#' @param published as from `read_claims`
#' @param tidy rows of the claim's workloads
#' @return the first of `measured_as` that has runs; "" where none has
measured_as <- function(environment, published, tidy) {
  names <- intersect(unlist(published$environments[[environment]]$measured_as), tidy$environment)
  if (length(names) > 0) names[[1]] else ""
}

#' Why a published environment was not measured
#'
#' @inheritParams measured_as
#' @param plan as from `read_plan`
#' @return text
absence <- function(environment, published, plan) {
  entry <- published$environments[[environment]]
  names <- unlist(entry$measured_as)
  planned <- plan$environments[names[names %in% names(plan$environments)]]
  reasons <- unlist(lapply(planned, function(one) if (!isTRUE(one$available)) one$reason))
  stand_in <- if (length(names) > 0 && !is.null(entry$transferred)) {
    paste0(", for which ", paste(names, collapse = " or "), " may stand,")
  }
  paste0(entry$label, stand_in, if (length(names) == 0) {
    " is none of the environments that can be measured"
  } else if (length(planned) == 0) {
    " is not in the plan"
  } else if (length(reasons) > 0) {
    paste0(" is not available here: ", reasons[[1]])
  } else {
    " was not measured"
  })
}

#' Whether series have certain factors
#'
#' @param factors texts of the series, such as "order=1000;clients=4"
#' @param wanted named list: factor to value
#' @return logical vector
has_factors <- function(factors, wanted) {
  pairs <- paste0(names(wanted), "=", unlist(wanted), recycle0 = TRUE)
  vapply(strsplit(factors, ";", fixed = TRUE), function(has) all(pairs %in% has), NA)
}

#' The factors of series, with those of a published environment
#'
#' @param factors texts of the series
#' @param own named list of factors by which the environment differs; NULL where it has none
#' @return texts in which those have its values
with_factors <- function(factors, own) {
  vapply(strsplit(factors, ";", fixed = TRUE), function(pairs) {
    at <- match(sub("=.*", "", pairs), names(own))
    pairs[!is.na(at)] <- paste0(names(own)[at], "=", unlist(own)[at])[!is.na(at)]
    paste(pairs, collapse = ";")
  }, "")
}

#' The ratio that a part of a claim is about
#'
#' @param part a row of `claim_parts`
#' @param tidy rows of the tidy tables
#' @param level of confidence
#' @param claim,plan as of `test_claim`
#' @return as from `compare_runs`, `inner_low` and `inner_high`, the limits at INNER_LEVEL, and `logs`; where
#'   the claim is about performance, of its inverse for metrics of which less is better
measured_ratio <- function(part, tidy, level, claim, plan) {
  of <- function(environment, factors) {
    tidy[tidy$environment == environment & tidy$workload == part$workload & tidy$metric == part$metric &
           tidy$factors == factors, ]
  }
  sides <- list(of(part$environment, part$factors), of(part$reference, part$reference_factors))
  metrics <- metrics_of(plan, part$workload)
  if (isTRUE(claim$performance) && metrics$better[metrics$metric == part$metric] == "lower") {
    sides <- rev(sides)
  }
  pairs <- paired_runs(sides[[1]], sides[[2]])
  logs <- unlist(lapply(sides, function(side) side$log[order(side$repetition)]))
  statistic <- metrics$statistic[metrics$metric == part$metric]
  inner <- compare_runs(pairs$measured, pairs$reference, statistic, INNER_LEVEL)
  c(compare_runs(pairs$measured, pairs$reference, statistic, level),
    list(inner_low = inner$low, inner_high = inner$high, logs = paste(logs, collapse = ";")))
}
