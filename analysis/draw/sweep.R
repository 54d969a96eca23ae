# Figures of a metric against a concurrency, and beside it the loss against native.

#' What the figure of a sweep draws
#'
#' The loss is how much less of what is better when higher there is than in native, and how much more of what
#' is better when lower: it is positive where an environment is worse.
#'
#' @param summary rows of the summary of a workload
#' @param plan as from `read_plan`
#' @param published as from `read_published_ratios`, or NULL
#' @param figure its declaration
#' @return list: `points`, `far` and `columns`, as for `write_curves`, and `losses`, names of panels
sweep_data <- function(summary, plan, published, figure) {
  rows <- curve_levels(summary, plan, published, figure, figure$metric)
  workload <- summary$workload[[1]]
  metrics <- metrics_of(plan, workload)
  metric <- metrics[metrics$metric == figure$metric, ]
  text <- panel_texts(rows$rest)
  titled <- function(quantity, text) {
    ifelse(text == "", quantity, paste0(text, ": ", lower_first(quantity)))
  }
  level <- paste0(metric$label, " (", metric$unit, ")")
  place <- natural_rank(rows$rest)
  points <- curve_points(rows, plan, titled(level, text), without_interval(rows$along), rows, place)
  far <- data.frame(environment = rows$environment, place = paste(rows$rest, rows$along), value = rows$value)
  far <- far[rows$what == "measured", ]
  shown <- rows[isTRUE(figure$loss) & !is.na(rows$ratio), ]
  if (nrow(shown) == 0) {
    return(list(points = points, far = far, columns = curve_columns(points), losses = character()))
  }
  sign <- if (metric$better == "higher") -1 else 1
  ends <- if (sign < 0) c("ratio_high", "ratio_low") else c("ratio_low", "ratio_high")
  percent <- function(column) 100 * sign * (shown[[column]] - 1)
  worse <- if (sign < 0) "Loss against native (%)" else "Excess over native (%)"
  losses <- titled(worse, panel_texts(rows$rest)[isTRUE(figure$loss) & !is.na(rows$ratio)])
  loss <- curve_points(shown, plan, losses, without_interval(shown$along),
                       list(value = percent("ratio"), low = percent(ends[[1]]), high = percent(ends[[2]])),
                       natural_rank(shown$rest))
  names <- as.vector(rbind(levels(points$panel), titled(worse, unique(text[order(place)]))))
  both <- rbind(cbind(points, panel_name = as.character(points$panel)),
                cbind(loss, panel_name = as.character(loss$panel)))
  both$panel <- droplevels(factor(both$panel_name, names))
  both$panel_name <- NULL
  list(points = both, far = far, columns = 2,
       losses = unique(losses))
}

# So many places on an axis have their own labels: between a few nothing was measured that a round one could
# stand for.
FEW_PLACES <- 5

#' Where labels stand on the axis of a sweep
#'
#' @param places where points are
#' @param scale "linear" or "log"
#' @return numbers, or a function that finds round ones
sweep_breaks <- function(places, scale) {
  if (scale == "log" || length(unique(places)) <= FEW_PLACES) spaced(places, scale) else round_breaks(5)
}

#' Draws and writes the figure of a sweep
#'
#' @inheritParams sweep_data
#' @param out path without extension
draw_sweep <- function(summary, plan, published, figure, out) {
  data <- sweep_data(summary, plan, published, figure)
  scale <- c(figure$scale, "linear")[[1]]
  breaks <- sweep_breaks(data$points$x, scale)
  data$draw <- function(part, columns) {
    part$x <- dodged(part, scale)
    curve_figure(part, plan, x = list(title = upper_first(words(figure$along)), scale = scale,
                                      breaks = breaks),
                 y = list(title = NULL, scale = "linear", breaks = level_breaks), columns = columns,
                 losses = data$losses)
  }
  write_curves(data, plan, out)
}
