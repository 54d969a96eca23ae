#' Tidy table and summary of a small results folder
figure_input <- function(..., repetitions = 3) {
  plan <- read_plan(make_results(..., repetitions = repetitions))
  workload <- names(plan$workloads)[[1]]
  tidy <- tidy_workload(plan, workload, parser_of(workload))
  summary <- summarise_workload(tidy, plan, read_cells(plan))
  list(plan = plan, workload = workload, tidy = tidy, summary = summary)
}

test_that("an environment has the same colour and shape in every plan", {
  all <- known_environments()
  expect_equal(environment_marks(all$environment), all)
  few <- environment_marks(c("vm", "podman", "native", "gvisor"))
  expect_equal(few$environment, c("vm", "podman", "native", "gvisor"))
  expect_equal(as.list(few[c(1, 3), ]), as.list(all[c(5, 1), ]))
  expect_false(anyNA(few))
  expect_equal(anyDuplicated(c(all$shape, few$shape[c(2, 4)])), 0)
  expect_equal(anyDuplicated(all$colour), 0)
})

test_that("every run and every mean is drawn", {
  input <- figure_input(workloads = "stream")
  data <- workload_data(input$summary, input$tidy, input$plan)
  expect_equal(sort(data$runs$value), sort(input$tidy$value))
  expect_equal(data$means$value, input$summary$mean)
  expect_equal(levels(data$means$panel), c("Copy", "Scale", "Add", "Triad"))
  expect_equal(unique(data$means$row[data$means$environment == "native"]), 3)
  # Points of one environment stand within its row, above its mean, the first measured on top.
  native <- data$runs[data$runs$environment == "native" & data$runs$panel == "Copy", ]
  expect_true(all(diff(native$row[order(native$order)]) < 0))
  expect_true(all(native$row > 2.85 & native$row < 3.4))
  expect_equal(workload_data(input$summary, input$tidy, input$plan), data)
})

test_that("panels are named by what differs", {
  metrics <- data.frame(metric = c("a", "b"), label = c("Reads", "Writes"), unit = "MB/s", better = "higher")
  expect_equal(panel_names(data.frame(metric = c("a", "b"), factors = ""), metrics), c("Reads", "Writes"))
  expect_equal(panel_names(data.frame(metric = "a", factors = c("n=1000", "n=45000;k=0.125")), metrics),
               c("n = 1000", "n = 45,000, k = 0.125"))
  metrics$unit[2] <- "ms"
  expect_equal(panel_names(data.frame(metric = c("a", "b"), factors = "n=2"), metrics),
               c("Reads (MB/s), n = 2", "Writes (ms), n = 2"))
})

test_that("the axis starts at zero where it can, and says so where it does not", {
  near <- figure_input(workloads = "pxz")
  data <- workload_data(near$summary, near$tidy, near$plan)
  expect_false(starts_at_zero(data))
  expect_equal(axis_title(near$plan, "pxz", data$means, FALSE),
               "Throughput (MB/s), higher is better\naxis does not start at zero")
  far <- figure_input(workloads = "pxz", slower = c(vm = 15))
  data <- workload_data(far$summary, far$tidy, far$plan)
  expect_true(starts_at_zero(data))
  expect_equal(axis_title(far$plan, "pxz", data$means, TRUE), "Throughput (MB/s), higher is better")
  range <- ggplot2::ggplot_build(workload_figure(data, far$plan, "pxz"))$layout$panel_params[[1]]$x.range
  expect_equal(range[[1]], 0)
})

test_that("an interval that reaches below zero is cut at the axis", {
  wide <- figure_input(workloads = "pxz", repetitions = 2, spread = 0.5)
  data <- workload_data(wide$summary, wide$tidy, wide$plan)
  expect_lt(min(data$means$low), 0)
  expect_true(starts_at_zero(data))
  expect_no_warning(built <- ggplot2::ggplot_build(workload_figure(data, wide$plan, "pxz")))
  expect_equal(built$layout$panel_params[[1]]$x.range[[1]], 0)
  segments <- built$data[[4]]
  expect_equal(segments$x, data$means$low)
})

test_that("an axis never makes a tiny difference look large", {
  expect_equal(value_limits(FALSE)(c(100, 100.1)), c(99.0495, 101.0505))
  expect_equal(value_limits(FALSE)(c(90, 110)), c(90, 110))
  expect_equal(value_limits(TRUE)(c(10, 110)), c(0, 110))
})

test_that("rows say how many runs they hold", {
  means <- data.frame(environment = c("a", "a", "b", "b", "c"), n = c(5, 5, 4, 5, 1))
  expect_equal(run_counts(means, c("a", "b", "c")), c("5 runs", "4 to 5 runs", "1 run"))
})

test_that("metrics of different units and directions get a title that is true of all", {
  input <- figure_input(workloads = "stream")
  data <- workload_data(input$summary, input$tidy, input$plan)
  expect_equal(axis_title(input$plan, "stream", data$means, FALSE),
               "GB/s, higher is better; axes do not start at zero")
  input$plan$workloads$stream$metrics$triad$unit <- "ms"
  input$plan$workloads$stream$metrics$triad$better <- "lower"
  expect_equal(axis_title(input$plan, "stream", data$means, FALSE), "axes do not start at zero")
})

test_that("deviations are from the mean of the environment", {
  input <- figure_input(workloads = "pxz", repetitions = 4)
  data <- order_data(list(input$tidy), input$plan)
  expect_equal(as.vector(tapply(data$deviation, data$environment, sum)), c(0, 0, 0))
  expect_equal(data$order, sort(input$tidy$order))
  one <- input$tidy[input$tidy$environment == "vm", ]
  expect_equal(data$deviation[data$environment == "vm"], 100 * (one$value / mean(one$value) - 1))
})

test_that("blocks are parted only where they follow one another", {
  expect_equal(block_starts(data.frame(order = 1:6, block = c(1, 1, 2, 2, 3, 3))), c(2.5, 4.5))
  expect_equal(block_starts(data.frame(order = c(1, 7, 3, 4, 5, 6), block = c(1, 1, 2, 2, 3, 3))), 4.5)
  expect_equal(block_starts(data.frame(order = 1:3, block = 1)), numeric())
})

test_that("the scripts draw what there is, again the same, and without a warning", {
  plan <- read_plan(make_results(c("native", "docker", "podman"), c("stream", "linpack"), 2,
                                 labels = c("Native", "Docker \u2212 bridge", "Podman")))
  unlink(file.path(plan$results, "raw", "podman"), recursive = TRUE)
  csv <- function(kind, name) file.path(plan$results, kind, paste0(name, ".csv"))
  for (name in c("stream", "linpack")) {
    tidy <- tidy_workload(plan, name, parser_of(name), partial = TRUE)
    write_csv(tidy, csv("tidy", name))
    write_csv(summarise_workload(tidy, plan, read_cells(plan)), csv("summary", name))
  }
  out <- function(name) file.path(plan$results, "figures", name)
  draw <- function(name) {
    run_r("figure.R", "--plan", plan$path, "--summary", csv("summary", name), "--tidy", csv("tidy", name),
          "--out", out(name))
  }
  files <- function(name) paste0(out(name), c(".csv", ".pdf", ".png"))
  for (name in c("stream", "linpack")) {
    expect_equal(draw(name), list(status = 0L, output = character()))
    expect_true(all(file.size(files(name)) > 300))
  }
  drawn <- utils::read.csv(paste0(out("linpack"), ".csv"))
  expect_equal(names(drawn), names(FIGURE_COLUMNS))
  expect_equal(sort(unique(drawn$environment)), c("docker", "native"))
  expect_equal(sum(drawn$what == "run"), 4)
  run <- run_r("figure.R", "--order", "--plan", plan$path, "--out", out("order"), csv("tidy", "stream"),
               csv("tidy", "linpack"))
  expect_equal(run, list(status = 0L, output = character()))
  expect_equal(nrow(utils::read.csv(paste0(out("order"), ".csv"))), 4 * 4 + 4)
  before <- sha256(files("linpack")[c(1, 3)])
  expect_equal(draw("linpack")$status, 0L)
  expect_equal(sha256(files("linpack")[c(1, 3)]), before)
})

test_that("a date that stands in a PDF is replaced", {
  path <- tempfile(fileext = ".pdf")
  writeLines(c("%PDF-1.5", "/CreationDate (D:20231120120000+01'00)", "end"), path)
  forget_date(path)
  expect_equal(readLines(path)[[2]], "/CreationDate (D:20000101000000+01'00)")
})

test_that("nothing measured gives a figure that says so", {
  plan <- read_plan(make_results(workloads = "pxz"))
  out <- file.path(plan$results, "figures", "pxz")
  draw_workload(empty_table(SUMMARY_COLUMNS), empty_table(TIDY_COLUMNS), plan, out)
  draw_order(list(empty_table(TIDY_COLUMNS)), plan, out)
  expect_true(all(file.exists(paste0(out, c(".pdf", ".png", ".csv")))))
})

test_that("a summary of other runs is an error", {
  input <- figure_input(workloads = "pxz")
  out <- tempfile()
  expect_error(draw_workload(input$summary, input$tidy[-1, ], input$plan, out), "not of the same runs")
  expect_error(draw_workload(input$summary[-1, ], input$tidy, input$plan, out), "not of the same runs")
})
