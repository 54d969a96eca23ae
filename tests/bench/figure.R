#!/usr/bin/env Rscript
# Draws the bench's figure: CPU time for each cell and each log against their number.
#
# Usage: Rscript tests/bench/figure.R cost.csv cost.png

library(ggplot2)

TOOLS <- c("ReFrame", "Strata", "Snakemake", "make", "shell loop")
PANELS <- c(cells = "A cell that does nothing", `dry run` = "A cell in a dry run",
            logs = "A log, read and compared")

#' What is drawn
#'
#' @param rows data frame: theme, tool, size, round, cpu (seconds)
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
  middle <- stats::aggregate(ms ~ panel + tool + size, data, stats::median)
  ggplot(data, aes(.data$size, .data$ms, colour = .data$tool, shape = .data$tool)) +
    geom_line(aes(group = .data$tool), middle, linewidth = 0.35) +
    geom_point(size = 1.4) +
    facet_wrap("panel", scales = "free") +
    scale_x_log10(labels = function(x) format(x, big.mark = ",", trim = TRUE)) +
    scale_y_log10(labels = function(x) format(x, drop0trailing = TRUE, trim = TRUE)) +
    scale_colour_manual(NULL, values = stats::setNames(palette.colors(length(TOOLS)), TOOLS)) +
    scale_shape_manual(NULL, values = stats::setNames(c(16, 17, 15, 18, 8), TOOLS)) +
    labs(x = "Number of cells or logs", y = "CPU time for each (ms)") +
    theme_minimal(base_size = 8) +
    theme(legend.position = "bottom", plot.margin = margin(4, 14, 4, 4))
}

paths <- commandArgs(TRUE)
if (length(paths) != 2) stop("usage: figure.R COST.csv COST.png", call. = FALSE)
plot <- cost_figure(drawn(utils::read.csv(paths[[1]])))
ggsave(paths[[2]], plot, width = 7, height = 2.6, dpi = 200, bg = "white")
