# Tests published claims against values, of this machine or of others.  A claim is reproduced if the
# 90 % interval of every part lies within the tolerance, and contradicted if the 95 % interval of a
# part (Bonferroni over the parts) lies outside.  A published value that the interval of its part
# contradicts makes the verdict "same direction" or "other size" instead of "reproduced".  Values of
# one machine are compared in their blocks.  Values of other machines, whose runs are not paired,
# are compared as two samples, and printed values are taken without an error.

# The level of the interval that has to lie within the bounds of a claim: two one-sided tests at
# ALPHA.
INNER_LEVEL <- 1 - 2 * ALPHA

#' Test all claims of a catalogue with measured values
#'
#' @param published list as in published/claims.json
#' @param values tidy rows: environment, workload, metric, columns of factors, series, better,
#'   repetition, value
#' @param context list about the values: invalid (workloads whose sizes answer no question); sockets
#'   and processors (numbers of the machine; NA if no record has them); emulated (names of
#'   environments that were measured in emulation only); otherwise (names of environments that a
#'   daemon or options make differ from the environment of claims); paired (whether values are
#'   paired in blocks; by default TRUE) and exact (whether values have no error, as printed ones; by
#'   default FALSE; only unpaired values may be exact)
#' @return data frame of make_claim_row, one row for each claim.  A claim about a product that
#'   another environment stands for has a second row after it; strata/claim/command.py takes the
#'   last row of a claim
test_claims <- function(published, values, context) {
  rows <- lapply(published$claims, function(claim) {
    rbind(test_claim(claim, published, values, context),
          test_transferred_claim(claim, published, values, context))
  })
  stack_rows(rows)
}

#' Make the context of test_claims from the results of a run
#'
#' @param results list of read_results
#' @return list, see `context` of test_claims; sockets is the largest number in any record
make_claim_context <- function(results) {
  sockets <- lapply(results$records, function(record) record$observed$host$static$sockets)
  # Records have "not available" where the host hides the number.
  sockets <- unlist(Filter(is.numeric, sockets))
  environments <- results$environments
  list(invalid = results$invalid, sockets = if (length(sockets) == 0) NA else max(sockets),
       processors = results$plan$machine$cpus %or% NA,
       emulated = environments$environment[environments$emulated],
       otherwise = environments$environment[environments$otherwise])
}

# Tests a claim about a product by the environments that stand for it (transfer_claim).
# The arguments have the forms of test_claim.
# Returns the row of test_claim, where `transferred` names the product; NULL if no environment
# stands for it, or if no part can be tested.
test_transferred_claim <- function(claim, published, values, context) {
  transferred <- transfer_claim(claim, published)
  if (is.null(transferred)) return(NULL)
  row <- test_claim(transferred$claim, transferred$published, values, context)
  if (row$verdict == "not tested") return(NULL)
  row$transferred <- transferred$from
  row
}

#' Restate a claim about a product as one about the environments that stand for it
#'
#' The entry `transferred` of a published environment names the product and these environments.
#'
#' @inheritParams test_claim
#' @return list: claim, published (changed copies of the arguments) and from (the product's name);
#'   NULL if no environment stands for a product of the claim, or if the claim is untestable
transfer_claim <- function(claim, published) {
  is_product <- function(environment) !is.null(environment$transferred)
  products <- Filter(is_product, published$environments[unlist(claim$pairs)])
  if (length(products) == 0 || !is.null(claim$untestable)) return(NULL)
  claim$pairs <- Filter(function(pair) any(unlist(pair) %in% names(products)), claim$pairs)
  for (name in names(products)) {
    published$environments[[name]]$measured_as <- products[[name]]$transferred$to
  }
  product_names <- vapply(products, function(product) product$transferred$from, "")
  list(claim = claim, published = published,
       from = paste(unique(product_names), collapse = ", "))
}

# Returns whether a part of list_claim_parts can be tested; make_untestable_part gives every other
# part its `reason`.
is_testable <- function(part) is.null(part$reason)

#' Test one claim by all its parts
#'
#' A claim is reproduced if all parts lie within their tolerances, and contradicted if one lies
#' outside.
#'
#' @inheritParams test_claims
#' @param claim an entry of `claims` in published/claims.json
#' @return row of make_claim_row; environment, reference, series, n, ratio, low, high, level and
#'   the tolerance are of the part that decides; reason and because are of the first part that
#'   cannot be tested.  The verdicts are VERDICTS (format.R) and "not tested";
#'   strata/claim/command.py has an exit status for each
test_claim <- function(claim, published, values, context) {
  row <- make_claim_row(claim, published$publications)
  parts <- list_claim_parts(claim, published, values, context)
  untestable_parts <- Filter(Negate(is_testable), parts)
  testable_parts <- Filter(is_testable, parts)
  if (length(untestable_parts) > 0) {
    row[c("reason", "because")] <- untestable_parts[[1]][c("reason", "because")]
  }
  if (length(testable_parts) == 0) return(row)
  judgement <- judge_claim_parts(testable_parts, isTRUE(context$exact))
  # Each later assignment overrules the earlier ones.
  row$verdict <- if (judgement$all_within) "reproduced" else "undecided"
  if (length(untestable_parts) > 0) row$verdict <- "tested in part"
  if (judgement$any_outside) row$verdict <- "contradicted"
  part <- judgement$part
  row[c("tolerance_low", "tolerance_high")] <- as.list(part$bounds)
  row[c("environment", "reference", "series")] <- part[c("environment", "reference", "series")]
  row[c("n", "ratio", "low", "high")] <- judgement$estimate[c("n", "ratio", "low", "high")]
  row$level <- judgement$level
  row$parts <- length(testable_parts)
  # An original's own values, which are not paired, only have to agree with the wording of the
  # claim: their verdicts are not refined by the published value.
  add_published_verdict(row, part, refine = !isFALSE(context$paired))
}

# Judges by their intervals whether the parts of a claim lie within their tolerances.
# parts: entries of list_claim_parts that can be tested, at least one.
# is_exact: whether the values have no error, so that their number does not matter.
# Returns a list: all_within and any_outside (logical), and of the part that decides: part, estimate
# (its row of estimate_claim_part at `level`) and level (INNER_LEVEL if the part lies within its
# tolerance, else the level at which a part lies outside).
judge_claim_parts <- function(parts, is_exact) {
  inner <- stack_rows(lapply(parts, estimate_claim_part, INNER_LEVEL))
  # Any part outside contradicts the claim, so that the parts share the error rate (Bonferroni).
  outer_level <- 1 - ALPHA / length(parts)
  outer <- stack_rows(lapply(parts, estimate_claim_part, outer_level))
  low_bounds <- vapply(parts, function(part) part$bounds[[1]], 0)
  high_bounds <- vapply(parts, function(part) part$bounds[[2]], 0)
  # A tolerance without a bound accepts all values on this side.
  low_bounds[is.na(low_bounds)] <- 0
  high_bounds[is.na(high_bounds)] <- Inf
  n <- if (is_exact) Inf else inner$n
  judgement <- judge_parts(inner, outer, n, low_bounds, high_bounds)
  decisive <- judgement$decisive
  is_within <- judgement$within[[decisive]]
  list(all_within = all(judgement$within), any_outside = any(judgement$outside),
       part = parts[[decisive]], estimate = (if (is_within) inner else outer)[decisive, ],
       level = if (is_within) INNER_LEVEL else outer_level)
}

# Compares the deciding part of a claim with the published ratio, if there is one, and sets
# against_published in the claim's row.
# row: row of make_claim_row.
# part: entry of list_claim_parts that can be tested.
# refine: whether a difference from the published ratio turns the verdict "reproduced" into "same
# direction" (if both ratios are on the same side of 1) or "other size".
# Returns the row; it is unchanged if the published value is missing or not a ratio.
add_published_verdict <- function(row, part, refine) {
  if (row$unit != "ratio" || is.na(row$published)) return(row)
  row$against_published <- compare_with_published(part, row$published)
  if (refine && row$verdict == "reproduced" && row$against_published == "different") {
    is_same_side <- log(row$ratio) * log(row$published) > 0
    row$verdict <- if (is_same_side) "same direction" else "other size"
  }
  row
}

# Makes the row of a claim before it is tested.  Its columns are those of claims.csv, which
# analysis/tables.R lists, too.
# claim: entry of `claims` in published/claims.json.
# publications: the entry of this name in published/claims.json.
make_claim_row <- function(claim, publications) {
  bounds <- read_tolerance(claim)
  data.frame(
    id = claim$id, publication = publications[[claim$publication]]$label,
    place = claim$place, statement = claim$statement, workload = claim$workload,
    published = as.numeric(claim$published$value %or% NA), unit = claim$published$unit %or% "",
    tolerance_low = bounds[[1]], tolerance_high = bounds[[2]],
    environment = "", reference = "", series = "", n = NA_real_, ratio = NA_real_,
    low = NA_real_, high = NA_real_, level = NA_real_, parts = 0, verdict = "not tested",
    against_published = "", reason = "", because = "", note = claim$note %or% "", transferred = ""
  )
}

#' Read the tolerance of a claim
#'
#' A bound of 1 means that the claim is about any difference; it becomes the smallest difference
#' that matters (MARGIN).
#'
#' @param claim entry of `claims` in published/claims.json
#' @return numeric vector of the lower and the upper bound; NA for a bound that the claim does not
#'   have
read_tolerance <- function(claim) {
  bounds <- c(as.numeric(claim$tolerance$low %or% NA), as.numeric(claim$tolerance$high %or% NA))
  if (bounds[[1]] %in% 1) bounds[[1]] <- 1 / (1 - MARGIN)
  if (bounds[[2]] %in% 1) bounds[[2]] <- 1 - MARGIN
  bounds
}

# Returns "equal" if a part's ratio is within MARGIN of the published value, else "different" or
# "undecided": the column against_published of claims.csv.
# part: entry of list_claim_parts that can be tested.
# value: the published ratio, above 0.
compare_with_published <- function(part, value) {
  row <- estimate_claim_part(part, INNER_LEVEL, value)
  n <- if (isTRUE(part$exact)) Inf else row$n
  judgement <- judge_parts(row, row, n, 1 - MARGIN, 1 / (1 - MARGIN))
  if (judgement$within) return("equal")
  if (judgement$outside) "different" else "undecided"
}

#' Estimate the ratio, difference or mean that a part of a claim is about, with its interval
#'
#' @param part entry of list_claim_parts that can be tested
#' @param level confidence level of the interval
#' @param divisor number that the part's values are divided by, for a comparison with this number
#' @return row of compare_sessions, or of compare_samples if runs are not paired; the interval of
#'   exact values has no width.  `ratio` is a difference or a mean if the claim is about one
estimate_claim_part <- function(part, level, divisor = 1) {
  if (!is.null(part$ratio)) {
    return(compare_sessions(part$ratio / divisor, part$session, part$machine, level))
  }
  row <- compare_samples(part$values / divisor, part$reference_values, part$how, level)
  if (!part$exact) return(row)
  row[c("low", "high")] <- row$ratio
  row$why <- ""
  row
}

#' List the parts of a claim: each series of each pair of environments in each of its tests
#'
#' @inheritParams test_claim
#' @return list of parts.  A part that can be tested is a list of environment, reference ("" if the
#'   claim is about a level), series and bounds (see read_tolerance).  A part of paired values also
#'   has workload, and ratio, session and machine (vectors with an element for each block).  A part
#'   of other values has values, reference_values and how (see compare_samples) and exact (whether
#'   the values have no error).  A part that cannot be tested is the list of make_untestable_part
#'   with bounds
list_claim_parts <- function(claim, published, values, context) {
  tests <- claim$tests %or% list(list())
  parts <- lapply(tests, function(test) {
    # The keys of a test replace those of its claim.
    claim[names(test)] <- test
    bounds <- list(bounds = read_tolerance(claim))
    lapply(list_test_parts(claim, published, values, context), c, bounds)
  })
  unlist(parts, recursive = FALSE)
}

#' List the ratios of a claim's parts with their 90 % intervals
#'
#' If no part can be tested, the parts of the claim that transfer_claim returns are listed instead.
#'
#' @inheritParams test_claim
#' @return data frame, one row for each part that can be tested: environment, reference, series, n,
#'   ratio, low, high, tolerance_low, tolerance_high; NULL if there are no such parts
list_part_intervals <- function(claim, published, values, context) {
  list_testable_parts <- function(claim, published) {
    Filter(is_testable, list_claim_parts(claim, published, values, context))
  }
  parts <- list_testable_parts(claim, published)
  transferred <- transfer_claim(claim, published)
  if (length(parts) == 0 && !is.null(transferred)) {
    parts <- list_testable_parts(transferred$claim, transferred$published)
  }
  stack_rows(lapply(parts, function(part) {
    row <- estimate_claim_part(part, INNER_LEVEL)[c("n", "ratio", "low", "high")]
    data.frame(part[c("environment", "reference", "series")], row,
               tolerance_low = part$bounds[[1]], tolerance_high = part$bounds[[2]])
  }))
}

# Lists the parts of one test of a claim, in the form of list_claim_parts but without bounds.
# If the whole test is impossible, its only part is one that cannot be tested, with the first reason
# that applies.  If some of its workloads broke a rule of their size, one such part stands for them.
# claim: a claim in which the keys of the test have replaced its own.
# published, values, context: parameters of test_claims.
list_test_parts <- function(claim, published, values, context) {
  if (!is.null(claim$untestable)) {
    return(list(make_untestable_part(claim$untestable$reason, claim$untestable$because)))
  }
  workloads <- unlist(published$workload_groups[[claim$workload]] %or% claim$workload)
  rows <- values[claim$workload == "*" | values$workload %in% workloads, ]
  if (nrow(rows) == 0) {
    return(list(make_untestable_part("workload", claim$workload, " was not measured")))
  }
  is_invalid <- rows$workload %in% context$invalid
  invalid_part <- NULL
  if (any(is_invalid)) {
    workload_names <- toString(unique(rows$workload[is_invalid]))
    invalid_part <- list(make_untestable_part("size", workload_names, " broke a rule of its size"))
  }
  rows <- rows[!is_invalid, ]
  if (nrow(rows) == 0) return(invalid_part)
  for (hardware in c("sockets", "processors")) {
    min_count <- claim[[hardware]] %or% 0
    count <- context[[hardware]]
    # A count of NA, which no record has, is too small.
    if (min_count > 0 && !(count >= min_count) %in% TRUE) {
      return(list(make_untestable_part("hardware", "it needs ", min_count, " ", hardware,
                                       ", and here are ", count)))
    }
  }
  if (!is.null(claim$metrics)) rows <- rows[rows$metric %in% unlist(claim$metrics), ]
  if (nrow(rows) == 0) {
    metrics <- toString(unlist(claim$metrics))
    return(list(make_untestable_part("metric", metrics, " was not measured")))
  }
  parts <- lapply(claim$pairs, list_pair_parts, claim, published, rows, context)
  c(unlist(parts, recursive = FALSE), invalid_part)
}

# Makes a part of a claim that cannot be tested.
# reason: a code, for which REASONS of analysis/markdown_tables.R has to have a sentence.
# ...: strings, which are pasted into a clause that explains the reason, for example "the workload
# fio was not measured".
make_untestable_part <- function(reason, ...) list(reason = reason, because = paste0(...))

# Lists the parts of one pair of environments of a claim, in the form of list_test_parts.
# pair: keys of two published environments, or of one if the claim is about a mean ("level").
# claim, published, context: have the forms of list_test_parts.
# rows: tidy rows of the claim's workloads and metrics.
list_pair_parts <- function(pair, claim, published, rows, context) {
  entries <- published$environments[unlist(pair)]
  environments <- vapply(entries, function(entry) {
    # Environments that a daemon or options changed count only for an entry with `options`.
    ineligible <- if (isTRUE(entry$options)) NULL else context$otherwise
    candidates <- intersect(unlist(entry$measured_as), setdiff(rows$environment, ineligible))
    # The first of the environments that were measured stands for the published one.
    if (length(candidates) > 0) candidates[[1]] else ""
  }, "")
  if (any(environments == "")) {
    return(list(explain_missing_environment(entries[environments == ""][[1]], context)))
  }
  # Series of the two environments match if all factors are equal except those that the entries set
  # for their environments.
  ignored_factors <- unique(unlist(lapply(entries, function(entry) names(entry$factors))))
  # Selects the rows of the pair's i-th environment, and adds the key by which series match.
  select_rows <- function(i) {
    claimed_rows <- select_claimed_rows(rows, environments[[i]], claim$factors,
                                        entries[[i]]$factors)
    columns <- setdiff(list_factor_columns(claimed_rows), paste0(FACTOR, ignored_factors))
    claimed_rows$series_key <- make_keys(claimed_rows, c("workload", "metric", columns))
    claimed_rows
  }
  first <- select_rows(1)
  second <- if (length(pair) > 1) select_rows(2) else first
  common_keys <- intersect(first$series_key, second$series_key)
  if (length(common_keys) == 0) {
    series <- paste(utils::head(unique(rows$series), 6), collapse = "; ")
    return(list(make_untestable_part("size", "its size or load was not measured, but: ", series)))
  }
  # A claim over all series has one part with all of them; otherwise each series is a part.
  if (identical(claim$over, "all")) common_keys <- list(common_keys)
  lapply(common_keys, function(series_keys) {
    series_rows <- first[first$series_key %in% series_keys, ]
    reference_rows <- if (length(pair) > 1) second[second$series_key %in% series_keys, ]
    make_claim_part(claim, series_rows, reference_rows, context)
  })
}

# Returns the part of make_untestable_part that says why an environment of a claim has no values
# that count.
# entry: the entry of the environment in `environments` of published/claims.json.
# context: has the form of test_claims.
explain_missing_environment <- function(entry, context) {
  measured_as <- unlist(entry$measured_as)
  if (any(measured_as %in% context$emulated)) {
    return(make_untestable_part("emulation", entry$label, " was measured in emulation alone"))
  }
  if (any(measured_as %in% context$otherwise)) {
    return(make_untestable_part("environment", entry$label, " was measured with a daemon or ",
                                "options that make another environment of it"))
  }
  is_product <- length(measured_as) == 0 && !is.null(entry$transferred)
  make_untestable_part(if (is_product) "other-product" else "environment", entry$label,
                       " was not measured")
}

# Selects the tidy rows of an environment whose factors have the values of a claim.
# claim_factors: list, named by factors, of the allowed values in all environments of the claim.
# environment_factors: list of the same form for this environment; its values replace those of
# claim_factors for a factor of the same name.
select_claimed_rows <- function(rows, environment, claim_factors, environment_factors) {
  factors <- c(claim_factors[setdiff(names(claim_factors), names(environment_factors))],
               environment_factors)
  is_claimed <- rows$environment == environment
  for (name in names(factors)) {
    is_claimed <- is_claimed & get_factor(rows, name) %in% as.character(unlist(factors[[name]]))
  }
  rows[is_claimed, ]
}

# Makes a part of a claim that can be tested, in the form of list_claim_parts but without bounds.
# claim: its `how` and `performance` are used.
# rows, reference_rows: tidy rows of the two environments in matching series; reference_rows is NULL
# if the claim is about a mean ("level"); the part's `ratio` then holds the values.
# context: has the form of test_claims.
make_claim_part <- function(claim, rows, reference_rows, context) {
  part <- list(environment = rows$environment[[1]],
               reference = reference_rows$environment[[1]] %or% "",
               series = rows$series[[1]])
  if (isFALSE(context$paired)) {
    return(c(part, list(values = rows$value, reference_values = reference_rows$value,
                        how = claim$how %or% "ratio", exact = isTRUE(context$exact))))
  }
  if (is.null(reference_rows)) {
    level <- list(ratio = rows$value, session = rows$session, machine = rows$machine)
    return(c(part, list(workload = rows$workload[[1]]), level))
  }
  pairs <- pair_runs(rows, reference_rows)
  # The ratio is of the values themselves; a claim about performance turns it round for a cost.
  is_cost <- rows$better[[1]] == "lower"
  if (isTRUE(claim$performance) && is_cost) pairs$ratio <- 1 / pairs$ratio
  c(part, list(workload = rows$workload[[1]]), pairs[c("ratio", "session", "machine")])
}
