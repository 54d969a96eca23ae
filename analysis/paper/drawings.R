# Drawings within a web page, in as few letters as they need: of many figures they would be most of the page.

# Between these marks a drawing stands until the page is packed.  No text of a page can hold one, since all
# are escaped, and no drawing the character that parts the packed ones, which XML does not know.
DRAWING_MARKS <- c("<!--drawn-->", "<!--/drawn-->")
BETWEEN_DRAWINGS <- "\x1e"

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
    sprintf("<noscript><img src=\"%s.svg\" alt=\"%s\"></noscript>", html_escape(link), html_escape(seen)),
    paste0(DRAWING_MARKS[[1]], inline_svg(paste0(path, ".svg"), id, seen), DRAWING_MARKS[[2]]),
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
  svg <- without_empty_frames(sub("<svg [^>]*>", "<svg>", svg))
  svg <- paste(c(own, strsplit(svg, "<svg>", fixed = TRUE)[[1]][-1]), collapse = "")
  for (frame in unique(regmatches(svg, gregexpr("(?<=clipPath id=')[^']+", svg, perl = TRUE))[[1]])) {
    named <- paste0(id, "-", nchar(sub(paste0(frame, "'.*"), "", svg)))
    svg <- gsub(frame, named, svg, fixed = TRUE)
  }
  svg <- gsub("(?s)<defs>\\s*(<clipPath .*?</clipPath>)\\s*</defs>", "\\1", svg, perl = TRUE)
  # What the points tell is a line for each, which the page's script reads.
  svg <- gsub("<circle cx='([0-9.]+)' cy='([0-9.]+)'><title>(.*?)</title></circle>", "\\1 \\2 \\3", svg)
  svg <- sub("(?s)<g class='told'>\n(.*?)\n</g>", "<desc class='told'>\\1</desc>", svg, perl = TRUE)
  short_texts(shapes_together(gsub("\n\\s*", "\n", svg)))
}

#' Packs the drawings of a page into one text of a fifth of their letters, from which its script draws them
#'
#' Without scripts the files stand in their places.
#'
#' @param page one text
#' @return the page, with what stood between marks, in its order and parted by BETWEEN_DRAWINGS, as a stream
#'   of zlib in base64 in the place of `<!--drawings-->`
pack_drawings <- function(page) {
  parts <- strsplit(page, DRAWING_MARKS[[1]], fixed = TRUE)[[1]]
  ends <- regexpr(DRAWING_MARKS[[2]], parts[-1], fixed = TRUE)
  stopifnot(ends > 0)
  drawings <- substr(parts[-1], 1, ends - 1)
  page <- paste(c(parts[[1]], substring(parts[-1], ends + nchar(DRAWING_MARKS[[2]]))), collapse = "")
  packed <- if (length(drawings) > 0) {
    jsonlite::base64_enc(memCompress(enc2utf8(paste(drawings, collapse = BETWEEN_DRAWINGS)), "gzip"))
  }
  sub("<!--drawings-->", paste0("<script type=\"text/plain\" id=\"drawings\">", packed, "</script>"), page,
      fixed = TRUE)
}

#' Leaves out frames in which nothing is drawn
#'
#' @param svg text as svglite writes it
#' @return the same drawing
without_empty_frames <- function(svg) {
  svg <- gsub("<g clip-path='url\\(#[^)]+\\)'>\\s*</g>\\s*", "", svg, perl = TRUE)
  form <- "<defs>\\s*<clipPath id='([^']+)'>\\s*<rect [^>]*/>\\s*</clipPath>\\s*</defs>\\s*"
  frames <- regmatches(svg, gregexpr(form, svg, perl = TRUE))[[1]]
  for (frame in frames) {
    name <- sub(paste0("(?s)", form), "\\1", frame, perl = TRUE)
    if (!grepl(sprintf("url(#%s)", name), svg, fixed = TRUE)) {
      svg <- sub(frame, "", svg, fixed = TRUE)
    }
  }
  svg
}

#' Puts lines and shapes of one style that follow one another into one path
#'
#' @param svg text with an element on each line
#' @return the same drawing in fewer letters
shapes_together <- function(svg) {
  lines <- strsplit(svg, "\n", fixed = TRUE)[[1]]
  lines <- sub("^<line x1='([^']*)' y1='([^']*)' x2='([^']*)' y2='([^']*)' style='([^']*)'/>$",
               "<polyline points='\\1,\\2 \\3,\\4 ' style='\\5'/>", lines)
  form <- "^<(polygon|polyline) points='([^']*)' style='([^']*)'/>$"
  is <- grepl(form, lines)
  # What is filled alone need not look the same together with what follows.
  style <- ifelse(is, sub(form, "\\1 \\3", lines), "")
  starts <- !is | c(TRUE, style[-1] != style[-length(style)])
  of_run <- cumsum(starts)
  for (at in split(which(is), of_run[is])) {
    drawn <- vapply(strsplit(trimws(sub(form, "\\2", lines[at])), " +"), path_of, "",
                    closed = startsWith(style[[at[[1]]]], "polygon"))
    lines[at[-1]] <- NA
    lines[[at[[1]]]] <- sprintf("<path d='%s' style='%s'/>", paste(drawn, collapse = ""),
                                sub("^\\w+ ", "", style[[at[[1]]]]))
  }
  paste(lines[!is.na(lines)], collapse = "\n")
}

#' A path through points, told from point to point
#'
#' @param points texts such as "70.1,56.8"
#' @param closed whether it ends where it began
#' @return text
path_of <- function(points, closed) {
  at <- matrix(as.numeric(unlist(strsplit(points, ",", fixed = TRUE))), ncol = 2, byrow = TRUE)
  number <- function(x) sub("^(-?)0[.]", "\\1.", format(round(x, 1), trim = TRUE, drop0trailing = TRUE))
  step <- diff(at)
  gsub(" -", "-", paste0("M", number(at[1, 1]), " ", number(at[1, 2]), "l",
                         paste(number(step[, 1]), number(step[, 2]), collapse = " "), if (closed) "z"),
       fixed = TRUE)
}

#' Says in fewer letters where texts are set, and how long
#'
#' A text is set as long as it was measured, so that none runs into another in a reader's own font; of at most
#' four letters none does.  What it is anchored at is part of its style, which texts share.
#'
#' @param svg text
#' @return the same drawing
short_texts <- function(svg) {
  svg <- gsub(" lengthAdjust='spacingAndGlyphs'", "", svg, fixed = TRUE)
  svg <- gsub(" textLength='[^']*'>([^<]{1,4}</text>)", ">\\1", svg)
  svg <- gsub("textLength='([0-9]+[.]?[0-9]?)[0-9]*px'", "textLength='\\1'", svg)
  gsub("text-anchor='(\\w+)' style='", "style='text-anchor: \\1;", svg)
}
