#!/usr/bin/env Rscript
# Usage: slices.R PROJECT
# Compares runs in slices with whole runs, by environment and workload, and prints the table of
# docs/method.md.  PROJECT is a project whose containers took both, in the same blocks:
#   snakemake --cores 1 results/summary.csv --config ways=both
# Ratios are of performance to native, in runs of one kind, with 95 % intervals over blocks.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
analysis <- file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), "..", "analysis")
for (name in c("read.R", "statistics.R")) source(file.path(analysis, name))

# The performance of each headline series in each block, with the columns slices and whole.
read_both_ways <- function(folder) {
  plan <- jsonlite::read_json(file.path(folder, "plan.json"))
  metrics <- stack_rows(Map(list_metrics, names(plan$workloads), plan$workloads))
  rows <- stack_rows(lapply(names(plan$workloads), read_values, folder))
  rows <- rows[mark_headlines(rows, plan) & rows$counts == "yes", ]
  rows <- cbind(rows, list_run_times(rows, read_records(unique(rows$log), folder)))
  metric <- match(paste(rows$workload, rows$metric), paste(metrics$workload, metrics$metric))
  rows$title <- metrics$title[metric]
  rows$label <- vapply(plan$environments[rows$environment], `[[`, "", "label")
  rows$speed <- rows$value ^ ifelse(metrics$better[metric] == "higher", 1, -1)
  rows$cell <- paste(make_keys(rows), rows$environment, rows$repetition)
  slices <- rows[rows$how == "slices", ]
  whole <- rows[rows$how == "whole", ]
  at <- match(slices$cell, whole$cell)
  both <- cbind(slices[!is.na(at), ], whole = whole$speed[at[!is.na(at)]])
  both$slices <- both$speed
  both
}

show_interval <- function(ratios) {
  row <- compare_pairs(ratios)
  if (row$why != "") return(sprintf("%.1f %% (%s)", 100 * row$ratio, row$why))
  sprintf("%.1f %% [%.1f, %.1f]", 100 * row$ratio, 100 * row$low, 100 * row$high)
}

main <- function(project) {
  rows <- read_both_ways(file.path(project, "results"))
  if (nrow(rows) == 0) stop(project, ": no run was taken in slices and whole", call. = FALSE)
  blocks <- paste(make_keys(rows), rows$repetition, rows$together)
  native <- rows[rows$environment == NATIVE, ]
  at <- match(blocks, blocks[rows$environment == NATIVE])
  cat("| workload | environment | blocks | in slices | whole | in slices / whole |\n",
      "|---|---|--:|---|---|---|\n", sep = "")
  for (series in unique(make_keys(rows))) {
    for (name in unique(rows$environment)) {
      is_row <- make_keys(rows) == series & rows$environment == name & !is.na(at)
      chosen <- rows[is_row, ]
      if (nrow(chosen) == 0) next
      base <- native[at[is_row], ]
      is_level <- name == NATIVE
      slices <- if (is_level) chosen$slices else chosen$slices / base$slices
      whole <- if (is_level) chosen$whole else chosen$whole / base$whole
      cells <- c(chosen$title[[1]], chosen$label[[1]], nrow(chosen),
                 if (is_level) "" else show_interval(slices),
                 if (is_level) "" else show_interval(whole), show_interval(slices / whole))
      cat("| ", paste(cells, collapse = " | "), " |\n", sep = "")
    }
  }
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 1) stop("usage: slices.R PROJECT", call. = FALSE)
main(arguments)
