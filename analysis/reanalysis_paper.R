#!/usr/bin/env Rscript
# Writes the paper of the reanalysis.
#
# Usage: Rscript analysis/reanalysis_paper.R --tables results/reanalysis --out paper/reanalysis.pdf
# The folder holds the tables and the figures.  The PDF is written whole or not at all.

if (!l10n_info()[["UTF-8"]]) {
  invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
}
file <- gsub("~+~", " ", sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)),
             fixed = TRUE)
root <- dirname(dirname(normalizePath(file)))
for (part in c("cli", "files", "statistics", "wording", "links", "tables", "latex", "writing", "document",
               "theme", "reanalysis/source", "reanalysis/tables", "reanalysis/figures", "reanalysis/paper")) {
  source(file.path(root, "analysis", paste0(part, ".R")), encoding = "UTF-8")
}

run_script("reanalysis_paper.R", function(arguments) {
  options <- parse_options(arguments, required = c("tables", "out"))
  write_reanalysis(read_reanalysis(options$tables), root, options$out)
  say(options$out, " is written")
})
