#!/usr/bin/env Rscript
# Usage: tables.R RESULTS [OUT]
# Makes all tables of results from OUT/tidy and from the plan and the records in RESULTS, and writes
# them to OUT, which is RESULTS by default.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "costs", "claims", "choices", "render")

# The columns of every table in their order: the files' format, which an empty table has, too, and
# docs/files.md describes; "factors" stands for the columns of all factors.  The documents, Strata's
# commands and users' programs read them.
SERIES_COLUMNS <- "workload,title,metric,metric_label,factors,series,unit,better,environment,label"
LEVEL_COLUMNS <- "how,n,mean,sd,mean_low,mean_high,median,median_low,median_high,min,max"
RATIO_COLUMNS <- paste("n,sessions,machines,holds,ratio,low,high,low_all,high_all,level_all",
                       "verdict,direction,why,more,scatter,robust,robust_low,robust_high",
                       "robust_differs", sep = ",")
COMPARISON_COLUMNS <- "question,reference,family,valid,headline"
PAIR_COLUMNS <- "session,machine,repetition,ratio,robust"
TABLES <- c(
  summary = paste(SERIES_COLUMNS, LEVEL_COLUMNS, "level,level_low,level_high,valid,headline",
                  sep = ","),
  comparisons = paste(SERIES_COLUMNS, COMPARISON_COLUMNS, RATIO_COLUMNS, sep = ","),
  ratios = paste(SERIES_COLUMNS, COMPARISON_COLUMNS, PAIR_COLUMNS, sep = ","),
  verdicts = paste("workload,title,environment,label,family,reference,margin,valid,verdict",
                   "direction,more,series,n,sessions,machines,holds,ratio,low,high,level",
                   sep = ","),
  costs = paste(SERIES_COLUMNS, "reference,valid,headline,n,ratio,part,native,value,share",
                sep = ","),
  stalls = paste(SERIES_COLUMNS, "reference,valid,laps,share,reference_share,p", sep = ","),
  disturbances = "environment,label,laps,left_out,runs,disturbed,steal,busy,p",
  choices = paste(SERIES_COLUMNS, "choice,control", COMPARISON_COLUMNS, RATIO_COLUMNS, sep = ","),
  emulated = paste(SERIES_COLUMNS, LEVEL_COLUMNS, "ratio", sep = ","),
  claims = paste("id,publication,place,statement,workload,published,unit,tolerance_low",
                 "tolerance_high,environment,reference,series,n,ratio,low,high,level,parts,verdict",
                 "against_published,reason,because,note,transferred", sep = ","),
  blocks = "workload,title,series,blocks,share,p",
  runs = paste("environment,label,workload,title,repetition,round,order,session,counts,how,paired",
               "flags,emulated,seconds,log,record", sep = ","),
  sessions = paste("session,machine,from,to,boot,docker_start,cells",
                   paste(SESSION_FACTS, collapse = ","),
                   paste(names(ENGINE_FACTS), collapse = ","), sep = ",")
)

# Writes a table of results as CSV: logical values as "yes" and "no", numbers rounded to ten
# significant digits, NA as an empty field.  Columns that the table does not have are left out.
# rows: data frame with at least the table's columns; NULL gives a table without rows.
# name: a key of TABLES, and the file's base name: "costs" is written to costs.csv.
# folder: path of the folder that gets the file; a file of this name is replaced.
# tidy: tidy rows, which have the columns of all factors.
write_table <- function(rows, name, folder, tidy) {
  columns <- expand_factors(strsplit(TABLES[[name]], ",")[[1]], tidy)
  if (is.null(rows)) {
    rows <- as.data.frame(sapply(columns, function(column) character()))
  }
  rows <- rows[columns]
  rows[] <- lapply(rows, function(column) {
    if (is.logical(column)) return(ifelse(column, "yes", "no"))
    if (is.double(column)) return(signif(column, 10))
    column
  })
  # Strings are quoted, so that no program takes "1e3" in a name for a number.
  text_columns <- which(!vapply(rows, is.numeric, NA))
  replace_table(file.path(folder, paste0(name, ".csv")), rows, quote = text_columns)
}

# Lists the cells that gave values.
# results: list of read_results.
# Returns a data frame with the columns of the table `runs`, a row for each cell.  `paired` says
# whether the cell forms a pair with native's, and is NA for cells that cannot form one.
list_measured_cells <- function(results) {
  rows <- results$all[!duplicated(results$all$log), ]
  records <- results$records[rows$log]
  rows$flags <- vapply(records, function(record) {
    paste(unlist(record$interference$flags), collapse = ";")
  }, "")
  rows$seconds <- get_cell_seconds(records)
  environments <- results$environments
  rows$emulated <- environments$emulated[match(rows$environment, environments$environment)]
  rows$record <- sub("log$", "json", rows$log)
  native_at <- match(paste(NATIVE, rows$workload, rows$repetition),
                     paste(rows$environment, rows$workload, rows$repetition))
  rows$how <- classify_runs(records, native_at, rows$emulated)
  rows$paired <- is_paired(rows, rows[native_at, ])
  # Native itself, emulated machines and runs that do not count form no pairs.
  rows$paired[rows$environment == NATIVE | rows$emulated | rows$counts != "yes"] <- NA
  rows
}

# Returns how the cell of each record was measured, for the column `how` of the table `runs`:
#   "alone": to its end, with no other cell of the block between
#   "laps": in whole laps that alternate with laps of the block's other cells
#   "slices": in laps whose runs alternate in slices
#   "slices and laps": in both ways
# ", unlike native" follows if native was measured in another way in this block.  WAYS in
# markdown_tables.R has a name for each way.
# records: list of records.
# native_at: the position of native's record in the block of each, or NA.
# is_emulated: whether the environment of each is emulated; such cells have no partner of native's.
# A cell counts as measured like native if native has each of its ways, perhaps with another one.
classify_runs <- function(records, native_at, is_emulated) {
  ways <- lapply(records, function(record) {
    if (length(record$interleaved) == 0) return("alone")
    # The keys are those of records: SLICES and WHOLE of strata/experiment/plan.py.
    c(slices = "slices", whole = "laps")[unlist(record$ways)]
  })
  is_like_native <- mapply(function(ways, native_ways) all(ways %in% native_ways), ways,
                           ways[native_at])
  is_unlike <- !is.na(native_at) & !is_like_native & !is_emulated
  paste0(vapply(ways, paste, "", collapse = " and "), ifelse(is_unlike, ", unlike native", ""))
}

# Writes all TABLES.
# folder: path of the results, with plan.json, plan.csv and raw/.
# out: path of the folder that holds tidy/ and laps/ and gets the tables.
write_tables <- function(folder, out = folder) {
  results <- read_results(folder, out)
  # Writes a table with the column `valid`: whether the sizes of the row's workload are valid.
  write_result <- function(rows, name) {
    if (!is.null(rows)) rows$valid <- !rows$workload %in% results$invalid
    write_table(rows, name, out, results$all)
  }
  pairs <- pair_with_native(results$tidy)
  comparisons <- compare_with_native(results, pairs)
  write_result(add_levels(summarise_runs(results$tidy), comparisons), "summary")
  write_result(comparisons, "comparisons")
  write_result(add_families(pairs, results), "ratios")
  precision <- results$plan$precision
  # There are verdicts at the plan's margin, too.
  margins <- sort(unique(c(MARGINS, precision$margin)))
  verdicts <- lapply(margins, decide_workloads, rows = comparisons, looks = precision$looks %or% 1)
  write_result(stack_rows(verdicts), "verdicts")
  write_result(compare_costs(results, comparisons, pairs), "costs")
  write_result(compare_stalls(results$tidy), "stalls")
  write_table(compare_disturbances(results), "disturbances", out, results$all)
  write_result(compare_choices(results), "choices")
  write_result(summarise_emulated(results), "emulated")
  write_result(estimate_block_share(results$tidy), "blocks")
  write_result(list_measured_cells(results), "runs")
  write_table(describe_sessions(results), "sessions", out, results$all)
  published <- read_published(folder, ROOT)
  write_result(test_claims(published, results$tidy, make_claim_context(results)), "claims")
}

run_script(write_tables, "tables.R RESULTS [OUT]", 1, 2)
