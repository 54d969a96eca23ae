# The inputs are made once: their summaries take longer than all that is tested here.
redis <- sweep_input("redis", few = TRUE)
mysql <- sweep_input("mysql", c("native", "docker-hostnet", "docker", "vm"), accelerator = "kvm", few = TRUE)
fio <- sweep_input("fio", c("native", "docker", "vm"))
nothing <- NULL
figure_named <- function(input, name) {
  figures_of(input$plan, input$workload)[[paste0(input$workload, "-", name)]]
}
point <- function(input, ...) {
  wanted <- list(...)
  keep <- rep(TRUE, nrow(input$summary))
  for (name in names(wanted)) {
    keep <- keep & input$summary[[name]] == wanted[[name]]
  }
  input$summary[keep, ]
}

test_that("a sweep draws the level of every environment at every point, with its interval", {
  data <- sweep_data(redis$summary, redis$plan, nothing, figure_named(redis, "throughput"))
  levels <- data$points[!data$points$panel %in% data$losses, ]
  expect_equal(nrow(levels), 8 * 2 * 2)
  expect_equal(levels(data$points$panel),
               c("GET: throughput (requests/s)", "GET: loss against native (%)",
                 "SET: throughput (requests/s)", "SET: loss against native (%)"))
  own <- point(redis, environment = "docker", metric = "throughput", factors = "test=SET;connections=10")
  drawn <- levels[levels$environment == "docker" & levels$factors == own$factors, ]
  expect_equal(as.numeric(drawn[c("x", "y", "y_low", "y_high", "n")]),
               c(10, own$mean, own$mean_low, own$mean_high, 6))
  # A line goes on from the smallest to the largest.
  expect_equal(levels$x[levels$environment == "native"], c(1, 10, 1, 10))
  expect_false(any(grepl("pipeline", data$points$factors)))
})

test_that("the loss is positive where an environment is worse, and has the limits of the ratio", {
  loss_of <- function(name, metric) {
    data <- sweep_data(redis$summary, redis$plan, nothing, figure_named(redis, name))
    own <- point(redis, environment = "docker", metric = metric, factors = "test=GET;connections=1")
    points <- data$points[data$points$panel %in% data$losses, ]
    expect_false("native" %in% points$environment)
    list(drawn = points[points$environment == "docker" & points$factors == own$factors, ], own = own)
  }
  higher <- loss_of("throughput", "throughput")
  expect_equal(higher$drawn$y, 100 * (1 - higher$own$ratio))
  expect_equal(c(higher$drawn$y_low, higher$drawn$y_high),
               100 * (1 - c(higher$own$ratio_high, higher$own$ratio_low)))
  lower <- loss_of("latency", "latency")
  expect_equal(lower$drawn$y, 100 * (lower$own$ratio - 1))
  expect_gt(higher$drawn$y, 0)
  expect_gt(lower$drawn$y, 0)
  percentile <- loss_of("p99", "p99")
  expect_equal(percentile$drawn$y, 100 * (percentile$own$ratio - 1))
  expect_true(percentile$drawn$y_low < percentile$drawn$y)
})

test_that("percentiles are told by medians, harmonic means by theirs, and few runs have no interval", {
  few <- sweep_input("redis", c("native", "docker"), repetitions = 4, few = TRUE)
  levels <- function(name, metric) {
    curve_levels(few$summary, few$plan, nothing, figure_named(few, name), metric)
  }
  runs <- few$tidy[few$tidy$environment == "native" & few$tidy$factors == "test=SET;connections=1", ]
  first <- function(rows) rows[rows$environment == "native" & rows$factors == "test=SET;connections=1", ]
  p99 <- first(levels("p99", "p99"))
  expect_equal(p99$value, stats::median(runs$value[runs$metric == "p99"]))
  expect_true(is.na(p99$low) && is.na(p99$high))
  rate <- first(levels("throughput", "throughput"))
  expect_equal(rate$value, 1 / mean(1 / runs$value[runs$metric == "throughput"]))
  expect_true(rate$low < rate$value && rate$value < rate$high)
})

test_that("one metric stands against another at the same point", {
  figure <- figure_named(mysql, "cpu")
  data <- against_data(mysql$summary, mysql$plan, nothing, figure)
  expect_equal(nrow(data$points), 4 * 2)
  expect_equal(unique(data$points$metric), "cpu;throughput")
  own <- data$points[data$points$environment == "docker" & data$points$along == 50, ]
  mean_of <- function(metric) {
    point(mysql, environment = "docker", metric = metric, factors = "threads=50")$mean
  }
  expect_equal(c(own$x, own$y), c(mean_of("cpu"), mean_of("throughput")))
  without <- mysql$summary[!(mysql$summary$metric == "cpu" & mysql$summary$environment == "docker"), ]
  expect_false("docker" %in% against_data(without, mysql$plan, nothing, figure)$points$environment)
})

test_that("a distribution is drawn by its percentiles, as shares", {
  figure <- figure_named(fio, "distribution")
  data <- cdf_data(fio$summary, fio$plan, nothing, figure)
  expect_equal(levels(data$points$panel), c(
    "mixed-random-rw-32x8, read", "mixed-random-rw-32x8, write", "random-read-16, read",
    "random-read-16x8, read", "random-write-16, write", "random-write-16x8, write"
  ))
  native <- data$points[data$points$environment == "native" & data$points$panel == "random-read-16, read", ]
  expect_equal(native$y, c(1, 5, seq(10, 90, 10), 95, 99, 99.5, 99.9, 99.95, 99.99) / 100)
  expect_false(is.unsorted(native$y))
  own <- point(fio, environment = "native", factors = "job=random-read-16;direction=read;percentile=50.00")
  expect_equal(as.numeric(native[native$y == 0.5, c("x", "x_low", "x_high")]),
               as.numeric(own[c("median", "median_low", "median_high")]))
  all <- fio$summary
  all$factors <- sub("percentile=99.99", "percentile=100", all$factors, fixed = TRUE)
  expect_error(cdf_data(all, fio$plan, nothing, figure), "between 0 and 100, and 100 does not")
})

test_that("what was published stands where its ratio leads here, in curves and losses", {
  published <- read_published_ratios(project)
  data <- sweep_data(mysql$summary, mysql$plan, published, figure_named(mysql, "throughput"))
  theirs <- data$points[data$points$what == "published" & data$points$environment == "vm", ]
  ratios <- published$ratios
  ratio <- ratios[ratios$workload == "mysql" & ratios$metric == "throughput" & ratios$environment == "kvm" &
                    ratios$factors == "threads=50", ]
  native <- point(mysql, environment = "native", metric = "throughput", factors = "threads=50")
  at <- theirs[theirs$along == 50, ]
  expect_equal(sort(at$y), sort(c(native$mean * ratio$ratio, 100 * (1 - ratio$ratio))))
  expect_equal(unique(at$source), "Fig. 10")
  expect_true(all(is.na(theirs$y_low)) && all(is.na(theirs$n)))
  # Nothing was published of Docker with NAT and a volume, and of a virtual machine without acceleration.
  expect_setequal(data$points$environment[data$points$what == "published"], c("docker-hostnet", "vm"))
  emulated <- sweep_input("mysql", c("native", "vm"), few = TRUE)
  shown <- sweep_data(emulated$summary, emulated$plan, published, figure_named(emulated, "throughput"))
  expect_false("published" %in% shown$points$what)
  distribution <- cdf_data(fio$summary, fio$plan, published, figure_named(fio, "distribution"))$points
  expect_equal(sum(distribution$what == "published"), 17)
  pair <- against_data(mysql$summary, mysql$plan, published, figure_named(mysql, "cpu"))$points
  expect_equal(sum(pair$what == "published"), 2 * 2)
})

test_that("emulated virtual machines that are far from all else have a part of their own", {
  parts_of <- function(input, name, data) {
    found <- data(input$summary, input$plan, nothing, figure_named(input, name))
    curve_parts(found$points, input$plan, found$far)
  }
  parts <- parts_of(redis, "throughput", sweep_data)
  expect_equal(lapply(parts, function(part) unique(part$environment)),
               list(names(OTHER_LABELS), names(MACHINE_LABELS)))
  expect_equal(sum(vapply(parts, nrow, 0L)), 8 * 2 * 2 + 7 * 2 * 2)
  expect_length(parts_of(mysql, "cpu", against_data), 1)
  expect_length(parts_of(fio, "distribution", cdf_data), 2)
})

test_that("panels are named by the factors in which they differ", {
  expect_equal(panel_texts(c("test=SET", "test=SET;pipeline=10")), c("no pipeline", "pipeline 10"))
  expect_equal(panel_texts(c("test=SET;size=50000", "test=GET;size=1")), c("SET, size 50,000", "GET, size 1"))
  expect_equal(panel_texts(c("test=SET", "test=SET")), c("", ""))
  expect_equal(panel_texts(""), "")
})

test_that("an interval is cut where it would press all values together, and that is seen", {
  expect_equal(curve_limits(c(10, 20), c(9, 18), c(11, 22), "linear"), c(0, 22))
  expect_equal(curve_limits(c(10, 20), c(-500, 18), c(11, 900), "linear"), c(0, 27))
  expect_equal(curve_limits(c(-1, 1), c(-3, -1), c(1, 3), "linear", room = 2), c(-3, 3))
  limits <- curve_limits(c(10, 1000), c(1e-9, 900), c(11, 1e9), "log")
  expect_true(limits[[1]] > 1 && limits[[2]] < 10000)
  points <- data.frame(y = c(10, 20, 5), y_low = c(-500, 18, NA), y_high = c(11, 900, NA))
  halves <- half_intervals(points, "y", data.frame(low = 0, high = rep(27, 3)))
  expect_equal(halves$end, c(0, 18, 11, 27))
  expect_equal(halves$beyond, c(TRUE, FALSE, FALSE, TRUE))
})

test_that("environments that share a place stand beside one another, nearer than the places", {
  points <- expand.grid(environment = c("a", "b", "c"), x = c(1, 2, 100), stringsAsFactors = FALSE)
  shifted <- dodged(points, "linear")
  expect_equal(as.vector(tapply(shifted, points$x, mean)), c(1, 2, 100))
  expect_true(all(diff(shifted) > 0))
  expect_equal(anyDuplicated(dodged(points, "log")), 0)
  expect_equal(dodged(data.frame(environment = "a", x = 5), "linear"), 5)
  expect_equal(spaced(c(1, 2, 3, 4, 10, 20, 100), "log"), c(1, 2, 4, 10, 20, 100))
  expect_equal(spaced(7, "linear"), 7)
})

test_that("numbers at axes are whole and have their thousands parted", {
  expect_equal(axis_numbers(c(0, 0.05, 1e5, -20)), c("0", "0.05", "100,000", "\u221220"))
  expect_equal(log_breaks(c(90, 1100)), c(100, 200, 500, 1000))
  expect_equal(log_breaks(c(9, 11000)), c(10, 100, 1000, 10000))
  expect_equal(level_breaks(c(0, 1e5)), c(0, 2, 4, 6, 8, 10) * 1e4)
})

test_that("the figure of runs draws the metrics that it is told to", {
  figure <- figure_named(fio, "iops")
  rows <- fio$summary[drawn_in(figure, fio$summary), ]
  data <- workload_data(rows, fio$tidy[drawn_in(figure, fio$tidy), ], fio$plan)
  expect_equal(unique(data$means$metric), "iops")
  expect_equal(axis_title(fio$plan, "fio", data$means, TRUE), "Operations (IOPS), higher is better")
  expect_setequal(levels(data$means$panel), c(
    "random-read-16, read", "random-read-16x8, read", "random-write-16, write", "random-write-16x8, write",
    "mixed-random-rw-32x8, both"
  ))
})

test_that("few places of a sweep are what its axis shows, and many have round numbers", {
  expect_equal(sweep_breaks(rep(25, 4), "linear"), 25)
  expect_equal(sweep_breaks(c(2, 8, 8), "linear"), c(2, 8))
  expect_equal(sweep_breaks(c(1, 4, 100), "linear"), c(1, 100))
  expect_true(is.function(sweep_breaks(1:9, "linear")))
  expect_equal(sweep_breaks(2^(0:7), "log"), 2^(0:7))
})
