# Logs that are left out, since their parsers or a check refused them: no results, and named with the reason.

#' A results folder of which cells of a workload are left out, its tables made
left_out_results <- function(workload = "linpack", environments = c("native", "docker"), repetitions = 1:2) {
  plan <- read_plan(make_paper_results(environments = c("native", "docker"), repetitions = 2, draw = FALSE))
  cells <- expand.grid(environment = environments, repetition = repetitions, stringsAsFactors = FALSE)
  cells$workload <- workload
  path <- result_path(plan, "tidy", workload = workload)
  tidy <- read_tidy(path, plan)
  write_csv(tidy[!cell_key(tidy) %in% cell_key(cells), ], path)
  logs <- cell_path(list(results = "results"), "log", cells)
  write_csv(data.frame(log = logs, reason = "a rate, \"0\", is wrong"), result_path(plan, "left_out"))
  write_tables(plan, project)
  with_blank_figures(draw_all(plan, project))
  plan
}

test_that("a cell that is left out is no missing one, and named with its reason", {
  plan <- left_out_results(environments = "docker", repetitions = 2)
  evidence <- read_evidence(plan$path, project)
  expect_equal(evidence$failed, "a rate, \"0\", is wrong")
  expect_length(evidence$records, 7)
  expect_true(evidence$partial)
  expect_match(read_aloud(missing_sentences(evidence)), "linpack in docker, repetition 2 (a rate",
               fixed = TRUE)
  html <- html_missing(evidence, "..")
  expect_match(html, "../results/raw/docker/linpack/2.log\">docker/linpack/2</a>: left out", fixed = TRUE)
  # One that is neither there nor left out is an error.
  write_csv(empty_table(LEFT_OUT_COLUMNS), result_path(plan, "left_out"))
  expect_error(read_evidence(plan$path, project), "1 of 8 cells were not measured")
})

test_that("a set that lacks a run which is left out tells nothing of what a set takes", {
  plan <- left_out_results(environments = "docker", repetitions = 2)
  expect_equal(names(set_seconds(plan)), c("stream", "linpack"))
  expect_false(anyNA(set_seconds(plan)))
  write_csv(data.frame(log = paste0("results/raw/docker/linpack/", 1:2, ".log"), reason = "x"),
            result_path(plan, "left_out"))
  expect_equal(unname(is.na(set_seconds(plan))), c(FALSE, TRUE))
})

test_that("a record that is left out is not asked whether its environment cannot do the workload", {
  plan <- left_out_results(environments = "docker", repetitions = 2)
  plan$environments$docker$doubtful <- TRUE
  writeLines("{", file.path(plan$results, "raw", "docker", "linpack", "2.json"))
  expect_equal(nrow(read_inability(plan, read_planned(plan))), 0)
})

test_that("a workload of which all is left out has tables without rows, and figures that say so", {
  plan <- left_out_results()
  expect_equal(nrow(read_summaries(plan)$linpack), 0)
  expect_equal(nrow(utils::read.csv(result_path(plan, "figure", stem = "linpack", ending = "csv"))), 0)
  evidence <- read_evidence(plan$path, project)
  expect_equal(unique(evidence$comparisons$workload), "stream")
  expect_length(missing_sentences(evidence), 1)
})

test_that("a workload of which all sets were set aside has tables without rows, and a decision", {
  plan <- read_plan(make_paper_results(environments = c("native", "docker"), repetitions = 2, draw = FALSE))
  path <- result_path(plan, "tidy", workload = "linpack")
  write_csv(updated(read_tidy(path, plan), counts = "no"), path)
  write_tables(plan, project)
  expect_equal(nrow(read_summaries(plan)$linpack), 0)
  with_blank_figures(draw_all(plan, project))
  evidence <- read_evidence(plan$path, project)
  expect_length(evidence$records, 8)
  expect_equal(unique(evidence$comparisons$workload), "stream")
})
