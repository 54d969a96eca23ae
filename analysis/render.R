# Writes files and documents of paper/.  Each document is knitted in a copy of the folder, so that
# two can be made at once, and is written completely or not at all.  Its bytes follow from the
# results.

# The font of all figures, so that a system's default font does not matter; scripts/packages.txt
# installs it.
FONT <- "DejaVu Sans"

#' Evaluate code, and stop if a file cannot be closed, for example because the disk is full
#'
#' R itself only warns in this case, and leaves an incomplete file.
#'
#' @param code expression, which is evaluated once
#' @return value of the code
#' @section Errors: a connection is closed with a warning
stop_if_close_fails <- function(code) {
  withCallingHandlers(code, warning = function(warning) {
    # The text of the warning depends on the language; its call does not.
    if (identical(as.list(conditionCall(warning))[1], list(quote(close.connection)))) {
      stop(conditionMessage(warning), call. = FALSE)
    }
  })
}

#' Replace a file by a new one that is complete and on the disk
#'
#' @param path the file's path, whose folder exists; PATH.part is its draft, which an error leaves
#'   there
#' @param write function of a path that writes the new content there
#' @section Errors: the disk is full, or the path cannot be written; the old file then stays
replace_file <- function(path, write) {
  part <- paste0(path, ".part")
  stop_if_close_fails(write(part))
  # Writes a file or folder to the disk.  A failure is ignored: only a power cut could then cost the
  # file.
  sync_to_disk <- function(name) {
    suppressWarnings(system2("sync", c("--", shQuote(name)), stdout = FALSE, stderr = FALSE))
  }
  sync_to_disk(part)
  if (!file.rename(part, path)) stop(path, ": cannot be written", call. = FALSE)
  invisible(sync_to_disk(dirname(path)))
}

#' Replace a CSV file by the rows of a data frame, with NA as an empty field
#'
#' @param path the file's path, whose folder exists
#' @param rows data frame
#' @param quote argument of write.csv: TRUE quotes all strings; numbers name the columns to quote
replace_table <- function(path, rows, quote = TRUE) {
  replace_file(path, function(part) {
    utils::write.csv(rows, part, row.names = FALSE, na = "", quote = quote)
  })
}

#' List the font files of figures, for an archive's environment/fonts.txt
#'
#' strata/archive/metadata.py sources this file alone: the function needs no other file.
#'
#' @return two strings, for the plain and the bold face: family, file name, SHA-256, separated by
#'   spaces; a note comes first if another family replaces FONT
list_font_files <- function() {
  faces <- lapply(c(FALSE, TRUE), function(bold) systemfonts::font_info(FONT, bold = bold))
  compute_digest <- function(path) {
    sub(" .*", "", system2("sha256sum", shQuote(path), stdout = TRUE))
  }
  vapply(faces, function(face) {
    note <- if (face$family != FONT) paste0(FONT, " is missing; replaced by: ")
    paste0(note, paste(face$family, basename(face$path), compute_digest(face$path)))
  }, "")
}

#' Render a document of paper/ as PDF or HTML
#'
#' @param root folder of the project
#' @param rmd file name of the document in paper/, for example "report.Rmd"
#' @param out path of the result, .pdf or .html; its folder is created if it is missing
#' @param title title in the PDF's metadata, unless the document itself calls write_title
#' @param values named list of the variables that the document uses
#' @section Errors: a program is missing, the document fails, or the result cannot be written
render_document <- function(root, rmd, out, title = "", values = list()) {
  format <- sub(".*[.]", "", out)
  programs <- c("pandoc", if (format == "pdf") "pdflatex")
  missing <- programs[Sys.which(programs) == ""]
  if (length(missing) > 0) {
    stop(paste(missing, collapse = " and "), " is not installed: run `make setup-paper`",
         call. = FALSE)
  }
  work <- tempfile("document-")
  dir.create(work)
  on.exit(unlink(work, recursive = TRUE))
  # All files except the PDFs of earlier papers, whose names end in "f".
  sources <- list.files(file.path(root, "paper"), full.names = TRUE, pattern = "[^f]$")
  file.copy(sources, work, recursive = TRUE)
  write_title(title, folder = work)
  document <- stop_if_close_fails(rmarkdown::render(
    file.path(work, rmd), paste0("bookdown::", format, "_document2"),
    output_file = paste0("made.", format), quiet = TRUE,
    envir = list2env(values, parent = globalenv())
  ))
  if (format == "html") lower_headings(document)
  dir.create(dirname(out), recursive = TRUE, showWarnings = FALSE)
  replace_file(out, function(part) {
    if (!file.copy(document, part, overwrite = TRUE)) {
      stop(out, ": cannot be written", call. = FALSE)
    }
  })
}

#' Write title.tex: the title in the PDF's metadata, and a mark for the top of every page
#'
#' paper/paper.tex reads the file, and uses its macros papertitle and papermark.
#'
#' @param title string of replace_control_characters; it may have characters that are special in TeX
#' @param mark LaTeX, or "" for none
#' @param folder where the document is knitted
write_title <- function(title, mark = "", folder = ".") {
  # Characters other than letters, digits and spaces become XML references, which TeX does not
  # interpret.
  special <- gregexpr("[^A-Za-z0-9 ]", title, perl = TRUE)
  regmatches(title, special) <- lapply(regmatches(title, special), function(characters) {
    sprintf("&\\string##%d;", vapply(characters, utf8ToInt, 1L))
  })
  macros <- paste0("\\newcommand\\", c("papertitle", "papermark"), "{", c(title, mark), "}")
  writeLines(macros, file.path(folder, "title.tex"))
}

# Lowers all headings of an HTML file by a level, in place.  The template (paper/page.html) sets the
# title as <h0>, which becomes the only heading of the first level.
lower_headings <- function(path) {
  page <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
  # In descending order of the numbers, so that no heading is lowered twice.
  for (level in 5:0) {
    page <- gsub(paste0("<(/?)h", level, "([ >])"), paste0("<\\1h", level + 1, "\\2"), page)
  }
  stop_if_close_fails(writeLines(page, path, useBytes = TRUE))
}

#' Print a YAML block of metadata, for a chunk with results = "asis"
#'
#' @param ... texts, named by their keys, such as title; texts that are not marked as Markdown are
#'   escaped
write_metadata <- function(...) {
  texts <- vapply(list(...), escape_text, "")
  # Lines of a text are indented, as a block of YAML has them.
  blocks <- paste0(names(texts), ": |-\n  ", gsub("\n", "\n  ", trimws(texts), fixed = TRUE))
  cat("\n\n---\n", paste0(blocks, "\n"), "---\n\n", sep = "")
}

#' Knit a section of paper/sections/
#'
#' The working directory is the document's folder, and the section sees the document's variables.
#'
#' @param name file name of the section without its ending, for example "runs"
#' @param ... values for the {{names}} in it
#' @return marked Markdown
knit_section <- function(name, ...) {
  path <- file.path("sections", paste0(name, ".Rmd"))
  mark_as_markdown(knitr::knit_child(text = knitr::knit_expand(path, ...), quiet = TRUE))
}

# Applies replace_control_characters to all texts in a drawing, since labels may come from others.
# grob: a drawing of the package grid, or a part of one.
# Returns the changed drawing.
make_labels_legible <- function(grob) {
  if (is.character(grob$label)) grob$label[] <- replace_control_characters(grob$label, keep = "\n")
  # Trees of drawings keep their parts in "children", tables of drawings in "grobs".
  for (slot in c("children", "grobs")) {
    if (length(grob[[slot]]) > 0) grob[[slot]][] <- lapply(grob[[slot]], make_labels_legible)
  }
  grob
}

#' Set the options and hooks of knitr that all documents share; each document calls it first
#'
#' Values of code in the text and captions of figures are escaped unless they are marked
#' (format.R).  No option makes knitr write LaTeX itself, so that figures are Markdown in both
#' formats.  Each figure is drawn once on the device of its format, since the widths of letters
#' differ between devices.
set_chunk_options <- function() {
  is_web <- knitr::is_html_output()
  knitr::opts_chunk$set(echo = FALSE, message = FALSE, warning = FALSE,
                        fig.width = if (is_web) 5 else 6.5)
  evaluate <- knitr::knit_hooks$get("evaluate.inline")
  plot <- knitr::knit_hooks$get("plot")
  knitr::knit_hooks$set(
    evaluate.inline = function(code, envir) {
      value <- evaluate(code, envir)
      if (is.numeric(value) || is.null(value)) value else mark_as_markdown(escape_text(value))
    },
    plot = function(x, options) {
      # knitr escapes the text of an attribute itself, and bookdown looks for references in it, too.
      if (is_web) options$fig.alt <- gsub("[@#\\\\[:cntrl:]]+", " ", options$fig.cap)
      options$fig.cap <- escape_text(options$fig.cap)
      plot(x, options)
    }
  )
  registerS3method("knit_print", "ggplot", print_figure, envir = asNamespace("knitr"))
}

# Draws a figure into a file in the size of its chunk: SVG for the web, else PDF.  Returns the text
# that includes the file.  knitr calls it as the method of knit_print for ggplot, and passes its
# arguments by these names.
# x: a ggplot.
# options: the options of the chunk.
print_figure <- function(x, options, ...) {
  is_web <- knitr::is_html_output()
  file <- knitr::fig_path(if (is_web) "svg" else "pdf", options)
  dir.create(dirname(file), recursive = TRUE, showWarnings = FALSE)
  if (is_web) {
    svglite::svglite(file, options$fig.width, options$fig.height, bg = "transparent",
                     system_fonts = list(sans = FONT))
  } else {
    grDevices::cairo_pdf(file, options$fig.width, options$fig.height, family = FONT)
  }
  on.exit(grDevices::dev.off())
  grid::grid.draw(make_labels_legible(ggplot2::ggplotGrob(x)))
  knitr::knit_print(knitr::include_graphics(file), options)
}
