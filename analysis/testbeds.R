# Compares sides: testbeds, or one testbed at several dates.  Every side is compared with the first,
# and with the side before it.  An environment is judged by the change of its ratio to native, since
# native is the control of host, day and clock.  Native itself is judged by its values.

#' Read one side of a comparison
#'
#' @param entry list, as strata/archive/compare.py writes it: name, source (the file's name), sha256
#'   (of an archive, else "") and results (a folder for each session of the side)
#' @return list: name, source, sha256; plan (of the first session); valid (whether the scale can
#'   answer a question); records; sessions (plan, image and records of each); values (tidy rows with
#'   emulated, session, share and with_native: see list_session_values)
#' @section Errors: the sessions have different scales
read_side <- function(entry) {
  sessions <- lapply(entry$results, read_session)
  require_one_scale(sessions, rep(entry$name, length(sessions)))
  combine_sessions(sessions, entry)
}

# Reads a session of a side.
# folder: path of results, with tidy/ and laps/.
# Returns the list of read_results with `image`: the facts of image.json, and the packages of
# image-manifest.json, as far as these files exist.
read_session <- function(folder) {
  session <- read_results(folder)
  read_image_file <- function(name) {
    path <- file.path(folder, name)
    if (file.exists(path)) jsonlite::read_json(path)
  }
  packages <- read_image_file("image-manifest.json")$packages
  session$image <- c(read_image_file("image.json"), packages = list(packages))
  session
}

# Makes a side of its sessions, in the form of read_side.
# sessions: lists of read_session, at least one.
# entry: list of name, source and sha256.
combine_sessions <- function(sessions, entry) {
  # Sessions of two folders are never the same, even if they began in the same second.  So the
  # number of the folder becomes a part of the name.
  values <- stack_rows(lapply(seq_along(sessions), function(number) {
    rows <- list_session_values(sessions[[number]])
    rows$session <- paste(rows$session, rep(number, nrow(rows)))
    rows
  }))
  records <- unlist(lapply(sessions, `[[`, "records"), recursive = FALSE)
  c(entry[c("name", "source", "sha256")],
    list(plan = sessions[[1]]$plan, valid = sessions[[1]]$valid, records = unname(records),
         sessions = sessions, values = values))
}

# Lists the tidy rows of a session, emulated ones too.
# session: list of read_session.
# Returns the rows with the columns emulated, share (performance as a share of native's in the same
# block; NA for a run that is not paired) and with_native (whether native was measured in the same
# series).
list_session_values <- function(session) {
  # A scalar cannot be bound to a table without rows.
  rows <- rbind(cbind(session$tidy, emulated = rep(FALSE, nrow(session$tidy))),
                cbind(session$emulated, emulated = rep(TRUE, nrow(session$emulated))))
  pairs <- pair_with_native(session$tidy)
  keys <- c("environment", "workload", "metric", "factors", "repetition")
  pair_rows <- match(make_keys(rows, keys), make_keys(pairs, keys))
  rows$share <- if (is.null(pairs)) rep(NA_real_, nrow(rows)) else pairs$ratio[pair_rows]
  rows$share[rows$emulated] <- NA_real_
  native <- rows[rows$environment == NATIVE, ]
  rows$with_native <- !rows$emulated & rows$environment != NATIVE &
    make_keys(rows) %in% make_keys(native)
  rows
}

# Stops unless all results are of one scale.
# results: lists with `plan`, at least one.
# names: a name for each, for the message.
require_one_scale <- function(results, names) {
  scales <- vapply(results, function(result) result$plan$scale, "")
  positions <- which(scales != scales[[1]])
  if (length(positions) > 0) {
    stop(names[[1]], " is at scale ", scales[[1]], " and ", names[[positions[[1]]]],
         " at scale ", scales[[positions[[1]]]], "; only runs of one scale can be compared",
         call. = FALSE)
  }
}

# The estimates by which a row may be judged: values of the column `basis` of comparison.csv.
BY_NATIVE <- "ratio to native"
BY_VALUE <- "value"

#' Compare all sides: each with the first, and with the side before it
#'
#' Sides are independent samples, since no block has runs of both.  The samples are runs or blocks,
#' or the means of sessions if all sides have enough of them.  An emulated machine is compared with
#' emulated ones only.  Only headline series are judged, and all verdicts share one error rate.
#'
#' @param sides list of read_side
#' @param effect the smallest difference that matters, as a share
#' @return data frame: from, to, emulated, environment, workload, metric, unit, better, the
#'   columns of factors, series, label, question, headline; n_from, mean_from, n_to, mean_to
#'   (geometric means of the values), ratio (of performance), low, high; blocks_from, share_from,
#'   blocks_to, share_to (performance as a share of native's), change (of that share), change_low,
#'   change_high; basis (BY_NATIVE or BY_VALUE), low_all, high_all (the interval that decides), why,
#'   more (how many further blocks or sessions on each side would decide), differs (parameters and
#'   layers that are not the same), outcome ("" of rows that are not judged)
#' @section Errors: the sides have different scales
compare_sides <- function(sides, effect = MARGIN) {
  require_one_scale(sides, vapply(sides, `[[`, "", "name"))
  later <- seq_along(sides)[-1]
  pairs <- unique(rbind(data.frame(from = 1, to = later), data.frame(from = later - 1, to = later)))
  rows <- stack_rows(Map(function(from, to) {
    compare_two_sides(sides[[from]], sides[[to]])
  }, pairs$from, pairs$to))
  decisive <- get_decisive_estimates(rows)
  has_interval <- !is.na(decisive$low)
  keys <- make_keys(rows, c("from", "to", "emulated", "environment", "workload"))
  keys[!rows$headline | !has_interval] <- NA
  groups <- match(keys, unique(keys[!is.na(keys)]))
  # Sessions are independent, and fewer of them are enough than of blocks.
  min_n <- if (has_several_sessions(sides)) INTERVAL_BLOCKS else VERDICT_BLOCKS
  estimates <- cbind(decisive, rows[c("se", "df", "n")])
  verdicts <- add_verdicts(estimates, groups, effect, min_n = min_n)
  rows[c("low_all", "high_all", "more")] <- verdicts[c("low_all", "high_all", "more")]
  rows$outcome <- ifelse(verdicts$verdict == "different", verdicts$direction, verdicts$verdict)
  rows$outcome[rows$headline & !has_interval] <- "no interval"
  rows[setdiff(names(rows), c("se", "df", "n"))]
}

#' Get the estimate by which each row is judged: the change of its ratio to native, or its ratio
#'
#' @param rows data frame of compare_sides
#' @return data frame of ratio, low, high and why, a row for each of `rows`
get_decisive_estimates <- function(rows) {
  by_native <- rows$basis == BY_NATIVE
  data.frame(ratio = ifelse(by_native, rows$change, rows$ratio),
             low = ifelse(by_native, rows$change_low, rows$low),
             high = ifelse(by_native, rows$change_high, rows$high), why = rows$why)
}

# Returns whether each side has enough sessions for an interval, so that the samples are sessions
# and not blocks.
# sides: lists of read_side.
has_several_sessions <- function(sides) {
  counts <- vapply(sides, function(side) length(unique(side$values$session)), 1L)
  all(counts >= INTERVAL_BLOCKS)
}

# The columns by which the series of two sides are matched; "factors" stands for the columns of all
# factors.
SIDE_KEYS <- c("emulated", "environment", "workload", "metric", "unit", "better", "factors")

# Compares two sides in every series of either.
# first, second: lists of read_side.
# Returns the rows of compare_sides before their verdicts, with n, se and df of the estimate that
# decides.  A series that one side lacks has a row, too, with the reason in `why`.
compare_two_sides <- function(first, second) {
  sides <- list(first, second)
  side_names <- c(first$name, second$name)
  by_session <- has_several_sessions(sides)
  tables <- lapply(sides, `[[`, "values")
  # Keys are comparable only between rows of one table, which has the factors of both sides.
  all_rows <- stack_rows(tables)
  all_keys <- make_keys(all_rows, SIDE_KEYS)
  side_keys <- split(all_keys, factor(rep(1:2, vapply(tables, nrow, 1L)), 1:2))
  find_differences <- make_difference_finder(first, second)
  stack_rows(lapply(which(!duplicated(all_keys)), function(i) {
    series <- all_rows[i, ]
    runs <- Map(function(rows, keys) rows[keys == all_keys[[i]], ], tables, side_keys)
    estimates <- compare_series(runs, series$better == "lower", by_session)
    is_absent <- vapply(runs, function(rows) all(is.na(rows$value)), NA)
    if (any(is_absent)) estimates$why <- paste("measured on", side_names[!is_absent], "alone")
    cbind(data.frame(from = first$name, to = second$name),
          series[c(expand_factors(SIDE_KEYS, series), "series", "label", "question", "headline")],
          estimates, differs = find_differences(series$environment, series$workload),
          row.names = NULL)
  }))
}

# Compares the runs of one series on two sides.
# runs: list of two data frames of list_session_values.
# is_cost: whether lower values are better.
# by_session: whether the samples are sessions (has_several_sessions).
# Returns the columns n_from to why of compare_sides, with n, se and df of the estimate that
# decides.
compare_series <- function(runs, is_cost, by_session) {
  values <- lapply(runs, select_sample_values, "value", by_session)
  # The ratio is of performance: for a cost, the first side is divided by the second.
  value <- compare_side_samples(if (is_cost) values else rev(values), by_session, "runs")
  shares <- lapply(runs, select_sample_values, "share", by_session)
  change <- compare_side_samples(rev(shares), by_session, "blocks")
  by_native <- all(vapply(runs, function(rows) any(rows$with_native), NA))
  decisive <- if (by_native) change else value
  data.frame(n_from = nrow(runs[[1]]), mean_from = compute_geometric_mean(values[[1]]),
             n_to = nrow(runs[[2]]), mean_to = compute_geometric_mean(values[[2]]),
             value[c("ratio", "low", "high")],
             blocks_from = sum(!is.na(runs[[1]]$share)),
             share_from = compute_geometric_mean(shares[[1]]),
             blocks_to = sum(!is.na(runs[[2]]$share)),
             share_to = compute_geometric_mean(shares[[2]]),
             change = change$ratio, change_low = change$low, change_high = change$high,
             basis = if (by_native) BY_NATIVE else BY_VALUE, why = decisive$why,
             decisive[c("n", "se", "df")])
}

# Selects the sample of one side: the values of a column without NA, or the geometric mean of each
# session with at least INTERVAL_BLOCKS such values.
# runs: rows of list_session_values.
# column: "value" or "share".
# by_session: whether the sample is of sessions.
# Returns numbers; none if no run, or no session, has enough values.
select_sample_values <- function(runs, column, by_session) {
  runs <- runs[!is.na(runs[[column]]), ]
  values <- runs[[column]]
  if (!by_session) return(values)
  counts <- table(runs$session)
  has_enough <- runs$session %in% names(counts)[counts >= INTERVAL_BLOCKS]
  if (!any(has_enough)) return(values[0])
  as.vector(tapply(values[has_enough], runs$session[has_enough], compute_geometric_mean))
}

# Returns the geometric mean of values; NA if there are none, or if one of them is not above 0.
compute_geometric_mean <- function(values) {
  is_positive <- (values > 0) %in% TRUE
  if (length(values) == 0 || !all(is_positive)) NA_real_ else exp(mean(log(values)))
}

# Estimates the ratio of the first of two samples to the second; returns the row of compare_samples.
# samples: list of two numeric vectors.
# by_session: whether their values are of sessions, which are independent.
# items: the noun for the values if they are not of sessions, for example "blocks".
compare_side_samples <- function(samples, by_session, items) {
  if (!by_session) return(compare_samples(samples[[1]], samples[[2]], items = items))
  compare_samples(samples[[1]], samples[[2]], items = "sessions",
                  estimate_error = estimate_independent_error)
}

# Makes a function that names the differences between the cells of two sides.
# first, second: lists of read_side.
# Returns a function of an environment and a workload, which returns the names of the parameters
# that differ, and "layers" if these do, joined by commas; "" if a side has no such cell.  It
# compares the first cell of each side, since all cells of an environment and workload have the same
# parameters in a plan.
make_difference_finder <- function(first, second) {
  sides <- list(first, second)
  cell_keys <- lapply(sides, function(side) {
    vapply(side$records, function(record) paste(record$environment, record$workload), "")
  })
  function(environment, workload) {
    key <- paste(environment, workload)
    records <- Map(function(side, keys) side$records[keys == key], sides, cell_keys)
    if (any(lengths(records) == 0)) return("")
    cells <- lapply(records, `[[`, 1)
    parameters <- lapply(cells, `[[`, "parameters")
    keys <- sort(as.character(list_differing_keys(parameters)), method = "radix")
    same_layers <- identical(cells[[1]]$system$layers, cells[[2]]$system$layers)
    paste(c(keys, if (!same_layers) "layers"), collapse = ", ")
  }
}

#' List the facts of provenance that differ between sides, for provenance.csv
#'
#' @param sides list of read_side; their names differ
#' @return data frame, one row for each fact that differs: item (its name, for example
#'   "host.kernel"), and a column for each side, named by it, with all distinct values of the fact,
#'   separated by " | "; "not available" where a side lacks the fact
list_provenance_differences <- function(sides) {
  facts <- lapply(sides, collect_provenance_facts)
  items <- sort(unique(unlist(lapply(facts, names))), method = "radix")
  values <- lapply(facts, function(side_facts) {
    value <- unname(side_facts[items])
    ifelse(is.na(value), "not available", value)
  })
  names(values) <- vapply(sides, `[[`, "", "name")
  rows <- data.frame(item = items, values, check.names = FALSE)
  distinct_values <- apply(rows[-1], 1, unique, simplify = FALSE)
  rows[lengths(distinct_values) > 1, ]
}

# Collects the facts of a side's provenance from its plans, images and records.
# side: list of read_side.
# Returns strings, named by the keys that lead to a fact, which unlist joins by points, for example
# "host.kernel".  Distinct values of a fact are sorted and joined by " | ".
collect_provenance_facts <- function(side) {
  list_record_facts <- function(record) {
    inside <- record$observed$inside
    # The control group is named after the system, whose name is new in every block.
    inside$cgroup <- NULL
    facts <- list(record$observed$host$static, record$observed$client, inside,
                  list(layers = record$system$layers), record$parameters,
                  list(revision = record$source$revision))
    stats::setNames(facts, c("host", "client", record$environment, record$environment,
                             record$workload, "source"))
  }
  list_session_facts <- function(session) {
    plan_keys <- c("machine", "seed", "order", "repetitions", "image")
    c(session$plan[intersect(plan_keys, names(session$plan))],
      list(built = session$image),
      unlist(lapply(unname(session$records), list_record_facts), recursive = FALSE))
  }
  facts <- unlist(lapply(side$sessions, list_session_facts))
  join_values <- function(values) paste(sort(unique(values)), collapse = " | ")
  unlist(tapply(as.character(facts), names(facts), join_values))
}

#' Summarise the outcome of a comparison
#'
#' The rows of the other environments decide it.  Native's rows are counted apart, since they show
#' changes of the machine; they decide only if nothing else was compared.  outcome.json is the list.
#'
#' @param rows data frame of compare_sides
#' @param sides list of read_side
#' @param effect the smallest difference that matters, as a share, for example 0.02
#' @return list: outcome ("nothing to compare" if no row has an interval, else "difference" if any
#'   row differs, "equivalent" if all rows are, "undecided" otherwise), text (sentences), compared
#'   (number of rows with a verdict), a number of rows for each of OUTCOMES, and native (a list of
#'   these numbers for native's rows; missing if there are none or they decide)
summarise_comparison <- function(rows, sides, effect) {
  rows <- rows[rows$outcome != "", ]
  is_native <- rows$environment == NATIVE & !rows$emulated
  decisive_rows <- rows[!is_native, ]
  # Without a verdict on another environment, native's rows decide with all others.
  if (all(decisive_rows$outcome == "no interval")) {
    is_native <- rep(FALSE, nrow(rows))
    decisive_rows <- rows
  }
  native <- rows[is_native, ]
  count_outcomes <- function(rows) as.list(table(factor(rows$outcome, OUTCOMES)))
  counts <- count_outcomes(decisive_rows)
  verdict_count <- nrow(decisive_rows) - counts[["no interval"]]
  # Each later assignment overrules the earlier ones.
  outcome <- "undecided"
  if (counts$equivalent == verdict_count) outcome <- "equivalent"
  if (counts$slower + counts$faster > 0) outcome <- "difference"
  if (verdict_count == 0) outcome <- "nothing to compare"
  text <- describe_outcome(decisive_rows, sides, effect)
  if (any(native$outcome != "no interval")) {
    text <- c(text, paste0("Native's own values, which tell of the machine and not of an ",
                           "environment: ", describe_all_sides(native, sides), "."))
  }
  c(list(outcome = outcome, text = paste(text, collapse = " "), compared = verdict_count), counts,
    if (nrow(native) > 0) list(native = count_outcomes(native)))
}

# Describes the rows that decide in sentences: how many differ on each side, how many are undecided,
# how many more blocks would decide these, and how many have no interval.
# For example "Changes of the ratio to native by more than 2 %: b is equivalent in all 3 series."
# rows: judged rows of compare_sides, at least one.
# sides: lists of read_side.
# effect: the smallest difference that matters, as a share.
# Returns a character vector, one element for each sentence.
describe_outcome <- function(rows, sides, effect) {
  margin <- paste0(format(100 * effect), " %")
  rows_with_interval <- rows[rows$outcome != "no interval", ]
  no_interval_count <- nrow(rows) - nrow(rows_with_interval)
  if (nrow(rows_with_interval) == 0) {
    reason <- names(sort(-table(rows$why)))[[1]]
    return(paste0("Of ", no_interval_count, " rows none has an interval (most often: ", reason,
                  "): nothing can be said."))
  }
  undecided_rows <- rows_with_interval[rows_with_interval$outcome == "undecided", ]
  unit <- if (has_several_sessions(sides)) "sessions" else "blocks"
  forecast <- describe_samples_needed(undecided_rows$more, unit)
  undecided_count <- paste(nrow(undecided_rows), "of", nrow(rows_with_interval), "undecided: ")
  by_value <- rows_with_interval$basis == BY_VALUE
  if (nrow(undecided_rows) == nrow(rows_with_interval)) {
    text <- paste0(undecided_count, "nothing can be said of changes of more than ", margin, "; ",
                   forecast, ".")
  } else {
    noun <- "ratio to native"
    if (any(by_value)) noun <- "ratio to native, or without native of the value,"
    if (all(by_value)) noun <- "performance"
    text <- c(paste0("Changes of the ", noun, " by more than ", margin, ": ",
                     describe_all_sides(rows, sides), "."),
              if (nrow(undecided_rows) > 0) paste0(undecided_count, forecast, "."))
  }
  c(text, if (no_interval_count > 0) paste0(no_interval_count, " more without an interval."),
    if (any(by_value & rows_with_interval$environment != NATIVE & !rows_with_interval$emulated)) {
      "Rows by value have no native on both sides: a slower host looks like a slower environment."
    })
}

# A comparison that needs this many further blocks or more is said to lie at the margin: nobody
# would measure them.
MARGINAL_BLOCKS <- 10000

# Says in a clause how many more blocks or sessions would decide, for example "about 40 more blocks
# on each side would tell for half of them, about 900 for all".
# more: the number for each undecided row; NA if no number is enough.
# unit: "blocks" or "sessions".
# Numbers are rounded to two digits.
describe_samples_needed <- function(more, unit) {
  counts <- more[!is.na(more) & more < MARGINAL_BLOCKS]
  if (length(counts) == 0) {
    return(paste("they lie at the margin, where no number of", unit, "tells"))
  }
  format_about <- function(number) paste("about", format(signif(number, 2), big.mark = ","))
  # The number that is enough for half of the rows.
  half <- stats::quantile(counts, 0.5, type = 1, names = FALSE)
  would <- paste("more", unit, "on each side would tell")
  if (length(counts) < length(more)) {
    return(paste(format_about(max(counts)), would, "for", length(counts), "of them, and the others",
                 "lie at the margin, where no number tells"))
  }
  # One number is named if half of the rows and all rows take nearly the same.
  if (max(counts) <= 1.5 * half) return(paste(format_about(max(counts)), would))
  paste0(format_about(half), " ", would, " for half of them, ", format_about(max(counts)),
         " for all")
}

# Describes in clauses how every side compares with the one before it, and with the first.
# For example "b is slower in 1 of 2 series; c is equivalent in all 2 series".
# rows: rows of compare_sides.
# sides: lists of read_side in their order; their names differ.
describe_all_sides <- function(rows, sides) {
  side_names <- vapply(sides, `[[`, "", "name")
  consecutive <- match(rows$from, side_names) == match(rows$to, side_names) - 1
  describe_sides <- function(rows) {
    clauses <- vapply(unique(rows$to), function(name) {
      describe_side(name, rows$outcome[rows$to == name])
    }, "")
    paste(trimws(clauses), collapse = "; ")
  }
  text <- describe_sides(rows[consecutive, ])
  if (all(consecutive)) return(text)
  paste0(text, "; compared with ", side_names[[1]], ": ", describe_sides(rows[!consecutive, ]))
}

# Describes the outcomes of one side's series in a clause, for example "b is slower in 1 of 2 series
# (1 undecided)".
# name: the side's name.
# outcomes: one of OUTCOMES for each series; series without an interval are not counted.
describe_side <- function(name, outcomes) {
  differences <- c("slower", "faster")
  others <- c("equivalent", "undecided")
  counts <- c(table(factor(outcomes, OUTCOMES)))[c(differences, others)]
  if (sum(counts) == 0) return(paste(name, "has no series that can be compared"))
  # Joins the outcomes that occur, for example "3 equivalent, 1 undecided".
  # template: for sprintf; %1$d is a count and %2$s its outcome.
  join_counts <- function(outcomes, template, separator) {
    outcomes <- outcomes[counts[outcomes] > 0]
    paste(sprintf(template, counts[outcomes], outcomes), collapse = separator)
  }
  series <- paste(sum(counts), "series")
  other_counts <- join_counts(others, "%1$d %2$s", ", ")
  if (other_counts != "") series <- paste0(series, " (", other_counts, ")")
  difference_counts <- join_counts(differences, "%2$s in %1$d", " and ")
  if (difference_counts != "") return(paste(name, "is", difference_counts, "of", series))
  all_series <- if (sum(counts) == 1) "its only series" else paste("all", sum(counts), "series")
  if (counts[["undecided"]] == 0) return(paste(name, "is equivalent in", all_series))
  if (counts[["equivalent"]] > 0) return(paste(name, "is not found to differ in any of", series))
  paste(name, "is undecided in", all_series)
}
