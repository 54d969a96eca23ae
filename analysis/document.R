# From report.Rmd to the PDF, in a folder of its own that is removed in the end.

#' Tells where the script is
#'
#' @param ... text
say <- function(...) {
  cat("paper: ", ..., "\n", sep = "")
}

#' Writes the paper
#'
#' @param evidence as from `read_evidence`
#' @param root folder of the project
#' @param out path of the PDF
#' @section Errors: a figure is missing; pandoc or LaTeX is missing or fails; the PDF that was there stays
write_report <- function(evidence, root, out) {
  folder <- tempfile("paper-")
  dir.create(file.path(folder, "figures"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  gather_figures(evidence, file.path(folder, "figures"))
  file.copy(file.path(root, "paper", "references.bib"), folder)
  say("tables and text")
  knit_report(evidence, file.path(root, "paper", "report.Rmd"), folder)
  say("pandoc")
  markdown_to_latex(folder, file.path(root, "paper", "template.tex"))
  say("LaTeX")
  pdf <- run_latex(folder, "report", document_time(evidence))
  for (line in latex_blemishes(readLines(file.path(folder, "report.log"), warn = FALSE))) {
    message("paper: LaTeX notes: ", line)
  }
  write_whole(out, function(temporary) {
    if (!file.copy(pdf, temporary)) {
      stop("copying failed")
    }
  })
}

#' Copies the figures to where the document finds them
#'
#' @param evidence as from `read_evidence`
#' @param folder that they are copied to
#' @section Errors: a figure of a workload that was measured, or of the order, is missing
gather_figures <- function(evidence, folder) {
  workloads <- unique(vapply(evidence$records, `[[`, "", "workload"))
  for (name in if (length(workloads) > 0) c(workloads, "order")) {
    path <- figure_path(evidence, name)
    if (!file.exists(path)) {
      stop_about(path, "no such figure")
    }
    file.copy(path, folder)
  }
}

#' Runs the R code of the document
#'
#' @param evidence as from `read_evidence`, the one object that the document starts from
#' @param source path of report.Rmd
#' @param folder for report.md
knit_report <- function(evidence, source, folder) {
  knitr::opts_knit$set(rmarkdown.pandoc.to = "latex", root.dir = getwd(), progress = FALSE, verbose = FALSE)
  knitr::opts_chunk$set(echo = FALSE, error = FALSE)
  scope <- new.env(parent = environment(knit_report))
  scope$evidence <- evidence
  knitr::knit(source, file.path(folder, "report.md"), envir = scope, quiet = TRUE, encoding = "UTF-8")
}

#' Makes LaTeX of the knitted document
#'
#' @param folder that holds report.md
#' @param template path of the template
#' @section Errors: pandoc is missing or fails
markdown_to_latex <- function(folder, template) {
  pandoc <- rmarkdown::find_pandoc()$dir
  if (is.null(pandoc)) {
    stop("pandoc is needed: install the package pandoc", call. = FALSE)
  }
  said <- suppressWarnings(system2(
    file.path(pandoc, "pandoc"),
    shQuote(c("--from=markdown-auto_identifiers", "--to=latex", "--natbib", "--wrap=preserve",
              paste0("--template=", normalizePath(template)),
              paste0("--output=", file.path(folder, "report.tex")),
              file.path(folder, "report.md"))),
    stdout = TRUE, stderr = TRUE
  ))
  if (!is.null(attr(said, "status"))) {
    stop("pandoc failed:\n", paste(said, collapse = "\n"), call. = FALSE)
  }
}

#' The time that the document bears: the end of the last run
#'
#' @param evidence as from `read_evidence`
#' @return whole seconds since 1970; 0 where nothing was measured
document_time <- function(evidence) {
  period <- measured_period(evidence$records)
  if (length(period) < 2 || anyNA(period)) 0 else floor(as.numeric(period[[2]]))
}
