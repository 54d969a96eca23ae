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
#' above holds the text all the same, hidden until the rows are sorted.
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
  above <- ""
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
      text[[1]] <- sprintf("<span class=\"repeat\">%s</span>", above)
    } else {
      above <<- text[[1]]
    }
    tag <- c("th", rep("td", length(text) - 1))
    if (text[[1]] == "") {
      tag[[1]] <- "td"
    }
    paste0(if (starts[[i]]) "<tr class=\"group\">" else "<tr>",
           paste0("<", tag, ifelse(tag == "th", " scope=\"row\"", ""), " class=\"", columns$align,
                  ifelse(columns$span == 0, " close", ""), "\">", text, "</", tag, ">", collapse = ""),
                  "</tr>")
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

#' A figure as HTML: the drawing within the page, and links to its files
#'
#' @param path of the figure without its ending
#' @param link the same, from where the page lies
#' @param id what refers to it
#' @param caption text
#' @param seen text that says what is seen, for those who do not see it
#' @return one text
html_figure <- function(path, link, id, caption, seen) {
  files <- sprintf("<a href=\"%s.%s\">%s</a>", html_escape(link), c("csv", "svg", "pdf"),
                   c("data", "SVG", "PDF"))
  paste(c(
    sprintf("<figure class=\"drawing\" id=\"figure-%s\">", id),
    sprintf("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing %s\">",
            html_escape(id)),
    inline_svg(paste0(path, ".svg"), id, seen),
    "</div>",
    sprintf(paste0("<figcaption><b>Figure <span class=\"number\" data-of=\"figure-%s\"></span>.</b> %s ",
                   "<span class=\"files\">(%s; <button class=\"zoom\" type=\"button\">enlarge</button>)",
                   "</span></figcaption>"),
            id, html_text(sentence(caption)), paste(files, collapse = ", ")),
    "</figure>"
  ), collapse = "\n")
}

#' A drawing within a page
#'
#' Its frames get names that no other drawing of the page has.
#'
#' @param path of the SVG, as `write_figure` writes it
#' @param id of the figure
#' @param seen text that says what is seen
#' @return one text
#' @section Errors: no such file
inline_svg <- function(path, id, seen) {
  svg <- sub("^.*?(<svg )", "\\1", read_text(path), perl = TRUE)
  svg <- gsub("(?s)<defs>\\s*<style.*?</style>\\s*</defs>|<style[^>]*>.*?</style>", "", svg, perl = TRUE)
  box <- regmatches(svg, regexpr("viewBox='[^']*'", svg))
  width <- as.numeric(strsplit(gsub("[^0-9. ]", "", box), " ")[[1]][[3]])
  own <- sprintf("<svg class=\"svglite%s\" role=\"img\" aria-label=\"%s\" %s>",
                 if (width > 300) " wide" else "",
                 html_escape(seen), box)
  svg <- sub("<svg [^>]*>", "<svg>", svg)
  svg <- paste(c(own, strsplit(svg, "<svg>", fixed = TRUE)[[1]][-1]), collapse = "")
  for (frame in unique(regmatches(svg, gregexpr("(?<=clipPath id=')[^']+", svg, perl = TRUE))[[1]])) {
    named <- paste0(id, "-", nchar(sub(paste0(frame, "'.*"), "", svg)))
    svg <- gsub(frame, named, svg, fixed = TRUE)
  }
  # What the points tell is a line for each, of which the page's script makes places to point at.
  svg <- gsub("<circle cx='([0-9.]+)' cy='([0-9.]+)'><title>(.*?)</title></circle>", "\\1 \\2 \\3", svg)
  parts <- strsplit(sub("(?s)<g class='told'>\n(.*?)\n</g>", "\u0001\\1\u0001", svg, perl = TRUE),
                    "\u0001", fixed = TRUE)[[1]]
  if (length(parts) == 3) {
    parts[[2]] <- paste0("<desc class='told'>", front_coded(parts[[2]]), "</desc>")
  }
  shapes_together(gsub("\n\\s*", "\n", paste(parts, collapse = "")))
}

#' What points tell, each with the number of letters that it has in common with the one before
#'
#' Neighbours are mostly runs of one workload in one environment.
#'
#' @param text lines of two coordinates and words
#' @return lines of two coordinates, that number, and the rest of the words
front_coded <- function(text) {
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  place <- sub("^(\\S+ \\S+) .*", "\\1", lines)
  words <- substring(lines, nchar(place) + 2)
  letters <- strsplit(words, "", fixed = TRUE)
  shared <- vapply(seq_along(letters), function(i) {
    if (i == 1) {
      return(0)
    }
    at <- seq_len(min(lengths(letters[c(i - 1, i)])))
    sum(cumprod(letters[[i]][at] == letters[[i - 1]][at]))
  }, 0)
  paste(place, shared, substring(words, shared + 1), collapse = "\n")
}

#' Puts shapes of one style that follow one another into one path
#'
#' @param svg text with an element on each line
#' @return the same drawing in fewer letters
shapes_together <- function(svg) {
  lines <- strsplit(svg, "\n", fixed = TRUE)[[1]]
  form <- "^<polygon points='([^']*)' style='([^']*)'/>$"
  is <- grepl(form, lines)
  style <- ifelse(is, sub(form, "\\2", lines), "")
  starts <- !is | c(TRUE, style[-1] != style[-length(style)])
  of_run <- cumsum(starts)
  for (at in split(which(is), of_run[is])) {
    drawn <- vapply(strsplit(trimws(sub(form, "\\1", lines[at])), " +"), path_of, "")
    lines[at[-1]] <- NA
    lines[[at[[1]]]] <- sprintf("<path d='%s' style='%s'/>", paste(drawn, collapse = ""), style[[at[[1]]]])
  }
  paste(lines[!is.na(lines)], collapse = "\n")
}

#' A closed path through points, told from point to point
#'
#' @param points texts such as "70.1,56.8"
#' @return text
path_of <- function(points) {
  at <- matrix(as.numeric(unlist(strsplit(points, ",", fixed = TRUE))), ncol = 2, byrow = TRUE)
  number <- function(x) sub("^(-?)0[.]", "\\1.", format(round(x, 1), trim = TRUE, drop0trailing = TRUE))
  step <- diff(at)
  gsub(" -", "-", paste0("M", number(at[1, 1]), " ", number(at[1, 2]), "l",
                         paste(number(step[, 1]), number(step[, 2]), collapse = " "), "z"), fixed = TRUE)
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
