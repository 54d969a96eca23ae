# Intervals, tests and verdicts against known truth.

compare_values_with_native <- function(values) compare_with_native(make_results(values))

test_that("the noise of blocks cancels out of a ratio, whichever way is better", {
  rows <- compare_values_with_native(make_values(native = 10, docker = 9))
  expect_equal(rows$ratio, 0.9, tolerance = 0.01)
  expect_lt(rows$high - rows$low, 0.02)
  expect_equal(rows[c("verdict", "direction")],
               data.frame(verdict = "different", direction = "slower"))
  costs <- compare_values_with_native(make_values(native = 10, docker = 9, better = "lower"))
  expect_equal(costs$ratio, 1 / rows$ratio)
  expect_equal(costs$direction, "faster")
})

test_that("a difference is tested against the margin and not against 0", {
  # One per cent, however certain, is not a difference that matters.
  small <- compare_values_with_native(make_values(native = 10, docker = 9.9))
  expect_lt(small$high, 1)
  expect_equal(small$verdict, "equivalent")
  # Three per cent with an interval that holds two is undecided, and `more` blocks would decide it.
  open <- compare_values_with_native(make_values(native = 10, docker = 9.7, noise = 0.012))
  expect_equal(open$verdict, "undecided")
  expect_gt(open$more, 0)
})

test_that("verdicts that are tested on the way share the error rate", {
  rows <- compare_values_with_native(make_values(native = 10, docker = 9.7, noise = 0.01))
  once <- add_verdicts(rows, 1)
  often <- add_verdicts(rows, 1, looks = 8)
  expect_equal(1 - often$level_all, (1 - once$level_all) / 8)
  expect_lt(often$low_all, once$low_all)
  expect_gt(often$high_all, once$high_all)
})

test_that("the number of blocks that would decide follows from R's power from the margin", {
  needed <- function(distance, power) {
    ceiling(power.t.test(delta = distance, sd = 0.02, sig.level = 0.05, power = power,
                         type = "one.sample", alternative = "one.sided")$n)
  }
  edge <- -log(0.98)
  expect_equal(estimate_blocks_needed(0.96, 0.02), needed(-log(0.96) - edge, 0.8))
  expect_equal(estimate_blocks_needed(0.99, 0.02), needed(edge + log(0.99), 0.9))
  expect_gt(estimate_blocks_needed(0.99, 0.02, alpha = 0.05 / 16),
            estimate_blocks_needed(0.99, 0.02))
})

test_that("a level is native's times the ratio, or divided by it where less is better", {
  for (better in c("higher", "lower")) {
    values <- make_values(native = 10, docker = 9, better = better)
    levels <- add_levels(summarise_runs(values), compare_values_with_native(values))
    native <- levels$environment == "native"
    expect_equal(levels$level[native], levels$mean[native])
    expect_equal(levels$level[!native], 0.9 * levels$level[native], tolerance = 0.002)
    expect_true(all(levels$level_low < levels$level & levels$level < levels$level_high))
  }
})

test_that("an interval is Student's, with as many blocks as are independent", {
  # Negatively correlated neighbours count as correlated by 0.15: 7.4 of ten blocks are independent.
  d <- 0.03 + rep(c(0.01, -0.01), 5)
  row <- estimate_mean_ratio(exp(d))
  blocks <- 10 * 0.85 / 1.15
  half_width <- qt(0.975, blocks - 1) * sd(d) / sqrt(blocks)
  expect_equal(log(c(row$low, row$high)), 0.03 + c(-half_width, half_width))
  # Positively correlated neighbours hold less: as their correlation says, without its bias.
  waves <- 0.03 + 0.01 * sin(1:20)
  correlation <- acf(waves, 1, plot = FALSE)$acf[[2]]
  unbiased <- correlation + (1 + 4 * correlation) / 20
  expect_equal(estimate_standard_error(waves)$se,
               sd(waves) / sqrt(20 * (1 - unbiased) / (1 + unbiased)))
  drift <- estimate_mean_ratio(exp(sort(d)))
  expect_gt(log(drift$high / drift$low), 4 * half_width)
  expect_equal(unlist(compute_intervals(row, 0.9)),
               unlist(estimate_mean_ratio(exp(d), level = 0.9)[c("low", "high")]))
})

test_that("without an interval there is a reason and no verdict", {
  expect_equal(estimate_mean_ratio(c(1.1, 1.2))$why, "fewer than 3 blocks")
  expect_equal(estimate_mean_ratio(rep(0.5, 9))$why, "all blocks give the same ratio")
  four <- compare_values_with_native(make_values(native = 10, docker = 9, n = 4))
  expect_equal(c(four$why, four$verdict), c("", "undecided"))
})

test_that("all verdicts of a table share one error rate", {
  row <- cbind(estimate_mean_ratio(exp(c(-1, 1, -1, 1, -1, 1, -1, 1) * 0.015)), headline = TRUE)
  decide <- function(count) {
    rows <- row[rep(1, count), ]
    add_verdicts(rows, seq_len(count))[1, ]
  }
  expect_equal(decide(1)$verdict, "equivalent")
  expect_equal(decide(20)$verdict, "undecided")
  expect_equal(decide(20)$level_all, 1 - 0.1 / 20)
})

test_that("a workload is equivalent only if all its series are, and different if one is", {
  decide <- function(...) {
    rows <- do.call(rbind, Map(function(level, metric) {
      make_values(native = 10, docker = level, metric = metric, noise = 0.004)
    }, c(...), c("copy", "triad")))
    rows$series <- rows$metric
    decide_workloads(compare_values_with_native(rows))
  }
  same <- decide(10, 10)
  expect_equal(c(nrow(same), same$verdict), c("1", "equivalent"))
  open <- decide(10, 9.8)
  expect_equal(c(open$verdict, open$series), c("undecided", "triad"))
  slower <- decide(10, 9)
  expect_equal(c(slower$verdict, slower$direction, slower$series),
               c("different", "slower", "triad"))
  expect_lt(slower$high, 0.98)
})

test_that("runs that were measured apart form no ratio", {
  values <- make_values(native = 10, docker = 9)
  docker <- values$environment == "docker"
  count_pairs <- function(values) compare_values_with_native(values)$n
  values$together <- paste("native", values$repetition)
  expect_equal(count_pairs(values), 8)
  # One cell was measured again by itself, with others or alone.
  again <- which(docker & values$repetition == 3)
  values$together[again] <- "docker 100"
  expect_equal(count_pairs(values), 7)
  values$together <- ""
  values[docker, c("started", "ended")] <- c(20, 20)
  values$block_seconds <- 30
  expect_equal(count_pairs(values), 8)
  values[again, c("started", "ended")] <- 420
  expect_equal(count_pairs(values), 7)
})

test_that("an environment during whose whole runs the machine is disturbed is found", {
  make_record <- function(environment, steal, how = "whole") {
    causes <- if (steal) list("steal") else list()
    runs <- list(list(environments = list(environment), how = how, disturbed_by = causes))
    laps <- list(list(lap = 1, counts = !steal, runs = runs),
                 list(lap = 2, counts = TRUE, runs = runs))
    list(environment = environment, laps = laps)
  }
  records <- c(lapply(rep(c(FALSE, TRUE), c(19, 1)), make_record, environment = "native"),
               lapply(rep(c(FALSE, TRUE), 10), make_record, environment = "sandbox"),
               lapply(rep(c(FALSE, TRUE), 10), make_record, environment = "docker", how = "slices"))
  environments <- data.frame(environment = c("native", "docker", "sandbox"), label = LETTERS[1:3])
  rows <- compare_disturbances(list(records = records, environments = environments))
  expect_equal(rows$environment, environments$environment)
  expect_equal(rows$left_out, c(1, 10, 10))
  expect_equal(rows$runs, c(40, 0, 40))
  expect_equal(rows$steal, c(2, 0, 20))
  expect_equal(is.na(rows$p), c(TRUE, TRUE, FALSE))
  expect_lt(rows$p[[3]], 0.001)
  expect_null(compare_disturbances(list(records = list(list(environment = "native")),
                                        environments = environments)))
})

test_that("stalls of one environment's laps are found, and seldom where there are none", {
  set.seed(4)
  count_found <- function(share, papers) {
    found <- vapply(seq_len(papers), function(i) {
      values <- make_values(native = 10, docker = 10, n = 20, seed = i)
      values$laps <- lapply(values$environment, function(name) {
        slow <- name == "docker" & stats::runif(8) < share
        10 * exp(stats::rnorm(8, 0, 0.05)) / ifelse(slow, 1.5, 1)
      })
      compare_stalls(values)$p < 0.05
    }, NA)
    mean(found)
  }
  expect_gte(count_found(0.05, 60), 0.7)
  expect_lte(count_found(0, 60), 0.05)
})

test_that("a ratio is of all work over all time, and a robust one stands beside it", {
  values <- make_values(native = 10, docker = 10)
  is_docker <- values$environment == "docker"
  make_laps <- function(value, slow) {
    value * c(1, 1.1, 0.9, 1, rep(slow, 2), 1, 1.2, 0.8, 1)
  }
  values$laps <- Map(make_laps, values$value, ifelse(is_docker, 0.5, 1))
  values$value <- values$value * ifelse(is_docker, 0.9 * (1 + 1e-3 * cos(seq_len(8))), 1)
  row <- compare_values_with_native(values)
  expect_equal(row$ratio, 0.9, tolerance = 0.01)
  expect_equal(row$verdict, "different")
  expect_equal(row$robust, 1, tolerance = 0.01)
  expect_true(row$robust_differs)
})

test_that("the pseudomedian is the geometric mean of two values, and what R estimates of more", {
  expect_equal(compute_pseudomedian(c(0.8, 1.25)), 1)
  laps <- exp(sin(1:11))
  expected <- wilcox.test(log(laps), conf.int = TRUE)$estimate[[1]]
  expect_equal(log(compute_pseudomedian(laps)), expected, tolerance = 1e-4)
})

test_that("summaries have Student's interval, and the median's from six runs on", {
  five <- summarise_runs(make_values(native = 10, n = 5))
  expect_true(is.na(five$median_low))
  values <- make_values(native = 10, n = 6)
  six <- summarise_runs(values)
  expect_equal(c(six$median_low, six$median_high), c(six$min, six$max))
  expect_equal(c(six$mean_low, six$mean_high), as.vector(t.test(values$value)$conf.int))
  twenty <- make_values(native = 10, n = 20)
  expect_equal(summarise_runs(twenty)$median_low, sort(twenty$value)[[6]])
})

test_that("groups keep their order, without those that give no row", {
  rows <- data.frame(key = c("b", "b", "a", "c"), of = "x", value = 1:4)
  sums <- map_groups(rows, c("key", "of"), function(group) {
    if (group$key[[1]] != "a") data.frame(sum = sum(group$value))
  })
  expect_equal(sums, data.frame(key = c("b", "c"), of = "x", sum = 3:4))
})

test_that("the share of variance between blocks is the intraclass correlation", {
  shared <- estimate_block_share(make_values(native = 10, docker = 10))
  expect_gt(shared$share, 0.9)
  # Shrout and Fleiss 1979, ICC(3, 1).
  values <- make_values(native = 10, docker = 9, vm = 8, noise = 0.05)
  x <- log(matrix(values$value, ncol = 3))
  residuals <- x - outer(rowMeans(x), colMeans(x), "+") + mean(x)
  between <- 3 * var(rowMeans(x))
  within <- sum(residuals^2) / (7 * 2)
  expect_equal(estimate_block_share(values)$share, (between - within) / (between + 2 * within))
})

test_that("sessions are the sample: of one machine from three on, of machines from five on", {
  set.seed(3)
  simulate <- function(machines, sessions, blocks = 6) {
    rows <- expand.grid(block = seq_len(blocks), session = seq_len(sessions),
                        machine = seq_len(machines))
    rows$session <- paste(rows$machine, rows$session)
    shift <- stats::rnorm(machines * sessions, 0, 0.05)
    rows$ratio <- exp(shift[match(rows$session, unique(rows$session))] +
                        stats::rnorm(nrow(rows), 0, 0.01))
    rows
  }
  estimate <- function(rows, ...) compare_sessions(rows$ratio, rows$session, rows$machine, ...)
  get_means <- function(rows) tapply(log(rows$ratio), rows$session, mean)
  holds <- c(`1 1` = "session", `1 2` = "sessions", `1 3` = "machine", `2 3` = "sessions",
             `4 1` = "sessions", `5 1` = "machines")
  for (design in names(holds)) {
    counts <- as.integer(strsplit(design, " ")[[1]])
    rows <- simulate(counts[[1]], counts[[2]])
    row <- estimate(rows)
    expect_equal(c(row$holds, row$machines, row$sessions),
                 as.character(c(holds[[design]], counts[[1]], prod(counts))))
    within <- estimate_mean_ratio(rows$ratio)
    # Fewer sessions are blocks; else each is a value, of equal weight where all have one variance.
    interval <- within[c("low", "high")]
    if (holds[[design]] %in% c("machine", "machines")) {
      interval <- exp(stats::t.test(get_means(rows))$conf.int)
    }
    expect_equal(unlist(row[c("low", "high")], use.names = FALSE),
                 as.numeric(interval), tolerance = 0.002)
    expect_equal(is.na(row$next_low), holds[[design]] != "machines")
  }
  # An interval at another level follows from its standard error, as for the verdicts.
  three <- simulate(1, 3)
  expect_equal(unlist(compute_intervals(estimate(three), 0.9)),
               unlist(estimate(three, level = 0.9)[c("low", "high")]))
  # A session of two blocks is not a session of its own.
  fourth <- data.frame(block = 1:2, session = "1 4", machine = 1, ratio = 2)
  expect_equal(estimate(rbind(three, fourth))$ratio, estimate(three)$ratio)
  expect_equal(estimate(rbind(three[three$session != "1 3", ], fourth))$holds, "sessions")
  # Machines that do not differ are pooled by what their sessions tell, and not below it.
  values <- data.frame(machine = letters[1:5], mean = 0.1, se = 0.01)
  pooled <- pool_machines(values)
  expect_equal(unlist(pooled[c("mean", "se")], use.names = FALSE), c(0.1, 0.01 / sqrt(5)))
})

test_that("a session ends with a boot, a start of Docker, or an hour without a cell", {
  assign <- function(...) {
    rows <- list(...)
    records <- lapply(rows, function(row) {
      started <- as.POSIXct("2026-01-02", tz = "UTC") + 60 * row[[1]]
      format_moment <- function(moment) format(moment, "%Y-%m-%dT%H:%M:%S.000Z")
      list(started = format_moment(started), ended = format_moment(started + 30),
           node = list(machine = row[[2]], boot = row[[3]], docker = row[[4]]))
    })
    names(records) <- seq_along(records)
    found <- assign_sessions(records)
    found <- found[match(names(records), found$log), ]
    expect_true(all(startsWith(found$session, found$machine)))
    match(found$session, unique(found$session))
  }
  expect_equal(assign(list(0, "a", "x", 5), list(1, "a", "x", 5)), c(1, 1))
  expect_equal(assign(list(0, "a", "x", 5), list(1, "a", "y", 5)), c(1, 2))
  expect_equal(assign(list(0, "a", "x", 5), list(1, "a", "x", 6)), c(1, 2))
  # Before Docker is started, and where a kernel says nothing, nothing is another session.
  expect_equal(assign(list(0, "a", NULL, NULL), list(1, "a", "x", 5), list(2, "a", NULL, NULL),
                      list(3, "a", "x", 6)), c(1, 1, 1, 2))
  expect_equal(assign(list(0, "a", "x", 5), list(60, "a", "x", 5), list(122, "a", "x", 5)),
               c(1, 1, 2))
  # Two machines at once, whatever the order of their records.
  expect_equal(assign(list(3, "b", "y", 1), list(0, "a", "x", 5), list(1, "b", "y", 1),
                      list(2, "a", "x", 5)), c(1, 2, 1, 2))
})

test_that("options that are passed on to Docker are a choice", {
  describe <- function(...) {
    docker <- list(network = "bridge", data = "volume", ...)
    list(available = TRUE, layers = list(list(docker = docker)),
         descriptions = list(list(title = paste(unlist(docker), collapse = " "), network = "",
                                  data = "")))
  }
  plan <- list(environments = list(docker = describe(),
                                   limited = describe(options = list("--cpus=1", "--init"))))
  expect_equal(find_choice_pairs(plan)$choice, "docker options")
})
