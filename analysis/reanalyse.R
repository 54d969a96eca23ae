#!/usr/bin/env Rscript
# Usage: reanalyse.R FOLDER OUT.pdf: from the tables of `python3 -m strata reanalyse` in FOLDER to
# differences.csv and claims.csv beside them, and the document.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
root <- normalizePath(file.path(here, ".."))
files <- c("read", "statistics", "claims", "reanalysis", "words", "show", "figures", "render")
for (file in files) source(file.path(root, "analysis", paste0(file, ".R")))

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: reanalyse.R FOLDER OUT.pdf", call. = FALSE)
results <- read_reanalysis(arguments[[1]], file.path(root, "published"))
for (name in c("differences", "claims")) {
  put_file(file.path(arguments[[1]], paste0(name, ".csv")), function(part) {
    utils::write.csv(results[[name]], part, row.names = FALSE, na = "")
  })
}
render_document(root, "reanalysis.Rmd", arguments[[2]], "The Raw Results of 2014, Read Again",
                list(results = results))
