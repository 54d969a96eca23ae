test_that("the same tidy tables give the same bytes, in any locale and time zone", {
  plan <- make_results(workloads = c("stream", "pxz"), repetitions = 6, spread = 0.05)
  made <- function(environment) {
    for (script in c("tables.R", "figures.R")) {
      words <- shQuote(c(file.path(project, "analysis", script), "--plan", plan))
      expect_equal(system2(file.path(R.home("bin"), "Rscript"), words, env = environment), 0)
    }
    # A PDF holds its time zone.
    files <- list.files(dirname(plan), "[.](csv|png|svg)$", recursive = TRUE, full.names = TRUE)
    expect_length(files, 4 + 2 + 5 + 8 * 3)
    tools::md5sum(files)
  }
  first <- made("LC_ALL=C.UTF-8")
  unlink(file.path(dirname(plan), c("summary", "figures")), recursive = TRUE)
  expect_equal(made(c("LC_ALL=C", "TZ=Asia/Tokyo")), first)
})
