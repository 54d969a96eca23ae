# Budgets whose truth is known: kept, exceeded, and open.

for (file in c("format.R", "testbeds.R", "budgets.R")) {
  suppressMessages(source(file.path(root, "analysis", file)))
}

BUDGET <- list(environment = "docker", workload = "stream", reference = "native", blocks = 99)

# Judges Docker, which costs so much in truth, by a budget.
judge <- function(cost, at_most, noise = 0.01, n = 16, better = "higher", level = 10, ...) {
  docker <- level * if (better == "higher") 1 - cost else 1 / (1 - cost)
  tidy <- make_values(native = level, docker = docker, noise = noise, n = n, better = better, ...)
  rows <- compare_side_by_side(list(tidy = tidy), BUDGET)
  judge_budget(rows, at_most, ALPHA, ALPHA)
}

test_that("a budget is kept, exceeded or undecided, whichever way a metric counts", {
  for (better in c("higher", "lower")) {
    expect_equal(judge(0.01, 0.05, better = better)$verdict, "within")
    expect_equal(judge(-0.2, 0.05, better = better)$verdict, "within")
    expect_equal(judge(0.1, 0.05, better = better)$verdict, "beyond")
  }
  open <- judge(0.03, 0.05, noise = 0.06)
  expect_equal(open$verdict, "undecided")
  # As many blocks as that decide, in 80 % at least.
  decided <- vapply(1:40, function(seed) {
    judge(0.03, 0.05, 0.06, n = 16 + open$more, seed = seed)$verdict == "within"
  }, NA)
  expect_gte(mean(decided), 0.6)
  expect_equal(judge(0, 0.05, n = 2)$verdict, "undecided")
})

test_that("a budget counts its blocks, its metric, and no run that has no partner", {
  tidy <- rbind(make_values(native = 10, docker = 9.9, n = 16),
                make_values(native = 10, docker = 5, n = 16, metric = "copy"))
  compare <- function(...) {
    compare_side_by_side(list(tidy = tidy), utils::modifyList(BUDGET, list(...)))
  }
  expect_equal(judge_budget(compare(), 0.05, ALPHA, ALPHA)$verdict, "beyond")
  triad <- judge_budget(compare(metric = "triad", blocks = 8), 0.05, ALPHA, ALPHA)
  expect_equal(triad[c("verdict", "n", "parts")], list(verdict = "within", n = 8, parts = 1))
  expect_null(compare(reference = "vm"))
  expect_null(compare(workload = "fio"))
})

test_that("a baseline is compared by the ratios to native of sessions", {
  make_sessions <- function(seeds, native, docker) {
    lapply(seeds, function(seed) {
      tidy <- make_values(native = native, docker = docker, n = 8, seed = seed)
      tidy$session <- rep(paste("session", seed), nrow(tidy))
      list(plan = list(scale = "standard"), valid = TRUE, tidy = tidy, emulated = tidy[0, ],
           records = list())
    })
  }
  judge_sessions <- function(...) {
    rows <- compare_with_baseline(make_sessions(1:3, 10, 9), make_sessions(...), BUDGET)
    judge_budget(rows, 0.02, ALPHA, ALPHA, by_session = TRUE)[c("verdict", "n", "unit")]
  }
  within <- list(verdict = "within", n = 3, unit = "sessions")
  expect_equal(judge_sessions(4:6, 10, 9), within)
  # A slower machine is native's.
  expect_equal(judge_sessions(4:6, 7, 6.3), within)
  expect_equal(judge_sessions(4:6, 10, 8.5)$verdict, "beyond")
})
