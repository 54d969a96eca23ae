# One design for all figures: the look, and a colour and a shape for every environment.

COLUMN_WIDTH <- 3.35
FULL_WIDTH <- 7
# Within the box of the first page.
BOX_WIDTH <- 6.9
# The most that a figure takes of a page: its caption stands there too.
MOST_HEIGHT <- 7.8
FONT <- "Latin Modern Sans"
FONT_SIZE <- 8
INK <- "grey15"
PALE <- "grey45"
# How solid points are that may lie on one another.
SOLID <- 0.9

#' Colours and shapes of the environments that every plan calls by the same names
#'
#' Colours are those of Okabe and Ito, told apart by colour-blind readers, some of them darker, so that each
#' has a contrast of 3:1 to white, and with violet in the place of their yellow; shapes are all different, so
#' that they are told apart in grey print; what runs in containers alone is filled, a sandbox is crossed, what
#' runs in a virtual machine is open.
#'
#' @return data frame: environment, colour, shape, size in mm, for which all shapes look of one size
#' @source M. Okabe, K. Ito, Color Universal Design, 2008
known_environments <- function() {
  data.frame(
    environment = c("native", "docker", "docker-hostnet", "docker-layered",
                    "vm", "vm-tuned", "vm-docker", "vm-docker-hostnet", "docker-gvisor"),
    colour = c("#000000", "#0072B2", "#2A8AC4", "#00855F", "#D55E00", "#A87400", "#B4508A", "#6000C0",
               "#C00000"),
    shape = c(16, 15, 17, 18, 1, 0, 2, 5, 7),
    size = c(1.3, 1.3, 1.3, 1.7, 1.2, 1.2, 1.1, 1.1, 1.2)
  )
}

# Colours of environments that have none by their name, before any is used twice.
SPARE_COLOURS <- c("#6B6B00", "#8B5A2B", "#007C89", "#5A6B7B")

#' Colours and shapes of a plan's environments
#'
#' An environment that is not known by its name gets the next of the remaining shapes, and the next of the
#' spare colours and then of those that the plan leaves, in the order of the plan.
#'
#' @param environments names of all environments of the plan, in its order
#' @return data frame: environment, colour, shape, size; a row for each of `environments`
environment_marks <- function(environments) {
  known <- known_environments()
  marks <- known[match(environments, known$environment), ]
  marks$environment <- environments
  other <- which(is.na(marks$shape))
  shapes <- c(6, 4, 3, 8, 9, 10, 12, 13, 14, 11)
  marks$shape[other] <- rep_len(shapes, length(other))
  marks$colour[other] <- rep_len(unique(c(SPARE_COLOURS, setdiff(known$colour[-1], marks$colour),
                                          known$colour[-1])), length(other))
  marks$size[other] <- 1.1
  rownames(marks) <- NULL
  marks
}

#' The aesthetics that tell environments apart
#'
#' @return ggplot2 aesthetics, for data with the column `environment`
environment_aes <- function() {
  ggplot2::aes(colour = .data$environment, shape = .data$environment, size = .data$environment)
}

#' Scales that give environments their colours, shapes and sizes
#'
#' @param marks as from `environment_marks`
#' @param labels labels of the environments, in the order of `marks`
#' @param lines function of labels that sets them in lines
#' @return list of ggplot2 scales
environment_scales <- function(marks, labels, lines = in_two_lines) {
  scale <- function(manual, column) {
    values <- stats::setNames(marks[[column]], marks$environment)
    manual(NULL, values = values, breaks = marks$environment, labels = lines(labels))
  }
  list(scale(ggplot2::scale_colour_manual, "colour"), scale(ggplot2::scale_shape_manual, "shape"),
       scale(ggplot2::scale_size_manual, "size"))
}

#' The theme of all figures
#'
#' @return ggplot2 theme
figure_theme <- function() {
  small <- ggplot2::rel(0.875)
  ggplot2::theme_minimal(base_size = FONT_SIZE, base_family = FONT) +
    ggplot2::theme(
      text = ggplot2::element_text(colour = INK),
      axis.text = ggplot2::element_text(size = small, colour = INK),
      axis.title = ggplot2::element_text(size = small, colour = INK, lineheight = 1.1),
      axis.ticks = ggplot2::element_line(colour = "grey60", linewidth = 0.25),
      axis.ticks.length = ggplot2::unit(2, "pt"),
      panel.grid.major = ggplot2::element_line(colour = "grey90", linewidth = 0.25),
      panel.grid.minor = ggplot2::element_blank(),
      panel.border = ggplot2::element_rect(colour = "grey60", fill = NA, linewidth = 0.25),
      panel.spacing = ggplot2::unit(7, "pt"),
      strip.text = ggplot2::element_text(size = small, colour = INK, hjust = 0,
                                         margin = ggplot2::margin(0, 0, 2.5, 0)),
      legend.text = ggplot2::element_text(size = small),
      legend.key.size = ggplot2::unit(10, "pt"),
      legend.margin = ggplot2::margin(0, 0, 0, 0),
      legend.box.spacing = ggplot2::unit(3, "pt"),
      legend.spacing.y = ggplot2::unit(0, "pt"),
      plot.margin = ggplot2::margin(2, 3, 2, 4)
    )
}
