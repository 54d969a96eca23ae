#!/usr/bin/env Rscript
# Usage: pool.R SOURCES.json OUT [ENVIRONMENT...]
# Lists the sessions of several folders of results side by side, nests them in machines, and writes
# pool.csv, verdicts.csv, sessions.csv, table.md and index.html into OUT.
# SOURCES.json: [{"name", "results"}, ...]
# ENVIRONMENT: those that have a column in table.md; by default all.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
files <- c("read", "statistics", "pooling", "format", "markdown_tables", "figures", "render")
for (file in files) suppressMessages(source(file.path(root, "analysis", paste0(file, ".R"))))

main <- function(listing, out, ...) {
  sources <- read_sources(jsonlite::read_json(listing))
  pooled <- pool_sessions(sources$pairs, sources$sessions)
  write_rows <- function(rows, name) {
    replace_file(file.path(out, name), function(part) {
      utils::write.csv(rows, part, row.names = FALSE, na = "")
    })
  }
  write_rows(pooled$comparisons, "pool.csv")
  write_rows(pooled$verdicts, "verdicts.csv")
  write_rows(sources$sessions, "sessions.csv")
  environments <- c(...) %or% unique(pooled$verdicts$environment)
  replace_file(file.path(out, "table.md"), function(part) {
    writeLines(format_scope_table(pooled, sources$sessions, environments), part)
  })
  page <- file.path(normalizePath(out), "index.html")
  render_document(root, "pool.Rmd", page, "Sessions, pooled", c(sources, pooled))
}

arguments <- commandArgs(TRUE)
if (length(arguments) < 2) stop("usage: pool.R SOURCES.json OUT [ENVIRONMENT...]", call. = FALSE)
tryCatch(do.call(main, as.list(arguments)), error = function(error) {
  message(conditionMessage(error))
  quit(status = 1)
})
