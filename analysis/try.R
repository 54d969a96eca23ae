#!/usr/bin/env Rscript
# Usage: try.R RESULTS OUT.html
# Makes the one-page report of an experiment of `strata try` from its tables.

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: try.R RESULTS OUT.html", call. = FALSE)
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
out <- file.path(normalizePath(dirname(arguments[[2]])), basename(arguments[[2]]))
results <- normalizePath(arguments[[1]])
source(file.path(root, "analysis", "render.R"))
render_document(root, "try.Rmd", out, params = list(results = results, root = root))
