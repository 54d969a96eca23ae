# Lists sessions of several archives side by side, and nests them in machines.

#' Read the ratios of headline series, and the sessions, of several folders of results
#'
#' @param sources list of lists: name, results (folder with plan.json, ratios.csv, sessions.csv)
#' @return list: pairs (rows of ratios.csv with the labels of the first source that has them, and
#'   `headline` logical), sessions (rows of sessions.csv with source; and `mark`, a letter for each
#'   machine)
#' @section Errors: scales or options of an environment differ; a session is in two sources; two
#'   sessions of a machine overlap; no ratio is of a valid size
read_sources <- function(sources) {
  plans <- lapply(sources, function(source) {
    jsonlite::read_json(file.path(source$results, "plan.json"))
  })
  names(plans) <- vapply(sources, `[[`, "", "name")
  require_alike(plans)
  read_rows <- function(name) {
    stack_rows(lapply(sources, function(source) {
      rows <- read_table(file.path(source$results, name), POOL_TEXTS)
      if (nrow(rows) > 0) cbind(rows, source = source$name)
    }))
  }
  sessions <- read_rows("sessions.csv")
  twice <- which(duplicated(sessions$session))
  if (length(twice) > 0) {
    session <- sessions[sessions$session == sessions$session[[twice[[1]]]], ]
    stop(join_words(session$source), " hold the same session, ", session$session[[1]],
         "; name one of them", call. = FALSE)
  }
  require_apart(sessions)
  machines <- unique(sessions$machine)
  sessions$mark <- make_marks(length(machines))[match(sessions$machine, machines)]
  pairs <- read_rows("ratios.csv")
  pairs <- pairs[pairs$headline == "yes" & pairs$valid == "yes", ]
  if (NROW(pairs) == 0) {
    stop("no ratio to native in ", join_words(names(plans)), " is of a valid size", call. = FALSE)
  }
  pairs$headline <- TRUE
  keys <- make_keys(pairs, c("workload", "metric", "factors", "unit", "better"))
  pairs[POOL_LABELS] <- pairs[match(keys, keys), POOL_LABELS]
  pairs$label <- pairs$label[match(pairs$environment, pairs$environment)]
  list(pairs = pairs, sessions = sessions)
}

# Columns of texts, and those of them that may differ between sources without meaning anything.
POOL_LABELS <- c("title", "question", "metric_label", "series")
POOL_TEXTS <- c(POOL_LABELS, "workload", "metric", "unit", "better", "environment", "label",
                "reference", "family", "session", "machine", "from", "to", SESSION_FACTS,
                names(ENGINE_FACTS))

# Stops if two sessions of one machine were at the same time: they are of clones of one disk.
require_apart <- function(sessions) {
  sessions <- sessions[order(sessions$machine, sessions$from, method = "radix"), ]
  before <- sessions[-nrow(sessions), ]
  after <- sessions[-1, ]
  at <- which(before$machine == after$machine & after$from < before$to)
  if (length(at) > 0) {
    stop(join_words(c(before$source[at[[1]]], after$source[at[[1]]])), " hold sessions of one ",
         "machine at the same time, ", after$from[[at[[1]]]], ", as clones of one disk do; give ",
         "each machine a host name of its own before it measures", call. = FALSE)
  }
}

# Letters for machines: A, B, …, Z, A2, B2, …
make_marks <- function(count) {
  turns <- (seq_len(count) - 1) %/% 26
  paste0(LETTERS[(seq_len(count) - 1) %% 26 + 1], ifelse(turns == 0, "", turns + 1))
}

# Stops unless the named plans have one scale, and equal options for equal environments.
require_alike <- function(plans) {
  require_equal <- function(what, values) {
    differing <- which(!vapply(values, identical, NA, values[[1]]))
    if (length(differing) > 0) {
      stop(names(values)[[1]], " and ", names(values)[[differing[[1]]]], " differ in ", what,
           "; sessions are pooled only if they measured the same", call. = FALSE)
    }
  }
  require_equal("their scale", lapply(plans, `[[`, "scale"))
  for (name in unique(unlist(lapply(plans, function(plan) names(plan$environments))))) {
    entries <- Filter(Negate(is.null), lapply(plans, function(plan) plan$environments[[name]]))
    require_equal(paste("the options of", name), lapply(entries, `[[`, "layers"))
  }
}

#' List the scopes for which sessions have a result
#'
#' @param sessions data frame of read_sources
#' @return data frame, one row for each scope: scope ("session", "machine", "machines"), mark (of
#'   the machine; "" of machines), began (date and time of a session), widest (whether no other
#'   scope of the machine is wider), sessions (list of their names)
list_scopes <- function(sessions) {
  by_machine <- split(sessions, factor(sessions$mark, unique(sessions$mark)))
  scopes <- stack_rows(lapply(by_machine, function(rows) {
    rows <- rows[order(rows$from), ]
    has_machine <- nrow(rows) >= MACHINE_SESSIONS
    singles <- list2DF(list(scope = rep("session", nrow(rows)), mark = rows$mark,
                            began = sub("T", " ", substr(rows$from, 1, 16)),
                            widest = rep(!has_machine, nrow(rows)),
                            sessions = as.list(rows$session)))
    whole <- list2DF(list(scope = "machine", mark = rows$mark[[1]], began = "", widest = TRUE,
                          sessions = list(rows$session)))
    if (has_machine) stack_rows(list(singles, whole)) else singles
  }))
  if (length(by_machine) < POOLED_MACHINES) return(scopes)
  stack_rows(list(scopes, list2DF(list(scope = "machines", mark = "", began = "", widest = TRUE,
                                       sessions = list(sessions$session)))))
}

#' Compare environments with native in each scope
#'
#' The verdicts of each scope share an error rate, as those of a paper do.
#'
#' @param pairs,sessions of read_sources
#' @return list: comparisons (rows of compare_environments and add_verdicts) and verdicts (rows of
#'   decide_workloads with their `outcome`), each with scope, mark, began and widest of list_scopes,
#'   and `place` of name_scopes; sorted by workload
pool_sessions <- function(pairs, sessions) {
  scopes <- list_scopes(sessions)
  compared <- lapply(seq_len(nrow(scopes)), function(i) {
    scope <- scopes[i, c("scope", "mark", "began", "widest")]
    rows <- compare_environments(pairs[pairs$session %in% scopes$sessions[[i]], ])
    if (is.null(rows)) return(NULL)
    rows$family <- pairs$family[match(rows$environment, pairs$environment)]
    rows <- add_verdicts(rows, list_verdict_groups(rows))
    list(comparisons = cbind(scope, rows, row.names = NULL),
         verdicts = cbind(scope, decide_workloads(rows), row.names = NULL))
  })
  tables <- lapply(c(comparisons = "comparisons", verdicts = "verdicts"), function(name) {
    rows <- stack_rows(lapply(compared, `[[`, name))
    rows$place <- name_scopes(rows)
    rows[order(match(rows$workload, rows$workload)), ]
  })
  tables$verdicts$outcome <- classify_outcomes(tables$verdicts)
  tables
}

#' Name a scope for readers
#'
#' @param rows data frame: scope, mark, began, holds, sessions, machines
#' @return texts such as "machine A (3 sessions)" or "machine B, session of 2026-11-27 10:05"; with
#'   "within" where too few sessions have enough blocks for the scope
name_scopes <- function(rows) {
  machine <- ifelse(rows$scope == "machines", paste(rows$machines, "machines"),
                    paste("machine", rows$mark))
  sessions <- paste(rows$sessions, "sessions")
  ifelse(rows$scope == "session", paste0(machine, ", session of ", rows$began),
         ifelse(rows$scope == rows$holds, paste0(machine, " (", sessions, ")"),
                paste0(machine, ", within ", sessions)))
}

#' Set the verdicts of the widest scopes as a Markdown table, with a line about each machine
#'
#' Each cell has the ratio of the series that decides, with its interval of 95 %.
#'
#' @param pooled list of pool_sessions
#' @param sessions of read_sources
#' @param environments names of the environments that have a column
#' @return lines of Markdown
format_scope_table <- function(pooled, sessions, environments) {
  rows <- pooled$verdicts
  key <- c("place", "environment", "series")
  at <- match(make_keys(rows, key), make_keys(pooled$comparisons, key))
  rows[c("low", "high")] <- pooled$comparisons[at, c("low", "high")]
  rows <- rows[rows$widest & rows$environment %in% environments, ]
  rows$cell <- ifelse(is.na(rows$low), "no interval",
                      paste0(format_share_interval(rows$ratio, rows$low, rows$high), ", ",
                             rows$outcome, " (n\u00a0=\u00a0", rows$n, ")"))
  columns <- intersect(environments, rows$environment)
  labels <- rows$label[match(columns, rows$environment)]
  places <- unique(rows[c("workload", "title", "place")])
  cells <- lapply(columns, function(name) {
    column <- rows[rows$environment == name, ]
    at <- match(paste(places$workload, places$place), paste(column$workload, column$place))
    ifelse(is.na(at), NO_VALUE, column$cell[at])
  })
  set_line <- function(...) paste0("| ", paste(..., sep = " | "), " |")
  c(do.call(set_line, as.list(c("speed as a share of native\u2019s", "on", escape_text(labels)))),
    do.call(set_line, as.list(rep("---", 2 + length(labels)))),
    do.call(set_line, c(list(escape_text(places$title), places$place), cells)),
    "", paste("-", vapply(split(sessions, factor(sessions$mark, unique(sessions$mark))),
                          describe_machine, "")))
}

# A line of Markdown about a machine and its sessions.
describe_machine <- function(sessions) {
  list_values <- function(column, ...) {
    values <- setdiff(unique(sessions[[column]]), "")
    if (length(values) > 0) paste0(..., join_words(values))
  }
  memory <- suppressWarnings(as.numeric(sessions$memory_bytes[[1]])) / 2 ^ 30
  facts <- c(list_values("cpu_model"), paste(list_values("cpus"), "CPUs"),
             if (!is.na(memory)) paste0(round(memory), SPACE, "GiB"), list_values("virtualization"),
             list_values("kernel", "Linux "), list_values("docker", "Docker "),
             list_values("gvisor", "gVisor "))
  days <- unique(substr(range(sessions$from), 1, 10))
  paste0("Machine ", sessions$mark[[1]], ": ", escape_text(paste(facts, collapse = ", ")), "; ",
         format_count(nrow(sessions), "session"), ", ", paste(days, collapse = " to "), ".")
}
