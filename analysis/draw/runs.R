# The figure of single runs: every run of a workload, and the mean of each environment.

FIGURE_COLUMNS <- c(environment = "character", label = "character", panel = "character", what = "character",
                    order = "integer", n = "integer", value = "numeric", low = "numeric", high = "numeric",
                    source = "character", log = "character")

#' What the figure of a workload draws
#'
#' @param summary rows of the summary
#' @param tidy rows of the tidy table
#' @param plan as from `read_plan`
#' @param published as from `read_published_ratios`, or NULL for nothing published
#' @return list of three data frames.  `runs`: environment, label, panel, order, value, log and `row`, the
#'   height at which the point stands.  `means`: environment, label, panel, metric, n, value, low, high, row,
#'   and, where the range is drawn, `least` and `most`.  `published`:
#'   environment, label, panel, value (as from `published_levels`), source, row.  Panels are factors in the
#'   order of the plan's metrics; rows count from the bottom, the plan's first environment is at the top.
#' @param range whether a thin bar goes from the least run of an environment to its most
workload_data <- function(summary, tidy, plan, published = NULL, range = FALSE) {
  metrics <- metrics_of(plan, tidy$workload[[1]])
  environments <- intersect(names(plan$environments), summary$environment)
  row_of <- function(environment) length(environments) + 1 - match(environment, environments)
  panels <- unique(tidy[c("metric", "factors")])
  panels <- panels[order(match(panels$metric, metrics$metric), natural_rank(panels$factors)), ]
  names_of_panels <- panel_names(panels, metrics)
  panel_of <- function(table) {
    factor(names_of_panels[match(paste(table$metric, table$factors), paste(panels$metric, panels$factors))],
           names_of_panels)
  }
  runs <- data.frame(environment = tidy$environment, label = environment_labels(plan, tidy$environment),
                     panel = panel_of(tidy), order = tidy$order, value = tidy$value, log = tidy$log)
  runs <- runs[order(row_of(runs$environment), runs$panel, runs$order, decreasing = c(TRUE, FALSE, FALSE),
                     method = "radix"), ]
  place <- stats::ave(runs$order, runs$environment, runs$panel, FUN = function(x) spread(length(x)))
  level <- levels_of(summary)
  means <- data.frame(environment = summary$environment,
                      label = environment_labels(plan, summary$environment), panel = panel_of(summary),
                      metric = summary$metric,
                      n = summary$n, value = level$value, low = level$low, high = level$high,
                      row = row_of(summary$environment))
  if (range) {
    means$least <- summary$min
    means$most <- summary$max
  }
  runs$row <- row_of(runs$environment) + place
  panels <- cbind(workload = rep(tidy$workload[[1]], nrow(panels)), panels)
  levels <- published_levels(summary, panels, plan, published)
  levels <- data.frame(environment = levels$environment,
                       label = environment_labels(plan, levels$environment), panel = panel_of(levels),
                       value = levels$value, source = levels$source, row = row_of(levels$environment))
  list(runs = runs, means = means, published = levels)
}

#' What the figure of a workload draws, as one table
#'
#' @param data as from `workload_data`
#' @return data frame with the columns of FIGURE_COLUMNS; `what` is "run", "mean" or "published"
drawn <- function(data) {
  parts <- Filter(function(part) NROW(part) > 0,
                  list(run = data$runs, mean = data$means, published = data$published))
  table <- do.call(rbind, lapply(names(parts), function(what) {
    part <- cbind(parts[[what]], what = rep(what, nrow(parts[[what]])))
    part[setdiff(names(FIGURE_COLUMNS), c(names(part), "source", "log"))] <- rep(NA_real_, nrow(part))
    for (text in c("source", "log")) {
      part[[text]] <- if (is.null(part[[text]])) rep("", nrow(part)) else part[[text]]
    }
    part[names(FIGURE_COLUMNS)]
  }))
  table$panel <- as.character(table$panel)
  table
}

#' Heights at which the runs of one environment stand around its row, from the first measured to the last
#'
#' @param n number of runs
#' @return numbers from high to low, in the upper part of the row: the lower part is the mean's
spread <- function(n) {
  reach <- min(0.23, 0.06 * (n - 1))
  0.13 + if (n == 1) 0 else seq(reach, -reach, length.out = n)
}

#' Names of panels
#'
#' @param panels data frame: metric, factors
#' @param metrics as from `metrics_of`
#' @return text: the metric where it differs between panels, its unit where that differs, and the factors,
#'   whose names are left out where their values are words
panel_names <- function(panels, metrics) {
  metric <- metrics[match(panels$metric, metrics$metric), ]
  name <- if (length(unique(metric$label)) > 1) metric$label else ""
  if (length(unique(metric$unit)) > 1) {
    name <- paste0(metric$label, " (", metric$unit, ")")
  }
  factors <- vapply(strsplit(panels$factors, ";", fixed = TRUE), function(pairs) {
    paste(sub("^[^=]*=([^0-9].*)$", "\\1", pairs), collapse = ", ")
  }, "")
  factors <- gsub("=", " = ", factors, fixed = TRUE)
  paste0(name, ifelse(name != "" & factors != "", ", ", ""), thousands(factors))
}

#' The figure of a workload
#'
#' Every run is a point; beside them stand the mean and its 95 % interval; a line marks the mean of native,
#' and a hollow diamond where a published ratio to it would lead.
#' The axis of values starts at zero where the smallest value drawn is below half of the largest; elsewhere
#' zero would hide what is to be seen, and the axis says that it does not start there.
#'
#' @param data as from `workload_data`
#' @param plan as from `read_plan`
#' @param workload its name
#' @return ggplot2 plot
workload_figure <- function(data, plan, workload) {
  means <- data$means
  rows <- means[!duplicated(means$environment), ]
  marks <- environment_marks(names(plan$environments))
  from_zero <- starts_at_zero(data)
  # A panel of which this part has nothing keeps its place, with an axis.
  empty <- data.frame(panel = factor(setdiff(levels(means$panel), means$panel), levels(means$panel)))
  empty <- merge(empty, data.frame(value = 0:1, row = 1))
  ggplot2::ggplot(means, ggplot2::aes(.data$value, .data$row)) +
    ggplot2::geom_hline(yintercept = rows$row[-1] + 0.5, colour = "grey90", linewidth = 0.25) +
    ggplot2::geom_vline(ggplot2::aes(xintercept = .data$value), means[means$environment == REFERENCE, ],
                        colour = PALE, linewidth = 0.3, linetype = "22") +
    told_layer(ggplot2::geom_point(environment_aes(), data$runs, stroke = 0.4, alpha = SOLID),
               paste0(run_name(data$runs$log), ": ", signif(data$runs$value, 5), recycle0 = TRUE)) +
    mean_layers(means) +
    ggplot2::geom_point(ggplot2::aes(y = .data$row - 0.32), data$published, shape = 5, size = 1.7,
                        stroke = 0.5, colour = INK) +
    ggplot2::geom_blank(data = empty) +
    ggplot2::facet_wrap(ggplot2::vars(.data$panel), nrow = panel_rows(nlevels(means$panel)),
                        scales = "free_x", drop = FALSE,
                        labeller = ggplot2::as_labeller(wrapped_panels(means))) +
    ggplot2::scale_x_continuous(axis_title(plan, workload, means, from_zero),
                                breaks = round_breaks(if (nlevels(means$panel) == 1) 5 else 3),
                                labels = axis_numbers,
                                limits = value_limits(from_zero), oob = scales::oob_keep,
                                sec.axis = bound_axis(bound_of(plan, workload, unique(means$metric))),
                                expand = ggplot2::expansion(mult = c(if (from_zero) 0 else 0.06, 0.06))) +
    ggplot2::scale_y_continuous(NULL, breaks = rows$row, labels = in_two_lines(rows$label),
                                limits = c(0.5, max(rows$row) + 0.5), expand = c(0, 0),
                                sec.axis = ggplot2::dup_axis(labels = run_counts(means, rows$environment))) +
    environment_scales(marks, environment_labels(plan, marks$environment)) +
    figure_theme() +
    ggplot2::theme(legend.position = "none", panel.grid.major.y = ggplot2::element_blank(),
                   axis.text.y = ggplot2::element_text(lineheight = 0.85),
                   axis.text.y.right = ggplot2::element_text(colour = PALE),
                   axis.ticks.y = ggplot2::element_blank(), panel.spacing.x = ggplot2::unit(11, "pt"),
                   strip.text = ggplot2::element_text(vjust = 0)) +
    if (nlevels(means$panel) == 1) ggplot2::theme(strip.text = ggplot2::element_blank())
}

#' Layers that draw means and their intervals under the runs
#'
#' @param means as of `workload_data`
#' @return list of ggplot2 layers
mean_layers <- function(means) {
  bars <- means[!is.na(means$low), ]
  list(
    if (!is.null(means$least)) {
      ggplot2::geom_segment(ggplot2::aes(x = .data$least, xend = .data$most,
                                         y = .data$row - 0.42, yend = .data$row - 0.42),
                            means, colour = PALE, linewidth = 0.3)
    },
    ggplot2::geom_segment(ggplot2::aes(x = .data$low, xend = .data$high,
                                       y = .data$row - 0.32, yend = .data$row - 0.32),
                          bars, colour = INK, linewidth = 0.5),
    ggplot2::geom_segment(ggplot2::aes(xend = .data$value, y = .data$row - 0.42, yend = .data$row - 0.22),
                          colour = INK, linewidth = 0.7)
  )
}

#' An axis of shares of what bounds the values
#'
#' @param bound as from `bound_of`
#' @return secondary axis of ggplot2, or none where the bound is not known
bound_axis <- function(bound) {
  if (is.na(bound)) {
    return(ggplot2::waiver())
  }
  ggplot2::sec_axis(~ 100 * . / bound, labels = axis_numbers, breaks = round_breaks(5),
                    name = paste0("% of the machine\u2019s bound, ", quantity(bound)))
}

#' Whether the axis of a figure starts at zero
#'
#' @param data as from `workload_data`
#' @return TRUE where the smallest value of any panel is below half of its largest
starts_at_zero <- function(data) {
  values <- c(data$runs$value, data$means$low, data$means$high, data$published$value)
  panel <- c(data$runs$panel, data$means$panel, data$means$panel, data$published$panel)
  # A panel may have no values: what only emulated machines have stands in a part of its own.
  any(tapply(values, panel, function(x) min(x, na.rm = TRUE) < max(x, na.rm = TRUE) / 2), na.rm = TRUE)
}

#' Title of the axis of values
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @param means as of `workload_data`
#' @param from_zero whether the axis starts at zero
#' @return text
axis_title <- function(plan, workload, means, from_zero) {
  metrics <- metrics_of(plan, workload)
  metrics <- metrics[metrics$metric %in% means$metric, ]
  same <- function(column) if (length(unique(metrics[[column]])) == 1) metrics[[column]][[1]]
  panels <- nlevels(means$panel)
  label <- same("label")
  unit <- same("unit")
  quantity <- if (is.null(unit)) NULL else if (is.null(label)) unit else paste0(label, " (", unit, ")")
  better <- same("better")
  first <- paste(c(quantity, if (!is.null(better)) paste(better, "is better")), collapse = ", ")
  second <- if (!from_zero) paste(if (panels > 1) "axes do" else "axis does", "not start at zero")
  paste(c(if (first != "") first, second), collapse = if (panels > 1) "; " else "\n")
}

#' How many runs stand in each row, as text
#'
#' @param means as of `workload_data`
#' @param environments the environments whose rows they are
#' @return texts such as "5 runs" or, where panels differ, "4 to 5 runs"
run_counts <- function(means, environments) {
  vapply(environments, function(environment) {
    n <- means$n[means$environment == environment]
    paste(paste(unique(range(n)), collapse = " to "), if (max(n) == 1) "run" else "runs")
  }, "", USE.NAMES = FALSE)
}

#' How panels are laid out: at most four stand side by side
#'
#' @param panels their number
#' @return number of rows
panel_rows <- function(panels) {
  ceiling(panels / 4)
}

#' A function that breaks the names of panels into lines that fit
#'
#' @param means as of `workload_data`
#' @return function of texts
wrapped_panels <- function(means) {
  panels <- nlevels(means$panel)
  letters <- c(60, 48, 34, 25)[[ceiling(panels / panel_rows(panels))]]
  function(label) vapply(strwrap(label, letters, simplify = FALSE), paste, "", collapse = "\n")
}

#' Limits of the axis of values
#'
#' An axis that does not start at zero spans at least 2 % of its values, so that what is tiny looks tiny.
#'
#' @param from_zero whether the axis starts at zero
#' @return function of the range of the values, as ggplot2 takes for the limits of an axis
value_limits <- function(from_zero) {
  function(range) {
    if (from_zero) {
      return(c(0, range[[2]]))
    }
    range(range, mean(range) * c(0.99, 1.01))
  }
}

#' Size of the figure of a workload
#'
#' @param means as of `workload_data`
#' @param bounded whether it has an axis of shares of a bound too
#' @return width and height in inches: a column of the paper for one panel, its full width for more
workload_size <- function(means, bounded = FALSE) {
  panels <- nlevels(means$panel)
  rows <- panel_rows(panels)
  names <- wrapped_panels(means)(levels(means$panel))
  lines <- max(lengths(strsplit(names, "\n", fixed = TRUE)), 1)
  above <- if (panels == 1) 0.2 else 0.35 + 0.11 * (lines - 1)
  c(if (panels == 1) COLUMN_WIDTH else FULL_WIDTH,
    rows * (0.27 * length(unique(means$environment)) + above + 0.3 * bounded) + 0.25)
}

#' The parts of a workload's figure, each with axes of its own
#'
#' Emulated virtual machines that are far from all else stand below the others.
#'
#' @param data as from `workload_data`
#' @param plan as from `read_plan`
#' @return list of one or two such lists
workload_parts <- function(data, plan) {
  means <- data$means
  apart <- far_environments(means$environment, means$panel, means$value, plan)
  if (length(apart) == 0) {
    return(list(data))
  }
  lapply(list(setdiff(means$environment, apart), apart), function(environments) {
    first <- min(means$row[means$environment %in% environments]) - 1
    lapply(data, function(table) {
      table <- table[table$environment %in% environments, ]
      table$row <- table$row - first
      table
    })
  })
}

#' Draws and writes the figure of single runs
#'
#' @param summary,tidy rows of one workload
#' @param plan,published as of `workload_data`
#' @param figure its declaration
#' @param out path without extension
draw_runs <- function(summary, tidy, plan, published, figure, out) {
  data <- workload_data(summary, tidy, plan, published, isTRUE(figure$range))
  parts <- workload_parts(data, plan)
  workload <- tidy$workload[[1]]
  figures <- lapply(parts, workload_figure, plan = plan, workload = workload)
  bounded <- !is.na(bound_of(plan, workload, unique(data$means$metric)))
  sizes <- vapply(parts, function(part) workload_size(part$means, bounded), c(0, 0))
  rows <- vapply(parts, function(part) length(unique(part$means$environment)), 0L)
  write_figure(figures, drawn(data), out, c(max(sizes[1, ]), sum(sizes[2, ])), rows)
}
