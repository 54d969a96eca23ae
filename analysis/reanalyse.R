#!/usr/bin/env Rscript
# Reads the published raw results of the original paper into tables.
#
# Usage: Rscript analysis/reanalyse.R --raw DIR --out results/reanalysis
# DIR is a checkout or a git directory.  Writes tidy.csv, series.csv, unreadable.csv, differences.csv,
# table1.csv, claims.csv, sources.csv and source.json to the folder --out.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "reanalysis")

run_script("reanalyse.R", function(arguments) {
  options <- parse_options(arguments, required = c("raw", "out"))
  source <- open_source(options$raw)
  all <- collect(source, function(...) cat("reanalysis: ", ..., "\n", sep = ""))
  series <- series_of(all$tidy)
  published <- read_published_values(root)
  differences <- differences_from(published, all$tidy)
  write <- function(table, name) write_csv(table, file.path(options$out, name))
  write(all$tidy, "tidy.csv")
  write(series, "series.csv")
  write(all$unreadable, "unreadable.csv")
  write(differences, "differences.csv")
  write(differences[differences$place == "Table I", names(OWN_TABLE_COLUMNS)], "table1.csv")
  write(test_own_claims(read_own_claims(root), published, all$tidy), "claims.csv")
  write(all$sources, "sources.csv")
  write_source(source, file.path(options$out, "source.json"))
  cat("reanalysis: ", counted(nrow(all$tidy), "value"), " in ", counted(nrow(series), "series", "series"),
      "; ",
      counted(nrow(all$unreadable), "place"), " that can't be used (unreadable.csv)\n", sep = "")
})
