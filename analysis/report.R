#!/usr/bin/env Rscript
# Usage: report.R OUT [RESULTS]: the paper of RESULTS (results), as PDF or web page by OUT's ending.
# OUT is whole or not written at all, and its bytes follow from the results.

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 1:2 || !grepl("[.](pdf|html)$", arguments[1])) {
  stop("usage: report.R OUT.pdf|OUT.html [RESULTS]", call. = FALSE)
}
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
out <- file.path(normalizePath(dirname(arguments[1])), basename(arguments[1]))
results <- normalizePath(if (length(arguments) > 1) arguments[2] else "results")
source(file.path(root, "analysis", "render.R"))
render_document(root, "report.Rmd", out, params = list(results = results, root = root))
