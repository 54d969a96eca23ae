#!/usr/bin/env Rscript
# Usage: reanalyse.R FOLDER OUT.pdf
# Makes differences.csv and claims.csv in FOLDER from the tables of `python3 -m strata reanalyse` in
# it, and the document OUT.pdf.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
files <- c("read", "statistics", "claims", "reanalysis", "format", "markdown_tables", "figures",
           "render")
for (file in files) source(file.path(root, "analysis", paste0(file, ".R")))

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: reanalyse.R FOLDER OUT.pdf", call. = FALSE)
folder <- arguments[[1]]
results <- read_reanalysis(folder, file.path(root, "published"))
for (name in c("differences", "claims")) {
  replace_file(file.path(folder, paste0(name, ".csv")), function(part) {
    utils::write.csv(results[[name]], part, row.names = FALSE, na = "")
  })
}
render_document(root, "reanalysis.Rmd", arguments[[2]], "The Raw Results of 2014, Read Again",
                list(results = results))
