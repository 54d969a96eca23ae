# Judges whether a replication agrees with an original: whether each ratio to native lies within its
# prediction interval, and whether each claim has the same verdict.
# Sources of the methods: docs/statistics.md.

# The outcomes of a ratio or a claim of the original; strata/reproduce/command.py has an exit status
# for each.
REPLICATION_OUTCOMES <- c("agrees", "differs", "undecided", "not testable here")

#' Estimate the mean of the logarithms of one side's ratios, and the variance of the mean
#'
#' With MACHINE_SESSIONS or more sessions, the values are the means of sessions; else all blocks.
#'
#' @param logs logarithms of ratios, one for each block, in the order of measurement
#' @param sessions the name of each block's session
#' @return list: mean, variance (of the mean), df, sessions (number), between (variance of the means
#'   of sessions; NA for fewer than MACHINE_SESSIONS)
estimate_side <- function(logs, sessions) {
  means <- as.vector(tapply(logs, factor(sessions, unique(sessions)), mean))
  count <- length(means)
  if (count >= MACHINE_SESSIONS) {
    between <- stats::var(means)
    return(list(mean = mean(means), variance = between / count, df = count - 1, sessions = count,
                between = between))
  }
  error <- estimate_standard_error(logs)
  list(mean = mean(logs), variance = error$se ^ 2, df = error$df, sessions = count,
       between = NA_real_)
}

#' Compare the ratio of a replication with the original's in one series
#'
#' The standard error of the distance between the two means predicts the replication (Patil, Peng
#' and Leek 2016; Spence and Stanley 2016).  If only one side has enough sessions to show how they
#' vary, the other side's sessions are assumed to vary as much.
#'
#' @param original,replication data frames, one row for each block: share (ratio to native), session
#' @return data frame of one row: there and here (the ratios of the original and the replication),
#'   with there_low, there_high, here_low, here_high (95 %); n_there, n_here (blocks); se, df (of
#'   the distance of the logarithms), scatter_here (the replication's standard error times the root
#'   of its number of blocks), by_session (whether a side shows how sessions vary), why (the reason
#'   if there is no prediction, else "")
predict_replication <- function(original, replication) {
  there <- estimate_mean_ratio(original$share)
  here <- estimate_mean_ratio(replication$share)
  row <- data.frame(there = there$ratio, there_low = there$low, there_high = there$high,
                    n_there = there$n, here = here$ratio, here_low = here$low,
                    here_high = here$high, n_here = here$n, se = NA_real_, df = NA_real_,
                    scatter_here = here$se * sqrt(here$n), by_session = FALSE, why = there$why)
  if (there$why == "") row$why <- here$why
  if (row$why == "" && min(there$n, here$n) < VERDICT_BLOCKS) {
    row$why <- paste("fewer than", VERDICT_BLOCKS, "blocks on a side")
  }
  if (row$why != "") return(row)
  logs <- list(log(original$share), log(replication$share))
  sides <- Map(estimate_side, logs, list(original$session, replication$session))
  between <- vapply(sides, `[[`, 0, "between")
  variances <- vapply(sides, `[[`, 0, "variance")
  df <- vapply(sides, `[[`, 0, "df")
  row$df <- sum(variances) ^ 2 / sum(variances ^ 2 / df)
  has_between <- !is.na(between)
  row$by_session <- any(has_between)
  if (sum(has_between) == 1) {
    # The side that does not show how sessions vary gets the variance of the side that does.
    other <- which(!has_between)
    variances[[other]] <- max(variances[[other]], between[has_between] / sides[[other]]$sessions)
    row$df <- df[has_between]
  }
  row$se <- sqrt(sum(variances))
  row[c("there", "here")] <- as.list(exp(vapply(sides, `[[`, 0, "mean")))
  row
}

#' Judge replications by their prediction intervals
#'
#' All rows share the error rate ALPHA (Bonferroni).  If no side shows how sessions vary, the
#' interval is wider by MARGIN at each end.  A ratio differs if it lies outside of the interval, and
#' if it also differs by more than MARGIN.  Any other ratio agrees if a change of `effect` would
#' have been found with the probability POWER; else it is undecided, since its agreement would show
#' nothing.
#'
#' @param rows data frame of predict_replication
#' @param effect the smallest change that has to be found, as a share above 0 and below 1
#' @return rows with predicted_low and predicted_high; change (here divided by there) with its 95 %
#'   interval change_low and change_high; detectable (the change that would be found, a share), more
#'   (further blocks of the replication that would decide; NA if none is needed or no number is
#'   enough) and outcome ("agrees", "differs", "undecided")
judge_replications <- function(rows, effect) {
  level <- 1 - ALPHA / max(sum(rows$why == ""), 1)
  # qt warns of a df of NA, which gives NA.
  quantile <- suppressWarnings(stats::qt((1 + level) / 2, rows$df))
  margin <- -log(1 - MARGIN)
  allowance <- ifelse(rows$by_session, 0, margin)
  half_width <- quantile * rows$se + allowance
  distance <- log(rows$here / rows$there)
  rows$predicted_low <- rows$there * exp(-half_width)
  rows$predicted_high <- rows$there * exp(half_width)
  rows$change <- exp(distance)
  half_change <- suppressWarnings(stats::qt(1 - ALPHA / 2, rows$df)) * rows$se
  rows$change_low <- exp(distance - half_change)
  rows$change_high <- exp(distance + half_change)
  power_quantile <- suppressWarnings(stats::qt(POWER, rows$df))
  limit <- pmax(half_width, margin)
  rows$detectable <- 1 - exp(-limit - power_quantile * rows$se)
  differs <- (abs(distance) > limit) %in% TRUE
  agrees <- !differs & (rows$detectable <= effect) %in% TRUE
  rows$outcome <- ifelse(differs, "differs", ifelse(agrees, "agrees", "undecided"))
  # The largest variance that would decide, less the original's part of it, is the largest variance
  # that the mean of the replication's blocks may have.
  variance_here <- rows$scatter_here ^ 2 / rows$n_here
  max_error <- (-log(1 - effect) - allowance) / (quantile + power_quantile)
  max_variance_here <- max_error ^ 2 - (rows$se ^ 2 - variance_here)
  total_blocks <- ifelse(max_variance_here > 0,
                         ceiling(rows$scatter_here ^ 2 / max_variance_here), NA)
  rows$more <- ifelse(rows$outcome == "undecided", pmax(total_blocks - rows$n_here, 1), NA_real_)
  rows
}

#' Compare all ratios to native of an original with the ratios of a replication
#'
#' reproduction.csv has the columns of the result.
#'
#' @param original,replication lists of read_side; replication is NULL if nothing was measured
#' @param omitted data frame: environment and workload ("" for any), reason
#' @param effect the smallest change that has to be found, as a share
#' @return data frame, one row for each headline series of each environment of the original: the
#'   columns of judge_replications, environment, label, workload, metric, series, question, differs
#'   (parameters and layers that are not the same), and why (the reason if the outcome is
#'   "undecided" or "not testable here"); NULL if there are no such series
compare_replication <- function(original, replication, omitted, effect) {
  ratios <- select_ratios(original)
  if (NROW(ratios) == 0) return(NULL)
  ratios_here <- select_ratios(replication)
  invalid <- unlist(lapply(c(original$sessions, replication$sessions), `[[`, "invalid"))
  find_differences <- function(...) ""
  if (!is.null(replication)) find_differences <- make_difference_finder(original, replication)
  series_keys <- make_keys(ratios, RATIO_KEYS)
  rows <- stack_rows(lapply(unique(series_keys), function(key) {
    runs <- ratios[series_keys == key, ]
    # All rows of a series have the same values in the columns that are used of the first one.
    series <- runs[1, ]
    partner <- find_repeated_series(runs, ratios, ratios_here)
    reason <- ""
    if (series$workload %in% invalid) {
      reason <- "its sizes break a rule: see docs/sizes.md"
    } else if (is.null(partner)) {
      reason <- explain_omission(series, omitted, replication)
    }
    cbind(series[c("environment", "label", "workload", "metric", "series", "question")],
          differs = find_differences(series$environment, series$workload),
          predict_replication(runs, if (reason == "") partner else runs[0, ]), reason = reason,
          row.names = NULL)
  }))
  has_partner <- rows$reason == ""
  # Rows without a partner have no part in the shared error rate: they are judged apart, which only
  # adds the columns.
  rows$why[!has_partner] <- ""
  rows_with_partner <- judge_replications(rows[has_partner, ], effect)
  other_rows <- judge_replications(rows[!has_partner, ], effect)
  is_due <- other_rows$reason == NOT_YET
  other_rows$outcome <- ifelse(is_due, "undecided", "not testable here")
  other_rows$more <- rep(NA_real_, nrow(other_rows))
  other_rows$why <- other_rows$reason
  rows <- rbind(rows_with_partner, other_rows)
  rows <- rows[order(match(rows$workload, ratios$workload)), setdiff(names(rows), "reason")]
  rownames(rows) <- NULL
  rows
}

# The columns that identify the ratios of a series.
RATIO_KEYS <- c("environment", "workload", "metric", "unit", "factors")

# Selects the headline ratios to native of a side: the rows of its values that have a share.
# side: list of read_side; NULL gives NULL.
select_ratios <- function(side) {
  rows <- side$values
  if (is.null(rows)) return(NULL)
  rows[rows$headline & rows$environment != NATIVE & !rows$emulated & !is.na(rows$share), ]
}

# Returns the rows of a replication that repeat a series of the original; NULL if there are none.
# Factors may follow the size of the machine.  So if both sides have a single series of a metric,
# one repeats the other although their factors differ.
# runs: rows of the series, at least one.
# ratios: rows of select_ratios of the original.
# ratios_here: rows of select_ratios of the replication, or NULL.
find_repeated_series <- function(runs, ratios, ratios_here) {
  if (is.null(ratios_here)) return(NULL)
  # Keys are equal only between rows with the same columns of factors, and so of one table.
  all_rows <- stack_rows(list(runs, ratios_here))
  runs <- all_rows[seq_len(nrow(runs)), ]
  ratios_here <- all_rows[-seq_len(nrow(runs)), ]
  select_equal <- function(rows, columns) {
    rows[make_keys(rows, columns) == make_keys(runs[1, ], columns), ]
  }
  partner <- select_equal(ratios_here, RATIO_KEYS)
  if (nrow(partner) > 0) return(partner)
  without_factors <- setdiff(RATIO_KEYS, "factors")
  partner <- select_equal(ratios_here, without_factors)
  is_single <- function(rows) nrow(unique(rows[list_factor_columns(rows)])) == 1
  if (nrow(partner) == 0 || !is_single(partner)) return(NULL)
  if (is_single(select_equal(ratios, without_factors))) partner
}

# Returns a clause that explains why a series of the original was not repeated: the reason of the
# first row of `omitted` that fits, else NOT_YET or that it was not measured.
# series: data frame of one row with environment and workload.
# omitted, replication: parameters of compare_replication.
explain_omission <- function(series, omitted, replication) {
  fits <- omitted$environment %in% c("", series$environment) &
    omitted$workload %in% c("", series$workload)
  if (any(fits)) return(omitted$reason[fits][[1]])
  is_measured <- function(record) {
    record$environment == series$environment && record$workload == series$workload
  }
  is_due <- !is.null(replication) && length(Filter(is_measured, replication$records)) == 0
  if (is_due) NOT_YET else "it was not measured"
}

# The reason of a series that can still be measured.
NOT_YET <- "not measured yet: the same command goes on"

# Returns for each claim whether an environment that it needs was not measured, but still can be.
# rows: rows of test_claims, with the original's values.
# published, omitted, replication: parameters of compare_claims.
is_claim_due <- function(rows, published, omitted, replication) {
  vapply(seq_len(nrow(rows)), function(i) {
    name <- rows$workload[[i]]
    workloads <- unlist(published$workload_groups[[name]] %or% name)
    if (identical(workloads, "*")) workloads <- names(replication$plan$workloads)
    environments <- setdiff(c(rows$environment[[i]], rows$reference[[i]]), "")
    pairs <- expand.grid(environment = environments, workload = workloads,
                         stringsAsFactors = FALSE)
    reasons <- lapply(seq_len(nrow(pairs)), function(j) {
      explain_omission(pairs[j, ], omitted, replication)
    })
    NOT_YET %in% reasons
  }, NA)
}

#' Compare the verdicts on claims of an original with the verdicts of a replication
#'
#' Only claims that the original decided are listed.  A claim agrees if it is contradicted on both
#' sides or on neither, and differs if it is contradicted on one side only.  It is undecided if the
#' replication does not decide it.
#'
#' @param published list as in published/claims.json
#' @param original list of read_results
#' @param replication,omitted see compare_replication; replication has one session
#' @return data frame, one row for each claim: id, statement, environment, reference, series; there,
#'   there_low, there_high, verdict_there (of the original); here, here_low, here_high, n_here,
#'   verdict_here (of the replication); outcome, why; NULL if there are no such claims
compare_claims <- function(published, original, replication, omitted) {
  rows_there <- test_claims(published, original$tidy, make_claim_context(original))
  decisive_verdicts <- c("reproduced", "same direction", "other size", "contradicted")
  rows_there <- rows_there[rows_there$verdict %in% decisive_verdicts, ]
  if (NROW(rows_there) == 0) return(NULL)
  # Claims that were not tested here keep these values.
  rows_here <- rows_there
  rows_here$verdict <- "not tested"
  rows_here$because <- "it was not measured"
  rows_here[c("ratio", "low", "high", "n")] <- NA_real_
  if (!is.null(replication)) {
    session <- replication$sessions[[1]]
    rows <- test_claims(published, session$tidy, make_claim_context(session))
    # A claim may have a second row, for a product that stands in.
    partners <- match(paste(rows_there$id, rows_there$transferred),
                      paste(rows$id, rows$transferred))
    rows_here[!is.na(partners), ] <- rows[partners[!is.na(partners)], ]
  }
  # The other decisive verdicts differ only in how the ratio compares with the published value.
  is_contradicted <- function(rows) rows$verdict == "contradicted"
  is_same <- is_contradicted(rows_here) == is_contradicted(rows_there)
  outcome <- ifelse(is_same, "agrees", "differs")
  outcome[!rows_here$verdict %in% decisive_verdicts] <- "undecided"
  is_untested <- rows_here$verdict == "not tested"
  is_due <- is_untested & rows_here$reason %in% c("workload", "environment") &
    is_claim_due(rows_there, published, omitted, replication)
  rows_here$because[is_due] <- NOT_YET
  outcome[is_untested & !is_due] <- "not testable here"
  data.frame(rows_there[c("id", "statement", "environment", "reference", "series")],
             there = rows_there$ratio, there_low = rows_there$low, there_high = rows_there$high,
             verdict_there = rows_there$verdict, here = rows_here$ratio, here_low = rows_here$low,
             here_high = rows_here$high, n_here = rows_here$n, verdict_here = rows_here$verdict,
             outcome = outcome, why = rows_here$because, row.names = NULL)
}

#' Summarise a replication in an outcome, which decides the exit status, and in sentences
#'
#' @param rows data frame of compare_replication, or NULL
#' @param claims data frame of compare_claims, or NULL
#' @return list: outcome ("differs" if any row or claim differs, else "undecided" if any is
#'   undecided, else "agrees" if any agrees, else "not testable here") and text (sentences that
#'   count the outcomes)
summarise_replication <- function(rows, claims) {
  outcomes <- c(rows$outcome, claims$outcome)
  # The first of these that occurs decides.
  ranking <- c("differs", "undecided", "agrees", "not testable here")
  # Describes how often each outcome occurs, for example "Of 3 claims, 2 agree, 1 undecided."
  # noun: for one of the rows, in the singular.
  describe_outcomes <- function(rows, noun) {
    if (NROW(rows) == 0) return(NULL)
    counts <- table(factor(rows$outcome, REPLICATION_OUTCOMES))
    counts <- counts[counts > 0]
    # "2 agree", but "2 undecided".
    verbs <- sub("^(agree|differ)s$", "\\1", names(counts))
    paste0("Of ", format_count(nrow(rows), noun), ", ", paste(counts, verbs, collapse = ", "), ".")
  }
  list(outcome = c(intersect(ranking, outcomes), "not testable here")[[1]],
       text = paste(c(describe_outcomes(rows, "comparison"), describe_outcomes(claims, "claim"),
                      if (length(outcomes) == 0) "The original holds no ratio to native."),
                    collapse = " "))
}

#' Describe the outcome of each row in a few words, and how many blocks would decide it if undecided
#'
#' @param rows data frame of compare_replication, with its columns outcome, change, why, more and
#'   detectable
#' @return strings, one for each row, for the terminal and the page: for example "agrees: +0.4 %" or
#'   "undecided: fewer than 3 blocks"
describe_replications <- function(rows) {
  change <- paste0(sub("^-", "\u2212", sprintf("%+.1f", 100 * (rows$change - 1))), SPACE, "%")
  forecasts <- ifelse(is.na(rows$more), "no number of blocks here would decide it",
                      paste("about", rows$more, "more blocks here would decide it"))
  forecasts <- paste0(forecasts, "; a change of ", format_share(rows$detectable, 1),
                      " would be found now")
  reasons <- ifelse(rows$why != "", rows$why, forecasts)
  texts <- paste0(rows$outcome, ": ", reasons)
  agrees <- rows$outcome == "agrees"
  differs <- rows$outcome == "differs"
  texts[agrees] <- paste0("agrees: ", change[agrees])
  texts[differs] <- paste0("differs by ", change[differs])
  texts
}

#' Format the card of a replication as Markdown, to be pasted into an issue or a README
#'
#' @param rows data frame of compare_replication, or NULL
#' @param claims data frame of compare_claims, or NULL
#' @param outcome list of summarise_replication
#' @param request list: name, sha256 and command of the original; logs (the digest of all logs here)
#' @param facts a sentence about the machine and the date
#' @return lines of card.md
format_card <- function(rows, claims, outcome, request, facts) {
  # Formats rows of the table; the arguments are its columns.
  format_rows <- function(statements, there, here, outcomes) {
    if (length(statements) == 0) return(NULL)
    paste0("| ", escape_text(statements), " | ", there, " | ", here, " | ", outcomes, " |")
  }
  # Formats the ratios of one side, "there" or "here", with their intervals.
  format_shares <- function(rows, side) {
    format_share_interval(rows[[side]], rows[[paste0(side, "_low")]], rows[[paste0(side, "_high")]])
  }
  digest <- if (request$sha256 == "") "" else paste0(" (SHA-256 `", request$sha256, "`)")
  c(paste0("**", escape_text(request$name), ", measured again.** ", outcome$text), "",
    "| ratio to native, or claim | there [95\u00a0%] | here [95\u00a0%] | outcome |",
    "| --- | --- | --- | --- |",
    format_rows(paste0(rows$label, ", ", rows$series), format_shares(rows, "there"),
                format_shares(rows, "here"), rows$outcome),
    format_rows(claims$statement, paste(format_shares(claims, "there"), claims$verdict_there),
                paste(format_shares(claims, "here"), claims$verdict_here), claims$outcome),
    "", paste0(facts, " Logs here: SHA-256 `", request$logs, "`. Original: ",
               escape_text(request$name), digest, "; check it by `", request$command, "`."))
}
