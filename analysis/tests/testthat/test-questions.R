# The questions that workloads answer: their order, and those that workloads do not name.

test_that("questions stand in their order, and a workload without one is a question by itself", {
  workload <- function(title, question = NULL) list(title = title, question = question)
  plan <- list(workloads = list(own = workload("My own"), disk = workload("fio", "storage"),
                                a = workload("A", "processor"), odd = workload("Odd", "no such"),
                                b = workload("B", "processor")))
  found <- questions_of(plan)
  expect_equal(found$workload, c("a", "b", "disk", "own", "odd"))
  expect_equal(found$question, c("processor", "processor", "storage", "own", "odd"))
  expect_equal(found$title, c("Processor", "Processor", "Storage", "My own", "Odd"))
  expect_equal(found$asks == "", c(FALSE, FALSE, FALSE, TRUE, TRUE))
  expect_equal(nrow(questions_of(list(workloads = list()))), 0)
})
