# The figure of all ratios to native, measured and published side by side.

RATIO_COLUMNS <- c(panel = "character", environment = "character", series = "character",
                   row = "character", workload = "character", metric = "character",
                   factors = "character", what = "character", n = "integer",
                   ratio = "numeric", low = "numeric", high = "numeric", source = "character")

#' What the figure of ratios draws
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS, of all workloads
#' @param plan as from `read_plan`
#' @param published as from `published_ratios`
#' @param known `environments` of the claims
#' @return data frame with the columns of RATIO_COLUMNS; `what` is "measured" or "published"; panels are
#'   factors in the order of the plan, what was only published behind, and series in the order of the paper;
#'   and where its marks stand, as from `row_of`
ratio_data <- function(summary, plan, published, known) {
  rows <- compare(summary, plan)
  rows <- rows[rows$headline, ]
  series <- rows[!duplicated(rows$series), c("workload", "metric", "factors", "name", "better")]
  alone <- substr(series$name, 1, nchar(series$name) - nchar(factor_text(series$factors)))
  series[c("name", "metric_name")] <- lapply(list(series$name, alone), paste0,
                                             ifelse(series$better == "lower", " (lower is better)", ""))
  measured <- rows[!is.na(rows$ratio), ]
  label <- function(at) series$name[at]
  key <- function(table) paste(table$workload, table$metric, table$factors)
  ours <- data.frame(
    panel = measured$environment_label, environment = measured$environment,
    series = label(match(key(measured), key(series))), measured[c("workload", "metric", "factors")],
    what = rep("measured", nrow(measured)), n = measured$ratio_n, ratio = measured$ratio,
    low = measured$ratio_low, high = measured$ratio_high, source = rep("", nrow(measured))
  )
  published <- published_beside(published, series, known, plan)
  at <- published$at
  with <- published$with
  alone <- vapply(published$environment, function(name) known[[name]]$label, "", USE.NAMES = FALSE)
  theirs <- data.frame(
    panel = ifelse(with == "", paste(alone, "(published only)"),
                   environment_labels(plan, ifelse(with == "", REFERENCE, with))),
    environment = with, series = label(at), series[at, c("workload", "metric", "factors")],
    what = rep("published", nrow(published)), n = rep(NA_real_, nrow(published)), ratio = published$ratio,
    low = rep(NA_real_, nrow(published)), high = rep(NA_real_, nrow(published)), source = published$source
  )
  data <- rbind(ours, theirs)
  data$panel <- factor(data$panel, unique(c(environment_labels(plan, names(plan$environments)),
                                            theirs$panel)))
  data$panel <- droplevels(data$panel)
  data$series <- factor(data$series, unique(series$name))
  data[c("row", "shift")] <- row_of(data$series, series)
  data <- data[order(data$panel, data$series, data$what), ]
  rownames(data) <- NULL
  data
}

#' The rows of the figure
#'
#' Each is of one series or, where so many do not fit on a page, of a metric, in which the marks of its series
#' stand below one another.
#'
#' @param at of each ratio its series, a factor
#' @param series data frame: name, metric_name, in the order of the paper
#' @return list: rows, a factor, and by how much of a row a mark stands above its middle
row_of <- function(at, series) {
  if (rows_height(levels(at)) + 1.3 <= MOST_HEIGHT) {
    return(list(at, 0))
  }
  place <- match(levels(at), series$name)
  metric <- series$metric_name[place]
  shift <- stats::ave(seq_along(metric), metric, FUN = function(of) {
    if (length(of) > 1) seq(0.3, -0.3, length.out = length(of)) else 0
  })
  at <- as.integer(at)
  list(factor(metric[at], unique(metric[sort(unique(at))])), shift[at])
}

#' Whether ratios are so far apart that an axis without logarithms would push most of them together
#'
#' @param data as from `ratio_data`
#' @return TRUE or FALSE
far_apart <- function(data) max(data$ratio, 1) > 4

#' Limits of the axis of ratios
#'
#' All ratios are within; an interval may go on beyond by more than half of their largest distance from 1, on
#' an axis of logarithms by half of a ratio.
#'
#' @param data as from `ratio_data`
#' @param logarithms whether the axis is one of logarithms
#' @return two numbers
ratio_limits <- function(data, logarithms = FALSE) {
  if (logarithms) {
    return(range(data$ratio, 0.9, 1.1) * c(1 / 1.5, 1.5))
  }
  reach <- max(0.05, 1.5 * max(abs(data$ratio - 1)))
  inside <- pmin(pmax(c(data$low, data$high), max(0, 1 - reach)), 1 + reach)
  range(c(data$ratio, 0.97, 1.03, inside), na.rm = TRUE)
}

#' Limits of the axes of all panels
#'
#' They are the same unless emulated virtual machines are so far from native that on one axis nothing else
#' could be told apart: then the panels of these share one axis, and the others another.
#'
#' @param data as from `ratio_data`
#' @param plan as from `read_plan`
#' @return data frame with a row for each of the data: low, high
panel_limits <- function(data, plan) {
  apart <- data$environment %in% emulated_environments(plan) & data$what == "measured"
  far <- any(abs(data$ratio[apart] - 1) > 0.5) && any(!apart)
  group <- if (far) apart else rep(FALSE, nrow(data))
  limits <- vapply(split(data, group), ratio_limits, c(0, 0), logarithms = far_apart(data))
  at <- match(as.character(group), colnames(limits))
  data.frame(low = limits[1, at], high = limits[2, at], row.names = NULL)
}

#' The figure of all ratios to native
#'
#' @param data as from `ratio_data`
#' @param plan as from `read_plan`
#' @return ggplot2 plot
ratio_figure <- function(data, plan) {
  marks <- environment_marks(names(plan$environments))
  limits <- panel_limits(data, plan)
  data$from <- limits$low
  data$to <- limits$high
  rows <- nlevels(data$row)
  beside <- if (any(data$shift != 0)) c(0.04, -0.04) else c(0.14, -0.2)
  data$y <- rows + 1 - as.integer(data$row) + data$shift + beside[ifelse(data$what == "measured", 1, 2)]
  data$colour <- marks$colour[match(data$environment, marks$environment)]
  data$colour[is.na(data$colour)] <- PALE
  bars <- data[data$what == "measured" & !is.na(data$low), ]
  beyond <- rbind(cbind(bars[bars$high > bars$to, ], end = bars$to[bars$high > bars$to]),
                  cbind(bars[bars$low < bars$from, ], end = bars$from[bars$low < bars$from]))
  logarithms <- far_apart(data)
  along <- if (logarithms) list(log, exp) else list(identity, identity)
  back <- ifelse(beyond$end == beyond$to, -0.02, 0.02) * (along[[1]](beyond$to) - along[[1]](beyond$from))
  beyond$start <- along[[2]](along[[1]](beyond$end) + back)
  several <- length(unique(limits$low)) > 1
  mapping <- ggplot2::aes(.data$ratio, .data$y, colour = .data$colour, shape = .data$what)
  ggplot2::ggplot(data, mapping) +
    ggplot2::geom_vline(xintercept = 1, colour = PALE, linewidth = 0.3, linetype = "22") +
    ggplot2::geom_blank(ggplot2::aes(x = .data$from)) +
    ggplot2::geom_blank(ggplot2::aes(x = .data$to)) +
    ggplot2::geom_segment(ggplot2::aes(x = pmax(.data$low, .data$from), xend = pmin(.data$high, .data$to),
                                       yend = .data$y), bars, linewidth = 0.5, show.legend = FALSE) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$start, xend = .data$end, yend = .data$y), beyond,
                          linewidth = 0.5, arrow = ggplot2::arrow(length = ggplot2::unit(3, "pt")),
                          show.legend = FALSE) +
    told_layer(ggplot2::geom_point(size = 1.5, stroke = 0.6, fill = "white"), ratio_words(data)) +
    ggplot2::facet_wrap(ggplot2::vars(.data$panel), nrow = ratio_rows(data),
                        scales = if (several) "free_x" else "fixed",
                        labeller = ggplot2::as_labeller(function(label) {
                          panel_title(label, title_room(data))
                        })) +
    ggplot2::scale_colour_identity() +
    ggplot2::scale_shape_manual(NULL, values = c(measured = 16, published = 21), drop = FALSE,
                                labels = c(measured = "Measured here, with its 95 % interval",
                                           published = "Published, other hardware")) +
    ratio_scale(limits, logarithms, if (title_room(data) < 18) 2 else if (several) 3 else 4) +
    ggplot2::scale_y_continuous(NULL, breaks = seq_len(rows),
                                labels = series_lines(rev(levels(data$row)), narrow_names(data)),
                                limits = c(0.5, rows + 0.5), expand = c(0, 0)) +
    ggplot2::guides(shape = ggplot2::guide_legend(override.aes = list(colour = INK))) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", legend.justification = "right",
                   axis.ticks.y = ggplot2::element_blank(),
                   axis.text.y = ggplot2::element_text(lineheight = 0.85),
                   strip.text = ggplot2::element_text(vjust = 0), strip.clip = "off",
                   plot.margin = ggplot2::margin(2, if (title_room(data) < 18) 12 else 4, 2, 2))
}

#' The axis of ratios
#'
#' @param limits as from `panel_limits`
#' @param logarithms whether it is one of logarithms
#' @param breaks how many numbers there is room for
#' @return scale of ggplot2
ratio_scale <- function(limits, logarithms, breaks) {
  if (logarithms) {
    ggplot2::scale_x_log10(ratio_axis(limits, logarithms), labels = axis_numbers, breaks = few_decades)
  } else {
    ggplot2::scale_x_continuous(ratio_axis(limits), breaks = round_breaks(breaks))
  }
}

#' Powers of ten of which a narrow panel has room, 1 among them
#'
#' @param range of the axis
#' @return numbers
few_decades <- function(range) {
  powers <- ceiling(log10(range[[1]])):floor(log10(range[[2]]))
  10^(if (length(powers) > 3) powers[powers %% 2 == 0] else powers)
}

#' What a ratio says when it is pointed at
#'
#' @param data as from `ratio_data`
#' @return texts
ratio_words <- function(data) {
  paste0(data$series, ", ", data$panel, ": ",
         ifelse(data$what == "measured", ratio_said(data),
                paste0(signif(data$ratio, 4), ", published, ", data$source)))
}

#' A ratio with its interval, in short
#'
#' @param data data frame: ratio, low, high, n
#' @return texts such as "0.98 [0.96, 1], n = 5"
ratio_said <- function(data) {
  paste0(signif(data$ratio, 4),
         ifelse(is.na(data$low), "", paste0(" [", signif(data$low, 4), ", ", signif(data$high, 4), "]")),
         ", n = ", data$n, recycle0 = TRUE)
}

#' What the axes of ratios are called, and what has to be said of them
#'
#' @param limits as from `panel_limits`
#' @param logarithms whether they are axes of logarithms
#' @return text
ratio_axis <- function(limits, logarithms = FALSE) {
  axes <- unique(limits)
  if (logarithms) {
    return(paste0("Ratio to native, logarithms", if (nrow(axes) > 1) "; axes differ"))
  }
  # The axis goes on beyond its limits by a twentieth, as ggplot2 draws it.
  at_zero <- axes$low - 0.05 * (axes$high - axes$low) <= 0
  told <- c(if (nrow(axes) > 1) "axes differ",
            if (!any(at_zero)) paste(if (nrow(axes) > 1) "and do not start at zero" else
              "the axis does not start at zero"),
            if (any(at_zero) && !all(at_zero)) "and not all start at zero")
  paste(c(paste0("Ratio to native", if (length(told) > 0) ";"), told), collapse = " ")
}

#' The name of a series in lines that leave room for the panels
#'
#' @param name texts
#' @param room letters of a line
#' @return texts of such lines
series_lines <- function(name, room = 42) {
  vapply(strwrap(name, room, simplify = FALSE), paste, "", collapse = "\n")
}

#' How many letters of a row's name stand on a line: fewer beside many panels
#'
#' @param data as from `ratio_data`
#' @return number
narrow_names <- function(data) if (nlevels(data$panel) / ratio_rows(data) > 8) 34 else 42

#' The title of a panel of ratios
#'
#' @param label texts
#' @param room letters of a line
#' @return texts of such lines
panel_title <- function(label, room = 18) {
  vapply(strwrap(label, room, simplify = FALSE), paste, "", collapse = "\n")
}

#' How many rows of panels there are
#'
#' At most five panels stand side by side, unless the series are so many that two rows of them do not fit on a
#' page.
#'
#' @param data as from `ratio_data`
#' @return number
ratio_rows <- function(data) {
  rows <- ceiling(nlevels(data$panel) / 5)
  if (rows * rows_height(levels(data$row)) > 6.5) 1 else rows
}

#' The height that rows of these names take
#'
#' @param names texts
#' @return inches
rows_height <- function(names) {
  lines <- lengths(strsplit(series_lines(names), "\n", fixed = TRUE))
  sum(0.2 + 0.08 * (lines - 1))
}

#' How many letters fit on a line of a panel's title
#'
#' @param data as from `ratio_data`
#' @return number
title_room <- function(data) {
  if (nlevels(data$panel) / ratio_rows(data) > 5) 11 else 18
}

#' Draws and writes the figure of ratios
#'
#' @param summaries list of summaries
#' @param plan as from `read_plan`
#' @param root folder of the project, for what was published
#' @param out path without extension
draw_ratios <- function(summaries, plan, root, out) {
  published <- read_published_ratios(root)
  summary <- do.call(rbind, c(list(empty_table(SUMMARY_COLUMNS)), summaries))
  if (all(is.na(summary$ratio))) {
    return(write_figure(empty_figure("No ratio to native was measured."), empty_table(RATIO_COLUMNS), out,
                        c(COLUMN_WIDTH, 0.6)))
  }
  data <- ratio_data(summary, plan, published$ratios, published$known)
  lines <- max(lengths(strsplit(panel_title(levels(data$panel), title_room(data)), "\n", fixed = TRUE)))
  height <- min(ratio_rows(data) * (rows_height(levels(data$row)) + 0.15 + 0.1 * lines) + 0.65, MOST_HEIGHT)
  write_figure(ratio_figure(data, plan), data[names(RATIO_COLUMNS)], out, c(FULL_WIDTH, height))
}
