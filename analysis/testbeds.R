# Compares testbeds, or one testbed at several dates: every side with the first, and with the side
# before it.

#' Read one side of a comparison
#'
#' @param entry list: name, results (its folder), source, sha256
#' @return list of read_results with the entry's values, image (facts and packages) and ratios (the
#'   side's comparisons with native, if it has that table)
read_side <- function(entry) {
  side <- read_results(entry$results)
  read_image_file <- function(name) {
    path <- file.path(entry$results, name)
    if (file.exists(path)) jsonlite::read_json(path)
  }
  packages <- read_image_file("image-manifest.json")$packages
  side$image <- c(read_image_file("image.json"), packages = list(packages))
  path <- file.path(entry$results, "comparisons.csv")
  if (file.exists(path)) side$ratios <- read_table(path, text = c("direction", "why"))
  c(side, entry)
}

#' Compare all sides
#'
#' Sides are independent samples, since no block holds runs of both.  An emulated machine is
#' compared with emulated ones only.  The verdicts of all rows share one error rate.
#'
#' @param sides list of read_side
#' @param effect the smallest difference that matters, as a share
#' @return data frame: from, to, emulated, environment, workload, metric, unit, better, the
#'   columns of factors, series, label, question, headline, n_from, mean_from, n_to, mean_to, ratio
#'   (of performance), low, high, low_all, high_all (the interval for all rows), why, differs
#'   (parameters and layers that are not the same), outcome
#' @section Errors: the sides have different scales
compare_sides <- function(sides, effect = MARGIN) {
  scales <- vapply(sides, function(side) side$plan$scale, "")
  differing <- which(scales != scales[[1]])
  if (length(differing) > 0) {
    stop(sides[[1]]$name, " is at scale ", scales[[1]], " and ", sides[[differing[[1]]]]$name,
         " at scale ", scales[[differing[[1]]]], "; only runs of one scale can be compared",
         call. = FALSE)
  }
  later <- seq_along(sides)[-1]
  pairs <- unique(rbind(data.frame(from = 1, to = later), data.frame(from = later - 1, to = later)))
  rows <- stack_rows(Map(function(from, to) {
    compare_two_sides(sides[[from]], sides[[to]])
  }, pairs$from, pairs$to))
  has_interval <- !is.na(rows$low)
  rows <- add_verdicts(rows, ifelse(has_interval, cumsum(has_interval), NA), effect)
  rows$outcome <- ifelse(rows$verdict == "different", rows$direction, rows$verdict)
  rows$outcome[!has_interval] <- "no interval"
  rows[setdiff(names(rows), c("se", "df", "n", "level_all", "verdict", "direction", "more"))]
}

# The columns by which the series of two sides are matched; "factors" stands for those of factors.
SIDE_KEYS <- c("emulated", "environment", "workload", "metric", "unit", "better", "factors")

# The rows of compare_sides for two sides before their verdicts, with n, se and df.
compare_two_sides <- function(first, second) {
  tables <- lapply(list(first, second), list_side_values)
  all_rows <- stack_rows(tables)
  all_keys <- make_keys(all_rows, SIDE_KEYS)
  series_keys <- split(all_keys, factor(rep(1:2, vapply(tables, nrow, 1L)), 1:2))
  at <- which(!duplicated(all_keys))
  find_differences <- make_difference_finder(first, second)
  average <- function(values) if (length(values) > 0) mean(values) else NA_real_
  stack_rows(lapply(at, function(i) {
    series <- all_rows[i, ]
    values <- Map(function(rows, keys) rows$value[keys == all_keys[[i]]], tables, series_keys)
    if (all(lengths(values) > 0)) {
      # The ratio is of performance, so that the second side's cost is divided.
      samples <- if (series$better == "lower") values else rev(values)
      row <- compare_samples(samples[[1]], samples[[2]])
    } else {
      only <- if (length(values[[1]]) > 0) first$name else second$name
      row <- data.frame(n = 0, ratio = NA_real_, low = NA_real_, high = NA_real_, se = NA_real_,
                        df = NA_real_, why = paste("measured on", only, "alone"))
    }
    cbind(data.frame(from = first$name, to = second$name),
          series[c(expand_factors(SIDE_KEYS, series), "series", "label", "question", "headline")],
          n_from = length(values[[1]]), mean_from = average(values[[1]]),
          n_to = length(values[[2]]), mean_to = average(values[[2]]),
          row[c("n", "ratio", "low", "high", "se", "df", "why")],
          differs = find_differences(series$environment, series$workload), row.names = NULL)
  }))
}

# The values of a side, with emulated ones marked.
list_side_values <- function(side) {
  rbind(cbind(side$tidy, emulated = rep(FALSE, nrow(side$tidy))),
        cbind(side$emulated, emulated = rep(TRUE, nrow(side$emulated))))
}

# A function of an environment and a workload that names the parameters of their cells, and
# "layers", that differ between two sides; "" if a side has no cell of them.
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

#' Compare the origins of the sides
#'
#' @param sides list of read_side
#' @return data frame, one row for each item that differs: item, and a column for each side with all
#'   values that were observed, separated by " | "
compare_origins <- function(sides) {
  facts <- lapply(sides, collect_facts)
  items <- sort(unique(unlist(lapply(facts, names))), method = "radix")
  values <- lapply(facts, function(known) {
    value <- unname(known[items])
    ifelse(is.na(value), "not available", value)
  })
  names(values) <- vapply(sides, `[[`, "", "name")
  rows <- data.frame(item = items, values, check.names = FALSE)
  distinct_values <- apply(rows[-1], 1, unique, simplify = FALSE)
  rows[lengths(distinct_values) > 1, ]
}

# What the plan, the image and all records of a side state of its origin, as texts named by item.
collect_facts <- function(side) {
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
  recorded <- unlist(lapply(unname(side$records), list_record_facts), recursive = FALSE)
  plan_keys <- c("machine", "seed", "order", "repetitions", "image")
  planned <- side$plan[intersect(plan_keys, names(side$plan))]
  facts <- unlist(c(planned, list(built = side$image), recorded))
  join_values <- function(values) paste(sort(unique(values)), collapse = " | ")
  unlist(tapply(as.character(facts), names(facts), join_values))
}

#' Summarise the outcome of a comparison
#'
#' @param rows data frame of compare_sides
#' @param sides list of read_side
#' @param effect the smallest difference that matters, as a share
#' @return list: outcome ("difference"; "no difference" if something is decided; "undecided" if
#'   nothing is; "nothing to compare" if nothing has an interval), text (sentences), compared
#'   (number of rows with an interval), and the number of rows for each outcome of a row
summarise_outcome <- function(rows, sides, effect) {
  counts <- as.list(table(factor(rows$outcome, OUTCOMES)))
  compared <- sum(rows$outcome != "no interval")
  outcome <- "undecided"
  if (counts$equivalent > 0) outcome <- "no difference"
  if (counts$slower + counts$faster > 0) outcome <- "difference"
  if (compared == 0) outcome <- "nothing to compare"
  without <- counts[["no interval"]]
  text <- switch(
    outcome,
    "nothing to compare" = paste("Of", without,
                                 "comparisons none has an interval: nothing can be said."),
    undecided = paste0(counts$undecided, " of ", compared,
                       " comparisons undecided: nothing can be said of ",
                       "differences of more than ", format(100 * effect), " %",
                       if (without > 0) paste0("; ", without, " more have no interval"), "."),
    describe_outcome(rows, sides, effect)
  )
  c(list(outcome = outcome, text = text, compared = compared), counts)
}

# Sentences about every side compared with the one before it, and with the first; arguments as of
# summarise_outcome.
describe_outcome <- function(rows, sides, effect) {
  side_names <- vapply(sides, `[[`, "", "name")
  consecutive <- match(rows$from, side_names) == match(rows$to, side_names) - 1
  describe_sides <- function(rows) {
    sentences <- vapply(unique(rows$to), function(name) {
      describe_side(name, rows$outcome[rows$to == name])
    }, "")
    paste(trimws(sentences), collapse = "; ")
  }
  text <- paste0("By more than ", format(100 * effect),
                 " %, each compared with the one before it: ",
                 describe_sides(rows[consecutive, ]), ".")
  if (all(consecutive)) return(text)
  paste0(text, " Compared with ", side_names[[1]], ": ", describe_sides(rows[!consecutive, ]), ".")
}

# A clause about the outcomes of one side's series, such as "b is slower in 1 of 2 series
# (1 undecided)".
describe_side <- function(name, outcomes) {
  decisive <- c("slower", "faster")
  open <- c("equivalent", "undecided")
  counts <- c(table(factor(outcomes, OUTCOMES)))[c(decisive, open)]
  if (sum(counts) == 0) return(paste(name, "has no series that can be compared"))
  # `template` places a count, %1$d, and its label, %2$s.
  join_counts <- function(labels, template, separator) {
    present <- labels[counts[labels] > 0]
    paste(sprintf(template, counts[present], present), collapse = separator)
  }
  series <- paste(sum(counts), "series")
  rest <- join_counts(open, "%1$d %2$s", ", ")
  if (rest != "") series <- paste0(series, " (", rest, ")")
  differences <- join_counts(decisive, "%2$s in %1$d", " and ")
  if (differences != "") return(paste(name, "is", differences, "of", series))
  if (counts[["equivalent"]] > 0) return(paste(name, "is not found to differ in any of", series))
  paste(name, "is undecided in all", sum(counts), "series")
}
