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

# What sentence and caption of a figure of the appendix take, and what a page holds of them, in points.
AROUND_FIGURE <- 62
ROOM_FOR_FIGURES <- 620

#' The figures that the results had no room for, each behind a sentence that says what it is
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where no workload has more than one
show_more_figures <- function(evidence) {
  measured <- intersect(names(evidence$plan$workloads), evidence$comparisons$workload)
  more <- do.call(rbind, lapply(measured, function(name) {
    stems <- names(drawn_figures(evidence, name))[-1]
    data.frame(workload = rep(name, length(stems)), stem = stems)
  }))
  if (length(more$stem) == 0) {
    return(knitr::asis_output(""))
  }
  if (!in_html()) {
    heights <- vapply(more$stem, figure_height, 0, evidence = evidence)
    more <- more[packed(heights + AROUND_FIGURE, ROOM_FOR_FIGURES), ]
  }
  parts <- mapply(function(name, stem) {
    title <- in_sentence(evidence$plan$workloads[[name]]$title)
    paste0(see_figure(stem), " shows, of ", as_markdown(title), ", ",
           as_markdown(figure_subject(evidence, name, drawn_figures(evidence, name)[[stem]])), ".",
           draw_figures(evidence, name, stem))
  }, more$workload, more$stem)
  around <- function(tag) if (in_html()) NULL else raw_latex(sprintf("\\%s{placedfigures}", tag))
  knitr::asis_output(paste(c("## More figures of the results", around("begin"), parts, around("end")),
                           collapse = "\n\n"))
}

#' The height of a figure
#'
#' @param stem of its files
#' @param evidence as from `read_evidence`
#' @return points
figure_height <- function(stem, evidence) {
  begins <- readLines(sub("pdf$", "svg", figure_path(evidence, stem)), 3, warn = FALSE)
  box <- grep("viewBox=", begins, value = TRUE)[[1]]
  as.numeric(sub(".*viewBox=[^ ]+ [^ ]+ [^ ]+ ([0-9.]+).*", "\\1", box))
}

#' The order in which things of these heights leave little room on pages: each page has the first that fit
#'
#' @param heights numbers
#' @param room of a page
#' @return the numbers of the things
packed <- function(heights, room) {
  order <- integer()
  left <- seq_along(heights)
  space <- room
  while (length(left) > 0) {
    fits <- left[heights[left] <= space]
    if (length(fits) == 0 && space == room) {
      fits <- left
    }
    space <- if (length(fits) == 0) room else space - heights[[fits[[1]]]]
    order <- c(order, utils::head(fits, 1))
    left <- setdiff(left, utils::head(fits, 1))
  }
  order
}
