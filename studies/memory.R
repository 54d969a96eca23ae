#!/usr/bin/env Rscript
# Usage: Rscript studies/memory.R PROJECT
# Finds whether each loss against native comes from the first touch of memory, from the size of
# pages, or from the placement of a run, and prints the values of docs/method.md.  PROJECT measured
# native, native without huge pages, and the environments in question, in the same blocks:
#   environments:
#     native-small: {label: Native on small pages, layers: [chroot: {huge_pages: false}]}
#   workloads: {stream: {}, randomaccess: {}, pxz: {}, calls: {}}
# A ratio to native is the product of two ratios: of native on small pages to native, and of the
# environment to native on small pages.  The second one is computed for whole cells, and again for
# the best lap of each cell.  Each lap is a process of its own, with another placement in memory and
# on processors.

source("studies/common.R")

# Values of the factor `call` of the workload `calls`: the first touches of memory, and all accesses
# to memory.
FIRST <- c("touch", "again", "touch-huge", "again-huge")
ACCESSES <- c(FIRST, "mapped", "mapped-huge")

# Adds copies of the accesses to memory on small pages under the names of those on huge pages, so
# that other environments' accesses on huge pages have rows to be compared with.
# rows: tidy rows.
# small: name of the environment without huge pages.
add_huge_page_counterparts <- function(rows, small) {
  copies <- rows[rows$environment == small & get_factor(rows, "call") %in% ACCESSES, ]
  copies$factor_call <- paste0(copies$factor_call, rep("-huge", nrow(copies)))
  stack_rows(list(rows, copies))
}

# Replaces the value of each tidy row by that of the cell's best lap; a cell without laps keeps its
# value.
select_best_laps <- function(rows) {
  rows$value <- mapply(function(value, laps, better) {
    if (length(laps) == 0) return(value)
    if (better == "higher") max(laps) else min(laps)
  }, rows$value, rows$laps, rows$better)
  rows
}

# Compares environments with a reference in every series.
# rows: tidy rows.
# environments: names of environments.
# reference: name of the environment with which they are compared.
# Returns rows of compare_environments, or NULL if there are no pairs.
compare_with_reference <- function(rows, environments, reference) {
  compare_environments(pair_environments(rows[rows$environment %in% environments, ],
                                         rows[rows$environment == reference, ]))
}

# Returns the comparison in an environment of the same series as `row`; NULL if there is none.
# rows: rows of compare_with_reference, or NULL.
# row: a row of tidy values or of a comparison.
# environment: name of the environment.
find_comparison <- function(rows, row, environment = row$environment) {
  matches <- which(make_keys(rows) == make_keys(row) & rows$environment == environment)
  if (length(matches) == 0) NULL else rows[matches, ]
}

# Returns whether the interval of a comparison lies below or above 1; FALSE for NULL.
is_different <- function(row) !is.null(row) && (row$low > 1 | row$high < 1) %in% TRUE

# Describes the cause of a difference from native in a few words.
# Each argument is a row of compare_with_reference; all except `total` may be NULL.
# total: the environment against native.
# pages: native on small pages against native.
# cells, best: the environment against native on small pages, by whole cells and by best laps.
describe_cause <- function(total, pages, cells, best) {
  if (total$why != "") return("undecided")
  if (!is_different(total)) return("no difference shown")
  causes <- character()
  if (is_different(pages)) causes <- "page size"
  if (is_different(cells) && is_different(best)) {
    causes <- c(causes, "the system, in its best laps too")
  } else if (is_different(cells)) {
    causes <- c(causes, "placement, or undecided")
  }
  if (length(causes) == 0) "undecided" else paste(causes, collapse = "; ")
}

# Lists the different lines with settings of huge pages that the workload `calls` prints into its
# logs.
# results: list of read_results.
list_huge_page_settings <- function(results) {
  logs <- results$planned$log[results$planned$workload == "calls"]
  paths <- file.path(results$folder, sub("^results/", "", logs))
  lines <- unlist(lapply(Filter(file.exists, paths), readLines))
  sub("/sys/kernel/mm/", "", unique(grep("^/sys/.*hugepage", lines, value = TRUE)), fixed = TRUE)
}

# Prints the settings of huge pages, and a Markdown table of the causes for docs/method.md.
# project: folder of a project, whose tables exist.
print_causes <- function(project) {
  results <- read_results(file.path(project, "results"))
  rows <- results$tidy
  # Returns whether an environment of the plan has no huge pages.
  is_on_small_pages <- function(environment) isFALSE(environment$layers[[1]]$chroot$huge_pages)
  small <- names(Filter(is_on_small_pages, results$plan$environments))
  if (length(small) != 1) {
    stop(project, ": needs one environment with the layer chroot: {huge_pages: false}",
         call. = FALSE)
  }
  # Of the workload `calls` only accesses to memory are used; other workloads have no such factor.
  rows <- add_huge_page_counterparts(rows[get_factor(rows, "call") %in% c("", ACCESSES), ], small)
  environments <- setdiff(unique(rows$environment), c(NATIVE, small))
  totals <- compare_with_reference(rows, environments, NATIVE)
  pages <- compare_with_reference(rows, small, NATIVE)
  against_small <- compare_with_reference(rows, environments, small)
  best <- compare_with_reference(select_best_laps(rows), environments, small)
  cat(paste0(list_huge_page_settings(results), "\n"), "\n", sep = "")
  cat("| series | environment | blocks | against native | small pages against native | against",
      "small pages | of best laps | the difference lies in |\n|---|---|--:|---|---|---|---|---|\n")
  for (number in seq_len(NROW(totals))) {
    row <- totals[number, ]
    page <- find_comparison(pages, row, small)
    cell <- find_comparison(against_small, row)
    best_lap <- find_comparison(best, row)
    is_first <- row$metric == "first" || get_factor(row, "call") %in% FIRST
    cause <- describe_cause(row, page, cell, best_lap)
    intervals <- vapply(list(row, page, cell, best_lap), format_ratio_interval, "")
    cells <- c(row$series, row$label, row$n, intervals,
               paste0(if (is_first) "first touch: ", cause))
    cat("| ", paste(cells, collapse = " | "), " |\n", sep = "")
  }
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 1) stop("usage: studies/memory.R PROJECT", call. = FALSE)
print_causes(arguments)
