# Every value of the figures, in tables that run over pages.

#' The statistics, as they are called in headings
STATISTIC_WORDS <- c(value = "", mean = ", mean", sd = ", standard deviation", min = ", smallest run",
                     max = ", largest run", deviation_percent = ", deviation from native")

#' The values of a figure: as printed, and how much the recomputed one differs
#'
#' Settings of which no raw results were read are left out.
#'
#' @param results as from `read_reanalysis`
#' @param number of the figure
#' @return list: `environments`; `parts`, a list of `head` and `cells`, for each metric and statistic; NULL
#'   where no raw results were read
values_of_figure <- function(results, number) {
  rows <- results$differences[results$differences$place == paste("Figure", number), ]
  rows <- rows[paste(rows$metric, rows$statistic, rows$factors) %in%
                 paste(rows$metric, rows$statistic, rows$factors)[!is.na(rows$recomputed)], ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  environments <- names(original_shapes())[names(original_shapes()) %in% rows$environment]
  kinds <- unique(paste(rows$metric, rows$statistic))
  list(environments = environments, parts = lapply(kinds, function(kind) {
    part <- rows[paste(rows$metric, rows$statistic) == kind, ]
    settings <- unique(part$factors)
    decimals <- max(0, 1 - magnitude(part$tolerance[[1]]))
    cells <- lapply(environments, function(environment) {
      own <- part[part$environment == environment, ]
      own <- own[match(settings, own$factors), ]
      difference <- fixed(own$difference, decimals)
      cbind(or_dash(ifelse(is.na(own$published), "", minus(own$published))),
            or_dash(ifelse(is.na(own$difference), "",
                           paste0(difference, ifelse(own$verdict == "incomplete", "*", "")))))
    })
    list(
      head = paste0(upper_first(words(part$metric[[1]])), STATISTIC_WORDS[[part$statistic[[1]]]], " (",
                    unit_text(part$unit[[1]]), ")"),
      cells = cbind(setting_words(varying_factors(settings)), do.call(cbind, cells))
    )
  }))
}

#' A table of all values of a figure, which runs over pages
#'
#' @param results as from `read_reanalysis`
#' @param number of the figure
#' @return LaTeX; "" where there is nothing to show
values_as_latex <- function(results, number) {
  values <- values_of_figure(results, number)
  if (is.null(values)) {
    return("")
  }
  count <- 2 * length(values$environments)
  labels <- vapply(strsplit(in_two_lines(original_labels(values$environments)), "\n", fixed = TRUE),
                   function(lines) sprintf("\\shortstack{%s}", paste(latex_escape(lines), collapse = "\\\\")),
                   "")
  heads <- c(
    "\\toprule",
    paste0(" & ", paste0("\\multicolumn{2}{c}{", labels, "}", collapse = " & "), " \\\\"),
    paste0(sprintf("\\cmidrule(lr){%d-%d}", 2 * seq_along(labels), 2 * seq_along(labels) + 1),
           collapse = ""),
    paste0("Setting & ", paste(rep(c("Printed", "Diff."), length(labels)), collapse = " & "), " \\\\"),
    "\\midrule"
  )
  body <- unlist(lapply(seq_along(values$parts), function(i) {
    part <- values$parts[[i]]
    c(if (i > 1) "\\addlinespace[3pt]",
      sprintf("\\multicolumn{%d}{@{}l}{\\emph{%s}} \\\\*", count + 1, latex_escape(part$head)),
      paste0(apply(matrix(latex_escape(part$cells), ncol = count + 1), 1, paste, collapse = " & "), " \\\\"))
  }))
  caption <- paste0("Figure ", number, " of the original: values as printed, and recomputed less printed")
  paste(c(
    "{\\footnotesize\\setlength{\\tabcolsep}{3.5pt}",
    sprintf("\\begin{longtable}{@{}l%s@{}}", strrep("r", count)),
    sprintf("\\caption{%s}\\label{table:values-%s}\\\\", latex_escape(sentence(caption)), number),
    heads, "\\endfirsthead", heads, "\\endhead", "\\bottomrule", "\\endfoot",
    body, "\\end{longtable}}"
  ), collapse = "\n")
}

#' All values of all figures, one table below the other
#'
#' @param results as from `read_reanalysis`
#' @return output for knitr
show_values <- function(results) {
  numbers <- names(original_figures())
  tables <- vapply(numbers, values_as_latex, "", results = results)
  shown <- numbers[tables != ""]
  if (length(shown) == 0) {
    return(prose("No raw results of the figures were read."))
  }
  opening <- paste0(
    "For each figure there is a table of its values: as printed, and by how much the recomputed value ",
    "differs. A star marks a difference of fewer runs than are behind the print; ", latex_escape(EM_DASH),
    " stands where none were read. Settings of which none were read at all are left out; ",
    "\\texttt{published/ibm{-}figures.csv} has their print."
  )
  cited <- sprintf("\n\nTable~\\ref{table:values-%s} is of Figure %s.\n", shown, shown)
  knitr::asis_output(raw_latex(paste(c(opening, paste0(cited, tables[tables != ""])), collapse = "\n")))
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
