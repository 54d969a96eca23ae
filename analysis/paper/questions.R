# The results of the paper: a section for each question, with its workloads and their figures.

#' The results, a section for each question that was asked
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_questions <- function(evidence) {
  asked <- questions_of(evidence$plan)
  start <- QUESTIONS[["start-up"]]
  parts <- vapply(split(asked, factor(asked$question, unique(asked$question))), function(one) {
    paste0("\n\n## ", as_markdown(one$title[[1]]), "\n\n", show_question(evidence, one),
           if (one$title[[1]] == start$title) show_footprint(evidence))
  }, "")
  alone <- show_footprint(evidence)
  if (!"start-up" %in% asked$question && alone != "") {
    parts <- c(parts, paste0("\n\n## ", start$title, "\n\n**Asked.** ", as_markdown(start$asks), "\n\n",
                             alone))
  }
  knitr::asis_output(paste(parts, collapse = "\n"))
}

#' A question: what was asked, what was found, why, what was published, and what is not known
#'
#' @param evidence as from `read_evidence`
#' @param asked rows of `questions_of`, those of one question
#' @return Markdown
show_question <- function(evidence, asked) {
  plan <- evidence$plan
  about <- vapply(asked$workload, function(name) {
    workload <- plan$workloads[[name]]
    paste(c(paste0(workload$title, ": ", lower_first(sentence(workload$about))), arrays_text(evidence, name)),
          collapse = " ")
  }, "")
  paragraph <- function(head, text) if (text != "") paste0("**", head, ".** ", as_markdown(text), "\n\n")
  paste0(
    paragraph("Asked", paste(c(asked$asks[[1]], about), collapse = " ")),
    "**Found.** ", paste(vapply(asked$workload, show_workload, "", evidence = evidence), collapse = ""),
    paragraph("Why", why_text(evidence, asked$workload)),
    paragraph("Against what was published", against_text(evidence, asked$workload)),
    paragraph("Not known", unknown_text(evidence, asked$workload))
  )
}

#' The figures of a workload that draw anything
#'
#' @param evidence as from `read_evidence`
#' @param name of the workload
#' @return declarations, as from `figures_of`; the first stands in the results, the others in the appendix
drawn_figures <- function(evidence, name) {
  figures <- figures_of(evidence$plan, name)
  figures[vapply(names(figures), has_points, NA, evidence = evidence, kinds = figures)]
}

#' A workload with its paragraph and its first figure
#'
#' @param evidence as from `read_evidence`
#' @param name of the workload
#' @return Markdown
show_workload <- function(evidence, name) {
  figures <- drawn_figures(evidence, name)
  shown <- vapply(seq_along(figures), function(i) {
    paste(see_figure(names(figures)[[i]]), if (i == 1) "shows" else if (i == 2) "in the appendix",
          as_markdown(figure_subject(evidence, name, figures[[i]])))
  }, "")
  paste0("*", as_markdown(evidence$plan$workloads[[name]]$title), ".* ",
         as_markdown(trimws(paste(workload_text(evidence, name), reached_text(evidence, name)))),
         if (length(shown) > 0) paste0(" ", paste(shown, collapse = "; "), "."), "\n\n",
         paste(draw_figures(evidence, name, utils::head(names(figures), 1)), collapse = ""))
}

#' Figures of a workload on the page
#'
#' @param evidence as from `read_evidence`
#' @param name of the workload
#' @param stems of the figures' files
#' @return Markdown, one text for each
draw_figures <- function(evidence, name, stems) {
  vapply(stems, function(stem) show_figure(evidence, stem, workload_caption(evidence, name, stem)), "")
}

#' The figures that the results had no room for, each behind a sentence that says what it is
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where no workload has more than one
show_more_figures <- function(evidence) {
  measured <- intersect(names(evidence$plan$workloads), evidence$comparisons$workload)
  parts <- unlist(lapply(measured, function(name) {
    figures <- drawn_figures(evidence, name)[-1]
    told <- vapply(seq_along(figures), function(i) {
      paste0(see_figure(names(figures)[[i]]), " shows, of ",
             as_markdown(in_sentence(evidence$plan$workloads[[name]]$title)), ", ",
             as_markdown(figure_subject(evidence, name, figures[[i]])), ".")
    }, "")
    paste0(told, draw_figures(evidence, name, names(figures)), recycle0 = TRUE)
  }))
  if (length(parts) == 0) {
    return(knitr::asis_output(""))
  }
  around <- function(tag) if (in_html()) NULL else raw_latex(sprintf("\\%s{placedfigures}", tag))
  knitr::asis_output(paste(c("## More figures of the results", around("begin"), parts, around("end")),
                           collapse = "\n\n"))
}
