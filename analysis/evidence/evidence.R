# What the paper rests on: plan, image, records, summaries and the published values, read and checked against
# one another.

#' Reads all that the paper is made of
#'
#' @param path path of plan.json; the other results lie beside it
#' @param root folder of the project
#' @param partial whether cells may be missing; otherwise they are an error
#' @return the evidence, a list: `plan`, as from `read_plan`; `image` and `packages` (name to version), as of
#'   image.json and image-manifest.json; `environments`, as from `environment_table`; `cells`, the plan's
#'   cells with the logical columns `measured` and `left_out`; `records`, a list with an element for each
#'   measured cell, in the plan's order; `comparisons`, as from `compare`; `published`, as from
#'   `read_published`; `originals`, as from `read_originals`; `own`, as from `read_own_verdicts`; `artifact`,
#'   as from `read_artifact`; `failed`, as from `read_failures`; `unable`, as from `read_inability`; `claims`
#'   and `transferred`, as from `read_tested_claims`; `publications` and `known` (the environments), of the
#'   claims; `footprint`, as from `read_footprint`; `sets`, `nodes` and `choices`, with the columns of
#'   SET_COLUMNS, NODE_COLUMNS and CHOICE_COLUMNS; `precision`, as from `read_precision`; `narrow`, as from
#'   `narrow_sets`;
#'   `partial`, TRUE where a cell is missing
#' @section Errors: a missing or broken file; records and summaries that do not belong together
read_evidence <- function(path, root, partial = FALSE) {
  plan <- read_plan(path)
  cells <- read_cells(plan)
  cells <- cells[order(cells$position), ]
  cells$measured <- cell_key(cells) %in% cell_key(stacked(read_tidies(plan)))
  left_out <- read_left_out(plan)
  cells$left_out <- cell_key(cells) %in% cell_key(left_out)
  missing <- cells[!cells$measured & !cells$left_out, ]
  if (!partial && nrow(missing) > 0) {
    stop(nrow(missing), " of ", nrow(cells), " cells were not measured, the first of them ",
         paste(missing[1, c("environment", "workload", "repetition")], collapse = "/"),
         "; measure them, or build the paper from what is there (partial: true in config.yaml)",
         call. = FALSE)
  }
  evidence <- list(
    plan = plan, cells = cells, records = read_records(plan, cells[cells$measured, ]),
    image = read_described(result_path(plan, "image")),
    packages = read_described(result_path(plan, "packages"))$packages,
    environments = environment_table(plan, cells),
    published = read_published(file.path(root, "published", "ibm-table1.json")),
    originals = read_originals(root),
    own = read_own_verdicts(root), artifact = read_artifact(root),
    failed = read_failures(plan, cells[!cells$measured, ], left_out),
    unable = read_inability(plan, read_planned(plan)),
    precision = read_precision(plan, last_block(cells)),
    # Of a run that ended early, what was decided last is not there yet.
    narrow = narrow_sets(decisions_of(plan, before = last_block(cells))),
    partial = !all(cells$measured)
  )
  summary <- stacked(read_summaries(plan), SUMMARY_COLUMNS)
  check_counted(summary, cells, plan)
  evidence$comparisons <- compare(summary, plan, set_seconds(plan))
  evidence$claims <- read_tested_claims(result_path(plan, "claims"))
  evidence$transferred <- read_tested_claims(result_path(plan, "claims"), transferred = TRUE)
  claims <- read_claims(file.path(root, "published", "claims.json"))
  evidence$publications <- claims$publications
  evidence$known <- claims$environments
  evidence$footprint <- read_footprint(result_path(plan, "footprint"), plan, evidence$records)
  evidence$comparisons <- with_disturbed(evidence$comparisons, evidence$records)
  evidence$sets <- read_known(result_path(plan, "sets"), SET_COLUMNS, plan)
  evidence$nodes <- if (is_spread(plan)) {
    read_csv(result_path(plan, "nodes"), NODE_COLUMNS)
  } else {
    empty_table(NODE_COLUMNS)
  }
  evidence$choices <- read_known(result_path(plan, "choices"), CHOICE_COLUMNS, plan)
  evidence
}

#' A JSON file that says of itself that its format is 1
#'
#' @param path the file
#' @return nested lists; an empty list where there is no such file
#' @section Errors: not JSON
read_described <- function(path) {
  if (file.exists(path)) read_json(path) else list()
}

#' The records of cells that were measured
#'
#' @param plan as from `read_plan`
#' @param cells data frame with environment, workload and repetition
#' @return list with an element for each cell: the record with `path`
#' @section Errors: a record is missing (whether it is good was judged before)
read_records <- function(plan, cells) {
  lapply(cell_path(plan, "record", cells), function(path) {
    record <- read_json(path)
    record$path <- path
    record
  })
}

#' Checks that summaries are of no more runs than there are records
#'
#' @param summary rows of all workloads
#' @param cells with the column `measured`
#' @param plan as from `read_plan`
#' @section Errors: a summary of other runs
check_counted <- function(summary, cells, plan) {
  key <- function(rows) paste(rows$environment, rows$workload)
  runs <- c(table(key(cells[cells$measured, ])))
  more <- summary[!(summary$n <= runs[key(summary)]) %in% TRUE, ]
  if (nrow(more) > 0) {
    stop_about(result_path(plan, "summary", workload = more$workload[[1]]), "it counts more runs of ",
               more$environment[[1]], " than there are records; it is older than they are")
  }
}

#' The comparisons with a flag on rows of which a run was disturbed
#'
#' @param rows of the comparisons
#' @param records list of records
#' @return the rows, with "disturbed" among the `flags`
with_disturbed <- function(rows, records) {
  flagged <- Filter(function(record) length(field(record, "quiet", "flags")) > 0, records)
  runs <- vapply(flagged, function(record) {
    file.path(record$environment, record$workload, record$repetition)
  }, "")
  held <- vapply(strsplit(rows$logs, ";", fixed = TRUE), function(logs) {
    any(file.path(basename(dirname(dirname(logs))), basename(dirname(logs)),
                  sub("[.]log$", "", basename(logs))) %in% runs)
  }, NA)
  rows$flags[held] <- paste0(rows$flags[held], ifelse(rows$flags[held] == "", "", ";"), "disturbed",
                             recycle0 = TRUE)
  rows
}

#' The last block of which anything was measured
#'
#' @param cells as of `read_evidence`
#' @return its number; 0 where nothing was
last_block <- function(cells) {
  max(c(cells$block[cells$measured], 0))
}

#' What was known of the precision after the last block
#'
#' @param plan as from `read_plan`
#' @param block the last block that was measured
#' @return nested lists, as written by `enough_runs`; NULL where no target was set or nothing was written
read_precision <- function(plan, block) {
  path <- result_path(plan, "precision", block = block)
  if (!is.null(plan$precision) && file.exists(path)) read_json(path)
}

#' Why cells were left out, or failed
#'
#' @param plan as from `read_plan`
#' @param cells that were not measured
#' @param left_out as from `read_left_out`
#' @return character vector with an element for each cell: the reason, "" where the cell was not tried
read_failures <- function(plan, cells, left_out = read_left_out(plan)) {
  failed <- vapply(failed_records(plan, cells), function(record) c(record$error, "")[[1]], "",
                   USE.NAMES = FALSE)
  reason <- left_out$reason[match(cell_key(cells), cell_key(left_out))]
  vapply(paste0(ifelse(is.na(reason), failed, reason), "\n", recycle0 = TRUE), first_line, "",
         USE.NAMES = FALSE)
}

#' The environments of a plan
#'
#' @param plan as from `read_plan`
#' @param cells with the column `measured`
#' @return data frame, a row for each: name, label, available, reason ("" where none is given), planned and
#'   measured (numbers of cells), and kind, as from `kind_of`
environment_table <- function(plan, cells) {
  names <- names(plan$environments)
  entries <- unname(plan$environments)
  count <- function(x) as.integer(table(factor(x, names)))
  data.frame(
    name = names, label = environment_labels(plan, names),
    available = vapply(entries, function(entry) isTRUE(entry$available), NA),
    reason = vapply(entries, function(entry) if (is.character(entry$reason)) entry$reason else "", ""),
    planned = count(cells$environment), measured = count(cells$environment[cells$measured]),
    kind = vapply(entries, function(entry) kind_of(entry), "")
  )
}

#' The kind of isolation that the layers of an environment give
#'
#' @param entry of the plan's environments
#' @return "bare Linux", "containers", "sandboxes", "virtual machines", "containers in virtual machines" or
#'   "other environments"
kind_of <- function(entry) {
  kinds <- unique(layer_kinds(entry))
  isolating <- sort(setdiff(kinds, "bare"))
  known <- c("bare Linux", "containers", "sandboxes", "virtual machines", "containers in virtual machines")
  at <- match(paste(isolating, collapse = "+"), c("", "container", "sandbox", "machine", "container+machine"))
  if (length(kinds) == 0 || is.na(at)) "other environments" else known[[at]]
}
