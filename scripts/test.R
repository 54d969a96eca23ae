# Runs the expectations of the analysis, or those of the folder or the files that are named: as many at once
# as there are processors.
# Rooms and helpers are loaded once; each file runs in a copy of that process.  A file says only whether it is
# good, or all that it found.

suppressPackageStartupMessages({
  library(testthat)
  library(ggplot2)
})
folder <- "analysis/tests/testthat"
files <- commandArgs(TRUE)
if (length(files) == 0 || dir.exists(files[[1]])) {
  files <- list.files(c(files, folder)[[1]], "^test-.*[.]R$", full.names = TRUE)
  # What takes longest first, so that no processor waits long for the last one; size tells it nearly.
  files <- files[order(file.size(files), decreasing = TRUE)]
}
helped <- test_env()
invisible(source_test_helpers(folder, helped))

#' Runs a file and prints how that went
#'
#' @return whether it is good
good <- function(file) {
  begun <- proc.time()[["elapsed"]]
  said <- tempfile("said")
  on.exit(unlink(said))
  output <- base::file(said, "w")
  sink(output)
  sink(output, type = "message")
  found <- tryCatch(
    as.data.frame(test_file(file, reporter = "summary", env = new.env(parent = helped),
                            load_helpers = FALSE, stop_on_failure = FALSE)),
    error = function(e) cat(conditionMessage(e), "\n")
  )
  sink(type = "message")
  sink()
  close(output)
  seconds <- proc.time()[["elapsed"]] - begun
  good <- !is.null(found) && nrow(found) > 0 && !any(found$failed > 0 | found$error)
  if (good) {
    skipped <- sum(found$skipped)
    cat(sprintf("%s: good, %.0f s%s\n", basename(file), seconds,
                if (skipped > 0) sprintf(", %d skipped", skipped) else ""))
  } else {
    cat(sprintf("%s: failed\n%s\n", file, paste(readLines(said), collapse = "\n")), file = stderr())
  }
  good
}

results <- suppressWarnings(
  parallel::mclapply(files, good, mc.cores = parallel::detectCores(), mc.preschedule = FALSE)
)
failed <- files[!vapply(results, isTRUE, logical(1))]
if (length(failed) > 0) {
  stop("failed: ", paste(failed, collapse = ", "), call. = FALSE)
}
