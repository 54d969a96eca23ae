# Tables of the appendix: in one column, over as many pages as they need, which they fill.

# The width of a line there, in points.
LONG_LINE <- 500

#' A table of the appendix as LaTeX
#'
#' One that is too wide is set in seven points, and where that is not enough, what its groups are of stands
#' above them in the place of a column, and the gaps between columns become smaller.  Panels are tables of
#' their own under one number, so that each page says what its columns are.
#'
#' @param table as from `new_table`
#' @return one text
latex_long <- function(table) {
  panel <- cumsum(table$head_rows) + 1
  last <- max(panel, 1)
  width <- natural_width(table)
  texts <- vapply(seq_len(last), function(number) {
    latex_long_panel(panel_of(table, which(panel == number)), width, number, number == last)
  }, "")
  paste0("\n", paste(texts, collapse = "\n"), "\n")
}

#' The rows of a table under one head
#'
#' @param table as from `new_table`
#' @param rows their numbers, the first of which may be that of the head
#' @return a table
panel_of <- function(table, rows) {
  if (any(table$head_rows[rows])) {
    own <- table$columns$span != 1
    table$columns$head[own] <- unlist(table$cells[rows[[1]], own], use.names = FALSE)
    rows <- rows[-1]
  }
  for (name in c("cells", "marks", "sources")) {
    table[[name]] <- table[[name]][rows, , drop = FALSE]
  }
  table$group_starts <- table$group_starts[rows]
  table$head_rows <- table$head_rows[rows]
  table
}

#' A panel of a table of the appendix as LaTeX
#'
#' @param table as from `new_table`, without rows of headings
#' @param width of the whole table in points
#' @param panel its number
#' @param last whether the notes stand under it
#' @return one text
latex_long_panel <- function(table, width, panel, last) {
  wraps <- table$columns$align == "wrap"
  wide <- !any(wraps) && width > LONG_LINE
  groups <- NULL
  if (wide && width * 7 / 8 > LONG_LINE && any(table$group_starts) && panel == 1 && last) {
    groups <- ifelse(table$group_starts, as.character(table$cells[[1]]), "")
    table <- without_first_column(table)
    wraps <- wraps[-1]
  }
  caption <- latex_escape(sentence(table$caption))
  columns <- table$columns
  heads <- c("\\toprule", latex_spanners(columns$spanner), latex_heads(columns$head, columns), "\\midrule")
  body <- latex_rows(table, together = !any(wraps))
  if (!is.null(groups)) {
    above <- sprintf("\\multicolumn{%d}{@{}l}{\\textit{%s}} \\\\*\n", nrow(columns), latex_escape(groups))
    body <- ifelse(groups == "", body, sub("^(\\\\addlinespace[^\n]*\n)?", "\\1%ABOVE%", body))
    body <- mapply(function(row, text) sub("%ABOVE%", text, row, fixed = TRUE), body, above,
                   USE.NAMES = FALSE)
  }
  paste(c(
    "\\begingroup",
    if (panel > 1) sprintf("\\addtocounter{table}{-1}\\renewcommand{\\theHtable}{%s-%d}", table$id, panel),
    if (wide) c("\\longtype", latex_fitted(table)) else "\\footnotesize\\setlength{\\tabcolsep}{4.5pt}",
    if (any(wraps)) latex_wrap_width(table),
    sprintf("\\begin{longtable}{@{}%s@{}}", latex_long_columns(columns)),
    if (panel == 1) sprintf("\\caption{%s}\\label{table:%s}\\\\", caption, table$id),
    heads, "\\endfirsthead",
    sprintf("\\caption[]{%s}\\\\", latex_escape(sentence(paste(table$caption, "(continued)")))),
    heads, "\\endhead", "\\bottomrule", "\\endlastfoot", body, "\\end{longtable}",
    if (last && length(table$notes) > 0) c("\\longnotes{", latex_notes(table$notes), "}"), "\\endgroup"
  ), collapse = "\n")
}

#' A table without its first column
#'
#' @param table as from `new_table`
#' @return the same
without_first_column <- function(table) {
  table$columns <- table$columns[-1, ]
  for (part in c("cells", "marks", "sources")) {
    table[[part]] <- table[[part]][, -1, drop = FALSE]
  }
  table
}

#' The columns of a long table, as LaTeX takes them
#'
#' @param columns of the table
#' @return text
latex_long_columns <- function(columns) {
  wraps <- columns$align == "wrap"
  share <- columns$weight / sum(columns$weight[wraps])
  spec <- ifelse(wraps, sprintf(">{\\raggedright\\arraybackslash}p{%.4f\\wrapwidth}", share),
                 c(left = "l", right = "r", decimal = "r", centre = "c")[columns$align])
  paste0(ifelse(columns$span == 0, "@{~}", ""), spec, collapse = "")
}

#' How LaTeX finds the gaps between columns with which a table is not too wide
#'
#' @param table as from `new_table`, without columns of several lines
#' @return lines
latex_fitted <- function(table) {
  columns <- table$columns
  rows <- c(latex_heads(columns$head, columns),
            paste(apply(latex_cells(table), 1, paste, collapse = " & "), "\\\\"))
  c(sprintf("\\sbox{\\tablebox}{\\begin{tabular}{@{}%s@{}}", latex_long_columns(columns)), rows,
    "\\end{tabular}}", sprintf("\\narrowgaps{%d}", max(2 * (nrow(columns) - 1), 1)))
}

#' How LaTeX finds the width that is left for columns of several lines
#'
#' @param table as from `new_table`
#' @return lines
latex_wrap_width <- function(table) {
  wraps <- table$columns$align == "wrap"
  plain <- which(!wraps)
  rows <- rbind(latex_escape(table$columns$head), latex_cells(table))[, plain, drop = FALSE]
  c(if (length(plain) > 0) {
    c("\\sbox{\\tablebox}{\\begin{tabular}{@{}", strrep("l", length(plain)), "@{}}",
      paste(apply(rows, 1, paste, collapse = " & "), "\\\\"), "\\end{tabular}}")
  } else {
    "\\sbox{\\tablebox}{}"
  }, sprintf("\\setlength{\\wrapwidth}{\\dimexpr\\linewidth-\\wd\\tablebox-%d\\tabcolsep\\relax}",
             2 * sum(wraps) - (length(plain) == 0) * 2))
}
