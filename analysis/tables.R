#!/usr/bin/env Rscript
# Usage: tables.R RESULTS [OUT]: from OUT/tidy, and what was measured in RESULTS, to all tables of results,
# in OUT (RESULTS unless given).

invisible(compiler::enableJIT(0))
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
files <- c("read", "statistics", "claims", "choices", "render")
for (file in files) source(file.path(here, paste0(file, ".R")))

# The columns of every table, in their order: an empty table has them too.
SERIES_KEYS <- "workload,title,metric,metric_label,factors,series,unit,better,environment,label"
LEVELS <- "n,mean,sd,mean_low,mean_high,median,median_low,median_high,min,max"
OF_RATIO <- "n,ratio,low,high,p,p_adjusted,p_equivalent,verdict,direction,why"
AND_MORE <- "slow,slow_n,more,scatter"
OF_PAIR <- "question,reference,family,valid,headline"
TABLES <- c(
  summary = paste(SERIES_KEYS, LEVELS, "level,level_low,level_high,valid,headline", sep = ","),
  comparisons = paste(SERIES_KEYS, OF_PAIR, OF_RATIO, AND_MORE, sep = ","),
  ratios = paste(SERIES_KEYS, "reference,valid,headline,repetition,ratio", sep = ","),
  choices = paste(SERIES_KEYS, "choice,control", OF_PAIR, OF_RATIO, AND_MORE, sep = ","),
  emulated = paste(SERIES_KEYS, LEVELS, "ratio", sep = ","),
  claims = paste("id,publication,place,statement,workload,published,unit,tolerance_low,tolerance_high",
                 "environment,reference,series,n,ratio,low,high,level,parts,verdict,against_published",
                 "reason,because,note,transferred", sep = ","),
  blocks = "workload,title,series,blocks,share,p",
  runs = paste("environment,label,workload,title,repetition,round,order,counts,how,flags,emulated,seconds",
               "log,record", sep = ",")
)

write_result <- function(rows, name, folder) {
  columns <- strsplit(TABLES[[name]], ",")[[1]]
  if (is.null(rows)) rows <- as.data.frame(sapply(columns, function(name) character()))
  rows <- rows[columns]
  rows[] <- lapply(rows, function(x) {
    if (is.logical(x)) ifelse(x, "yes", "no") else if (is.double(x)) signif(x, 10) else x
  })
  text <- which(!vapply(rows, is.numeric, NA))
  put_file(file.path(folder, paste0(name, ".csv")), function(part) {
    utils::write.csv(rows, part, row.names = FALSE, na = "", quote = text)
  })
}

# A row for each cell that gave values, with where its raw log and record lie.
runs_table <- function(results) {
  rows <- results$all[!duplicated(results$all$log), ]
  of_record <- function(get) vapply(results$records[rows$log], get, "")
  rows$flags <- of_record(function(one) paste(unlist(one$quiet$flags), collapse = ";"))
  rows$seconds <- as.numeric(of_record(function(one) as.character(one$seconds %or% NA)))
  rows$emulated <- results$environments$emulated[match(rows$environment, results$environments$environment)]
  rows$record <- sub("log$", "json", rows$log)
  rows$how <- how_measured(rows, results)
  rows
}

# How each run was taken: "alone" to its end, in "laps" that alternate with those of the block's other cells,
# or these in "slices"; and whether that is not as native's run of its block, with which it is compared.
how_measured <- function(rows, results) {
  records <- results$records[rows$log]
  sliced <- vapply(results$plan$workloads, function(one) !is.null(one$cell$turn), NA)
  how <- vapply(records, function(one) {
    if (length(one$interleaved) == 0) "alone"
    else if (sliced[[one$workload]] && (one$system$parts %or% 1) == 1) "slices"
    else "laps"
  }, "")
  # Cells that were measured together name the same one as their first.
  together <- vapply(records, function(one) paste(unlist(one$together), collapse = " "), "")
  native <- match(paste(NATIVE, rows$workload, rows$repetition),
                  paste(rows$environment, rows$workload, rows$repetition))
  like <- how == how[native] & together == together[native]
  paste0(how, ifelse(like %in% FALSE & !rows$emulated, ", unlike native", ""))
}

main <- function(folder, out = folder) {
  results <- read_results(folder, file.path(out, "tidy"))
  write <- function(rows, name) {
    if (!is.null(rows)) rows$valid <- !rows$workload %in% results$invalid
    write_result(rows, name, out)
  }
  pairs <- pairs_of_native(results$tidy)
  compared <- compare_all(results, pairs)
  write(add_levels(summarise_runs(results$tidy), compared), "summary")
  write(compared, "comparisons")
  write(block_ratios(pairs), "ratios")
  write(compare_choices(results), "choices")
  write(emulated_table(results), "emulated")
  write(share_of_blocks(results$tidy), "blocks")
  write(runs_table(results), "runs")
  claims <- jsonlite::read_json(file.path(dirname(here), "published", "claims.json"))
  write(test_claims(claims, results$tidy, here_of(results)), "claims")
}

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 1:2) stop("usage: tables.R RESULTS [OUT]", call. = FALSE)
do.call(main, as.list(arguments))
