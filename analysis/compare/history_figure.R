# The figure of several dates or machines: every series at each of them, relative to the first.

#' What the figure of a history draws
#'
#' @param history as from `history_of`
#' @param sides list of sides as from `read_side`, in their order
#' @return data frame: environment, label (the environment's), series and side (factors in their order), n,
#'   ratio (to the first side, which has 1 and no interval), low, high; of sweeps the points that stand for
#'   them
history_data <- function(history, sides) {
  names <- side_names(sides)
  plan <- sides[[1]]$plan
  rows <- history[history$from == names[[1]] & !is.na(history$ratio), ]
  rows <- rows[told_of(rows, plan, plan), ]
  key <- paste(rows$environment, rows$workload, rows$metric, rows$factors, sep = "\r")
  once <- rows[!duplicated(key), ]
  of <- c("environment", "workload", "metric", "factors", "better")
  none <- rep(NA_real_, nrow(once))
  drawn <- rbind(
    data.frame(once[of], side = rep(names[[1]], nrow(once)), n = once$n_first, ratio = rep(1, nrow(once)),
               low = none, high = none),
    data.frame(rows[of], side = rows$to, n = rows$n_second, ratio = rows$ratio, low = rows$ratio_low,
               high = rows$ratio_high)
  )
  lower <- ifelse(drawn$better == "lower", " (lower is better)", "")
  label <- paste0(compared_names(drawn, plan, plan), lower)
  # In the order of the rows, which is the plan's.
  series <- unique(label)
  data.frame(environment = drawn$environment, label = environment_labels(plan, drawn$environment),
             series = factor(label, series), side = factor(drawn$side, names),
             drawn[c("n", "ratio", "low", "high")], row.names = NULL)
}

#' The figure of a history
#'
#' @param data as from `history_data`, of which all environments share an axis
#' @param plan of the first side
#' @param effect the minimum effect, as a share
#' @return ggplot2 plot
history_figure <- function(data, plan, effect) {
  marks <- environment_marks(names(plan$environments))
  marks <- marks[marks$environment %in% data$environment, ]
  limits <- ratio_limits(data)
  # Beside one another where they stand for the same side.
  shift <- (match(data$environment, marks$environment) - (nrow(marks) + 1) / 2) * 0.6 / max(1, nrow(marks))
  data$x <- as.integer(data$side) + shift
  data$environment <- factor(data$environment, marks$environment)
  bars <- data[!is.na(data$low), ]
  ggplot2::ggplot(data, ggplot2::aes(.data$x, .data$ratio)) +
    ggplot2::annotate("rect", xmin = -Inf, xmax = Inf, ymin = 1 - effect, ymax = 1 + effect,
                      fill = "grey92") +
    ggplot2::geom_line(ggplot2::aes(colour = .data$environment), linewidth = 0.25) +
    ggplot2::geom_segment(ggplot2::aes(xend = .data$x, y = pmax(.data$low, limits[[1]]),
                                       yend = pmin(.data$high, limits[[2]]), colour = .data$environment),
                          bars, linewidth = 0.5) +
    ggplot2::geom_point(environment_aes(), stroke = 0.5) +
    ggplot2::facet_wrap(ggplot2::vars(.data$series), ncol = 4, labeller = ggplot2::label_wrap_gen(24)) +
    ggplot2::scale_x_continuous(NULL, breaks = seq_len(nlevels(data$side)), labels = levels(data$side),
                                limits = c(0.5, nlevels(data$side) + 0.5),
                                guide = ggplot2::guide_axis(angle = 30)) +
    ggplot2::scale_y_continuous("Ratio to the first", limits = limits, breaks = round_breaks(4)) +
    environment_scales(marks, environment_labels(plan, marks$environment)) +
    figure_theme() +
    ggplot2::theme(legend.position = "bottom")
}

#' Draws and writes the figure of a history
#'
#' Emulated virtual machines, which vary far more than all else, stand below on an axis of their own.
#'
#' @param history as from `history_of`
#' @param sides list of sides as from `read_side`, in their order
#' @param effect the minimum effect, as a share
#' @param out path without extension
draw_history <- function(history, sides, effect, out) {
  data <- history_data(history, sides)
  plan <- sides[[1]]$plan
  told <- data
  told[c("series", "side")] <- lapply(data[c("series", "side")], as.character)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("Nothing was measured at the first and at another."), told, out,
                        c(COLUMN_WIDTH, 0.6)))
  }
  parts <- unname(split(data, data$environment %in% emulated_environments(plan)))
  height <- ceiling(nlevels(data$series) / 4) * 1.6 + 0.6
  write_figure(lapply(parts, history_figure, plan, effect), told, out, c(FULL_WIDTH, length(parts) * height),
               rep(1, length(parts)))
}
