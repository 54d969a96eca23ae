# Figures of a distribution: the percentiles of the samples of a run, the median over the runs of each.

# Percentiles that the axis names.
NAMED_PERCENTILES <- c(1, 10, 50, 90, 99, 99.9, 99.99, 99.999)

#' What the figure of a distribution draws
#'
#' @param summary rows of the summary of a workload
#' @param plan as from `read_plan`
#' @param published as from `read_published_ratios`, or NULL
#' @param figure its declaration
#' @return list: `points`, whose `y` is a share between 0 and 1, `far` and `columns`, as for `write_curves`
#' @section Errors: a percentile that does not lie between 0 and 100
cdf_data <- function(summary, plan, published, figure) {
  rows <- curve_levels(summary, plan, published, figure, figure$metric)
  wrong <- rows$along <= 0 | rows$along >= 100
  if (any(wrong)) {
    stop("a percentile must lie between 0 and 100, and ", rows$along[wrong][[1]], " does not", call. = FALSE)
  }
  points <- curve_points(rows, plan, panel_texts(rows$rest), rows,
                         without_interval(rows$along / 100), natural_rank(rows$rest))
  measured <- rows$what == "measured"
  far <- data.frame(environment = rows$environment, place = paste(rows$rest, rows$along), value = rows$value)
  list(points = points, far = far[measured, ], columns = curve_columns(points))
}

#' Draws and writes the figure of a distribution
#'
#' @inheritParams cdf_data
#' @param out path without extension
draw_cdf <- function(summary, plan, published, figure, out) {
  data <- cdf_data(summary, plan, published, figure)
  title <- paste0(metric_title(plan, summary$workload[[1]], figure$metric), "; logarithmic")
  data$draw <- function(part, columns) {
    shares <- NAMED_PERCENTILES / 100
    shares <- shares[shares >= min(part$y) & shares <= max(part$y)]
    curve_figure(part, plan, x = list(title = title, scale = "log", breaks = log_breaks),
                 y = list(title = "Share of the operations (%)", scale = "share", breaks = shares,
                          labels = function(x) axis_numbers(100 * x)), columns = columns)
  }
  write_curves(data, plan, out)
}

#' Round numbers on a logarithmic axis
#'
#' @param range two numbers
#' @return 1, 2 and 5 times powers of ten within; powers of ten alone where there are many
log_breaks <- function(range) {
  powers <- 10^(floor(log10(range[[1]])):ceiling(log10(range[[2]])))
  breaks <- if (log10(range[[2]] / range[[1]]) > 2) powers else as.vector(outer(c(1, 2, 5), powers))
  breaks <- sort(breaks)
  breaks[breaks >= range[[1]] & breaks <= range[[2]]]
}
