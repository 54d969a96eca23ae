# From the folder of results to data frames.  What is emulated is set apart here, and nowhere else.

NATIVE <- "native"

`%or%` <- function(x, y) if (is.null(x)) y else x

# Columns of the tidy tables that are no numbers.
TEXT <- c("metric", "unit", "laps", "factors", "check", "counts", "log")

# Data frames with the same columns, and NULLs, as one; NULL of none.
stack_rows <- function(rows) {
  rows <- Filter(Negate(is.null), unname(rows))
  if (length(rows) == 0) return(NULL)
  column <- function(name) do.call(c, lapply(rows, `[[`, name))
  list2DF(lapply(stats::setNames(nm = names(rows[[1]])), column))
}

#' The results of an experiment
#'
#' @param folder that holds plan.json, plan.csv, tidy/ and raw/
#' @param tidy folder of the tidy tables
#' @return list: plan; environments (native beside emulated machines is among the `emulated`), metrics (data
#'   frames in the plan's order); planned (cells); tidy (values that count, with labels); emulated (the same
#'   of emulated machines); records (of planned cells, named by their log); valid (whether the scale answers
#'   a question); invalid (workloads that answer none, since a size rule is broken); sizes (their rules)
#' @section Errors: no plan; no values; an environment or workload that is not in the plan
read_results <- function(folder, tidy = file.path(folder, "tidy")) {
  path <- file.path(folder, "plan.json")
  if (!file.exists(path)) {
    stop(path, ": missing: `snakemake --cores 1 paper/report.pdf` writes it; or name its folder",
         call. = FALSE)
  }
  plan <- jsonlite::read_json(path)
  environments <- stack_rows(Map(read_environment, names(plan$environments), plan$environments))
  metrics <- stack_rows(Map(read_metrics, names(plan$workloads), plan$workloads))
  # What an earlier plan left behind is not of this one.
  tables <- file.path(tidy, paste0(names(plan$workloads), ".csv"))
  tidy <- stack_rows(lapply(tables[file.exists(tables)], read_table, text = TEXT))
  if (is.null(tidy) || nrow(tidy) == 0) stop(folder, "/tidy: no value was measured", call. = FALSE)
  unknown <- setdiff(paste(tidy$workload, tidy$metric), paste(metrics$workload, metrics$metric))
  unknown <- c(unknown, setdiff(tidy$environment, environments$environment))
  if (length(unknown) > 0) stop(folder, "/tidy: ", unknown[[1]], " is not in ", path, call. = FALSE)
  tidy <- label_rows(tidy, metrics, environments)
  tidy$headline <- is_headline(tidy, plan)
  planned <- read_table(file.path(folder, "plan.csv"))
  planned$log <- do.call(sprintf, c("results/raw/%s/%s/%s.log",
                                    planned[c("environment", "workload", "repetition")]))
  paths <- stats::setNames(sub("log$", "json", sub("^results", folder, planned$log)), planned$log)
  records <- lapply(paths[file.exists(paths)], jsonlite::read_json)
  apart_names <- environments$environment[environments$emulated]
  apart <- tidy$environment %in% apart_names
  counts <- tidy$counts == "yes"
  sizes <- size_rules(Filter(function(one) !one$environment %in% apart_names, records))
  valid <- plan$scale != "tiny"
  list(folder = folder, plan = plan, environments = environments, metrics = metrics, all = tidy,
       planned = planned, tidy = tidy[!apart & counts, ], emulated = tidy[apart & counts, ],
       records = records, valid = valid, sizes = sizes,
       invalid = if (valid) unique(sizes$workload[sizes$holds %in% FALSE]) else names(plan$workloads))
}

#' The size rules of workloads, and whether they held in all runs
#'
#' @return data frame: workload, rule, source, told, value, least, holds (NA: not known); NULL of none
size_rules <- function(records) {
  rows <- stack_rows(lapply(unname(records), function(one) {
    stack_rows(lapply(one$sizes, function(rule) {
      data.frame(workload = one$workload, rule = rule$rule, source = rule$source, told = rule$told %or% "",
                 value = rule$value %or% NA_real_, least = rule$least %or% NA_real_,
                 holds = rule$holds %or% NA)
    }))
  }))
  if (is.null(rows)) return(NULL)
  # A rule that is broken anywhere is broken.
  at <- match(paste(rows$workload, rows$rule), unique(paste(rows$workload, rows$rule)))
  rows <- rows[order(at, !rows$holds %in% FALSE, rows$value), ]
  rows[!duplicated(rows[c("workload", "rule")]), ]
}

# A CSV table whose other columns are read as what they look like, and empty ones as numbers.
read_table <- function(path, text = character()) {
  table <- utils::read.csv(path, colClasses = "character", na.strings = character(), check.names = FALSE)
  other <- setdiff(names(table), text)
  table[other] <- lapply(table[other], function(column) {
    if (all(column == "")) as.numeric(column) else utils::type.convert(column, as.is = TRUE, na.strings = "")
  })
  table
}

read_environment <- function(name, entry) {
  kinds <- vapply(entry$told, function(one) one$kind %or% "", "")
  machine <- "machine" %in% kinds || any(vapply(entry$layers, function(one) "vm" %in% names(one), NA))
  sandbox <- "sandbox" %in% kinds || any(vapply(entry$layers, function(one) !is.null(one[[1]]$sandbox), NA))
  family <- if (machine) "machines" else if (sandbox) "sandboxes" else "containers"
  if (name == NATIVE) family <- ""
  data.frame(environment = name, label = entry$label, available = entry$available,
             reason = entry$reason %or% "", family = family,
             otherwise = !is.null(entry$otherwise),
             emulated = isTRUE(entry$emulated) || isTRUE(entry$beside), beside = isTRUE(entry$beside))
}

read_metrics <- function(workload, entry) {
  stack_rows(Map(function(metric, one) {
    data.frame(workload = workload, title = entry$title, question = entry$question %or% workload,
               metric = metric, metric_label = one$label, better = one$better,
               percentile = identical(one$statistic, "percentile"))
  }, names(entry$metrics), entry$metrics))
}

# Labels, and the order of the plan: workloads, metrics, factors (numbers as numbers), environments.
label_rows <- function(tidy, metrics, environments) {
  at <- match(paste(tidy$workload, tidy$metric), paste(metrics$workload, metrics$metric))
  tidy <- cbind(tidy, metrics[at, c("title", "question", "metric_label", "better", "percentile")])
  tidy$label <- environments$label[match(tidy$environment, environments$environment)]
  words <- factor_words(tidy$factors)
  tidy$series <- paste0(tidy$title, " ", tidy$metric_label, ifelse(words == "", "", ", "), words)
  padded <- gsub("([0-9]+)", "000000000000\\1", tidy$factors)
  padded <- gsub("0*([0-9]{12})(?![0-9])", "\\1", padded, perl = TRUE)
  place <- match(tidy$environment, environments$environment)
  tidy <- tidy[order(at, padded, place, tidy$repetition, method = "radix"), ]
  rownames(tidy) <- NULL
  tidy
}

# Factors as a reader names them: a name that its value explains is left out.
factor_words <- function(factors) {
  gsub(";", ", ", gsub("[=_]", " ", gsub("(^|;)(test|job|operation|setup|direction)=", "\\1", factors)))
}

#' The value of one factor, such as "4" of "test=SET;connections=4"; "" where there is none
factor_of <- function(factors, name) {
  found <- regmatches(factors, regexec(paste0("(^|;)", name, "=([^;]*)"), factors))
  vapply(found, function(one) if (length(one) > 0) one[[3]] else "", "")
}

#' Whether values are of the series that a workload's tables tell of: those it declares, or of a sweep the
#' largest
is_headline <- function(tidy, plan) {
  shown <- rep(FALSE, nrow(tidy))
  for (workload in unique(tidy$workload)) {
    own <- which(tidy$workload == workload)
    entry <- plan$workloads[[workload]]
    drawn <- Filter(function(one) one$kind %in% c("runs", "sweep"), entry$figures)
    wanted <- entry$headline %or% lapply(drawn, function(one) {
      list(metric = one$metrics %or% one$metric,
           where = c(one$where, if (one$kind == "sweep") stats::setNames(list("largest"), one$along)))
    })
    found <- Reduce(`|`, lapply(wanted, chosen, rows = tidy[own, ]), rep(FALSE, length(own)))
    shown[own] <- if (any(found)) found else TRUE
  }
  shown
}

chosen <- function(want, rows) {
  keep <- is.null(want$metric) | rows$metric %in% unlist(want$metric)
  for (name in names(want$where)) {
    value <- factor_of(rows$factors, name)
    wanted <- as.character(unlist(want$where[[name]]))
    number <- suppressWarnings(as.numeric(value))
    keep <- keep & if (identical(wanted, "largest")) {
      !is.na(number) & number == max(number[keep], -Inf, na.rm = TRUE)
    } else if (identical(wanted, "smallest")) {
      !is.na(number) & number == min(number[keep], Inf, na.rm = TRUE)
    } else {
      value %in% sub("^none$", "", wanted)
    }
  }
  keep
}
