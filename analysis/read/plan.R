# The plan: what was to be measured, in which order, and what it is called.

# mean: an amount or a cost; harmonic: a rate over equal work in every run; percentile: a percentile of the
# samples of a run.
STATISTICS <- c("mean", "harmonic", "percentile")

REFERENCE <- "native"

# Where each file of the results lies, below their folder.
RESULTS <- read_contract("results")

#' Where files of the results lie
#'
#' @param plan as from `read_plan`
#' @param name of the kind of file, as in contracts/results.json
#' @param ... what stands for its placeholders, as of `filled`
#' @return paths
result_path <- function(plan, name, ...) {
  file.path(plan$results, filled(RESULTS[[name]], ...))
}

#' The plan of an experiment
#'
#' @param path path of plan.json
#' @return the plan as nested lists, with `path` and `results`, the folder that holds it
#' @section Errors: no such file; not a plan; another format
read_plan <- function(path) {
  plan <- read_json(path)
  if (!identical(as.double(plan$format), 3)) {
    stop_about(path, "not a plan of format 3")
  }
  missing <- setdiff(c("environments", "workloads"), names(plan))
  if (length(missing) > 0) {
    stop_about(path, "it holds no ", missing[[1]])
  }
  plan$path <- path
  plan$results <- dirname(path)
  plan
}

#' Checks that a table names only what the plan knows
#'
#' @param table data frame with the columns environment and workload
#' @param plan as from `read_plan`
#' @param path the file that the table is from
#' @section Errors: an environment or a workload that is not in the plan
check_known <- function(table, plan, path) {
  unknown <- c(setdiff(table$environment, names(plan$environments)),
               setdiff(table$workload, names(plan$workloads)))
  if (length(unknown) > 0) {
    stop_about(path, unknown[[1]], " is not in ", plan$path)
  }
}

#' A workload of a plan
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @return its entry
#' @section Errors: the plan has no such workload
planned_workload <- function(plan, workload) {
  if (is.null(plan$workloads[[workload]])) {
    stop_about(plan$path, "there is no workload ", workload, "; there are ",
               paste(names(plan$workloads), collapse = ", "))
  }
  plan$workloads[[workload]]
}

#' Labels of environments
#'
#' @param plan as from `read_plan`
#' @param environments names
#' @return character vector
environment_labels <- function(plan, environments) {
  vapply(environments, function(name) {
    label <- plan$environments[[name]]$label
    if (is.null(label)) name else label
  }, "", USE.NAMES = FALSE)
}

#' What is known of metrics
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @return data frame in the plan's order: metric, label, unit, better, statistic, one of STATISTICS, and
#'   optional, whether a machine may be unable to tell it
#' @section Errors: a statistic that is none of them
metrics_of <- function(plan, workload) {
  metrics <- planned_workload(plan, workload)$metrics
  text <- function(key) vapply(metrics, function(metric) metric[[key]], "", USE.NAMES = FALSE)
  statistic <- vapply(metrics, function(metric) c(metric$statistic, "mean")[[1]], "", USE.NAMES = FALSE)
  unknown <- which(!statistic %in% STATISTICS)
  if (length(unknown) > 0) {
    first <- unknown[[1]]
    stop_about(plan$path, "workloads.", workload, ".metrics.", names(metrics)[[first]], ".statistic: '",
               statistic[[first]], "' should be ", paste(STATISTICS, collapse = " or "))
  }
  data.frame(metric = names(metrics), label = text("label"), unit = text("unit"), better = text("better"),
             statistic = statistic,
             optional = vapply(metrics, function(metric) isTRUE(metric$optional), NA, USE.NAMES = FALSE),
             bound = vapply(metrics, function(metric) c(metric$bound, "")[[1]], "", USE.NAMES = FALSE))
}

#' Place of texts in their natural order, in which numbers count as numbers
#'
#' @param x texts, as "n=500" and "n=12000"
#' @return for every text its place among the different ones
natural_rank <- function(x) {
  different <- unique(x)
  numbered <- gsub("([0-9]+)", "00000000000000000000\\1", different)
  padded <- gsub("0*([0-9]{20})(?![0-9])", "\\1", numbered, perl = TRUE)
  match(x, different[order(padded, different, method = "radix")])
}
