# The figure of the footprint: how long it takes to bring an environment up.

FOOTPRINT_FIGURE_COLUMNS <- c(environment = "character", label = "character", quantity = "character",
                              systems = "integer", n = "integer", mean = "numeric", low = "numeric",
                              high = "numeric", min = "numeric", max = "numeric")

# The times of a footprint, and how the legend calls them.
FOOTPRINT_TIMES <- c(up_seconds = "Until all layers are up", boot_seconds = "Boot of its machine")

#' What the figure of the footprint draws
#'
#' @param footprint as from `read_footprint`
#' @param plan as from `read_plan`
#' @return data frame with the columns of FOOTPRINT_FIGURE_COLUMNS, in the order of the plan; what no record
#'   tells is left out, and what took less time than is told, which has no place on a logarithmic axis
footprint_data <- function(footprint, plan) {
  rows <- footprint[footprint$quantity %in% names(FOOTPRINT_TIMES) & footprint$n > 0, ]
  rows <- rows[!is.na(rows$mean) & rows$mean > 0, ]
  rows <- rows[order(match(rows$environment, names(plan$environments)),
                     match(rows$quantity, names(FOOTPRINT_TIMES))), ]
  data <- data.frame(rows["environment"], label = environment_labels(plan, rows$environment),
                     rows[c("quantity", "systems", "n", "mean")], low = rows$mean_low, high = rows$mean_high,
                     rows[c("min", "max")], row.names = NULL)
  data[names(FOOTPRINT_FIGURE_COLUMNS)]
}

#' The figure of the footprint
#'
#' @param data as from `footprint_data`
#' @return ggplot2 plot
footprint_figure <- function(data) {
  environments <- unique(data$environment)
  second <- data$quantity != names(FOOTPRINT_TIMES)[[1]]
  data$row <- length(environments) + 1 - match(data$environment, environments) +
    ifelse(data$environment %in% data$environment[second], ifelse(second, -0.18, 0.18), 0)
  first <- data[!duplicated(data$environment), ]
  kinds <- FOOTPRINT_TIMES[names(FOOTPRINT_TIMES) %in% data$quantity]
  bars <- data[!is.na(data$low) & data$low > 0, ]
  least <- min(data$mean, data$min[data$min > 0])
  words <- paste0(data$label, ", ", lower_first(FOOTPRINT_TIMES[data$quantity]), ": mean ",
                  signif(data$mean, 3),
                  " s, ", signif(data$min, 3), " to ", signif(data$max, 3), " s, n = ", data$n)
  ggplot2::ggplot(data, ggplot2::aes(.data$mean, .data$row)) +
    ggplot2::geom_segment(ggplot2::aes(pmax(.data$min, least), .data$row, xend = .data$max, yend = .data$row),
                          colour = PALE, linewidth = 0.3) +
    ggplot2::geom_segment(ggplot2::aes(.data$low, .data$row, xend = .data$high, yend = .data$row), bars,
                          colour = INK, linewidth = 1) +
    told_layer(ggplot2::geom_point(ggplot2::aes(shape = .data$quantity), colour = INK, fill = "white",
                                   size = 1.6, stroke = 0.5), words) +
    ggplot2::scale_shape_manual(NULL, values = c(up_seconds = 16, boot_seconds = 21), breaks = names(kinds),
                                labels = unname(kinds), guide = ggplot2::guide_legend(nrow = 1)) +
    curve_axis(ggplot2::scale_x_continuous,
               list(title = "Seconds, fewer are better; logarithmic", scale = "log",
                    breaks = log_breaks)) +
    ggplot2::scale_y_continuous(NULL, breaks = length(environments) + 1 - seq_along(environments),
                                labels = in_two_lines(first$label), expand = c(0, 0),
                                limits = c(0.5, length(environments) + 0.5),
                                sec.axis = ggplot2::dup_axis(labels = n_is(first$n))) +
    figure_theme() +
    ggplot2::theme(legend.position = if (length(kinds) > 1) "top" else "none", legend.justification = "left",
                   axis.text.y = ggplot2::element_text(lineheight = 0.85),
                   axis.text.y.right = ggplot2::element_text(colour = PALE),
                   axis.ticks.y = ggplot2::element_blank())
}

#' Draws and writes the figure of the footprint
#'
#' @param footprint as of `footprint_data`
#' @param plan as from `read_plan`
#' @param out path without extension
draw_footprint <- function(footprint, plan, out) {
  data <- footprint_data(footprint, plan)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("Nothing took time to be brought up."), data, out, c(COLUMN_WIDTH, 0.6)))
  }
  rows <- length(unique(data$environment))
  write_figure(footprint_figure(data), data, out, c(COLUMN_WIDTH, 0.65 + 0.25 * rows))
}
