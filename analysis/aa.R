#!/usr/bin/env Rscript
# The A/A test: how often two names of the same environment are called different.
#
# Usage: Rscript analysis/aa.R --out FOLDER PROJECT...
# Every PROJECT is the folder of one experiment with the environments `native` and `native-again`, whose tidy
# tables are made.  Writes measured.csv (unless there is no project), simulated.csv and stopping.csv to
# FOLDER, and prints them.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("aa.R", function(arguments) {
  options <- parse_options(arguments, required = "out", rest = "projects")
  tables <- list(
    measured = function() {
      if (length(options$rest) > 0) compare_alike(do.call(rbind, lapply(options$rest, read_alike)))
    },
    simulated = function() simulate_alike(SCENARIOS, repetitions = c(5, 10), replicates = 4000, seed = 2014),
    stopping = function() stopping_rates(RULES, MACHINES, replicates = 4000, seed = 1965)
  )
  for (name in names(tables)) {
    # Simulating takes many minutes: what is there by then is written already.
    table <- tables[[name]]()
    if (is.null(table)) next
    numeric <- vapply(table, is.numeric, NA)
    table[numeric] <- lapply(table[numeric], signif, 4)
    write_csv(table, file.path(options$out, paste0(name, ".csv")))
    cat(name, "\n")
    print(table, row.names = FALSE, digits = 3)
  }
})
