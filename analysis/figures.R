# Figures of papers: a function for each, and one theme for all.  Heights are in inches.
# `paper` is the list of read_paper, and `figure` an entry of a workload's `figures` in the plan.

library(ggplot2)

# Colours of Okabe and Ito; the style of the web page inverts them on a dark background.
COLOURS <- c("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9",
             "#6A3D9A", "#B15928")
# The colours and shapes of the outcomes of comparisons.
OUTCOME_COLOURS <- c(slower = "#D55E00", faster = "#0072B2", equivalent = "#009E73",
                     undecided = "grey40", "no interval" = "grey40")
OUTCOME_SHAPES <- c(slower = 25, faster = 24, equivalent = 21, undecided = 22, "no interval" = 4)

theme_set(theme_minimal(base_size = 9) + theme(
  text = element_text(size = 9), axis.text = element_text(size = 8, colour = "grey20"),
  legend.text = element_text(size = 8.5),
  strip.text = element_text(size = 8.5, hjust = 0, vjust = 0, face = "bold"),
  panel.grid.minor = element_blank(), panel.grid.major.y = element_blank(),
  legend.position = "top", legend.justification = "left", legend.title = element_blank(),
  legend.margin = margin(0, 0, 0, 0), legend.box.spacing = unit(4, "pt"),
  legend.key.size = unit(10, "pt"),
  panel.border = element_rect(colour = "grey75", fill = NA, linewidth = 0.3),
  panel.spacing = unit(8, "pt"), strip.clip = "off", plot.margin = margin(2, 8, 2, 2),
  plot.background = element_rect(fill = NA, colour = NA)
))

# Horizontal grid lines, which the theme leaves out.
HORIZONTAL_GRID <- theme(panel.grid.major.y = element_line(colour = "grey92", linewidth = 0.3))

# How far an interval may exceed the levels of its panel, as a share of their range.
PANEL_SPACE <- 0.4
SHARE_OF_NATIVE <- "Performance, % of native\u2019s (logarithmic)"

# Returns the number of letters that fit in a line of a series' label.
# columns: number of the figure's columns of panels.
choose_label_width <- function(columns) {
  if (knitr::is_html_output()) return(26)
  if (columns > 6) 30 else 44
}

# Returns a function that wraps strings into lines of at most `width` letters; ggplot uses it for
# labels.
make_text_wrapper <- function(width) function(texts) stringr::str_wrap(texts, width)

# Formats ratios in per cent without the sign, for an axis whose title names the unit.
format_percent <- function(ratios) format(100 * ratios, trim = TRUE, drop0trailing = TRUE)

# Returns the limits of an axis, with a lower limit above 0 replaced by 0.
include_zero <- function(limits) c(min(0, limits[1]), limits[2])

# Returns the labels of environments by their names; NA for a name that the plan does not have.
# paper: list of read_paper.
get_environment_labels <- function(paper, names) {
  paper$environments$label[match(names, paper$environments$environment)]
}

#' Make the scales of environments, which are the same in all figures of a paper
#'
#' The position of an environment in the plan decides its colour and shape, which repeat if there
#' are more environments than colours or shapes.  Only measured environments are in the legend.
#'
#' @param paper list of read_paper
#' @return list of ggplot scales: colour, fill, shape
make_environment_scales <- function(paper) {
  environments <- paper$environments$environment[!paper$environments$emulated]
  assign_values <- function(values) {
    stats::setNames(rep_len(values, length(environments)), environments)
  }
  shapes <- c(16, 17, 15, 18, 8, 3, 4, 1, 2)
  breaks <- intersect(environments, paper$measured$environment)
  labels <- get_environment_labels(paper, breaks)
  list(scale_colour_manual(values = assign_values(COLOURS), labels = labels, breaks = breaks),
       scale_fill_manual(values = assign_values(COLOURS), labels = labels, breaks = breaks),
       scale_shape_manual(values = assign_values(shapes), labels = labels, breaks = breaks),
       guides(colour = guide_legend(ncol = count_legend_columns(paper)), fill = "none"))
}

# Returns how many labels of environments fit side by side into a legend, at least 1.
# paper: list of read_paper.
count_legend_columns <- function(paper) {
  line_letters <- if (knitr::is_html_output()) 72 else 96
  # The key of an entry and the gap after it are as wide as five letters.
  max(1, line_letters %/% (max(nchar(paper$measured$label)) + 5))
}

# Computes the height in inches of a legend of environments without its first row, for which every
# figure has room.
# paper: list of read_paper.
compute_legend_height <- function(paper) {
  0.17 * ((nrow(paper$measured) - 1) %/% count_legend_columns(paper))
}

#' Select the verdicts of the figure on page 1: each workload in each environment
#'
#' @param paper list of read_paper
#' @return rows of paper$decisions that omit_start_up keeps, with two more columns: count (the
#'   number of the workload's headline series) and decisive (the series that decides).  series is
#'   the label in the figure: the workload's title if it has several series
select_forest_verdicts <- function(paper) {
  workloads <- distinct(paper$headlines, workload, question, series) |>
    count(workload, question, name = "count")
  rows <- inner_join(paper$decisions, workloads, by = "workload") |>
    omit_start_up() |>
    mutate(decisive = series)
  # `series` has the mark already; the title has to get it.
  titles <- mutate(rows, series = paste0(title, " (", count, " series)")) |>
    mark_broken_sizes(paper)
  mutate(rows, series = if_else(count > 1, titles$series, series))
}

# Selects the published ratios of the series that decide, for the argument `published` of
# draw_forest.  There are no rows if nothing was published.
# paper: list of read_paper.
# verdicts: rows of select_forest_verdicts.
select_published_ratios <- function(paper, verdicts) {
  if (nrow(paper$published) == 0) return(tibble())
  labels <- select(verdicts, workload, environment, decisive, series_label = series)
  inner_join(paper$published, labels,
             by = c("workload", "environment", series = "decisive")) |>
    mutate(series = series_label)
}

#' Select the series of a figure of all comparisons
#'
#' @param comparisons headline rows of comparisons
#' @param series_limit number of series that fit.  If there are more, only the first series of each
#'   workload and metric is kept; if these are still too many, the first series of each workload.
#' @return rows of comparisons that omit_start_up keeps
select_forest_rows <- function(comparisons, series_limit = 24) {
  rows <- omit_start_up(comparisons)
  # Keeps only the first series of each group of rows with equal values in the columns `...`.
  keep_first_series <- function(rows, ...) {
    semi_join(rows, distinct(rows, ..., .keep_all = TRUE), by = c("workload", "series"))
  }
  has_too_many <- function(rows) n_distinct(rows$series) > series_limit
  if (has_too_many(rows)) rows <- keep_first_series(rows, workload, metric)
  if (has_too_many(rows)) rows <- keep_first_series(rows, workload)
  rows
}

#' Draw each environment's performance as a share of native's, with intervals (a forest plot)
#'
#' @param comparisons rows of select_forest_verdicts or select_forest_rows, in the order of the
#'   figure: workload, series, label, outcome, ratio, low, high (NA if there is no interval)
#' @param published data frame, whose ratios are drawn as diamonds: workload, series, label,
#'   published_ratio
#' @param margin the largest difference that does not matter, as a share
#' @return ggplot; compute_forest_height computes its height
draw_forest <- function(comparisons, published = tibble(), margin = MARGIN) {
  rows <- mutate(comparisons, series = factor(series, unique(series)),
                 label = factor(label, unique(label)),
                 workload = factor(workload, unique(workload)))
  # The axis ends at twice the largest distance of a ratio from 1; longer intervals are cut there.
  reach <- 2 * max(abs(log(rows$ratio)), 0.05)
  ends <- pmin(pmax(log(c(rows$low, rows$high, rows$ratio)), -reach), reach)
  limits <- exp(range(ends, c(-1, 1) * log(1 - margin), na.rm = TRUE))
  columns <- nlevels(rows$label)
  plot <- ggplot(rows, aes(ratio, series, colour = outcome, shape = outcome, fill = outcome)) +
    draw_margin(margin) +
    geom_linerange(aes(xmin = pmax(low, limits[1] / 2), xmax = pmin(high, limits[2] * 2)),
                   filter(rows, !is.na(low)), linewidth = 0.6, show.legend = FALSE) +
    geom_point(size = 1.7) +
    facet_grid(rows = vars(workload), cols = vars(label), scales = "free_y", space = "free_y",
               labeller = labeller(label = make_text_wrapper(max(7, 48 %/% columns)))) +
    scale_y_discrete(limits = rev, labels = make_text_wrapper(choose_label_width(columns))) +
    scale_x_log10(labels = format_percent,
                  breaks = choose_ratio_breaks(limits, if (columns > 3) 2 else 4),
                  guide = guide_axis(check.overlap = TRUE)) +
    scale_colour_manual(values = OUTCOME_COLOURS) +
    scale_fill_manual(values = OUTCOME_COLOURS) +
    scale_shape_manual(values = OUTCOME_SHAPES) +
    coord_cartesian(xlim = limits) +
    labs(x = SHARE_OF_NATIVE, y = NULL) +
    HORIZONTAL_GRID +
    theme(strip.text.y = element_blank(), panel.spacing.y = unit(3, "pt"),
          strip.text.x = element_text(size = 8))
  if (nrow(published) == 0) return(plot)
  marks <- filter(published, series %in% rows$series) |>
    mutate(workload = factor(workload, levels(rows$workload)),
           label = factor(label, levels(rows$label)))
  plot +
    geom_point(aes(published_ratio, series), marks, shape = 5, size = 1.6, colour = "black",
               inherit.aes = FALSE, position = position_nudge(y = -0.28))
}

#' Write the caption of the figure on page 1
#'
#' The caption explains only the marks that the figure has.
#'
#' @param paper list of read_paper
#' @param verdicts rows of select_forest_verdicts
#' @return text
write_forest_caption <- function(paper, verdicts) {
  intervals <- if (any(!is.na(verdicts$low))) ", with the interval that decides"
  paste0("Performance as a share of native\u2019s", intervals, "; left of the line is worse. ",
         describe_scope(verdicts), " Grey: within \u00b1\u00a0", format_margin(MARGIN), ".",
         if (any(verdicts$count > 1)) " Of several series, the one that decides.",
         if (nrow(select_published_ratios(paper, verdicts)) > 0) {
           " Diamonds: Table I of the original, on other hardware."
         },
         if (nrow(verdicts) < nrow(paper$headlines)) " The appendix has all series.",
         if (any(is.na(verdicts$low))) " Crosses have no interval.")
}

# Makes the lowest layers of a figure of ratios: a grey band of the ratios that count as equal, and
# a line at 1.  Returns a list of layers of ggplot.
# margin: the largest difference that does not matter, as a share.
draw_margin <- function(margin = MARGIN) {
  list(annotate("rect", xmin = 1 - margin, xmax = 1 / (1 - margin), ymin = -Inf, ymax = Inf,
                fill = "grey85"),
       geom_vline(xintercept = 1, linewidth = 0.3, colour = "grey40"))
}

# Chooses about `count` round ratios as the breaks of a logarithmic axis.
# limits: the lower and the upper limit of the axis.
# On a wide axis they are steps of 1, 2 and 5; if too many fit, only the first one, 1 and the last
# one are returned.
choose_ratio_breaks <- function(limits, count) {
  is_wide <- limits[2] > 2.5 * limits[1]
  if (is_wide) {
    breaks <- c(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
    breaks <- breaks[breaks >= limits[1] & breaks <= limits[2]]
    if (length(breaks) > count + 1) return(unique(c(breaks[1], 1, breaks[length(breaks)])))
    if (length(breaks) > 2) return(breaks)
  }
  scales::breaks_pretty(count)(limits)
}

#' Compute the height of draw_forest's figure
#'
#' @param comparisons rows of draw_forest
#' @return inches: the sum of the heights of axis and legend, of all rows, of the gaps between
#'   workloads, and of the lines that the titles of more than three columns need
compute_forest_height <- function(comparisons) {
  series <- unique(comparisons$series)
  columns <- n_distinct(comparisons$label)
  # All rows are as high as the longest label needs; the numbers fit the theme's sizes of letters.
  further_lines <- max(0, nchar(series) %/% choose_label_width(columns))
  lines <- length(series) * (1 + 0.9 * further_lines)
  0.95 + 0.165 * lines + 0.04 * n_distinct(comparisons$workload) + 0.06 * max(0, columns - 3)
}

# Names the panel of each row of a figure: by the metric if the figure has several, and by the
# factors that differ between its rows.  Returns a factor with the panels in the order of the rows.
# rows: rows of the table summary or comparisons.
# along: name of the factor on the axis, which distinguishes no panels; or NULL.
name_panels <- function(rows, along = NULL) {
  columns <- setdiff(list_factor_columns(rows), paste0(FACTOR, along))
  varies <- vapply(columns, function(column) n_distinct(rows[[column]]) > 1, NA)
  factors <- describe_factors(rows, columns[varies])
  has_several_metrics <- n_distinct(rows$metric_label, rows$unit) > 1
  metric <- if (has_several_metrics) paste0(rows$metric_label, " (", rows$unit, ")") else ""
  separator <- ifelse(metric == "" | factors == "", "", ", ")
  panel <- paste0(metric, separator, factors)
  factor(panel, unique(panel))
}

# Adds the columns low and high: the interval of each level, clipped so that a wide one does not
# stretch its panel.
# An interval exceeds the panel's levels by at most PANEL_SPACE of their range, or of 5 % of the
# largest level if the range is smaller.  It goes below 0 only if a level does.  It is NA for a row
# of fewer than INTERVAL_BLOCKS blocks.
# rows: data frame of panel, level, level_low, level_high and n.
clip_intervals <- function(rows) {
  rows |>
    group_by(panel) |>
    mutate(across(c(level_low, level_high), \(end) if_else(n < INTERVAL_BLOCKS, NA_real_, end)),
           space = PANEL_SPACE * max(diff(range(level)), max(abs(level)) / 20),
           lowest = if (min(level) >= 0) max(min(level) - space, 0) else min(level) - space,
           low = pmax(level_low, lowest),
           high = pmin(level_high, max(level) + space)) |>
    ungroup() |>
    select(-space, -lowest)
}

# Makes the title of an axis of levels, for example "Throughput (MB/s), higher is better"; NULL if
# the rows are of several metrics, which the titles of the panels then name.
# draw_curves removes ", higher is better" from it, and relies on these words.
make_axis_title <- function(rows) {
  if (n_distinct(rows$metric_label, rows$unit) > 1) return(NULL)
  title <- glue("{rows$metric_label[1]} ({rows$unit[1]}), {rows$better[1]} is better")
  make_text_wrapper(if (knitr::is_html_output()) 48 else 80)(title)
}

#' Draw the ratios to native of a workload, block by block, with their means and 95 % intervals
#'
#' @param paper list of read_paper
#' @param name name of the workload
#' @param figure entry of the workload's `figures` in the plan: kind, title, metric or metrics,
#'   where, along, against, scale
#' @return ggplot
draw_block_ratios <- function(paper, name, figure) {
  rows <- select_figure_rows(paper$comparisons, name, figure)
  rows$panel <- name_panels(rows)
  rows$environment <- factor(rows$environment, rev(paper$measured$environment))
  blocks <- select(rows, panel, series, environment) |>
    inner_join(select(paper$ratios, series, environment, ratio), by = c("series", "environment"))
  # A panel ends at 1.3 times the largest distance of a block from 1.  Longer intervals are cut.
  spreads <- group_by(blocks, panel) |>
    summarise(spread = 1.3 * max(abs(log(ratio)), -2 * log(1 - MARGIN)))
  rows <- left_join(rows, spreads, by = "panel") |>
    mutate(low = pmax(low, exp(-spread)), high = pmin(high, exp(spread)))
  below <- position_nudge(y = -0.32)
  ggplot(blocks, aes(ratio, environment, colour = environment)) +
    draw_margin() +
    # The seed is fixed, so that the same results give the same file.
    geom_point(position = position_jitter(height = 0.14, width = 0, seed = 1), size = 0.9,
               alpha = 0.55) +
    geom_linerange(aes(xmin = low, xmax = high), filter(rows, !is.na(low)), position = below,
                   linewidth = 0.6) +
    geom_point(data = rows, position = below, size = 1.5, shape = 18) +
    facet_wrap(vars(panel), scales = "free_x", ncol = choose_columns(rows$panel),
               labeller = labeller(panel = make_text_wrapper(RUNS_TITLE_WIDTH))) +
    scale_y_discrete(labels = function(names) {
      make_text_wrapper(28)(get_environment_labels(paper, names))
    }) +
    scale_x_log10(labels = format_percent,
                  breaks = function(limits) choose_ratio_breaks(limits, 3),
                  guide = guide_axis(check.overlap = TRUE)) +
    make_environment_scales(paper) + guides(colour = "none", fill = "none", shape = "none") +
    labs(x = SHARE_OF_NATIVE, y = NULL)
}

# The number of letters in a line of a panel's title in draw_block_ratios.
RUNS_TITLE_WIDTH <- 22

# Returns the number of columns in which panels are arranged: at most 3 on paper and 2 on the web,
# and 2 for four panels.
# panels: factor of name_panels.
choose_columns <- function(panels) {
  count <- nlevels(droplevels(panels))
  limit <- if (count == 4 || knitr::is_html_output()) 2 else 3
  min(count, limit)
}

#' Draw curves of environments with 95 % intervals: levels along a factor, or against another metric
#'
#' Rows in which the factor figure$along is not a number are left out.
#'
#' @inheritParams draw_block_ratios
#' @return ggplot
draw_curves <- function(paper, name, figure) {
  rows <- select_figure_rows(paper$summary, name, figure)
  rows$along <- as.numeric(get_factor(rows, figure$along))
  rows$panel <- name_panels(rows, figure$along)
  rows <- mutate(rows, x = along) |>
    filter(!is.na(along)) |>
    arrange(environment, panel, along)
  x_title <- gsub("_", " ", figure$along)
  y_title <- sub(", (higher|lower) is better", "", make_axis_title(rows) %or% NA)
  if (figure$kind == "against") {
    against <- filter(paper$summary, workload == name, metric == figure$against) |>
      select(environment, starts_with(FACTOR), x_level = level, x_label = metric_label,
             x_unit = unit)
    rows <- inner_join(rows, against, by = c("environment", list_factor_columns(rows))) |>
      mutate(x = x_level)
    x_title <- glue("{rows$x_label[1]} ({rows$x_unit[1]}), along {x_title}")
  }
  plot <- clip_intervals(rows) |>
    mutate(environment = factor(environment, paper$measured$environment)) |>
    ggplot(aes(x, level, colour = environment, shape = environment)) +
    geom_linerange(aes(ymin = low, ymax = high), \(rows) filter(rows, !is.na(low)),
                   linewidth = 0.4, alpha = 0.6, show.legend = FALSE) +
    geom_path(linewidth = 0.4, show.legend = FALSE) +
    geom_point(size = 1.5) +
    facet_wrap(vars(panel), scales = "free", ncol = choose_columns(rows$panel),
               labeller = labeller(panel = make_text_wrapper(40))) +
    scale_y_continuous(labels = scales::label_comma(), limits = include_zero) +
    make_environment_scales(paper) +
    labs(x = x_title, y = make_text_wrapper(26)(y_title)) +
    HORIZONTAL_GRID
  if (identical(figure$scale, "log")) {
    return(plot + scale_x_log10(breaks = sort(unique(rows$along))))
  }
  plot + scale_x_continuous(labels = scales::label_comma(), n.breaks = 5)
}

#' Draw the distribution of a metric: the mean of each percentile over the runs of an environment
#'
#' The factor that figure$along names has to hold percentiles, above 0 and below 100.
#'
#' @inheritParams draw_block_ratios
#' @return ggplot
draw_cdf <- function(paper, name, figure) {
  rows <- select_figure_rows(paper$summary, name, figure)
  rows$share <- as.numeric(get_factor(rows, figure$along)) / 100
  rows$panel <- name_panels(rows, figure$along)
  mutate(rows, environment = factor(environment, paper$measured$environment)) |>
    arrange(environment, panel, share) |>
    ggplot(aes(level, share, colour = environment, shape = environment)) +
    geom_path(linewidth = 0.4, show.legend = FALSE) +
    geom_point(size = 1) +
    facet_wrap(vars(panel), scales = "free_x", ncol = choose_columns(rows$panel),
               labeller = labeller(panel = make_text_wrapper(24))) +
    scale_x_log10(labels = scales::label_comma(drop0trailing = TRUE),
                  guide = guide_axis(check.overlap = TRUE)) +
    scale_y_continuous(trans = "logit", breaks = c(0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999),
                       labels = function(shares) paste0(format_percent(shares), "%")) +
    make_environment_scales(paper) +
    labs(x = paste0(make_axis_title(rows), " (logarithmic)"), y = "Share of operations")
}

#' Draw a figure of a workload by its kind: "runs", "cdf", or the curves of "sweep" and "against"
#'
#' A new kind also needs a caption and a height (write_workload_caption, compute_figure_height).
#'
#' @inheritParams draw_block_ratios
#' @return ggplot
draw_workload_figure <- function(paper, name, figure) {
  switch(figure$kind, runs = draw_block_ratios(paper, name, figure),
         cdf = draw_cdf(paper, name, figure),
         draw_curves(paper, name, figure))
}

#' Compute the height of a workload's figure, as draw_workload_figure draws it
#'
#' @inheritParams draw_block_ratios
#' @return inches, the sum of the heights of axes and titles, of all lines of panels, and of the
#'   legend
compute_figure_height <- function(paper, name, figure) {
  table <- if (figure$kind == "runs") paper$comparisons else paper$summary
  rows <- select_figure_rows(table, name, figure)
  series <- rows[!duplicated(make_keys(rows)), ]
  panels <- name_panels(series, figure$along)
  lines <- ceiling(nlevels(panels) / choose_columns(panels))
  if (figure$kind != "runs") return(0.6 + 1.55 * lines + compute_legend_height(paper))
  title_height <- 0.13 * max(ceiling(nchar(levels(panels)) / RUNS_TITLE_WIDTH), 1)
  0.45 + lines * (0.2 + title_height + 0.24 * n_distinct(rows$environment))
}

#' Write the caption of a workload's figure
#'
#' @inheritParams draw_block_ratios
#' @return text, which is not marked: the hook of set_chunk_options escapes it
write_workload_caption <- function(paper, name, figure) {
  rows <- select_figure_rows(paper$summary, name, figure)
  n <- paste(unique(range(rows$n)), collapse = " to ")
  # A figure may have no title.
  titles <- c(paper$plan$workloads[[name]]$title, lower_first_letter(figure$title))
  title <- paste(titles, collapse = ", ")
  metric <- lower_first_letter(rows$metric_label[1])
  subject <- if (n_distinct(rows$metric_label) == 1) paste0(": ", metric) else ""
  switch(
    figure$kind,
    runs = glue("{title}{subject}. Points: the ratio of every block; diamonds below them: their ",
                "mean with its 95 % interval (n = {n}; cut at the figure\u2019s edge). ",
                "Grey: within \u00b1 {format_margin(MARGIN)}."),
    cdf = glue("{title}: distribution, the level at each percentile (n = {n})."),
    glue("{title}: {metric}, {rows$better[1]} is better, ",
         "levels with 95 % intervals along {gsub('_', ' ', figure$along)} (n = {n}).")
  )
}

#' Select the tested claims that fit into a figure
#'
#' @param claims table of claims
#' @return rows of claims in the order of VERDICTS: at most 24 on paper, all on a web page
select_drawn_claims <- function(claims) {
  filter(claims, verdict != "not tested", !is.na(ratio)) |>
    arrange(match(verdict, VERDICTS)) |>
    head(if (knitr::is_html_output()) Inf else 24)
}

#' Draw tested claims: the deciding interval on the tolerance (grey), and the published value
#'
#' @param claims table of claims, at least one of which select_drawn_claims selects
#' @return ggplot
draw_claims <- function(claims) {
  rows <- select_drawn_claims(claims) |>
    mutate(claim = make_text_wrapper(if (knitr::is_html_output()) 34 else 58)(statement),
           verdict = factor(verdict, VERDICTS))
  published <- rows$published[rows$unit == "ratio"]
  limits <- range(rows$ratio, published, 0.9, 1.1, na.rm = TRUE) * c(0.8, 1.25)
  ggplot(rows, aes(ratio, claim, colour = verdict)) +
    geom_linerange(aes(xmin = pmax(coalesce(tolerance_low, 0), limits[1]),
                       xmax = pmin(coalesce(tolerance_high, Inf), limits[2])), linewidth = 4,
                   colour = "grey85") +
    geom_linerange(aes(xmin = pmax(low, limits[1]), xmax = pmin(high, limits[2])),
                   \(rows) filter(rows, !is.na(low)), linewidth = 0.6) +
    geom_point(size = 1.6) +
    geom_point(aes(published), \(rows) filter(rows, unit == "ratio"), shape = 5, size = 1.8,
               colour = "black") +
    facet_grid(rows = vars(verdict), scales = "free_y", space = "free_y") +
    scale_x_log10(labels = format_percent, breaks = choose_ratio_breaks(limits, 5),
                  guide = guide_axis(check.overlap = TRUE), expand = c(0, 0)) +
    scale_colour_manual(values = c(reproduced = "#009E73", contradicted = "#D55E00",
                                   undecided = "grey40", "tested in part" = "#0072B2",
                                   "same direction" = "#56B4E9", "other size" = "#E69F00"),
                        guide = guide_legend(nrow = 2)) +
    coord_cartesian(xlim = limits) +
    theme(strip.text.y = element_blank()) +
    labs(x = "Ratio of the two environments, % (logarithmic)", y = NULL)
}

#' Draw every value as its deviation from the mean of its environment, in the order of measurement
#'
#' Values that do not count are drawn pale, and are in no mean.
#'
#' @param paper list of read_paper
#' @return ggplot
draw_measurement_order <- function(paper) {
  rows <- filter(paper$all, headline, environment %in% paper$measured$environment)
  run <- match(rows$log, paper$runs$log)
  mutate(rows, order = paper$runs$order[run], disturbed = paper$runs$flags[run] != "",
         title = factor(title, unique(title))) |>
    group_by(series, environment) |>
    # Without a value that counts there is no mean to deviate from.
    filter(any(counts == "yes")) |>
    mutate(deviation = value / mean(value[counts == "yes"]) - 1) |>
    ungroup() |>
    mutate(environment = factor(environment, paper$measured$environment)) |>
    ggplot(aes(order, deviation, colour = environment, shape = environment)) +
    geom_hline(yintercept = 0, linewidth = 0.3, colour = "grey50") +
    geom_point(size = 3.2, shape = 1, colour = "grey60",
               data = \(rows) filter(rows, disturbed)) +
    geom_point(aes(alpha = counts), size = 1.2) +
    scale_alpha_manual(values = c(yes = 0.8, no = 0.3), guide = "none") +
    facet_wrap(vars(title), scales = "free_y", ncol = 2) +
    scale_x_continuous(breaks = function(limits) unique(round(pretty(limits)))) +
    scale_y_continuous(labels = scales::label_percent()) +
    make_environment_scales(paper) +
    labs(x = "Place in the order of measurement", y = "Deviation from the mean")
}

# Writes the caption of the figure of draw_measurement_order.
# paper: list of read_paper.
write_order_caption <- function(paper) {
  paste0("Every value behind the levels of the appendix, in the order of measurement.",
         if (paper$facts$disturbed > 0) " Circles: something else used the machine.",
         if (any(paper$runs$counts == "no")) " Pale: set aside, and in no table or ratio.")
}

# Computes the height in inches of the figure of draw_measurement_order: at most 8, so that it fits
# on a page.
# paper: list of read_paper.
compute_order_height <- function(paper) {
  lines <- ceiling(n_distinct(paper$tidy$title) / 2)
  min(0.6 + 1.35 * lines + compute_legend_height(paper), 8)
}

#' Draw how long each environment took to start: every time as a point, the median as a diamond
#'
#' @param paper list of read_paper; records without a time are left out
#' @return ggplot
draw_startup_times <- function(paper) {
  rows <- lapply(paper$records, function(record) {
    tibble(environment = record$environment, seconds = record$system$up_seconds %or% NA_real_)
  })
  bind_rows(rows) |>
    filter(environment %in% paper$measured$environment, !is.na(seconds)) |>
    # Records hold milliseconds, and a logarithmic axis has no zero.
    mutate(seconds = pmax(seconds, 0.001),
           environment = factor(environment, rev(paper$measured$environment))) |>
    ggplot(aes(seconds, environment, colour = environment)) +
    geom_point(position = position_jitter(height = 0.2, width = 0, seed = 1), size = 0.8,
               alpha = 0.5) +
    stat_summary(fun = median, geom = "point", shape = 18, size = 2.4) +
    scale_y_discrete(labels = function(names) get_environment_labels(paper, names)) +
    scale_x_log10(labels = scales::label_comma(drop0trailing = TRUE)) +
    make_environment_scales(paper) +
    guides(colour = "none", fill = "none", shape = "none") +
    labs(x = "Seconds (logarithmic), lower is better", y = NULL)
}
