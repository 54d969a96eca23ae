# Two testbeds compared: independent samples, what differs, and what it comes to.

#' Two samples of different sizes and spreads
two_samples <- function(n = c(5, 9), mean = c(10, 11), sd = c(0.3, 0.8), seed = 3) {
  set.seed(seed)
  list(first = stats::rnorm(n[[1]], mean[[1]], sd[[1]]), second = stats::rnorm(n[[2]], mean[[2]], sd[[2]]))
}

test_that("the limits of an independent ratio are where R's own Welch test gives 5 %", {
  for (seed in 1:20) {
    x <- two_samples(seed = seed, sd = c(0.3, 0.8) * seed / 5)
    found <- independent_ratio(x$first, x$second)
    expect_identical(found$state, "interval")
    expect_equal(found$ratio, mean(x$second) / mean(x$first))
    for (limit in c(found$low, found$high)) {
      expect_equal(stats::t.test(x$second, limit * x$first)$p.value, 0.05, tolerance = 1e-6)
    }
  }
})

test_that("the p value is Welch's, and the interval excludes 1 exactly where it is below 5 %", {
  for (seed in 1:200) {
    x <- two_samples(mean = c(10, 10.5), seed = seed)
    found <- independent_ratio(x$first, x$second)
    p <- independent_p_value(x$first, x$second)
    expect_equal(p, stats::t.test(x$first, x$second)$p.value)
    expect_identical(found$low > 1 || found$high < 1, p < 0.05)
  }
})

test_that("the interval of an independent ratio covers the truth at its level", {
  set.seed(1)
  covered <- vapply(1:3000, function(i) {
    found <- independent_ratio(stats::rnorm(4, 100, 3), stats::rnorm(7, 80, 8))
    found$low <= 0.8 && found$high >= 0.8
  }, NA)
  # 95 %, with four standard errors of the simulation and Welch's own approximation.
  expect_gt(mean(covered), 0.93)
  expect_lt(mean(covered), 0.97)
})

test_that("pairing is not assumed: the order of runs does not count", {
  x <- two_samples(n = c(6, 6))
  expect_equal(independent_ratio(x$first, x$second), independent_ratio(rev(x$first), x$second))
})

test_that("no interval is given where none can be known", {
  expect_identical(independent_ratio(1, c(1, 2))$state, "single run")
  expect_identical(independent_ratio(c(1, 1), c(2, 2))$state, "constant")
  expect_identical(independent_ratio(c(0.1, 10), c(5, 6))$state, "unbounded")
  for (x in list(list(1, c(1, 2)), list(c(1, 1), c(2, 2)), list(c(0.1, 10), c(5, 6)))) {
    expect_true(is.na(independent_ratio(x[[1]], x[[2]])$low))
    expect_true(is.na(independent_p_value(x[[1]], x[[2]])))
  }
})

test_that("one constant side does not hide the other's variation", {
  found <- independent_ratio(c(10, 10, 10), c(11, 12, 13))
  expect_equal(found$low, stats::t.test(c(11, 12, 13))$conf.int[[1]] / 10, tolerance = 1e-6)
  expect_equal(found$high, stats::t.test(c(11, 12, 13))$conf.int[[2]] / 10, tolerance = 1e-6)
})

test_that("a difference is called by the adjusted p value and the minimum effect, for what it is", {
  first <- made_side("A", slower = c(docker = 1, vm = 1), repetitions = 8, seed = 1)
  second <- made_side("B", slower = c(docker = 1.1, vm = 0.9), repetitions = 6, seed = 2)
  table <- compare_sides(first, second)
  expect_identical(names(table), names(COMPARED_COLUMNS))
  expect_identical(nrow(table), 15L)
  expect_true(all(table$n_first == 8 & table$n_second == 6))
  expect_true(all(table$reading[table$environment == "docker"] == "slower"))
  expect_true(all(table$reading[table$environment == "vm"] == "faster"))
  expect_true(all(table$reading[table$environment == "native"] %in% c("equal", "open")))
  expect_equal(table$p_adjusted, adjusted_p_values(table$p_value))
  expect_identical(outcome_of(table)$outcome, "difference")
  expect_true(all(compare_sides(first, second, effect = 0.5)$reading %in% c("equal", "open")))
  expect_match(outcome_text(table, first, second, 0.02), "B is slower in 5 and faster in 5")
})

test_that("a machine compared with itself shows no difference", {
  table <- compare_sides(made_side("A", slower = c(), repetitions = 8),
                         made_side("B", slower = c(), seed = 9))
  expect_identical(outcome_of(table)$outcome, "no difference")
})

test_that("what only one side measured is told and not compared", {
  first <- made_side("A", environments = c("native", "docker"))
  second <- made_side("B", environments = c("native", "vm"))
  table <- compare_sides(first, second)
  expect_true(all(table$reading[table$environment == "docker"] == "first only"))
  expect_true(all(table$reading[table$environment == "vm"] == "second only"))
  expect_true(all(is.na(table$ratio[table$environment != "native"])))
})

test_that("an emulated virtual machine is never compared with an accelerated one", {
  with_machine <- function(name, accelerator) {
    made_side(name, accelerator, environments = c("native", "vm"), make = make_machine_results)
  }
  table <- compare_sides(with_machine("A", "kvm"), with_machine("B", "tcg"))
  of_vm <- table[table$environment == "vm", ]
  expect_setequal(of_vm$reading, c("first only", "second only"))
  same <- compare_sides(with_machine("A", "kvm"), with_machine("B", "kvm"))
  expect_false(anyNA(same$ratio))
})

test_that("scales are not mixed, and too few runs tell nothing", {
  other <- made_side("B", change = function(plan) updated(plan, scale = "paper"))
  expect_error(compare_sides(made_side("A"), other), "A is at scale smoke and B at scale paper")
  table <- compare_sides(made_side("A", repetitions = 1), made_side("B", repetitions = 1))
  expect_identical(outcome_of(table)$outcome, "nothing to compare")
  expect_match(outcome_text(table, other, other, 0.02), "nothing can be told")
})

test_that("what differs in parameters is named at its rows", {
  first <- made_side("A")
  second <- made_side("B")
  second$records <- lapply(second$records, function(record) {
    if (record$workload == "linpack") record$parameters$threads <- 8
    record$system$layers <- if (record$environment == "docker") list(list(docker = list())) else NULL
    record
  })
  table <- compare_sides(first, second)
  at <- function(environment, workload) {
    unique(table$differs[table$environment == environment & table$workload == workload])
  }
  expect_identical(at("native", "linpack"), "threads")
  expect_identical(at("docker", "linpack"), "threads;layers")
  expect_identical(at("native", "stream"), "")
})

test_that("only what differs in origin is listed, with all values that were seen", {
  first <- made_side("A")
  second <- first
  second$name <- "B"
  expect_identical(nrow(provenance_differences(first, second)), 0L)
  first$records[[1]]$observed$host$static <- list(kernel = "6.1", caches = list(l1 = 1))
  second$records[[1]]$observed$host$static <- list(kernel = "6.12")
  second$records[[2]]$observed$host$static <- list(kernel = "6.1")
  second$packages <- list(gcc = "15")
  found <- provenance_differences(first, second)
  expect_identical(found$item, c("Host: caches l1", "Host: kernel", "Package: gcc"))
  expect_identical(found$first, c("1", "6.1", "not available"))
  expect_identical(found$second, c("not available", "6.1 | 6.12", "15"))
})

test_that("the page of a comparison stands alone, and text in it is no markup", {
  first <- made_side("<A & B>")
  second <- made_side("C", environments = c("native", "vm"), seed = 4)
  out <- tempfile("compared-")
  table <- compare_sides(first, second)
  draw_compared(table, first, second, 0.02, file.path(out, "compared"))
  page <- compared_page(table, first, second, provenance_differences(first, second), 0.02,
                        file.path(out, "compared"), project)
  expect_false(grepl("<A", page, fixed = TRUE))
  expect_true(grepl("&lt;A &amp; B&gt;", page, fixed = TRUE))
  expect_false(grepl("<!--|data-of|<link|@import|src=\"http", page))
  expect_true(grepl("What only one side measured", page, fixed = TRUE))
  expect_identical(lengths(regmatches(page, gregexpr("<table", page))), 3L)
  drawn <- utils::read.csv(file.path(out, "compared.csv"))
  expect_equal(drawn$ratio, table$ratio[!is.na(table$ratio)], tolerance = 1e-9)
})

test_that("the figure of a comparison shows every ratio at its place, also where nothing is in common", {
  first <- made_side("A", environments = "native")
  table <- compare_sides(first, made_side("B", environments = "docker"))
  out <- tempfile("compared-")
  draw_compared(table, first, first, 0.02, file.path(out, "none"))
  expect_true(file.exists(file.path(out, "none.pdf")))
  expect_identical(readLines(file.path(out, "none.csv")),
                   "panel,series,environment,n_first,n_second,ratio,ratio_low,ratio_high")
})
