# What a difference went to, against known truth.

# A cell's record of three laps, with the shares of a second that each party uses; a lap that is
# left out uses a second more.
make_record <- function(environment, repetition, shares, how = "whole", left_out = integer()) {
  nothing <- list(user = 0, kernel = 0, client = 0, helpers = 0, rest = 0)
  spent <- utils::modifyList(nothing, shares)
  make_run <- function(lap) {
    seconds <- 10 * lap
    count <- function(user, kernel = 0) {
      list(user_seconds = seconds * user, system_seconds = seconds * kernel)
    }
    run <- list(lap = lap, how = how, elapsed_seconds = seconds,
                system = count(spent$user + lap %in% left_out, spent$kernel),
                client = count(spent$client),
                helpers = count(0, spent$helpers))
    run$system[c("throttled_seconds", "major_faults", "io_operations")] <- 0
    run$system$io_bytes <- "not available"
    run$machine <- list(busy_seconds = seconds * (sum(unlist(spent)) + 0.5),
                        foreign_seconds = seconds * 0.5, interrupt_seconds = 0,
                        context_switches = 7 * seconds)
    if (how == "slices") {
      hide <- function(counts) lapply(counts, function(count) "not available")
      run[c("helpers", "machine")] <- lapply(run[c("helpers", "machine")], hide)
    }
    run
  }
  list(environment = environment, workload = "stream", repetition = repetition,
       laps = lapply(1:3, function(lap) list(lap = lap, counts = !lap %in% left_out)),
       costs = lapply(1:3, make_run))
}

# The rows of compare_costs, of a docker whose performance is `ratio` of native's 10 GB/s.
compare_shares <- function(native, docker, ratio, ...) {
  tidy <- make_values(native = 10, docker = 10 * ratio, noise = 0)
  records <- unlist(lapply(1:8, function(i) {
    list(make_record("native", i, native, ...), make_record("docker", i, docker, ...))
  }), recursive = FALSE)
  results <- c(make_results(tidy), list(records = records))
  compare_costs(results, compare_with_native(results), pair_with_native(tidy))
}

test_that("parts of a difference are those that were spent, and add up to it", {
  # Each second of native's: 0.8 in the program, 0.2 in waiting.  With a ratio of 0.8 a unit of work
  # takes 1.25 times as long.
  native <- list(user = 0.6, kernel = 0.2)
  cases <- list(
    # The kernel needs the time.
    list(native, list(user = 0.48, kernel = 0.36), list(system_kernel = 0.25, waiting = 0)),
    list(native, list(user = 0.48, kernel = 0.16), list(system_user = 0, waiting = 0.25)),
    list(native, list(user = 0.48, kernel = 0.16, helpers = 0.16, client = 0.04),
         list(helpers_kernel = 0.2, client_user = 0.05, waiting = 0)),
    list(native, list(user = 0.48, kernel = 0.16, rest = 0.2), list(rest = 0.25, waiting = 0)),
    # Two processors, all the time.
    list(list(user = 2), list(user = 2), list(system_user = 0.25, waiting = 0)),
    list(list(user = 2), list(user = 1.6), list(system_user = 0, waiting = 0.25))
  )
  for (case in cases) {
    rows <- compare_shares(case[[1]], case[[2]], 0.8)
    shares <- as.list(stats::setNames(rows$share, rows$part))
    expect_equal(shares[names(case[[3]])], case[[3]], tolerance = 1e-6)
    expect_equal(shares$time, 0.25, tolerance = 1e-6)
    parts <- shares[c(names(CPU_PARTS), "rest", "waiting")]
    expect_equal(sum(unlist(parts)), shares$time, tolerance = 1e-6)
  }
})

test_that("costs are of a unit of work, of laps that count, and empty if nothing is counted", {
  spent <- list(user = 0.5)
  rows <- compare_shares(spent, spent, 0.5, left_out = 2)
  rownames(rows) <- rows$part
  # A GB takes native about 0.1 s, and docker twice as long.
  expect_equal(rows["system_user", "value"], 2 * rows["system_user", "native"])
  expect_equal(rows["system_user", "native"], 0.5 * rows["time", "native"])
  expect_equal(rows["context_switches", "native"], 7 * rows["time", "native"])
  expect_true(is.na(rows["io_bytes", "value"]))
  slices <- compare_shares(spent, spent, 0.5, how = "slices")
  shares <- as.list(stats::setNames(slices$share, slices$part))
  expect_true(is.na(shares$helpers_user))
  expect_equal(shares$system_user + shares$waiting, shares$time)
  expect_null(compare_costs(list(records = list(list(environment = "native"))), NULL, NULL))
})

test_that("only a rate or a time gives a unit of work", {
  rows <- data.frame(workload = c("a", "a", "b", "b", "b", "c", "d"),
                     metric = c("rate", "p99", "time", "cpu", "memory", "orders", "users"),
                     unit = c("1/s", "ms", "ms", "s", "MB", "orders/min", "users"),
                     better = c("higher", "lower", "lower", "lower", "lower", "higher", "higher"),
                     value = 2)
  expect_equal(compute_unit_seconds(rows), c(0.5, NA, 0.002, NA, NA, 30, NA))
})
