# Functions that studies share.  A study is run in the project's folder.

# Defines the functions of further files of analysis/, without their ending.
source_analysis <- function(...) {
  for (name in c(...)) source(file.path("analysis", paste0(name, ".R")))
}

source_analysis("read", "statistics")

# Draws n normal values with standard deviation 1, whose neighbours have the correlation ar.  The
# printed numbers of the studies rest on this sequence of draws.
draw_noise <- function(n, ar) {
  if (ar == 0) return(stats::rnorm(n))
  as.vector(stats::arima.sim(list(ar = ar), n, sd = sqrt(1 - ar ^ 2)))
}

# Judges rows of compare_pairs at the usual margin by their intervals of a level; returns within and
# outside, see judge_parts.
judge_rows <- function(rows, level) {
  intervals <- compute_intervals(rows, level)
  judge_parts(intervals, intervals, rows$n, 1 - MARGIN, 1 / (1 - MARGIN))
}

# Formats the ratio of a row of compare_pairs in per cent, with its interval or the reason why there
# is none; "" for NULL.
show_interval <- function(row) {
  if (is.null(row)) return("")
  if (row$why != "") return(sprintf("%.1f %% (%s)", 100 * row$ratio, row$why))
  sprintf("%.1f %% [%.1f, %.1f]", 100 * row$ratio, 100 * row$low, 100 * row$high)
}
