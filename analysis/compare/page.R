# The page of a comparison of two testbeds: one file that needs no network.

#' The page of a comparison
#'
#' @param table as from `compare_sides`
#' @param first,second as from `read_side`
#' @param differences as from `provenance_differences`
#' @param effect the minimum effect, as a share
#' @param figure path of the figure without its ending
#' @param root folder of the project
#' @return one text
compared_page <- function(table, first, second, differences, effect, figure, root) {
  bare_page(paste(second$name, "compared with", first$name), c(
    sprintf("<p>%s</p>", html_escape(outcome_text(table, first, second, effect))),
    html_figure(figure, basename(figure), "compared", compared_caption(first, second, effect),
                outcome_text(table, first, second, effect)),
    html_table(table_compared(table, first, second, effect)),
    if (any(is.na(table$ratio))) html_table(table_one_sided(table, first, second)),
    html_table(table_differences(differences, first, second)),
    sprintf("<p>%s</p>", html_escape(compared_method()))
  ), root)
}

#' A page of its own
#'
#' @param title text
#' @param body HTML, parts of it
#' @param root folder of the project
#' @return one text
bare_page <- function(title, body, root) {
  paper <- function(name) read_text(file.path(root, "paper", name))
  parts <- list(title = html_escape(title), body = paste(body, collapse = "\n"),
                script = paper("report.js"), style = paper("report.css"))
  page <- paper("compare.html")
  for (name in names(parts)) {
    page <- paste(strsplit(page, paste0("<!--", name, "-->"), fixed = TRUE)[[1]], collapse = parts[[name]])
  }
  pack_drawings(style_columns(number_floats(page)))
}

#' What a comparison comes to, in sentences
#'
#' @inheritParams compared_page
#' @return text
outcome_text <- function(table, first, second, effect) {
  counts <- outcome_of(table)
  if (counts$compared == 0) {
    return(paste("No metric was measured on both sides often enough for an interval: nothing can be told."))
  }
  called <- counts$slower + counts$faster
  share <- percent(effect, if (effect * 100 == round(effect * 100)) 0 else 2)
  paste0(
    "Of ", counted(counts$compared, "metric"), " that both sides measured, ",
    if (called == 0) {
      paste0("none differs by more than ", share, " beyond doubt")
    } else {
      paste0(second$name, " is slower in ", fixed(counts$slower, 0), " and faster in ",
             fixed(counts$faster, 0))
    },
    "; ", fixed(counts$equal, 0), if (counts$equal == 1) " is" else " are", " within ", share, ", and ",
    fixed(counts$open, 0), if (counts$open == 1) " is" else " are", " left open by too wide an interval.",
    if (any(table$differs != "" & !is.na(table$ratio))) {
      " Some were not measured with the same parameters or layers on both sides; the table names them."
    }
  )
}

#' The caption of the figure of a comparison
#'
#' @inheritParams compared_page
#' @return text
compared_caption <- function(first, second, effect) {
  paste0("Ratio of the mean of ", second$name, " to that of ", first$name, " for every metric, of sweeps at ",
         "the points that stand for them, with its 95", THIN, "% interval. The grey band is the minimum ",
         "effect, ", percent(effect, 1), " to either side.")
}

#' The table of what both sides measured
#'
#' @inheritParams compared_page
#' @return a table
table_compared <- function(table, first, second, effect) {
  rows <- table[!is.na(table$ratio), ]
  mean_text <- function(side) {
    at <- function(part) rows[[paste0("mean_", side, part)]]
    vapply(seq_len(nrow(rows)), function(i) {
      value <- at("")[[i]]
      limits <- c(at("_low")[[i]], at("_high")[[i]])
      decimals <- decimals_for(diff(limits) / 2, value)
      trimws(paste(fixed(value, decimals), interval(limits[[1]], limits[[2]], decimals)))
    }, "")
  }
  cells <- data.frame(
    compared_names(rows, first$plan, second$plan), environment_labels(first$plan, rows$environment),
    rows$unit, fixed(rows$n_first, 0), mean_text("first"), fixed(rows$n_second, 0),
    mean_text("second"), percent_interval(rows$ratio, rows$ratio_low, rows$ratio_high),
    ifelse(is.na(rows$p_adjusted), EM_DASH, sprintf("%.3g", rows$p_adjusted)), rows$reading,
    ifelse(rows$differs == "", "", words(gsub(";", ", ", rows$differs, fixed = TRUE)))
  )
  columns <- list(
    column("Metric"), column("Environment"), column("Unit"), column("n", "right", first$name),
    column("Mean [95\u202f% interval]", "right", first$name), column("n", "right", second$name),
    column("Mean [95\u202f% interval]", "right", second$name), column("Ratio [95\u202f% interval]", "right"),
    column("Adjusted p", "right"), column("Reading"), column("Not the same", "wrap")
  )
  new_table("compared", paste0("Comparison of ", second$name, " with ", first$name), columns, cells,
            notes = paste0("Reading: of ", second$name, ". Slower and faster where the adjusted p value is ",
                           "below 0.05 and the ratio differs from 1 by more than ", percent(effect, 1),
                           "; equal where two one-sided tests at 5", THIN, "% exclude that; open otherwise; ",
                           "unknown where there is no interval."))
}

#' The table of what only one side measured
#'
#' @inheritParams compared_page
#' @return a table
table_one_sided <- function(table, first, second) {
  rows <- table[is.na(table$ratio), ]
  label <- vapply(seq_len(nrow(rows)), function(i) {
    side <- if (rows$n_first[[i]] > 0) first else second
    environment_labels(side$plan, rows$environment[[i]])
  }, "")
  cells <- data.frame(compared_names(rows, first$plan, second$plan), label,
                      ifelse(rows$n_first > 0, first$name, second$name))
  new_table("one-sided", "What only one side measured, and so can't be compared",
            list(column("Metric"), column("Environment"), column("Measured by")), cells,
            notes = "A virtual machine with hardware acceleration and one without are two environments.")
}

#' The table of differences of origin
#'
#' @inheritParams compared_page
#' @return a table
table_differences <- function(differences, first, second) {
  new_table("differences", "What was observed to differ between the two",
            list(column("What", "wrap"), column(first$name, "wrap"), column(second$name, "wrap")),
            differences,
            notes = if (nrow(differences) == 0) "Nothing." else character())
}

#' How the comparison was made
#'
#' @return text
compared_method <- function() {
  paste0(
    "The runs of the two sides are independent samples: no set holds runs of both. A ratio is one of ",
    "means, its 95", THIN, "% interval is Fieller's for unequal variances with Satterthwaite's degrees of ",
    "freedom, and its p value Welch's. The p values of all rows are one family, in which the ",
    "false-discovery rate is held at 5", THIN, "% by the procedure of Benjamini and Hochberg. The intervals ",
    "know how runs vary within an experiment. What changes from one experiment to the next on the same ",
    "machine (a boot, a day, an update) they can't know; repeat the whole experiment to see it."
  )
}
