#!/usr/bin/env Rscript
# Usage: report.R OUT [RESULTS]
# Makes the paper of RESULTS (default: results), as PDF or web page by the ending of OUT.  OUT is
# written completely or not at all, and its bytes depend on the results only.

arguments <- commandArgs(TRUE)
if (!length(arguments) %in% 1:2 || !grepl("[.](pdf|html)$", arguments[1])) {
  stop("usage: report.R OUT.pdf|OUT.html [RESULTS]", call. = FALSE)
}
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
out <- file.path(normalizePath(dirname(arguments[1])), basename(arguments[1]))
results <- normalizePath(if (length(arguments) > 1) arguments[2] else "results")
source(file.path(root, "analysis", "render.R"))
render_document(root, "report.Rmd", out, params = list(results = results, root = root))
