# The tables of the paper as cells of text.  What becomes of the cells (LaTeX, HTML) is decided elsewhere.

#' A table
#'
#' @param id what refers to it
#' @param caption text
#' @param columns list of columns, each as from `column`
#' @param cells data frame or matrix of texts, a column for each of `columns`
#' @param marks matrix like `cells`: the letters of the notes on a cell, "" where there are none
#' @param group_starts for each row whether it begins a group
#' @param notes texts that stand under the table; the names of those with a letter are the letters
#' @param wide whether it spans both columns of a page
#' @return list of these, `columns` as a data frame; `head_rows`: for each row whether it holds headings; and
#'   `sources`, a matrix like `cells`: names, as `linked` takes them, of what a number rests on, ""
#'   where there is none
new_table <- function(id, caption, columns, cells, marks = NULL, group_starts = NULL, notes = character(),
                      wide = TRUE) {
  cells <- as.data.frame(cells, stringsAsFactors = FALSE)
  names(cells) <- NULL
  if (is.null(marks)) {
    marks <- matrix("", nrow(cells), ncol(cells))
  }
  if (is.null(group_starts)) {
    group_starts <- rep(FALSE, nrow(cells))
  }
  list(id = id, caption = caption, columns = do.call(rbind, columns), cells = cells, marks = marks,
       sources = matrix("", nrow(cells), ncol(cells)), group_starts = group_starts,
       head_rows = rep(FALSE, nrow(cells)), notes = notes, wide = wide)
}

#' A column of a table
#'
#' @param head text
#' @param align "left", "right", "centre", "decimal" (numbers aligned at their points) or "wrap" (text of
#'   several lines)
#' @param spanner text above this and its neighbours of the same spanner, "" for none
#' @param weight share of the width that a column of several lines takes, relative to the others
#' @param span how many columns the heading spans: those that follow have no heading, and stand close to this
#'   one
#' @return data frame of one row for each column that is spanned, `span` being 0 in those that follow
column <- function(head, align = "left", spanner = "", weight = 1, span = 1) {
  data.frame(head = c(head, rep("", span - 1)), align = align, spanner = spanner, weight = weight,
             span = c(span, rep(0, span - 1)))
}

#' Values with empty cells where a value repeats the one above
#'
#' @param text texts
#' @param starts for each whether it is shown in any case
#' @return texts
blank_repeats <- function(text, starts = rep(FALSE, length(text))) {
  repeated <- c(FALSE, text[-1] == text[-length(text)])[seq_along(text)]
  ifelse(repeated & !starts, "", text)
}

#' Texts with a dash where they are empty
#'
#' @param text texts
#' @return texts
or_dash <- function(text) {
  ifelse(text == "", EM_DASH, text)
}
