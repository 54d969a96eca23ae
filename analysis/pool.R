#!/usr/bin/env Rscript
# Usage: pool.R SOURCES.json OUT [ENVIRONMENT...]
# Lists the sessions of several folders of results side by side, nests them in machines, and writes
# pool.csv, verdicts.csv, sessions.csv, table.md and index.html into OUT.
# SOURCES.json: [{"name", "results"}, ...], which strata/archive/pool.py writes.
# ENVIRONMENT: the columns of table.md; by default all.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "pooling", "format", "markdown_tables", "figures", "render")

# Pools sessions, and writes pool.csv, verdicts.csv, sessions.csv, table.md and index.html.
# listing: path of SOURCES.json.
# out: path of the folder to write into, which exists.
# ...: the names of the environments that are columns of table.md; without any, all are.
write_pool <- function(listing, out, ...) {
  sources <- read_sources(jsonlite::read_json(listing))
  pooled <- pool_sessions(sources$pairs, sources$sessions)
  replace_table(file.path(out, "pool.csv"), pooled$comparisons)
  replace_table(file.path(out, "verdicts.csv"), pooled$verdicts)
  replace_table(file.path(out, "sessions.csv"), sources$sessions)
  environments <- c(...) %or% unique(pooled$verdicts$environment)
  replace_file(file.path(out, "table.md"), function(part) {
    writeLines(format_scope_table(pooled, sources$sessions, environments), part)
  })
  render_document(ROOT, "pool.Rmd", file.path(out, "index.html"), values = c(sources, pooled))
}

run_script(write_pool, "pool.R SOURCES.json OUT [ENVIRONMENT...]", 2, Inf)
