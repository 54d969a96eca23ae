test_that("records and summaries that do not belong together are errors that name the file", {
  plan <- make_paper_results(repetitions = 2, draw = FALSE)
  results <- dirname(plan)
  fails <- function(pattern) {
    expect_error(read_evidence(plan, project), pattern)
  }
  expect_silent(read_evidence(plan, project))
  record <- file.path(results, "raw", "docker", "stream", "1.json")
  kept <- readLines(record)
  writeLines("{", record)
  fails("docker/stream/1.json: not valid JSON")
  unlink(record)
  fails("docker/stream/1.json: no such file")
  writeLines(kept, record)
  summary <- file.path(results, "summary", "stream.csv")
  kept <- readLines(summary)
  writeLines(sub("GB/s,higher,,2,", "GB/s,higher,,9,", kept), summary)
  fails("stream.csv: it counts more runs")
  writeLines(sub(",copy,", ",cpy,", kept), summary)
  fails("stream.csv: cpy is no metric")
  unlink(summary)
  fails("stream.csv: no such file")
})

test_that("sources are named for the workloads of the plan alone, and are in the references", {
  expect_equal(as.character(show_sources(small_evidence())), "STREAM follows McCalpin [@mccalpin1995].")
  plan <- small_plan()
  plan$workloads$stream <- NULL
  expect_equal(as.character(show_sources(small_evidence(plan = plan))), "")
  references <- readLines(file.path(project, "paper", "references.bib"))
  text <- c(WORKLOAD_SOURCES, MACHINE_SOURCE, BOUND_SOURCE,
            readLines(file.path(project, "paper", "report.Rmd")))
  cited <- unique(unlist(regmatches(text, gregexpr("(?<=@)[a-z]+[0-9]*[a-z]*", text, perl = TRUE))))
  known <- sub("^@[a-z]+\\{(.*),$", "\\1", grep("^@", references, value = TRUE))
  expect_setequal(cited, known)
})
