# What was published, as ratios to native, and where it would lie here.

# The bandwidth of a thread (fio's samples) is that of a job with one thread, as both of Fig. 5 are.
DRAWN_WITH <- c(thread_bandwidth = "bandwidth")

#' The ratios to native that were published
#'
#' @param table as from `read_published`
#' @param figures data frame with the columns of FIGURE_VALUES
#' @return data frame: workload, metric, factors ("" for the table, whose sizes are the originals'),
#'   environment (its published name), ratio, source (where it was published)
published_ratios <- function(table, figures) {
  printed <- do.call(rbind, lapply(table$rows, function(row) {
    mean <- vapply(row$values, function(value) as.numeric(value$mean), 0)
    data.frame(workload = row$workload, metric = row$metric, factors = "", environment = names(mean),
               ratio = unname(mean / mean[[REFERENCE]]), source = table$publication$place)
  }))
  figures <- figures[figures$statistic %in% c("value", "mean"), ]
  figures$environment <- unname(FIGURE_ENVIRONMENTS[figures$environment])
  figures <- figures[!is.na(figures$environment), ]
  figures <- figures[!duplicated(figures[c("workload", "metric", "factors", "environment")]), ]
  key <- paste(figures$figure, figures$workload, figures$metric, figures$factors)
  of_native <- figures$environment == REFERENCE
  base <- figures$published[of_native][match(key, key[of_native])]
  drawn <- data.frame(figures[c("workload", "metric", "factors", "environment")],
                      ratio = figures$published / base, source = paste("Fig.", figures$figure))
  of_thread <- drawn$metric %in% names(DRAWN_WITH)
  drawn$metric[of_thread] <- DRAWN_WITH[drawn$metric[of_thread]]
  all <- rbind(printed, drawn)
  all[all$environment != REFERENCE & !is.na(all$ratio), ]
}

#' The ratios to native that claims print, of workloads of which the report prints no values
#'
#' @param published as from `read_claims`
#' @param but names of the report's workloads
#' @return data frame as from `published_ratios`; NULL where there are none
claimed_ratios <- function(published, but) {
  do.call(rbind, lapply(published$claims, function(claim) {
    of_native <- Filter(function(pair) pair[[2]] == REFERENCE, claim$pairs)
    prints <- identical(claim$published$unit, "ratio") && !is.null(claim$metrics)
    if (prints && length(of_native) > 0 && !claim$workload %in% but) {
      factors <- paste0(names(claim$factors), "=", unlist(claim$factors), recycle0 = TRUE)
      expand.grid(workload = claim$workload, metric = unlist(claim$metrics),
                  factors = paste(factors, collapse = ";"),
                  environment = vapply(of_native, `[[`, "", 1), ratio = claim$published$value,
                  source = published$publications[[claim$publication]]$label,
                  KEEP.OUT.ATTRS = FALSE, stringsAsFactors = FALSE)
    }
  }))
}

#' Which environment of a plan a published one is shown with
#'
#' @param name its published name
#' @param known `environments` of the claims: what each is measured as
#' @param plan as from `read_plan`
#' @return name; "" where the plan has none, or one whose virtual machine is not accelerated as the published
#'   one was
shown_with <- function(name, known, plan) {
  entry <- known[[name]]
  names <- intersect(unlist(entry$measured_as), names(plan$environments))
  same <- vapply(names, function(one) {
    needed <- entry[["accelerator"]]
    is.null(needed) || identical(plan$environments[[one]][["accelerator"]], needed)
  }, NA)
  if (any(same)) names[same][[1]] else ""
}

#' The published ratios of series that were measured
#'
#' Table I was printed for one size of each workload: it stands with the largest that was measured.
#'
#' @param published as from `published_ratios`
#' @param series data frame: workload, metric, factors, each series once and the largest size last
#' @param known,plan as of `shown_with`
#' @return rows of `published` with the columns `at`, the row of `series`, and `with`, as from `shown_with`
published_beside <- function(published, series, known, plan) {
  key <- function(table) paste(table$workload, table$metric, table$factors)
  last <- which(!duplicated(series[c("workload", "metric")], fromLast = TRUE))
  of_table <- match(paste(published$workload, published$metric),
                    paste(series$workload, series$metric)[last])
  published$at <- ifelse(published$factors == "", last[of_table], match(key(published), key(series)))
  published <- published[!is.na(published$at), ]
  published$with <- vapply(published$environment, shown_with, "", known = known, plan = plan,
                           USE.NAMES = FALSE)
  published
}

#' Reads what was published, as ratios to native
#'
#' @param root folder of the project
#' @return list: `ratios`, as from `published_ratios` and `claimed_ratios`; `known`, `environments` of the
#'   claims
read_published_ratios <- function(root) {
  at <- function(name) file.path(root, "published", name)
  report <- published_ratios(read_published(at("ibm-table1.json")),
                             read_csv(at("ibm-figures.csv"), FIGURE_VALUES))
  claims <- read_claims(at("claims.json"))
  list(ratios = rbind(report, claimed_ratios(claims, report$workload)), known = claims$environments)
}

#' Where environments would lie if the published ratios to native held here
#'
#' The published values are of other hardware, and only their ratios can be set against what was measured: the
#' level is that ratio of the mean of native here.
#'
#' @param summary rows of the summary of a workload
#' @param series data frame: workload, metric, factors, the largest size last
#' @param plan as from `read_plan`
#' @param published as of `workload_data`
#' @return data frame: environment, metric, factors, value, source; no row where native, or the environment
#'   that stands for the published one, was not measured
published_levels <- function(summary, series, plan, published) {
  none <- data.frame(environment = character(), metric = character(), factors = character(),
                     value = numeric(), source = character())
  if (is.null(published)) {
    return(none)
  }
  rows <- published_beside(published$ratios, series, published$known, plan)
  key <- function(environment, at) paste(environment, series$metric[at], series$factors[at])
  measured <- paste(summary$environment, summary$metric, summary$factors)
  base <- levels_of(summary)$value[match(key(REFERENCE, rows$at), measured)]
  shown <- !is.na(base) & key(rows$with, rows$at) %in% measured
  rows <- rows[shown, ]
  data.frame(environment = rows$with, series[rows$at, c("metric", "factors")],
             value = base[shown] * rows$ratio, source = rows$source, row.names = NULL)
}
