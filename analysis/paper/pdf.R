# From LaTeX to a PDF, and what LaTeX complained of.

#' Runs LaTeX on a document until its references have settled
#'
#' @param folder that holds the document and all that belongs to it
#' @param name of the document without its ending
#' @param epoch seconds since 1970 that count as the time of the document
#' @return path of the PDF
#' @section Errors: LaTeX is missing or fails; the message holds the lines of its log that say why
run_latex <- function(folder, name, epoch) {
  if (Sys.which("pdflatex") == "" || Sys.which("bibtex") == "") {
    stop("pdflatex and bibtex are needed: install texlive-latex-recommended, texlive-fonts-recommended and ",
         "lmodern", call. = FALSE)
  }
  home <- setwd(folder)
  on.exit(setwd(home))
  environment <- c(paste0("SOURCE_DATE_EPOCH=", format(epoch, scientific = FALSE)), "FORCE_SOURCE_DATE=1",
                   "max_print_line=1000", "openout_any=p")
  latex <- function() {
    status <- suppressWarnings(system2("pdflatex",
                                       c("-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape",
                                                     paste0(name, ".tex")),
                                       stdout = FALSE, stderr = FALSE, env = environment))
    if (status != 0) {
      stop("LaTeX failed:\n", paste(latex_failure(log_of(name)), collapse = "\n"), call. = FALSE)
    }
  }
  latex()
  cited <- suppressWarnings(system2("bibtex", name, stdout = TRUE, stderr = TRUE, env = environment))
  if (!is.null(attr(cited, "status")) || any(grepl("^Warning--I didn't find", cited))) {
    stop("BibTeX failed:\n", paste(grep("^Warning|error|---", cited, value = TRUE), collapse = "\n"),
         call. = FALSE)
  }
  before <- NULL
  for (pass in 1:4) {
    latex()
    now <- tools::md5sum(paste0(name, c(".aux", ".out")))
    if (identical(now, before)) {
      break
    }
    before <- now
  }
  file.path(folder, paste0(name, ".pdf"))
}

#' The lines of a LaTeX log
#'
#' @param name of the document without its ending
#' @return character vector
log_of <- function(name) {
  path <- paste0(name, ".log")
  if (file.exists(path)) {
    iconv(readLines(path, warn = FALSE), "UTF-8", "UTF-8", sub = "?")
  } else {
    "pdflatex left no log"
  }
}

#' The lines of a LaTeX log that say why it failed
#'
#' @param log lines
#' @param most lines that are shown
#' @return character vector
latex_failure <- function(log, most = 12) {
  at <- grep("^!|^l\\.[0-9]+|Fatal error|not found", log)
  if (length(at) == 0) {
    return(utils::tail(log, most))
  }
  shown <- sort(unique(as.vector(outer(at[[1]], 0:(most - 1), "+"))))
  log[shown[shown <= length(log)]]
}

#' What a LaTeX log says about lines that are too long and references that lead nowhere
#'
#' @param log lines
#' @param tolerance points by which a line may be too long
#' @return messages, none where all is well
latex_blemishes <- function(log, tolerance = 1) {
  wide <- grep("^Overfull \\\\hbox", log, value = TRUE)
  points <- as.numeric(sub(".*\\(([0-9.]+)pt too wide\\).*", "\\1", wide))
  c(wide[points > tolerance], grep("undefined|multiply defined|Float too large", log, value = TRUE))
}
