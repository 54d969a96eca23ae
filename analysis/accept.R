#!/usr/bin/env Rscript
# Says which of some logs their parsers refuse, and why; `python -m strata make` asks.
#
# Usage: Rscript analysis/accept.R --plan results/plan.json --logs FILE --out FILE
# Both files are JSON: {"logs": [path, ...]} and {"refused": {path: reason}}.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "read")

run_script("accept.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "logs", "out"))
  plan <- read_plan(options$plan)
  logs <- as.character(unlist(read_json(options$logs)$logs))
  refused <- refused_logs(plan, logs, root)
  write_json(list(refused = stats::setNames(as.list(refused), names(refused))), options$out)
})
