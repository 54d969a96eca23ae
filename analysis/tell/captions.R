# What stands under the figures of a workload, and what the text says that they show.

FAR_CAPTION <- paste("Where emulated virtual machines are far from all else, they stand apart, on axes of",
                     "their own.")

#' Whether a figure was drawn and holds anything
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @param kinds as from `figures_of`
#' @return TRUE or FALSE
has_points <- function(stem, evidence, kinds) {
  has_figure(evidence, stem) && nrow(drawn_table(evidence, stem, kinds[[stem]]$kind)) > 0
}

#' What a figure of a workload draws
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @param kind of the figure
#' @return data frame with the columns of FIGURE_COLUMNS or of CURVE_COLUMNS
drawn_table <- function(evidence, stem, kind) {
  read_csv(sub("[.]pdf$", ".csv", figure_path(evidence, stem)),
           if (kind == "runs") FIGURE_COLUMNS else CURVE_COLUMNS)
}

#' What a figure shows, within a sentence
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @param figure its declaration
#' @param titled whether its title is told too
#' @return text such as "the throughput against the connections"
figure_subject <- function(evidence, workload, figure, titled = !is.null(figure$title)) {
  metrics <- metrics_of(evidence$plan, workload)
  name <- function(metric) paste("the", lower_first(metrics$label[metrics$metric == metric]))
  along <- paste("the", words(c(figure$along, "")[[1]]))
  what <- switch(
    figure$kind,
    sweep = paste(name(figure$metric), "against", along, if (isTRUE(figure$loss)) "and what is lost"),
    against = paste(name(figure$metric), "against", name(figure$against), "along", along),
    cdf = paste("the distribution of", name(figure$metric)),
    paste(c("every run", if (!is.null(figure$metrics)) {
      paste("of its", listed(lower_first(metrics$label[metrics$metric %in% figure$metrics])))
    }), collapse = " ")
  )
  paste0(trimws(what), if (titled) paste0(" (", lower_first(figure$title), ")"))
}

#' The caption of a figure of a workload
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @param stem of the figure's files
#' @return text
workload_caption <- function(evidence, workload, stem = workload) {
  figure <- figures_of(evidence$plan, workload)[[stem]]
  rows <- evidence$comparisons[evidence$comparisons$workload == workload, ]
  rows <- rows[drawn_in(figure, rows), ]
  title <- paste0(rows$title[[1]], if (!is.null(figure$title)) paste0(", ", lower_first(figure$title)))
  asked <- if (length(left_out(evidence, workload)) > 0) "Emulated virtual machines were not asked for it."
  if (figure$kind == "runs") {
    ranged <- if (isTRUE(figure$range)) "A thin bar below goes from the least run to the most."
    return(paste(c(paste0(title, ": ", runs_caption(evidence, rows)), ranged, asked), collapse = " "))
  }
  subject <- figure_subject(evidence, workload, figure, titled = FALSE)
  paste(c(paste0(title, ": ", subject, ". ", curve_caption(evidence, rows, figure)),
          interval_caption(rows), end_caption(rows, figure), asked), collapse = " ")
}

#' What is common to the figures of the workloads, and so is said before the first of them
#'
#' @param evidence as from `read_evidence`
#' @return one text; "" where none was drawn
figures_key <- function(evidence) {
  drawn <- do.call(rbind, lapply(unique(evidence$comparisons$workload), function(workload) {
    kinds <- figures_of(evidence$plan, workload)
    kinds <- kinds[vapply(names(kinds), has_points, NA, evidence = evidence, kinds = kinds)]
    do.call(rbind, lapply(names(kinds), function(stem) {
      table <- drawn_table(evidence, stem, kinds[[stem]]$kind)
      data.frame(runs = kinds[[stem]]$kind == "runs", published = any(table$what == "published"),
                 emulated = any(table$environment %in% emulated_environments(evidence$plan)))
    }))
  }))
  if (is.null(drawn)) {
    return("")
  }
  paste(c(
    if (any(drawn$runs)) {
      paste0("In figures of single runs every point is a run, the first measured on top; below them a tick ",
             "marks the mean, of percentiles the median, and a bar its 95", THIN, "% interval. The dashed ",
             "line is that of native; an axis that does not start at zero says so.")
    },
    if (!all(drawn$runs)) {
      paste0("In figures of curves bars are 95", THIN, "% intervals; an arrow marks one that goes on beyond ",
             "the axis.")
    },
    narrow_note(evidence, unique(evidence$comparisons$workload)),
    if (any(drawn$emulated)) FAR_CAPTION,
    if (any(drawn$published)) {
      paste0("Hollow diamonds", if (!all(drawn$runs)) " (of curves: on dotted lines)", " stand where the ",
             "ratio to native that was published, for other hardware and without an interval, would lead ",
             "here.")
    }
  ), collapse = " ")
}

#' What the points and lines of a figure of curves are
#'
#' @param evidence as from `read_evidence`
#' @param rows of the comparisons that it draws
#' @param figure its declaration
#' @return sentences
curve_caption <- function(evidence, rows, figure) {
  percentile <- rows$statistic == "percentile"
  level <- if (all(percentile)) "median" else if (any(percentile)) "mean or median" else "mean"
  unit <- paste0(unique(paste0(lower_first(metric_labels(evidence, rows)), " in ", rows$unit, ", ",
                               rows$better, " is better")), collapse = "; ")
  paste0(
    upper_first(unit), ". A point is the ", level, " over the runs (",
    linked(n_is(n_text(rows$n)), shared_source(rows)), ")",
    switch(figure$kind,
           sweep = ", shifted a little where environments share a place",
           against = paste0(" at one number of ", words(figure$along),
                            ", in whose order the line joins them"),
           " of one percentile of a run; both axes are stretched, so that the tail can be seen"),
    "."
  )
}

#' Labels of the metrics of rows
#'
#' @param evidence as from `read_evidence`
#' @param rows of the comparisons, of one workload
#' @return texts
metric_labels <- function(evidence, rows) {
  metrics <- metrics_of(evidence$plan, rows$workload[[1]])
  metrics$label[match(rows$metric, metrics$metric)]
}

#' Which points of a figure of curves have no interval
#'
#' @param rows of the comparisons that it draws
#' @return one sentence, or NULL where all have one
interval_caption <- function(rows) {
  known <- !is.na(levels_of(rows)$low) | !is.na(rows$ratio_low)
  if (!any(known)) {
    paste0("So few runs give no 95", THIN, "% interval.")
  } else if (!all(known)) {
    "Points without a bar are of too few runs for an interval."
  }
}

#' What else a figure of one kind needs to have said
#'
#' @param rows of the comparisons that it draws
#' @param figure its declaration
#' @return one sentence, or NULL
end_caption <- function(rows, figure) {
  if (figure$kind == "against") {
    paste0("The numbers in a panel are the ", words(figure$along), " at the ends of the line that stands ",
           "first in the legend.")
  } else if (isTRUE(figure$loss) && !all(is.na(rows$ratio))) {
    paste("The loss is that of the ratio paired by set; above zero an environment is worse than native,",
          "and its axis differs from panel to panel.")
  }
}

#' The caption of a figure of single runs
#'
#' @param evidence as from `read_evidence`
#' @param rows of the comparisons that it draws
#' @return text
runs_caption <- function(evidence, rows) {
  metrics <- metrics_of(evidence$plan, rows$workload[[1]])
  metrics <- metrics[metrics$metric %in% rows$metric, ]
  same <- length(unique(metrics$unit)) == 1 && length(unique(metrics$better)) == 1
  what <- if (same) {
    paste0(listed(lower_first(metrics$label)), " in ", metrics$unit[[1]], "; ", metrics$better[[1]],
           " is better")
  } else {
    paste0(metrics$label, " in ", metrics$unit, " (", metrics$better, " is better)", collapse = ", ")
  }
  paste0(what, "; ", linked(n_is(n_text(rows$n)), shared_source(rows)), " for each environment",
         if (all(is.na(levels_of(rows)$low))) ", too few for an interval", ".")
}

#' The caption of the run-order figure
#'
#' @param evidence as from `read_evidence`
#' @return text
order_caption <- function(evidence) {
  paste0("Every measured value", if (!all(evidence$comparisons$headline)) {
    " of the series that the tables tell of"
  }, " as its deviation in per cent from the mean of its environment and metric, in ",
         "the order in which the ", linked(counted(length(evidence$records), "run"), "records"),
         " were measured. A trend or a step would show that the machine changed under the experiment.")
}

#' The caption of the figure of the drift
#'
#' @param evidence as from `read_evidence`
#' @return text
drift_caption <- function(evidence) {
  drawn <- read_drawn(evidence, "drift")
  together <- nlevels(drift_panels(drawn$title, drawn$workload, evidence$plan)) < length(unique(drawn$title))
  where <- "within which nineteen of twenty would be, were the machine the same in all sets"
  paste0("The level of every set in the order of measurement: the mean over its environments of the value ",
         "relative to the environment\u2019s own mean (",
         linked(counted(length(sets_measured(evidence)$all), "set"), "records"), "). ",
         if (together) {
           paste0("A panel holds all series of a workload, each a line; a filled point lies outside of the ",
                  "band of its series, ", where, ".")
         } else {
           sub("^within which", "Within the grey band", paste0(where, "."))
         })
}

#' Whether a row of the figure of ratios is of a metric and not of a series, since there are so many
#'
#' @param evidence as from `read_evidence`
#' @return TRUE or FALSE
joined_rows <- function(evidence) {
  if (!has_figure(evidence, "ratios")) {
    return(FALSE)
  }
  drawn <- drawn_columns(evidence, "ratios", RATIO_COLUMNS)
  any(drawn$row != drawn$series)
}

#' The caption of the figure of ratios
#'
#' @param evidence as from `read_evidence`
#' @return text
ratios_caption <- function(evidence) {
  rows <- ratios(evidence)
  paste(c(
    paste0("Ratios to native of everything that was measured", of_sweeps(evidence), "; 1 is native. ",
           "Filled: measured here, mean paired by set and its 95", THIN, "% interval",
           if (nrow(rows) > 0) paste0(" (", linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), ")"),
           "; an arrow marks an interval that goes on beyond the axis. Hollow: published, for other ",
           "hardware and without an interval."),
    if (joined_rows(evidence)) {
      "Each row is a metric; its series stand below one another there, in the order of the tables."
    },
    left_out_note(evidence, rows$workload)
  ), collapse = " ")
}

#' The caption of the figure of the claims
#'
#' @param evidence as from `read_evidence`
#' @return text
claims_caption <- function(evidence) {
  claims <- rbind(evidence$claims, evidence$transferred)
  claims <- claims[claims$parts > 0 & !is.na(claims$ratio), ]
  moved <- claims[claims$published_for != "", ]
  raw <- drawn_columns(evidence, "claims", CLAIM_FIGURE_COLUMNS)$raw_logs
  paste0("Published claims and what was measured: the ratio of the two environments of each, with the ",
         "interval that decides (", linked(n_is(n_text(claims$ratio_n)), "records"), "). Grey: the ",
         "tolerance; where it reaches the edge, it has no limit there. Diamonds: what was published",
         if (any(!is.na(raw))) "; crosses: what the authors\u2019 own raw logs give, as they were read again",
         ".", if (any(claims$verdict == "not testable here")) {
           " Measured in part: of some of its environments."
         }, if (nrow(moved) > 0) {
           paste0(" Hollow, and last: transferred claims, ", transferred_between(moved, evidence), ".")
         })
}

#' The caption of the figure of the footprint
#'
#' @param evidence as from `read_evidence`
#' @return text
footprint_caption <- function(evidence) {
  drawn <- drawn_columns(evidence, "footprint", FOOTPRINT_FIGURE_COLUMNS)
  restored <- any(saved_first(evidence$records))
  paste0("How long it takes to bring an environment up: the mean, a thick bar for its 95", THIN,
         "% interval, and a thin one from the least to the most.",
         if (restored) " What the filled mark of a machine times is its being restored from a saved state.",
         if (any(drawn$quantity == "boot_seconds")) " Hollow: the boot of the machine itself.",
         if (any(evidence$footprint$quantity == "up_seconds" & evidence$footprint$mean %in% 0)) {
           " What took less than a thousandth of a second is not drawn."
         })
}

#' Whether a figure that is of no single workload was drawn and holds anything
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @return TRUE or FALSE
has_rows <- function(evidence, stem) {
  columns <- list(answers = ANSWER_COLUMNS, claims = CLAIM_FIGURE_COLUMNS,
                  footprint = FOOTPRINT_FIGURE_COLUMNS)[[stem]]
  has_figure(evidence, stem) && nrow(drawn_columns(evidence, stem, columns)) > 0
}

#' What a figure that is of no single workload draws
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @param columns of its data
#' @return data frame
drawn_columns <- function(evidence, stem, columns) {
  read_csv(sub("[.]pdf$", ".csv", figure_path(evidence, stem)), columns)
}
