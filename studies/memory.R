#!/usr/bin/env Rscript
# Usage: memory.R PROJECT
# Says of each loss against native whether it lies in the first touch of memory, in the size of
# pages, or in the placement of a run, and prints the table of docs/method.md.  PROJECT measured
# native, native without huge pages, and the environments in question, in the same blocks:
#   environments:
#     native-small: {label: Native on small pages, layers: [chroot: {huge_pages: false}]}
#   workloads: {stream: {}, randomaccess: {}, pxz: {}, calls: {}}
# A ratio to native is the product of two: of small pages to native's, and of the environment to
# native on small pages.  The latter is of whole cells, and again of the best lap of each cell: laps
# are processes of their own, which lie elsewhere in memory and on processors.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
analysis <- file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), "..", "analysis")
for (name in c("read.R", "statistics.R")) source(file.path(analysis, name))

FIRST <- c("touch", "again", "touch-huge", "again-huge")
ACCESSES <- c(FIRST, "mapped", "mapped-huge")

# Adds, for the environment on small pages, its accesses to memory as the counterparts of those on
# huge pages, which it does not have.
add_counterparts <- function(rows, small) {
  copies <- rows[rows$environment == small & get_factor(rows, "call") %in% ACCESSES, ]
  copies$factor_call <- paste0(copies$factor_call, rep("-huge", nrow(copies)))
  stack_rows(list(rows, copies))
}

# Replaces each value by that of the best lap of its cell.
take_best_laps <- function(rows) {
  pick <- ifelse(rows$better == "higher", "max", "min")
  rows$value <- mapply(function(value, laps, pick) {
    if (length(laps) == 0) value else do.call(pick, list(laps))
  }, rows$value, rows$laps, pick)
  rows
}

# Compares environments with a reference in every series: rows of compare_environments.
compare_with <- function(rows, environments, reference) {
  compare_environments(pair_environments(rows[rows$environment %in% environments, ],
                                         rows[rows$environment == reference, ]))
}

# The row of a comparison for one series and environment; NULL if there is none.
find_row <- function(rows, row, environment = row$environment) {
  at <- which(make_keys(rows) == make_keys(row) & rows$environment == environment)
  if (length(at) == 0) NULL else rows[at, ]
}

show_interval <- function(row) {
  if (is.null(row)) return("")
  if (row$why != "") return(sprintf("%.1f %% (%s)", 100 * row$ratio, row$why))
  sprintf("%.1f %% [%.1f, %.1f]", 100 * row$ratio, 100 * row$low, 100 * row$high)
}

# Whether the interval of a row lies below or above 1.
differs <- function(row) !is.null(row) && (row$low > 1 | row$high < 1) %in% TRUE

# Where a loss or gain lies, in words for the table.
name_cause <- function(total, pages, rest, best) {
  if (total$why != "") return("undecided")
  if (!differs(total)) return("no difference shown")
  causes <- c(if (differs(pages)) "page size",
              if (differs(rest)) if (differs(best)) "the system, in its best laps too"
              else "placement, or undecided")
  if (length(causes) == 0) "undecided" else paste(causes, collapse = "; ")
}

# The settings of huge pages that the logs of the workload calls name, each once.
list_settings <- function(results) {
  logs <- results$planned$log[results$planned$workload == "calls"]
  paths <- file.path(results$folder, sub("^results/", "", logs))
  lines <- unlist(lapply(Filter(file.exists, paths), readLines))
  sub("/sys/kernel/mm/", "", unique(grep("^/sys/.*hugepage", lines, value = TRUE)), fixed = TRUE)
}

main <- function(project) {
  results <- read_results(file.path(project, "results"))
  rows <- results$tidy
  is_small <- function(entry) isFALSE(entry$layers[[1]]$chroot$huge_pages)
  small <- names(Filter(is_small, results$plan$environments))
  if (length(small) != 1) {
    stop(project, ": needs one environment with the layer chroot: {huge_pages: false}",
         call. = FALSE)
  }
  # Of the workload calls, only accesses to memory matter here.
  rows <- add_counterparts(rows[get_factor(rows, "call") %in% c("", ACCESSES), ], small)
  environments <- setdiff(unique(rows$environment), c(NATIVE, small))
  totals <- compare_with(rows, environments, NATIVE)
  pages <- compare_with(rows, small, NATIVE)
  rests <- compare_with(rows, environments, small)
  best <- compare_with(take_best_laps(rows), environments, small)
  cat(paste0(list_settings(results), "\n"), "\n", sep = "")
  cat("| series | environment | blocks | against native | small pages against native | against",
      "small pages | of best laps | the difference lies in |\n|---|---|--:|---|---|---|---|---|\n")
  for (at in seq_len(NROW(totals))) {
    row <- totals[at, ]
    parts <- list(find_row(pages, row, small), find_row(rests, row), find_row(best, row))
    is_first <- row$metric == "first" || get_factor(row, "call") %in% FIRST
    cause <- name_cause(row, parts[[1]], parts[[2]], parts[[3]])
    cells <- c(row$series, row$label, row$n, show_interval(row),
               vapply(parts, show_interval, ""), paste0(if (is_first) "first touch: ", cause))
    cat("| ", paste(cells, collapse = " | "), " |\n", sep = "")
  }
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 1) stop("usage: memory.R PROJECT", call. = FALSE)
main(arguments)
