# Published claims against values: one engine, whoever measured them.  Reproduced: of every part the 90 %
# interval lies within the tolerance; contradicted: of some part the 95 % interval (Bonferroni over the parts)
# lies outside of it.  Values of one machine are compared in their blocks; those of others, whose runs are not
# paired (`here$paired` is FALSE), as two samples, and printed ones (`here$exact`) as they are.


#' All claims
#'
#' @param published as in published/claims.json
#' @param values tidy rows (environment, workload, metric, factors, series, better, percentile, repetition,
#'   value)
#' @param here list: invalid (workloads whose sizes answer no question), sockets, processors (NA: not known),
#'   emulated
#'   (names of environments that were measured in emulation alone), otherwise (names of those that a daemon
#'   made others of); paired, exact (both as of values that were
#'   measured here, where they are left out)
#' @return data frame, one row per claim, and one more where another product stands for the published
test_claims <- function(published, values, here) {
  rows <- lapply(published$claims, function(claim) {
    direct <- test_claim(claim, published, values, here)
    moved <- moved_claim(claim, published, values, here)
    rbind(direct, moved)
  })
  stack_rows(rows)
}

# What claims ask of a run and its machine.
here_of <- function(results) {
  sockets <- Filter(is.numeric, lapply(results$records, function(one) one$observed$host$static$sockets))
  list(invalid = results$invalid, sockets = if (length(sockets) == 0) NA else max(unlist(sockets)),
       processors = results$plan$machine$cpus %or% NA,
       emulated = results$environments$environment[results$environments$emulated],
       otherwise = results$environments$environment[results$environments$otherwise])
}

# A claim about a product for which an environment of this project stands as a transfer; NULL where there is
# none.
moved_claim <- function(claim, published, values, here) {
  products <- Filter(function(one) !is.null(one$transferred), published$environments[unlist(claim$pairs)])
  claim$pairs <- Filter(function(pair) any(unlist(pair) %in% names(products)), claim$pairs)
  if (length(products) == 0 || !is.null(claim$untestable)) return(NULL)
  for (name in names(products)) published$environments[[name]]$measured_as <- products[[name]]$transferred$to
  row <- test_claim(claim, published, values, here)
  row$transferred <- paste(unique(vapply(products, function(one) one$transferred$from, "")), collapse = ", ")
  if (row$verdict == "not tested") NULL else row
}

test_claim <- function(claim, published, values, here) {
  bounds <- tolerance_of(claim)
  row <- data.frame(
    id = claim$id, publication = published$publications[[claim$publication]]$label, place = claim$place,
    statement = claim$statement, workload = claim$workload,
    published = as.numeric(claim$published$value %or% NA),
    unit = claim$published$unit %or% "", tolerance_low = bounds[[1]], tolerance_high = bounds[[2]],
    environment = "", reference = "", series = "", n = NA_real_, ratio = NA_real_,
    low = NA_real_, high = NA_real_, level = NA_real_, parts = 0, verdict = "not tested",
    against_published = "", reason = "", because = "", note = claim$note %or% "", transferred = ""
  )
  parts <- unlist(lapply(claim$tests %or% list(list()), function(test) {
    claim[names(test)] <- test
    lapply(claim_parts(claim, published, values, here), c, list(bounds = tolerance_of(claim)))
  }), recursive = FALSE)
  untested <- Filter(function(part) !is.null(part$reason), parts)
  tested <- Filter(function(part) is.null(part$reason), parts)
  if (length(untested) > 0) row[c("reason", "because")] <- untested[[1]][c("reason", "because")]
  if (length(tested) == 0) return(row)
  inner <- stack_rows(lapply(tested, compare_part, 1 - 2 * ALPHA))
  outer <- stack_rows(lapply(tested, compare_part, 1 - ALPHA / length(tested)))
  bound <- function(i) vapply(tested, function(part) part$bounds[[i]], 0)
  low <- ifelse(is.na(bound(1)), 0, bound(1))
  high <- ifelse(is.na(bound(2)), Inf, bound(2))
  within <- (inner$low >= low & inner$high <= high) %in% TRUE
  outside <- (outer$high < low | outer$low > high) %in% TRUE
  row$verdict <- if (all(within)) "reproduced" else "undecided"
  if (length(untested) > 0) row$verdict <- "tested in part"
  if (any(outside)) row$verdict <- "contradicted"
  # Shown is the part that decides: one outside of the tolerance, else that which is farthest from being
  # within.
  at <- order(!outside, within, -pmax(low - inner$low, inner$high - high))[[1]]
  shown <- (if (within[[at]]) inner else outer)[at, ]
  row[c("tolerance_low", "tolerance_high")] <- as.list(tested[[at]]$bounds)
  row[c("environment", "reference", "series")] <- tested[[at]][c("environment", "reference", "series")]
  row[c("n", "ratio", "low", "high")] <- shown[c("n", "ratio", "low", "high")]
  row$level <- if (within[[at]]) 1 - 2 * ALPHA else 1 - ALPHA / length(tested)
  row$parts <- length(tested)
  if (row$unit == "ratio" && !is.na(row$published)) {
    row$against_published <- against(tested[[at]], row$published)
  }
  row
}

#' A tolerance that ends at 1 means a difference: it ends at the smallest that matters
tolerance_of <- function(claim) {
  bounds <- c(as.numeric(claim$tolerance$low %or% NA), as.numeric(claim$tolerance$high %or% NA))
  if (bounds[[1]] %in% 1) bounds[[1]] <- 1 / (1 - MARGIN)
  if (bounds[[2]] %in% 1) bounds[[2]] <- 1 - MARGIN
  bounds
}

# What was measured, as a share of the published value: the second verdict.
against <- function(part, value) {
  found <- compare_part(part, 1 - ALPHA, value)
  sub("equivalent", "equal", verdict_of(found$p, found$p_equivalent))
}

# The ratio of a part, as a share of a value.
compare_part <- function(part, level, value = 1) {
  if (!is.null(part$ratio)) return(compare_pairs(part$ratio / value, part$percentile, level))
  found <- compare_samples(part$x / value, part$y, part$how, part$percentile, level)
  if (!part$exact) return(found)
  apart <- abs(log(found$ratio)) > EDGE
  found[c("low", "high")] <- found$ratio
  found[c("p", "p_equivalent")] <- c(!apart, apart)
  found$why <- ""
  found
}

#' The parts of a claim: a list of series of ratios (environment, reference, workload, series, percentile,
#' ratio), or of two samples (x, y, how, exact for ratio), or of reasons
claim_parts <- function(claim, published, values, here) {
  cannot <- function(reason, ...) list(list(reason = reason, because = paste0(...)))
  if (!is.null(claim$untestable)) return(cannot(claim$untestable$reason, claim$untestable$because))
  about <- unlist(published$workload_groups[[claim$workload]] %or% claim$workload)
  rows <- values[claim$workload == "*" | values$workload %in% about, ]
  if (nrow(rows) == 0) return(cannot("workload", claim$workload, " was not measured"))
  small <- rows$workload %in% here$invalid
  names_small <- toString(unique(rows$workload[small]))
  too_small <- if (any(small)) cannot("size", names_small, " broke a rule of its size")
  rows <- rows[!small, ]
  if (nrow(rows) == 0) return(too_small)
  for (what in c("sockets", "processors")) {
    needed <- claim$conditions[[what]] %or% claim[[what]] %or% 0
    if (needed > 0 && !(here[[what]] >= needed) %in% TRUE) {
      return(cannot("hardware", "it needs ", needed, " ", what, ", and here are ", here[[what]]))
    }
  }
  if (!is.null(claim$metrics)) rows <- rows[rows$metric %in% unlist(claim$metrics), ]
  if (nrow(rows) == 0) return(cannot("metric", toString(unlist(claim$metrics)), " was not measured"))
  c(unlist(lapply(claim$pairs, pair_parts, claim, published, rows, here), recursive = FALSE), too_small)
}

pair_parts <- function(pair, claim, published, rows, here) {
  entries <- published$environments[unlist(pair)]
  there <- setdiff(rows$environment, here$otherwise)
  names <- vapply(entries, function(one) c(intersect(unlist(one$measured_as), there), "")[[1]], "")
  for (i in which(names == "")) {
    moved <- length(entries[[i]]$measured_as) == 0 && !is.null(entries[[i]]$transferred)
    emulated <- any(unlist(entries[[i]]$measured_as) %in% here$emulated)
    reason <- if (emulated) "emulation" else if (moved) "other-product" else "environment"
    other <- any(unlist(entries[[i]]$measured_as) %in% here$otherwise)
    how <- if (emulated) "was measured in emulation alone"
           else if (other) "was measured with a daemon that makes another environment of it"
           else "was not measured"
    return(list(list(reason = reason, because = paste(entries[[i]]$label, how))))
  }
  wanted <- function(i) {
    own <- entries[[i]]$factors
    all <- c(claim$factors[setdiff(names(claim$factors), names(own))], own)
    keep <- rows$environment == names[[i]]
    for (name in names(all)) {
      keep <- keep & factor_of(rows$factors, name) %in% as.character(unlist(all[[name]]))
    }
    found <- rows[keep, ]
    # Series of the two are told apart by all factors but those that differ by the claim.
    given <- unique(unlist(lapply(entries, function(one) names(one$factors))))
    pattern <- paste0("(^|;)(", paste(given, collapse = "|"), ")=[^;]*")
    rest <- if (length(given) > 0) gsub(pattern, "", found$factors) else found$factors
    found$joined <- paste(found$workload, found$metric, rest)
    found
  }
  first <- wanted(1)
  second <- if (length(pair) > 1) wanted(2) else first
  common <- intersect(first$joined, second$joined)
  if (length(common) == 0) return(list(list(reason = "size", because = "its size or load was not measured")))
  if (identical(claim$over, "all")) {
    first <- transform(first[first$joined %in% common, ], joined = "all")
    second <- transform(second[second$joined %in% common, ], joined = "all")
    common <- "all"
  }
  lapply(common, function(one) {
    own <- first[first$joined == one, ]
    other <- second[second$joined == one, ]
    if (isFALSE(here$paired)) {
      reference <- if (length(pair) > 1) names[[2]] else ""
      return(list(environment = names[[1]], reference = reference, series = own$series[[1]],
                  percentile = own$percentile[[1]], x = own$value, y = if (reference != "") other$value,
                  how = claim$how %or% "ratio", exact = isTRUE(here$exact)))
    }
    pairs <- pair_rows(own, other)
    if (isTRUE(claim$performance) && own$better[[1]] == "lower") pairs$ratio <- 1 / pairs$ratio
    list(environment = names[[1]], reference = names[[2]], workload = own$workload[[1]],
         series = own$series[[1]], percentile = own$percentile[[1]], ratio = of_blocks(pairs)$ratio)
  })
}
