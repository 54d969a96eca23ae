# From tables and texts to a web page that is one file and needs no network.

# How columns stand that are no numbers, and that belong to the one before.
COLUMN_STYLES <- c(left = "text-align: left; white-space: normal;", close = "padding-left: 0;")

#' Text for HTML, in which nothing is markup but the links of numbers
#'
#' @param text texts, which may hold some from `linked`
#' @return texts
html_text <- function(text) {
  write_links(text, html_escape, function(shown, to) {
    sprintf("<a class=\"value\" href=\"#%s\">%s</a>", html_escape(to), shown)
  })
}

#' Text for HTML, in which nothing is markup
#'
#' @param text texts
#' @return texts
html_escape <- function(text) {
  text <- gsub("[[:cntrl:]]+", " ", enc2utf8(unlinked(as.character(text))))
  for (one in list(c("&", "&amp;"), c("<", "&lt;"), c(">", "&gt;"), c("\"", "&quot;"), c("'", "&#39;"))) {
    text <- gsub(one[[1]], one[[2]], text, fixed = TRUE)
  }
  text
}

#' A table as HTML
#'
#' Its rows can be sorted unless headings stand among them.  A heading of a row that is empty repeats the one
#' above, and the page's script gives it the text all the same, hidden until the rows are sorted.
#'
#' @param table as from `new_table`
#' @return one text
html_table <- function(table) {
  paste(c(
    sprintf("<figure class=\"table\" id=\"table-%s\">", table$id),
    sprintf("<figcaption><b>Table <span class=\"number\" data-of=\"table-%s\"></span>.</b> %s</figcaption>",
            table$id, html_text(sentence(table$caption))),
    sprintf("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table: %s\">",
            html_escape(table$caption)),
    sprintf("<table class=\"%s\">",
            paste(c(if (any(table$head_rows)) "plain" else "sortable", if (nrow(table$columns) > 12) "dense",
                    column_classes(table$columns)), collapse = " ")),
    html_head(table$columns), "<tbody>", html_rows(table), "</tbody>", "</table>", "</div>",
    html_notes(table$notes),
    "</figure>"
  ), collapse = "\n")
}

#' How the columns of a table stand, said once for all cells by their numbers: as `style_columns` reads it
#'
#' Most cells are numbers, and these stand at the right without a word, as headings of rows do at the left.
#'
#' @param columns of the table
#' @return classes of the table such as "left-2"
column_classes <- function(columns) {
  later <- seq_len(nrow(columns)) > 1
  c(sprintf("left-%d", which(columns$align == "left" & later)), sprintf("close-%d", which(columns$span == 0)))
}

#' Gives the columns of a page's tables their styles
#'
#' @param page one text
#' @return the page, with the styles of the columns that it has in the place of `/*columns*/`
style_columns <- function(page) {
  form <- "(?<= )(left|close)-[0-9]+(?=[ \"])"
  used <- unique(regmatches(page, gregexpr(form, page, perl = TRUE))[[1]])
  rules <- sprintf(".%s td:nth-child(%s) { %s }", used, sub(".*-", "", used),
                   COLUMN_STYLES[sub("-.*", "", used)])
  sub("/*columns*/", paste(rules, collapse = "\n"), page, fixed = TRUE)
}

#' The head of a table
#'
#' @param columns of the table
#' @return lines
html_head <- function(columns) {
  spanners <- if (any(columns$spanner != "")) {
    runs <- rle(columns$spanner)
    c("<tr>", ifelse(runs$values == "", sprintf("<td colspan=\"%d\"></td>", runs$lengths),
                     sprintf("<th colspan=\"%d\" scope=\"colgroup\">%s</th>", runs$lengths,
                             html_escape(runs$values))), "</tr>")
  }
  own <- which(columns$span > 0)
  heads <- html_heads(as.integer(columns$span[own]), "col",
                      sprintf(" data-column=\"%d\" class=\"%s\"", own - 1L,
                              ifelse(columns$span[own] > 1, "centre", columns$align[own])),
                      html_head_text(columns$head[own]))
  c("<thead>", spanners, "<tr class=\"heads\">", heads, "</tr>", "</thead>")
}

#' Headings of columns; one without a text is an empty cell
#'
#' @param span numbers of columns
#' @param scope "col" or "colgroup"
#' @param more further attributes
#' @param text HTML
#' @return HTML
html_heads <- function(span, scope, more, text) {
  across <- ifelse(span == 1, "", sprintf(" colspan=\"%d\"", span))
  ifelse(text == "", sprintf("<td%s></td>", across),
         sprintf("<th scope=\"%s\"%s%s>%s</th>", scope, across, more, text))
}

#' A heading, in which lines may end
#'
#' @param text texts
#' @return HTML
html_head_text <- function(text) {
  vapply(strsplit(text, "\n", fixed = TRUE), function(lines) paste(html_escape(lines), collapse = "<br>"), "")
}

#' The rows of a table
#'
#' @param table as from `new_table`
#' @return lines
html_rows <- function(table) {
  cells <- as.matrix(table$cells)
  columns <- table$columns
  starts <- table$group_starts
  class <- ifelse(columns$align %in% c("centre", "wrap"), sprintf(" class=\"%s\"", columns$align), "")
  vapply(seq_len(nrow(cells)), function(i) {
    if (table$head_rows[[i]]) {
      heads <- html_heads(as.integer(columns$span), "colgroup", "", html_head_text(cells[i, ]))
      return(paste0("<tr class=\"group\">", paste(heads[columns$span > 0], collapse = ""), "</tr>"))
    }
    # A cell may break where the table would be wider than the page.
    text <- html_escape(gsub(NO_BREAK, " ", cells[i, ], fixed = TRUE))
    text <- ifelse(columns$align == "wrap", html_breaking(text), text)
    linked <- table$sources[i, ] != "" & text != "" & cells[i, ] != EM_DASH
    shared <- shares_links(cells[i, ], ifelse(linked, table$sources[i, ], ""))
    text <- ifelse(linked & !shared, sprintf("<a href=\"#%s\">%s</a>", table$sources[i, ], text), text)
    text <- paste0(text, ifelse(table$marks[i, ] == "", "",
                                sprintf("<sup>%s</sup>", html_escape(table$marks[i, ]))))
    repeats <- any(starts) && !starts[[i]]
    tag <- c(if (text[[1]] == "" && !repeats) "td" else "th", rep("td", length(text) - 1))
    paste0("<tr", if (starts[[i]]) " class=\"group\"", if (any(shared)) " data-links", ">",
           paste0("<", tag, ifelse(tag == "th", " scope=\"row\"", ""),
                  class, ">", text, "</", tag, ">",
                  collapse = ""), "</tr>")
  }, "")
}

#' Which cells of a row have the link of the one before, so that it need not be written again
#'
#' The page's script gives it to every cell with a digit that follows a link: so that is done only in rows in
#' which no such cell is meant to be without one.
#'
#' @param text of the cells
#' @param sources what they link to; "" for none
#' @return logical vector
shares_links <- function(text, sources) {
  own <- which(sources != "")
  after <- seq_along(text) > min(own, length(text))
  if (length(own) < 2 || any(after & sources == "" & grepl("[0-9]", text))) {
    return(rep(FALSE, length(text)))
  }
  found <- rep(FALSE, length(text))
  found[own[-1]] <- sources[own[-1]] == sources[own[-length(own)]] & grepl("[0-9]", text[own[-1]])
  found
}

#' Leaves out of a page what a browser knows without it: the ends of cells, rows and items
#'
#' @param page one text
#' @return the page
without_ends <- function(page) {
  gsub("</(td|th|tr|li)>(?=\\s*(<(td|th|tr|li)[ >]|</(tr|thead|tbody|table|ul|ol)>))", "", page, perl = TRUE)
}

#' Text in which hashes and other long words may break
#'
#' @param text escaped texts
#' @return HTML
html_breaking <- function(text) {
  gsub("([0-9a-f]{32,})", "<code>\\1</code>", text)
}

#' The notes under a table
#'
#' @param notes texts; the names of those that are marked are their letters
#' @return lines
html_notes <- function(notes) {
  if (length(notes) == 0) {
    return(NULL)
  }
  letter <- if (is.null(names(notes))) rep("", length(notes)) else names(notes)
  sprintf("<p class=\"note\">%s%s</p>", ifelse(letter == "", "", sprintf("<sup>%s</sup> ", letter)),
          html_text(notes))
}

#' Gives the tables and figures of a page their numbers, in their order, wherever one is named
#'
#' @param page one text
#' @return the page
#' @section Errors: something is referred to that the page does not hold
number_floats <- function(page) {
  for (kind in c("table", "figure")) {
    found <- regmatches(page, gregexpr(sprintf("<figure class=\"[a-z]+\" id=\"%s-[^\"]+\"", kind), page))[[1]]
    ids <- sub(".*id=\"([^\"]+)\"", "\\1", found)
    for (i in seq_along(ids)) {
      page <- gsub(sprintf("<span class=\"number\" data-of=\"%s\"></span>", ids[[i]]), i, page, fixed = TRUE)
    }
  }
  lost <- regmatches(page, regexpr("data-of=\"[^\"]+\"", page))
  if (length(lost) > 0) {
    stop("the page refers to what it does not hold: ", lost, call. = FALSE)
  }
  page
}

#' The way from the folder of a file to another path
#'
#' @param out the file
#' @param path a path; both are absolute, or relative to the same folder
#' @return relative path, of forward slashes
relative_path <- function(out, path) {
  split <- function(x) strsplit(normalizePath(x, "/", mustWork = FALSE), "/", fixed = TRUE)[[1]]
  dir.create(dirname(out), showWarnings = FALSE, recursive = TRUE)
  from <- split(dirname(out))
  to <- split(path)
  both <- seq_len(min(length(from), length(to)))
  shared <- sum(cumprod(from[both] == to[both]))
  paste(c(rep("..", length(from) - shared), to[-seq_len(shared)]), collapse = "/")
}
