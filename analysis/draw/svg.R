# Figures as SVG: drawn by svglite, with places that say what is there.

# How far around a point it can be pointed at, in points.
REACH <- 4

#' An SVG in which points say what they are
#'
#' @param svg text, as svglite writes it
#' @param points as from `told_points`
#' @return text
told_svg <- function(svg, points) {
  spots <- if (nrow(points) > 0) {
    c("<g class='told'>",
      sprintf("<circle cx='%.1f' cy='%.1f'><title>%s</title></circle>", points$x, points$y,
              xml_escape(points$words)), "</g>")
  }
  style <- sprintf("<style type='text/css'>.svglite .told circle{r:%dpx;stroke:none;%s}</style>", REACH,
                   "pointer-events:all")
  svg <- sub("</svg>", paste0(paste(c(style, spots), collapse = "\n"), "\n</svg>"), svg, fixed = TRUE)
  # A tenth of a point is finer than any screen.
  finer <- "(='[^':]*[0-9][.][0-9])[0-9](?=')|([0-9][.][0-9])[0-9](?=[, ][0-9'])"
  gsub(finer, "\\1\\2", gsub(" />", "/>", svg), perl = TRUE)
}

#' Text within XML
#'
#' @param text texts
#' @return texts
xml_escape <- function(text) {
  for (one in list(c("&", "&amp;"), c("<", "&lt;"), c(">", "&gt;"))) {
    text <- gsub(one[[1]], one[[2]], text, fixed = TRUE)
  }
  gsub("[[:cntrl:]]+", " ", text)
}
