test_that("the same raw logs give the same bytes, in any locale and time zone", {
  plan <- make_results(workloads = c("stream", "pxz"), repetitions = 6, spread = 0.05)
  tables <- function(name, environment) {
    folder <- tempfile(name)
    script <- function(script, ...) {
      words <- shQuote(c(file.path(project, "analysis", script), "--plan", plan, ...))
      expect_equal(system2(file.path(R.home("bin"), "Rscript"), words, env = environment), 0)
    }
    path <- function(kind, workload) file.path(folder, kind, paste0(workload, ".csv"))
    for (workload in c("stream", "pxz")) {
      script("tidy.R", "--workload", workload, "--out", path("tidy", workload))
      script("summary.R", "--tidy", path("tidy", workload), "--out", path("summary", workload))
    }
    script("comparisons.R", "--out", file.path(folder, "comparisons.csv"),
           path("summary", c("stream", "pxz")))
    script("claims.R", "--out", file.path(folder, "claims.csv"), path("tidy", c("stream", "pxz")))
    script("figure.R", "--summary", path("summary", "pxz"), "--tidy", path("tidy", "pxz"),
           "--out", file.path(folder, "pxz"))
    script("figure.R", "--ratios", "--out", file.path(folder, "ratios"), path("summary", c("stream", "pxz")))
    script("figure.R", "--order", "--out", file.path(folder, "order"), path("tidy", c("stream", "pxz")))
    tools::md5sum(list.files(folder, "[.]csv$", recursive = TRUE, full.names = TRUE))
  }
  first <- tables("one", "LC_ALL=C.UTF-8")
  again <- tables("two", c("LC_ALL=C", "TZ=Asia/Tokyo"))
  expect_length(first, 9)
  expect_equal(unname(again), unname(first))
})
