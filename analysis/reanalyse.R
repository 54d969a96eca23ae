#!/usr/bin/env Rscript
# Usage: reanalyse.R FOLDER OUT.pdf
# Makes differences.csv and claims.csv in FOLDER from the tables of `python3 -m strata reanalyse` in
# it, and the document OUT.pdf.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "claims", "reanalysis", "format", "markdown_tables", "figures",
           "render")

# Writes the tables of the reanalysis, and renders its document.
# folder: path of the folder with the tables that `python3 -m strata reanalyse` wrote, which gets
# the new ones.
# out: path of the document, .pdf or .html.
write_reanalysis <- function(folder, out) {
  results <- read_reanalysis(folder, file.path(ROOT, "published"))
  for (name in c("differences", "claims")) {
    replace_table(file.path(folder, paste0(name, ".csv")), results[[name]])
  }
  render_document(ROOT, "reanalysis.Rmd", out, "The Raw Results of 2014, Read Again",
                  list(results = results))
}

run_script(write_reanalysis, "reanalyse.R FOLDER OUT.pdf", 2)
