# The figure of the drift: the level of each set, as the machine moved.

#' What the figure of the drift draws
#'
#' @param tidy list of tidy tables
#' @param plan as from `read_plan`
#' @return as from `levels_of_sets`, of the series that the tables tell of, with `title`, a factor in the
#'   order of the plan, and level and band in per cent: the deviation from the mean
drift_data <- function(tidy, plan) {
  runs <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), tidy))
  runs <- runs[is_headline(runs, plan), ]
  sets <- levels_of_sets(runs, plan)
  sets$level <- 100 * (sets$level - 1)
  sets$band <- 100 * sets$band
  titles <- unlist(lapply(told_series(sets, plan), function(one) series_names(as.data.frame(one), plan)))
  data.frame(title = factor(series_names(sets, plan), unique(titles)), sets)
}

#' The figure of the drift
#'
#' @param data as from `drift_data`
#' @return ggplot2 plot
drift_figure <- function(data) {
  bands <- data[!duplicated(data$title) & !is.na(data$band), ]
  ggplot2::ggplot(data, ggplot2::aes(.data$order, .data$level)) +
    ggplot2::geom_rect(ggplot2::aes(xmin = -Inf, xmax = Inf, ymin = -.data$band, ymax = .data$band), bands,
                       fill = "grey90") +
    ggplot2::geom_hline(yintercept = 0, colour = PALE, linewidth = 0.25) +
    ggplot2::geom_line(data = data[data$counts == "yes", ], colour = PALE, linewidth = 0.25) +
    told_layer(ggplot2::geom_point(ggplot2::aes(shape = .data$counts), colour = INK, fill = "white", size = 1,
                                   stroke = 0.4),
               paste0(data$title, ", set ", data$repetition, ": ", signed(round(data$level, 1)), " % (",
                      data$n, " environments)")) +
    ggplot2::facet_wrap(ggplot2::vars(.data$title), ncol = drift_columns(data), scales = "free_y",
                        labeller = ggplot2::as_labeller(function(title) {
                          panel_title(title, if (drift_columns(data) == 2) 54 else 34)
                        })) +
    ggplot2::scale_shape_manual(NULL, values = c(yes = 16, no = 21), breaks = "no",
                                labels = "set aside: disturbed, and measured again") +
    ggplot2::scale_x_continuous("Place in the order of measurement", breaks = few_whole,
                                expand = ggplot2::expansion(mult = 0.015)) +
    ggplot2::scale_y_continuous("Deviation of the set from the mean (%)", breaks = level_breaks,
                                limits = function(range) range(range, -0.5, 0.5), labels = signed,
                                expand = ggplot2::expansion(mult = 0.12)) +
    figure_theme() +
    ggplot2::theme(legend.position = if (any(data$counts == "no")) "top" else "none",
                   legend.justification = "right", panel.grid.major.x = ggplot2::element_blank(),
                   strip.text = ggplot2::element_text(vjust = 0))
}

#' How many panels of the figure of the drift stand side by side
#'
#' @param data as from `drift_data`
#' @return number
drift_columns <- function(data) {
  if (nlevels(data$title) > 14) 3 else min(2, nlevels(data$title))
}

#' Draws and writes the figure of the drift
#'
#' @param tables list of tidy tables
#' @param plan as from `read_plan`
#' @param out path without extension
draw_drift <- function(tables, plan, out) {
  data <- drift_data(tables, plan)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("No set was measured."), data, out, c(COLUMN_WIDTH, 0.6)))
  }
  rows <- ceiling(nlevels(data$title) / drift_columns(data))
  write_figure(drift_figure(data), data, out, c(FULL_WIDTH, min(0.7 + 0.9 * rows, MOST_HEIGHT)))
}
