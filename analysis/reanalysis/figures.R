# The figures of the original paper, drawn again: filled marks are recomputed, hollow ones are as printed.

#' The figures: what they show, and how
#'
#' @return list named by the figures' numbers; of each `title` and, where there are any, `x`, the factor on
#'   the horizontal axis with its name and scale, or `pair`, the metrics on both axes; `y`, the name of the
#'   vertical axis; `unit`, what its values are divided by; `bars`, what the error bars are
original_figures <- function() {
  list(
    "3" = list(title = "Round-trip latency of netperf", kind = "dots", factor = "test",
               y = "Latency (\u00b5s)"),
    "5" = list(title = "Sequential input and output of fio", kind = "dots", factor = "job",
               y = "Bandwidth (MB/s)"),
    "6" = list(title = "Random input and output of fio", kind = "dots", factor = "job",
               y = "Rate (1000 IOPS)",
               unit = 1000),
    "7" = list(title = "Distribution of the latency of random reads (16 in flight)", kind = "distribution",
               x = "Completion latency (\u00b5s)", y = "Share of the reads (%)"),
    "8" = list(title = "Throughput of Redis (SET)", kind = "lines", factor = "connections", x = "Connections",
               y = "1000 requests/s", unit = 1000, bars = "minimum and maximum"),
    "9" = list(title = "Latency of Redis (SET)", kind = "lines", factor = "connections", x = "Connections",
               y = "Latency (ms)", bars = "minimum and maximum"),
    "10" = list(title = "Throughput of MySQL", kind = "lines", factor = "threads", x = "Threads",
                y = "1000 transactions/s", unit = 1000, bars = "mean and standard deviation"),
    "11" = list(title = "Throughput of MySQL over the use of the processors", kind = "pairs",
                pair = c("cpu", "throughput"), x = "Processor use (%)", y = "1000 transactions/s",
                unit = c(1, 1000)),
    "12" = list(title = "Latency of MySQL", kind = "lines", factor = "threads", x = "Threads",
                y = "Latency (ms)"),
    "13" = list(title = "Latency of MySQL over its throughput", kind = "pairs",
                pair = c("throughput", "latency"),
                x = "1000 transactions/s", y = "Latency (ms)", unit = c(1000, 1))
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
#' @return data frame: `environment`, `panel` (text; "" where there is one panel), `x`, `y`, `low`, `high`
#'   (limits of the error bar, or NA), `source` ("published" or "recomputed"), `n`
figure_points <- function(differences, number) {
  figure <- original_figures()[[number]]
  rows <- differences[differences$place == paste("Figure", number), ]
  both <- function(rows, x, y, panel, unit_x = 1, unit_y = 1, low = NA_real_, high = NA_real_) {
    one <- function(source, value) {
      data.frame(environment = rows$environment, panel = panel, x = value(x) / unit_x, y = value(y) / unit_y,
                 low = value(low) / unit_y, high = value(high) / unit_y, source = source,
                 n = if (source == "published") rows$planned else rows$n)
    }
    take <- function(name) {
      function(what) {
        if (is.data.frame(what)) what[[name]] else what
      }
    }
    rbind(one("published", take("printed")), one("recomputed", take("recomputed")))
  }
  unit <- rep_len(if (is.null(figure$unit)) 1 else figure$unit, 2)
  # rows of one statistic or metric, in the order of those they belong to
  match_rows <- function(rows, base, keep) {
    candidates <- rows[keep, ]
    candidates[match(paste(base$environment, base$factors),
                     paste(candidates$environment, candidates$factors)), ]
  }
  points <- switch(figure$kind, dots = {
    both(rows, NA_real_, rows, factor_value(rows$factors, figure$factor), unit_y = unit[[2]])
  }, distribution = {
    percentile <- as.numeric(factor_value(rows$factors, "percentile"))
    both(rows, rows, percentile, "")
  }, pairs = {
    base <- rows[rows$metric == figure$pair[[1]], ]
    other <- match_rows(rows, base, rows$metric == figure$pair[[2]])
    both(base, base, other, "", unit[[1]], unit[[2]])
  }, lines = {
    base <- rows[rows$statistic == "mean", ]
    limits <- lapply(c("min", "max"), function(name) match_rows(rows, base, rows$statistic == name))
    sd <- match_rows(rows, base, rows$statistic == "sd")
    if (all(is.na(sd$printed))) {
      low <- limits[[1]]
      high <- limits[[2]]
    } else {
      low <- high <- base
      for (column in c("printed", "recomputed")) {
        low[[column]] <- base[[column]] - sd[[column]]
        high[[column]] <- base[[column]] + sd[[column]]
      }
    }
    both(base, as.numeric(factor_value(base$factors, figure$factor)), base, "", 1, unit[[2]], low, high)
  })
  points <- points[!is.na(points$y) & (figure$kind == "dots" | !is.na(points$x)), ]
  known <- names(original_shapes())
  points$environment <- factor(points$environment, known[known %in% rows$environment])
  points
}

#' A figure of the original paper, drawn again
#'
#' @param points as from `figure_points`
#' @param number of the figure
#' @return ggplot2 plot
original_figure <- function(points, number) {
  figure <- original_figures()[[number]]
  environments <- levels(points$environment)
  marks <- original_marks(environments)
  points$shown <- factor(points$source, c("published", "recomputed"))
  points$fill <- ifelse(points$source == "published", NA,
                        marks$colour[match(points$environment, environments)])
  dots <- figure$kind == "dots"
  aes <- if (dots) {
    ggplot2::aes(x = .data$y, y = .data$environment, colour = .data$environment, shape = .data$environment)
  } else {
    ggplot2::aes(x = .data$x, y = .data$y, colour = .data$environment, shape = .data$environment)
  }
  plot <- ggplot2::ggplot(points, aes)
  if (!dots) {
    plot <- plot + ggplot2::geom_path(data = points[points$source == "recomputed", ], linewidth = 0.3)
  }
  barred <- points[points$source == "recomputed" & !is.na(points$low), ]
  if (nrow(barred) > 0) {
    plot <- plot + ggplot2::geom_linerange(ggplot2::aes(ymin = .data$low, ymax = .data$high), data = barred,
                                           linewidth = 0.3)
  }
  plot <- plot +
    ggplot2::geom_point(ggplot2::aes(size = .data$shown, fill = .data$fill), stroke = 0.4, na.rm = TRUE) +
    ggplot2::scale_fill_identity(na.value = NA) +
    ggplot2::scale_size_manual(NULL, values = c(published = 2, recomputed = 1), drop = FALSE,
                               guide = "none") +
    ggplot2::scale_colour_manual(NULL, values = stats::setNames(marks$colour, environments),
                                 breaks = environments, labels = original_labels(environments)) +
    ggplot2::scale_shape_manual(NULL, values = stats::setNames(marks$shape, environments),
                                breaks = environments, labels = original_labels(environments)) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", legend.justification = "left")
  if (dots) {
    plot + ggplot2::facet_wrap(~panel, nrow = 1) +
      ggplot2::scale_y_discrete(NULL, limits = rev(environments),
                                labels = original_labels(rev(environments))) +
      ggplot2::scale_x_continuous(figure$y, limits = c(0, NA)) +
      ggplot2::theme(legend.position = "none")
  } else {
    plot + ggplot2::labs(x = figure$x, y = paste0(figure$y, ", from zero")) +
      ggplot2::expand_limits(y = 0, x = 0) +
      ggplot2::guides(colour = ggplot2::guide_legend(ncol = 2), shape = ggplot2::guide_legend(ncol = 2))
  }
}

#' Draws and writes all figures
#'
#' @param differences as from `read_differences`
#' @param folder that they are written to, as figure-3.pdf, .png and .csv, and so on
draw_original_figures <- function(differences, folder) {
  for (number in names(original_figures())) {
    points <- figure_points(differences, number)
    dots <- original_figures()[[number]]$kind == "dots"
    size <- if (dots) c(FULL_WIDTH, 0.7 + 0.22 * nlevels(points$environment)) else c(COLUMN_WIDTH, 2.8)
    write_figure(original_figure(points, number), points, file.path(folder, paste0("figure-", number)), size)
  }
}
