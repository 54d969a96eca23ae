# From tables and texts to LaTeX.

LATEX_SPECIAL <- c(
  "\\" = "\\textbackslash{}", "{" = "\\{", "}" = "\\}", "$" = "\\$", "&" = "\\&", "%" = "\\%", "#" = "\\#",
  "_" = "\\_", "^" = "\\textasciicircum{}", "~" = "\\textasciitilde{}", "<" = "\\textless{}",
  ">" = "\\textgreater{}", "|" = "\\textbar{}", "\"" = "\\textquotedbl{}", "-" = "{-}",
  "`" = "\\textasciigrave{}", "'" = "\\textquotesingle{}",
  "\u2212" = "\\ensuremath{-}", "\u00a0" = "~", "\u202f" = "\\,", "\u2013" = "--",
  "\u2014" = "---", "\u00b5" = "\\textmu{}", "\u03bc" = "\\textmu{}", "\u00d7" = "\\ensuremath{\\times}",
  "\u00b1" = "\\ensuremath{\\pm}", "\u2264" = "\\ensuremath{\\leq}", "\u2265" = "\\ensuremath{\\geq}",
  "\u2248" = "\\ensuremath{\\approx}", "\u2192" = "\\ensuremath{\\rightarrow}", "\u00b0" = "\\textdegree{}",
  stats::setNames(paste0("\\textsuperscript{", c(0:9, "+"), "}"),
                  c("\u2070", "\u00b9", "\u00b2", "\u00b3", intToUtf8(0x2074:0x207a, TRUE))),
  "\u207b" = "\\textsuperscript{\\ensuremath{-}}",
  stats::setNames(paste0("\\textsubscript{", 0:9, "}"), intToUtf8(0x2080:0x2089, TRUE)),
  "\u2019" = "'", "\u2018" = "`", "\u201c" = "``", "\u201d" = "''", "\u2026" = "\\ldots{}"
)

#' Text for LaTeX, in which nothing is markup
#'
#' Letters of Latin scripts stay; any other character that the fonts lack becomes its code point, such as
#' "U+4E2D".
#'
#' @param text texts
#' @return texts
latex_escape <- function(text) {
  vapply(gsub("[[:cntrl:]]+", " ", enc2utf8(unlinked(as.character(text)))), function(one) {
    letters_of <- strsplit(one, "", fixed = TRUE)[[1]]
    special <- LATEX_SPECIAL[letters_of]
    code <- vapply(letters_of, utf8ToInt, 0L)
    known <- is.na(code) | (code >= 32 & code < 127) | (code >= 0xa1 & code < 0x180)
    paste(ifelse(!is.na(special), special, ifelse(known, letters_of, sprintf("U+%04X", code))), collapse = "")
  }, "", USE.NAMES = FALSE)
}

#' A table as LaTeX
#'
#' A table that is too long for one page goes on in further tables under the same number.
#'
#' @param table as from `new_table`
#' @param most_lines lines that one page has room for
#' @return one text
latex_table <- function(table, most_lines = if (any(table$columns$align == "wrap")) 60 else 50) {
  parts <- split_rows(table, most_lines)
  texts <- vapply(seq_along(parts), function(i) latex_float(parts[[i]], i > 1, i == length(parts)), "")
  paste0("\n", paste(texts, collapse = "\n"), "\n")
}

#' The rows of a table in parts that fit on a page
#'
#' A part ends where a group ends, unless the group alone is longer than a page.  Its headings are those that
#' stand above its first row.
#'
#' @param table as from `new_table`
#' @param most_lines lines of a part
#' @return list of tables
split_rows <- function(table, most_lines) {
  count <- nrow(table$cells)
  lines <- lines_of_rows(table)
  if (sum(lines) <= most_lines) {
    return(list(table))
  }
  ends <- c(setdiff(which(table$group_starts) - 1, which(table$head_rows)), count)
  from <- 1
  parts <- list()
  while (from <= count) {
    fits <- from - 1 + sum(cumsum(lines[from:count]) <= most_lines)
    whole <- ends[ends >= from & ends <= fits]
    to <- if (length(whole) > 0) max(whole) else max(fits, from)
    heads <- which(table$head_rows[seq_len(from)])
    rows <- setdiff(from:to, intersect(heads, from))
    part <- table
    if (length(heads) > 0) {
      part$columns$head <- as.character(unlist(table$cells[max(heads), ]))
    }
    part$cells <- table$cells[rows, , drop = FALSE]
    part$marks <- table$marks[rows, , drop = FALSE]
    part$group_starts <- table$group_starts[rows]
    part$head_rows <- table$head_rows[rows]
    parts <- c(parts, list(part))
    from <- to + 1
  }
  parts
}

#' About how many lines the rows of a table take
#'
#' @param table as from `new_table`
#' @param room letters of a line of the whole table
#' @return numbers; 1 where no column is of several lines
lines_of_rows <- function(table, room = if (table$wide) 135 else 62) {
  wraps <- table$columns$align == "wrap"
  if (!any(wraps)) {
    return(rep(1, nrow(table$cells)))
  }
  length_of <- apply(rbind(table$columns$head, as.matrix(table$cells)), 2, nchar)
  left <- room - sum(apply(length_of[, !wraps, drop = FALSE], 2, max) + 2)
  weight <- table$columns$weight[wraps]
  width <- pmax(8, left * weight / sum(weight))
  lines <- ceiling(t(length_of[-1, wraps, drop = FALSE]) / width)
  pmax(1, apply(lines, 2, max))
}

# What a letter and a gap between columns take in the type of tables, in points: about, for it is LaTeX that
# sets them.
LETTER_WIDTH <- 3.9
COLUMN_GAP <- 9

#' About how wide a table is in the type of tables
#'
#' @param table as from `new_table`, without columns of several lines
#' @return points
natural_width <- function(table) {
  heads <- vapply(strsplit(table$columns$head, "\n", fixed = TRUE), function(lines) max(nchar(lines), 0), 0)
  heads[table$columns$span != 1] <- 0
  cells <- as.matrix(table$cells)
  lines_of <- strsplit(as.character(cells), "\n", fixed = TRUE)
  letters_of <- matrix(vapply(lines_of, function(lines) max(nchar(lines), 0), 0), nrow(cells), ncol(cells))
  longest <- pmax(apply(letters_of + nchar(table$marks), 2, max, 0), heads)
  sum(longest) * LETTER_WIDTH + (ncol(cells) - 1) * COLUMN_GAP
}

#' One table of a page as LaTeX
#'
#' @param table as from `new_table`
#' @param continued whether it goes on from a page before
#' @param last whether the notes stand under it
#' @return one text
latex_float <- function(table, continued, last) {
  # What would be less than seven points in one column spans both.
  wide <- table$wide || (!any(table$columns$align == "wrap") && natural_width(table) > 265)
  float <- if (wide) "table*" else "table"
  notes <- if (last) table$notes
  caption <- latex_escape(sentence(paste0(table$caption, if (continued) " (continued)")))
  paste(c(
    sprintf("\\begin{%s}[tp]", float),
    if (continued) "\\ContinuedFloat",
    sprintf("\\caption{%s}", caption),
    if (!continued) sprintf("\\label{table:%s}", table$id),
    "\\begin{fittedtable}",
    latex_tabular(table),
    "\\end{fittedtable}",
    if (length(notes) > 0) c("\\begin{tablenotes}", latex_notes(notes), "\\end{tablenotes}"),
    sprintf("\\end{%s}", float)
  ), collapse = "\n")
}

#' The notes under a table as LaTeX
#'
#' @param notes texts; the names of those that are marked are their letters
#' @return character vector of lines
latex_notes <- function(notes) {
  letter <- names(notes)
  if (is.null(letter)) {
    letter <- rep("", length(notes))
  }
  mark <- ifelse(letter == "", "", sprintf("\\textsuperscript{%s}\\,", letter))
  paste0(mark, latex_escape(notes), "\\enspace ")
}

#' The cells of a table as a LaTeX tabular
#'
#' @param table as from `new_table`
#' @return character vector of lines
latex_tabular <- function(table) {
  columns <- table$columns
  wraps <- columns$align == "wrap"
  rows <- latex_rows(table)
  weight <- columns$weight / mean(columns$weight[wraps])
  spec <- ifelse(wraps, sprintf("W{%.4f}", weight),
                 c(left = "l", right = "r", decimal = "r", centre = "c")[columns$align])
  close <- ifelse(columns$span == 0, "@{~}", "")
  environment <- if (any(wraps)) c("tabularx}{\\linewidth", "tabularx") else c("tabular", "tabular")
  c(
    sprintf("\\begin{%s}{@{}%s@{}}", environment[[1]], paste0(close, spec, collapse = "")),
    "\\toprule",
    latex_spanners(columns$spanner),
    latex_heads(columns$head, columns),
    "\\midrule",
    rows,
    "\\bottomrule",
    sprintf("\\end{%s}", environment[[2]])
  )
}

# Rows of a group that no page's end parts.
MOST_TOGETHER <- 15

#' The rows of a table as LaTeX
#'
#' @param table as from `new_table`
#' @param together whether no page ends within a group, but for those that would leave much of a page empty
#' @return lines
latex_rows <- function(table, together = FALSE) {
  heads <- table$head_rows
  # The last row of a group is before the first of the next.
  holds <- together & any(table$group_starts) & !c(table$group_starts[-1], TRUE)[seq_along(heads)]
  group <- cumsum(table$group_starts)
  holds <- holds & tabulate(group + 1)[group + 1] <= MOST_TOGETHER
  rows <- ifelse(heads, apply(as.matrix(table$cells), 1, latex_heads, columns = table$columns),
                 paste0(apply(latex_cells(table), 1, paste, collapse = " & "),
                        ifelse(holds, " \\\\*", " \\\\")))
  before <- ifelse(!table$group_starts | seq_along(rows) == 1, "", "\\addlinespace[3pt]\n")
  before[heads] <- "\\midrule\n"
  paste0(before, rows, ifelse(heads, "\n\\midrule", ""))
}

#' A row of headings
#'
#' @param heads texts, one for each column; they may be of several lines
#' @param columns of the table
#' @return one line
latex_heads <- function(heads, columns) {
  text <- vapply(strsplit(heads, "\n", fixed = TRUE), function(lines) {
    text <- paste(latex_escape(lines), collapse = "\\\\")
    if (length(lines) > 1) sprintf("\\shortstack{%s}", text) else text
  }, "")
  plain <- columns$span == 1 & columns$align %in% c("left", "wrap")
  text <- ifelse(plain, text, sprintf("\\multicolumn{%d}{c}{%s}", as.integer(pmax(columns$span, 1)), text))
  paste0(paste(text[columns$span > 0], collapse = " & "), " \\\\")
}

#' The headings that span several columns
#'
#' @param spanner one text for each column; "" where there is none; equal neighbours share one
#' @return lines, none where no column has one
latex_spanners <- function(spanner) {
  if (all(spanner == "")) {
    return(character())
  }
  runs <- rle(spanner)
  last <- cumsum(runs$lengths)
  first <- last - runs$lengths + 1
  cells <- ifelse(runs$values == "", strrep(" & ", runs$lengths - 1),
                  sprintf("\\multicolumn{%d}{c}{%s}", runs$lengths, latex_escape(runs$values)))
  rules <- sprintf("\\cmidrule(lr){%d-%d}", first, last)[runs$values != ""]
  c(paste0(paste(cells, collapse = " & "), " \\\\"), paste(rules, collapse = ""))
}

#' The cells of a table, each as LaTeX
#'
#' @param table as from `new_table`
#' @return matrix of texts
latex_cells <- function(table) {
  cells <- as.matrix(table$cells)
  result <- matrix("", nrow(cells), ncol(cells))
  for (column in seq_len(ncol(cells))) {
    align <- table$columns$align[[column]]
    text <- if (align == "wrap") latex_breaking(cells[, column]) else latex_lines(cells[, column])
    mark <- table$marks[, column]
    marked <- ifelse(mark == "", "", sprintf("\\textsuperscript{%s}", latex_escape(mark)))
    if (align == "decimal") {
      marked <- ifelse(mark == "", "", sprintf("\\rlap{%s}", marked))
    }
    pad <- if (align == "decimal") latex_padding(cells[, column]) else ""
    result[, column] <- paste0(text, marked, pad)
  }
  result
}

#' Texts of which some are of several lines
#'
#' @param text texts
#' @return texts for LaTeX
latex_lines <- function(text) {
  lines <- strsplit(as.character(text), "\n", fixed = TRUE)
  vapply(lines, function(one) {
    told <- paste(latex_escape(one), collapse = "\\\\")
    if (length(one) > 1) sprintf("\\begin{tabular}[t]{@{}l@{}}%s\\end{tabular}", told) else told
  }, "")
}

#' Space that aligns numbers of a column at their decimal points
#'
#' @param text numbers as texts; other texts are not padded
#' @return for each the invisible digits that stand after it
latex_padding <- function(text) {
  numeric <- grepl("[0-9]$", text)
  fraction <- ifelse(grepl(".", text, fixed = TRUE), sub("^[^.]*", "", text), "")
  longest <- fraction[numeric][which.max(nchar(fraction[numeric]))]
  missing <- if (length(longest) == 1) substring(longest, nchar(fraction) + 1) else ""
  ifelse(numeric & missing != "", sprintf("\\phantom{%s}", missing), "")
}

#' Text for LaTeX that may break within long words
#'
#' Words of more than twenty letters, as hashes are, may break after every eighth; hashes stand in the
#' typewriter font.
#'
#' @param text texts
#' @return texts
latex_breaking <- function(text) {
  vapply(strsplit(text, " ", fixed = TRUE), function(all_words) {
    words_of <- vapply(all_words, function(word) {
      if (nchar(word) <= 20) {
        return(latex_escape(word))
      }
      pieces <- regmatches(word, gregexpr(".{1,8}", word))[[1]]
      broken <- paste(latex_escape(pieces), collapse = "\\allowbreak{}")
      if (grepl("[0-9a-f]{32}", word)) sprintf("\\texttt{%s}", broken) else broken
    }, "")
    paste(words_of, collapse = " ")
  }, "")
}

#' A figure as LaTeX
#'
#' @param path of the figure, relative to the document
#' @param id what refers to it
#' @param caption text
#' @return one text; the document decides by its width whether it spans both columns
latex_figure <- function(path, id, caption) {
  sprintf("\n\\paperfigure{%s}{%s}{%s}\n", path, latex_escape(caption), paste0("figure:", id))
}
