# Writes files and documents of paper/.  Each document is knitted in a copy of the folder, so that
# two can be made at once, and is written completely or not at all.  Its bytes follow from the
# results.

# The font of all figures, so that a system's default font does not matter; scripts/packages.txt
# installs it.
FONT <- "DejaVu Sans"

#' Evaluate code, and stop if a file cannot be closed, for example because the disk is full
#'
#' R itself only warns then, and the file is incomplete.
#'
#' @param code expression, which is evaluated once
#' @return value of the code
#' @section Errors: a connection is closed with a warning
fail_on_full_disk <- function(code) {
  withCallingHandlers(code, warning = function(w) {
    # The text of the warning depends on the language; its call does not.
    if (identical(as.list(conditionCall(w))[1], list(quote(close.connection)))) {
      stop(conditionMessage(w), call. = FALSE)
    }
  })
}

#' Replace a file by a new one that is complete and on the disk
#'
#' @param path of the file, whose folder exists; PATH.part is its draft, which an error leaves there
#' @param write function of a path that writes the new content there
#' @section Errors: the disk is full, or the path cannot be written; the old file then stays
replace_file <- function(path, write) {
  part <- paste0(path, ".part")
  fail_on_full_disk(write(part))
  # Where the program sync is missing or fails, only a power cut can cost the file.
  sync <- function(name) {
    suppressWarnings(system2("sync", c("--", shQuote(name)), stdout = FALSE, stderr = FALSE))
  }
  sync(part)
  if (!file.rename(part, path)) stop(path, ": cannot be written", call. = FALSE)
  invisible(sync(dirname(path)))
}

#' Replace a CSV file by the rows of a data frame, with NA as an empty field
#'
#' @param path of the file, whose folder exists
#' @param rows data frame
#' @param quote see write.csv: TRUE, or the numbers of the columns whose texts are quoted
replace_table <- function(path, rows, quote = TRUE) {
  replace_file(path, function(part) {
    utils::write.csv(rows, part, row.names = FALSE, na = "", quote = quote)
  })
}

#' List the font files of figures, for an archive's environment/fonts.txt
#'
#' strata/archive/metadata.py sources this file alone: the function needs no other file.
#'
#' @return a text for the plain and for the bold face: family, file name, SHA-256; with a note if
#'   another family replaces FONT
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
#' @param rmd name of the document in paper/
#' @param out path of the result, .pdf or .html; its folder is made if missing
#' @param title for the PDF's metadata, unless the document writes it itself (write_title)
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
  # All files but those whose names end in "f": the PDFs of earlier papers.
  sources <- list.files(file.path(root, "paper"), full.names = TRUE, pattern = "[^f]$")
  file.copy(sources, work, recursive = TRUE)
  write_title(title, folder = work)
  document <- fail_on_full_disk(rmarkdown::render(
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
#' @param title text that is legible (make_legible); its characters mean nothing to TeX
#' @param mark LaTeX, or "" for none
#' @param folder where the document is knitted
write_title <- function(title, mark = "", folder = ".") {
  # In a macro each character is written as a reference of XML, whose signs mean nothing to TeX.
  special <- gregexpr("[^A-Za-z0-9 ]", title, perl = TRUE)
  regmatches(title, special) <- lapply(regmatches(title, special), function(characters) {
    sprintf("&\\string##%d;", vapply(characters, utf8ToInt, 1L))
  })
  macros <- paste0("\\newcommand\\", c("papertitle", "papermark"), "{", c(title, mark), "}")
  writeLines(macros, file.path(folder, "title.tex"))
}

# Lowers all headings of an HTML file by a level, in place, so that its title is the only heading of
# the first level: the template (paper/page.html) sets it as <h0>.
lower_headings <- function(path) {
  page <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
  # From the lowest level on, so that none is lowered twice.
  for (level in 5:0) {
    page <- gsub(paste0("<(/?)h", level, "([ >])"), paste0("<\\1h", level + 1, "\\2"), page)
  }
  fail_on_full_disk(writeLines(page, path, useBytes = TRUE))
}

#' Print a YAML block of metadata, for a chunk with results = "asis"
#'
#' @param ... Markdown texts, named by their keys, such as title; texts that are not marked as
#'   Markdown are escaped
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
#' @param name of the section: its file without its ending
#' @param ... values for the {{names}} in it
#' @return marked Markdown
knit_section <- function(name, ...) {
  path <- file.path("sections", paste0(name, ".Rmd"))
  mark_as_markdown(knitr::knit_child(text = knitr::knit_expand(path, ...), quiet = TRUE))
}

# Returns a drawing of grid with make_legible applied to all its texts: labels may come from others.
make_labels_legible <- function(grob) {
  if (is.character(grob$label)) grob$label[] <- make_legible(grob$label, keep = "\n")
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

# Draws a figure of ggplot, x, as a file in the size of its chunk: SVG for the web, else PDF.  knitr
# calls it as the method of knit_print, with the options of the chunk; it returns the text that
# includes the file.
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
