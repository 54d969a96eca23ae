# What all figures share: how they are written, stacked, and how numbers stand at their axes.

#' Whole numbers of five and more digits in a text, with their thousands separated
#'
#' @param x texts
#' @return texts
thousands <- function(x) {
  found <- gregexpr("(?<![0-9.])[0-9]{5,}(?![0-9.])", x, perl = TRUE)
  regmatches(x, found) <- lapply(regmatches(x, found), function(numbers) {
    format(as.numeric(numbers), big.mark = ",", scientific = FALSE, trim = TRUE)
  })
  x
}

#' Round numbers within a range
#'
#' They are fewer where they are so long that they would run into one another.
#'
#' @param count about how many
#' @return function of a range, as ggplot2 takes for the breaks of an axis
round_breaks <- function(count) {
  function(range) {
    for (wanted in count:1) {
      breaks <- pretty(range, wanted)
      breaks <- breaks[breaks >= range[[1]] & breaks <= range[[2]]]
      if (sum(nchar(axis_numbers(breaks))) <= 6 * count) {
        break
      }
    }
    breaks
  }
}

#' Numbers at an axis
#'
#' @param x numbers
#' @return texts
axis_numbers <- function(x) {
  text <- vapply(x, function(one) format(one, big.mark = ",", digits = 6, scientific = FALSE), "")
  sub("^-", "\u2212", text)
}

#' Emulated virtual machines that are far from all other environments
#'
#' An emulated virtual machine may be so much slower than all else that on one axis nothing could be told
#' apart: where the level of one is, in some place, not between half and double that of any other environment.
#'
#' @param environment,place,value of all levels
#' @param plan as from `read_plan`
#' @return names of all emulated ones that were measured where one is far; else none
far_environments <- function(environment, place, value, plan) {
  emulated <- environment %in% emulated_environments(plan)
  far <- vapply(which(emulated), function(i) {
    others <- value[!emulated & place == place[[i]]]
    length(others) > 0 && !any(others / value[[i]] >= 0.5 & others / value[[i]] <= 2)
  }, NA)
  if (any(far)) unique(environment[emulated]) else character()
}

#' A figure that says that there is nothing to show
#'
#' @param text that it says
#' @return ggplot2 plot
empty_figure <- function(text = "Nothing was measured.") {
  ggplot2::ggplot() +
    ggplot2::annotate("text", 0, 0, label = text, family = FONT, colour = INK,
                      size = FONT_SIZE / ggplot2::.pt) +
    ggplot2::theme_void()
}

#' Figures one above the other or side by side, their panels in line
#'
#' A device must be open, by whose letters the places are found.
#'
#' @param figures list of ggplot2 plots; of those one above the other each has as many panels in a row
#' @param heights of each; NULL for figures side by side
#' @return gtable
arranged <- function(figures, heights) {
  tables <- lapply(figures, ggplot2::ggplotGrob)
  if (length(tables) == 1) {
    return(tables[[1]])
  }
  if (is.null(heights)) {
    return(do.call(cbind, c(tables, list(size = "max"))))
  }
  whole <- do.call(rbind, c(tables, list(size = "max")))
  own <- rep(seq_along(tables), vapply(tables, function(table) length(table$heights), 0L))
  flexible <- grid::unitType(whole$heights) == "null"
  whole$heights[flexible] <- grid::unit((heights / tabulate(own[flexible]))[own[flexible]], "null")
  whole
}

#' A run as it is named where it is pointed at
#'
#' @param log path of its log
#' @return texts such as "docker/stream/3.log"
run_name <- function(log) {
  sub("^results/raw/", "", log)
}

#' A layer of points that say something when they are pointed at on the web page
#'
#' @param layer of ggplot2, of points
#' @param words a text for each row of its data
#' @return the layer
told_layer <- function(layer, words) {
  layer$told <- words
  layer
}

#' Where on the open device, on which a figure was drawn, its told points are
#'
#' @param figures list of ggplot2 plots, in their order
#' @param table the gtable that was drawn, as from `arranged`
#' @return data frame: x, y (points from the left and the top) and words
told_points <- function(figures, table) {
  panels <- table$layout[grepl("^panel", table$layout$name) &
                           !vapply(table$grobs, inherits, NA, what = "zeroGrob"), ]
  height <- grDevices::dev.size()[[2]]
  found <- list()
  before <- 0
  for (figure in figures) {
    built <- ggplot2::ggplot_build(figure)
    layout <- built$layout$layout
    # Panels in the order of rows, as those of the table are.
    own <- panels[before + seq_len(nrow(layout)), ]
    own <- own[order(own$t, own$l), ]
    layout <- layout[order(layout$ROW, layout$COL), ]
    before <- before + nrow(layout)
    for (i in which(vapply(figure$layers, function(layer) length(layer$told) > 0, NA))) {
      data <- built$data[[i]]
      for (k in seq_len(nrow(layout))) {
        rows <- which(data$PANEL == layout$PANEL[[k]])
        if (length(rows) == 0) {
          next
        }
        scales <- built$layout$panel_params[[as.integer(layout$PANEL[[k]])]]
        at <- built$layout$coord$transform(data[rows, c("x", "y"), drop = FALSE], scales)
        name <- paste0(own$name[[k]], ".", paste(own[k, c("t", "r", "b", "l")], collapse = "-"))
        grid::downViewport(name)
        place <- grid::deviceLoc(grid::unit(at$x, "npc"), grid::unit(at$y, "npc"), valueOnly = TRUE)
        grid::upViewport(0)
        found <- c(found, list(data.frame(x = 72 * place$x, y = 72 * (height - place$y),
                                          words = as.character(figure$layers[[i]]$told[rows]))))
      }
    }
  }
  do.call(rbind, c(list(data.frame(x = numeric(), y = numeric(), words = character())), found))
}

#' Lets the open device measure its letters itself
#'
#' R keeps the last height of an M, in the units of its device, by the device's address in memory
#' (`GEMetricInfo` in its engine.c).  A device that is opened where one of the same kind was closed gets that
#' one's height, in points where it counts pixels: the same figure comes out with its rows elsewhere, once in
#' ten times.  A letter of another size takes the place of what is kept.
forget_heights <- function() {
  letter <- grid::textGrob("M", gp = grid::gpar(fontsize = 1))
  invisible(grid::convertHeight(grid::grobHeight(letter), "in"))
}

#' Writes a figure as PDF, PNG and SVG, and what it draws as CSV
#'
#' The PDF embeds its fonts and does not say when it was made, so that the same figure is the same file.  The
#' SVG tells of each told point what it is.
#'
#' @param figure ggplot2 plot, or a list of several
#' @param data data frame
#' @param out path without extension
#' @param size width and height in inches
#' @param heights of several figures, as of `arranged`
write_figure <- function(figure, data, out, size, heights = 1) {
  figures <- if (ggplot2::is.ggplot(figure)) list(figure) else figure
  # Laying a figure out takes longer than drawing it, and both devices of Cairo measure type alike.
  laid <- NULL
  save <- function(path, device, ..., told = FALSE) {
    write_whole(path, function(temporary) {
      device(temporary, width = size[[1]], height = size[[2]], ...)
      points <- tryCatch({
        forget_heights()
        if (is.null(laid) || told) laid <<- arranged(figures, heights)
        grid::grid.draw(laid)
        if (told) told_points(figures, laid)
      }, finally = grDevices::dev.off())
      if (endsWith(path, ".pdf")) {
        forget_date(temporary)
      } else if (told) {
        writeLines(told_svg(read_text(temporary), points), temporary, sep = "", useBytes = TRUE)
      }
    })
  }
  save(paste0(out, ".pdf"), grDevices::cairo_pdf)
  save(paste0(out, ".png"), grDevices::png, units = "in", res = 200, type = "cairo")
  save(paste0(out, ".svg"), svglite::svglite, told = TRUE)
  write_csv(data, paste0(out, ".csv"))
}

#' Replaces the date of creation in a PDF by one that never changes
#'
#' A date that is packed in a compressed part of the file stays.
#'
#' @param path the PDF
forget_date <- function(path) {
  bytes <- readBin(path, "raw", file.size(path))
  start <- grepRaw("/CreationDate (D:", bytes, fixed = TRUE)
  if (length(start) > 0) {
    digits <- start + nchar("/CreationDate (D:") + 0:13
    bytes[digits] <- charToRaw("20000101000000")
    writeBin(bytes, path)
  }
}
