# What both languages have to know stands in contracts/, and the analysis has a part for all of it.

#' The names of the branches of a function's switch
branches <- function(of) {
  calls <- Filter(function(part) is.call(part) && identical(part[[1]], as.name("switch")), as.list(body(of)))
  setdiff(names(calls[[1]]), "")
}

test_that("every kind of figure is drawn by a branch of its own, and an unknown one by none", {
  kinds <- names(FIGURES$kinds)
  expect_setequal(branches(draw_workload), kinds)
  schema <- jsonlite::read_json(file.path(project, "schemas", "workload.schema.json"), simplifyVector = TRUE)
  expect_setequal(schema$properties$metrics$additionalProperties$properties$statistic$enum, STATISTICS)
})

test_that("all that is judged has a name, and a way in which it is shown", {
  for (name in names(QUIET)) {
    told <- disturbances()[[name]]
    expect_match(told$head, "^[A-Z]")
    expect_match(told$show(2), "2")
  }
})

test_that("placeholders are filled in, for many values or for none", {
  expect_equal(filled("{a}/{b}.csv", a = c("x", "y"), b = 1:2), c("x/1.csv", "y/2.csv"))
  expect_equal(filled("{a}", a = character()), character())
  expect_equal(filled("plan.json"), "plan.json")
  expect_equal(filled("{a}{b}", a = c("\\1", "2"), b = "z"), c("\\1z", "2z"))
})
