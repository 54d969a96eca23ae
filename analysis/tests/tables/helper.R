# Loads the files under test, and makes values whose truth is known.

root <- normalizePath(file.path(testthat::test_path(), "..", "..", ".."))
for (file in c("read.R", "statistics.R", "costs.R", "claims.R", "choices.R")) {
  source(file.path(root, "analysis", file))
}

CONTEXT <- list(invalid = character(), sockets = 1, processors = 8, emulated = character())

#' Make values of one metric in several environments, in blocks that share their noise
#'
#' @param ... the level of each environment, by its name
#' @param n number of blocks
#' @param noise standard deviation of the logarithms within a block
#' @return tidy rows
make_values <- function(..., n = 8, noise = 0.002, seed = 1, better = "higher",
                        workload = "stream", metric = "triad") {
  set.seed(seed)
  levels <- c(...)
  block <- exp(stats::rnorm(n, 0, 0.05))
  rows <- do.call(rbind, lapply(names(levels), function(name) {
    data.frame(workload = workload, title = "STREAM", question = "memory", metric = metric,
               metric_label = "Triad", series = "STREAM Triad", unit = "GB/s",
               better = better, environment = name, label = name,
               headline = TRUE, session = "s", machine = "m", repetition = seq_len(n),
               together = "", started = 0, ended = 0, block_seconds = 0,
               value = levels[[name]] * block * exp(stats::rnorm(n, 0, noise)))
  }))
  rows$laps <- rep(list(numeric()), nrow(rows))
  rows$how <- "whole"
  rows$scale <- 1
  rows$lap_scale <- list(1)
  rows
}

# Results as read_results returns them, with what comparisons need.
make_results <- function(tidy, families = c(docker = "containers", vm = "machines")) {
  environments <- data.frame(environment = names(families), family = unname(families))
  list(tidy = tidy, environments = environments)
}
