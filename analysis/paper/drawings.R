# Drawings within a web page, in as few letters as they need: of many figures they are most of the page.

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
  svg <- without_empty_frames(sub("<svg [^>]*>", "<svg>", svg))
  svg <- paste(c(own, strsplit(svg, "<svg>", fixed = TRUE)[[1]][-1]), collapse = "")
  for (frame in unique(regmatches(svg, gregexpr("(?<=clipPath id=')[^']+", svg, perl = TRUE))[[1]])) {
    named <- paste0(id, "-", nchar(sub(paste0(frame, "'.*"), "", svg)))
    svg <- gsub(frame, named, svg, fixed = TRUE)
  }
  svg <- gsub("(?s)<defs>\\s*(<clipPath .*?</clipPath>)\\s*</defs>", "\\1", svg, perl = TRUE)
  # What the points tell is a line for each, of which the page's script makes places to point at.
  svg <- gsub("<circle cx='([0-9.]+)' cy='([0-9.]+)'><title>(.*?)</title></circle>", "\\1 \\2 \\3", svg)
  parts <- strsplit(sub("(?s)<g class='told'>\n(.*?)\n</g>", "\u0001\\1\u0001", svg, perl = TRUE),
                    "\u0001", fixed = TRUE)[[1]]
  if (length(parts) == 3) {
    parts[[2]] <- paste0("<desc class='told'>", front_coded(parts[[2]]), "</desc>")
  }
  short_texts(shapes_together(gsub("\n\\s*", "\n", paste(parts, collapse = ""))))
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
