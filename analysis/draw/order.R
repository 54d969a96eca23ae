# The run-order figure: all runs as they were measured, one after the other.

#' Deviation of every run from the mean of its environment, in the series that the tables tell of
#'
#' @param tidy list of tidy tables
#' @param plan as from `read_plan`
#' @return data frame: environment, label, workload, title, metric, factors, block, order, value, deviation in
#'   % of the mean of the runs of the same environment, metric and factors, and log
order_data <- function(tidy, plan) {
  runs <- do.call(rbind, c(list(empty_table(TIDY_COLUMNS)), tidy))
  runs <- runs[is_headline(runs, plan), ]
  mean_of_group <- stats::ave(runs$value, runs$environment, runs$workload, runs$metric, runs$factors)
  titles <- vapply(names(plan$workloads), function(name) plan$workloads[[name]]$title, "")
  shown <- intersect(names(titles), runs$workload)
  runs <- data.frame(
    environment = factor(runs$environment, intersect(names(plan$environments), runs$environment)),
    label = environment_labels(plan, runs$environment), workload = runs$workload,
    title = factor(titles[runs$workload], titles[shown]), metric = runs$metric, factors = runs$factors,
    block = runs$block, order = runs$order, value = runs$value,
    deviation = 100 * (runs$value / mean_of_group - 1), log = runs$log
  )
  runs[order(runs$order, match(runs$workload, shown)), ]
}

#' The run-order figure
#'
#' @param data as from `order_data`
#' @param plan as from `read_plan`
#' @return ggplot2 plot
order_figure <- function(data, plan) {
  # One environment after the other, which makes no difference to the eye, and much to the size of a page.
  data <- data[order(data$environment, data$order), ]
  marks <- environment_marks(names(plan$environments))
  marks <- marks[marks$environment %in% data$environment, ]
  lines <- block_lines(data)
  ggplot2::ggplot(data, ggplot2::aes(.data$order, .data$deviation)) +
    ggplot2::geom_vline(xintercept = lines$at, colour = "grey80", linewidth = 0.25) +
    ggplot2::geom_hline(yintercept = 0, colour = PALE, linewidth = 0.25) +
    told_layer(ggplot2::geom_point(environment_aes(), stroke = 0.4, alpha = SOLID), order_words(data)) +
    ggplot2::facet_wrap(ggplot2::vars(.data$title), ncol = order_columns(data), scales = "free_y") +
    ggplot2::scale_x_continuous(paste(c("Place in the order of measurement", lines$says), collapse = "; "),
                                breaks = few_whole, expand = ggplot2::expansion(mult = 0.015)) +
    ggplot2::scale_y_continuous("Deviation from the mean of the environment (%)", breaks = round_breaks(3),
                                limits = function(range) range(range, -0.5, 0.5), labels = signed,
                                expand = ggplot2::expansion(mult = 0.12)) +
    environment_scales(marks, environment_labels(plan, marks$environment)) +
    ggplot2::guides(colour = ggplot2::guide_legend(nrow = legend_rows(nrow(marks)), byrow = TRUE)) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", panel.grid.major.x = ggplot2::element_blank())
}

#' Places between the blocks in the order of measurement
#'
#' @param data as from `order_data`
#' @return numbers halfway between the last run of a block and the first of the next; none where blocks were
#'   measured in turns, as after a rerun of single cells
block_starts <- function(data) {
  first <- as.vector(tapply(data$order, data$block, min))
  last <- as.vector(tapply(data$order, data$block, max))
  by_time <- order(first)
  first <- first[by_time][-1]
  last <- last[by_time][-length(last)]
  ((first + last) / 2)[last < first]
}

# The most vertical lines of the run-order figure: more would hide its points.
MOST_LINES <- 12

#' The vertical lines of the run-order figure: the ends of blocks, or of every second, fifth or tenth of many
#'
#' @param data as from `order_data`
#' @return list: `at`, numbers, and `says`, what the axis says of them, NULL where there are none
block_lines <- function(data) {
  starts <- block_starts(data)
  steps <- as.vector(outer(c(1, 2, 5), 10^(0:6)))
  step <- steps[[which(length(starts) %/% steps <= MOST_LINES)[[1]]]]
  at <- starts[seq_along(starts) %% step == 0]
  says <- if (step == 1) "vertical lines part the blocks" else paste("a vertical line after every", step,
                                                                     "blocks")
  list(at = at, says = if (length(at) > 0) says)
}

#' What a run says when it is pointed at
#'
#' @param data as from `order_data`
#' @return texts
order_words <- function(data) {
  paste0(run_name(data$log), ": ", data$metric,
         ifelse(data$factors == "", "", paste0(" (", data$factors, ")")),
         " ", signif(data$value, 4), " (", signed(round(data$deviation, 1)), " %)")
}

#' A few whole numbers within a range
#'
#' @param range two numbers
#' @return numbers
few_whole <- function(range) {
  unique(round(pretty(range, 8)))
}

#' Numbers with their sign
#'
#' @param x numbers
#' @return texts
signed <- function(x) {
  text <- format(abs(x), trim = TRUE)
  paste0(ifelse(x > 0, "+", ifelse(x < 0, "\u2212", "")), text)
}

#' Size of the run-order figure
#'
#' @param data as from `order_data`
#' @return width and height in inches
order_size <- function(data) {
  lines <- max(lengths(strsplit(in_two_lines(unique(data$label)), "\n", fixed = TRUE)))
  around <- 0.7 + 0.15 * lines * legend_rows(nlevels(data$environment))
  c(FULL_WIDTH, min(around + 0.85 * ceiling(nlevels(data$title) / order_columns(data)), MOST_HEIGHT))
}

#' How many panels of the run-order figure stand side by side
#'
#' @param data as from `order_data`
#' @return 1 or 2
order_columns <- function(data) {
  if (nlevels(data$title) > 6) 2 else 1
}

#' How many rows a legend takes
#'
#' @param entries their number
#' @return number of rows
legend_rows <- function(entries) {
  ceiling(entries / 4)
}

#' Draws and writes the run-order figure
#'
#' @param tables list of tidy tables
#' @param plan as from `read_plan`
#' @param out path without extension
draw_order <- function(tables, plan, out) {
  data <- order_data(tables, plan)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure(), data, out, c(COLUMN_WIDTH, 0.6)))
  }
  write_figure(order_figure(data, plan), data, out, order_size(data))
}
