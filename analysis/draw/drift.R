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

# More panels than these would be too low to be read: then the series of a workload stand together in one.
MOST_DRIFT_PANELS <- 21
# How the levels of such panels are marked, and what the legend says of each.
DRIFT_MARKS <- data.frame(
  what = c("outside", "within", "aside"), shape = c(16, 21, 4), size = c(1.3, 1, 1.1),
  says = c("outside of the band of its series", "within it, or band unknown",
           "set aside: disturbed, and measured again")
)

#' The panels of the figure of the drift
#'
#' @param title of each level, the name of its series
#' @param workload of each level
#' @param plan as from `read_plan`
#' @return factor in the order of the paper: the series or, where so many panels could not be read, the titles
#'   of the workloads
drift_panels <- function(title, workload, plan) {
  title <- factor(title, if (is.factor(title)) levels(title) else unique(title))
  if (nlevels(droplevels(title)) <= MOST_DRIFT_PANELS) {
    return(title)
  }
  titles <- vapply(plan$workloads, `[[`, "", "title")
  factor(titles[workload], unique(titles[names(titles) %in% workload]))
}

#' Which levels lie outside of the band of their series
#'
#' @param data as from `drift_data`
#' @return texts: "outside"; "within", also where the band is not known; "aside", of sets that do not count
drift_marks <- function(data) {
  ifelse(data$counts == "no", "aside", ifelse(!is.na(data$band) & abs(data$level) > data$band, "outside",
                                             "within"))
}

#' The figure of the drift
#'
#' @param data as from `drift_data`
#' @param plan as from `read_plan`
#' @return ggplot2 plot
drift_figure <- function(data, plan) {
  data$panel <- drift_panels(data$title, data$workload, plan)
  joined <- !identical(levels(data$panel), levels(data$title))
  columns <- drift_columns(data$panel)
  words <- paste0(data$title, ", set ", data$repetition, ": ", signed(round(data$level, 1)), " % (",
                  data$n, " environments)")
  lines <- data[data$counts == "yes", ]
  lines <- lines[stats::ave(lines$order, lines$title, FUN = length) > 1, ]
  ggplot2::ggplot(data, ggplot2::aes(.data$order, .data$level)) +
    (if (!joined) drift_bands(data)) +
    ggplot2::geom_hline(yintercept = 0, colour = PALE, linewidth = 0.25) +
    ggplot2::geom_line(ggplot2::aes(group = .data$title), lines, colour = if (joined) "grey65" else PALE,
                       linewidth = 0.25) +
    drift_points(data, joined, words) +
    ggplot2::facet_wrap(ggplot2::vars(.data$panel), ncol = columns, scales = "free_y",
                        labeller = ggplot2::as_labeller(function(title) {
                          panel_title(title, if (columns == 2) 54 else 34)
                        })) +
    ggplot2::scale_x_continuous("Place in the order of measurement", breaks = few_whole,
                                expand = ggplot2::expansion(mult = 0.015)) +
    ggplot2::scale_y_continuous("Deviation of the set from the mean (%)", breaks = level_breaks,
                                limits = function(range) range(range, -0.5, 0.5), labels = signed,
                                expand = ggplot2::expansion(mult = 0.12)) +
    figure_theme() +
    ggplot2::theme(legend.position = if (joined || any(data$counts == "no")) "top" else "none",
                   legend.justification = "right", panel.grid.major.x = ggplot2::element_blank(),
                   strip.text = ggplot2::element_text(vjust = 0))
}

#' The grey bands of panels of one series each
#'
#' @param data as from `drift_data`, with `panel`
#' @return layer of ggplot2
drift_bands <- function(data) {
  bands <- data[!duplicated(data$title) & !is.na(data$band), ]
  ggplot2::geom_rect(ggplot2::aes(xmin = -Inf, xmax = Inf, ymin = -.data$band, ymax = .data$band), bands,
                     fill = "grey90")
}

#' The points of the figure of the drift
#'
#' @param data as from `drift_data`, with `panel`
#' @param joined whether the series of a workload stand together: then they have no bands, and the points say
#'   what lies outside of them
#' @param words what each point tells
#' @return layers and scales of ggplot2
drift_points <- function(data, joined, words) {
  if (!joined) {
    return(list(
      told_layer(ggplot2::geom_point(ggplot2::aes(shape = .data$counts), colour = INK, fill = "white",
                                     size = 1, stroke = 0.4), words),
      ggplot2::scale_shape_manual(NULL, values = c(yes = 16, no = 21), breaks = "no",
                                  labels = DRIFT_MARKS$says[DRIFT_MARKS$what == "aside"])
    ))
  }
  data$what <- factor(drift_marks(data), DRIFT_MARKS$what)
  shown <- DRIFT_MARKS[DRIFT_MARKS$what %in% data$what, ]
  scale <- function(manual, column) {
    manual(NULL, values = stats::setNames(shown[[column]], shown$what), breaks = shown$what,
           labels = shown$says)
  }
  list(told_layer(ggplot2::geom_point(ggplot2::aes(shape = .data$what, size = .data$what), data, colour = INK,
                                      fill = "white", stroke = 0.4), words),
       scale(ggplot2::scale_shape_manual, "shape"), scale(ggplot2::scale_size_manual, "size"))
}

#' How many panels of the figure of the drift stand side by side
#'
#' @param panel as from `drift_panels`
#' @return number
drift_columns <- function(panel) {
  if (nlevels(panel) > 14) 3 else min(2, nlevels(panel))
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
  panel <- drift_panels(data$title, data$workload, plan)
  rows <- ceiling(nlevels(panel) / drift_columns(panel))
  write_figure(drift_figure(data, plan), data, out, c(FULL_WIDTH, min(0.7 + 0.9 * rows, MOST_HEIGHT)))
}
