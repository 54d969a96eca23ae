#' A tidy table of one workload and its summary
summarised <- function(..., drop = function(tidy) FALSE) {
  plan <- read_plan(make_results(...))
  workload <- names(plan$workloads)[[1]]
  tidy <- tidied(plan, workload)
  tidy <- tidy[!drop(tidy), ]
  list(plan = plan, tidy = tidy, summary = summarise_workload(tidy, plan, read_cells(plan)))
}

test_that("the summary has a row for every environment, metric and set of factors, in the plan's order", {
  s <- summarised(workloads = "stream", repetitions = 6)$summary
  expect_equal(names(s), names(SUMMARY_COLUMNS))
  expect_equal(s$environment, rep(c("native", "docker", "vm"), each = 4))
  expect_equal(s$metric, rep(c("copy", "scale", "add", "triad"), 3))
  expect_equal(s$n, rep(6L, 12))
})

test_that("its numbers are those of the runs", {
  made <- summarised(workloads = "pxz", repetitions = 6)
  runs <- function(environment) made$tidy$value[made$tidy$environment == environment]
  s <- made$summary[made$summary$environment == "docker", ]
  x <- runs("docker")
  fieller <- paired_ratio(x, runs("native"))
  expect_equal(unlist(s[c("mean", "sd", "median", "median_low", "min", "max")], use.names = FALSE),
               c(mean(x), sd(x), median(x), min(x), min(x), max(x)))
  expect_equal(c(s$mean_low, s$mean_high), as.vector(t.test(x)$conf.int))
  expect_equal(c(s$ratio, s$ratio_low, s$ratio_high), c(fieller$ratio, fieller$low, fieller$high))
  expect_equal(c(s$ratio_n, s$drift_p), c(6, drift(x)))
  expect_equal(s$p_value, t.test(x, runs("native"), paired = TRUE)$p.value)
  expect_equal(s$runs_needed, runs_needed(x))
  expect_equal(s$ratio_method, "Fieller paired by set")
  expect_equal(s$logs, paste0("results/raw/docker/pxz/", 1:6, ".log", collapse = ";"))
  native <- made$summary[made$summary$environment == "native", ]
  expect_true(all(is.na(native[c("ratio", "ratio_low", "ratio_high", "ratio_n")])))
  expect_equal(native$ratio_method, "")
})

test_that("pairs are of one set, whatever runs are missing", {
  drop <- function(tidy) {
    paste(tidy$environment, tidy$repetition) %in% c("docker 2", "native 5")
  }
  made <- summarised(workloads = "pxz", repetitions = 6, drop = drop)
  s <- made$summary[made$summary$environment == "docker", ]
  value <- function(environment) {
    made$tidy$value[made$tidy$environment == environment & made$tidy$repetition %in% c(1, 3, 4, 6)]
  }
  expect_equal(s$ratio_n, 4)
  expect_equal(s$ratio, mean(value("docker")) / mean(value("native")))
  expect_equal(s$n, 5L)
  expect_equal(s$flags, "missing;few-runs")
})

#' A plan of a results folder of pxz in which sets were measured again: after a block, which ones
with_again <- function(again, ...) {
  plan <- read_plan(make_results(..., workloads = "pxz"))
  plan$precision <- list(min = as.integer(names(again)[[1]]), max = 6, retries = 2)
  for (block in names(again)) {
    path <- result_path(plan, "precision", block = block)
    dir.create(dirname(path), showWarnings = FALSE)
    own <- list(sets = as.integer(block), again = as.list(again[[block]]), more = 0)
    write_json(list(block = as.integer(block), enough = length(again[[block]]) == 0,
                    workloads = list(pxz = own)), path)
  }
  plan
}

test_that("sets that were set aside are kept and count no more, in no environment that is paired", {
  plan <- with_again(list(`4` = c(2, 3), `6` = integer()), repetitions = 6)
  tidy <- tidied(plan, "pxz")
  expect_equal(tidy$counts, ifelse(tidy$repetition %in% 2:3, "no", "yes"))
  s <- summarise_workload(tidy, plan, read_cells(plan))
  value <- function(environment) tidy$value[tidy$environment == environment & tidy$repetition %in% c(1, 4:6)]
  expect_equal(s$n, rep(4L, 3))
  expect_equal(s$mean, vapply(c("native", "docker", "vm"), function(name) mean(value(name)), 0,
                              USE.NAMES = FALSE))
  expect_equal(s$ratio[[2]], mean(value("docker")) / mean(value("native")))
  expect_false(any(grepl("missing", s$flags)))
  expect_equal(s$logs[[1]], paste0("results/raw/native/pxz/", c(1, 4:6), ".log", collapse = ";"))
})

test_that("an emulated machine keeps its runs, and is compared with native's of the same repetition", {
  plan <- with_again(list(`2` = 1, `3` = integer()), repetitions = 3)
  plan$environments$vm$emulated <- TRUE
  first <- function(rows) rows[rows$environment != "vm" | rows$repetition <= 2, ]
  tidy <- first(tidied(plan, "pxz"))
  s <- summarise_workload(tidy, plan, first(read_cells(plan)))
  value <- function(environment) tidy$value[tidy$environment == environment & tidy$repetition <= 2]
  expect_equal(s$n, c(2L, 2L, 2L))
  expect_equal(s$logs[[3]], "results/raw/vm/pxz/1.log;results/raw/vm/pxz/2.log")
  expect_equal(s$ratio[[3]], mean(value("vm")) / mean(value("native")))
  expect_equal(s$ratio_n[2:3], c(2, 2))
  expect_false(any(grepl("missing", s$flags)))
})

test_that("what was set aside is known as of a block", {
  plan <- with_again(list(`2` = 1, `3` = integer()), repetitions = 3)
  cells <- read_cells(plan, 2)
  expect_equal(c(max(cells$block), unique(cells$counts)), c("2", "yes"))
  cells <- read_cells(plan)
  expect_equal(cells$counts == "no", cells$repetition == 1)
})

test_that("the pair is of one repetition, in whatever blocks its runs stand", {
  plan <- read_plan(make_results(c("native", "docker"), "pxz", 4))
  tidy <- tidied(plan, "pxz")
  before <- summarise_workload(tidy, plan, read_cells(plan))
  tidy$block <- seq_len(nrow(tidy))
  expect_equal(summarise_workload(tidy, plan, read_cells(plan)), before)
})

test_that("the order of measurement counts, not that of the repetitions", {
  plan <- read_plan(make_results("native", "pxz", 6))
  tidy <- tidied(plan, "pxz")
  tidy$order <- c(3, 6, 1, 5, 2, 4)
  tidy$value[order(tidy$order)] <- 1:6
  s <- summarise_workload(tidy, plan, read_cells(plan))
  expect_equal(s$drift_p, 2 / factorial(6))
  expect_equal(s$autocorrelation, lag1_autocorrelation(1:6))
  expect_match(s$flags, "drift")
})

test_that("ratios are of the same metric and the same factors", {
  plan <- read_plan(make_results(c("native", "docker"), "linpack", 2))
  tidy <- tidied(plan, "linpack")
  large <- tidy
  large$factors <- "order=12000"
  large$value <- ifelse(large$environment == "docker", c(50, 52), c(100, 104))
  s <- summarise_workload(rbind(tidy, large), plan, read_cells(plan))
  expect_equal(s$factors, c("order=1000", "order=12000", "order=1000", "order=12000"))
  expect_equal(s$ratio[[4]], 0.5)
  expect_gt(s$ratio[[3]], 0.9)
})

test_that("without native there is no ratio", {
  s <- summarised(environments = c("docker", "vm"), workloads = "pxz")$summary
  expect_true(all(is.na(s$ratio) & is.na(s$ratio_n)))
  expect_equal(s$ratio_method, c("", ""))
  expect_equal(s$flags, c("few-runs", "few-runs"))
})

test_that("one run, two runs and equal runs get what can be known of them", {
  one <- summarised(workloads = "pxz", repetitions = 1)$summary
  expect_equal(one$n, rep(1L, 3))
  expect_true(all(is.na(one[c("sd", "mean_low", "median_low", "ratio_low", "normality_p", "drift_p")])))
  expect_false(anyNA(one[c("mean", "median", "min", "max")]))
  expect_equal(one$flags, c("single-run;few-runs", rep("single-run;few-runs;one-pair", 2)))
  expect_equal(one$ratio_method, c("", "paired by set", "paired by set"))
  two <- summarised(workloads = "pxz", repetitions = 2)$summary
  expect_false(anyNA(two[c("sd", "mean_low", "mean_high")]))
  same <- summarised(workloads = "pxz", repetitions = 6, spread = 0)$summary
  expect_equal(same$sd, c(0, 0, 0))
  expect_true(all(is.na(same[c("mean_low", "mean_high", "ratio_low", "ratio_high", "autocorrelation")])))
  expect_equal(same$flags, rep("constant", 3))
  expect_false(anyNA(same$ratio[2:3]))
})

test_that("environments that share no set have no ratio", {
  drop <- function(tidy) (tidy$environment == "docker") == (tidy$repetition == 1)
  s <- summarised(c("native", "docker"), "pxz", repetitions = 3, drop = drop)$summary
  expect_equal(s$ratio[[2]], NA_real_)
  expect_equal(s$ratio_n[[2]], 0)
  expect_match(s$flags[[2]], "no-pair")
})

test_that("every flag is raised by data that deserve it, and by no other", {
  flags <- function(x, planned = length(x), state = "interval", needed = NA) {
    tests <- list(normality_p = normality(x), autocorrelation = lag1_autocorrelation(x), drift_p = drift(x))
    flags_of(x, planned, list(state = state), tests, needed)
  }
  calm <- c(10, 10.1, 9.8, 9.9, 10.2, 10.05, 9.95, 9.85, 10.15, 10.02)
  expect_equal(flags(calm), character())
  expect_equal(flags(calm, 11), "missing")
  expect_equal(flags(calm, needed = Inf), "many-runs")
  expect_equal(flags(calm, needed = 999), character())
  expect_equal(flags(calm[1:5]), "few-runs")
  expect_equal(flags(10), c("single-run", "few-runs"))
  expect_equal(flags(rep(10, 7)), "constant")
  expect_equal(flags(calm, state = "unbounded"), "ratio-unbounded")
  expect_equal(flags(calm, state = "no pair"), "no-pair")
  expect_equal(flags(calm, state = "one pair"), "one-pair")
  expect_equal(flags(c(calm[1:9], 14)), c("outlier", "non-normal"))
  expect_equal(flags(calm + 0.2 * 1:10), c("autocorrelated", "drift"))
  expect_equal(anyDuplicated(names(flag_meanings())), 0)
  expect_true(all(grepl("[.]$", flag_meanings())))
})

test_that("an empty table gives an empty summary", {
  s <- summarised(workloads = "pxz", drop = function(tidy) TRUE)$summary
  expect_equal(names(s), names(SUMMARY_COLUMNS))
  expect_equal(nrow(s), 0)
})

test_that("a tidy table that can't be trusted is an error", {
  plan <- read_plan(make_results(workloads = "pxz"))
  path <- tempfile(fileext = ".csv")
  tidy <- tidied(plan, "pxz")
  broken <- function(change) {
    write_csv(change(tidy), path)
    read_tidy(path, plan)
  }
  edit <- function(...) {
    new <- list(...)
    function(table) {
      table[1, names(new)] <- new
      table
    }
  }
  expect_equal(broken(identity), tidy, tolerance = 1e-14)
  expect_error(broken(edit(environment = "moon")), "moon is not in")
  expect_error(broken(edit(workload = "moon")), "moon is not in")
  expect_error(broken(edit(check = "failed")), "did not pass")
  expect_error(broken(edit(counts = "maybe")), "'maybe' should be yes or no")
  expect_error(broken(edit(value = NA)), "did not pass")
  expect_error(broken(edit(value = -1)), "did not pass")
  expect_error(broken(edit(metric = "speed")), "speed is no metric")
  expect_error(broken(function(table) rbind(table, table[1, ])), "a value twice")
})

test_that("the runs needed are those for the plan's target", {
  plan <- read_plan(make_results("native", "pxz", 10, spread = 0.03))
  tidy <- tidied(plan, "pxz")
  needed <- function(plan) summarise_workload(tidy, plan, read_cells(plan))[c("runs_needed", "flags")]
  plan$precision <- list(min = 2, max = 6, target = 0.05)
  expect_equal(needed(plan)$runs_needed, runs_needed(tidy$value, 0.05))
  plan$precision$target <- 1e-9
  expect_equal(needed(plan)$runs_needed, NA_real_)
  expect_match(needed(plan)$flags, "many-runs")
})
