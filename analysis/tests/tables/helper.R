# The files under test, and experiments whose truth is known.
root <- normalizePath(file.path(testthat::test_path(), "..", "..", ".."))
for (file in c("read.R", "statistics.R", "claims.R", "choices.R")) source(file.path(root, "analysis", file))

HERE <- list(invalid = character(), sockets = 1, processors = 8, emulated = character())

#' Values of one metric in environments, in blocks that share their noise
#'
#' @param ... for each environment its level
made_values <- function(..., n = 8, noise = 0.002, seed = 1, better = "higher", workload = "stream",
                        metric = "triad") {
  set.seed(seed)
  levels <- c(...)
  block <- exp(stats::rnorm(n, 0, 0.05))
  do.call(rbind, lapply(names(levels), function(name) {
    data.frame(workload = workload, title = "STREAM", question = "memory", metric = metric,
               metric_label = "Triad", factors = "", series = "STREAM Triad", unit = "GB/s", better = better,
               percentile = FALSE,
               environment = name, label = name, headline = TRUE, laps = "",
               repetition = seq_len(n),
               value = levels[[name]] * block * exp(stats::rnorm(n, 0, noise)))
  }))
}

made_results <- function(tidy, families = c(docker = "containers", vm = "machines")) {
  environments <- data.frame(environment = names(families), family = unname(families))
  list(tidy = tidy, environments = environments)
}
