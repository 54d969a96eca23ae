# Numbers that carry where they came from: on the web page each is a link to the list of its runs, and from
# there to their raw logs; in the PDF and in plain text it is a number.

# What stands before, within and behind a linked text.  No text from outside holds these characters: all that
# becomes LaTeX, HTML or Markdown loses its control characters.
LINK_MARKS <- c("\u0002", "\u0003", "\u0004")
LINK_PATTERN <- "\u0002([^\u0002-\u0004]*)\u0003([^\u0002-\u0004]*)\u0004"

#' A text that carries where it came from
#'
#' It can be pasted into sentences like any other; `as_markdown` and `html_text` make the link of it.
#'
#' @param text texts, such as "95.0 % [93.0, 97.0]"; not linked themselves
#' @param to for each the name of a list of runs or files on the page: `source_id`, `shared_source`,
#'   `workload_list`, `environment_list`, `run_id`, or one of "records", "missing", "plan", "image"
#' @return texts; empty ones stay empty
linked <- function(text, to) {
  ifelse(text == "", "", paste0(LINK_MARKS[[1]], to, LINK_MARKS[[2]], text, LINK_MARKS[[3]]))
}

#' Texts without what they carry
#'
#' @param text texts that may hold some from `linked`
#' @return texts as they are read
unlinked <- function(text) {
  gsub(LINK_PATTERN, "\\2", text)
}

#' Texts in which links are written out
#'
#' @param text texts that may hold some from `linked`
#' @param escape function that makes a text without markup
#' @param link function of an escaped text and of what it leads to
#' @return texts
write_links <- function(text, escape, link) {
  vapply(as.character(text), function(one) {
    at <- gregexpr(LINK_PATTERN, one)
    found <- regmatches(one, at)[[1]]
    between <- vapply(regmatches(one, at, invert = TRUE)[[1]], escape, "")
    written <- link(vapply(sub(LINK_PATTERN, "\\2", found), escape, ""), sub(LINK_PATTERN, "\\1", found))
    paste0(between, c(written, ""), collapse = "")
  }, "", USE.NAMES = FALSE)
}

#' Names for what rows of the summary rest on
#'
#' @param rows of the comparisons
#' @return texts, each different, of letters, digits and hyphens
source_id <- function(rows) {
  text <- paste("runs", rows$workload, rows$metric, rows$factors, rows$environment, sep = "-")
  gsub("^-+|-+$", "", gsub("-+", "-", gsub("[^A-Za-z0-9.]+", "-", text)))
}

#' The name of the smallest list that holds the runs of several rows
#'
#' @param rows of the comparisons
#' @return text
shared_source <- function(rows) {
  if (nrow(rows) == 1) {
    source_id(rows)
  } else if (nrow(rows) > 0 && length(unique(rows$workload)) == 1) {
    workload_list(rows$workload[[1]])
  } else if (nrow(rows) > 0 && length(unique(rows$environment)) == 1) {
    environment_list(rows$environment[[1]])
  } else {
    "records"
  }
}

#' The name of the list of all runs of a workload, or in an environment
#'
#' @param workload its name
#' @return text
workload_list <- function(workload) {
  paste0("records-of-", workload)
}

#' @rdname workload_list
#' @param environment its name
environment_list <- function(environment) {
  paste0("records-in-", environment)
}

#' The name of the entry of one run
#'
#' @param record its record
#' @return text
run_id <- function(record) {
  paste("run", record$environment, record$workload, format(record$repetition, scientific = FALSE), sep = ".")
}
