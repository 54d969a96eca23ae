# Replications whose truth is known: unchanged, changed, and too vague.

for (file in c("format.R", "testbeds.R", "replication.R")) {
  suppressMessages(source(file.path(root, "analysis", file)))
}

# Makes blocks of sessions whose ratio to native is known.
make_ratios <- function(ratio, n, noise, sessions = 1, between = 0) {
  effects <- stats::rnorm(sessions, 0, between)
  data.frame(share = ratio * exp(rep(effects, each = n) + stats::rnorm(n * sessions, 0, noise)),
             session = paste0(rep(seq_len(sessions), each = n)))
}

# The outcomes of a replication of several rows, of which the first alone changed.
replicate_rows <- function(n, noise, change = 1, rows = 6, sessions = 1, between = 0) {
  predicted <- lapply(seq_len(rows), function(i) {
    predict_replication(make_ratios(0.9, n, noise, sessions, between),
                        make_ratios(0.9 * if (i == 1) change else 1, n, noise, 1, between))
  })
  judge_replications(stack_rows(predicted), 0.05)
}

test_that("a replication of an unchanged truth agrees, and a change of 5 % is found", {
  set.seed(1)
  shares <- rowMeans(vapply(1:150, function(i) {
    same <- replicate_rows(20, 0.01, between = 0.003)
    changed <- replicate_rows(20, 0.01, 0.95)
    c(alarm = any(same$outcome == "differs"), agree = mean(same$outcome == "agrees"),
      found = changed$outcome[[1]] == "differs")
  }, numeric(3)))
  expect_lte(shares[["alarm"]], 0.05)
  expect_gte(shares[["agree"]], 0.95)
  expect_gte(shares[["found"]], 0.8)
})

test_that("a prediction interval of the original's sessions holds another session", {
  set.seed(2)
  hits <- vapply(1:200, function(i) {
    row <- replicate_rows(8, 0.02, rows = 1, sessions = 5, between = 0.03)
    row$predicted_low < row$here && row$here < row$predicted_high
  }, NA)
  expect_gte(mean(hits), 0.92)
  expect_lte(mean(hits), 0.99)
})

test_that("vague replications are undecided, with the blocks that would decide", {
  set.seed(3)
  row <- predict_replication(make_ratios(0.9, 40, 0.005), make_ratios(0.9, 8, 0.03))
  vague <- judge_replications(row, 0.05)
  expect_equal(vague$outcome, "undecided")
  decided <- vapply(1:40, function(i) {
    blocks <- 8 + vague$more
    row <- predict_replication(make_ratios(0.9, 40, 0.005), make_ratios(0.9, blocks, 0.03))
    judge_replications(row, 0.05)$outcome == "agrees"
  }, NA)
  expect_gte(mean(decided), 0.5)
  # The original alone is too vague.
  lost <- judge_replications(predict_replication(make_ratios(0.9, 5, 0.1),
                                                 make_ratios(0.9, 100, 0.001)), 0.05)
  expect_equal(c(lost$outcome, lost$more), c("undecided", NA))
  few <- judge_replications(predict_replication(make_ratios(1, 4, 0.001),
                                                make_ratios(2, 4, 0.001)), 0.05)
  expect_equal(few$outcome, "undecided")
  # What lies outside of its interval by less than what matters does not differ.
  near <- judge_replications(predict_replication(make_ratios(1, 30, 0.001),
                                                 make_ratios(0.99, 30, 0.001)), 0.05)
  expect_equal(near$outcome, "agrees")
})

test_that("each ratio of the original is judged, or told why it is not", {
  set.seed(4)
  make_side <- function(...) {
    levels <- c(...)
    values <- stack_rows(lapply(names(levels), function(name) {
      cbind(environment = name, label = name, workload = "stream", metric = "triad", unit = "GB/s",
            series = "STREAM Triad", question = "memory", headline = TRUE, emulated = FALSE,
            factor_n = as.character(levels[[name]] > 0.5), make_ratios(levels[[name]], 20, 0.005))
    }))
    list(values = values, records = list(), sessions = list(list(invalid = character())))
  }
  omitted <- data.frame(environment = c("vm", ""), workload = c("", "fio"),
                        reason = c("no KVM", "no disk"))
  original <- make_side(native = 1, docker = 0.9, vm = 0.8, podman = 0.9, other = 0.4)
  rows <- compare_replication(original, make_side(native = 1, docker = 0.9, podman = 0.8,
                                                  other = 0.6), omitted, 0.05)
  expect_equal(stats::setNames(rows$outcome, rows$environment),
               c(docker = "agrees", podman = "differs", other = "differs",
                 vm = "not testable here"))
  expect_equal(rows$why[rows$environment == "vm"], "no KVM")
  outcome <- summarise_replication(rows, NULL)
  expect_equal(outcome$outcome, "differs")
  expect_match(outcome$text, "1 agree, 2 differ, 1 not testable here", fixed = TRUE)
  omitted_vm <- omitted[omitted$environment == "vm", ]
  partly <- compare_replication(original, make_side(native = 1, podman = 0.8), omitted_vm, 0.05)
  by_environment <- stats::setNames(partly$outcome, partly$environment)
  expect_equal(by_environment[c("docker", "vm")],
               c(docker = "undecided", vm = "not testable here"))
  expect_match(partly$why[partly$environment == "docker"], "not measured yet")
  expect_equal(summarise_replication(partly[partly$environment != "podman", ], NULL)$outcome,
               "undecided")
  nothing <- compare_replication(original, NULL, omitted, 0.05)
  expect_equal(unique(nothing$outcome), "not testable here")
  original$sessions[[1]]$invalid <- "stream"
  expect_match(compare_replication(original, original, omitted, 0.05)$why, "break a rule")
})
