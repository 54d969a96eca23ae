# Figures, one function for each; one look for all of them.

library(ggplot2)

# Okabe and Ito's colours; on the page's dark background they are turned round by its style.
COLOURS <- c("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#6A3D9A",
             "#B15928")
OUTCOME_COLOURS <- c(slower = "#D55E00", faster = "#0072B2", equivalent = "#009E73", undecided = "grey40",
                     "no interval" = "grey40")
OUTCOME_SHAPES <- c(slower = 25, faster = 24, equivalent = 21, undecided = 22, "no interval" = 4)

theme_set(theme_minimal(base_size = 9) + theme(
  text = element_text(size = 9), axis.text = element_text(size = 8, colour = "grey20"),
  legend.text = element_text(size = 8.5),
  strip.text = element_text(size = 8.5, hjust = 0, vjust = 0, face = "bold"),
  panel.grid.minor = element_blank(),
  panel.grid.major.y = element_blank(), legend.position = "top", legend.justification = "left",
  legend.title = element_blank(),
  legend.margin = margin(0, 0, 0, 0), legend.box.spacing = unit(4, "pt"), legend.key.size = unit(10, "pt"),
  panel.border = element_rect(colour = "grey75", fill = NA, linewidth = 0.3), panel.spacing = unit(8, "pt"),
  strip.clip = "off", plot.margin = margin(2, 8, 2, 2), plot.background = element_rect(fill = NA, colour = NA)
))

# How many letters a label beside a figure may have in a line.
label_letters <- function(columns = 1) if (knitr::is_html_output()) 26 else if (columns > 6) 30 else 44

wrap <- function(width) function(x) stringr::str_wrap(x, width)

label_of <- function(paper, name) {
  paper$environments$label[match(name, paper$environments$environment)]
}

#' Colours and shapes of environments, the same in all figures of a paper
environment_scales <- function(paper) {
  names <- paper$environments$environment[!paper$environments$emulated]
  of <- function(values) stats::setNames(rep_len(values, length(names)), names)
  shown <- intersect(names, paper$measured$environment)
  labels <- label_of(paper, shown)
  list(scale_colour_manual(values = of(COLOURS), labels = labels, breaks = shown),
       scale_fill_manual(values = of(COLOURS), labels = labels, breaks = shown),
       scale_shape_manual(values = of(c(16, 17, 15, 18, 8, 3, 4, 1, 2)), labels = labels, breaks = shown),
       guides(colour = guide_legend(ncol = legend_columns(paper)), fill = "none"))
}

# Labels that stand beside one another in a legend, and the inches that further rows of them take.
legend_columns <- function(paper) {
  max(1, (if (knitr::is_html_output()) 72 else 96) %/% (max(nchar(paper$measured$label)) + 5))
}
legend_height <- function(paper) 0.17 * ((nrow(paper$measured) - 1) %/% legend_columns(paper))

# The series of the forest on page 1: all headlines, or where those are too many the first of each workload
# and metric.
forest_rows <- function(told, most = 24) {
  told <- filter(told, question != "start-up" | n_distinct(question) == 1)
  first <- function(rows, ...) {
    semi_join(rows, distinct(rows, ..., .keep_all = TRUE), by = c("workload", "series"))
  }
  if (n_distinct(told$series) > most) told <- first(told, workload, metric)
  if (n_distinct(told$series) > most) told <- first(told, workload)
  told
}

#' Performance as a share of native's: every environment and series with its interval, and the band of 2 %
draw_forest <- function(told, published = tibble()) {
  rows <- mutate(told, series = factor(series, unique(series)), label = factor(label, unique(label)),
                 workload = factor(workload, unique(workload)))
  # An interval that is much wider than the ratios are apart goes on beyond the axis.
  apart <- max(abs(log(rows$ratio)), 0.05)
  ends <- exp(range(pmin(pmax(log(c(rows$low, rows$high, rows$ratio)), -2 * apart), 2 * apart),
                    log(c(1 - MARGIN, 1 + MARGIN)), na.rm = TRUE))
  columns <- nlevels(rows$label)
  plot <- ggplot(rows, aes(ratio, series, colour = outcome, shape = outcome, fill = outcome)) +
    annotate("rect", xmin = 1 - MARGIN, xmax = 1 / (1 - MARGIN), ymin = -Inf, ymax = Inf, fill = "grey85") +
    geom_vline(xintercept = 1, linewidth = 0.3, colour = "grey40") +
    geom_linerange(aes(xmin = pmax(low, ends[1] / 2), xmax = pmin(high, ends[2] * 2)),
                   filter(rows, !is.na(low)), linewidth = 0.6, show.legend = FALSE) +
    geom_point(size = 1.7) +
    facet_grid(rows = vars(workload), cols = vars(label), scales = "free_y", space = "free_y",
               labeller = labeller(label = wrap(max(7, 48 %/% columns)))) +
    scale_y_discrete(limits = rev, labels = wrap(label_letters(columns))) +
    scale_x_log10(labels = of_hundred, breaks = ratio_breaks(ends, if (columns > 3) 2 else 4),
                  guide = guide_axis(check.overlap = TRUE)) +
    scale_colour_manual(values = OUTCOME_COLOURS) + scale_fill_manual(values = OUTCOME_COLOURS) +
    scale_shape_manual(values = OUTCOME_SHAPES) +
    coord_cartesian(xlim = ends) +
    labs(x = OF_NATIVE, y = NULL) +
    theme(strip.text.y = element_blank(), panel.grid.major.y = element_line(colour = "grey92",
      linewidth = 0.3), panel.spacing.y = unit(3, "pt"), strip.text.x = element_text(size = 8))
  if (nrow(published) == 0) return(plot)
  marks <- filter(published, series %in% rows$series) |>
    mutate(workload = factor(workload, levels(rows$workload)), label = factor(label, levels(rows$label)))
  plot + geom_point(aes(then, series), marks, shape = 5, size = 1.6, colour = "black", inherit.aes = FALSE,
                    position = position_nudge(y = -0.28))
}

OF_NATIVE <- "Performance, % of native\u2019s (logarithmic)"

# Ratios as per cent, under an axis that says so.
of_hundred <- function(x) format(100 * x, trim = TRUE, drop0trailing = TRUE)

# Round ratios: 1 and others on either side.
ratio_breaks <- function(ends, n) {
  if (diff(log(ends)) > log(2.5)) {
    all <- c(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50)
    all <- all[all >= ends[1] & all <= ends[2]]
    if (length(all) > 2) return(if (length(all) > n + 1) unique(c(all[1], 1, all[length(all)])) else all)
  }
  scales::breaks_pretty(n)(ends)
}

forest_height <- function(told) {
  # All rows are as high as the longest label takes.
  series <- unique(told$series)
  lines <- length(series) * (1 + 0.9 * max(0, nchar(series) %/% label_letters(n_distinct(told$label))))
  0.95 + 0.165 * lines + 0.04 * n_distinct(told$workload) + 0.06 * max(0, n_distinct(told$label) - 3)
}

# The name of a panel: what its series does not share with the others of the figure.
panels_of <- function(rows, along = NULL) {
  parts <- strsplit(rows$factors, ";", fixed = TRUE)
  parts <- lapply(parts, function(one) one[!startsWith(one, paste0(along %or% " ", "="))])
  shared <- Reduce(intersect, parts)
  rest <- vapply(parts, function(one) {
    factor_words(paste(setdiff(one, shared), collapse = ";"))
  }, "")
  several <- n_distinct(rows$metric_label, rows$unit) > 1
  metric <- if (several) paste0(rows$metric_label, " (", rows$unit, ")") else ""
  panel <- paste0(metric, ifelse(metric == "" | rest == "", "", ", "), rest)
  factor(panel, unique(panel))
}

# An interval as far as it fits beside the levels of its panel.
cut_interval <- function(rows) {
  rows |>
    group_by(panel) |>
    mutate(across(c(level_low, level_high), \(end) if_else(n < 3, NA_real_, end)),
           room = 0.4 * max(diff(range(level)), max(abs(level)) / 20),
           low = pmax(level_low, if (min(level) >= 0) max(min(level) - room, 0) else min(level) - room),
           high = pmin(level_high, max(level) + room)) |>
    ungroup()
}

axis_of <- function(rows) {
  if (n_distinct(rows$metric_label, rows$unit) > 1) return(NULL)
  title <- glue("{rows$metric_label[1]} ({rows$unit[1]}), {rows$better[1]} is better")
  wrap(if (knitr::is_html_output()) 48 else 80)(title)
}

#' The ratios to native of a workload, block by block, and their mean with its 95 % interval
draw_runs <- function(paper, name, figure) {
  rows <- rows_of(paper$comparisons, name, figure)
  rows$panel <- panels_of(rows)
  rows$environment <- factor(rows$environment, rev(paper$measured$environment))
  blocks <- select(rows, panel, series, environment) |>
    inner_join(select(paper$ratios, series, environment, ratio), by = c("series", "environment"))
  # An interval that is much wider than the blocks are apart goes on beyond the panel.
  ends <- group_by(blocks, panel) |>
    summarise(away = 1.3 * max(abs(log(ratio)), -2 * log(1 - MARGIN)))
  rows <- left_join(rows, ends, by = "panel") |>
    mutate(low = pmax(low, exp(-away)), high = pmin(high, exp(away)))
  ggplot(blocks, aes(ratio, environment, colour = environment)) +
    annotate("rect", xmin = 1 - MARGIN, xmax = 1 / (1 - MARGIN), ymin = -Inf, ymax = Inf, fill = "grey85") +
    geom_vline(xintercept = 1, linewidth = 0.3, colour = "grey40") +
    geom_point(position = position_jitter(height = 0.14, width = 0, seed = 1), size = 0.9, alpha = 0.55) +
    geom_linerange(aes(xmin = low, xmax = high), filter(rows, !is.na(low)),
                   position = position_nudge(y = -0.32), linewidth = 0.6) +
    geom_point(data = rows, position = position_nudge(y = -0.32), size = 1.5, shape = 18) +
    facet_wrap(vars(panel), scales = "free_x", ncol = columns_of(rows$panel),
               labeller = labeller(panel = wrap(22))) +
    scale_y_discrete(labels = function(x) wrap(28)(label_of(paper, x))) +
    scale_x_log10(labels = of_hundred, breaks = function(ends) ratio_breaks(ends, 3),
                  guide = guide_axis(check.overlap = TRUE)) +
    environment_scales(paper) + guides(colour = "none", fill = "none", shape = "none") +
    labs(x = OF_NATIVE, y = NULL)
}

columns_of <- function(panels) {
  number <- nlevels(droplevels(panels))
  min(number, if (number == 4 || knitr::is_html_output()) 2 else 3)
}

#' Curves of environments: the mean of each along a factor, or against another metric, with 95 % intervals
draw_curves <- function(paper, name, figure) {
  rows <- rows_of(paper$summary, name, figure) |> mutate(along = as.numeric(factor_of(factors, figure$along)))
  rows$panel <- panels_of(rows, figure$along)
  rows <- mutate(rows, x = along) |> filter(!is.na(along)) |> arrange(environment, panel, along)
  titles <- c(gsub("_", " ", figure$along), axis_of(rows))
  log_x <- identical(figure$scale, "log")
  if (figure$kind == "against") {
    across <- filter(paper$summary, workload == name, metric == figure$against) |>
      select(environment, factors, x_level = level, x_label = metric_label, x_unit = unit)
    rows <- inner_join(rows, across, by = c("environment", "factors")) |> mutate(x = x_level)
    titles[1] <- glue("{rows$x_label[1]} ({rows$x_unit[1]}), along {titles[1]}")
  }
  plot <- cut_interval(rows) |>
    mutate(environment = factor(environment, paper$measured$environment)) |>
    ggplot(aes(x, level, colour = environment, shape = environment)) +
    geom_linerange(aes(ymin = low, ymax = high), \(d) filter(d, !is.na(low)), linewidth = 0.4, alpha = 0.6,
                   show.legend = FALSE) +
    geom_path(linewidth = 0.4, show.legend = FALSE) + geom_point(size = 1.5) +
    facet_wrap(vars(panel), scales = "free", ncol = columns_of(rows$panel),
               labeller = labeller(panel = wrap(40))) +
    scale_y_continuous(labels = scales::label_comma(), limits = function(x) c(min(0, x[1]), x[2])) +
    environment_scales(paper) + labs(x = titles[1],
                                     y = wrap(26)(sub(", (higher|lower) is better", "", titles[2]))) +
                                     theme(panel.grid.major.y = element_line(colour = "grey92",
                                       linewidth = 0.3))
  plot + if (log_x) scale_x_log10(breaks = sort(unique(rows$along))) else scale_x_continuous(
    labels = scales::label_comma(), n.breaks = 5)
}

#' The distribution of a metric: percentiles, the mean over the runs of each environment
draw_cdf <- function(paper, name, figure) {
  rows <- rows_of(paper$summary, name, figure) |>
    mutate(share = as.numeric(factor_of(factors, figure$along)) / 100)
  rows$panel <- panels_of(rows, figure$along)
  mutate(rows, environment = factor(environment, paper$measured$environment)) |>
    arrange(environment, panel, share) |>
    ggplot(aes(level, share, colour = environment, shape = environment)) +
    geom_path(linewidth = 0.4, show.legend = FALSE) + geom_point(size = 1) +
    facet_wrap(vars(panel), scales = "free_x", ncol = columns_of(rows$panel),
               labeller = labeller(panel = wrap(24))) +
    scale_x_log10(labels = scales::label_comma(drop0trailing = TRUE),
                  guide = guide_axis(check.overlap = TRUE)) +
    scale_y_continuous(trans = "logit", breaks = c(0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999),
                       labels = function(x) paste0(format(100 * x, drop0trailing = TRUE, trim = TRUE), "%")) +
    environment_scales(paper) + labs(x = paste0(axis_of(rows), " (logarithmic)"), y = "Share of operations")
}

draw_workload <- function(paper, name, figure) {
  switch(figure$kind, runs = draw_runs(paper, name, figure), cdf = draw_cdf(paper, name, figure),
         draw_curves(paper, name, figure))
}

figure_height <- function(paper, name, figure) {
  shown <- if (figure$kind == "runs") paper$comparisons else paper$summary
  rows <- distinct(rows_of(shown, name, figure), metric, factors, .keep_all = TRUE)
  panels <- panels_of(rows, figure$along)
  lines <- ceiling(nlevels(panels) / columns_of(panels))
  if (figure$kind != "runs") return(0.6 + 1.55 * lines + legend_height(paper))
  head <- 0.13 * max(ceiling(nchar(levels(panels)) / 22), 1)
  0.45 + lines * (0.2 + head + 0.24 * n_distinct(rows_of(paper$comparisons, name, figure)$environment))
}

figure_caption <- function(paper, name, figure) {
  rows <- rows_of(paper$summary, name, figure)
  n <- paste(unique(range(rows$n)), collapse = " to ")
  title <- paste(c(paper$plan$workloads[[name]]$title, in_sentence(figure$title)), collapse = ", ")
  metric <- if (n_distinct(rows$metric_label) == 1) paste0(": ", in_sentence(rows$metric_label[1])) else ""
  switch(figure$kind,
         runs = glue("{title}{metric}. Points: the ratio of every block; diamonds below them: their mean ",
                     "with its 95 % interval (n = {n}; cut at the figure's edge). Grey: within \u00b1 2 %."),
         cdf = glue("{title}: distribution, the level at each percentile (n = {n})."),
         glue("{title}: {in_sentence(rows$metric_label[1])}, {rows$better[1]} is better, ",
              "levels with 95 % intervals along {gsub('_', ' ', figure$along)} (n = {n})."))
}

# As many as a page holds, those that were decided first.
drawn_claims <- function(claims) {
  filter(claims, verdict != "not tested", !is.na(ratio)) |>
    arrange(match(verdict, VERDICTS)) |>
    head(if (knitr::is_html_output()) Inf else 24)
}

#' Claims that were tested: the interval that decides on the tolerance (grey), and what was published
draw_claims <- function(claims) {
  rows <- drawn_claims(claims) |>
    mutate(claim = wrap(if (knitr::is_html_output()) 34 else 58)(statement),
           verdict = factor(verdict, VERDICTS))
  limits <- range(rows$ratio, rows$published[rows$unit == "ratio"], 0.9, 1.1, na.rm = TRUE) * c(0.8, 1.25)
  ggplot(rows, aes(ratio, claim, colour = verdict)) +
    geom_linerange(aes(xmin = pmax(coalesce(tolerance_low, 0), limits[1]),
                       xmax = pmin(coalesce(tolerance_high, Inf), limits[2])), linewidth = 4,
                       colour = "grey85") +
    geom_linerange(aes(xmin = pmax(low, limits[1]), xmax = pmin(high, limits[2])),
                   \(d) filter(d, !is.na(low)), linewidth = 0.6) +
    geom_point(size = 1.6) +
    geom_point(aes(published), \(d) filter(d, unit == "ratio"), shape = 5, size = 1.8, colour = "black") +
    facet_grid(rows = vars(verdict), scales = "free_y", space = "free_y") +
    scale_x_log10(labels = of_hundred, breaks = ratio_breaks(limits, 5),
                  guide = guide_axis(check.overlap = TRUE), expand = c(0, 0)) +
    scale_colour_manual(values = c(reproduced = "#009E73", contradicted = "#D55E00", undecided = "grey40",
                                   "tested in part" = "#0072B2"), guide = guide_legend(nrow = 2)) +
    coord_cartesian(xlim = limits) + theme(strip.text.y = element_blank()) +
    labs(x = "Ratio of the two environments, % (logarithmic)", y = NULL)
}

#' Every value as its deviation from the mean of its environment, in the order of measurement; those that were
#' set aside, of which no mean is made, among them
draw_order <- function(paper) {
  rows <- filter(paper$all, headline, environment %in% paper$measured$environment)
  at <- match(rows$log, paper$runs$log)
  mutate(rows, order = paper$runs$order[at], disturbed = paper$runs$flags[at] != "",
         title = factor(title, unique(title))) |>
    group_by(series, environment) |>
    filter(any(counts == "yes")) |>
    mutate(deviation = value / mean(value[counts == "yes"]) - 1) |>
    ungroup() |>
    mutate(environment = factor(environment, paper$measured$environment)) |>
    ggplot(aes(order, deviation, colour = environment, shape = environment)) +
    geom_hline(yintercept = 0, linewidth = 0.3, colour = "grey50") +
    geom_point(size = 3.2, shape = 1, colour = "grey60", data = \(d) filter(d, disturbed)) +
    geom_point(aes(alpha = counts), size = 1.2) +
    scale_alpha_manual(values = c(yes = 0.8, no = 0.3), guide = "none") +
    facet_wrap(vars(title), scales = "free_y", ncol = 2) +
    scale_x_continuous(breaks = function(ends) unique(round(pretty(ends)))) +
    scale_y_continuous(labels = scales::label_percent()) + environment_scales(paper) +
    labs(x = "Place in the order of measurement", y = "Deviation from the mean")
}

#' How long each environment took to come up, every time
draw_up <- function(paper) {
  rows <- lapply(paper$records, function(one) {
    tibble(environment = one$environment, seconds = one$system$up_seconds %or% NA_real_)
  })
  bind_rows(rows) |>
    filter(environment %in% paper$measured$environment, !is.na(seconds)) |>
    # Records hold milliseconds, and a logarithmic axis no zero.
    mutate(seconds = pmax(seconds, 0.001),
           environment = factor(environment, rev(paper$measured$environment))) |>
    ggplot(aes(seconds, environment, colour = environment)) +
    geom_point(position = position_jitter(height = 0.2, width = 0, seed = 1), size = 0.8, alpha = 0.5) +
    stat_summary(fun = median, geom = "point", shape = 18, size = 2.4) +
    scale_y_discrete(labels = function(x) label_of(paper, x)) +
    scale_x_log10(labels = scales::label_comma(drop0trailing = TRUE)) + environment_scales(paper) +
    guides(colour = "none", fill = "none", shape = "none") +
    labs(x = "Seconds (logarithmic), lower is better", y = NULL)
}
