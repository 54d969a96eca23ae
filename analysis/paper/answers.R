# The box of answers on the first page, as LaTeX and as HTML.

#' The caption of the figure of the answers
#'
#' @param evidence as from `read_evidence`
#' @return text
answers_caption <- function(evidence) {
  drawn <- read_csv(sub("[.]pdf$", ".csv", figure_path(evidence, "answers")), ANSWER_COLUMNS)
  paste0("Performance as a share of native\u2019s, with 95", THIN, "% intervals, on axes of logarithms",
         if (length(unique(drawn$family)) > 1) " that differ between the panels",
         if (nrow(drawn) > 0) paste0(" (", linked(n_is(n_text(drawn$n)), "records"), " sets)"),
         "; left of the dashed line is worse. An arrow marks an interval that goes on beyond the axis.")
}

#' The titles of the questions, each with the workloads that answer it
#'
#' @param titles texts
#' @param evidence as from `read_evidence`
#' @return texts, "" where there are none or the title is that of the workload itself
answering <- function(titles, evidence) {
  asked <- questions_of(evidence$plan)
  asked <- asked[asked$workload %in% evidence$comparisons$workload, ]
  names <- vapply(evidence$plan$workloads[asked$workload], `[[`, "", "title", USE.NAMES = FALSE)
  vapply(titles, function(title) listed(setdiff(names[asked$title == title], title)), "", USE.NAMES = FALSE)
}

#' The box of answers as LaTeX
#'
#' @param evidence as from `read_evidence`
#' @return one text, or NULL where there is no answer
latex_answers <- function(evidence) {
  answers <- answers_of(evidence)
  if (length(answers$lines) == 0) {
    return(NULL)
  }
  # Of many questions the figure below names the workloads, which the box has no room for.
  brief <- many_answers(evidence) && has_rows(evidence, "answers")
  of <- if (brief) rep("", length(answers$lines)) else latex_escape(answering(names(answers$lines), evidence))
  rows <- vapply(seq_along(answers$lines), function(i) {
    sprintf("\\answer{%s}{%s}{%s}", latex_escape(names(answers$lines)[[i]]), of[[i]],
            paste(latex_escape(answers$lines[[i]]), collapse = "\\newline "))
  }, "")
  paste(c(
    sprintf("\\begin{answers}{%s}", if (brief) "0.115" else "0.15"), rows, "\\end{answers}",
    if (has_rows(evidence, "answers")) {
      sprintf("\\answersfigure{figures/answers.pdf}{%s}{figure:answers}",
              latex_escape(answers_caption(evidence)))
    },
    sprintf("\\answersnotes{%s}", latex_escape(paste(answers$notes, collapse = " ")))
  ), collapse = "\n")
}

#' The box of answers as HTML
#'
#' @param evidence as from `read_evidence`
#' @return one text, "" where there is no answer
html_answers <- function(evidence) {
  answers <- answers_of(evidence)
  if (length(answers$lines) == 0) {
    return("")
  }
  of <- html_escape(answering(names(answers$lines), evidence))
  rows <- vapply(seq_along(answers$lines), function(i) {
    paste0("<dt>", html_escape(names(answers$lines)[[i]]), if (of[[i]] != "") {
      paste0(" <span class=\"of\">", of[[i]], "</span>")
    }, "</dt>\n", paste0("<dd>", html_text(answers$lines[[i]]), "</dd>", collapse = "\n"))
  }, "")
  figure <- if (has_rows(evidence, "answers")) {
    html_figure(file.path(evidence$plan$results, "figures", "answers"),
                file.path(evidence$links, "figures", "answers"), "answers", answers_caption(evidence),
                picture_text(evidence, "answers"))
  }
  paste(c("<section class=\"answers\" aria-labelledby=\"answers\">", "<h2 id=\"answers\">Answers</h2>",
          "<dl>", rows, "</dl>", figure,
          sprintf("<p class=\"note\">%s</p>", html_text(paste(answers$notes, collapse = " "))),
          "</section>"), collapse = "\n")
}
