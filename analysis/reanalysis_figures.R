#!/usr/bin/env Rscript
# Draws the figures of the original paper from the published raw results, beside the values as printed.
#
# Usage: Rscript analysis/reanalysis_figures.R --differences results/reanalysis/differences.csv --out FOLDER
# Writes figure-3, figure-5 ... figure-13, each as PDF and PNG and what it draws as CSV.

if (!l10n_info()[["UTF-8"]]) {
  invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
}
file <- gsub("~+~", " ", sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)),
             fixed = TRUE)
root <- dirname(dirname(normalizePath(file)))
for (part in c("cli", "files", "theme", "figures", "reanalysis/tables", "reanalysis/figures")) {
  source(file.path(root, "analysis", paste0(part, ".R")), encoding = "UTF-8")
}

run_script("reanalysis_figures.R", function(arguments) {
  options <- parse_options(arguments, required = c("differences", "out"))
  draw_original_figures(read_differences(options$differences), options$out)
})
