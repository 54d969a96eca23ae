# The figures of the original paper, drawn again: what they show as recomputed (hollow where no raw results
# were read), and how far the print is from it.

#' The figures: what they show, and how
#'
#' @return list named by the figures' numbers; of each `title`, `kind` and, where there are any, `factor`, on
#'   the horizontal axis, `x` and `y`, the names of the axes, or `pair`, the metrics on both axes; `of`, the
#'   unit of its differences; `unit`, what its values are divided by; `bars`, what the error bars are
original_figures <- function() {
  list(
    "3" = list(title = "Round-trip latency of netperf", kind = "dots", factor = "test", of = "\u00b5s"),
    "5" = list(title = "Sequential input and output of fio", kind = "dots", factor = "job", of = "MB/s"),
    "6" = list(title = "Random input and output of fio", kind = "dots", factor = "job", of = "IOPS"),
    "7" = list(title = "Distribution of the latency of random reads (16 in flight)", kind = "distribution",
               x = "percentile", y = "Completion latency (\u00b5s)"),
    "8" = list(title = "Throughput of Redis (SET)", kind = "lines", factor = "connections", x = "connections",
               y = "1000 requests/s", unit = 1000, bars = "minimum and maximum"),
    "9" = list(title = "Latency of Redis (SET)", kind = "lines", factor = "connections", x = "connections",
               y = "Latency (ms)", bars = "minimum and maximum"),
    "10" = list(title = "Throughput of MySQL", kind = "lines", factor = "threads", x = "threads",
                y = "1000 transactions/s", unit = 1000, bars = "mean and standard deviation"),
    "11" = list(title = "Throughput of MySQL over the use of the processors", kind = "pairs",
                factor = "threads", pair = c("cpu", "throughput"), x = "Processor use (%)",
                y = "1000 transactions/s", unit = c(1, 1000)),
    "12" = list(title = "Latency of MySQL", kind = "lines", factor = "threads", x = "threads",
                y = "Latency (ms)"),
    "13" = list(title = "Latency of MySQL over its throughput", kind = "pairs", factor = "threads",
                pair = c("throughput", "latency"), x = "1000 transactions/s", y = "Latency (ms)",
                unit = c(1000, 1))
  )
}

#' Colours and shapes of the environments of the original paper
#'
#' The colours are those that the environments have everywhere; the shapes can be filled or hollow.
#'
#' @param environments names
#' @return data frame: environment, colour, shape
original_marks <- function(environments) {
  known <- known_environments()
  colour <- stats::setNames(known$colour, known$environment)
  colour <- c(colour, "docker-hostnet-layered" = "#CC79A7")
  data.frame(environment = environments, colour = unname(colour[environments]),
             shape = unname(original_shapes()[environments]))
}

#' Shapes that can be filled or hollow, by the environments in their order
#'
#' @return named vector; two environments that share a shape are never in one figure
original_shapes <- function() {
  c(native = 21, docker = 22, "docker-hostnet" = 24, "docker-hostnet-layered" = 25, "docker-layered" = 22,
    vm = 23)
}

#' What a figure draws
#'
#' @param differences as from `read_differences`
#' @param number of the figure
#' @return data frame: `environment`, `panel` (text), `part` ("level", of what the original shows, or
#'   "difference", of the recomputed value from the printed one), `x`, `y`, `low`, `high` (limits of the error
#'   bar, or NA), `source` ("published" where no raw results were read, "fewer runs" of a difference where
#'   fewer were read than are behind the print, else "recomputed"), `tolerance` (to which the print can be
#'   read), `printed`, `n`
figure_points <- function(differences, number) {
  figure <- original_figures()[[number]]
  rows <- differences[differences$place == paste("Figure", number), ]
  points <- switch(figure$kind, dots = dot_points(rows, figure), distribution = {
    series_points(rows, figure, as.numeric(factor_value(rows$factors, "percentile")))
  }, pairs = pair_points(rows, figure), lines = {
    base <- rows[rows$statistic == "mean", ]
    series_points(base, figure, as.numeric(factor_value(base$factors, figure$factor)), bars_of(rows, base))
  })
  points <- points[!is.na(points$x) & !is.na(points$y), ]
  points$panel <- factor(points$panel, unique(points$panel))
  known <- names(original_shapes())
  points$environment <- factor(points$environment, known[known %in% rows$environment])
  points
}

#' Points of one panel
#'
#' @param rows of the differences
#' @param part,panel,x,y,low,high columns of the result
#' @return data frame as of `figure_points`
panel_points <- function(rows, part, panel, x, y, low = NA_real_, high = NA_real_) {
  each <- function(values) rep_len(values, nrow(rows))
  data.frame(environment = rows$environment, panel = each(panel), part = each(part), x = x, y = y,
             low = each(low), high = each(high), source = ifelse(
               is.na(rows$recomputed), "published",
               ifelse(part == "difference" & rows$verdict == "incomplete", "fewer runs", "recomputed")
             ),
             tolerance = rows$tolerance, printed = rows$printed, n = rows$n)
}

#' The value that stands for a printed one: the recomputed one where there is one
#'
#' @param rows of the differences
#' @return numbers
level_of <- function(rows) {
  ifelse(is.na(rows$recomputed), rows$printed, rows$recomputed)
}

#' Rows of one statistic or metric, in the order of those that they belong to
#'
#' @param rows of the differences
#' @param base rows that they belong to
#' @param keep which of `rows` may be taken
#' @return rows of `rows`, one for each of `base`
rows_beside <- function(rows, base, keep) {
  candidates <- rows[keep, ]
  candidates[match(paste(base$environment, base$factors),
                   paste(candidates$environment, candidates$factors)), ]
}

#' Error bars of recomputed means
#'
#' @param rows of the differences
#' @param base those of the means
#' @return list: `low`, `high`: smallest and largest run, or the mean less and plus its standard deviation
bars_of <- function(rows, base) {
  sd <- rows_beside(rows, base, rows$statistic == "sd")$recomputed
  limits <- lapply(c("min", "max"), function(name) {
    rows_beside(rows, base, rows$statistic == name)$recomputed
  })
  if (any(rows$statistic == "sd")) {
    limits <- list(base$recomputed - sd, base$recomputed + sd)
  }
  list(low = limits[[1]], high = limits[[2]])
}

#' Levels and differences along one axis
#'
#' @param rows of the differences
#' @param figure as of `original_figures`
#' @param x positions
#' @param bars as from `bars_of`
#' @return data frame as of `figure_points`
series_points <- function(rows, figure, x, bars = list(low = NA_real_, high = NA_real_)) {
  unit <- c(figure$unit, 1)[[1]]
  known <- !is.na(rows$difference)
  rbind(
    panel_points(rows, "level", paste0(figure$y, ", over ", figure$x), x, level_of(rows) / unit,
                 bars$low / unit, bars$high / unit),
    panel_points(rows[known, ], "difference",
                 paste0("Recomputed less printed (", unit_text(rows$unit[1]), ")"), x[known],
                 rows$difference[known])
  )
}

#' A curve of one metric over another, and the differences of both over what both were measured at
#'
#' @inheritParams series_points
#' @return data frame as of `figure_points`
pair_points <- function(rows, figure) {
  base <- rows[rows$metric == figure$pair[[1]], ]
  other <- rows_beside(rows, base, rows$metric == figure$pair[[2]])
  differences <- lapply(list(base, other), function(own) {
    own <- own[!is.na(own$difference), ]
    panel_points(own, "difference", paste0("Recomputed less printed: ", words(own$metric), " (",
                                           unit_text(own$unit), "), over ", figure$factor, recycle0 = TRUE),
                 as.numeric(factor_value(own$factors, figure$factor)), own$difference)
  })
  rbind(panel_points(base, "level", paste0(figure$y, ", over ", lower_first(figure$x)),
                     level_of(base) / figure$unit[[1]], level_of(other) / figure$unit[[2]]),
        differences[[1]], differences[[2]])
}

#' Differences of a few values, side by side
#'
#' @inheritParams series_points
#' @return data frame as of `figure_points`; `y` is the recomputed value, 0 where there is none
dot_points <- function(rows, figure) {
  known <- rows[!is.na(rows$difference), ]
  panel_points(known, "difference", factor_value(known$factors, figure$factor), known$difference,
               known$recomputed)
}

#' A unit as it is printed
#'
#' @param unit texts
#' @return texts
unit_text <- function(unit) {
  ifelse(unit == "us", "\u00b5s", unit)
}

#' A figure of the original paper: its level, and how far the print is from it
#'
#' @param points as from `figure_points`
#' @param number of the figure
#' @return ggplot2 plot
original_figure <- function(points, number) {
  figure <- original_figures()[[number]]
  environments <- levels(points$environment)
  if (nrow(points) == 0) {
    return(ggplot2::ggplot() + figure_theme() + ggplot2::theme(panel.border = ggplot2::element_blank()) +
             ggplot2::labs(title = "No raw results of this figure were read."))
  }
  marks <- original_marks(environments)
  points$fill <- ifelse(points$source != "recomputed", NA,
                        marks$colour[match(points$environment, environments)])
  plot <- if (figure$kind == "dots") {
    dot_plot(points, figure, environments)
  } else {
    series_plot(points)
  }
  plot + ggplot2::scale_fill_identity(na.value = NA) +
    ggplot2::scale_colour_manual(NULL, values = stats::setNames(marks$colour, environments),
                                 breaks = environments, labels = original_labels(environments)) +
    ggplot2::scale_shape_manual(NULL, values = stats::setNames(marks$shape, environments),
                                breaks = environments, labels = original_labels(environments))
}

#' Differences of a few values: a panel for each setting
#'
#' @param points as from `figure_points`, with the column `fill`
#' @param figure as of `original_figures`
#' @param environments names, in their order
#' @return ggplot2 plot
dot_plot <- function(points, figure, environments) {
  points$label <- paste0(quantity(signif(points$y, 6), 6), recycle0 = TRUE)
  edges <- rbind(transform(points, x = points$tolerance), transform(points, x = -points$tolerance))
  ggplot2::ggplot(points, ggplot2::aes(x = .data$x, y = .data$environment, colour = .data$environment,
                                       shape = .data$environment)) +
    ggplot2::geom_vline(xintercept = 0, linewidth = 0.3, colour = PALE) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$x), edges, linewidth = 0.3, colour = PALE,
                        linetype = "dashed") +
    ggplot2::geom_point(ggplot2::aes(fill = .data$fill), size = 1.3, stroke = 0.4) +
    ggplot2::geom_text(ggplot2::aes(label = .data$label), vjust = -0.8, size = 7 / ggplot2::.pt,
                       family = FONT, show.legend = FALSE) +
    ggplot2::facet_wrap(~panel, ncol = 1) +
    ggplot2::scale_y_discrete(NULL, limits = rev(environments), labels = original_labels(rev(environments)),
                              expand = ggplot2::expansion(add = c(0.5, 0.9))) +
    ggplot2::scale_x_continuous(paste0("Recomputed less printed (", figure$of, ")"),
                                expand = ggplot2::expansion(0.12)) +
    figure_theme() + ggplot2::theme(legend.position = "none")
}

#' Levels above differences, which have a panel of their own
#'
#' @param points as from `figure_points`, with the column `fill`
#' @return ggplot2 plot
series_plot <- function(points) {
  levels_drawn <- points[points$part == "level", ]
  apart <- points[points$part == "difference", ]
  zero <- transform(utils::head(levels_drawn, 1), x = 0, y = 0)
  edges <- apart[!duplicated(apart[c("panel", "tolerance")]), ]
  edges <- rbind(transform(edges, at = edges$tolerance, line = rep("dashed", nrow(edges))),
                 transform(edges, at = -edges$tolerance, line = rep("dashed", nrow(edges))),
                 transform(edges, at = rep(0, nrow(edges)), line = rep("solid", nrow(edges))))
  barred <- levels_drawn[!is.na(levels_drawn$low), ]
  ggplot2::ggplot(points, ggplot2::aes(x = .data$x, y = .data$y, colour = .data$environment,
                                       shape = .data$environment)) +
    ggplot2::geom_blank(data = zero) +
    ggplot2::geom_hline(ggplot2::aes(yintercept = .data$at, linetype = .data$line), edges, linewidth = 0.3,
                        colour = PALE) +
    ggplot2::scale_linetype_identity() +
    ggplot2::geom_path(data = points[points$source != "published", ], linewidth = 0.3) +
    ggplot2::geom_linerange(ggplot2::aes(ymin = .data$low, ymax = .data$high), data = barred,
                            linewidth = 0.3) +
    ggplot2::geom_point(ggplot2::aes(fill = .data$fill), size = 1.2, stroke = 0.4) +
    ggplot2::facet_wrap(~panel, ncol = 1, scales = "free") +
    ggplot2::labs(x = NULL, y = NULL) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", legend.justification = "left",
                   # The last number of an axis may stand out of its panel.
                   plot.margin = ggplot2::margin(2, 9, 2, 2)) +
    ggplot2::guides(colour = ggplot2::guide_legend(ncol = 2), shape = ggplot2::guide_legend(ncol = 2))
}

#' The size of a figure
#'
#' @param points as from `figure_points`
#' @param number of the figure
#' @return width and height in inches
original_size <- function(points, number) {
  panels <- max(1, nlevels(points$panel))
  if (original_figures()[[number]]$kind == "dots") {
    return(c(COLUMN_WIDTH, 0.35 + panels * (0.3 + 0.23 * nlevels(points$environment))))
  }
  c(COLUMN_WIDTH, 0.15 + 0.17 * ceiling(nlevels(points$environment) / 2) + 1.4 + 0.95 * (panels - 1))
}

#' Draws and writes all figures
#'
#' @param differences as from `read_differences`
#' @param folder that they are written to, as figure-3.pdf, .png and .csv, and so on
draw_original_figures <- function(differences, folder) {
  for (number in names(original_figures())) {
    points <- figure_points(differences, number)
    write_figure(original_figure(points, number), points, file.path(folder, paste0("figure-", number)),
                 original_size(points, number))
  }
}
