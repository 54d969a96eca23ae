# Two testbeds side by side: what both measured, what only one did, and in what they differ.

COMPARED_COLUMNS <- c(
  environment = "character", workload = "character", metric = "character", unit = "character",
  better = "character", factors = "character", n_first = "integer", mean_first = "numeric",
  mean_first_low = "numeric", mean_first_high = "numeric", n_second = "integer", mean_second = "numeric",
  mean_second_low = "numeric", mean_second_high = "numeric", ratio = "numeric", ratio_low = "numeric",
  ratio_high = "numeric", p_value = "numeric", p_adjusted = "numeric", equal_p = "numeric",
  reading = "character",
  differs = "character"
)

#' One side of a comparison
#'
#' @param results folder of results
#' @param name what it is called
#' @return list: `name`, `plan`, `runs` (rows of all tidy tables that count, with `unit`, `better` and
#'   `statistic` as in the plan), `records` and `image`
#' @section Errors: no plan; a missing or broken table or record
read_side <- function(results, name) {
  plan <- read_plan(file.path(results, "plan.json"))
  tables <- lapply(names(plan$workloads), function(workload) {
    path <- file.path(results, "tidy", paste0(workload, ".csv"))
    tidy <- read_tidy(path, plan)
    metrics <- metrics_of(plan, workload)
    tidy[c("better", "statistic")] <- metrics[match(tidy$metric, metrics$metric), c("better", "statistic")]
    tidy
  })
  runs <- counted_rows(do.call(rbind, tables))
  paths <- file.path(results, sub("^[^/]*/", "", unique(sub("[.]log$", ".json", runs$log))))
  list(name = name, plan = plan, runs = runs, records = lapply(paths, read_json),
       image = read_described(file.path(results, "image.json")),
       packages = read_described(file.path(results, "image-manifest.json"))$packages)
}

#' The comparison of two sides
#'
#' @param first,second as from `read_side`
#' @param effect the minimum effect, as a share
#' @return data frame with the columns of COMPARED_COLUMNS.  Ratios are second to first.  `reading` is one of
#'   VERDICTS, of the second side against the first, or "first only" or "second only"; `differs` names, parted
#'   by semicolons, the parameters and the layers that are not the same on both sides
#' @section Errors: the sides were measured at different scales
compare_sides <- function(first, second, effect = MINIMUM_EFFECT) {
  read_compared(compared_rows(first, second, effect), effect)
}

#' The rows of a comparison of two sides before they are read
#'
#' @inheritParams compare_sides
#' @return data frame with the columns of COMPARED_COLUMNS, without `p_adjusted` and `reading`
#' @section Errors: as of `compare_sides`
compared_rows <- function(first, second, effect) {
  if (!identical(first$plan$scale, second$plan$scale)) {
    stop(first$name, " is at scale ", first$plan$scale, " and ", second$name, " at scale ",
         second$plan$scale, "; only runs of one scale can be compared", call. = FALSE)
  }
  sides <- list(first, second)
  keyed <- lapply(sides, function(side) {
    runs <- side$runs
    accelerator <- vapply(runs$environment, function(name) {
      found <- side$plan$environments[[name]]$accelerator
      if (is.character(found)) found else ""
    }, "", USE.NAMES = FALSE)
    cbind(runs, key = paste(runs$environment, accelerator, runs$workload, runs$metric, runs$unit, runs$better,
                            runs$statistic, runs$factors, sep = "\r"))
  })
  both <- rbind(keyed[[1]], keyed[[2]])
  series <- both[!duplicated(both$key), ]
  series <- series[order_of_series(series, first$plan, second$plan), ]
  rows <- lapply(seq_len(nrow(series)), function(i) {
    values <- lapply(keyed, function(runs) runs$value[runs$key == series$key[[i]]])
    compare_series(series[i, ], values[[1]], values[[2]], differing(series[i, ], first, second), effect)
  })
  do.call(rbind, c(list(empty_table(COMPARED_COLUMNS)), rows))
}

#' The rows of comparisons with how each is read: they are one family
#'
#' @param table rows as from `compared_rows`, of one comparison or of several
#' @param effect the minimum effect, as a share
#' @return the table with `p_adjusted` and `reading`
read_compared <- function(table, effect) {
  table$p_adjusted <- adjusted_p_values(table$p_value)
  read <- verdict(table$ratio, table$ratio_low, table$ratio_high, table$better, table$p_adjusted,
                  table$equal_p, effect)
  table$reading <- ifelse(table$n_second == 0, "first only", ifelse(table$n_first == 0, "second only", read))
  table
}

#' The order in which series are told: of the first plan, then of what only the second holds
#'
#' @param series rows of tidy tables
#' @param first,second plans
#' @return permutation
order_of_series <- function(series, first, second) {
  place <- function(x, kind) match(x, unique(c(names(first[[kind]]), names(second[[kind]]))))
  metric <- vapply(seq_len(nrow(series)), function(i) {
    plan <- if (series$workload[[i]] %in% names(first$workloads)) first else second
    match(series$metric[[i]], metrics_of(plan, series$workload[[i]])$metric)
  }, 0L)
  order(place(series$workload, "workloads"), metric, natural_rank(series$factors),
        place(series$environment, "environments"))
}

#' One row of the comparison
#'
#' Harmonic means are compared by their costs, the other way round. Percentiles are not averaged: there is the
#' ratio of their medians, without an interval.
#'
#' @param series row of a tidy table, with its `statistic`
#' @param first,second values of both sides, any of which may be empty
#' @param differs text for the column of that name
#' @param effect the minimum effect, as a share
#' @return data frame of one row with the columns of COMPARED_COLUMNS
compare_series <- function(series, first, second, differs, effect) {
  none <- list(mean = NA_real_, low = NA_real_, high = NA_real_)
  average <- lapply(list(first, second), function(x) {
    if (length(x) > 0) average_of(x, series$statistic) else none
  })
  found <- list(ratio = NA_real_, low = NA_real_, high = NA_real_)
  p <- equal_p <- NA_real_
  if (length(first) > 0 && length(second) > 0) {
    sides <- if (series$statistic == "harmonic") list(1 / second, 1 / first) else list(first, second)
    if (series$statistic == "percentile") {
      found$ratio <- stats::median(second) / stats::median(first)
    } else {
      found <- independent_ratio(sides[[1]], sides[[2]])
      p <- independent_p_value(sides[[1]], sides[[2]])
      equal_p <- independent_equal_p(sides[[1]], sides[[2]], effect)
    }
  }
  data.frame(
    series[c("environment", "workload", "metric", "unit", "better", "factors")],
    n_first = length(first), mean_first = average[[1]]$mean, mean_first_low = average[[1]]$low,
    mean_first_high = average[[1]]$high, n_second = length(second), mean_second = average[[2]]$mean,
    mean_second_low = average[[2]]$low, mean_second_high = average[[2]]$high,
    ratio = found$ratio, ratio_low = found$low, ratio_high = found$high,
    p_value = p, p_adjusted = NA_real_, equal_p = equal_p, reading = "", differs = differs, row.names = NULL
  )
}

#' In what the cells of a series differ between the sides
#'
#' @param series row of a tidy table
#' @param first,second as from `read_side`
#' @return text: names of parameters, "layers", parted by semicolons; "" where nothing does, or where one side
#'   does not hold the series
differing <- function(series, first, second) {
  cells <- lapply(list(first, second), function(side) {
    Filter(function(record) {
      record$environment == series$environment && record$workload == series$workload
    }, side$records)
  })
  if (any(lengths(cells) == 0)) {
    return("")
  }
  parameters <- lapply(cells, function(records) records[[1]]$parameters)
  names <- sort(unique(unlist(lapply(parameters, names))), method = "radix")
  other <- Filter(function(name) !identical(parameters[[1]][[name]], parameters[[2]][[name]]), names)
  layers <- lapply(cells, function(records) records[[1]]$system$layers)
  paste(c(other, if (!identical(layers[[1]], layers[[2]])) "layers"), collapse = ";")
}

#' Facts of nested lists as texts
#'
#' @param x nested lists
#' @param prefix what their names start with
#' @return named character vector; a fact's name is the way to it
flat_facts <- function(x, prefix = "") {
  if (!is.list(x)) {
    value <- if (is.null(x)) NOT_AVAILABLE else paste(format(x, digits = 10, trim = TRUE), collapse = ", ")
    return(stats::setNames(value, prefix))
  }
  if (length(x) == 0) {
    return(character())
  }
  if (is.null(names(x))) {
    return(stats::setNames(paste(vapply(x, function(one) {
      as.character(jsonlite::toJSON(one, auto_unbox = TRUE, digits = NA))
    }, ""), collapse = ", "), prefix))
  }
  unlist(lapply(names(x), function(name) flat_facts(x[[name]], trimws(paste(prefix, words(name))))))
}

#' What is known of where the runs of a side are from
#'
#' @param side as from `read_side`
#' @return named character vector: what it is, in words, and all values that were seen of it
side_facts <- function(side) {
  of_record <- function(record) {
    environment <- paste0(environment_labels(side$plan, record$environment), ":")
    workload <- paste0(side$plan$workloads[[record$workload]]$title, ":")
    inside <- record$observed$inside
    # Named after the system, which is another one in every set.
    inside$cgroup <- NULL
    list(list("Host:", record$observed$host$static), list("Client:", record$observed$client),
         list(environment, inside), list(environment, record$system["layers"]),
         list(workload, record$parameters), list("Source:", record$source["revision"]))
  }
  # Hundreds of runs tell the same.
  told <- unique(unlist(lapply(side$records, of_record), recursive = FALSE))
  found <- unlist(lapply(told, function(one) flat_facts(one[[2]], one[[1]])))
  several <- tapply(unname(found), names(found), function(values) {
    paste(sort(unique(values), method = "radix"), collapse = " | ")
  })
  accelerators <- lapply(side$plan$environments, `[[`, "accelerator")
  names(accelerators) <- environment_labels(side$plan, names(accelerators))
  accelerators <- Filter(Negate(is.null), accelerators)
  planned <- c(
    flat_facts(side$plan[intersect(c("seed", "order", "repetitions", "client"), names(side$plan))],
               "Experiment:"),
    flat_facts(side$plan$machine, "Machine:"), flat_facts(side$plan$image, "Image:"),
    flat_facts(side$image[setdiff(names(side$image), c("format", "recipe", "distribution", "release"))],
               "Image:"),
    flat_facts(side$packages, "Package:"),
    if (length(accelerators) > 0) flat_facts(accelerators, "Accelerator of"),
    c(Measured = period_text(measured_period(side$records)))
  )
  several <- stats::setNames(as.character(several), names(several))
  c(planned, several)
}

#' In what the origin of two sides differs
#'
#' @param first,second as from `read_side`
#' @return data frame: item, first, second; a row for everything that is not the same on both
provenance_differences <- function(first, second) {
  stats::setNames(origins_apart(list(first, second)), c("item", "first", "second"))
}

#' In what the origin of several sides differs
#'
#' @param sides list of sides as from `read_side`
#' @return data frame: item, and a column for each side, without names of their own; a row for everything that
#'   is not the same on all
origins_apart <- function(sides) {
  facts <- lapply(sides, side_facts)
  items <- unique(unlist(lapply(facts, names)))
  values <- vapply(facts, function(known) {
    found <- unname(known[items])
    ifelse(is.na(found), NOT_AVAILABLE, found)
  }, character(length(items)))
  values <- matrix(values, length(items))
  table <- data.frame(item = items, values)
  table <- table[apply(values != values[, 1], 1, any), ]
  table <- table[order(sub(":.*", "", table$item), table$item, method = "radix"), ]
  rownames(table) <- NULL
  table
}

#' What a comparison comes to
#'
#' @param table as from `compare_sides`
#' @return list: `outcome` ("no difference", "difference" or "nothing to compare") and the number of rows of
#'   each reading
outcome_of <- function(table) {
  readings <- c(VERDICTS, "first only", "second only")
  counts <- as.list(table(factor(table$reading, readings)))
  told <- sum(!is.na(table$ratio_low))
  outcome <- if (told == 0) {
    "nothing to compare"
  } else if (counts$slower + counts$faster > 0) {
    "difference"
  } else {
    "no difference"
  }
  c(list(outcome = outcome, compared = told), counts)
}
