test_that("our order holds its nominal rate and the naive one does not when the machine drifts", {
  found <- simulate_alike(SCENARIOS, repetitions = 5, replicates = 500, seed = 1)
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

test_that("under the rule intervals cover on machines that change, and differences are seen", {
  rules <- list(
    few = list(precision = list(min = 3, max = 60, target = 0.02), environments = 2, workloads = 3),
    several = list(precision = list(min = 3, max = 60, target = 0.02, budget = 200), environments = 3,
                   workloads = c(1, 3), claims = c(0.02, 0.012))
  )
  found <- stopping_rates(rules, MACHINES, replicates = 50, seed = 1)
  expect_equal(nrow(found), length(rules) * length(MACHINES))
  # Of so few experiments no rate is known well: the rates of all cases together are.
  expect_true(all(found$coverage > 0.85))
  expect_gt(stats::weighted.mean(found$coverage, found$comparisons), 0.93)
  expect_true(all(found$low < found$coverage & found$coverage < found$high))
  # On either side of the truth an interval for two one-sided tests lies at 5 %.
  sides <- c(found$above, found$below)
  expect_lt(abs(stats::weighted.mean(sides, rep(found$comparisons, 2)) - 0.05), 0.015)
  expect_true(all(found$sets >= 3 & found$rounds > 1))
  expect_true(all(found$reached > 0))
})

test_that("without a first stage the intervals of a rule that looks at widths cover too little", {
  rule <- list(precision = list(min = 3, max = 60, target = 0.03), environments = 2, workloads = 3)
  rates <- stopping_rates(list(with = rule, without = updated(rule, first_stage = 3)), MACHINES[1],
                          replicates = 400, seed = 1)
  expect_gt(rates$coverage[[1]], 0.93)
  expect_lt(rates$coverage[[2]], 0.92)
})

test_that("sets lie together, each with every environment once, and spread over a round", {
  set.seed(1)
  expect_equal(tabulate(order_of_sets(c(4, 0, 2)), 3), c(4, 0, 2))
  # Two blocks of four have a set of the other workload: one in each half.
  expect_equal(sum(order_of_sets(c(4, 0, 2))[1:3] == 3), 1)
  machine <- list(time = 10, walk = 0, scenario = list(drift = 1, walk = 0, disturbed = 0, over = 1))
  workloads <- data.frame(noise = c(0, 0), seconds = c(1, 1))
  found <- measure_sets(machine, workloads, c(2, 1), 3)
  expect_equal(found$machine$time, 19)
  expect_equal(lapply(found$values, dim), list(c(2L, 3L), c(1L, 3L)))
  level <- do.call(rbind, found$values)
  expect_equal(sort(level), 1 + 11:19)
  expect_true(all(apply(level, 1, function(of_set) max(of_set) - min(of_set)) == 2))
})

test_that("sets for claims hold the first two environments alone, behind those that hold all", {
  set.seed(1)
  machine <- list(time = 0, walk = 0, scenario = list(drift = 1, walk = 0, disturbed = 0.5, over = 1))
  found <- measure_sets(machine, data.frame(noise = c(0, 0), seconds = c(1, 1)), c(4, 2), 3, narrow = c(3, 0))
  expect_equal(is.na(found$values[[1]]), cbind(FALSE, FALSE, c(FALSE, TRUE, TRUE, TRUE)))
  expect_false(anyNA(found$values[[2]]))
  expect_equal(found$machine$time, 3 + 3 * 2 + 2 * 3)
})

test_that("a disturbed set is flagged, and one of its runs is slower", {
  set.seed(1)
  machine <- list(time = 0, walk = 0, scenario = list(drift = 0, walk = 0, disturbed = 0.5, over = 1))
  found <- measure_sets(machine, data.frame(noise = 0, seconds = 1), 40, 3)
  expect_equal(found$disturbed[[1]], apply(found$values[[1]], 1, min) == 1 - SLOWED)
  expect_true(any(found$disturbed[[1]]) && !all(found$disturbed[[1]]))
  expect_true(all(apply(found$values[[1]], 1, max) == 1))
})
