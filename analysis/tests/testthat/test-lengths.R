test_that("the components of variance give the length that decides most in a given time", {
  lengths <- c(0.1, 0.2, 0.4, 0.8)
  found <- length_components(lengths, 0.04 + 0.01 / lengths, overhead = 1)
  expect_equal(found, list(between = 0.04, within = 0.01, best = 0.5))
  time <- function(length) (0.04 + 0.01 / length) * (1 + length)
  expect_equal(stats::optimize(time, c(0.01, 10), tol = 1e-9)$minimum, found$best, tolerance = 1e-6)
  expect_equal(length_components(lengths, c(1, 1, 1, 1.1), 1)$best, 0)
  expect_equal(length_components(lengths, 1 / lengths - 0.1, 1)$best, Inf)
})

#' Results whose runs repeat equal work; each repetition varies, and each run as a whole
repeated_results <- function(of_pass, of_run, sets = 12) {
  plan <- read_plan(make_results(c("native", "docker"), "linpack", sets))
  cells <- read_cells(plan)
  for (i in seq_len(nrow(cells))) {
    seconds <- 0.02 * exp(stats::rnorm(1, 0, of_run) + stats::rnorm(40, 0, of_pass))
    lines <- sprintf("{\"n\": 600, \"trial\": %d, \"seconds\": %.9g}", 1:40, seconds)
    writeLines(c("{\"tool\": \"x\"}", lines), cell_path(plan, "log", cells[i, ]))
  }
  plan
}

test_that("where runs differ short ones are best, and where repetitions do longer ones are", {
  set.seed(3)
  far <- lengths_of_workload(repeated_results(of_pass = 0.01, of_run = 0.1), "linpack")
  near <- lengths_of_workload(repeated_results(of_pass = 0.3, of_run = 0.001), "linpack")
  expect_equal(names(far), names(LENGTH_COLUMNS))
  expect_equal(unique(far$sets), 12)
  expect_true(all(diff(far$length) > 0))
  expect_lt(max(far$sd) / min(far$sd), 1.2)
  expect_equal(which.min(far$half_width), 1)
  # Forty repetitions vary by a sixth of what one does.
  expect_gt(near$sd[[1]] / near$sd[[nrow(near)]], 4)
  expect_gt(near$best_length[[1]], 10 * far$best_length[[1]])
  expect_true(all(near$sd_low < near$sd & near$sd < near$sd_high))
})

test_that("disturbed and broken sets, and runs that repeat nothing, tell of no length", {
  plan <- repeated_results(0.1, 0.1, sets = 5)
  cells <- read_cells(plan)
  path <- cell_path(plan, "record", cells[cells$environment == "docker" & cells$repetition == 2, ])
  write_json(updated(read_json(path), quiet = list(flags = list(list(quantity = "steal")))), path)
  expect_equal(unique(lengths_of_workload(plan, "linpack")$sets), 4)
  file.remove(cell_path(plan, "log", cells[cells$environment == "native" & cells$repetition == 4, ]))
  expect_equal(unique(lengths_of_workload(plan, "linpack")$sets), 3)
  file.remove(cell_path(plan, "record", cells[cells$environment == "native" & cells$repetition == 1, ]))
  expect_null(lengths_of_workload(plan, "linpack"))
  stream <- make_results(c("native", "docker"), "stream", 4)
  expect_null(lengths_of_workload(read_plan(stream), "stream"))
  done <- run_r("lengths.R", "--plan", stream, "--out", file.path(dirname(stream), "lengths.csv"))
  expect_equal(done$status, 0, info = done$output)
  expect_equal(names(utils::read.csv(file.path(dirname(stream), "lengths.csv"))), names(LENGTH_COLUMNS))
})
