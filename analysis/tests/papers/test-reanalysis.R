test_that("the scripts end with one line for a user's mistake, and write all tables", {
  result <- run_r("reanalyse.R", "--raw", "/no/such/folder", "--out", tempfile())
  expect_equal(result$status, 1)
  expect_match(tail(result$output, 1), "^reanalyse.R: /no/such/folder: no such folder")
  out <- tempfile()
  dir.create(out)
  folder <- published_folder("Stream/results/linux.log" = c(stream_log(1:4, minute = 1),
                                                            stream_log(2:5, minute = 2)))
  expect_equal(run_r("reanalyse.R", "--raw", folder, "--out", out)$status, 0)
  expect_setequal(list.files(out),
                  c("tidy.csv", "series.csv", "unreadable.csv", "differences.csv", "table1.csv", "claims.csv",
                    "sources.csv", "source.json"))
  expect_equal(readLines(file.path(out, "series.csv"))[[1]],
               "workload,environment,metric,unit,factors,selection,n,mean,sd,min,max,median")
  expect_equal(run_r("reanalysis_figures.R", "--differences", file.path(out, "differences.csv"), "--out",
                     out)$status, 0)
  expect_true(all(file.exists(file.path(out, paste0("figure-", c(3, 5:13), ".pdf")))))
})
