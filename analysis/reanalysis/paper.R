# The tables and sentences of the paper of the reanalysis.

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
    deviation <- ifelse(is.na(deviation) | deviation == "", "", paste0("(", minus(deviation), THIN, "%)"))
    ifelse(mean == "", EM_DASH, paste0(mean, ifelse(deviation == "", "", " "), deviation, " [", sd, "]"))
  }
  decimals <- nchar(sub("^[^.]*\\.?", "", base$published))
  wrong <- base$verdict == "differs"
  worst <- mapply(function(...) worst_of(c(...)), base$verdict, other("deviation_percent", "verdict"),
                  other("sd", "verdict"))
  new_table(
    "one", "Table I of the original report: mean (deviation from native) [standard deviation]",
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
  order <- c("differs", "incomplete", NOT_AVAILABLE, "agrees")
  order[order %in% verdicts][[1]]
}

#' How many printed values each table and figure has, and what became of them
#'
#' @param results as from `read_reanalysis`
#' @return a table
table_of_verdicts <- function(results) {
  rows <- results$differences
  places <- unique(rows$place)
  verdicts <- c("agrees", "differs", "incomplete", NOT_AVAILABLE)
  counts <- vapply(verdicts, function(verdict) {
    vapply(places, function(place) sum(rows$place == place & rows$verdict == verdict), 0L)
  }, integer(length(places)))
  new_table("verdicts", "Printed values, and whether the raw results give them", c(
    list(column("Place"), column("Printed values", "right")), lapply(upper_first(verdicts), column, "right")
  ), rbind(cbind(places, fixed(rowSums(counts), 0), apply(counts, 2, fixed, 0)),
           c("All", fixed(sum(counts), 0), fixed(colSums(counts), 0))),
  group_starts = c(rep(FALSE, length(places)), TRUE), wide = FALSE, notes = c(
    paste("Incomplete: fewer raw results were read than are behind the print.",
          "Values of figures agree where they are as close as the figure can be read.")
  ))
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

#' Every printed value of a figure
#'
#' @param results as from `read_reanalysis`
#' @param number of the figure
#' @return list of tables, one for each metric and statistic: a row for each setting; for each environment
#'   the printed value, the recomputed one, n and the difference
tables_of_figure <- function(results, number) {
  rows <- results$differences[results$differences$place == paste("Figure", number), ]
  kinds <- unique(paste(rows$metric, rows$statistic))
  lapply(seq_along(kinds), function(i) {
    part <- rows[paste(rows$metric, rows$statistic) == kinds[[i]], ]
    environments <- names(original_shapes())[names(original_shapes()) %in% part$environment]
    settings <- unique(part$factors)
    digits <- max(nchar(sub("^[^.]*\\.?", "", part$published)))
    cells <- do.call(cbind, lapply(environments, function(environment) {
      own <- part[part$environment == environment, ]
      own <- own[match(settings, own$factors), ]
      cbind(ifelse(is.na(own$printed), EM_DASH, fixed(own$printed, digits)),
            or_dash(ifelse(is.na(own$recomputed), "", fixed(own$recomputed, digits))),
            ifelse(is.na(own$n) | own$n == 0, "", fixed(own$n, 0)),
            fixed(own$difference, digits))
    }))
    columns <- c(list(column("Setting")), unlist(lapply(environments, function(environment) {
      lapply(c("Printed", "Recomputed", "n", "Difference"), column, align = "right",
             spanner = original_labels(environment))
    }), recursive = FALSE))
    statistic <- c(value = "", mean = ", mean", sd = ", standard deviation", min = ", minimum",
                   max = ", maximum",
                   deviation_percent = ", deviation from native")[[part$statistic[[1]]]]
    new_table(paste0("figure-", number, "-", i),
              paste0("Figure ", number, ": ", words(part$metric[[1]]), statistic, " (", part$unit[[1]], ")"),
              columns, cbind(setting_words(varying_factors(settings)), cells))
  })
}

#' Factors without those that are the same everywhere
#'
#' @param factors texts "name=value;..."
#' @return texts; all of them where nothing varies
varying_factors <- function(factors) {
  parts <- strsplit(factors, ";", fixed = TRUE)
  common <- Reduce(intersect, parts)
  if (length(factors) == 1 || any(lengths(parts) == length(common))) {
    return(factors)
  }
  vapply(parts, function(part) paste(setdiff(part, common), collapse = ";"), "")
}

#' All tables of all figures, one below the other
#'
#' @param results as from `read_reanalysis`
#' @return LaTeX for knitr
show_figure_tables <- function(results) {
  tables <- unlist(lapply(names(original_figures()), function(number) tables_of_figure(results, number)),
                   recursive = FALSE)
  knitr::asis_output(paste(vapply(tables, function(table) raw_latex(latex_table(table)), ""),
                           collapse = "\n"))
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

#' All figures
#'
#' @param results as from `read_reanalysis`
#' @return LaTeX for knitr
show_original_figures <- function(results) {
  figures <- original_figures()
  knitr::asis_output(paste(vapply(names(figures), function(number) {
    figure <- figures[[number]]
    rows <- results$differences[results$differences$place == paste("Figure", number), ]
    seen <- rows$n[rows$n > 0]
    caption <- paste0(
      "Figure ", number, " of the original. ", sentence(figure$title), " Hollow: as printed",
      if (length(seen) == 0) {
        "; no raw results were read."
      } else {
        paste0("; filled: recomputed, ", n_is(paste(unique(range(seen)), collapse = " to ")), ".")
      },
      if (!is.null(figure$bars) && length(seen) > 0) paste0(" Error bars: ", figure$bars, ".")
    )
    raw_latex(latex_figure(paste0("figures/figure-", number, ".pdf"), paste0("original-", number), caption))
  }, ""), collapse = "\n"))
}

#' What the reanalysis found, in a few sentences
#'
#' @param results as from `read_reanalysis`
#' @return one text
abstract_of_reanalysis <- function(results) {
  rows <- results$differences
  count <- function(...) sum(rows$verdict %in% c(...))
  table <- rows[rows$place == "Table I", ]
  testable <- table$verdict %in% c("agrees", "differs")
  paste0(
    "The raw results that were published with the comparison of virtual machines and containers of 2014 ",
    "were read again, ", counted(sum(results$sources$use == "read"), "file"), " with ",
    counted(sum(results$sources$values), "value"), " in ", counted(nrow(results$series), "series", "series"),
    ". Of ", fixed(nrow(rows), 0), " values in its Table I and Figures 2, 3 and 5 to 13, ",
    fixed(count("agrees"), 0), " follow from them, ", fixed(count("differs"), 0), " are contradicted, and ",
    fixed(count("incomplete", NOT_AVAILABLE), 0),
    " can\u2019t be tested with the files that were read. Of the ",
    fixed(sum(testable), 0), " testable numbers of Table I, ", fixed(sum(table$verdict == "agrees"), 0),
    " agree to the last printed digit."
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
