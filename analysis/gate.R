#!/usr/bin/env Rscript
# Usage: gate.R REQUEST.json OUT.json
# Judges budgets from measured blocks or sessions, and writes {"verdicts": [one for each]}.
# REQUEST.json: {"looks", "gate", "sessions": [folders of results, the last one measured now],
# "budgets": [{"environment", "workload", "metric", "reference", "at_most", "baseline": [folders],
# "blocks"}]}; judge_budgets describes it.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
root <- normalizePath(file.path(dirname(gsub("~+~", " ", script, fixed = TRUE)), ".."))
for (file in c("read", "statistics", "testbeds", "budgets", "render")) {
  source(file.path(root, "analysis", paste0(file, ".R")))
}

main <- function(request, out) {
  request <- jsonlite::read_json(request)
  answer <- list(verdicts = judge_budgets(request))
  replace_file(out, function(part) {
    jsonlite::write_json(answer, part, auto_unbox = TRUE, na = "null", digits = 8)
  })
}

arguments <- commandArgs(TRUE)
if (length(arguments) != 2) stop("usage: gate.R REQUEST.json OUT.json", call. = FALSE)
tryCatch(main(arguments[[1]], arguments[[2]]), error = function(error) {
  message(conditionMessage(error))
  quit(status = 1)
})
