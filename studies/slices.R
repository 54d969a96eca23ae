#!/usr/bin/env Rscript
# Usage: Rscript studies/slices.R PROJECT
# Compares runs in slices with whole runs, by environment and workload, and prints the table of
# docs/method.md.  PROJECT is a project whose containers ran in both ways in the same blocks:
#   snakemake --cores 1 results/summary.csv --config ways=both
# Ratios are of performance to native, in runs of one kind, with 95 % intervals over blocks.

source("studies/common.R")

# Reads the performance of each headline series, environment and block in both kinds of runs.
# folder: path of results, whose tables exist.
# Returns tidy rows with slices and whole: the performance in runs in slices, and in whole runs.  A
# block without one of the two is left out.
read_both_ways <- function(folder) {
  plan <- jsonlite::read_json(file.path(folder, "plan.json"))
  metrics <- stack_rows(Map(list_metrics, names(plan$workloads), plan$workloads))
  rows <- stack_rows(lapply(names(plan$workloads), read_values, folder))
  rows <- rows[is_headline(rows, plan) & rows$counts == "yes", ]
  rows <- cbind(rows, get_run_times(rows, read_records(unique(rows$log), folder)))
  metric <- match(paste(rows$workload, rows$metric), paste(metrics$workload, metrics$metric))
  rows$title <- metrics$title[metric]
  rows$label <- vapply(plan$environments[rows$environment], `[[`, "", "label")
  rows$speed <- rows$value ^ ifelse(metrics$better[metric] == "higher", 1, -1)
  rows$cell <- paste(make_keys(rows), rows$environment, rows$repetition)
  slices <- rows[rows$how == "slices", ]
  whole <- rows[rows$how == "whole", ]
  whole_rows <- match(slices$cell, whole$cell)
  has_both <- !is.na(whole_rows)
  rows <- cbind(slices[has_both, ], whole = whole$speed[whole_rows[has_both]])
  rows$slices <- rows$speed
  rows
}

# Formats the mean of the ratios of blocks with its interval in per cent.
format_mean_ratio <- function(ratios) format_ratio_interval(estimate_mean_ratio(ratios))

# Prints the table of docs/method.md in Markdown.
# project: folder of a project, whose tables exist.
print_slices_table <- function(project) {
  rows <- read_both_ways(file.path(project, "results"))
  if (nrow(rows) == 0) stop(project, ": no run was taken in slices and whole", call. = FALSE)
  blocks <- paste(make_keys(rows), rows$repetition, rows$together)
  native <- rows[rows$environment == NATIVE, ]
  native_rows <- match(blocks, blocks[rows$environment == NATIVE])
  cat("| workload | environment | blocks | in slices | whole | in slices / whole |\n",
      "|---|---|--:|---|---|---|\n", sep = "")
  for (series in unique(make_keys(rows))) {
    for (name in unique(rows$environment)) {
      is_row <- make_keys(rows) == series & rows$environment == name &
        !is.na(native_rows)
      series_rows <- rows[is_row, ]
      if (nrow(series_rows) == 0) next
      base <- native[native_rows[is_row], ]
      # Native has no ratio to itself.
      is_native <- name == NATIVE
      slices <- if (is_native) series_rows$slices else series_rows$slices / base$slices
      whole <- if (is_native) series_rows$whole else series_rows$whole / base$whole
      cells <- c(series_rows$title[[1]], series_rows$label[[1]], nrow(series_rows),
                 if (is_native) "" else format_mean_ratio(slices),
                 if (is_native) "" else format_mean_ratio(whole),
                 format_mean_ratio(slices / whole))
      cat("| ", paste(cells, collapse = " | "), " |\n", sep = "")
    }
  }
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 1) stop("usage: studies/slices.R PROJECT", call. = FALSE)
print_slices_table(arguments)
