# The tables and figures of the paper of the reanalysis, and the paper itself.

#' Table I as printed and as recomputed
#'
#' @param results as from `read_reanalysis`
#' @return a table
table_one <- function(results) {
  rows <- results$differences[results$differences$place == "Table I", ]
  base <- rows[rows$statistic == "mean", ]
  other <- function(name, column) {
    own <- rows[rows$statistic == name, ]
    at <- match(paste(base$workload, base$environment, base$metric),
                paste(own$workload, own$environment, own$metric))
    own[[column]][at]
  }
  printed <- function(mean, deviation, sd) {
    deviation <- ifelse(is.na(deviation) | deviation == "", "", paste0(minus(deviation), THIN, "%"))
    ifelse(mean == "", EM_DASH, paste0(mean, " (", sd, ")", ifelse(deviation == "", "", ", "), deviation))
  }
  decimals <- nchar(sub("^[^.]*\\.?", "", base$published))
  wrong <- base$verdict == "differs"
  worst <- mapply(function(...) worst_of(c(...)), base$verdict, other("deviation_percent", "verdict"),
                  other("sd", "verdict"))
  new_table(
    "one", "Table I of the original report: mean (standard deviation), deviation from native",
    list(column("Workload"), column("Metric"), column("Environment"), column("As printed", "right"),
         column("Recomputed", "right"), column("n", "right"),
         column(paste0("95", THIN, "% interval"), "right"),
         column("Difference of means", "right"), column("Verdict")),
    cbind(blank_repeats(upper_first(base$workload)), blank_repeats(paste0(base$metric, " (", base$unit, ")")),
          original_labels(base$environment),
          printed(base$published, other("deviation_percent", "published"), other("sd", "published")),
          printed(base$rounded, other("deviation_percent", "rounded"), other("sd", "rounded")),
          ifelse(base$n == 0, "", fixed(base$n, 0)),
          mapply(interval, base$low, base$high, decimals + 1),
          ifelse(is.na(base$difference), "", mapply(fixed, base$difference, decimals + 1)), worst),
    group_starts = !duplicated(paste(base$workload, base$metric)),
    notes = c(paste("Agrees: mean, deviation and standard deviation round to the printed digits; STREAM's",
                    "standard deviations were printed with the divisor n, and are recomputed so. The",
                    "intervals are Student's."),
              if (any(base$workload == "pxz")) "No raw results of parallel xz were published.",
              if (any(wrong)) sentence(unique(base$note[wrong])))
  )
}

#' A printed number with a proper minus sign
#'
#' @param text texts
#' @return texts
minus <- function(text) {
  sub("^-", MINUS, text)
}

#' The verdict on several values together
#'
#' @param verdicts texts
#' @return the least favourable of them
worst_of <- function(verdicts) {
  order <- c("differs", "label contradicted", "incomplete", NOT_AVAILABLE, "agrees")
  order[order %in% verdicts][[1]]
}

#' How many printed values each table and figure has, and what became of them
#'
#' @param results as from `read_reanalysis`
#' @return a table
table_of_verdicts <- function(results) {
  rows <- results$differences
  places <- unique(rows$place)
  verdicts <- c("agrees", "label contradicted", "differs", "incomplete", NOT_AVAILABLE)
  counts <- vapply(verdicts, function(verdict) {
    vapply(places, function(place) sum(rows$place == place & rows$verdict == verdict), 0L)
  }, integer(length(places)))
  heads <- c("Agree", "Label\ncontradicted", "Differ", "In-\ncomplete", "Not\navailable")
  new_table("verdicts", "Printed values, and whether the raw results give them", c(
    list(column("Place"), column("Values", "right")), lapply(heads, column, align = "right")
  ), rbind(cbind(places, fixed(rowSums(counts), 0), apply(counts, 2, fixed, 0)),
           c("All", fixed(sum(counts), 0), fixed(colSums(counts), 0))),
  group_starts = c(rep(FALSE, length(places)), TRUE), wide = FALSE, notes = c(
    paste("Agree: as close as the print can be read. Label contradicted: so are these, and they are of",
          "another environment than they are printed for. Incomplete: fewer raw results were read than are",
          "behind the print.")
  ))
}

#' How the printed values were taken from the publication, and how exactly
#'
#' @param results as from `read_reanalysis`
#' @return a table
table_of_readings <- function(results) {
  cells <- t(vapply(results$readings, function(reading) {
    rows <- results$differences[results$differences$place %in% unlist(reading$places), ]
    exact <- vapply(split(rows, factor(rows$unit, unique(rows$unit))), function(one) {
      paste0("\u00b1", quantity(max(one$tolerance), 2), NO_BREAK, unit_text(one$unit[[1]]))
    }, "")
    levels_read <- rows[rows$statistic %in% c("value", "mean"), ]
    share <- stats::median(levels_read$tolerance / abs(levels_read$printed))
    c(figures_text(unlist(reading$places)), reading$how, fixed(nrow(rows), 0),
      if ("Table I" %in% rows$place) "half of the last digit" else paste(exact, collapse = ", "),
      percent(share, pmax(0, 1 - magnitude(100 * share))))
  }, character(5)))
  own <- any(vapply(results$readings, function(reading) isTRUE(reading$own), NA))
  new_table("readings", "How the printed values were read, and how exactly",
            list(column("Place", "wrap", weight = 0.8), column("Taken from", "wrap", weight = 1.6),
                 column("Values", "right"), column("Read to (at most)", "wrap", weight = 1.2),
                 column("Median share\nof the level", "right")), cells,
            notes = c("A value agrees where the recomputed one is within what it was read to.", if (own) {
              paste("What was taken from the authors\u2019 workbook tests the way from the logs to it, and",
                    "not the print.")
            }))
}

#' Places as they are named together
#'
#' @param places texts such as "Figure 3"
#' @return text such as "Figures 3 and 6"
figures_text <- function(places) {
  if (length(places) == 1) {
    return(places)
  }
  numbers <- as.numeric(sub("^Figure ", "", places))
  runs <- if (all(diff(numbers) == 1) && length(numbers) > 2) {
    paste(range(numbers), collapse = " to ")
  } else {
    listed(numbers)
  }
  paste("Figures", runs)
}

#' Where complete raw results contradict the print
#'
#' @param results as from `read_reanalysis`
#' @return a table, or NULL where there is none
table_of_contradictions <- function(results) {
  rows <- results$differences[results$differences$verdict == "differs", ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  keys <- paste(rows$place, rows$environment, rows$metric, rows$statistic)
  parts <- split(seq_len(nrow(rows)), factor(keys, unique(keys)))
  cells <- t(vapply(parts, function(at) {
    part <- rows[at, ]
    worst <- part[which.max(abs(part$difference / part$tolerance)), ]
    c(part$place[[1]], original_labels(part$environment[[1]]), paste0(words(part$metric[[1]]), ", ",
                                                                      words(part$statistic[[1]])),
      fixed(nrow(part), 0), setting_words(worst$factors), minus(worst$published), minus(worst$rounded),
      fixed(worst$n, 0), quantity(signif(worst$difference, 3), 3), worst$unit)
  }, character(10)))
  new_table("contradictions",
            "Where the complete raw results contradict the print: the largest difference of each kind",
            list(column("Place"), column("Environment"), column("Quantity"), column("Values", "right"),
                 column("Largest at"), column("Printed", "right"), column("Recomputed", "right"),
                 column("n", "right"),
                 column("Difference", "right"), column("Unit")),
            unname(cells), group_starts = !duplicated(cells[, 1]))
}

#' Factors as words
#'
#' @param factors texts "name=value;..."
#' @return texts
setting_words <- function(factors) {
  gsub(";", ", ", gsub("=", " ", factors))
}

#' What could not be used
#'
#' @param results as from `read_reanalysis`
#' @return a table, or NULL where everything could
table_of_unreadable <- function(results) {
  rows <- results$unreadable
  if (nrow(rows) == 0) {
    return(NULL)
  }
  new_table("unreadable", "What could not be used, by file and line",
            list(column("File", "wrap", weight = 1), column("Line", "right"),
                 column("Reason", "wrap", weight = 1.2)),
            cbind(blank_repeats(rows$file), fixed(rows$line, 0), sentence(rows$reason)),
            group_starts = !duplicated(rows$file))
}

#' Where raw results contradict the print, on the page
#'
#' @param results as from `read_reanalysis`
#' @return Markdown for knitr; nothing where they do not
show_contradictions <- function(results) {
  table <- table_of_contradictions(results)
  if (is.null(table)) {
    return(prose("Nothing that was printed is contradicted by all the raw results behind it."))
  }
  knitr::asis_output(paste0(see_table("contradictions"), " lists where all the raw results behind a printed ",
                            "value contradict it.", show_table(table)))
}

#' What could not be used, on the page
#'
#' @param results as from `read_reanalysis`
#' @return Markdown for knitr; nothing where everything could
show_unreadable <- function(results) {
  table <- table_of_unreadable(results)
  if (is.null(table)) {
    return(prose("Every line of the logs that were read could be used."))
  }
  knitr::asis_output(paste0("**Left out.** ", see_table("unreadable"), " lists what could not be used of ",
                            "the logs.", show_table(table)))
}

#' The figures of which raw results were read
#'
#' @param results as from `read_reanalysis`
#' @return their numbers
figures_read <- function(results) {
  numbers <- names(original_figures())
  known <- results$differences[!is.na(results$differences$difference), ]
  numbers[paste("Figure", numbers) %in% known$place]
}

#' All figures of which raw results were read
#'
#' @param results as from `read_reanalysis`
#' @return LaTeX for knitr
show_original_figures <- function(results) {
  figures <- original_figures()
  knitr::asis_output(paste(vapply(figures_read(results), function(number) {
    figure <- figures[[number]]
    rows <- results$differences[results$differences$place == paste("Figure", number), ]
    seen <- rows$n[rows$n > 0]
    caption <- paste0("Figure ", number, " of the original: ", lower_first(figure$title), "; ",
                      n_is(paste(unique(range(seen)), collapse = " to ")),
                      if (!is.null(figure$bars)) paste0("; error bars: ", figure$bars), ".")
    raw_latex(latex_figure(paste0("figures/figure-", number, ".pdf"), paste0("original-", number), caption))
  }, ""), collapse = "\n"))
}

#' What the figures show, and which of them
#'
#' @param results as from `read_reanalysis`
#' @return Markdown for knitr
show_figures_text <- function(results) {
  shown <- figures_read(results)
  if (length(shown) == 0) {
    return(prose("No raw results of the figures were read, so that none is drawn."))
  }
  without <- setdiff(c("2", names(original_figures())), shown)
  without <- without[order(as.numeric(without))]
  knitr::asis_output(paste0(
    as_markdown(paste0(
      "Filled marks are recomputed; hollow ones are as printed, where no raw results were read, or, of a ",
      "difference, of fewer runs than are behind the print. Dashed lines are what the print can be read to: ",
      "a filled mark between them agrees.",
      if (length(without) > 0) {
        paste0(" Of ", if (length(without) == 1) "Figure " else "Figures ", listed(without),
               " no raw results were read.")
      }
    )), "\n\n",
    paste0("- ", vapply(shown, figure_sentence, "", results = results), collapse = "\n"), "\n"
  ))
}

#' What became of the values of a figure
#'
#' @param results as from `read_reanalysis`
#' @param number of the figure
#' @return Markdown of a sentence
figure_sentence <- function(results, number) {
  rows <- results$differences[results$differences$place == paste("Figure", number), ]
  said <- c(agrees = "agree", "label contradicted" = "agree under a contradicted label", differs = "differ",
            incomplete = "are of fewer runs than are behind the print")
  said[[NOT_AVAILABLE]] <- "can\u2019t be tested"
  count <- table(factor(rows$verdict, names(said)))
  count <- count[count > 0]
  worst <- rows[rows$verdict == "differs", ]
  worst <- worst[which.max(abs(worst$difference / worst$tolerance)), ]
  paste0(
    see_figure(paste0("original-", number)), as_markdown(paste0(
      " is Figure ", number, " of the original, ", lower_first(original_figures()[[number]]$title), ". Of ",
      "its ", counted(nrow(rows), "value"), " ",
      listed(paste(fixed(as.vector(count), 0), said[names(count)])), ".",
      if (nrow(worst) > 0) {
        paste0(" The farthest is ", worst$rounded, NO_BREAK, unit_text(worst$unit), " where ",
               worst$published, " was printed (", original_labels(worst$environment), ", ",
               setting_words(worst$factors), ").")
      }
    ))
  )
}

#' Where the results came from
#'
#' @param results as from `read_reanalysis`
#' @return one text
source_sentence <- function(results) {
  revision <- results$source$revision
  described <- startsWith(revision, PUBLISHED_REVISION)
  from <- if (revision == NOT_AVAILABLE) {
    "a folder whose revision is not available"
  } else {
    paste0("revision ", substr(revision, 1, 12), " of the repository",
           if (!described) paste0(" (the formats were described from ", PUBLISHED_REVISION, ")"))
  }
  count <- function(use, one) counted(sum(results$sources$use == use), one)
  paste0("They were read from ", from, "; ", count("read", "file"), " held values, ",
         count("not used", "file"),
         " did not or repeated others, and ", count("not opened", "private file"), " stayed closed.")
}

#' The range of n behind Redis' points
#'
#' @param results as from `read_reanalysis`
#' @return text such as "10 to 40"; "not available" where none was read
redis_runs <- function(results) {
  n <- results$series$n[results$series$workload == "redis" & results$series$selection == "paper"]
  if (length(n) == 0) NOT_AVAILABLE else paste(unique(range(n)), collapse = " to ")
}

#' Writes the paper of the reanalysis
#'
#' @param results as from `read_reanalysis`
#' @param root folder of the project
#' @param out path of the PDF
#' @section Errors: a figure is missing; pandoc or LaTeX is missing or fails; the PDF that was there stays
write_reanalysis <- function(results, root, out) {
  folder <- tempfile("paper-")
  dir.create(file.path(folder, "figures"), recursive = TRUE)
  on.exit(unlink(folder, recursive = TRUE))
  for (number in names(original_figures())) {
    figure <- file.path(results$folder, paste0("figure-", number, ".pdf"))
    if (!file.copy(figure, file.path(folder, "figures"))) {
      stop_about(figure, "no such figure")
    }
  }
  file.copy(file.path(root, "paper", "references.bib"), folder)
  knitr::opts_knit$set(rmarkdown.pandoc.to = "latex", root.dir = getwd(), progress = FALSE, verbose = FALSE)
  knitr::opts_chunk$set(echo = FALSE, error = FALSE)
  scope <- new.env(parent = environment(write_reanalysis))
  scope$results <- results
  shown$figures <- character()
  shown$appendix <- FALSE
  knitr::knit(file.path(root, "paper", "reanalysis.Rmd"), file.path(folder, "report.md"), envir = scope,
              quiet = TRUE,
              encoding = "UTF-8")
  say("pandoc")
  markdown_to_latex(folder, file.path(root, "paper", "template.tex"))
  say("LaTeX")
  pdf <- run_latex(folder, "report", 0)
  write_whole(out, function(temporary) {
    if (!file.copy(pdf, temporary)) {
      stop("copying failed")
    }
  })
}
