#!/usr/bin/env Rscript
# Usage: reproduce.R REQUEST.json OUT
# Judges whether results repeat those of an original, and writes index.html, reproduction.csv,
# claims.csv, card.md and outcome.json into OUT.
# REQUEST.json: {"name", "sha256", "command", "original", "replication" (folders of results; the
# second may be empty), "logs", "effect", "omitted": [{"environment", "workload", "reason"}],
# "differences": [{"item", "there", "here"}]}.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
files <- c("read", "statistics", "claims", "testbeds", "replication", "format", "markdown_tables",
           "figures", "render")
for (file in files) suppressMessages(source(file.path(root, "analysis", paste0(file, ".R"))))

# A data frame of a list of records; with the columns alone if it is empty.
read_records_table <- function(records, columns) {
  stack_rows(lapply(records, function(record) data.frame(record[columns]))) %or%
    as.data.frame(sapply(columns, function(column) character(), simplify = FALSE))
}

main <- function(path, out) {
  request <- jsonlite::read_json(path)
  open_side <- function(folder, name) {
    if (folder != "") read_side(list(name = name, source = "", sha256 = "", results = folder))
  }
  original <- open_side(request$original, "there")
  replication <- open_side(request$replication, "here")
  if (!is.null(replication)) require_one_scale(list(original, replication), c("there", "here"))
  omitted <- read_records_table(request$omitted, c("environment", "workload", "reason"))
  differences <- read_records_table(request$differences, c("item", "there", "here"))
  rows <- compare_replication(original, replication, omitted, request$effect)
  published <- read_published(request$original, root)
  claims <- compare_claims(published, original$sessions[[1]], replication$sessions[[1]])
  outcome <- summarise_replication(rows, claims)
  facts <- describe_machine_and_date(replication)
  card <- format_card(rows, claims, outcome, request, facts)
  write_file <- function(name, write) replace_file(file.path(out, name), write)
  write_rows <- function(name, rows) {
    write_file(name, function(part) {
      utils::write.csv(rows %or% data.frame(), part, row.names = FALSE, na = "")
    })
  }
  write_rows("reproduction.csv", rows)
  write_rows("claims.csv", claims)
  write_file("card.md", function(part) writeLines(card, part))
  values <- list(request = request, rows = rows, claims = claims, outcome = outcome, card = card,
                 differences = differences, facts = facts)
  page <- file.path(normalizePath(out), "index.html")
  render_document(root, "reproduce.Rmd", page, "A reproduction", values)
  if (!is.null(rows)) {
    rows$text <- describe_replications(rows)
    rows$shown_there <- format_share_interval(rows$there, rows$there_low, rows$there_high)
    rows$shown_here <- format_share_interval(rows$here, rows$here_low, rows$here_high)
  }
  write_file("outcome.json", function(part) {
    jsonlite::write_json(c(outcome, list(rows = rows %or% list(), claims = claims %or% list())),
                         part, auto_unbox = TRUE, na = "null", digits = 8)
  })
}

# A sentence about the machine and the days of a side; "" of none.
describe_machine_and_date <- function(side) {
  if (is.null(side)) return("Nothing was measured here.")
  list_facts <- function(get) {
    facts <- unlist(lapply(side$records, get))
    join_words(as.character(facts %or% "not recorded"))
  }
  get_host <- function(key) function(record) record$observed$host$static[[key]]
  paste0("Measured here on ", list_facts(function(record) substr(record$started, 1, 10)), ": ",
         list_facts(get_host("cpu_model")), ", Linux ", list_facts(get_host("kernel")), ".")
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: reproduce.R REQUEST.json OUT", call. = FALSE)
tryCatch(main(arguments[[1]], arguments[[2]]), error = function(error) {
  message(conditionMessage(error))
  quit(status = 1)
})
