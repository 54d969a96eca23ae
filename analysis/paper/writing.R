# What report.Rmd calls to put tables, figures and computed sentences on the page, as LaTeX or as HTML.

#' A computed text as prose
#'
#' @param text texts without markup
#' @return Markdown for knitr
prose <- function(text) {
  knitr::asis_output(paste(as_markdown(text), collapse = " "))
}

#' A table on the page
#'
#' @param table as from `new_table`, or NULL for none
#' @return output for knitr
show_table <- function(table) {
  if (is.null(table)) {
    return(knitr::asis_output(""))
  }
  text <- if (in_html()) {
    raw_html(html_table(table))
  } else {
    raw_latex(if (isTRUE(shown$appendix)) latex_long(table) else latex_table(table))
  }
  knitr::asis_output(text)
}

#' A figure on the page
#'
#' @param evidence as from `read_evidence`
#' @param name of the figure's file without its ending
#' @param caption text
#' @return output for knitr; nothing where there is no such figure
show_figure <- function(evidence, name, caption) {
  if (!has_figure(evidence, name)) {
    return(knitr::asis_output(""))
  }
  shown$figures <- union(shown$figures, name)
  knitr::asis_output(if (in_html()) {
    path <- file.path(evidence$plan$results, "figures", name)
    raw_html(html_figure(path, file.path(evidence$links, "figures", name), name, caption,
                         picture_text(evidence, name)))
  } else {
    raw_latex(latex_figure(paste0("figures/", name, ".pdf"), name, caption))
  })
}

# The figures that are on the pages so far.
shown <- new.env(parent = emptyenv())

#' LaTeX inside of Markdown
#'
#' @param text LaTeX
#' @return Markdown
raw_latex <- function(text) {
  paste0("\n\n```{=latex}\n", text, "\n```\n\n")
}

#' HTML inside of Markdown
#'
#' @param text HTML
#' @return Markdown
raw_html <- function(text) {
  paste0("\n\n```{=html}\n", text, "\n```\n\n")
}

#' A reference to a table or figure
#'
#' @param id of the table, or name of the figure
#' @return text for knitr, such as "Table 3"
see_table <- function(id) {
  see("table", id)
}

#' @rdname see_table
see_figure <- function(id) {
  see("figure", id)
}

#' @rdname see_table
#' @param kind "table" or "figure"
see <- function(kind, id) {
  word <- upper_first(kind)
  knitr::asis_output(if (in_html()) {
    sprintf("`<a href=\"#%s-%s\">%s%s<span class=\"number\" data-of=\"%s-%s\"></span></a>`{=html}", kind, id,
            word, NO_BREAK, kind, id)
  } else {
    sprintf("`%s~\\ref{%s:%s}`{=latex}", word, kind, id)
  })
}

# How bounds are reckoned.
BOUND_SOURCE <- "[@dolbeau2018]."

#' The bound of the machine's arithmetic, with the source of how it is reckoned
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where no workload has it
show_bound <- function(evidence) {
  text <- bound_text(evidence)
  knitr::asis_output(if (text == "") "" else paste(sub("[.]$", "", as_markdown(text)), BOUND_SOURCE))
}

#' Paragraphs with headings
#'
#' @param found named character vector: heading to text
#' @return output for knitr
show_paragraphs <- function(found) {
  knitr::asis_output(paste0("**", as_markdown(names(found)), ".** ", as_markdown(found), collapse = "\n\n"))
}

#' The discussion, in which what is left of the publications names the figure of their claims
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_discussion <- function(evidence) {
  found <- discussion(evidence)
  if (!CLAIMS_LEFT %in% names(found) || !has_rows(evidence, "claims")) {
    return(show_paragraphs(found))
  }
  knitr::asis_output(paste(show_paragraphs(found), see_figure("claims"), "draws their ratios."))
}

#' Texts as a list
#'
#' @param items texts
#' @return output for knitr; nothing where there are none
show_list <- function(items) {
  knitr::asis_output(paste0("\n\n", paste0("- ", as_markdown(items), recycle0 = TRUE, collapse = "\n"),
                            "\n\n"))
}

#' How the section of results begins
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_results_opening <- function(evidence) {
  if (length(evidence$records) == 0) {
    return(prose("Nothing was measured, and so there are no results."))
  }
  published <- table_published(evidence)
  drawn <- c(if (has_rows(evidence, "answers")) "answers", if (has_figure(evidence, "ratios")) "ratios")
  knitr::asis_output(paste0(
    if (length(drawn) > 0) {
      seen <- c(answers = "shows the answers at a glance",
                ratios = "all ratios to native with what was published")
      paste0(paste(vapply(drawn, see_figure, ""), seen[drawn], collapse = ", and "), ". ")
    },
    see_table("printed"), " gives the results in the form of Table I of the original report, and ",
    see_table("intervals"), " with their intervals. ",
    if (!is.null(table_of_open(evidence))) {
      paste0(see_table("open"), " tells of what stays open which difference would have been called, and how ",
             "many more sets would decide it. ")
    },
    if (!is.null(published)) {
      paste0(see_table("published"), " sets what was published in 2014, on another machine and, for ",
             "Linpack and the compression, with other programs (Intel's MKL, and pxz), beside it; only ",
             "ratios to native can be compared. ")
    },
    if (!is.null(table_of_kernels(evidence))) {
      paste0(see_table("kernels"), " does so with Table II of the original. ")
    },
    if (!is.null(table_of_configurations(evidence))) {
      paste0(see_table("configurations"), " does so with its Table III. ")
    },
    "\n\n", prose(layers_text(evidence)), "\n\n", prose(figures_key(evidence))
  ))
}

#' How the claims fared
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_claims_text <- function(evidence) {
  tested <- any(evidence$claims$parts > 0)
  untested <- any(evidence$claims$parts == 0)
  knitr::asis_output(paste(c(
    paste("The publications say more than their tables of numbers. Their claims are part of this project as",
          "data, each with its source and a tolerance, which does not depend on what is measured here."),
    prose(claims_text(evidence)),
    if (tested && has_rows(evidence, "claims")) {
      paste(see_figure("claims"), "draws those of which at least a part was measured, and",
            see_table("claims"), "has their numbers.")
    } else if (tested) {
      paste(see_table("claims"), "shows those of which at least a part was measured.")
    },
    if (untested) paste(see_table("untested"), "lists the others, each with its reason."),
    if (nrow(evidence$transferred) > 0) {
      paste(prose(transferred_text(evidence)), see_table("transferred"), "has them.")
    },
    if (tested) {
      paste0(prose(joined_text(evidence$own$claims, evidence$claims, function(x) linked(x, "records"))), " ",
             see_table("joined"),
             " in the appendix sets both verdicts side by side.")
    },
    show_raw_logs(evidence)
  ), collapse = " "))
}

#' The claims by their authors' own numbers and by what was measured
#'
#' @param evidence as from `read_evidence`
#' @return Markdown for knitr; nothing where no part of a claim was measured
show_joined <- function(evidence) {
  if (!any(evidence$claims$parts > 0) && nrow(evidence$transferred) == 0) {
    return(knitr::asis_output(""))
  }
  labels <- vapply(evidence$publications, `[[`, "", "label")
  knitr::asis_output(paste0(
    "\n\n## Claims by both\n\n",
    introduced(list(
      list(table_of_claims(evidence), "has the claims that were measured, at least in part."),
      list(table_of_transferred(evidence), "has those that were transferred, with verdicts of that kind.")
    )),
    "\n\nWhat a claim\u2019s own authors measured need not bear it out. ", see_table("joined"),
    as_markdown(paste0(
      " sets the verdict by their own numbers beside the verdict by the machine at hand. The former is that ",
      "of a reanalysis of their published raw results, as far as these were at hand, and of what they ",
      "printed."
    )),
    show_table(table_of_joined(evidence$own$claims, evidence$claims, labels))
  ))
}

#' What the authors' own raw logs say of the claims
#'
#' @param evidence as from `read_evidence`
#' @return Markdown; NULL where no claim has a note on them
show_raw_logs <- function(evidence) {
  notes <- raw_log_notes(evidence)
  if (length(notes) > 0) {
    paste0("\n\n**Raw logs of the original.** The authors published the raw logs of 2014. Some of what they ",
           "printed does not agree with them, or depends on what they did not print:", show_list(notes))
  }
}

#' Where the references stand in the PDF; the web page has them at its end
#'
#' @return output for knitr
show_references <- function() {
  knitr::asis_output(if (in_html()) "" else raw_latex("\\paperreferences"))
}

#' The appendix begins: from here tables are as long as they need be
#'
#' @return output for knitr; nothing on the web page
show_appendix <- function() {
  shown$appendix <- TRUE
  knitr::asis_output(if (in_html()) "" else raw_latex("\\appendixbegins"))
}

#' The tables of the sets, each behind a sentence that says what it is
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where there are none
show_set_tables <- function(evidence) {
  parts <- introduced(list(
    list(table_of_nodes(evidence), "tells what the nodes differ by."),
    list(table_of_sets(evidence), "tells what of the variance lies between the sets."),
    list(table_of_sensitivity(evidence), "has the ratios in which disturbed sets count.")
  ))
  knitr::asis_output(if (length(parts) > 0) paste(c("## Sets", parts), collapse = "\n\n") else "")
}

#' The claims that could not be tested, behind a sentence that says what they are
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_untested <- function(evidence) {
  table <- table_of_untested(evidence)
  if (is.null(table)) {
    return(knitr::asis_output("At least a part of every claim was tested."))
  }
  knitr::asis_output(paste0(see_table("untested"), " lists them, each with its reason.", show_table(table)))
}

#' The tables of all results, each behind a sentence that says what it is
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr
show_result_tables <- function(evidence) {
  tables <- list(
    list(table_as_printed(evidence), "gives the results in the form of Table I of the original report."),
    list(table_of_intervals(evidence), "has them with their intervals, and all comparisons with native."),
    list(table_of_open(evidence), "tells what stays open, and how many more sets would decide it."),
    list(table_published(evidence), "sets what was published in 2014 beside what was measured."),
    list(table_of_kernels(evidence), "does so with Table II of the original report."),
    list(table_of_configurations(evidence), "does so with its Table III."),
    list(table_of_choices(evidence), "compares the environments that differ in one choice alone.")
  )
  parts <- introduced(tables)
  none <- "Nothing was measured, and so there are none."
  knitr::asis_output(if (length(parts) > 0) paste(parts, collapse = "\n\n") else none)
}

#' Tables, each behind a sentence that says what it is
#'
#' @param tables list of lists: a table, or NULL for none, and the sentence without its subject
#' @return Markdown, one text for each table that there is
introduced <- function(tables) {
  tables <- Filter(function(one) !is.null(one[[1]]), tables)
  vapply(tables, function(one) paste0(see_table(one[[1]]$id), " ", one[[2]], show_table(one[[1]])), "")
}

#' The figure of all ratios, where it does not stand in the way of the others
#'
#' @param evidence as from `read_evidence`
#' @param late whether this is behind the questions, where it stands if it takes a page of its own
#' @return output for knitr
show_ratios <- function(evidence, late = FALSE) {
  if (joined_rows(evidence) != late) {
    return(knitr::asis_output(""))
  }
  knitr::asis_output(paste0(if (late) {
    paste("\n\n**Taken together.**", see_figure("ratios"), "sets all ratios to native side by side.")
  }, show_figure(evidence, "ratios", ratios_caption(evidence))))
}

#' Whether there are so many workloads that their table would be in the way of the text
#'
#' @param evidence as from `read_evidence`
#' @return TRUE or FALSE
many_workloads <- function(evidence) length(evidence$plan$workloads) > 8

#' The tables of what was observed, behind a heading, and that of many workloads
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where nothing was observed or asked for
show_testbed_tables <- function(evidence) {
  parts <- introduced(list(
    list(if (many_workloads(evidence)) table_of_workloads(evidence), "tells what each workload measures."),
    list(table_of_testbed(evidence), "holds what was seen of the host, and from inside of each environment."),
    list(table_of_settings(evidence), "sets what profiles of machines asked for beside what was seen."),
    list(table_of_conditions(evidence), "gives the state of the host before, during and after the runs.")
  ))
  knitr::asis_output(if (length(parts) > 0) paste(c("## Testbed", parts), collapse = "\n\n") else "")
}

#' The runs that are missing
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where none is missing
show_missing <- function(evidence) {
  items <- missing_sentences(evidence)
  if (length(items) == 0) {
    return(knitr::asis_output(""))
  }
  knitr::asis_output(paste0("\n\n**Missing runs.** ", prose(partial_sentence(evidence)), show_list(items)))
}

#' All runs in their order
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where there is no such figure
show_order <- function(evidence) {
  if (!has_figure(evidence, "order")) {
    return(knitr::asis_output(""))
  }
  sentence <- paste(see_figure("order"), "shows all runs in the order in which they were measured.")
  knitr::asis_output(paste0(sentence, "\n\n", show_figure(evidence, "order", order_caption(evidence))))
}

#' What single choices cost, over all questions
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where no environments differ in one alone
show_choices <- function(evidence) {
  text <- choices_text(evidence)
  table <- table_of_choices(evidence)
  if (text == "" && is.null(table)) {
    return(knitr::asis_output(""))
  }
  knitr::asis_output(paste(c(
    "\n\n## Single choices\n\n",
    if (!is.null(table)) {
      paste(see_table("choices"), "compares the environments that differ in one choice alone.")
    },
    prose(text)
  ), collapse = " "))
}

#' What nodes differ by, how the machine drifted, and what became of the sets that were disturbed
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where none can be told
show_sets <- function(evidence) {
  drifted <- drift_text(evidence)
  disturbed <- disturbed_text(evidence)
  nodes <- nodes_text(evidence)
  knitr::asis_output(paste(c(
    if (!is.null(nodes)) {
      paste("**Nodes.**", prose(nodes), if (!is.null(table_of_nodes(evidence))) {
        paste(see_table("nodes"), "has for each metric and ratio the nodes that are farthest apart.")
      })
    },
    if (drifted != "") {
      paste("**Drift.**", if (has_figure(evidence, "drift")) {
        paste(see_figure("drift"), "shows how the machine moved from set to set, and")
      }, see_table("sets"), "what that is of the variance.", prose(drifted),
      if (has_figure(evidence, "drift")) show_figure(evidence, "drift", drift_caption(evidence)))
    },
    if (!is.null(disturbed)) {
      paste("**Disturbed sets.**", prose(disturbed), if (!is.null(table_of_sensitivity(evidence))) {
        paste(see_table("sensitivity"), "has the ratios in which that makes a difference.")
      })
    }
  ), collapse = "\n\n"))
}

#' The commands of the artifact
#'
#' @return output for knitr
show_commands <- function() {
  ending <- if (in_html()) "html" else "pdf"
  knitr::asis_output(paste0("\n\n```\n", paste(
    "# install, measure what is missing, write", "make paper",
    "# only measure and write, without installing",
    paste0("snakemake --cores 1 paper/report.", ending),
    "# all that the paper rests on, in one file", "make archive",
    "# check it, and write its paper again", "make verify ARCHIVE=archive.zip",
    "make rebuild ARCHIVE=archive.zip", sep = "\n"
  ), "\n```\n\n"))
}

#' How each figure can be checked
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where there is none
show_checks <- function(evidence) {
  names <- c(if (has_rows(evidence, "answers")) "answers",
             shown$figures)
  if (length(names) == 0) {
    return(knitr::asis_output(""))
  }
  named <- paste0(vapply(names, see_figure, ""), ": `", names, "`")
  knitr::asis_output(paste0(
    "**Checking a figure.** `results/figures/NAME.csv` holds every point that a figure draws, and\n\n```\n",
    "snakemake --cores 1 --force results/figures\n```\n\n",
    "draws all again, of tables that are made of the raw logs. NAME is ", paste(named, collapse = "; "), "."
  ))
}

#' How the virtual machines were made, as it was observed
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where the plan has none
show_machines <- function(evidence) {
  text <- c(acceleration_text(evidence), starts_text(evidence))
  if (all(text == "")) {
    return(knitr::asis_output(""))
  }
  seen <- if (!is.null(table_of_settings(evidence))) {
    paste(see_table("settings"), "sets what their profiles asked for beside what the running machines and",
          "their guests showed.")
  }
  knitr::asis_output(paste(c("**Virtual machines.**", prose(text[text != ""]), seen), collapse = " "))
}

#' What it took to bring the environments up
#'
#' @param evidence as from `read_evidence`
#' @return Markdown; "" where no record tells of it
show_footprint <- function(evidence) {
  lines <- start_lines(evidence)
  if (length(lines) == 0) {
    return("")
  }
  drawn <- has_rows(evidence, "footprint")
  paste0(
    paste("**Bringing up.**", as_markdown(paste(lines, collapse = " ")),
          if (drawn) paste(see_figure("footprint"), "draws how long that takes, and"),
          see_table("footprint"), "tells what else it takes."), "\n\n",
    if (drawn) show_figure(evidence, "footprint", footprint_caption(evidence)),
    show_table(table_of_footprint(evidence))
  )
}

# Where the workloads that come with the project are from, in Markdown.
WORKLOAD_SOURCES <- c(
  pxz = "the compression is done by XZ Utils [@xz]",
  linpack = "Linpack [@dongarra2003] calls OpenBLAS [@xianyi2012]",
  stream = "STREAM follows McCalpin [@mccalpin1995]",
  randomaccess = "RandomAccess follows HPC Challenge [@luszczek2006]"
)

# Where virtual machines are from, in Markdown.
MACHINE_SOURCE <- paste("Virtual machines are QEMU\u2019s [@bellard2005], with KVM [@kivity2007] where that",
                        "was proven.")

#' Where virtual machines are from
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where the plan has none
show_machine_source <- function(evidence) {
  knitr::asis_output(if (length(machine_environments(evidence$plan)) > 0) MACHINE_SOURCE else "")
}

#' Where the workloads are from
#'
#' @param evidence as from `read_evidence`
#' @return output for knitr; nothing where none of the known ones is in the plan
show_sources <- function(evidence) {
  known <- WORKLOAD_SOURCES[intersect(names(evidence$plan$workloads), names(WORKLOAD_SOURCES))]
  knitr::asis_output(sentence(listed(known)))
}
