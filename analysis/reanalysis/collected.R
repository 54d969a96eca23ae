# What is collected of a published file: its values, what could not be read of it, and what is to be noted.

#' A table of values without rows
#'
#' @return data frame with the columns of `tidy`
no_values <- function() {
  data.frame(workload = character(), environment = character(), metric = character(), unit = character(),
             factors = character(), selection = character(), repetition = integer(), value = double(),
             file = character(), line = integer())
}

#' What a collector returns for one file
#'
#' @param file its path, as it is to be named
#' @param read as from `imported`
#' @param workload,environment,selection texts; the last two may have an element for each value
#' @param note about the file
#' @return list: `values`, `unreadable`, `notes`, lists of one element
collected <- function(file, read, workload, environment, selection, note = "") {
  values <- read$values
  table <- if (nrow(values) > 0) {
    data.frame(workload = workload, environment = environment, values[c("metric", "unit", "factors")],
               selection = selection, values[c("repetition", "value")], file = file, line = values$line)
  }
  bad <- if (nrow(read$problems) > 0) data.frame(file = file, read$problems)
  list(values = list(table), unreadable = list(bad),
       notes = if (note != "") stats::setNames(list(note), file))
}

#' Puts what collectors return together
#'
#' @param parts list of results of `collected`
#' @return one such result
together <- function(parts) {
  Reduce(function(a, b) Map(c, a, b), parts, list(values = list(), unreadable = list(), notes = list()))
}

#' Reads a file, and turns a failure into a problem of its first line
#'
#' @param source as from `open_source`
#' @param file its path
#' @param read function of the lines or, where `lines` is FALSE, of the path
#' @param revision as in `fetch`
#' @param lines whether `read` takes lines
#' @return as from `read`; without values where the file can't be read
attempt <- function(source, file, read, revision = "", lines = TRUE) {
  tryCatch({
    path <- fetch(source, file, revision)
    if (is.null(path)) {
      broken_log("the file can't be read from revision ", if (revision == "") "HEAD" else revision)
    }
    read(if (lines) published_lines(path) else path)
  }, broken_log = function(e) imported(list(), list(problems(1, conditionMessage(e)))))
}

#' Whether keys were met before
#'
#' @param seen environment whose `keys` were met; those of now are added
#' @param keys texts
#' @return logical vector
met <- function(seen, keys) {
  before <- keys %in% seen$keys
  seen$keys <- c(seen$keys, keys)
  before
}

#' Leaves out blocks that another log holds as well
#'
#' @param read as from `imported`, whose values have a column `key` that is the same for copies of a block
#' @param seen environment of the keys that were met, which is added to
#' @param environment of the log: only logs of the same one repeat each other
#' @return list: `read` without copies, and `note` about them
without_copies <- function(read, seen, environment) {
  keys <- unique(read$values$key)
  copy <- met(seen, paste(rep_len(environment, length(keys)), keys))
  read$values <- read$values[!read$values$key %in% keys[copy], ]
  list(read = read, note = if (any(copy)) {
    paste(if (all(copy)) "all" else sum(copy), "of its blocks repeat blocks of another file")
  } else {
    ""
  })
}
