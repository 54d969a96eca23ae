# Pools the ratios of sessions of several archives, which are nested in machines.

#' Read the ratios of headline series, and the sessions, of several folders of results, and refuse
#' those that cannot be pooled
#'
#' @param sources list of lists, which strata/archive/pool.py writes: name, results (folder with
#'   ratios.csv and sessions.csv), scale, environments (layers of each, by its name)
#' @return list: pairs (rows of ratios.csv of valid headline series, with the labels of the first
#'   source that has them, and `headline` TRUE), sessions (rows of sessions.csv with `source`; and
#'   `mark`, a letter for each machine); parts of one session that several sources hold are one row
#'   of join_parts, and its session is that of their pairs
#' @section Errors: scales or options of an environment differ; a session is in two sources; two
#'   sessions of a machine overlap; no ratio is of a valid size
read_sources <- function(sources) {
  require_same_setup(sources)
  read_rows <- function(name) {
    stack_rows(lapply(sources, function(source) {
      rows <- read_table(file.path(source$results, name), POOL_TEXTS)
      if (nrow(rows) > 0) cbind(rows, source = source$name)
    }))
  }
  sessions <- read_rows("sessions.csv")
  duplicates <- sessions$session[duplicated(sessions$session)]
  if (length(duplicates) > 0) {
    holders <- sessions$source[sessions$session == duplicates[[1]]]
    stop("the same session, ", duplicates[[1]], ", is given twice, by ", join_words(holders),
         "; name one of them", call. = FALSE)
  }
  require_disjoint(sessions)
  sessions$whole <- find_whole_sessions(sessions)
  machines <- unique(sessions$machine)
  sessions$mark <- make_marks(length(machines))[match(sessions$machine, machines)]
  pairs <- read_rows("ratios.csv")
  pairs$session <- sessions$whole[match(pairs$session, sessions$session)]
  sessions <- join_parts(sessions)
  pairs <- pairs[pairs$headline == "yes" & pairs$valid == "yes", ]
  if (NROW(pairs) == 0) {
    stop("no ratio to native in ", join_words(vapply(sources, `[[`, "", "name")),
         " is of a valid size", call. = FALSE)
  }
  pairs$headline <- TRUE
  # All rows of a series, and of an environment, take the labels of the first, so that they are
  # grouped as one.
  keys <- make_keys(pairs, c("workload", "metric", "factors", "unit", "better"))
  pairs[POOL_LABELS] <- pairs[match(keys, keys), POOL_LABELS]
  pairs$label <- pairs$label[match(pairs$environment, pairs$environment)]
  list(pairs = pairs, sessions = sessions)
}

# The labels that may differ between sources without meaning anything, and all columns of texts of
# ratios.csv and sessions.csv.
POOL_LABELS <- c("title", "question", "metric_label", "series")
POOL_TEXTS <- c(POOL_LABELS, "workload", "metric", "unit", "better", "environment", "label",
                "reference", "family", "session", "machine", "from", "to", "boot",
                "docker_start", SESSION_FACTS, names(ENGINE_FACTS))

# Returns for each row the session that it is a part of, by the name of that session's first part:
# two archives that were measured one after the other are one session unless a boot, a start of
# Docker or an hour lies between them.
# sessions: rows of sessions.csv.
find_whole_sessions <- function(sessions) {
  # sessions.csv has "" for a fact that no record has.
  replace_empty <- function(strings) replace(strings, strings == "", NA)
  parts <- data.frame(machine = sessions$machine, session = sessions$session,
                      started = parse_timestamps(sessions$from),
                      ended = parse_timestamps(sessions$to),
                      boot = replace_empty(sessions$boot),
                      docker = replace_empty(sessions$docker_start))
  wholes <- stack_rows(lapply(split(parts, parts$machine), function(parts) {
    parts <- parts[order(parts$started), ]
    is_begin <- is_session_begin(parts)
    data.frame(session = parts$session, whole = parts$session[is_begin][cumsum(is_begin)])
  }))
  wholes$whole[match(sessions$session, wholes$session)]
}

# Joins the rows of parts of one session: its machine and facts are those of the first part, `from`
# and `to` enclose all of them, `cells` is their sum, and `source` names all.
# sessions: rows of sessions.csv with `source`, and with `whole` of find_whole_sessions.
# Returns one row for each whole session, without the column `whole`.
join_parts <- function(sessions) {
  parts <- split(sessions, factor(sessions$whole, unique(sessions$whole)))
  whole_sessions <- stack_rows(lapply(parts, function(rows) {
    row <- rows[match(rows$whole[[1]], rows$session), ]
    row$to <- max(rows$to)
    row$cells <- sum(as.numeric(rows$cells))
    row$source <- paste(rows$source, collapse = "; ")
    row
  }))
  whole_sessions[names(whole_sessions) != "whole"]
}

# Stops if two sessions of one machine overlap: they are of clones of one disk, which have one name.
# sessions: rows of sessions.csv with `source`; their timestamps are strings that sort by time.
require_disjoint <- function(sessions) {
  sessions <- sessions[order(sessions$machine, sessions$from, method = "radix"), ]
  before <- sessions[-nrow(sessions), ]
  after <- sessions[-1, ]
  overlaps <- which(before$machine == after$machine & after$from < before$to)
  if (length(overlaps) > 0) {
    first <- overlaps[[1]]
    holders <- join_words(c(before$source[[first]], after$source[[first]]))
    stop(holders, " hold sessions of one machine at the same time, ", after$from[[first]],
         ", as clones of one disk do; give each machine its own host name before it measures",
         call. = FALSE)
  }
}

# Makes the marks of a number of machines, in their order: A, B, …, Z, A2, B2, …
make_marks <- function(count) {
  index <- seq_len(count) - 1
  round <- index %/% 26
  paste0(LETTERS[index %% 26 + 1], ifelse(round == 0, "", round + 1))
}

# Stops unless all sources have one scale, and equal layers for environments of one name.
# sources: list of lists, the parameter of read_sources.
require_same_setup <- function(sources) {
  names(sources) <- vapply(sources, `[[`, "", "name")
  # Stops if a source has another value than the first one.
  # noun: of the value, for the message, for example "their scale".
  # values: list, named by the sources.
  require_equal <- function(noun, values) {
    positions <- which(!vapply(values, identical, NA, values[[1]]))
    if (length(positions) > 0) {
      stop(names(values)[[1]], " and ", names(values)[[positions[[1]]]], " differ in ", noun,
           "; sessions are pooled only if they measured the same", call. = FALSE)
    }
  }
  require_equal("their scale", lapply(sources, `[[`, "scale"))
  for (name in unique(unlist(lapply(sources, function(source) names(source$environments))))) {
    layers <- lapply(sources, function(source) source$environments[[name]])
    require_equal(paste("the options of", name), Filter(Negate(is.null), layers))
  }
}

#' List the scopes for which sessions have a result: each session, each machine with enough of them,
#' and all machines if these are enough
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
    if (!has_machine) return(singles)
    machine <- list2DF(list(scope = "machine", mark = rows$mark[[1]], began = "", widest = TRUE,
                            sessions = list(rows$session)))
    stack_rows(list(singles, machine))
  }))
  if (length(by_machine) < POOLED_MACHINES) return(scopes)
  stack_rows(list(scopes, list2DF(list(scope = "machines", mark = "", began = "", widest = TRUE,
                                       sessions = list(sessions$session)))))
}

#' Compare environments with native in each scope
#'
#' The verdicts of each scope share an error rate, as the verdicts of a paper do.  A scope without
#' pairs is left out.
#'
#' @param pairs,sessions data frames of read_sources
#' @return list: comparisons (rows of compare_environments and add_verdicts) and verdicts (rows of
#'   decide_workloads with their `outcome`), each with scope, mark, began and widest of list_scopes,
#'   and `place` of name_scopes; sorted by workload; pool.csv and verdicts.csv are made of them
pool_sessions <- function(pairs, sessions) {
  scopes <- list_scopes(sessions)
  tables_of_scopes <- lapply(seq_len(nrow(scopes)), function(i) {
    scope <- scopes[i, c("scope", "mark", "began", "widest")]
    rows <- compare_environments(pairs[pairs$session %in% scopes$sessions[[i]], ])
    if (is.null(rows)) return(NULL)
    rows$family <- pairs$family[match(rows$environment, pairs$environment)]
    rows <- add_verdicts(rows, number_verdicts(rows))
    list(comparisons = cbind(scope, rows, row.names = NULL),
         verdicts = cbind(scope, decide_workloads(rows), row.names = NULL))
  })
  tables <- lapply(c(comparisons = "comparisons", verdicts = "verdicts"), function(name) {
    rows <- stack_rows(lapply(tables_of_scopes, `[[`, name))
    rows$place <- name_scopes(rows)
    rows[order(match(rows$workload, rows$workload)), ]
  })
  tables$verdicts$outcome <- classify_outcomes(tables$verdicts)
  tables
}

#' Name the scopes of rows for readers
#'
#' @param rows data frame: scope, mark and began of list_scopes; holds, sessions and machines of
#'   compare_sessions
#' @return strings, for example "machine A (3 sessions)" or "machine B, session of
#'   2026-11-27 10:05"; with "within" where too few sessions have enough blocks for the scope
name_scopes <- function(rows) {
  place <- ifelse(rows$scope == "machines", paste(rows$machines, "machines"),
                  paste("machine", rows$mark))
  sessions <- paste(rows$sessions, ifelse(rows$sessions == 1, "session", "sessions"))
  case_when(rows$scope == "session" ~ paste0(place, ", session of ", rows$began),
            rows$scope == rows$holds ~ paste0(place, " (", sessions, ")"),
            TRUE ~ paste0(place, ", within ", sessions))
}

#' Format the verdicts of the widest scopes as a Markdown table, with a line about each machine
#'
#' Each cell has the ratio of the series that decides, with its interval of 95 %, and the outcome,
#' for example "98 % [97, 99], equivalent (n = 12)".
#'
#' @param pooled list of pool_sessions
#' @param sessions data frame of read_sources
#' @param environments names of the environments that have a column, if they have verdicts
#' @return lines of Markdown
format_scope_table <- function(pooled, sessions, environments) {
  rows <- pooled$verdicts
  keys <- c("place", "environment", "series")
  # A verdict has the interval that decides; the table shows the one of 95 %.
  compared_at <- match(make_keys(rows, keys), make_keys(pooled$comparisons, keys))
  rows[c("low", "high")] <- pooled$comparisons[compared_at, c("low", "high")]
  rows <- rows[rows$widest & rows$environment %in% environments, ]
  rows$cell <- ifelse(is.na(rows$low), "no interval",
                      paste0(format_share_interval(rows$ratio, rows$low, rows$high), ", ",
                             rows$outcome, " (n\u00a0=\u00a0", rows$n, ")"))
  columns <- intersect(environments, rows$environment)
  labels <- rows$label[match(columns, rows$environment)]
  lines <- unique(rows[c("workload", "title", "place")])
  cells <- lapply(columns, function(name) {
    column <- rows[rows$environment == name, ]
    positions <- match(paste(lines$workload, lines$place), paste(column$workload, column$place))
    ifelse(is.na(positions), NO_VALUE, column$cell[positions])
  })
  # Joins the texts of columns, in the same place each, into lines of the table.
  format_lines <- function(columns) {
    paste0("| ", do.call(paste, c(as.list(columns), sep = " | ")), " |")
  }
  machines <- split(sessions, factor(sessions$mark, unique(sessions$mark)))
  c(format_lines(c("speed as a share of native\u2019s", "on", escape_text(labels))),
    format_lines(rep("---", 2 + length(labels))),
    format_lines(c(list(escape_text(lines$title), lines$place), cells)),
    "", paste("-", vapply(machines, describe_machine, "")))
}

# Describes a machine and its sessions in a line of Markdown, for example "Machine A: Xeon, 8 CPUs,
# 16 GiB, Linux 6.8; 3 sessions, 2026-11-27."
# sessions: rows of read_sources, all of one machine, at least one.  If sessions differ in a fact,
# all its values are named; the memory is that of the first session, and is left out if sessions.csv
# has several sizes or none.
describe_machine <- function(sessions) {
  # Returns the distinct values of a column after a prefix; NULL if there are none.  A session may
  # have several values, such as the Docker of the host and the one of a virtual machine, with "; "
  # between (describe_sessions).
  join_values <- function(column, prefix = "") {
    values <- setdiff(unlist(strsplit(sessions[[column]], "; ", fixed = TRUE)), "")
    if (length(values) > 0) paste0(prefix, join_words(values))
  }
  # as.numeric warns of several sizes, and gives NA.
  memory_gib <- suppressWarnings(as.numeric(sessions$memory_bytes[[1]])) / 2 ^ 30
  facts <- c(join_values("cpu_model"), paste(join_values("cpus"), "CPUs"),
             if (!is.na(memory_gib)) paste0(round(memory_gib), SPACE, "GiB"),
             join_values("virtualization"), join_values("kernel", "Linux "),
             join_values("docker", "Docker "), join_values("gvisor", "gVisor "))
  days <- unique(substr(range(sessions$from), 1, 10))
  paste0("Machine ", sessions$mark[[1]], ": ", escape_text(paste(facts, collapse = ", ")), "; ",
         format_count(nrow(sessions), "session"), ", ", paste(days, collapse = " to "), ".")
}
