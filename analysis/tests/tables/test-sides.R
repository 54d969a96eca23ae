# Two samples, and testbeds whose difference is known.

for (file in c("words.R", "sides.R")) suppressMessages(source(file.path(root, "analysis", file)))

test_that("two samples have the interval of their ratio, and too few have none", {
  set.seed(3)
  covered <- vapply(seq_len(400), function(i) {
    found <- compare_samples(9 * exp(rnorm(8, 0, 0.02)), 10 * exp(rnorm(8, 0, 0.05)))
    found$low < 0.9 && 0.9 < found$high
  }, NA)
  expect_gt(mean(covered), 0.93)
  ranks <- compare_samples(9 * exp(rnorm(12, 0, 0.01)), 10 * exp(rnorm(12, 0, 0.01)), percentile = TRUE)
  expect_true(ranks$low < 0.9 && 0.9 < ranks$high && ranks$p < 0.001)
  expect_equal(compare_samples(c(1, 2), c(2, 3))$why, "fewer than 3 runs")
  expect_equal(compare_samples(c(2, 2, 2), c(1, 1, 1))$why, "all runs give the same value")
  expect_true(is.na(compare_samples(1:5, 1:5, percentile = TRUE)$low))
  less <- compare_samples(c(5.1, 5, 4.9, 5), c(3, 3.1, 2.9, 3), "difference")
  expect_equal(c(less$ratio, less$low < 2, less$high > 2), c(2, 1, 1))
  expect_equal(compare_samples(c(5.1, 5, 4.9, 5), NULL, "level")$ratio, 5)
})

made_side <- function(name, ..., seed = 1, emulated = NULL, scale = "paper", better = "higher") {
  tidy <- made_values(..., n = 6, seed = seed, better = better)
  apart <- tidy$environment %in% emulated
  record <- function(environment) {
    list(environment = environment, workload = "stream", parameters = list(elements = if (seed > 1) 2 else 1),
         system = list(layers = list(environment)), source = list(revision = name),
         observed = list(host = list(static = list(kernel = "6.12")), inside = list(cgroup = name)))
  }
  records <- lapply(unique(tidy$environment), record)
  list(name = name, plan = list(scale = scale), tidy = tidy[!apart, ], emulated = tidy[apart, ],
       records = stats::setNames(records, unique(tidy$environment)))
}

test_that("what is slower is told, whichever way a metric counts, and nothing else", {
  before <- made_side("before", native = 10, docker = 10)
  for (better in c("higher", "lower")) {
    first <- made_side("before", native = 10, docker = 10, better = better)
    slower <- if (better == "higher") 7 else 10 / 0.7
    after <- made_side("after", native = 10, docker = slower, seed = 2, better = better)
    rows <- compare_sides(list(first, after))
    expect_equal(rows$outcome[rows$environment == "docker"], "slower")
    expect_equal(rows$ratio[rows$environment == "docker"], 0.7, tolerance = 0.05)
    expect_equal(rows$outcome[rows$environment == "native"], "undecided")
    expect_equal(unique(rows$differs), "elements")
  }
  again <- made_side("again", native = 10, docker = 10, seed = 3)
  three <- compare_sides(list(before, again, after))
  expect_equal(unique(paste(three$from, three$to)), c("before again", "before after", "again after"))
  expect_match(outcome_of_sides(rows, list(before, after), 0.02)$text, "after is slower in 1 of 2 series")
})

test_that("emulated machines are compared with emulated ones alone", {
  kvm <- made_side("kvm", native = 10, vm = 9)
  other <- made_side("other", native = 10, vm = 2, seed = 2, emulated = "vm")
  rows <- compare_sides(list(kvm, other))
  vm <- rows[rows$environment == "vm", ]
  expect_equal(vm$outcome, rep("no interval", 2))
  expect_equal(vm$why, c("measured on kvm alone", "measured on other alone"))
  expect_error(compare_sides(list(kvm, made_side("small", native = 1, scale = "tiny"))), "of one scale")
})

test_that("the origins tell what differs, once", {
  sides <- list(made_side("one", native = 10), made_side("two", native = 10, seed = 2))
  origins <- origins_apart(sides)
  expect_equal(origins$item, c("source.revision", "stream.elements"))
  expect_equal(origins$two, c("two", "2"))
})
