# The points of a figure of curves: levels along a factor, measured and published.

CURVE_COLUMNS <- c(environment = "character", label = "character", panel = "character", metric = "character",
                   factors = "character", what = "character", along = "numeric", n = "integer",
                   x = "numeric", x_low = "numeric", x_high = "numeric", y = "numeric", y_low = "numeric",
                   y_high = "numeric", source = "character")

#' The levels of a metric along a factor, measured and published
#'
#' Published values stand where the published ratio to native would lead here, as from `published_levels`.
#'
#' @param summary rows of the summary of a workload
#' @param plan as from `read_plan`
#' @param published as from `read_published_ratios`, or NULL for nothing published
#' @param figure its declaration, as from `figures_of`
#' @param metric name
#' @return data frame: environment, metric, factors, rest (the other factors), along (number), what
#'   ("measured" or "published"), n, value, low, high, ratio, ratio_low, ratio_high, source; along the line
#'   of each environment
curve_levels <- function(summary, plan, published, figure, metric) {
  rows <- summary[summary$metric == metric & drawn_in(figure, summary), ]
  none <- rep(NA_real_, nrow(rows))
  measured <- data.frame(rows[c("environment", "metric", "factors")], what = rep("measured", nrow(rows)),
                         n = rows$n, levels_of(rows)[c("value", "low", "high")],
                         rows[c("ratio", "ratio_low", "ratio_high")], source = rep("", nrow(rows)))
  series <- unique(rows[c("workload", "metric", "factors")])
  theirs <- published_levels(rows, series[order(natural_rank(series$factors)), ], plan, published)
  native <- measured[measured$environment == REFERENCE, ]
  none <- rep(NA_real_, nrow(theirs))
  theirs <- data.frame(theirs[c("environment", "metric", "factors")], what = rep("published", nrow(theirs)),
                       n = none, value = theirs$value, low = none, high = none,
                       ratio = theirs$value / native$value[match(theirs$factors, native$factors)],
                       ratio_low = none, ratio_high = none, source = theirs$source)
  both <- rbind(measured, theirs)
  both$along <- factor_numbers(both$factors, figure$along)
  both$rest <- without_factor(both$factors, figure$along)
  both <- both[order(match(both$environment, names(plan$environments)), both$what, natural_rank(both$rest),
                     both$along), ]
  rownames(both) <- NULL
  both
}

#' Names of the panels of a figure: the factors in which they differ
#'
#' @param rest texts such as "test=SET;pipeline=10"
#' @return texts such as "SET, pipeline 10"; "" where nothing differs
panel_texts <- function(rest) {
  names <- unique(sub("=.*", "", unlist(strsplit(unique(rest), ";", fixed = TRUE))))
  parts <- lapply(names, function(name) {
    value <- factor_of(rest, name)
    number <- suppressWarnings(as.numeric(value))
    if (length(unique(value)) == 1) {
      return("")
    }
    ifelse(value == "", paste("no", words(name)),
           ifelse(is.na(number), value, paste(words(name), thousands(value))))
  })
  vapply(seq_along(rest), function(i) {
    text <- vapply(parts, function(part) rep_len(part, length(rest))[[i]], "")
    paste(text[text != ""], collapse = ", ")
  }, "")
}

#' A metric as the title of an axis or a panel
#'
#' @param plan as from `read_plan`
#' @param workload,metric names
#' @return text such as "Throughput (requests/s), higher is better"
metric_title <- function(plan, workload, metric) {
  known <- metrics_of(plan, workload)
  known <- known[known$metric == metric, ]
  paste0(known$label, " (", known$unit, "), ", known$better, " is better")
}

#' Points with the panels that they stand in
#'
#' @param rows as from `curve_levels`
#' @param plan as from `read_plan`
#' @param panel names of the panels, one for each row; panels stand in the order of their first rows
#' @param x,y lists of `value`, `low` and `high`
#' @param order numbers by which the panels are ordered
#' @return data frame with the columns of CURVE_COLUMNS, `panel` a factor
curve_points <- function(rows, plan, panel, x, y, order) {
  points <- data.frame(
    environment = rows$environment, label = environment_labels(plan, rows$environment),
    panel = factor(panel, unique(panel[order(order)])), rows[c("metric", "factors", "what", "along", "n")],
    x = x$value, x_low = x$low, x_high = x$high, y = y$value, y_low = y$low, y_high = y$high,
    source = rows$source
  )
  points[names(CURVE_COLUMNS)]
}

#' An interval that is not there
#'
#' @param value numbers
#' @return list: value, low, high
without_interval <- function(value) {
  none <- rep(NA_real_, length(value))
  list(value = value, low = none, high = none)
}
