# The tables that other commands have written, read and checked: their columns are stated here.

TIDY_COLUMNS <- c(
  environment = "character", workload = "character", repetition = "integer", block = "integer",
  position = "integer", order = "integer", metric = "character", unit = "character", value = "numeric",
  factors = "character", check = "character", counts = "character", log = "character"
)

LEFT_OUT_COLUMNS <- c(log = "character", reason = "character")

SUMMARY_COLUMNS <- c(
  environment = "character", workload = "character", metric = "character", unit = "character",
  better = "character", factors = "character", n = "integer", statistic = "character", mean = "numeric",
  sd = "numeric",
  mean_low = "numeric", mean_high = "numeric", median = "numeric", median_low = "numeric",
  median_high = "numeric", min = "numeric", max = "numeric", ratio = "numeric", ratio_low = "numeric",
  ratio_high = "numeric", ratio_n = "integer", ratio_method = "character", p_value = "numeric",
  equal_p = "numeric", scatter = "numeric", runs_needed = "integer", normality_p = "numeric",
  autocorrelation = "numeric", drift_p = "numeric", flags = "character", logs = "character"
)

CLAIM_COLUMNS <- c(
  id = "character", publication = "character", place = "character", statement = "character",
  workload = "character", published = "numeric", unit = "character", tolerance_low = "numeric",
  tolerance_high = "numeric", environment = "character", reference = "character",
  measured_workload = "character", metric = "character", factors = "character", ratio = "numeric",
  ratio_low = "numeric", ratio_high = "numeric", ratio_n = "integer",
  level = "numeric", parts = "integer", verdict = "character", reason = "character", because = "character",
  note = "character", more_sets = "numeric", more_sets_low = "numeric", more_sets_high = "numeric",
  more_minutes = "numeric", published_for = "character", logs = "character"
)

CLAIM_VERDICTS <- c("reproduced", "contradicted", "inconclusive", "not testable here")

# Verdicts on claims that were published for one product and tested on another, by what they would be of a
# claim about that other: a kind of their own, never counted among those.
TRANSFERRED_VERDICTS <- c("reproduced" = "carries over", "contradicted" = "does not carry over",
                          "inconclusive" = "transfer open", "not testable here" = "transfer tested in part")

FOOTPRINT_COLUMNS <- c(
  environment = "character", quantity = "character", unit = "character", systems = "integer", n = "integer",
  mean = "numeric", sd = "numeric", mean_low = "numeric", mean_high = "numeric", min = "numeric",
  max = "numeric", records = "character"
)

SET_COLUMNS <- c(
  environment = "character", workload = "character", metric = "character", unit = "character",
  factors = "character", sets = "integer", environments = "integer", between = "numeric",
  between_low = "numeric", between_high = "numeric", sd_between = "numeric", sd_within = "numeric",
  friedman_p = "numeric", ratio = "numeric", ratio_low = "numeric", ratio_high = "numeric",
  ratio_n = "integer", unpaired_low = "numeric", unpaired_high = "numeric", all_ratio = "numeric",
  all_low = "numeric", all_high = "numeric", all_n = "integer", quiet_ratio = "numeric",
  quiet_low = "numeric", quiet_high = "numeric", quiet_n = "integer"
)

NODE_COLUMNS <- c(
  quantity = "character", environment = "character", workload = "character", metric = "character",
  unit = "character", factors = "character", node = "character", sets = "integer", value = "numeric",
  low = "numeric", high = "numeric", p_value = "numeric", p_adjusted = "numeric", of_nodes = "numeric",
  of_nodes_low = "numeric", of_nodes_high = "numeric"
)

CHOICE_COLUMNS <- c(
  base = "character", environment = "character", layer = "character", option = "character",
  from = "character", to = "character", touches = "character", workload = "character",
  metric = "character", unit = "character", better = "character", factors = "character",
  control = "character", emulated = "character", ratio = "numeric", ratio_low = "numeric",
  ratio_high = "numeric", ratio_n = "integer", p_value = "numeric", p_adjusted = "numeric",
  equal_p = "numeric", reading = "character"
)

#' The tidy table of a workload, read and checked
#'
#' @param path the file
#' @param plan as from `read_plan`
#' @return data frame with the columns of TIDY_COLUMNS
#' @section Errors: a broken file; values that did not pass; names that the plan does not know; a value twice
read_tidy <- function(path, plan) {
  tidy <- read_csv(path, TIDY_COLUMNS)
  check_known(tidy, plan, path)
  if (length(unique(tidy$workload)) > 1) {
    stop_about(path, "it holds more than one workload")
  }
  if (!all(tidy$check == "passed") || !all(is.finite(tidy$value) & tidy$value > 0)) {
    stop_about(path, "it holds a value whose check did not pass")
  }
  if (!all(tidy$counts %in% c("yes", "no"))) {
    stop_about(path, "counts: '", setdiff(tidy$counts, c("yes", "no"))[[1]], "' should be yes or no")
  }
  if (anyDuplicated(tidy[c("environment", "metric", "factors", "repetition")]) > 0) {
    stop_about(path, "it holds a value twice")
  }
  for (workload in unique(tidy$workload)) {
    unknown <- setdiff(tidy$metric, metrics_of(plan, workload)$metric)
    if (length(unknown) > 0) {
      stop_about(path, unknown[[1]], " is no metric of ", workload)
    }
  }
  tidy
}

#' The tidy tables of all workloads, read and checked
#'
#' @param plan as from `read_plan`
#' @param folder that holds them
#' @return list of data frames, as from `read_tidy`, named by the plan's workloads
#' @section Errors: as of `read_tidy`
read_tidies <- function(plan, folder = dirname(result_path(plan, "tidy", workload = ""))) {
  sapply(names(plan$workloads), function(workload) {
    read_tidy(file.path(folder, paste0(workload, ".csv")), plan)
  }, simplify = FALSE)
}

#' Several tables below one another
#'
#' @param tables list of data frames
#' @param columns of each, as TIDY_COLUMNS
#' @return data frame; one without rows where there are no tables
stacked <- function(tables, columns = TIDY_COLUMNS) {
  do.call(rbind, c(list(empty_table(columns)), unname(tables)))
}

#' The cells whose logs are left out: their parsers or a check refused them
#'
#' @param plan as from `read_plan`
#' @return data frame: log, reason, environment, workload, repetition; without rows if there is no such file
#' @section Errors: a broken file
read_left_out <- function(plan) {
  path <- result_path(plan, "left_out")
  table <- if (file.exists(path)) read_csv(path, LEFT_OUT_COLUMNS) else empty_table(LEFT_OUT_COLUMNS)
  folder <- dirname(table$log)
  table$environment <- basename(dirname(folder))
  table$workload <- basename(folder)
  table$repetition <- as.numeric(sub("[.]log$", "", basename(table$log)))
  table
}

#' The summary of a workload, read
#'
#' @param path the file
#' @param plan as from `read_plan`
#' @return data frame with the columns of SUMMARY_COLUMNS
#' @section Errors: a broken file; names that the plan does not know
read_summary <- function(path, plan) {
  read_known(path, SUMMARY_COLUMNS, plan)
}

#' The summaries of all workloads, read
#'
#' @param plan as from `read_plan`
#' @return list of data frames, as from `read_summary`, named by the plan's workloads
#' @section Errors: as of `read_summary`; a summary of metrics that its workload does not have
read_summaries <- function(plan) {
  sapply(names(plan$workloads), function(workload) {
    path <- result_path(plan, "summary", workload = workload)
    summary <- read_summary(path, plan)
    unknown <- setdiff(summary$metric, metrics_of(plan, workload)$metric)
    if (length(unknown) > 0) {
      stop_about(path, unknown[[1]], " is no metric of ", workload)
    }
    summary
  }, simplify = FALSE)
}

#' A table of all workloads, read
#'
#' @param path the file
#' @param columns of it, as SET_COLUMNS
#' @param plan as from `read_plan`
#' @return data frame with these columns
#' @section Errors: a broken file; names that the plan does not know
read_known <- function(path, columns, plan) {
  table <- read_csv(path, columns)
  check_known(table, plan, path)
  table
}

#' The tested claims, read
#'
#' @param path of claims.csv
#' @param transferred whether those that were transferred are wanted, instead of all as they were published
#' @return data frame with the columns of CLAIM_COLUMNS
#' @section Errors: a broken file; a verdict that is none
read_tested_claims <- function(path, transferred = FALSE) {
  claims <- read_csv(path, CLAIM_COLUMNS)
  moved <- claims$published_for != ""
  fits <- ifelse(moved, claims$verdict %in% TRANSFERRED_VERDICTS, claims$verdict %in% CLAIM_VERDICTS)
  if (!all(fits)) {
    stop_about(path, "'", claims$verdict[!fits][[1]], "' is no verdict",
               if (any(moved & !fits)) " on a transferred claim")
  }
  claims[moved == transferred, ]
}

#' The footprints, read
#'
#' @param path of footprint.csv
#' @param plan as from `read_plan`
#' @param records list of records
#' @return data frame with the columns of FOOTPRINT_COLUMNS
#' @section Errors: a broken file; an environment that the plan does not know; other systems than the records'
read_footprint <- function(path, plan, records) {
  table <- read_csv(path, FOOTPRINT_COLUMNS)
  unknown <- setdiff(table$environment, names(plan$environments))
  if (length(unknown) > 0) {
    stop_about(path, unknown[[1]], " is not in ", plan$path)
  }
  there <- table(vapply(single_systems(records), `[[`, "", "environment"))
  own <- table[!duplicated(table$environment), ]
  if (!setequal(own$environment, names(there)) || any(own$systems != there[own$environment])) {
    stop_about(path, "it counts other systems than the records tell of; make it again by ",
               "snakemake --cores 1 --force results/footprint.csv")
  }
  table
}
