test_that("packages are those that a run saw, and without one the file is named that has all", {
  record <- small_record("native")
  record$observed$inside <- list(versions = list(gcc = "14", libc6 = "2.41"))
  evidence <- small_evidence(records = list(record))
  evidence$packages <- list(gcc = "14", libc6 = "2.41", zlib1g = "1.3")
  expect_equal(package_text(evidence), "gcc 14, libc6 2.41")
  evidence$records <- list()
  expect_equal(package_text(evidence), "as in results/image-manifest.json")
  evidence$packages <- NULL
  expect_equal(package_text(evidence), NOT_AVAILABLE)
})
