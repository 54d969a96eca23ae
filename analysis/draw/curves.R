# What the figures of sweeps share: points of environments, joined by lines, with their intervals, and beside
# them what was published.


#' The parts of a figure of curves, each with axes of its own
#'
#' Emulated virtual machines stand apart from the others where they are far from all of them.
#'
#' @param points as from `curve_points`
#' @param plan as from `read_plan`
#' @param far data frame: environment, place, value, by which it is decided
#' @return list of one or two such data frames
curve_parts <- function(points, plan, far) {
  apart <- far_environments(far$environment, far$place, far$value, plan)
  if (length(apart) == 0) {
    return(list(points))
  }
  lapply(list(setdiff(points$environment, apart), apart), function(environments) {
    part <- points[points$environment %in% environments, ]
    part$panel <- droplevels(part$panel)
    part
  })
}

#' Limits within which an axis shows intervals
#'
#' All values are within; an interval may go on beyond, so that few runs do not press all values together.
#'
#' @param value,low,high numbers
#' @param scale "linear", which holds zero, or "log"
#' @param room least room beyond the values
#' @return two numbers
curve_limits <- function(value, low, high, scale, room = 0) {
  if (scale == "log") {
    return(exp(curve_limits(log(value), log(low), log(high), "free", log(1.1))))
  }
  span <- range(value, if (scale == "linear") 0)
  reach <- max(0.35 * diff(span), room)
  inside <- pmin(pmax(c(low, high), span[[1]] - reach), span[[2]] + reach)
  if (room == 0) {
    inside <- pmax(inside, 0)
  }
  range(span, span + c(-room, room), inside, na.rm = TRUE)
}

#' Both halves of intervals, cut where the axis ends
#'
#' @param points as from `curve_points`
#' @param axis "x" or "y"
#' @param limits data frame with a row for each point: low, high, as from `curve_limits`
#' @return data frame: the points' columns, `end` of the half, and `beyond`, whether it goes on
half_intervals <- function(points, axis, limits) {
  halves <- lapply(c("low", "high"), function(side) {
    end <- points[[paste0(axis, "_", side)]]
    cut <- pmin(pmax(end, limits$low), limits$high)
    half <- cbind(points, end = cut, beyond = cut != end)
    half[!is.na(end), ]
  })
  do.call(rbind, halves)
}

#' Places beside one another for environments that share a place on the axis
#'
#' @param points as from `curve_points`
#' @param scale "linear" or "log"
#' @return numbers for `x`: nearer to one another than the places themselves
dodged <- function(points, scale) {
  at <- if (scale == "log") log(points$x) else points$x
  places <- sort(unique(at))
  environments <- unique(points$environment)
  gap <- if (length(places) > 1) min(diff(places)) else 1
  range <- max(diff(range(places)), gap)
  step <- min(0.5 * gap / length(environments), 0.007 * range)
  at <- at + step * (match(points$environment, environments) - (length(environments) + 1) / 2)
  if (scale == "log") exp(at) else at
}

#' Some of the places on an axis, so far apart that their labels are
#'
#' @param places numbers
#' @param scale "linear" or "log"
#' @param most how many at most stand side by side
#' @return numbers, among them the smallest
spaced <- function(places, scale, most = 8) {
  places <- sort(unique(places))
  at <- if (scale == "log") log(places) else places
  shown <- 1
  for (i in seq_along(places)[-1]) {
    if (at[[i]] - at[[max(shown)]] >= diff(range(at)) / most) {
      shown <- c(shown, i)
    }
  }
  places[shown]
}

#' How many panels stand side by side, where their order does not tell
#'
#' @param points as from `curve_points`
#' @return number: at most three, and no panel is alone in a row of theirs where that can be helped
curve_columns <- function(points) {
  panels <- nlevels(points$panel)
  if (panels == 4) 2 else min(max(panels, 1), 3)
}

#' Round numbers on a vertical axis, where long ones do not run into one another
#'
#' @param range two numbers
#' @return numbers
level_breaks <- function(range) {
  breaks <- pretty(range, 4)
  breaks[breaks >= range[[1]] & breaks <= range[[2]]]
}

#' A figure of curves
#'
#' @param points as from `curve_points`
#' @param plan as from `read_plan`
#' @param x,y lists for the axes: `title` (NULL where the panels' names say it), `scale` ("linear", "log", or
#'   "share" for percentiles) and `breaks` (a function or numbers)
#' @param columns panels side by side
#' @param losses names of the panels that show a loss: their axes reach below zero, where native is
#' @param ends whether the ends of the lines tell where along the factor they are
#' @return ggplot2 plot
curve_figure <- function(points, plan, x, y, columns, losses = character(), ends = FALSE) {
  marks <- environment_marks(names(plan$environments))
  marks <- marks[marks$environment %in% points$environment, ]
  loss <- points$panel %in% losses
  limits_of <- function(axis, scale) {
    of <- function(name) points[[paste0(axis, name)]]
    limits <- lapply(split(seq_len(nrow(points)), points$panel), function(own) {
      room <- if (axis == "y" && loss[[own[[1]]]]) 2 else 0
      curve_limits(of("")[own], of("_low")[own], of("_high")[own], scale, room)
    })
    limits <- do.call(rbind, limits)[as.integer(points$panel), , drop = FALSE]
    data.frame(low = limits[, 1], high = limits[, 2], row.names = NULL)
  }
  exact <- function(axis) data.frame(low = points[[axis]], high = points[[axis]])
  limits <- list(x = if (all(is.na(points$x_low))) exact("x") else limits_of("x", x$scale),
                 y = if (y$scale == "share") exact("y") else limits_of("y", y$scale))
  corners <- data.frame(panel = points$panel, x = c(limits$x$low, limits$x$high),
                        y = c(limits$y$low, limits$y$high))
  measured <- points$what == "measured"
  one <- nlevels(points$panel) == 1
  ggplot2::ggplot(points, ggplot2::aes(.data$x, .data$y, colour = .data$environment)) +
    ggplot2::geom_blank(ggplot2::aes(.data$x, .data$y), corners, inherit.aes = FALSE) +
    (if (any(loss)) {
      ggplot2::geom_hline(ggplot2::aes(yintercept = 0), unique(points[loss, "panel", drop = FALSE]),
                          colour = PALE, linewidth = 0.3, linetype = "22")
    }) +
    interval_layers(points[measured, ], "y", limits$y[measured, ]) +
    interval_layers(points[measured, ], "x", limits$x[measured, ]) +
    ggplot2::geom_path(ggplot2::aes(group = paste(.data$environment, .data$what), linetype = .data$what),
                       linewidth = 0.35) +
    told_layer(ggplot2::geom_point(environment_aes(), points[measured, ], stroke = 0.4),
               curve_words(points[measured, ])) +
    ggplot2::geom_point(data = points[!measured, ], shape = 5, size = 1, stroke = 0.35, show.legend = FALSE) +
    (if (ends) end_layer(points, plan)) +
    ggplot2::facet_wrap(ggplot2::vars(.data$panel), ncol = columns, scales = "free",
                        labeller = ggplot2::label_wrap_gen(c(60, 60, 44, 28)[[columns]])) +
    curve_axis(ggplot2::scale_x_continuous, x) +
    curve_axis(ggplot2::scale_y_continuous, y) +
    environment_scales(marks, environment_labels(plan, marks$environment)) +
    ggplot2::scale_linetype_manual(NULL, values = c(measured = "solid", published = "11"),
                                   breaks = "published", labels = "Published, as ratio to native") +
    ggplot2::guides(colour = ggplot2::guide_legend(nrow = curve_legend_rows(points), byrow = TRUE, order = 1),
                    shape = ggplot2::guide_legend(order = 1), size = ggplot2::guide_legend(order = 1),
                    linetype = if (all(measured)) "none" else ggplot2::guide_legend(order = 2)) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", legend.justification = "left", legend.box = "vertical",
                   legend.box.just = "left", legend.key.width = ggplot2::unit(14, "pt"),
                   legend.text = ggplot2::element_text(lineheight = 0.85),
                   legend.spacing.y = ggplot2::unit(2.5, "pt"),
                   plot.margin = ggplot2::margin(2, 9, 2, 2)) +
    if (one && !is.null(y$title)) ggplot2::theme(strip.text = ggplot2::element_blank())
}

#' What a point of a figure of curves says when it is pointed at
#'
#' @param points as from `curve_points`
#' @return texts
curve_words <- function(points) {
  paste0(points$label, ", ", gsub(";", ", ", points$factors, fixed = TRUE), ": ", signif(points$y, 4),
         ifelse(is.na(points$y_low), "",
                paste0(" [", signif(points$y_low, 4), ", ", signif(points$y_high, 4), "]")),
         ", n = ", points$n, recycle0 = TRUE)
}

#' An axis of a figure of curves
#'
#' @param scale ggplot2 scale of the axis
#' @param axis as of `curve_figure`
#' @return ggplot2 scale
curve_axis <- function(scale, axis) {
  labels <- if (is.null(axis$labels)) axis_numbers else axis$labels
  expand <- if (is.null(axis$expand)) ggplot2::expansion(mult = c(0.04, 0.08)) else axis$expand
  options <- list(axis$title, breaks = axis$breaks, labels = labels, expand = expand)
  # Before its version 3.5, ggplot2 has another name for it.
  name <- intersect(c("transform", "trans"), names(formals(ggplot2::continuous_scale)))[[1]]
  options[[name]] <- switch(axis$scale, log = "log10", share = "logit", "identity")
  do.call(scale, options)
}

#' Layers that draw intervals, with an arrow where one goes on beyond the axis
#'
#' @param points as from `curve_points`
#' @param axis "x" or "y"
#' @param limits as of `half_intervals`
#' @return list of ggplot2 layers
interval_layers <- function(points, axis, limits) {
  halves <- half_intervals(points, axis, limits)
  to <- if (axis == "x") {
    ggplot2::aes(xend = .data$end, yend = .data$y)
  } else {
    ggplot2::aes(xend = .data$x, yend = .data$end)
  }
  list(
    ggplot2::geom_segment(to, halves[!halves$beyond, ], linewidth = 0.4, show.legend = FALSE),
    ggplot2::geom_segment(to, halves[halves$beyond, ], linewidth = 0.4, show.legend = FALSE,
                          arrow = ggplot2::arrow(length = ggplot2::unit(3, "pt")))
  )
}

#' A layer that tells at the ends of a line in every panel where along the factor they are
#'
#' @param points as from `curve_points`
#' @param plan as from `read_plan`
#' @return ggplot2 layer
end_layer <- function(points, plan) {
  first <- intersect(names(plan$environments), points$environment)[[1]]
  own <- points[points$environment == first & points$what == "measured", ]
  ends <- do.call(rbind, lapply(split(own, own$panel, drop = TRUE), function(line) {
    line[unique(c(1, nrow(line))), ]
  }))
  ggplot2::geom_text(ggplot2::aes(label = axis_numbers(.data$along)), ends, family = FONT, colour = INK,
                     size = 0.875 * FONT_SIZE / ggplot2::.pt, hjust = -0.3, vjust = -0.3, show.legend = FALSE)
}

#' How many rows the legend of a figure of curves takes
#'
#' @param points as from `curve_points`
#' @return number: four environments stand side by side, and two in a single column
curve_legend_rows <- function(points) {
  ceiling(length(unique(points$environment)) / if (nlevels(points$panel) == 1) 2 else 4)
}

#' Size of a figure of curves
#'
#' @param points as from `curve_points`
#' @param columns panels side by side
#' @return width and height in inches
curve_size <- function(points, columns) {
  rows <- ceiling(nlevels(points$panel) / columns)
  lines <- max(lengths(strsplit(in_two_lines(unique(points$label)), "\n", fixed = TRUE)))
  legend <- (0.04 + 0.13 * lines) * curve_legend_rows(points) + if (all(points$what == "measured")) 0 else 0.2
  if (columns == 1) {
    c(COLUMN_WIDTH, 2 * rows + legend + 0.3)
  } else {
    c(FULL_WIDTH, (if (columns < 4) 1.3 else 1.25) * rows + legend + 0.35)
  }
}

#' Draws and writes a figure of curves
#'
#' @param curves list: `points`, as from `curve_points`; `far`, as of `curve_parts`; `columns`, panels side by
#'   side, of which there are four where the figure would not fit on a page; and `draw`, a function of
#'   a part and of the columns that makes its plot
#' @param plan as from `read_plan`
#' @param out path without extension
write_curves <- function(curves, plan, out) {
  points <- curves$points
  if (nrow(points) == 0) {
    return(write_figure(empty_figure("Nothing of this was measured."), empty_table(CURVE_COLUMNS), out,
                        c(COLUMN_WIDTH, 0.6)))
  }
  parts <- curve_parts(points, plan, curves$far)
  columns <- curves$columns
  size <- function(columns) vapply(parts, curve_size, c(0, 0), columns = columns)
  if (sum(size(columns)[2, ]) > MOST_HEIGHT && nlevels(points$panel) > columns) {
    columns <- 4
  }
  sizes <- size(columns)
  figures <- lapply(parts, curves$draw, columns)
  points$panel <- as.character(points$panel)
  # Two that are as wide as a column stand side by side.
  if (length(parts) == 2 && columns == 1) {
    write_figure(figures, points, out, c(FULL_WIDTH, max(sizes[2, ])), NULL)
  } else {
    write_figure(figures, points, out, c(max(sizes[1, ]), min(sum(sizes[2, ]), MOST_HEIGHT)), sizes[2, ])
  }
}
