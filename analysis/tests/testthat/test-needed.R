test_that("two one-sided tests find equal exactly what lies within the minimum effect at 90 %", {
  set.seed(3)
  found <- vapply(1:200, function(i) {
    y <- 100 + stats::rnorm(8)
    x <- y * stats::runif(1, 0.97, 1.03) + stats::rnorm(8, 0, 0.7)
    vapply(STATISTICS, function(statistic) {
      inner <- compare_runs(x, y, statistic, INNER_LEVEL)
      within <- inner$low >= 1 - MINIMUM_EFFECT && inner$high <= 1 + MINIMUM_EFFECT
      expect_equal(compare_runs(x, y, statistic)$equal_p < SIGNIFICANCE, within)
      within
    }, NA)
  }, c(NA, NA, NA))
  expect_true(all(rowSums(found) > 20 & rowSums(!found) > 20))
  expect_equal(paired_equal_p(c(1, 2), c(1, 2)), NA_real_)
  x <- c(101, 99, 100.5, 99.6)
  expect_equal(paired_equal_p(x, rep(100, 4)), max(
    t.test(x, mu = 98, alternative = "greater")$p.value, t.test(x, mu = 102, alternative = "less")$p.value
  ))
})

test_that("the smallest difference that would have been called is at the edge of being called", {
  y <- c(98, 101, 100, 102, 99, 100)
  x <- y + c(1, -1, 2, -2, 0.5, -0.5)
  found <- compare_runs(x, y, "mean")
  edge <- smallest_called(found$scatter, found$n, SIGNIFICANCE, 0)
  shifted <- function(by) compare_runs(x + by * mean(y), y, "mean")$p_value
  expect_equal(shifted(edge), SIGNIFICANCE)
  expect_lt(shifted(edge * 1.01), SIGNIFICANCE)
  expect_gt(shifted(edge * 0.99), SIGNIFICANCE)
  expect_equal(smallest_called(c(1e-6, NA), c(6, 0), SIGNIFICANCE), c(MINIMUM_EFFECT, NA))
})

test_that("of several comparisons each would have been called with a p value that is as large as can be", {
  set.seed(5)
  for (i in 1:50) {
    p <- c(stats::runif(4, 0, 0.1), NA, stats::runif(3))
    limits <- largest_called_p(p)
    expect_equal(is.na(limits), is.na(p))
    for (at in which(!is.na(p))) {
      called <- function(own) adjusted_p_values(replace(p, at, own))[[at]] < SIGNIFICANCE
      expect_true(called(limits[[at]] * 0.9999))
      expect_false(called(limits[[at]] * 1.0001))
    }
  }
  expect_equal(largest_called_p(0.9), SIGNIFICANCE)
  expect_equal(largest_called_p(NA_real_), NA_real_)
})

#' The share of experiments of so many pairs that come to a reading
share_read <- function(reading, n, ratio, scatter) {
  mean(replicate(2000, {
    x <- stats::rnorm(n, ratio, scatter)
    error <- stats::sd(x) / sqrt(n)
    p <- 2 * stats::pt(-abs(mean(x) - 1) / error, n - 1)
    equal_p <- stats::pt((abs(mean(x) - 1) - MINIMUM_EFFECT) / error, n - 1)
    verdict(mean(x), mean(x) - error, mean(x) + error, "higher", p, equal_p) == reading
  }))
}

test_that("so many sets decide as often as they should", {
  set.seed(7)
  # Where the scatter is known from many pairs.
  for (case in list(c(0.9, 0.2), c(0.97, 0.1), c(1, 0.05), c(1.01, 0.05), c(1.035, 0.1))) {
    needed <- ceiling(pairs_to_decide(case[[1]], case[[2]], 1e5, SIGNIFICANCE))
    away <- case[[1]] - 1
    reading <- if (abs(away) <= MINIMUM_EFFECT) "equal" else if (away < 0) "slower" else "faster"
    share <- share_read(reading, needed, case[[1]], case[[2]])
    expect_gt(share, POWER - 0.04)
    expect_lt(share, 0.93)
  }
  expect_equal(pairs_to_decide(c(1.02, 0.98), 0.1, 10, SIGNIFICANCE), c(Inf, Inf))
})

test_that("more sets are told with what is not known of the scatter, and not from a handful", {
  more <- more_sets(c(40.2, 40.2, 3, Inf, NA), c(10, 4, 10, 10, 10))
  expect_equal(more$more_sets, c(31, NA, 1, MOST_SETS, NA))
  expect_equal(more$more_sets_low[[1]], ceiling(40.2 * 9 / qchisq(0.975, 9) - 10))
  expect_equal(more$more_sets_high[[1]], ceiling(40.2 * 9 / qchisq(0.025, 9) - 10))
  expect_equal(minutes_of(c(3, NA), c("pxz", "pxz"), c(stream = 1, pxz = 40)), c(2, NA))
  expect_equal(minutes_of(3, "moon", c(stream = 1)), NA_real_)
})

test_that("comparisons tell it of what is open, and of nothing else", {
  rows <- rbind(
    summary_row("native"),
    summary_row("docker", ratio = 0.96, low = 0.91, high = 1.01, n = 12),
    summary_row("docker", ratio = 0.8, low = 0.79, high = 0.81, n = 12, metric = "scale"),
    summary_row("docker", ratio = 1, low = 0.999, high = 1.001, n = 12, workload = "new-load",
                metric = "rate")
  )
  table <- comparison_table(rows, small_plan(), c(stream = 30))
  expect_equal(table$reading, c("open", "slower", "equal"))
  # The one that is called lets this one be called at two thirds of 5 %.
  expect_equal(table$smallest_called[[1]], qt(1 - 0.1 / 3 / 2, 11) * table$scatter[[1]] / sqrt(12))
  expect_equal(table$smallest_called[[3]], MINIMUM_EFFECT)
  expect_equal(is.na(table$more_sets), c(FALSE, TRUE, TRUE))
  expect_equal(table$more_minutes[[1]], table$more_sets[[1]] / 2)
  limits <- unlist(table[1, c("more_sets_low", "more_sets", "more_sets_high")])
  expect_false(is.unsorted(limits, strictly = TRUE))
  plan <- small_plan()
  plan$environments$docker$emulated <- TRUE
  expect_true(all(is.na(comparison_table(rows, plan, c(stream = 30))$more_sets)))
})

test_that("an open claim is decided by the first part that would contradict it, or by the last of all", {
  needs <- function(ratio, from = 0.95, to = 1.05, verdicts = rep("inconclusive", length(ratio)), n = 20,
                    scatter = 0.2, workload = rep("pxz", length(ratio))) {
    count <- length(ratio)
    claim_needs(ratio, rep_len(scatter, count), rep_len(n, count), from, to, verdicts, workload,
                c(pxz = 60, stream = 30))
  }
  inside <- needs(1)
  expect_equal(inside$more_sets, ceiling(((qt(0.95, 19) + qt(0.9, 19)) * 0.2 / 0.05)^2 - 20))
  expect_equal(inside$more_minutes, inside$more_sets)
  expect_equal(needs(1, to = NA)$more_sets, ceiling(((qt(0.95, 19) + qt(0.8, 19)) * 0.2 / 0.05)^2 - 20))
  outside <- needs(0.93)
  expect_equal(outside$more_sets, ceiling(((qt(0.975, 19) + qt(0.8, 19)) * 0.2 / 0.02)^2 - 20))
  # Two parts share the level, and the nearer to the tolerance takes longer.
  expect_equal(needs(c(0.93, 0.91))$more_sets, ceiling(((qt(0.9875, 19) + qt(0.8, 19)) * 0.2 / 0.04)^2 - 20))
  both <- needs(c(1, 1.03), workload = c("pxz", "stream"))
  expect_equal(both$more_sets, needs(1.03)$more_sets)
  expect_equal(both$more_minutes, inside$more_sets + both$more_sets / 2)
  expect_equal(needs(c(1, 1.03), verdicts = c("inconclusive", "reproduced"))$more_sets, inside$more_sets)
  expect_equal(needs(c(1, NA))$more_sets, NA_real_)
  expect_equal(needs(NA)$more_minutes, NA_real_)
})

test_that("a set costs what the last decision says, or what its runs took", {
  plan <- read_plan(make_results(c("native", "docker", "vm"), c("pxz", "stream"), 3))
  plan$environments$vm$emulated <- TRUE
  cells <- read_cells(plan)
  for (i in seq_len(nrow(cells))) {
    path <- cell_path(plan, "record", cells[i, ])
    second <- 10 * (cells$environment[[i]] != "native") + 40 * (cells$environment[[i]] == "vm")
    times <- sprintf("2026-01-02T03:%02d:%02d.%d00Z", cells$repetition[[i]],
                     second + c(0, 3 + cells$repetition[[i]]), c(0, 5))
    told <- cells$workload[[i]] == "pxz"
    write_json(updated(read_json(path), started = if (told) times[[1]], ended = if (told) times[[2]]), path)
  }
  expect_equal(set_seconds(plan), c(pxz = 15.5, stream = NA))
  expect_length(claim_seconds(plan), 0)
  # A set of which a cell is gone tells nothing.
  file.remove(cell_path(plan, "record", cells[cells$workload == "pxz" & cells$environment == "docker" &
                                                cells$repetition == 3, ]))
  expect_equal(set_seconds(plan)[["pxz"]], 15)
  plan$precision <- list(min = 3, max = 9)
  dir.create(file.path(plan$results, "precision"))
  write_json(list(block = 3, enough = TRUE, workloads = list(
    pxz = list(sets = 3, seconds = 12.5, claim = list(id = "similar", seconds = 6.5), again = list(),
               more = 0),
    stream = list(sets = 3, seconds = NULL, again = list(), more = 0)
  )), result_path(plan, "precision", block = 3))
  expect_equal(set_seconds(plan), c(pxz = 12.5, stream = NA))
  # For a claim a set holds what that compares.
  expect_equal(claim_seconds(plan), c(similar = 6.5))
})

test_that("the paper tells what could have been seen, and what would decide", {
  evidence <- small_evidence(list(
    summary_row("native", n = 12), summary_row("docker", ratio = 0.96, low = 0.91, high = 1.01, n = 12),
    summary_row("native", n = 12, metric = "scale"),
    summary_row("docker", ratio = 0.99, low = 0.96, high = 1.02, n = 12, metric = "scale")
  ))
  evidence$comparisons$more_minutes <- c(NA, 7, NA, 31)
  table <- table_of_open(evidence)
  expect_equal(nrow(table$cells), 2)
  expect_equal(table$cells[[9]], c("7", "31"))
  text <- read_aloud(unknown_text(evidence, "stream"))
  expect_match(text, "Where this is open, a difference of [0-9.]+ % to [0-9.]+ % would have been called; if")
  expect_match(text, "[0-9]+ more sets \\([0-9]+ to [0-9]+; [0-9]+ minutes\\) would decide all of it\\.")
  few <- small_evidence(list(summary_row("native", n = 4),
                             summary_row("docker", ratio = 0.96, low = 0.91, high = 1.01, n = 4)))
  expect_match(paste(table_of_open(few)$notes, collapse = " "), "fewer than 5 pairs")
  expect_match(unknown_text(few, "stream"), "would have been called\\.$")
  expect_null(table_of_open(small_evidence(list(summary_row("native")))))
})

test_that("the first page says how many claims were decided", {
  evidence <- small_evidence(list(summary_row("native")))
  expect_null(decided_sentence(evidence))
  claims <- empty_table(CLAIM_COLUMNS)[1:4, ]
  claims$verdict <- CLAIM_VERDICTS[[3]]
  evidence$claims <- claims
  expect_match(read_aloud(decided_sentence(evidence)), "claims, none is decided here, 4 stay open")
  claims$verdict <- c("reproduced", "contradicted", "inconclusive", "not testable here")
  evidence$claims <- claims
  expect_match(read_aloud(abstract_text(evidence)), paste(
    "Of 4 published claims, 2 are decided here (1 reproduced, 1 contradicted), 1 stays open, and 1",
    "can\u2019t be tested here."
  ), fixed = TRUE)
})
