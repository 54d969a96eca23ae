# The figure of a comparison of two testbeds.

#' What the figure of a comparison draws
#'
#' @param table as from `compare_sides`
#' @param plan of the first side, whose labels are used, or those of the second where it has none
#' @param other plan of the second side
#' @return rows of the table that have a ratio, of sweeps those that stand for them, with `panel` (the
#'   environment's label) and `series`, factors in their order
compared_data <- function(table, plan, other) {
  rows <- table[!is.na(table$ratio), ]
  rows <- rows[told_of(rows, plan, other), ]
  rows$panel <- environment_labels(plan, rows$environment)
  rows$panel <- factor(rows$panel, unique(rows$panel))
  name <- compared_names(rows, plan, other)
  name <- paste0(name, ifelse(rows$better == "lower", " (lower is better)", ""))
  rows$series <- factor(name, unique(name))
  rows
}

#' Which rows of a comparison stand for the others of a sweep
#'
#' @inheritParams compared_data
#' @return logical, one for each row
told_of <- function(table, plan, other) {
  told <- rep(TRUE, nrow(table))
  for (workload in unique(table$workload)) {
    own <- table$workload == workload
    told[own] <- is_headline(table[own, ], if (workload %in% names(plan$workloads)) plan else other)
  }
  told
}

#' What the rows of a comparison are called
#'
#' @inheritParams compared_data
#' @return texts: workload, metric and factors
compared_names <- function(table, plan, other) {
  vapply(seq_len(nrow(table)), function(i) {
    row <- table[i, ]
    of <- if (row$workload %in% names(plan$workloads)) plan else other
    metrics <- metrics_of(of, row$workload)
    label <- metrics$label[match(row$metric, metrics$metric)]
    paste0(of$workloads[[row$workload]]$title, " ", lower_first(label), factor_text(row$factors))
  }, "")
}

#' The figure of a comparison
#'
#' @param data as from `compared_data`
#' @param plan of the first side
#' @param names of the two sides
#' @param effect the minimum effect, as a share
#' @return ggplot2 plot
compared_figure <- function(data, plan, names, effect) {
  marks <- environment_marks(unique(c(names(plan$environments), data$environment)))
  limits <- ratio_limits(data)
  data$y <- nlevels(data$series) + 1 - as.integer(data$series)
  bars <- data[!is.na(data$ratio_low), ]
  ggplot2::ggplot(data, ggplot2::aes(.data$ratio, .data$y)) +
    ggplot2::annotate("rect", xmin = 1 - effect, xmax = 1 + effect, ymin = -Inf, ymax = Inf,
                      fill = "grey92") +
    ggplot2::geom_vline(xintercept = 1, colour = PALE, linewidth = 0.3, linetype = "22") +
    ggplot2::geom_segment(ggplot2::aes(x = pmax(.data$ratio_low, limits[[1]]),
                                       xend = pmin(.data$ratio_high, limits[[2]]), yend = .data$y,
                                       colour = .data$environment), bars, linewidth = 0.5) +
    ggplot2::geom_point(environment_aes(), stroke = 0.5) +
    ggplot2::facet_wrap(ggplot2::vars(.data$panel), nrow = ceiling(nlevels(data$panel) / 4),
                        labeller = ggplot2::label_wrap_gen(24)) +
    ggplot2::scale_x_continuous(paste0("Ratio of ", names[[2]], " to ", names[[1]],
                                       "; the axis does not start at zero"),
                                limits = limits, breaks = round_breaks(4)) +
    ggplot2::scale_y_continuous(NULL, breaks = seq_len(nlevels(data$series)),
                                labels = rev(levels(data$series)),
                                limits = c(0.5, nlevels(data$series) + 0.5), expand = c(0, 0)) +
    environment_scales(marks, environment_labels(plan, marks$environment)) +
    figure_theme() +
    ggplot2::theme(legend.position = "none", axis.ticks.y = ggplot2::element_blank())
}

#' Draws and writes the figure of a comparison
#'
#' @param table as from `compare_sides`
#' @param first,second as from `read_side`
#' @param effect the minimum effect, as a share
#' @param out path without extension
draw_compared <- function(table, first, second, effect, out) {
  data <- compared_data(table, first$plan, second$plan)
  columns <- c("panel", "series", "environment", "n_first", "n_second", "ratio", "ratio_low", "ratio_high")
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("Both sides measured nothing in common."), data[columns], out,
                        c(COLUMN_WIDTH, 0.6)))
  }
  renamed <- stats::setNames(data, sub("^ratio_(low|high)$", "\\1", names(data)))
  drawn <- cbind(data, renamed[c("low", "high")])
  height <- ceiling(nlevels(data$panel) / 4) * (0.2 * nlevels(data$series) + 0.35) + 0.45
  data$series <- as.character(data$series)
  data$panel <- as.character(data$panel)
  write_figure(compared_figure(drawn, first$plan, c(first$name, second$name), effect), data[columns], out,
               c(FULL_WIDTH, height))
}
