# Functions that studies share.  A study is run in the project's folder.

# Loads files of analysis/ into the global environment, in their order.
# ...: names of the files without ".R".
source_analysis <- function(...) {
  for (name in c(...)) source(file.path("analysis", paste0(name, ".R")))
}

source_analysis("read", "statistics")

# Draws n normal values with mean 0 and standard deviation 1, whose neighbours have the correlation
# ar (a number from 0 on, below 1).
# The order of the random draws must stay: the numbers in docs/ follow from it.
draw_noise <- function(n, ar) {
  if (ar == 0) return(stats::rnorm(n))
  as.vector(stats::arima.sim(list(ar = ar), n, sd = sqrt(1 - ar ^ 2)))
}

# Judges at MARGIN whether each ratio is equivalent or different.
# rows: rows of estimate_mean_ratio.
# level: confidence level of the intervals.
# Returns the list of judge_parts, whose elements within and outside have one value for each row.
judge_rows <- function(rows, level) {
  intervals <- compute_intervals(rows, level)
  judge_parts(intervals, intervals, rows$n, 1 - MARGIN, 1 / (1 - MARGIN))
}

# Formats the ratio of one comparison in per cent, with its interval or the reason why it has none.
# For example "95.0 % [93.1, 97.0]".
# row: row of estimate_mean_ratio; NULL gives "".
format_ratio_interval <- function(row) {
  if (is.null(row)) return("")
  if (row$why != "") return(sprintf("%.1f %% (%s)", 100 * row$ratio, row$why))
  sprintf("%.1f %% [%.1f, %.1f]", 100 * row$ratio, 100 * row$low, 100 * row$high)
}
