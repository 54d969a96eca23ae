#!/usr/bin/env Rscript
# Draws the bench's figure: CPU time for each cell and each log against their number.
#
# Usage: Rscript tests/bench/figure.R cost.csv cost.png

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE)))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "draw")

COLUMNS <- c(theme = "character", tool = "character", size = "integer", round = "integer", cpu = "numeric",
             wall = "numeric", peak = "numeric")
TOOLS <- c("ReFrame", "Strata", "Snakemake", "make", "shell loop")
PANELS <- c(cells = "A cell that does nothing", `dry run` = "A cell in a dry run",
            logs = "A log, read and compared")

#' What is drawn
#'
#' @param rows data frame with COLUMNS
#' @return data frame: panel, tool (both factors), size, round, ms (of CPU time for each)
drawn <- function(rows) {
  # A log is read by one command and compared by another.
  of_logs <- rows$theme %in% c("table", "summary")
  rows$tool[of_logs] <- "Strata"
  rows$theme[of_logs] <- "logs"
  rows <- rows[rows$theme %in% names(PANELS), ]
  sums <- stats::aggregate(cpu ~ theme + tool + size + round, rows, sum)
  data.frame(panel = factor(PANELS[sums$theme], PANELS), tool = factor(sums$tool, TOOLS), size = sums$size,
             round = sums$round, ms = 1000 * sums$cpu / sums$size)
}

#' The figure
#'
#' @param data as from `drawn`
#' @return ggplot2 plot: every measured command, and lines through the medians
cost_figure <- function(data) {
  marks <- known_environments()[seq_along(TOOLS), ]
  manual <- function(scale, column) scale(NULL, values = stats::setNames(marks[[column]], TOOLS))
  middle <- stats::aggregate(ms ~ panel + tool + size, data, stats::median)
  ggplot2::ggplot(data, ggplot2::aes(.data$size, .data$ms, colour = .data$tool, shape = .data$tool)) +
    ggplot2::geom_line(ggplot2::aes(group = .data$tool), middle, linewidth = 0.35) +
    ggplot2::geom_point(size = 1.4) +
    ggplot2::facet_wrap("panel", scales = "free") +
    ggplot2::scale_x_log10(labels = function(x) format(x, big.mark = ",", trim = TRUE)) +
    ggplot2::scale_y_log10(labels = function(x) format(x, drop0trailing = TRUE, trim = TRUE)) +
    manual(ggplot2::scale_colour_manual, "colour") + manual(ggplot2::scale_shape_manual, "shape") +
    ggplot2::labs(x = "Number of cells or logs", y = "CPU time for each (ms)") +
    figure_theme() + ggplot2::theme(legend.position = "bottom", plot.margin = ggplot2::margin(4, 14, 4, 4))
}

run_script("figure.R", function(arguments) {
  paths <- parse_options(arguments, rest = "a CSV file and a PNG file")$rest
  write_whole(paths[[2]], function(temporary) {
    grDevices::png(temporary, width = FULL_WIDTH, height = 2.6, units = "in", res = 200, type = "cairo")
    tryCatch(print(cost_figure(drawn(read_csv(paths[[1]], COLUMNS)))), finally = grDevices::dev.off())
  })
})
