test_that("our order holds its nominal rate and the naive one does not when the machine drifts", {
  found <- simulate_alike(SCENARIOS, repetitions = 5, replicates = 1000, seed = 1)
  share <- function(machine, order) found$share[found$machine == machine & found$order == order]
  for (machine in names(SCENARIOS)) {
    expect_lt(share(machine, "blocks"), 0.08)
  }
  expect_lt(share("steady machine", "sequential"), 0.08)
  expect_gt(share("drift of 3 %", "sequential"), 0.3)
  expect_gt(share("random walk of 3 %", "sequential"), 0.15)
})

test_that("a real difference is called", {
  values <- machine_values(20, SCENARIOS[["steady machine"]])
  expect_true(call_paired(values, 1.2 * values + 0.001 * seq_len(20))$different)
  expect_true(call_unpaired(values, 1.2 * values)$different)
})

test_that("each order uses every value once", {
  set.seed(1)
  for (order in c("blocks", "sequential")) {
    found <- simulate_experiment(order, 7, list(drift = 14, walk = 0, noise = 0))
    expect_equal(sort(c(found$first, found$second)), 1 + seq_len(14))
  }
  expect_true(all(abs(found$first - found$second) == 7))
})

test_that("shares have exact intervals and know the minimum effect", {
  calls <- c(rep(list(list(different = TRUE, by = 0.01)), 2), rep(list(list(different = TRUE, by = 0.05)), 3),
             rep(list(list(different = FALSE, by = 0.5)), 95))
  found <- share_of_calls(calls)
  expect_equal(found$share, 0.05)
  expect_equal(found$called, 0.03)
  # Clopper and Pearson's limits for 5 of 100.
  expect_equal(c(found$low, found$high), c(0.01643, 0.11283), tolerance = 1e-3)
})

test_that("runs that do not vary are compared as they are", {
  expect_false(call_unpaired(c(1, 1), c(1, 1))$different)
  expect_true(call_unpaired(c(1, 1), c(2, 2))$different)
  expect_false(call_paired(c(1, 1), c(1, 1))$different)
})
