# What the machine can reach at most.

#' A plan whose rate is bounded by arithmetic, on a machine of which more or less is known
bounded_plan <- function(..., metric = list(bound = "arithmetic", unit = "GFLOPS")) {
  plan <- small_plan()
  plan$machine$arithmetic <- utils::modifyList(
    list(cores = 2, clock_mhz = 2500, clock = "nominal", vector_bits = 512, fma = TRUE), list(...)
  )
  plan$workloads$`new-load`$metrics$rate <- utils::modifyList(plan$workloads$`new-load`$metrics$rate, metric)
  plan
}

test_that("the bound is cores, clock and operations in a cycle", {
  # 2 cores, 2.5 GHz, 8 numbers in a register, 2 operations on each, 2 units.
  expect_equal(arithmetic_bound(bounded_plan()$machine)$gflops, 2 * 2.5 * 32)
  expect_equal(arithmetic_bound(bounded_plan(vector_bits = 128, fma = FALSE)$machine)$gflops, 2 * 2.5 * 4)
  # Where cores are not told there are no more than processors.
  expect_equal(arithmetic_bound(bounded_plan(cores = NULL)$machine)$cores, 2)
  expect_equal(arithmetic_bound(bounded_plan(clock_mhz = NULL)$machine)$gflops, NA_real_)
  expect_equal(arithmetic_bound(small_plan()$machine)$gflops, NA_real_)
})

test_that("only what the arithmetic bounds has such a bound, and alone on the machine", {
  expect_equal(bound_of(bounded_plan(), "new-load", "rate"), 160)
  expect_equal(bound_of(small_plan(), "new-load", "rate"), NA_real_)
  expect_equal(bound_of(bounded_plan(metric = list(bound = "memory")), "new-load", "rate"), NA_real_)
  several <- bounded_plan()
  several$workloads$`new-load`$parameters$systems <- 2
  expect_equal(bound_of(several, "new-load", "rate"), NA_real_)
})

test_that("the paper tells the bound, what it is made of and how much of it native reached", {
  rows <- list(summary_row("native", mean = 40, workload = "new-load", metric = "rate"),
               summary_row("docker", mean = 80, ratio = 2, workload = "new-load", metric = "rate"))
  evidence <- small_evidence(rows, plan = bounded_plan())
  expect_equal(read_aloud(bound_text(evidence)), paste(
    "The arithmetic of this machine is bounded by 160 GFLOPS: 2 cores at 2.5 GHz (the rate of the time-stamp",
    "counter, which a turbo may exceed) with at most 32 operations of 64 bits in a cycle (registers of 512",
    "bits, multiplication and addition in one instruction, two units in a core)."
  ))
  expect_match(read_aloud(reached_text(evidence, "new-load")),
               "^That is 25[.0-9]* % \\[24\\.87, 25\\.13\\] of what")
  expect_equal(reached_text(evidence, "stream"), "")
  expect_match(bound_text(small_evidence(rows, plan = bounded_plan(clock = "highest"))),
               "driver of frequencies")
  unknown <- small_evidence(rows, plan = bounded_plan(clock_mhz = NULL))
  expect_match(bound_text(unknown), "not available")
  expect_equal(reached_text(unknown, "new-load"), "")
  expect_equal(bound_text(small_evidence(rows)), "")
  # A metric without a bound may stand before.
  beside <- bounded_plan()
  own <- beside$workloads$`new-load`$metrics$rate
  beside$workloads$`new-load`$metrics <- list(other = list(label = "Other", unit = "1/s", better = "higher"),
                                              rate = own)
  first <- summary_row("native", mean = 9, workload = "new-load", metric = "other")
  expect_match(read_aloud(reached_text(small_evidence(c(list(first), rows), plan = beside), "new-load")),
               "^That is 25")
})

test_that("that no bound of the memory is known is said where memory is measured", {
  memory <- small_evidence(plan = bounded_plan(metric = list(bound = "memory")))
  expect_match(unknown_text(memory, "new-load"), "kernel tells no rate of its modules")
  expect_equal(unknown_text(memory, "stream"), "")
})

test_that("the figure of what is bounded has an axis of shares of the bound", {
  axis <- bound_axis(160)
  expect_equal(axis$trans(40), 25)
  expect_match(axis$name, "% of the machine\u2019s bound, 160")
  expect_s3_class(bound_axis(NA_real_), "waiver")
})
