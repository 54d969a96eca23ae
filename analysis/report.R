#!/usr/bin/env Rscript
# Usage: report.R OUT [RESULTS]: the paper of RESULTS (results), as PDF or web page by OUT's ending.
# OUT is whole or not written at all, and its bytes follow from the results.

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 1:2 || !grepl("[.](pdf|html)$",
                                          arguments[1])) stop("usage: report.R OUT.pdf|OUT.html [RESULTS]",
                                            call. = FALSE)
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
out <- file.path(normalizePath(dirname(arguments[1])), basename(arguments[1]))
results <- normalizePath(if (length(arguments) > 1) arguments[2] else "results")
Sys.setenv(SOURCE_DATE_EPOCH = Sys.getenv("SOURCE_DATE_EPOCH", "0"), TZ = "UTC", LC_ALL = "C.UTF-8")
invisible(Sys.setlocale("LC_ALL", "C.UTF-8"))

# In a copy, so that nothing half-made stands in paper/, and two papers can be made at once.
work <- file.path(tempdir(), "paper")
dir.create(work)
invisible(file.copy(list.files(file.path(root, "paper"), full.names = TRUE, pattern = "[^f]$"), work,
                    recursive = TRUE))
ending <- sub(".*[.]", "", out)
made <- rmarkdown::render(file.path(work, "report.Rmd"), paste0("bookdown::", ending, "_document2"),
                          output_file = paste0("made.", ending),
                          params = list(results = results, root = root), quiet = TRUE, envir = new.env())
if (ending == "html") {
  # The title is the page's only first heading.
  page <- paste(readLines(made, encoding = "UTF-8"), collapse = "\n")
  for (level in 5:0) page <- gsub(paste0("<(/?)h", level, "([ >])"), paste0("<\\1h", level + 1, "\\2"), page)
  writeLines(page, made, useBytes = TRUE)
}
part <- paste0(out, ".part")
if (!file.copy(made, part, overwrite = TRUE) || !file.rename(part, out)) stop(out, ": cannot be written",
  call. = FALSE)
