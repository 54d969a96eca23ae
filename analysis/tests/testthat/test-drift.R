# The sets against one another: how much of the variance lies between them, what pairing gains, and which of
# them were disturbed.

#' Values of sets with known components: what the set adds, and what is left
components <- function(sets = 12, environments = 4, between = 0.1, within = 0.02, seed = 5) {
  set.seed(seed)
  exp(outer(stats::rnorm(sets, 0, between), seq_len(environments) / 10, "+") +
        stats::rnorm(sets * environments, 0, within))
}

#' Rows of a tidy table that hold these values, all of which count
set_rows <- function(values, environments = c("native", "docker", "docker-hostnet", "docker-layered"),
                     workload = "stream", metric = "copy") {
  grid <- expand.grid(repetition = seq_len(nrow(values)), environment = environments[seq_len(ncol(values))],
                      stringsAsFactors = FALSE)
  rows <- data.frame(
    environment = grid$environment, workload = workload, repetition = grid$repetition,
    block = grid$repetition, position = order(grid$repetition), order = (grid$repetition - 1) * ncol(values) +
      match(grid$environment, environments), metric = metric, unit = "GB/s", value = as.vector(values),
    factors = "", check = "passed", counts = "yes", log = ""
  )
  rows$log <- file.path("results/raw", rows$environment, rows$workload, paste0(rows$repetition, ".log"))
  rows
}

#' A plan of native and three containers
sets_plan <- function() {
  small_plan(OTHER_LABELS)
}

test_that("the components are those of the mean squares of R's own analysis of variance", {
  values <- components(sets = 7, environments = 3)
  long <- data.frame(y = log(as.vector(values)), set = factor(row(values)), environment = factor(col(values)))
  squares <- summary(stats::aov(y ~ set + environment, long))[[1]][["Mean Sq"]]
  found <- variance_between(values)
  expect_equal(found$sd_within, sqrt(squares[[3]]))
  expect_equal(found$sd_between, sqrt((squares[[1]] - squares[[3]]) / 3))
  expect_equal(found$between, found$sd_between^2 / (found$sd_between^2 + found$sd_within^2))
  expect_equal(c(found$sets, found$environments), c(7, 3))
})

test_that("the share's interval covers the truth at its level", {
  covered <- vapply(1:600, function(seed) {
    found <- variance_between(components(10, 4, 0.05, 0.05, seed))
    found$low <= 0.5 && found$high >= 0.5
  }, NA)
  # 95 %, less four standard errors of the simulation.
  expect_gt(mean(covered), 0.95 - 4 * sqrt(0.95 * 0.05 / 600))
})

test_that("what the environments differ by is no drift, and what the sets differ by is", {
  still <- variance_between(components(between = 0))
  expect_lt(still$between, 0.3)
  expect_equal(still$low, 0)
  expect_gt(still$p_value, 0.05)
  moved <- variance_between(components())
  expect_gt(moved$low, 0.8)
  expect_lt(moved$p_value, 0.001)
  # No test of the environments: they may differ by any factor.
  values <- components()
  values[, 2] <- 100 * values[, 2]
  expect_equal(variance_between(values), moved)
})

test_that("nothing is told of one set, of one environment, or of what does not vary", {
  for (values in list(components(sets = 1), components(environments = 1), matrix(1:3, 3, 2))) {
    expect_true(is.na(variance_between(values)$between))
  }
})

test_that("a set without one of its environments is not among the sets", {
  rows <- set_rows(components(sets = 4))
  values <- values_of_sets(rows[!(rows$environment == "docker" & rows$repetition == 3), ])
  expect_equal(rownames(values), c("1", "2", "4"))
  expect_equal(values[["2", "docker"]], rows$value[rows$environment == "docker" & rows$repetition == 2])
})

test_that("pairing narrows intervals where the sets differ, and the three ratios are of their runs", {
  values <- components()
  values[3, 2] <- 3 * values[3, 2]
  rows <- set_rows(values)
  rows$counts[rows$repetition == 3] <- "no"
  flagged <- lapply(c(3, 5), function(repetition) {
    updated(small_record("docker", repetition), quiet = list(flags = list(list(what = "steal"))))
  })
  table <- sets_table(rows, c(list(small_record("native")), flagged), sets_plan())
  expect_equal(names(table), names(SET_COLUMNS))
  expect_equal(table$environment, c("docker", "docker-hostnet", "docker-layered"))
  expect_true(all(table$ratio_high - table$ratio_low < (table$unpaired_high - table$unpaired_low) / 3))
  docker <- table[1, ]
  expect_equal(unlist(docker[c("sets", "ratio_n", "all_n", "quiet_n")], use.names = FALSE), c(11, 11, 12, 10))
  expect_equal(docker$ratio, mean(values[-3, 2]) / mean(values[-3, 1]))
  expect_equal(docker$all_ratio, mean(values[, 2]) / mean(values[, 1]))
  expect_equal(docker$quiet_ratio, mean(values[-c(3, 5), 2]) / mean(values[-c(3, 5), 1]))
  apart <- independent_ratio(values[-3, 1], values[-3, 2])
  expect_equal(c(docker$unpaired_low, docker$unpaired_high), c(apart$low, apart$high))
})

test_that("emulated machines are in no set", {
  plan <- sets_plan()
  plan$environments$docker$emulated <- TRUE
  rows <- set_rows(components())
  expect_false("docker" %in% sets_table(rows, list(), plan)$environment)
  expect_equal(unique(levels_of_sets(rows, plan)$n), 3)
  flagged <- updated(small_record("docker"), quiet = list(flags = list(list(what = "steal"))))
  expect_equal(sets_table(rows, list(flagged), plan)$quiet_n, c(12, 12))
})

test_that("the level of a set is that of the machine: relative to each environment's own runs that count", {
  values <- outer(c(1, 1.1, 0.9, 5), c(1, 20, 3))
  rows <- set_rows(values * (1 + c(1, -1, 0, 2, 1, 0, -1, 1, 0, 2, 1, 0) / 1000))
  rows$counts[rows$repetition == 4] <- "no"
  sets <- levels_of_sets(rows[rev(seq_len(nrow(rows))), ], sets_plan())
  expect_equal(sets$repetition, 1:4)
  expect_equal(sets$level, c(1, 1.1, 0.9, 5), tolerance = 0.01)
  expect_equal(sets$counts, c("yes", "yes", "yes", "no"))
  expect_equal(sets$n, rep(3, 4))
  expect_equal(sets$order, 3 * 1:4 - 1)
  expect_lt(max(sets$band), 0.01)
})

test_that("the figure names every series, and draws nothing where there was no set", {
  rows <- rbind(set_rows(components()), set_rows(components(), workload = "new-load", metric = "rate"))
  tables <- split(rows, rows$workload)
  data <- drift_data(tables, sets_plan())
  expect_equal(levels(data$title), c("STREAM copy", "A new load rate"))
  expect_equal(nrow(data), 24)
  built <- ggplot2::ggplot_build(drift_figure(data, sets_plan()))
  expect_equal(nrow(built$layout$layout), 2)
  expect_equal(nrow(drift_data(list(), sets_plan())), 0)
})

#' Rows of two workloads, of which one has many series
many_series <- function() {
  many <- do.call(rbind, lapply(seq_len(MOST_DRIFT_PANELS), function(size) {
    updated(set_rows(components(seed = size)), factors = paste0("size=", size))
  }))
  rbind(many, set_rows(components(between = 0), workload = "new-load", metric = "rate"))
}

test_that("series without room for panels of their own stand together, and points say which are outside", {
  rows <- many_series()
  rows$counts[rows$workload == "new-load" & rows$repetition == 2] <- "no"
  data <- drift_data(list(rows), sets_plan())
  panel <- drift_panels(data$title, data$workload, sets_plan())
  expect_equal(levels(panel), c("STREAM", "A new load"))
  built <- ggplot2::ggplot_build(drift_figure(data, sets_plan()))
  expect_equal(nrow(built$layout$layout), 2)
  lines <- which(vapply(drift_figure(data, sets_plan())$layers,
                        function(layer) inherits(layer$geom, "GeomLine"), NA))
  expect_equal(length(unique(built$data[[lines]]$group)), MOST_DRIFT_PANELS + 1)
  marks <- drift_marks(data)
  outside <- abs(data$level) > data$band
  expect_equal(marks == "outside", outside & data$counts == "yes")
  expect_equal(sum(marks == "aside"), 1)
  # Few enough have panels of their own, as they had.
  few <- droplevels(data[data$title %in% levels(data$title)[1:MOST_DRIFT_PANELS], ])
  expect_equal(drift_panels(few$title, few$workload, sets_plan()), few$title)
})

test_that("what is read aloud of the drift counts what lies outside, by panel", {
  counts <- function(rows) {
    data <- drift_data(list(rows), sets_plan())
    path <- tempfile(fileext = ".csv")
    write_csv(data, path)
    read_aloud(picture_drift(utils::read.csv(path), list(plan = sets_plan())))
  }
  rows <- many_series()
  data <- drift_data(list(rows), sets_plan())
  out <- sum(abs(data$level[data$workload == "stream"]) > data$band[data$workload == "stream"])
  expect_match(counts(rows), paste0("in a panel for each workload.*STREAM: ", out, " of 252 levels outside; ",
                                    "A new load: [0-9]+ of 12 levels outside[.]$"))
  expect_match(counts(rows[rows$workload == "new-load", ]),
               "around a grey band[.].*A new load rate: [0-9]+ of 12 sets outside[.]$")
})

#' Evidence of sets, of which some were disturbed and some set aside
sets_evidence <- function(values = components(), aside = integer(), disturbed = aside) {
  rows <- set_rows(values)
  rows$counts[rows$repetition %in% aside] <- "no"
  records <- lapply(seq_len(nrow(rows)), function(i) {
    flags <- if (rows$repetition[[i]] %in% disturbed && rows$environment[[i]] == "docker") {
      list(list(what = "steal", when = "during", value = 0.5, threshold = 0.02))
    }
    updated(small_record(rows$environment[[i]], rows$repetition[[i]]),
            quiet = list(action = "retry", flags = flags, waited_seconds = 0,
                         thresholds = list(steal = 0.02)))
  })
  evidence <- small_evidence(plan = sets_plan(), records = records)
  evidence$cells$counts <- rows$counts
  evidence$sets <- sets_table(rows, records, sets_plan())
  evidence
}

test_that("the drift is told with what pairing gained", {
  evidence <- sets_evidence()
  table <- table_of_sets(evidence)
  row <- unlist(table$cells[1, ], use.names = FALSE)
  expect_equal(row[1:2], c("STREAM copy", "12"))
  first <- evidence$sets[1, ]
  expect_equal(row[[3]], fixed(100 * first$between, 0))
  gain <- ((evidence$sets$unpaired_high - evidence$sets$unpaired_low) /
             (evidence$sets$ratio_high - evidence$sets$ratio_low))^2
  expect_equal(row[[8]], fixed(stats::median(gain), 1))
  expect_true(all(table$sources[, -1] == "records-of-stream"))
  text <- read_aloud(drift_text(evidence))
  expect_match(text, paste0(
    "^Between the sets lies ", fixed(100 * first$between, 0), " % \\(STREAM copy\\) of the variance that ",
    "the environments leave. Friedman\u2019s test tells the sets apart in 1 of 1 metric\\."
  ))
  expect_match(text, paste0("pairing is worth ", fixed(stats::median(gain), 1), " times as many sets"),
               fixed = TRUE)
  expect_equal(drift_text(small_evidence()), "")
  expect_null(table_of_sets(small_evidence()))
})

test_that("sets that were disturbed are counted, and the ratios shown with them and without", {
  expect_null(disturbed_text(sets_evidence()))
  expect_null(table_of_sensitivity(sets_evidence()))
  values <- components()
  values[3, 2] <- 1.5 * values[3, 2]
  evidence <- sets_evidence(values, aside = 3, disturbed = c(3, 5))
  text <- read_aloud(disturbed_text(evidence))
  expect_match(text, "Of 12 sets, 2 held a flagged run. 1 was measured again and set aside", fixed = TRUE)
  expect_match(text, "1 counts like the undisturbed ones", fixed = TRUE)
  told <- evidence$sets$ratio
  change <- max(abs(evidence$sets$all_ratio / told - 1), abs(evidence$sets$quiet_ratio / told - 1))
  expect_match(text, paste0("no ratio to native moves by more than ", read_aloud(percent(change, 1)),
                            " of the one that is told (STREAM copy in Docker)"), fixed = TRUE)
  table <- table_of_sensitivity(evidence)
  expect_equal(nrow(table$cells), 3)
  expect_equal(unlist(table$cells[1, c(5, 8, 11)], use.names = FALSE), c("11", "12", "10"))
  kept <- read_aloud(disturbed_text(sets_evidence(aside = integer(), disturbed = 5)))
  expect_match(kept, "Of 12 sets, 1 held a flagged run. 1 counts like the undisturbed ones.", fixed = TRUE)
  # What is said of the flagged runs agrees.
  expect_match(read_aloud(quiet_text(evidence)), "sets that were measured again for them are set aside",
               fixed = TRUE)
})

test_that("rows of which a run was flagged say so", {
  rows <- data.frame(logs = c("results/raw/docker/stream/1.log;results/raw/docker/stream/2.log",
                              "results/raw/native/stream/1.log", ""), flags = c("drift", "", ""))
  flagged <- updated(small_record("docker", 2), quiet = list(flags = list(list(what = "steal"))))
  records <- list(small_record("docker", 1), flagged)
  expect_equal(with_disturbed(rows, records)$flags, c("drift;disturbed", "", ""))
  expect_equal(with_disturbed(rows, list())$flags, rows$flags)
  expect_true("disturbed" %in% names(flag_meanings()))
})
