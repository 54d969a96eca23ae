# From report.Rmd to the PDF or the web page, in a folder of its own that is removed in the end.

#' Tells where the script is
#'
#' @param ... text
say <- function(...) {
  cat("paper: ", ..., "\n", sep = "")
}

#' Writes the paper, as a web page where the path ends so, and as PDF elsewhere
#'
#' @param evidence as from `read_evidence`
#' @param root folder of the project
#' @param out path
write_paper <- function(evidence, root, out) {
  if (endsWith(out, ".html")) write_page(evidence, root, out) else write_report(evidence, root, out)
}

#' Writes the paper as a web page: one file that needs no network
#'
#' @inheritParams write_paper
#' @section Errors: a figure or tidy table is missing; pandoc is missing or fails; the page that was there
#'   stays
write_page <- function(evidence, root, out) {
  folder <- tempfile("paper-")
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  paper <- function(name) file.path(root, "paper", name)
  check_figures(evidence, c("svg", "csv"))
  evidence$links <- relative_path(out, evidence$plan$results)
  workloads <- unique(evidence$comparisons$workload)
  values <- do.call(rbind, lapply(workloads, function(name) {
    read_tidy(result_path(evidence$plan, "tidy", workload = name), evidence$plan)
  }))
  say("tables and text")
  knit_report(evidence, paper("report.Rmd"), folder, "html")
  say("pandoc")
  page <- markdown_to_html(folder, paper("template.html"), paper("references.bib"))
  # What is put in below is done in this order, so that nothing in a text can stand for a part of the page.
  answers <- html_answers(evidence)
  named <- unique(unlist(regmatches(c(answers, page), gregexpr("(?<=href=\"#)run[.][^\"]+", c(answers, page),
                                                              perl = TRUE))))
  parts <- list(answers = answers,
                runs = html_runs(evidence, values, relative_path(out, dirname(evidence$plan$results)), named),
                script = read_text(paper("report.js")), style = read_text(paper("report.css")))
  for (name in names(parts)) {
    page <- sub(paste0("<!--", name, "-->"), parts[[name]], page, fixed = TRUE)
    if (name == "answers") {
      page <- number_floats(page)
    }
  }
  # Roles that pandoc gives and browsers do not know on such elements, and names to which nothing leads.
  page <- gsub(" role=\"doc-[a-z]+\"| id=\"toc-[^\"]*\"", "", style_columns(lead_to_lists(short_names(page))))
  page <- pack_drawings(without_ends(page))
  write_whole(out, function(temporary) writeLines(page, temporary, useBytes = TRUE))
}

#' Writes the paper as PDF
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
  writeLines(as.character(latex_answers(evidence)), file.path(folder, "answers.tex"), useBytes = TRUE)
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
#' @section Errors: as of `check_figures`
gather_figures <- function(evidence, folder) {
  file.copy(check_figures(evidence, "pdf"), folder)
}

#' The files of the figures
#'
#' @param evidence as from `read_evidence`
#' @param endings of the files, without their dots
#' @return paths
#' @section Errors: a figure of a workload that was measured, of the order or of the ratios is missing
check_figures <- function(evidence, endings) {
  workloads <- unique(vapply(evidence$records, `[[`, "", "workload"))
  drawn <- unlist(lapply(workloads, function(name) names(figures_of(evidence$plan, name))))
  stems <- if (length(workloads) > 0) c(drawn, unlist(FIGURES$shared))
  paths <- result_path(evidence$plan, "figure", stem = rep(stems, each = length(endings)),
                       ending = rep(endings, length(stems)))
  for (path in paths[!file.exists(paths)]) {
    stop_about(path, "no such figure")
  }
  paths
}

#' Runs the R code of the document
#'
#' @param evidence as from `read_evidence`, the one object that the document starts from
#' @param source path of report.Rmd
#' @param folder for report.md
#' @param to "latex" or "html"
knit_report <- function(evidence, source, folder, to = "latex") {
  before <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  on.exit(knitr::opts_knit$set(rmarkdown.pandoc.to = before))
  knitr::opts_knit$set(rmarkdown.pandoc.to = to, root.dir = getwd(), progress = FALSE, verbose = FALSE)
  knitr::opts_chunk$set(echo = FALSE, error = FALSE)
  scope <- new.env(parent = environment(knit_report))
  scope$evidence <- evidence
  shown$figures <- character()
  shown$appendix <- FALSE
  out <- file.path(folder, "report.md")
  knitr::knit(source, out, envir = scope, quiet = TRUE, encoding = "UTF-8")
  writeLines(floats_after_citations(readLines(out, encoding = "UTF-8")), out, useBytes = TRUE)
}

#' Puts every table and figure behind a paragraph of its part that names it: the one before it, or the first
#'
#' So sentences come before tables, and a float is near to what is said of it wherever the text was written.
#' The parts are the body and the appendix.
#'
#' @param lines of the knitted document
#' @return lines
floats_after_citations <- function(lines) {
  fence <- grepl("^```", lines)
  within <- cumsum(fence) %% 2 == 1 | fence
  ends <- lines == "" & !within
  block <- cumsum(ends)
  blocks <- unname(split(lines[!ends], block[!ends]))
  text <- vapply(blocks, paste, "", collapse = "\n")
  label <- "(?<=\\\\label\\{)(table|figure):[^}]+|(?<=\\}\\{)figure:[^}]+|(?<=id=\")(table|figure)-[^\"]+"
  own <- regmatches(text, regexpr(label, text, perl = TRUE))
  floats <- grepl("^```[{]=(latex|html)[}]", text) & grepl(label, text, perl = TRUE)
  names <- rep("", length(text))
  names[grepl(label, text, perl = TRUE)] <- own
  part <- cumsum(grepl("^# Appendix", text))
  # A float that is named nowhere stays where it is.
  after <- seq_along(text) * 1.0
  for (i in which(floats)) {
    cited <- paste0("\\\\ref\\{", names[[i]], "\\}|data-of=\"", names[[i]], "\"")
    naming <- which(!floats & part == part[[i]] & grepl(cited, text))
    # One that follows such a paragraph stays; others go behind the first.
    before <- max(which(!floats)[which(!floats) < i], 0)
    if (length(naming) > 0 && !before %in% naming) {
      after[[i]] <- naming[[1]] + 0.5
    }
  }
  paste0(text[order(after, seq_along(text))], "\n")
}

#' Makes LaTeX of the knitted document
#'
#' @param folder that holds report.md
#' @param template path of the template
#' @section Errors: pandoc is missing or fails
markdown_to_latex <- function(folder, template) {
  run_pandoc(c("--from=markdown-auto_identifiers", "--to=latex", "--natbib", "--wrap=preserve",
               paste0("--template=", normalizePath(template)),
               paste0("--output=", file.path(folder, "report.tex")), file.path(folder, "report.md")))
}

#' Makes HTML of the knitted document
#'
#' @param folder that holds report.md
#' @param template,references paths of the template and of the references
#' @return one text
#' @section Errors: pandoc is missing or fails
markdown_to_html <- function(folder, template, references) {
  out <- file.path(folder, "report.html")
  run_pandoc(c("--from=markdown", "--to=html5", "--wrap=preserve", "--toc", "--toc-depth=2",
               "--shift-heading-level-by=1", "--citeproc",
               "--metadata=link-citations", "--metadata=reference-section-title=References",
               paste0("--bibliography=", normalizePath(references)),
               paste0("--template=", normalizePath(template)), paste0("--output=", out),
               file.path(folder, "report.md")))
  read_text(out)
}

#' Runs pandoc
#'
#' @param arguments of its command line
#' @section Errors: pandoc is missing or fails
run_pandoc <- function(arguments) {
  pandoc <- rmarkdown::find_pandoc()$dir
  if (is.null(pandoc)) {
    stop("pandoc is needed: install the package pandoc", call. = FALSE)
  }
  said <- suppressWarnings(system2(file.path(pandoc, "pandoc"), shQuote(arguments), stdout = TRUE,
                                   stderr = TRUE))
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
