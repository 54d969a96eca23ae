# The font of all figures, whatever a system calls its plain one (scripts/packages.txt).
FONT <- "DejaVu Sans"

# The value of code; an error where the disk was full for a file, of which R only warns as it closes it.
whole <- function(code) {
  withCallingHandlers(code, warning = function(w) {
    if (identical(as.list(conditionCall(w))[1], list(quote(close.connection)))) {
      stop(conditionMessage(w), call. = FALSE)
    }
  })
}

#' Write a file, whole or not at all, so that it lasts
#'
#' @param write writes it under another name
put_file <- function(path, write) {
  part <- paste0(path, ".part")
  whole(write(part))
  # Where sync is missing, nothing but a power cut is the worse for it.
  sync <- function(name) {
    suppressWarnings(system2("sync", c("--", shQuote(name)), stdout = FALSE, stderr = FALSE))
  }
  sync(part)
  if (!file.rename(part, path)) stop(path, ": cannot be written", call. = FALSE)
  invisible(sync(dirname(path)))
}

#' The files that figures take their letters from, a line each: the family, its file, its SHA-256
font_files <- function() {
  faces <- lapply(c(FALSE, TRUE), function(bold) systemfonts::font_info(FONT, bold = bold))
  digest <- function(path) sub(" .*", "", system2("sha256sum", shQuote(path), stdout = TRUE))
  vapply(faces, function(face) {
    instead <- if (face$family != FONT) paste0(FONT, " is missing, and stands for it: ")
    paste0(instead, paste(face$family, basename(face$path), digest(face$path)))
  }, "")
}

# The documents of paper/: made in a copy, so that nothing half-made stands there and two can be made at once,
# and whole or not written at all.  Their bytes follow from the results.

#' @param rmd name of the document in paper/
#' @param out path of the PDF or page
#' @param title for the PDF's metadata, where the document does not write it itself
#' @param values what the document knows beside its own
#' @param params of the document
render_document <- function(root, rmd, out, title = "", values = list(), params = NULL) {
  ending <- sub(".*[.]", "", out)
  missing <- Filter(\(name) Sys.which(name) == "", c("pandoc", if (ending == "pdf") "pdflatex"))
  if (length(missing) > 0) {
    stop(paste(missing, collapse = " and "), " is not installed: run `make setup-paper`", call. = FALSE)
  }
  Sys.setenv(SOURCE_DATE_EPOCH = "0", TZ = "UTC", LC_ALL = "C.UTF-8")
  invisible(Sys.setlocale("LC_ALL", "C.UTF-8"))
  work <- tempfile("document-")
  dir.create(work)
  on.exit(unlink(work, recursive = TRUE))
  texts <- list.files(file.path(root, "paper"), full.names = TRUE, pattern = "[^f]$")
  file.copy(texts, work, recursive = TRUE)
  heads <- paste0("\\newcommand\\", c("papertitle", "papermark"), "{", c(title, ""), "}")
  writeLines(heads, file.path(work, "title.tex"))
  made <- whole(rmarkdown::render(file.path(work, rmd), paste0("bookdown::", ending, "_document2"),
                                  output_file = paste0("made.", ending), params = params, quiet = TRUE,
                                  envir = list2env(values, parent = globalenv())))
  if (ending == "html") {
    # The title is the page's only first heading.
    page <- paste(readLines(made, encoding = "UTF-8"), collapse = "\n")
    for (level in 5:0) {
      page <- gsub(paste0("<(/?)h", level, "([ >])"), paste0("<\\1h", level + 1, "\\2"), page)
    }
    whole(writeLines(page, made, useBytes = TRUE))
  }
  dir.create(dirname(out), recursive = TRUE, showWarnings = FALSE)
  put_file(out, function(part) {
    if (!file.copy(made, part, overwrite = TRUE)) stop(out, ": cannot be written", call. = FALSE)
  })
}

# A drawing of grid whose texts are all legible, whatever the labels of others hold.
make_labels_legible <- function(grob) {
  if (is.character(grob$label)) grob$label[] <- make_legible(grob$label, keep = "\n")
  for (parts in c("children", "grobs")) {
    if (length(grob[[parts]]) > 0) grob[[parts]][] <- lapply(grob[[parts]], make_labels_legible)
  }
  grob
}

#' Chunks without options that make knitr write LaTeX itself, so that figures are Markdown in both formats
#'
#' What code in the text gives, and a figure's caption, is plain unless it is marked as Markdown
#' (format.R).
#' Each figure is drawn once, on the device that it is for: letters of another one are of other widths.
set_chunks <- function() {
  web <- knitr::is_html_output()
  knitr::opts_chunk$set(echo = FALSE, message = FALSE, warning = FALSE, fig.width = if (web) 5 else 6.5)
  evaluate <- knitr::knit_hooks$get("evaluate.inline")
  knitr::knit_hooks$set(evaluate.inline = function(code, envir) {
    found <- evaluate(code, envir)
    if (is.numeric(found) || is.null(found)) found else as_markdown(plain(found))
  })
  plot <- knitr::knit_hooks$get("plot")
  knitr::knit_hooks$set(plot = function(x, options) {
    # knitr escapes what it puts in an attribute, and bookdown looks for references there too.
    if (web) options$fig.alt <- gsub("[@#\\\\[:cntrl:]]+", " ", options$fig.cap)
    options$fig.cap <- plain(options$fig.cap)
    plot(x, options)
  })
  registerS3method("knit_print", "ggplot", function(x, options, ...) {
    file <- knitr::fig_path(if (web) "svg" else "pdf", options)
    dir.create(dirname(file), recursive = TRUE, showWarnings = FALSE)
    width <- options$fig.width
    height <- options$fig.height
    if (web) svglite::svglite(file, width, height, bg = "transparent", system_fonts = list(sans = FONT))
    else grDevices::cairo_pdf(file, width, height, family = FONT)
    on.exit(grDevices::dev.off())
    grid::grid.draw(make_labels_legible(ggplot2::ggplotGrob(x)))
    knitr::knit_print(knitr::include_graphics(file), options)
  }, envir = asNamespace("knitr"))
}
