# How rows of several sessions are named.

suppressMessages(library(dplyr))
source(file.path(root, "analysis", "pooling.R"))

test_that("the name of a scope counts its sessions", {
  rows <- data.frame(scope = "machine", mark = "A", began = "", holds = c("session", "machine"),
                     sessions = c(1, 3), machines = 1)
  expect_equal(name_scopes(rows), c("machine A, within 1 session", "machine A (3 sessions)"))
})
