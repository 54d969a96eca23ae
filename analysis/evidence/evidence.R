# What the paper rests on: plan, image, records, summaries and the published values, read and checked against
# one another.

#' Reads all that the paper is made of
#'
#' @param path path of plan.json; the other results lie beside it
#' @param root folder of the project
#' @param partial whether cells may be missing; otherwise they are an error
#' @return the evidence, a list: `plan`, as from `read_plan`; `image` and `packages` (name to version), as of
#'   image.json and image-manifest.json; `environments`, as from `environment_table`; `cells`, the plan's
#'   cells with a logical column `measured`; `records`, a list with an element for each measured cell, in the
#'   plan's order; `comparisons`, as from `compare`; `published`, as from `read_published`; `originals`, as
#'   from `read_originals`; `own`, as from `read_own_verdicts`; `artifact`, as from `read_artifact`; `failed`,
#'   as from
#'   `read_failures`; `unable`, as from `read_inability`; `claims` and `transferred`, as from
#'   `read_tested_claims`; `publications` and
#'   `known` (the environments), of the claims; `footprint`, as from `read_footprint`; `sets`,
#'   `nodes` and `choices`, with the columns of SET_COLUMNS, NODE_COLUMNS and CHOICE_COLUMNS;
#'   `precision`, as from `read_precision`; `narrow`, as from `narrow_sets`;
#'   `partial`, TRUE where a cell is missing
#' @section Errors: a missing or broken file; records and summaries that do not belong together
read_evidence <- function(path, root, partial = FALSE) {
  plan <- read_plan(path)
  cells <- read_cells(plan)
  cells <- cells[order(cells$position), ]
  records <- read_records(plan, cells)
  cells$measured <- !vapply(records, is.null, NA)
  # A cell that was refused was told of when it was; the paper is of the others, and names it.
  missing <- cells[!cells$measured & !was_refused(plan, cells), ]
  if (!partial && nrow(missing) > 0) {
    stop(nrow(missing), " of ", nrow(cells), " cells were not measured, the first of them ",
         paste(missing[1, c("environment", "workload", "repetition")], collapse = "/"),
         "; measure them, or build the paper from what is there (partial: true in config.yaml)",
         call. = FALSE)
  }
  evidence <- list(
    plan = plan, cells = cells, records = records[cells$measured],
    image = read_described(result_path(plan, "image")),
    packages = read_described(result_path(plan, "packages"))$packages,
    environments = environment_table(plan, cells),
    published = read_published(file.path(root, "published", "ibm-table1.json")),
    originals = read_originals(root),
    own = read_own_verdicts(root), artifact = read_artifact(root),
    failed = read_failures(plan, cells[!cells$measured, ]),
    unable = read_inability(plan, read_planned(plan)),
    precision = read_precision(plan, last_block(cells)),
    # Of a run that ended early, what was decided last is not there yet.
    narrow = narrow_sets(decisions_of(plan, before = last_block(cells))),
    partial = !all(cells$measured)
  )
  summary <- read_summaries(plan, cells, partial)
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

#' The records of the cells that were measured
#'
#' @param plan as from `read_plan`
#' @param cells as from `read_cells`
#' @return list with an element for each cell: the record with `path` and `head`, as from `read_head`, or NULL
#'   where the cell has no log
#' @section Errors: a log without a record (whether a record is good is judged before)
read_records <- function(plan, cells) {
  Map(function(log, path) {
    if (!file.exists(log)) {
      return(NULL)
    }
    record <- read_json(path)
    record$path <- path
    record$head <- read_head(log)
    record
  }, cell_path(plan, "log", cells), cell_path(plan, "record", cells), USE.NAMES = FALSE)
}

#' The summaries of all workloads
#'
#' @param plan as from `read_plan`
#' @param cells with the column `measured`
#' @param partial whether a summary may be missing
#' @return data frame with the columns of SUMMARY_COLUMNS
#' @section Errors: a summary is missing, broken, or of other runs than the records
read_summaries <- function(plan, cells, partial) {
  tables <- lapply(names(plan$workloads), function(workload) {
    path <- result_path(plan, "summary", workload = workload)
    measured <- cells[cells$workload == workload & cells$measured, ]
    if (nrow(measured) == 0 && !file.exists(path)) {
      return(NULL)
    }
    summary <- read_summary(path, plan)
    unknown <- setdiff(summary$metric, metrics_of(plan, workload)$metric)
    if (length(unknown) > 0) {
      stop_about(path, unknown[[1]], " is no metric of ", workload)
    }
    runs <- table(factor(measured$environment, names(plan$environments)))[summary$environment]
    if (any(summary$n > runs)) {
      stop_about(path, "it counts more runs of ", summary$environment[summary$n > runs][[1]],
                 " than there are records; it is older than they are")
    }
    summary[summary$n > 0, ]
  })
  do.call(rbind, c(list(empty_table(SUMMARY_COLUMNS)), tables))
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

#' What became of cells that were tried and failed
#'
#' @param plan as from `read_plan`
#' @param cells that were not measured
#' @return character vector with an element for each cell: the reason, "" where the cell was not tried
read_failures <- function(plan, cells) {
  vapply(failed_records(plan, cells), function(record) {
    error <- record$error
    if (is.character(error)) first_line(paste0(error, "\n")) else ""
  }, "", USE.NAMES = FALSE)
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
