# What both languages have to know, as data in contracts/: strata/base/contracts.py reads it too.

#' The data of one theme
#'
#' @param name of the file in contracts/, without its ending
#' @return nested lists
read_contract <- function(name) {
  read_json(file.path(getOption("strata.contracts"), paste0(name, ".json")))
}

#' A text with its placeholders filled in
#'
#' @param text with names in braces
#' @param ... for each name its values, one or as many as the longest; none at all give no text
#' @return character vector
filled <- function(text, ...) {
  values <- list(...)
  count <- if (any(lengths(values) == 0)) 0 else max(1, lengths(values))
  found <- rep_len(text, count)
  for (name in names(values)) {
    own <- rep_len(as.character(values[[name]]), count)
    found <- vapply(seq_len(count), function(i) {
      sub(paste0("{", name, "}"), own[[i]], found[[i]], fixed = TRUE)
    }, "")
  }
  found
}
