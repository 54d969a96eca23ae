# Compares everything that the original printed, its values and the claims of its text, with what
# its raw logs give.

#' Read the values of the raw logs, and compare the printed values and the claims with them
#'
#' paper/reanalysis.Rmd relies on the names of the entries.
#'
#' @param folder path of the folder with the tables of `python3 -m strata reanalyse`
#' @param published path of the folder of the printed values and of the claims
#' @return list: tidy (values of the runs that the original shows), refused (lines or files of the
#'   logs that cannot be used), source (revision of the logs, and number of files), differences
#'   (table of compare_printed_values), claims (table of test_original_claims)
read_reanalysis <- function(folder, published) {
  tidy <- read_table(file.path(folder, "tidy.csv"), text = "unit")
  tidy <- tidy[tidy$selection == "paper", ]
  printed <- read_printed_values(published)
  list(tidy = tidy, refused = read_table(file.path(folder, "unreadable.csv")),
       source = jsonlite::read_json(file.path(folder, "source.json")),
       differences = compare_printed_values(printed, tidy),
       claims = test_original_claims(published, printed, tidy))
}

#' Read the printed values: Table I with its digits, and the values that were read off the figures
#'
#' @param folder path of the printed values
#' @return data frame, one row for each printed number: place, workload, environment, metric, unit,
#'   columns of factors, statistic ("value", "mean", "sd", "min", "max" or "deviation_percent"), n
#'   (number of values behind it), published (string with the printed digits), tolerance (half of
#'   the last digit, or the precision of reading a figure), doubted (whether the raw logs contradict
#'   the name of its environment)
read_printed_values <- function(folder) {
  figures <- read_table(file.path(folder, "ibm-figures.csv"), text = c("published", "unit"))
  # The first column is the figure's number.
  figures <- cbind(place = paste("Figure", figures$figure), figures[-1])
  table_rows <- jsonlite::read_json(file.path(folder, "ibm-table1.json"))$rows
  values <- stack_rows(c(lapply(table_rows, read_table_row), list(figures)))
  configurations <- jsonlite::read_json(file.path(folder, "ibm-tables.json"))$configurations
  has_doubt <- function(configuration) !is.null(configuration$doubt)
  doubtful_names <- vapply(Filter(has_doubt, configurations), `[[`, "", "drawn")
  values$doubted <- values$environment %in% doubtful_names
  rownames(values) <- NULL
  values
}

# The environments of Table I by their names in ibm-table1.json, and the number of runs behind each
# of its values.
TABLE_ENVIRONMENTS <- c(native = "native", docker = "docker", kvm = "vm", kvm_tuned = "vm-tuned")
TABLE_RUNS <- 10

# Reads the values of one row of Table I, in the form of read_printed_values but without `doubted`.
# row: an entry of `rows` in ibm-table1.json, whose numbers are strings with the printed digits.
read_table_row <- function(row) {
  factors <- lapply(row$conditions, as.character)
  if (length(factors) > 0) names(factors) <- paste0(FACTOR, names(factors))
  stack_rows(lapply(names(row$values), function(name) {
    printed <- vapply(row$values[[name]], as.character, "")
    statistic <- names(printed)
    unit <- ifelse(statistic == "deviation_percent", "%", row$unit)
    values <- data.frame(place = "Table I", workload = row$workload,
                         environment = TABLE_ENVIRONMENTS[[name]], metric = row$metric,
                         unit = unit, statistic = statistic, n = TABLE_RUNS, published = printed,
                         tolerance = 0.5 * 10 ^ -count_decimals(printed))
    values[names(factors)] <- factors
    values
  }))
}

# Counts the digits after the decimal point of printed numbers, which are strings: 2 for "1.50", and
# 0 without a point.
count_decimals <- function(printed) nchar(sub("^[^.]*[.]?", "", printed))

#' Compare every printed value with the value that the raw logs give
#'
#' The standard deviations of STREAM were printed with the divisor n, all others with n - 1.
#'
#' @param printed data frame of read_printed_values
#' @param tidy data frame: workload, environment, metric, columns of factors, value, file
#' @return `printed` with n_read (number of raw values), recomputed, low and high (Student's 95 %
#'   interval of a mean; NA for other statistics), difference (recomputed - printed), verdict
#'   ("agrees", "label contradicted", "differs", "incomplete" or "not available"), files (of the
#'   raw values, separated by ";")
compare_printed_values <- function(printed, tidy) {
  keys <- make_common_keys(printed, tidy)
  groups <- split(seq_len(nrow(tidy)), paste(tidy$environment, keys$tidy))
  # The figures show this metric in MB/s of 1000 KB/s, and the logs in KB/s.
  tidy$value <- tidy$value / ifelse(tidy$metric == "thread_bandwidth", 1000, 1)
  # Returns for each printed value the raw values of an environment; NULL if there are none.
  select_raw_values <- function(environment) {
    lapply(groups[paste(environment, keys$printed)], function(positions) tidy$value[positions])
  }
  samples <- select_raw_values(printed$environment)
  recomputed <- mapply(recompute_statistic, samples, select_raw_values("native"), printed$statistic,
                       printed$workload)
  half_width <- vapply(samples, compute_half_width, 0)
  half_width[printed$statistic != "mean"] <- NA
  printed$n_read <- unname(lengths(samples))
  printed$recomputed <- unname(recomputed)
  printed$low <- printed$recomputed - unname(half_width)
  printed$high <- printed$recomputed + unname(half_width)
  printed$difference <- printed$recomputed - as.numeric(printed$published)
  # A printed number agrees with each number that rounds to it, whichever way halves were rounded;
  # the factor allows for errors of floating-point numbers.
  agrees <- abs(printed$difference) <= printed$tolerance * (1 + 1e-9)
  # Each later assignment overrules the earlier ones.
  printed$verdict <- ifelse(agrees, "agrees", "differs")
  printed$verdict[agrees & printed$doubted] <- "label contradicted"
  printed$verdict[printed$n_read < printed$n] <- "incomplete"
  printed$verdict[is.na(printed$recomputed)] <- "not available"
  printed$files <- vapply(groups[paste(printed$environment, keys$printed)], function(positions) {
    paste(unique(tidy$file[positions]), collapse = ";")
  }, "")
  printed
}

# Makes keys that are equal for printed and raw values of the same workload, metric and factors.
# printed, tidy: data frames of compare_printed_values.
# Returns a list of printed and tidy: character vectors with a key for each row.
make_common_keys <- function(printed, tidy) {
  columns <- c("workload", "metric", "factors")
  # Keys are comparable only if they are made of the same columns of factors, and so of one table.
  all_rows <- stack_rows(list(printed[expand_factors(columns, printed)],
                              tidy[expand_factors(columns, tidy)]))
  keys <- make_keys(all_rows, columns)
  list(printed = utils::head(keys, nrow(printed)), tidy = utils::tail(keys, nrow(tidy)))
}

# Computes a printed statistic from raw values; NA if values that it needs are missing.
# values, native: raw values in the environment and in native, which "deviation_percent" compares.
# statistic: a value of the column `statistic` of read_printed_values.
# workload: name of the workload.
recompute_statistic <- function(values, native, statistic, workload) {
  n <- length(values)
  if (n == 0) return(NA_real_)
  # The standard deviations of STREAM have the divisor n.
  correction <- if (workload == "stream") sqrt((n - 1) / n) else 1
  deviation <- NA_real_
  if (length(native) > 0) deviation <- 100 * (mean(values) / mean(native) - 1)
  switch(
    statistic,
    value = , mean = mean(values), min = min(values), max = max(values),
    sd = stats::sd(values) * correction, deviation_percent = deviation
  )
}

#' Test the original's own claims twice: with its printed values, and with its raw logs
#'
#' @param published folder of the claims
#' @param printed data frame of read_printed_values
#' @param tidy data frame: workload, environment, metric, columns of factors, unit, value,
#'   repetition
#' @return data frame of test_claims with `source`, one row of each claim for the source "printed",
#'   then one for "raw"; n is NA for printed values, which have no error; the verdict of a tested
#'   claim is "label contradicted" if its entry has a `label`, which explains how the raw logs
#'   contradict the name of an environment
test_original_claims <- function(published, printed, tidy) {
  catalogue <- read_own_claims(published)
  means <- printed[printed$statistic %in% c("mean", "value"), ]
  # If both Table I and a figure show a value, only the first row is kept, which is the table's.
  keys <- c("workload", "environment", "metric", "factors")
  means <- means[!duplicated(make_keys(means, keys)), ]
  means$value <- as.numeric(means$published)
  # Tests all claims with values of one source, "printed" or "raw".
  test_claims_with <- function(rows, source) {
    factors <- describe_factors(rows)
    rows$series <- paste0(rows$metric, ifelse(factors == "", "", ", "), factors)
    # The keys are those of make_claim_context.  The original's machine had two sockets and 32
    # processors.
    context <- list(invalid = character(), sockets = 2, processors = 32, emulated = character(),
                    paired = FALSE, exact = source == "printed")
    claims <- test_claims(catalogue, rows, context)
    claims$source <- source
    # Printed values have no error, so that their number has no meaning.
    if (context$exact) claims$n <- NA
    claims
  }
  claims <- rbind(test_claims_with(means, "printed"), test_claims_with(tidy, "raw"))
  has_label <- function(claim) !is.null(claim$label)
  ids_with_label <- vapply(Filter(has_label, catalogue$claims), `[[`, "", "id")
  is_relabelled <- claims$id %in% ids_with_label & claims$verdict != "not tested"
  claims$verdict[is_relabelled] <- "label contradicted"
  claims
}

# Reads the original's own claims, in the form of published/claims.json.  An entry of
# ibm-own-claims.json is completed by the entry of claims.json with the same id; a key that both
# have keeps its value of ibm-own-claims.json.
# folder: path of the published data.
read_own_claims <- function(folder) {
  published <- jsonlite::read_json(file.path(folder, "claims.json"))
  catalogue <- jsonlite::read_json(file.path(folder, "ibm-own-claims.json"))
  ids <- vapply(published$claims, `[[`, "", "id")
  catalogue$publications <- published$publications
  catalogue$claims <- lapply(catalogue$claims, function(claim) {
    entry <- list()
    if (claim$id %in% ids) entry <- published$claims[[match(claim$id, ids)]]
    # These keys concern a test by today's values.
    entry[c("untestable", "performance", "note")] <- NULL
    entry[names(claim)] <- claim
    if (!is.null(claim$label)) entry$note <- claim$label
    entry
  })
  catalogue
}

# The labels of the original's environments by their names in the tables, in the order of legends.
ORIGINAL_LABELS <- c(native = "Native", docker = "Docker",
                     "docker-hostnet" = "Docker, host network",
                     "docker-hostnet-layered" = "Docker, host network, AUFS",
                     "docker-layered" = "Docker, AUFS", vm = "KVM", "vm-tuned" = "KVM, tuned")

#' Count the printed values of each place by their verdicts
#'
#' @param differences table of compare_printed_values
#' @return data frame for the paper, one row for each place and a last one for all: Place, Values
#'   (number), and a column for each verdict
tabulate_verdicts <- function(differences) {
  verdicts <- c("agrees", "label contradicted", "differs", "incomplete", "not available")
  counts <- table(factor(differences$place, unique(differences$place)),
                  factor(differences$verdict, verdicts))
  counts <- rbind(counts, All = colSums(counts))
  data.frame(Place = rownames(counts), Values = rowSums(counts), counts, check.names = FALSE,
             row.names = NULL)
}

#' Make Table I as printed and as recomputed: mean (standard deviation), deviation from native in %
#'
#' @param differences table of compare_printed_values
#' @return data frame, one row for each cell of Table I: workload, metric, environment, printed and
#'   recomputed (strings, for example "45.8 (0.21), -0.9 %"), n (the largest number of raw values),
#'   verdict (the worst of the cell's values)
tabulate_table_one <- function(differences) {
  rows <- differences[differences$place == "Table I", ]
  decimals <- count_decimals(rows$published)
  rows$rounded <- ifelse(is.na(rows$recomputed), NA, sprintf("%.*f", decimals, rows$recomputed))
  # A rounded zero has no sign: "-0.0" becomes "0.0".
  rows$rounded <- sub("^-(0([.]0*)?)$", "\\1", rows$rounded)
  # Formats the statistics of one cell, for example "45.8 (0.21), -0.9 %"; "" without a mean.
  # group: rows of the cell, one for each statistic.
  # column: "published" or "rounded", whose values are strings.
  format_cell <- function(group, column) {
    get_statistic <- function(name) group[[column]][match(name, group$statistic)]
    if (is.na(get_statistic("mean"))) return("")
    deviation <- get_statistic("deviation_percent")
    paste0(get_statistic("mean"), " (", get_statistic("sd"), ")",
           if (!is.na(deviation)) paste0(", ", deviation, SPACE, "%"))
  }
  map_groups(rows, c("workload", "metric", "environment"), function(group) {
    # In order, the worst first.
    verdicts <- c("differs", "label contradicted", "incomplete", "not available", "agrees")
    data.frame(printed = format_cell(group, "published"),
               recomputed = format_cell(group, "rounded"), n = max(group$n_read),
               verdict = verdicts[verdicts %in% group$verdict][[1]])
  })
}

#' List the printed values that the complete raw results behind them contradict
#'
#' @param differences table of compare_printed_values
#' @return data frame for the paper, one row for each value with the verdict "differs"
tabulate_contradictions <- function(differences) {
  rows <- differences[differences$verdict == "differs", ]
  width <- rows$high - rows$low
  interval <- ifelse(is.na(rows$low), "", paste0(" [", format_number(rows$low, width), ", ",
                                                 format_number(rows$high, width), "]"))
  data.frame(Place = rows$place, Workload = rows$workload,
             Environment = ORIGINAL_LABELS[rows$environment],
             Quantity = gsub("_", " ", rows$statistic), Unit = rows$unit, Printed = rows$published,
             "Recomputed [95\u00a0%]" = paste0(format_number(rows$recomputed), interval),
             n = rows$n_read, Logs = rows$files, check.names = FALSE, row.names = NULL)
}

#' List every claim with its verdicts by the printed values and by the raw logs
#'
#' Contradicted claims come first.
#'
#' @param claims table of test_original_claims, which has the same claims in the same order for the
#'   printed values and for the raw logs
#' @return data frame for the paper, one row for each claim
tabulate_own_claims <- function(claims) {
  describe_verdict <- function(rows) {
    half_width <- (rows$high - rows$low) / 2
    value <- format_number(rows$ratio, ifelse(half_width %in% 0, NA, half_width))
    low <- format_number(rows$low, half_width)
    high <- format_number(rows$high, half_width)
    interval <- ifelse(is.na(rows$n) | is.na(rows$low), "", paste0(" [", low, ", ", high, "]"))
    n <- ifelse(is.na(rows$n), "", paste0(", n = ", rows$n))
    ifelse(rows$verdict == "not tested", NO_VALUE,
           paste0(value, interval, n, ": ", rows$verdict))
  }
  printed <- claims[claims$source == "printed", ]
  raw <- claims[claims$source == "raw", ]
  is_contradicted <- grepl("contradicted", paste(printed$verdict, raw$verdict))
  rows <- data.frame(Claim = printed$statement, Place = printed$place,
                     "By the print" = describe_verdict(printed),
                     "By the raw logs" = describe_verdict(raw), check.names = FALSE)
  rows[order(!is_contradicted), ]
}

#' Draw a figure of the original again: printed values are circles, recomputed ones crosses
#'
#' @param differences table of compare_printed_values
#' @param number the figure's number in the original, which has printed values
#' @return ggplot, with a panel for each metric and unit
draw_original_figure <- function(differences, number) {
  rows <- differences[differences$place == paste("Figure", number), ]
  rows <- rows[rows$statistic %in% c("mean", "value"), ]
  columns <- Filter(function(column) any(rows[[column]] != ""), list_factor_columns(rows))
  factors <- substring(columns, nchar(FACTOR) + 1)
  # A figure with one of these factors is a curve along it; others have a point for each set of
  # factors.
  along <- intersect(c("connections", "threads", "percentile"), factors)
  is_curve <- length(along) > 0
  if (is_curve) {
    x <- as.numeric(get_factor(rows, along[[1]]))
  } else {
    x <- do.call(paste, c(unname(as.list(rows[columns])), sep = "\n"))
  }
  points <- rbind(
    data.frame(rows, x = x, value = as.numeric(rows$published), source = "printed"),
    data.frame(rows, x = x, value = rows$recomputed, source = "recomputed")
  )
  points$panel <- paste0(gsub("_", " ", points$metric), " (", points$unit, ")")
  points$label <- factor(ORIGINAL_LABELS[points$environment], ORIGINAL_LABELS)
  points <- points[!is.na(points$value), ]
  colours <- stats::setNames(COLOURS[seq_along(ORIGINAL_LABELS)], ORIGINAL_LABELS)
  ggplot(points, aes(x, value, colour = label, shape = source)) +
    geom_point(size = 1.7, position = if (is_curve) "identity" else position_dodge(width = 0.5)) +
    facet_wrap(vars(panel), scales = "free") +
    scale_shape_manual(values = c(printed = 1, recomputed = 4)) +
    scale_colour_manual(values = colours) +
    scale_y_continuous(labels = scales::label_comma(), limits = include_zero) +
    labs(x = if (is_curve) along[[1]] else NULL, y = NULL) +
    guides(colour = guide_legend(nrow = 2))
}
