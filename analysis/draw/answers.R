# The figure of the first page: the performance of every family of environments, by question.

ANSWER_COLUMNS <- c(question = "character", family = "character", environment = "character",
                    series = "character", row = "character", workload = "character", metric = "character",
                    factors = "character", n = "integer", ratio = "numeric", low = "numeric",
                    high = "numeric")
# More series than these stand together, in a row for each workload.
MOST_ANSWER_ROWS <- 10

#' What the figure of the answers draws
#'
#' @param summary data frame with the columns of SUMMARY_COLUMNS, of all workloads
#' @param plan as from `read_plan`
#' @return data frame with the columns of ANSWER_COLUMNS: performance as a share of native's; question, family
#'   and row are factors in their order
answer_data <- function(summary, plan) {
  rows <- compare(summary, plan)
  asked <- questions_of(plan)
  families <- families_of(plan)
  # How long systems take to come up is told in seconds.
  workloads <- asked$workload[asked$question != "start-up"]
  rows <- rows[rows$headline & !is.na(rows$ratio) & rows$environment != REFERENCE &
                 rows$workload %in% workloads, ]
  single <- length(unique(rows$series)) <= MOST_ANSWER_ROWS
  at <- match(rows$workload, asked$workload)
  family <- families$family[match(rows$environment, families$environment)]
  data <- data.frame(
    question = factor(asked$title[at], unique(asked$title)),
    family = factor(family, unique(families$family)), environment = rows$environment, series = rows$name,
    row = if (single) rows$name else rows$title, rows[c("workload", "metric", "factors")],
    n = rows$ratio_n, performance_of(rows)
  )
  data <- droplevels(data[order(at, rows$series), ])
  data$row <- factor(data$row, unique(data$row))
  rownames(data) <- NULL
  data
}

#' Places of the marks within their row
#'
#' @param data as from `answer_data`
#' @return numbers between -0.4 and 0.4, the first mark of a row on top
answer_places <- function(data) {
  group <- paste(data$row, data$family)
  place <- stats::ave(seq_len(nrow(data)), group, FUN = seq_along)
  count <- stats::ave(place, group, FUN = max)
  (count + 1 - 2 * place) / (count + 1) * 0.5
}

#' The ends of the axes of performance
#'
#' All ratios lie within; an interval may go on beyond.
#'
#' @param data as from `answer_data`
#' @return data frame with a row for each of the data: from, to
answer_limits <- function(data) {
  ends <- lapply(split(data, data$family), function(own) {
    reach <- range(log(own$ratio), log(c(0.98, 1.02)))
    inside <- log(c(own$low[which(own$low > 0)], own$high[which(is.finite(own$high))]))
    inside <- pmin(pmax(inside, reach[[1]] - diff(reach)), reach[[2]] + diff(reach))
    exp(range(reach, inside) + c(-0.05, 0.05) * diff(reach))
  })
  ends <- do.call(rbind, ends)[as.character(data$family), , drop = FALSE]
  data.frame(from = ends[, 1], to = ends[, 2], row.names = NULL)
}

#' Round shares for an axis of logarithms
#'
#' @param range of the axis
#' @return numbers
share_breaks <- function(range) {
  if (range[[2]] / range[[1]] > 4) {
    decades <- 10^(floor(log10(range[[1]])):ceiling(log10(range[[2]])))
    breaks <- if (length(decades) > 3) decades else sort(c(decades, 2 * decades, 5 * decades))
  } else {
    breaks <- pretty(range, 4)
  }
  breaks[breaks >= range[[1]] & breaks <= range[[2]]]
}

#' The figure of the answers
#'
#' @param data as from `answer_data`
#' @param plan as from `read_plan`
#' @return ggplot2 plot
answer_figure <- function(data, plan) {
  shown <- names(plan$environments)[names(plan$environments) %in% data$environment]
  limits <- answer_limits(data)
  data$from <- limits$from
  data$to <- limits$to
  data$y <- nlevels(data$row) + 1 - as.integer(data$row) + answer_places(data)
  bars <- data[!is.na(data$low) & !is.na(data$high), ]
  bars$start <- pmax(bars$low, bars$from)
  bars$end <- pmin(bars$high, bars$to)
  # Intervals that stand close together leave the marks in front.
  alpha <- if (nlevels(data$row) == length(unique(data$series))) 1 else 0.4
  arrows <- function(beyond, last) {
    ggplot2::geom_segment(ggplot2::aes(x = .data$ratio, xend = .data[[last]]), bars[beyond, ],
                          linewidth = 0.4, arrow = ggplot2::arrow(length = ggplot2::unit(2.5, "pt")),
                          show.legend = FALSE)
  }
  marks <- environment_marks(names(plan$environments))
  marks <- marks[match(shown, marks$environment), ]
  labels <- environment_labels(plan, shown)
  ggplot2::ggplot(data, ggplot2::aes(.data$ratio, .data$y, yend = .data$y, colour = .data$environment)) +
    ggplot2::geom_vline(xintercept = 1, colour = PALE, linewidth = 0.3, linetype = "22") +
    ggplot2::geom_blank(ggplot2::aes(x = .data$from)) +
    ggplot2::geom_blank(ggplot2::aes(x = .data$to)) +
    ggplot2::geom_segment(ggplot2::aes(x = .data$start, xend = .data$end), bars, linewidth = 0.4,
                          alpha = alpha, show.legend = FALSE) +
    arrows(bars$low < bars$from, "start") + arrows(bars$high > bars$to, "end") +
    told_layer(ggplot2::geom_point(ggplot2::aes(shape = .data$environment, size = .data$environment),
                                   stroke = 0.5, fill = "white"),
               paste0(data$environment, ", ", data$series, ": ", ratio_said(data))) +
    ggplot2::facet_grid(ggplot2::vars(.data$question), ggplot2::vars(.data$family), scales = "free",
                        space = "free_y", switch = "y") +
    ggplot2::scale_x_log10("Performance as a share of native\u2019s (dashed: native)", breaks = share_breaks,
                           labels = axis_numbers) +
    ggplot2::scale_y_continuous(NULL, breaks = seq_len(nlevels(data$row)), labels = rev(levels(data$row)),
                                expand = ggplot2::expansion(add = 0.5)) +
    environment_scales(marks, labels, identity) +
    ggplot2::guides(colour = ggplot2::guide_legend(ncol = answer_legend_columns(labels), byrow = TRUE)) +
    figure_theme() +
    ggplot2::theme(legend.position = "bottom", axis.ticks.y = ggplot2::element_blank(),
                   strip.placement = "outside", panel.spacing.y = ggplot2::unit(3, "pt"),
                   strip.text.y.left = ggplot2::element_text(angle = 0, hjust = 0, face = "bold"))
}

#' How many entries of the legend stand side by side, each on one line
#'
#' @param labels of the environments
#' @return number
answer_legend_columns <- function(labels) {
  # Letters of the width of the box, with what a mark takes.
  max(1, min(4, length(labels), floor(145 / (max(nchar(labels)) + 6))))
}

#' Draws and writes the figure of the answers
#'
#' @param summaries list of summaries
#' @param plan as from `read_plan`
#' @param out path without extension
draw_answers <- function(summaries, plan, out) {
  data <- answer_data(do.call(rbind, c(list(empty_table(SUMMARY_COLUMNS)), summaries)), plan)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("No ratio to native was measured."), empty_table(ANSWER_COLUMNS), out,
                        c(COLUMN_WIDTH, 0.6)))
  }
  labels <- environment_labels(plan, unique(data$environment))
  legend <- ceiling(length(labels) / answer_legend_columns(labels))
  # On the first page there is room for so much.
  row <- if (nlevels(data$row) == length(unique(data$series))) 0.19 else 0.115
  height <- row * nlevels(data$row) + 0.05 * nlevels(data$question) + 0.5 + 0.15 * legend
  write_figure(answer_figure(data, plan), data[names(ANSWER_COLUMNS)], out, c(BOX_WIDTH, height))
}
