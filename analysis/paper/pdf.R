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
  settings <- list(SOURCE_DATE_EPOCH = format(epoch, scientific = FALSE), FORCE_SOURCE_DATE = "1",
                   max_print_line = "1000", openout_any = "p")
  before <- Sys.getenv(names(settings), NA, names = TRUE)
  on.exit({
    setwd(home)
    Sys.unsetenv(names(before))
    lapply(names(before)[!is.na(before)], function(key) do.call(Sys.setenv, as.list(before[key])))
  })
  do.call(Sys.setenv, settings)
  file <- function(ending) paste0(name, ending)
  done <- tryCatch(suppressMessages(suppressWarnings(
    tinytex::latexmk(file(".tex"), "pdflatex", "bibtex", "-no-shell-escape", emulation = TRUE,
                     install_packages = FALSE, clean = FALSE)
  )), error = function(e) NULL)
  cited <- grep("^Warning--I didn't find|^I (couldn't|found no)|error message", lines_of(file(".blg")),
                value = TRUE)
  if (length(cited) > 0) {
    stop("BibTeX failed:\n", paste(cited, collapse = "\n"), call. = FALSE)
  }
  if (is.null(done)) {
    stop("LaTeX failed:\n", paste(latex_failure(lines_of(file(".log"))), collapse = "\n"), call. = FALSE)
  }
  file.path(folder, paste0(name, ".pdf"))
}

#' The lines of what LaTeX or BibTeX left
#'
#' @param path the file
#' @return character vector, empty where there is no such file
lines_of <- function(path) {
  if (file.exists(path)) iconv(readLines(path, warn = FALSE), "UTF-8", "UTF-8", sub = "?")
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
  wide <- grep("^Overfull \\\\[hv]box", log, value = TRUE)
  points <- as.numeric(sub(".*\\(([0-9.]+)pt too (wide|high)\\).*", "\\1", wide))
  c(wide[points > tolerance], grep("undefined|multiply defined|Float too large", log, value = TRUE))
}
