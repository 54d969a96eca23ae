#!/usr/bin/env Rscript
# Usage: Rscript studies/memory.R PROJECT
# Says of each loss against native whether it lies in the first touch of memory, in the size of
# pages, or in the placement of a run, and prints the values of docs/method.md.  PROJECT measured
# native, native without huge pages, and the environments in question, in the same blocks:
#   environments:
#     native-small: {label: Native on small pages, layers: [chroot: {huge_pages: false}]}
#   workloads: {stream: {}, randomaccess: {}, pxz: {}, calls: {}}
# A ratio to native is the product of two: of small pages to native's, and of the environment to
# native on small pages.  The latter is of whole cells, and again of the best lap of each cell: laps
# are processes of their own, which lie elsewhere in memory and on processors.

source("studies/common.R")

# The factor `call` of the accesses to memory of the workload `calls`: those of a first touch, and
# all.
FIRST <- c("touch", "again", "touch-huge", "again-huge")
ACCESSES <- c(FIRST, "mapped", "mapped-huge")

# Adds copies of the tidy rows of the environment `small`, native on small pages, whose calls get
# names with "-huge".  It has no huge pages: so the accesses of others on huge pages have rows to be
# compared with.
add_huge_page_counterparts <- function(rows, small) {
  copies <- rows[rows$environment == small & get_factor(rows, "call") %in% ACCESSES, ]
  copies$factor_call <- paste0(copies$factor_call, rep("-huge", nrow(copies)))
  stack_rows(list(rows, copies))
}

# Returns tidy rows with the value of the best lap of each cell in place of the cell's; a cell
# without laps keeps its value.
select_best_laps <- function(rows) {
  best <- ifelse(rows$better == "higher", "max", "min")
  rows$value <- mapply(function(value, laps, best) {
    if (length(laps) == 0) value else do.call(best, list(laps))
  }, rows$value, rows$laps, best)
  rows
}

# Compares environments with a reference in every series; returns rows of compare_environments, or
# NULL if there are no pairs.
compare_with <- function(rows, environments, reference) {
  compare_environments(pair_environments(rows[rows$environment %in% environments, ],
                                         rows[rows$environment == reference, ]))
}

# Returns the comparison of the series of `row` in an environment; NULL if there is none.
# rows: of compare_with, or NULL.
find_comparison <- function(rows, row, environment = row$environment) {
  matches <- which(make_keys(rows) == make_keys(row) & rows$environment == environment)
  if (length(matches) == 0) NULL else rows[matches, ]
}

# Returns whether the interval of a comparison lies below or above 1; FALSE for NULL.
is_different <- function(row) !is.null(row) && (row$low > 1 | row$high < 1) %in% TRUE

# Returns where the loss or gain of a comparison lies, in words for the table.  Each argument is a
# row of compare_with; all but `total` may be NULL.
# total: the environment against native.  pages: small pages against native.  cells, best: the
# environment against small pages, of whole cells and of best laps.
name_cause <- function(total, pages, cells, best) {
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

# Returns the kernel's settings of huge pages, which the workload calls prints into its logs, each
# once.  results: list of read_results.
list_settings <- function(results) {
  logs <- results$planned$log[results$planned$workload == "calls"]
  paths <- file.path(results$folder, sub("^results/", "", logs))
  lines <- unlist(lapply(Filter(file.exists, paths), readLines))
  sub("/sys/kernel/mm/", "", unique(grep("^/sys/.*hugepage", lines, value = TRUE)), fixed = TRUE)
}

# Prints the settings of huge pages, and the values of docs/method.md.
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
  # Of the workload calls, only accesses to memory matter here; "" are the other workloads.
  rows <- add_huge_page_counterparts(rows[get_factor(rows, "call") %in% c("", ACCESSES), ], small)
  environments <- setdiff(unique(rows$environment), c(NATIVE, small))
  totals <- compare_with(rows, environments, NATIVE)
  pages <- compare_with(rows, small, NATIVE)
  against_small <- compare_with(rows, environments, small)
  best <- compare_with(select_best_laps(rows), environments, small)
  cat(paste0(list_settings(results), "\n"), "\n", sep = "")
  cat("| series | environment | blocks | against native | small pages against native | against",
      "small pages | of best laps | the difference lies in |\n|---|---|--:|---|---|---|---|---|\n")
  for (number in seq_len(NROW(totals))) {
    row <- totals[number, ]
    page <- find_comparison(pages, row, small)
    cell <- find_comparison(against_small, row)
    best_lap <- find_comparison(best, row)
    is_first <- row$metric == "first" || get_factor(row, "call") %in% FIRST
    cause <- name_cause(row, page, cell, best_lap)
    intervals <- vapply(list(row, page, cell, best_lap), format_ratio_interval, "")
    cells <- c(row$series, row$label, row$n, intervals,
               paste0(if (is_first) "first touch: ", cause))
    cat("| ", paste(cells, collapse = " | "), " |\n", sep = "")
  }
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 1) stop("usage: studies/memory.R PROJECT", call. = FALSE)
print_causes(arguments)
