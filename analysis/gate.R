#!/usr/bin/env Rscript
# Usage: gate.R REQUEST.json OUT.json
# Judges budgets from measured blocks or sessions, and writes {"verdicts": [one for each]}.
# REQUEST.json: {"looks", "gate", "sessions": [folders of results, the last one measured now],
# "budgets": [{"environment", "workload", "metric", "reference", "at_most", "baseline": [folders],
# "blocks"}]}; judge_budgets describes it.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
# R writes a space in the path of a script as "~+~".
analysis <- dirname(gsub("~+~", " ", script, fixed = TRUE))
source(file.path(analysis, "script.R"))
load_files("read", "statistics", "testbeds", "budgets", "render")

# Judges the budgets of a request, and writes the verdicts in the order of the budgets.
# strata/gate/command.py writes the request, and reads the verdicts.
# request: path of REQUEST.json.
# out: path of OUT.json, which is replaced.
write_verdicts <- function(request, out) {
  answer <- list(verdicts = judge_budgets(jsonlite::read_json(request)))
  replace_file(out, function(part) {
    jsonlite::write_json(answer, part, auto_unbox = TRUE, na = "null", digits = 8)
  })
}

run_script(write_verdicts, "gate.R REQUEST.json OUT.json", 2)
