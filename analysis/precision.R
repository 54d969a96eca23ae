#!/usr/bin/env Rscript
# Decides after a round which sets are measured next: what was disturbed again, and where intervals are wide.
#
# Usage: Rscript analysis/precision.R --plan results/plan.json --block NUMBER
#          --tidy FOLDER [--rests-on TEXT] --out results/precision/NUMBER.json
# FOLDER holds the tidy tables of the first blocks alone.  TEXT is stored in the decision, as `rests_on`.

script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE))
root <- dirname(dirname(normalizePath(gsub("~+~", " ", script, fixed = TRUE))))
source(file.path(root, "analysis", "load.R"))
load_rooms(root, "statistics")

run_script("precision.R", function(arguments) {
  options <- parse_options(arguments, required = c("plan", "block", "tidy", "out"), optional = "rests-on")
  plan <- read_plan(options$plan)
  block <- as.integer(options$block)
  tables <- read_tidies(plan, options$tidy)
  tidy <- stacked(tables)
  # What was decided later, in a run that went further, plays no part.
  before <- decisions_of(plan, before = block)
  claimed <- if (isTRUE(plan$precision$claims)) {
    published <- read_claims(file.path(root, "published", "claims.json"))
    claimed_widths(published, tidy, plan, host_sockets(plan, tidy))
  }
  decision <- decide_round(tables, records_of(plan, tidy), read_cells(plan, block), plan, block, before,
                           claimed)
  decision$rests_on <- options[["rests-on"]]
  write_json(decision, options$out)
})
