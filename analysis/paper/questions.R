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

# What a sentence and what is between it, a figure of the appendix and its caption take, a line of captions,
# and what a page holds of them, in points; and the letters of a line.
AROUND_FIGURE <- 42
CAPTION_LINE <- 12
ROOM_FOR_FIGURES <- 635
# What their heading takes at the head of a page, and what stays free where their heights were told too small.
THEIR_HEADING <- 30
SPARE_ROOM <- 8
CAPTION_LETTERS <- 125

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
  parts <- mapply(function(name, stem) {
    title <- in_sentence(evidence$plan$workloads[[name]]$title)
    paste0(see_figure(stem), " shows, of ", as_markdown(title), ", ",
           as_markdown(figure_subject(evidence, name, drawn_figures(evidence, name)[[stem]])), ".",
           draw_figures(evidence, name, stem))
  }, more$workload, more$stem)
  if (!in_html()) {
    heights <- mapply(figure_room, more$workload, more$stem, MoreArgs = list(evidence = evidence))
    around <- raw_latex(sprintf("\\%s{placedfigures}", c("begin", "end")))
    parts <- c(around[[1]], by_room(parts, heights), around[[2]])
  }
  knitr::asis_output(paste(c("## More figures of the results", parts), collapse = "\n\n"))
}

#' Figures in an order for whatever room LaTeX finds on the page on which they begin
#'
#' @param parts Markdown of each figure
#' @param heights of them in points
#' @return Markdown, of which LaTeX sets one order
by_room <- function(parts, heights) {
  # Where none fits they begin a page, below their heading.
  rooms <- c(0, seq(min(heights), max(600, min(heights)), by = 15))
  firsts <- c(ROOM_FOR_FIGURES - THEIR_HEADING, rooms[-1])
  orders <- lapply(firsts, function(first) packed(heights, ROOM_FOR_FIGURES, first))
  least <- which(!duplicated(orders))
  # From the most room to the least; an order that comes again for more room stands there again.
  least <- sort(union(least, which(c(TRUE, !mapply(identical, orders[-1], orders[-length(orders)])))))
  choices <- lapply(rev(least), function(i) parts[orders[[i]]])
  # A penalty has LaTeX look what the page holds so far; this one leaves the heading with what follows it.
  tests <- sprintf("\\par\\penalty10000\\ifdim\\dimexpr\\pagegoal-\\pagetotal\\relax>%gpt\\relax",
                   ceiling(rev(rooms[least]) + SPARE_ROOM))
  last <- length(choices)
  unlist(c(lapply(seq_along(choices), function(k) {
    c(raw_latex(paste0(if (k > 1) "\\else", if (k < last) tests[[k]])), choices[[k]])
  }), raw_latex(paste(rep("\\fi", last - 1), collapse = ""))))
}

#' The room that a figure takes with its sentence and caption
#'
#' @param workload its name
#' @param stem of the figure's files
#' @param evidence as from `read_evidence`
#' @return points
figure_room <- function(workload, stem, evidence) {
  letters <- nchar(unlinked(workload_caption(evidence, workload, stem))) + nchar("Figure 10: ")
  figure_height(stem, evidence) + AROUND_FIGURE + CAPTION_LINE * ceiling(letters / CAPTION_LETTERS)
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

# So many figures of these heights stand on a page at most.
MOST_ON_PAGE <- 4

#' The order in which things of these heights leave little room on pages
#'
#' Each page has the first that is left, if that fits, and those others that fill it most.
#'
#' @param heights numbers
#' @param room of a page
#' @param first room that is left on the first page, where nothing need stand
#' @return the numbers of the things
packed <- function(heights, room, first = room) {
  order <- integer()
  left <- seq_along(heights)
  space <- first
  while (length(left) > 0) {
    found <- fullest(heights[left], space, with_first = space == room)
    if (length(found) == 0 && space == room) {
      found <- 1
    }
    order <- c(order, left[found])
    left <- left[setdiff(seq_along(left), found)]
    space <- room
  }
  order
}

#' Which things fill a space most
#'
#' @param heights numbers
#' @param space number
#' @param with_first whether the first thing that fits by itself is among them if it can be
#' @return their places; none where none fits
fullest <- function(heights, space, with_first) {
  fits <- which(heights <= space)
  best <- integer()
  for (count in seq_len(min(MOST_ON_PAGE, length(fits)))) {
    sets <- utils::combn(length(fits), count)
    sets <- matrix(fits[sets], nrow = count)
    if (with_first && heights[[1]] <= space) {
      sets <- sets[, sets[1, ] == 1, drop = FALSE]
    }
    total <- colSums(matrix(heights[sets], nrow = count))
    total[total > space] <- -1
    if (length(total) > 0 && max(total) > sum(heights[best])) {
      best <- sets[, which.max(total)]
    }
  }
  best
}
