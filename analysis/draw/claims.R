# The figure of published claims: what was published, what is tolerated, and what was measured.

CLAIM_FIGURE_COLUMNS <- c(
  id = "character", statement = "character", place = "character", verdict = "character",
  published = "numeric",
  tolerance_low = "numeric", tolerance_high = "numeric", raw_logs = "numeric", raw_low = "numeric",
  raw_high = "numeric", ratio = "numeric", low = "numeric", high = "numeric", level = "numeric",
  n = "integer",
  environment = "character", reference = "character", workload = "character", metric = "character",
  factors = "character"
)

#' What the figure of the claims draws
#'
#' @param claims as from `read_tested_claims`, those that were transferred last
#' @param own the `claims` of `read_own_verdicts`
#' @param publications of `read_claims`
#' @return data frame with the columns of CLAIM_FIGURE_COLUMNS, a row for each claim of which at least a part
#'   was measured, by verdict; `published` is NA where what was printed is no ratio, and `raw_logs` where the
#'   originals' raw logs give none
claim_figure_data <- function(claims, own, publications) {
  claims <- claims[claims$parts > 0 & !is.na(claims$ratio), ]
  claims <- claims[order(match(claims$verdict, VERDICT_MARKS$verdict)), ]
  own <- own[own$how == "ratio", ]
  own <- own[match(ifelse(claims$published_for == "", claims$id, ""), own$id), ]
  label <- vapply(publications, `[[`, "", "label")[claims$publication]
  data.frame(
    claims[c("id", "statement")], place = paste0(label, ", ", claims$place, recycle0 = TRUE),
    claims["verdict"], published = ifelse(claims$unit == "ratio", claims$published, NA_real_),
    claims[c("tolerance_low", "tolerance_high")], raw_logs = own$raw, raw_low = own$raw_low,
    raw_high = own$raw_high, ratio = claims$ratio, low = claims$ratio_low, high = claims$ratio_high,
    level = claims$level, n = claims$ratio_n, claims[c("environment", "reference")],
    workload = claims$measured_workload, claims[c("metric", "factors")], row.names = NULL
  )
}

# How verdicts are told apart, in grey print too: hollow where a claim was transferred.
VERDICT_MARKS <- data.frame(verdict = unname(c(CLAIM_VERDICTS, TRANSFERRED_VERDICTS)),
                            colour = rep(c("#006B4F", "#B03A00", "#4D4D4D", "#4D4D4D"), 2),
                            shape = c(16, 15, 17, 18, 1, 0, 2, 6))

#' Limits of the axis of the claims
#'
#' All that is a point is within; intervals may go on beyond, and so does a tolerance without a limit.
#'
#' @param data as from `claim_figure_data`
#' @return two numbers
claim_limits <- function(data) {
  points <- c(data$published, data$raw_logs, data$ratio, data$tolerance_low, data$tolerance_high)
  points <- points[!is.na(points) & points > 0]
  limits <- curve_limits(c(points, 0.9, 1.1), data$low[!is.na(data$low) & data$low > 0],
                         data$high[!is.na(data$high)], "log")
  limits * (limits[[2]] / limits[[1]])^c(-0.03, 0.03)
}

#' The figure of the claims
#'
#' @param data as from `claim_figure_data`
#' @return ggplot2 plot
claim_figure <- function(data) {
  data$row <- rev(cumsum(rev(claim_lines(data)))) - (claim_lines(data) - 1) / 2
  half <- claim_lines(data) / 2 - 0.12
  limits <- claim_limits(data)
  # A tolerance without a limit goes to the edge.
  data$band_low <- ifelse(is.na(data$tolerance_low), limits[[1]], data$tolerance_low)
  data$band_high <- ifelse(is.na(data$tolerance_high), limits[[2]], data$tolerance_high)
  data$top <- data$row + half
  data$bottom <- data$row - half
  points <- data.frame(x = data$ratio, x_low = data$low, x_high = data$high, y = data$row,
                       verdict = data$verdict)
  marks <- VERDICT_MARKS[VERDICT_MARKS$verdict %in% data$verdict, ]
  kinds <- c("Published", "The originals\u2019 raw logs")
  others <- data.frame(x = c(data$published, data$raw_logs),
                       y = rep(data$row, 2) + rep(c(0.28, -0.28), each = nrow(data)),
                       kind = rep(kinds, each = nrow(data)))
  others$low <- c(rep(NA, nrow(data)), data$raw_low)
  others$high <- c(rep(NA, nrow(data)), data$raw_high)
  others <- others[!is.na(others$x), ]
  raw_bars <- others[!is.na(others$low), ]
  ggplot2::ggplot(points, ggplot2::aes(.data$x, .data$y)) +
    ggplot2::geom_rect(ggplot2::aes(xmin = .data$band_low, xmax = .data$band_high, ymin = .data$bottom,
                                    ymax = .data$top), data, inherit.aes = FALSE, fill = "grey88") +
    ggplot2::geom_vline(xintercept = 1, colour = PALE, linewidth = 0.3, linetype = "22") +
    ggplot2::geom_blank(ggplot2::aes(.data$x), data.frame(x = limits), inherit.aes = FALSE) +
    interval_layers(points, "x", data.frame(low = rep(limits[[1]], nrow(points)), high = limits[[2]])) +
    told_layer(ggplot2::geom_point(ggplot2::aes(colour = .data$verdict, shape = .data$verdict), size = 1.6),
               claim_words(data)) +
    ggplot2::geom_segment(ggplot2::aes(pmax(.data$low, limits[[1]]), .data$y,
                                       xend = pmin(.data$high, limits[[2]]),
                                       yend = .data$y), raw_bars, colour = PALE, linewidth = 0.3) +
    ggplot2::geom_point(ggplot2::aes(.data$x, .data$y, fill = .data$kind), others, colour = INK, size = 1.6,
                        stroke = 0.5, shape = c(5, 4)[match(others$kind, kinds)]) +
    ggplot2::scale_colour_manual(NULL, values = stats::setNames(marks$colour, marks$verdict),
                                 breaks = marks$verdict, labels = claim_legend(marks$verdict)) +
    ggplot2::scale_shape_manual(NULL, values = stats::setNames(marks$shape, marks$verdict),
                                breaks = marks$verdict, labels = claim_legend(marks$verdict)) +
    ggplot2::scale_fill_manual(NULL, values = stats::setNames(c(INK, INK), kinds), breaks = kinds) +
    curve_axis(ggplot2::scale_x_continuous, list(
      title = "Ratio of the two environments of the claim; logarithmic", scale = "log", breaks = claim_breaks,
      expand = ggplot2::expansion()
    )) +
    ggplot2::scale_y_continuous(NULL, breaks = data$row, labels = claim_text(data), expand = c(0, 0),
                                limits = c(0.4, max(data$top) + 0.15)) +
    ggplot2::guides(colour = ggplot2::guide_legend(order = 1), shape = ggplot2::guide_legend(order = 1),
                    fill = ggplot2::guide_legend(order = 2, override.aes = list(
                      shape = c(5, 4)[kinds %in% others$kind]
                    ))) +
    figure_theme() +
    ggplot2::theme(legend.position = "top", legend.justification = "right", legend.box = "horizontal",
                   axis.text.y = ggplot2::element_text(hjust = 0, lineheight = 0.9),
                   axis.ticks.y = ggplot2::element_blank(), panel.grid.major.y = ggplot2::element_blank(),
                   plot.margin = ggplot2::margin(2, 9, 2, 2))
}

#' Round ratios on a logarithmic axis, at which equality always stands
#'
#' @param range two numbers
#' @return numbers
claim_breaks <- function(range) {
  places <- c(0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.25, 1.5, 2, 3, 5, 10,
              20, 50)
  places <- places[places >= range[[1]] & places <= range[[2]]]
  shown <- numeric()
  for (place in places[order(abs(log(places)))]) {
    if (all(abs(log(place / shown)) >= diff(log(range)) / 9)) {
      shown <- c(shown, place)
    }
  }
  sort(shown)
}

#' What a mark of a claim says when it is pointed at
#'
#' @param data as from `claim_figure_data`
#' @return texts
claim_words <- function(data) {
  paste0(data$statement, " ", upper_first(data$verdict), ": ", ratio_said(data))
}

#' Verdicts in the legend
#'
#' @param verdict texts
#' @return texts
claim_legend <- function(verdict) {
  moved <- verdict %in% TRANSFERRED_VERDICTS
  ifelse(verdict == "not testable here", "Measured here in part",
         paste0(ifelse(moved, "Transferred: ", "Measured here: "), sub("^transfer ", "", verdict)))
}

#' What stands beside a claim
#'
#' @param data as from `claim_figure_data`
#' @return texts of several lines
claim_text <- function(data) {
  text <- paste0(sub("[.]$", "", data$statement), " (", data$place, ")")
  vapply(strwrap(text, 64, simplify = FALSE), paste, "", collapse = "\n")
}

#' How many lines stand beside a claim
#'
#' @param data as from `claim_figure_data`
#' @return numbers
claim_lines <- function(data) {
  pmax(lengths(strsplit(claim_text(data), "\n", fixed = TRUE)), 2) / 2
}

#' Draws and writes the figure of the claims
#'
#' @param claims as of `claim_figure_data`
#' @param root folder of the project, for what was published
#' @param out path without extension
draw_claims <- function(claims, root, out) {
  data <- claim_figure_data(claims, read_own_verdicts(root)$claims,
                            read_claims(file.path(root, "published", "claims.json"))$publications)
  if (nrow(data) == 0) {
    return(write_figure(empty_figure("No claim could be tested."), data, out, c(COLUMN_WIDTH, 0.6)))
  }
  height <- min(0.7 + 0.25 * sum(claim_lines(data)), MOST_HEIGHT)
  write_figure(claim_figure(data), data, out, c(FULL_WIDTH, height))
}
