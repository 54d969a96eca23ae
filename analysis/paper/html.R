# From tables and texts to a web page that is one file and needs no network.

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
#' Its rows can be sorted unless headings stand among them.  A cell that is empty because it repeats the one
#' above is marked, and the page's script gives it the text all the same, hidden until the rows are sorted.
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
    sprintf("<table class=\"%s%s\">", if (any(table$head_rows)) "plain" else "sortable",
            if (nrow(table$columns) > 12) " dense" else ""),
    html_head(table$columns), "<tbody>", html_rows(table), "</tbody>", "</table>", "</div>",
    html_notes(table$notes),
    "</figure>"
  ), collapse = "\n")
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
  vapply(seq_len(nrow(cells)), function(i) {
    if (table$head_rows[[i]]) {
      heads <- html_heads(as.integer(columns$span), "colgroup", "", html_head_text(cells[i, ]))
      return(paste0("<tr class=\"group\">", paste(heads[columns$span > 0], collapse = ""), "</tr>"))
    }
    # A cell may break where the table would be wider than the page.
    text <- html_escape(gsub(NO_BREAK, " ", cells[i, ], fixed = TRUE))
    text <- ifelse(columns$align == "wrap", html_breaking(text), text)
    linked <- table$sources[i, ] != "" & text != "" & cells[i, ] != EM_DASH
    text <- ifelse(linked, sprintf("<a href=\"#%s\">%s</a>", table$sources[i, ], text), text)
    text <- paste0(text, ifelse(table$marks[i, ] == "", "",
                                sprintf("<sup>%s</sup>", html_escape(table$marks[i, ]))))
    if (any(starts) && !starts[[i]] && cells[i, 1] == "") {
      text[[1]] <- "<span class=\"repeat\"></span>"
    }
    tag <- c("th", rep("td", length(text) - 1))
    if (text[[1]] == "") {
      tag[[1]] <- "td"
    }
    # Most cells are numbers, and these stand at the right without a class that says so.
    class <- trimws(paste(ifelse(columns$align %in% c("right", "decimal"), "", columns$align),
                          ifelse(columns$span == 0, "close", "")))
    paste0(if (starts[[i]]) "<tr class=\"group\">" else "<tr>",
           paste0("<", tag, ifelse(tag == "th", " scope=\"row\"", ""),
                  ifelse(class == "", "", sprintf(" class=\"%s\"", class)), ">", text, "</", tag, ">",
                  collapse = ""), "</tr>")
  }, "")
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

#' Gives what is drawn alike in a page one name, by which it is styled once
#'
#' @param page one text
#' @return the page, with these styles in the place of `<!--drawn-->`
share_styles <- function(page) {
  styles <- unique(regmatches(page, gregexpr(" style='[^']*'", page))[[1]])
  for (i in seq_along(styles)) {
    page <- gsub(styles[[i]], sprintf(" class='v%d'", i), page, fixed = TRUE)
  }
  rules <- sprintf(".svglite .v%d{%s}", seq_along(styles), gsub("; *'$|'$", "", sub("^ style='", "", styles)))
  sub("/*drawn*/", paste(gsub("([:;]) ", "\\1", rules), collapse = "\n"), page, fixed = TRUE)
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
