# Figures of one metric against another: a point for each concurrency, joined in its order.

#' What the figure of a metric against another draws
#'
#' @param summary rows of the summary of a workload
#' @param plan as from `read_plan`
#' @param published as from `read_published_ratios`, or NULL
#' @param figure its declaration
#' @return list: `points`, `far` and `columns`, as for `write_curves`
against_data <- function(summary, plan, published, figure) {
  across <- curve_levels(summary, plan, published, figure, figure$against)
  rows <- curve_levels(summary, plan, published, figure, figure$metric)
  key <- function(table) paste(table$environment, table$factors, table$what)
  at <- match(key(rows), key(across))
  rows <- rows[!is.na(at), ]
  across <- across[at[!is.na(at)], ]
  points <- curve_points(rows, plan, panel_texts(rows$rest), across, rows,
                         natural_rank(rows$rest))
  # The CSV names the metric of either axis.
  points$metric <- rep(paste(figure$against, figure$metric, sep = ";"), nrow(points))
  measured <- rows$what == "measured"
  place <- paste(rows$rest, rows$along)[measured]
  far <- data.frame(environment = rep(rows$environment[measured], 2),
                    place = paste(rep(c("x", "y"), each = length(place)), place),
                    value = c(across$value[measured], rows$value[measured]))
  list(points = points, far = far, columns = curve_columns(points))
}

#' Draws and writes the figure of a metric against another
#'
#' @inheritParams against_data
#' @param out path without extension
draw_against <- function(summary, plan, published, figure, out) {
  data <- against_data(summary, plan, published, figure)
  workload <- summary$workload[[1]]
  axis <- function(metric, breaks) {
    list(title = metric_title(plan, workload, metric), scale = "linear", breaks = breaks)
  }
  data$draw <- function(part, columns) {
    curve_figure(part, plan, axis(figure$against, round_breaks(4)), axis(figure$metric, level_breaks),
                 columns, ends = TRUE)
  }
  write_curves(data, plan, out)
}
