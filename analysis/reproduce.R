#!/usr/bin/env Rscript
# Usage: reproduce.R REQUEST.json OUT
# Judges whether results repeat those of an original, and writes index.html, reproduction.csv,
# claims.csv, card.md and outcome.json into OUT.
# REQUEST.json: {"name", "sha256", "command", "original", "replication" (folders of results; the
# second may be empty), "logs", "effect", "omitted": [{"environment", "workload", "reason"}],
# "differences": [{"item", "there", "here"}]}, which strata/reproduce/command.py writes.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "claims", "testbeds", "replication", "format", "markdown_tables",
           "figures", "render")

# Makes a data frame with a row for each object.
# objects: list of lists of strings, from JSON.
# columns: the keys that become columns; an empty list of objects gives these columns without rows.
tabulate_objects <- function(objects, columns) {
  stack_rows(lapply(objects, function(object) data.frame(object[columns]))) %or%
    as.data.frame(sapply(columns, function(column) character(), simplify = FALSE))
}

# Writes all files of a reproduction, outcome.json last.
# path: path of REQUEST.json.
# out: path of the folder, which exists.
write_reproduction <- function(path, out) {
  request <- jsonlite::read_json(path)
  # Reads one side; NULL if its folder is "".
  # folder: path of results.
  # name: the side's name, for messages.
  read_side_if_any <- function(folder, name) {
    if (folder != "") read_side(list(name = name, source = "", sha256 = "", results = folder))
  }
  original <- read_side_if_any(request$original, "there")
  replication <- read_side_if_any(request$replication, "here")
  if (!is.null(replication)) require_one_scale(list(original, replication), c("there", "here"))
  omitted <- tabulate_objects(request$omitted, c("environment", "workload", "reason"))
  differences <- tabulate_objects(request$differences, c("item", "there", "here"))
  rows <- compare_replication(original, replication, omitted, request$effect)
  published <- read_published(request$original, ROOT)
  claims <- compare_claims(published, original$sessions[[1]], replication, omitted)
  outcome <- summarise_replication(rows, claims)
  facts <- describe_machine_and_date(replication)
  card <- format_card(rows, claims, outcome, request, facts)
  replace_table(file.path(out, "reproduction.csv"), rows %or% data.frame())
  replace_table(file.path(out, "claims.csv"), claims %or% data.frame())
  replace_file(file.path(out, "card.md"), function(part) writeLines(card, part))
  values <- list(request = request, rows = rows, claims = claims, outcome = outcome, card = card,
                 differences = differences, facts = facts)
  render_document(ROOT, "reproduce.Rmd", file.path(out, "index.html"), values = values)
  if (!is.null(rows)) {
    rows$text <- describe_replications(rows)
    rows$shown_there <- format_share_interval(rows$there, rows$there_low, rows$there_high)
    rows$shown_here <- format_share_interval(rows$here, rows$here_low, rows$here_high)
  }
  # outcome.json is written last, when all other files are complete; strata/reproduce/command.py
  # prints its rows and claims.
  replace_file(file.path(out, "outcome.json"), function(part) {
    jsonlite::write_json(c(outcome, list(rows = rows %or% list(), claims = claims %or% list())),
                         part, auto_unbox = TRUE, na = "null", digits = 8)
  })
}

# Describes in a sentence the machine and the days of the measurement, for example "Measured here on
# 2026-11-27: Xeon, Linux 6.8."
# side: list of read_side; NULL if nothing was measured.
describe_machine_and_date <- function(side) {
  if (is.null(side)) return("Nothing was measured here.")
  join_facts <- function(get_fact) join_distinct_facts(side$records, get_fact)
  days <- join_facts(function(record) substr(record$started, 1, 10))
  paste0("Measured here on ", days, ": ", join_facts(make_host_getter("cpu_model")), ", Linux ",
         join_facts(make_host_getter("kernel")), ".")
}

run_script(write_reproduction, "reproduce.R REQUEST.json OUT", 2)
