#' Tidy table and summary of a small results folder
figure_input <- function(..., repetitions = 3) {
  plan <- read_plan(make_results(..., repetitions = repetitions))
  workload <- names(plan$workloads)[[1]]
  tidy <- tidied(plan, workload)
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
  # More than are known by name are told apart as well.
  many <- environment_marks(c(all$environment, paste0("more-", seq_along(SPARE_COLOURS))))
  expect_equal(anyDuplicated(many$colour), 0)
  expect_equal(anyDuplicated(many$shape), 0)
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

test_that("a figure that asks for it shows the range of the runs too", {
  input <- figure_input(workloads = "stream")
  bars <- function(...) {
    data <- workload_data(input$summary, input$tidy, input$plan, ...)
    built <- ggplot2::ggplot_build(workload_figure(data, input$plan, "stream"))
    Filter(function(layer) !is.null(layer$xend) && !is.null(layer$linewidth) && all(layer$linewidth == 0.3),
           lapply(built$data, as.list))
  }
  expect_length(bars(), 0)
  drawn <- bars(range = TRUE)
  expect_length(drawn, 1)
  expect_equal(sort(drawn[[1]]$x), sort(input$summary$min))
  expect_equal(sort(drawn[[1]]$xend), sort(input$summary$max))
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

test_that("a panel of which a part of a figure has nothing keeps its place there", {
  input <- figure_input(workloads = "stream")
  data <- workload_data(input$summary, input$tidy, input$plan)
  # As where only emulated machines did not reach a rate, which is a factor then.
  some <- lapply(data, function(table) table[table$panel != "Copy", ])
  expect_false(starts_at_zero(some))
  figures <- lapply(list(data, some), workload_figure, plan = input$plan, workload = "stream")
  built <- ggplot2::ggplot_build(figures[[2]])
  expect_equal(as.character(built$layout$layout$panel), levels(data$means$panel))
  out <- file.path(tempfile("drawn-"), "stream")
  dir.create(dirname(out))
  write_figure(figures, drawn(data), out, c(7, 4), c(1, 1))
  svg <- read_text(paste0(out, ".svg"))
  expect_equal(lengths(regmatches(svg, gregexpr("<title>", svg))), nrow(data$runs) + nrow(some$runs))
})

test_that("each device measures its letters anew before anything is laid out for it", {
  rooms <- environment(write_figure)
  true <- list(forget = rooms$forget_heights, arranged = rooms$arranged)
  on.exit(list2env(list(forget_heights = true$forget, arranged = true$arranged), rooms))
  done <- character()
  rooms$forget_heights <- function() done <<- c(done, "forget")
  rooms$arranged <- function(...) {
    done <<- c(done, "arrange")
    true$arranged(...)
  }
  out <- file.path(tempfile("drawn-"), "empty")
  dir.create(dirname(out))
  write_figure(empty_figure("Nothing."), data.frame(a = 1), out, c(4, 1))
  expect_equal(done, c("forget", "arrange", "forget", "forget", "arrange"))
  # What it leaves behind is not the height of any letter of a figure.
  grDevices::cairo_pdf(tempfile(fileext = ".pdf"), width = 4, height = 1)
  on.exit(grDevices::dev.off(), add = TRUE)
  height <- function() grid::convertHeight(grid::grobHeight(grid::textGrob("M")), "in", valueOnly = TRUE)
  before <- height()
  true$forget()
  expect_equal(height(), before)
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

#' What the figure of a workload draws where virtual machines are among the environments
machine_figure <- function(accelerator, slower = NULL) {
  plan <- read_plan(make_machine_results(accelerator, workloads = "stream", repetitions = 3))
  tidy <- tidied(plan, "stream")
  summary <- summarise_workload(tidy, plan, read_cells(plan))
  list(plan = plan, tidy = tidy, summary = summary, data = workload_data(summary, tidy, plan))
}

test_that("emulated virtual machines that are far from all else have axes of their own", {
  tcg <- machine_figure("tcg")
  parts <- workload_parts(tcg$data, tcg$plan)
  expect_equal(lapply(parts, function(part) unique(part$means$environment)),
               list(names(OTHER_LABELS), names(MACHINE_LABELS)))
  expect_equal(sum(vapply(parts, function(part) nrow(part$runs), 0L)), nrow(tcg$data$runs))
  for (part in parts) {
    expect_equal(sort(unique(part$means$row)), 1:4)
    expect_true(all(part$runs$row > 0.5 & part$runs$row < 4.5))
  }
  kvm <- machine_figure("kvm")
  expect_equal(workload_parts(kvm$data, kvm$plan), list(kvm$data))
  folder <- tempfile()
  dir.create(folder)
  in_folder(folder, draw_workload(tcg$summary, tcg$tidy, tcg$plan, project, "far"))
  expect_setequal(list.files(folder), paste0("far.", c("csv", "pdf", "png", "svg")))
  far <- utils::read.csv(file.path(folder, "far.csv"))
  expect_equal(sum(far$what != "published"), 8 * 4 * 4)
  expect_equal(unique(far$environment[far$what == "published"]), "docker")
})

test_that("ratios of emulated virtual machines leave the others readable", {
  drawn <- function(figure) {
    known <- list(kvm = list(label = "KVM", measured_as = list("vm"), accelerator = "kvm"))
    published <- data.frame(workload = "stream", metric = "copy", factors = "", environment = "kvm",
                            ratio = 0.97, source = "Table I")
    ratio_data(figure$summary, figure$plan, published, known)
  }
  tcg <- machine_figure("tcg")
  data <- drawn(tcg)
  expect_true("KVM (published only)" %in% data$panel)
  limits <- panel_limits(data, tcg$plan)
  emulated <- data$environment %in% names(MACHINE_LABELS)
  expect_equal(nrow(unique(limits)), 2)
  expect_true(all(limits$low[!emulated] > 0.8))
  expect_true(all(limits$low[emulated] < 0.1))
  built <- ggplot2::ggplot_build(ratio_figure(data, tcg$plan))
  ranges <- lapply(built$layout$panel_params, function(panel) panel$x.range)
  expect_gt(ranges[[1]][[1]], 0.8)
  kvm <- machine_figure("kvm")
  expect_equal(nrow(unique(panel_limits(drawn(kvm), kvm$plan))), 1)
  expect_equal(panel_title("Docker in VM (TCG emulation), host network"),
               "Docker in VM (TCG\nemulation), host\nnetwork")
})

test_that("breaks are fewer where they are long", {
  expect_equal(round_breaks(5)(c(0.0248, 0.0314)), c(0.026, 0.028, 0.03))
  expect_equal(round_breaks(5)(c(15.2, 17.1)), c(15.5, 16, 16.5, 17))
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

test_that("where nothing was measured the shared figures are drawn and empty", {
  plan <- figure_input(workloads = "pxz")$plan
  out <- file.path(tempfile("drawn-"), "figure")
  dir.create(dirname(out))
  for (draw in c(draw_order, draw_drift, draw_answers)) {
    expect_no_error(draw(list(), plan, out))
    expect_length(readLines(paste0(out, ".csv")), 1)
  }
  expect_no_error(draw_ratios(list(), plan, project, out))
})

test_that("blocks are parted only where they follow one another", {
  expect_equal(block_starts(data.frame(order = 1:6, block = c(1, 1, 2, 2, 3, 3))), c(2.5, 4.5))
  expect_equal(block_starts(data.frame(order = c(1, 7, 3, 4, 5, 6), block = c(1, 1, 2, 2, 3, 3))), 4.5)
  expect_equal(block_starts(data.frame(order = 1:3, block = 1)), numeric())
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
  draw_workload(empty_table(SUMMARY_COLUMNS), empty_table(TIDY_COLUMNS), plan, project, out)
  draw_order(list(empty_table(TIDY_COLUMNS)), plan, out)
  expect_true(all(file.exists(paste0(out, c(".pdf", ".png", ".csv")))))
})

test_that("a summary of other runs is an error", {
  input <- figure_input(workloads = "pxz")
  out <- tempfile()
  expect_error(draw_workload(input$summary, input$tidy[-1, ], input$plan, project, out),
               "not of the same runs")
  expect_error(draw_workload(input$summary[-1, ], input$tidy, input$plan, project, out),
               "not of the same runs")
})

test_that("a published ratio to native is drawn where it would lead here, and says where it is from", {
  input <- figure_input(workloads = "stream")
  published <- read_published_ratios(project)
  data <- function(summary = input$summary, accelerator = NULL) {
    input$plan$environments$vm$accelerator <- accelerator
    workload_data(summary, input$tidy, input$plan, published)
  }
  emulated <- data()$published
  expect_equal(emulated$environment, rep("docker", 4))
  native <- input$summary$mean[input$summary$environment == "native" & input$summary$metric == "copy"]
  copy <- emulated[emulated$panel == "Copy", ]
  expect_equal(copy$value, native * 41.2 / 41.3)
  expect_equal(copy$source, "Table I")
  # The published virtual machine was accelerated: it stands beside no other.
  expect_setequal(data(accelerator = "kvm")$published$environment, c("docker", "vm"))
  expect_equal(nrow(data(input$summary[input$summary$environment != "native", ])$published), 0)
  expect_equal(nrow(data(input$summary[input$summary$environment != "docker", ])$published), 0)
  table <- drawn(data())
  expect_equal(names(table), names(FIGURE_COLUMNS))
  expect_equal(table$value[table$what == "published"], emulated$value)
  built <- ggplot2::ggplot_build(workload_figure(data(), input$plan, "stream"))
  expect_equal(sort(built$data[[6]]$x), sort(emulated$value))
})

test_that("where the report prints nothing of a workload, ratios to native that claims print are drawn", {
  claims <- read_claims(file.path(project, "published", "claims.json"))
  workloads <- vapply(claims$claims, `[[`, "", "workload")
  found <- claimed_ratios(claims, but = setdiff(workloads, c("auction", "cloudstone", "dvdstore")))
  expect_equal(found, data.frame(workload = "dvdstore", metric = "throughput", factors = "customers=4",
                                 environment = "docker", ratio = 0.97, source = "VMware 2015, DVD Store"))
  ratios <- read_published_ratios(project)$ratios
  expect_equal(ratios[ratios$workload == "dvdstore", ], found, check.attributes = FALSE)
  expect_false(any(grepl("VMware", ratios$source[ratios$workload != "dvdstore"])))
})

test_that("Table I stands with the largest size that was measured, a figure with its own", {
  series <- data.frame(workload = "linpack", metric = "gflops", factors = c("order=1000", "order=12000"))
  plan <- read_plan(make_results(c("native", "docker"), "linpack", 1))
  known <- list(docker = list(label = "Docker", measured_as = list("docker")))
  rows <- data.frame(workload = "linpack", metric = "gflops", environment = "docker", ratio = 1:3,
                     factors = c("", "order=1000", "order=5"), source = "Table I")
  expect_equal(published_beside(rows, series, known, plan)[c("at", "with")],
               data.frame(at = c(2L, 1L), with = "docker"))
})

test_that("a workload of one environment, with nothing published beside it, is drawn too", {
  input <- figure_input("native", workloads = "stream", repetitions = 2)
  table <- drawn(workload_data(input$summary, input$tidy, input$plan))
  expect_equal(names(table), names(FIGURE_COLUMNS))
  expect_setequal(table$what, c("run", "mean"))
})

test_that("so many series that they do not fit on a page share the rows of their metrics", {
  few <- data.frame(name = c("A rate, jobs 1", "A rate, jobs 2", "A cost"),
                    metric_name = c("A rate", "A rate", "A cost"))
  at <- factor(few$name, few$name)
  expect_identical(row_of(at, few), list(at, 0))
  name <- paste0("A rate, jobs ", 1:60)
  many <- rbind(data.frame(name = name, metric_name = "A rate"), few[3, ])
  found <- row_of(factor(c(name[c(1, 60)], "A cost"), many$name), many)
  expect_equal(as.character(found[[1]]), c("A rate", "A rate", "A cost"))
  expect_equal(found[[2]], c(0.3, -0.3, 0))
})

test_that("ratios that lie far apart stand on an axis of logarithms", {
  data <- data.frame(ratio = c(0.5, 9), low = c(-1, 8), high = c(2, 20), environment = "docker",
                     what = "measured")
  expect_true(far_apart(data))
  expect_false(far_apart(data[1, ]))
  limits <- panel_limits(data, list(environments = list(docker = planned_environment("docker", "Docker"))))
  expect_equal(unlist(limits[1, ]), c(low = 0.5 / 1.5, high = 13.5))
  expect_equal(few_decades(c(0.005, 15)), c(0.01, 1))
  expect_equal(few_decades(c(0.05, 15)), c(0.1, 1, 10))
  expect_equal(ratio_axis(limits, TRUE), "Ratio to native, logarithms")
})
