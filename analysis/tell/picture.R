# What is seen in a figure, in words for those who do not see it: computed from the data that it draws.

#' What is seen in a figure
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @return text
picture_text <- function(evidence, stem) {
  shared <- list(order = picture_order, drift = picture_drift, ratios = picture_ratios,
                 answers = picture_ratios,
                 claims = picture_claims,
                 footprint = picture_footprint)
  drawn <- read_drawn(evidence, stem)
  if (nrow(drawn) == 0) {
    return("An empty figure: there was nothing to draw.")
  }
  if (stem %in% names(shared)) shared[[stem]](drawn, evidence) else picture_levels(drawn)
}

#' What a figure draws, whatever its columns
#'
#' @param evidence as from `read_evidence`
#' @param stem of the figure's files
#' @return data frame
read_drawn <- function(evidence, stem) {
  path <- sub("[.]pdf$", ".csv", figure_path(evidence, stem))
  utils::read.csv(path, na.strings = "", encoding = "UTF-8", check.names = FALSE)
}

#' Numbers in a text that is read aloud
#'
#' @param x numbers
#' @return texts of three digits
said <- function(x) {
  quantity(x, 3)
}

#' Which is least and which is most, in words
#'
#' @param value numbers
#' @param name of each
#' @return text such as "from 1.9 (VM) to 39.2 (Docker)"; of one alone its value
least_to_most <- function(value, name) {
  at <- c(which.min(value), which.max(value))
  told <- paste0(said(value[at]), " (", name[at], ")")
  if (length(unique(at)) == 1) told[[1]] else paste("from", told[[1]], "to", told[[2]])
}

#' What is seen of the levels of a workload
#'
#' @param drawn as from `drawn_table`
#' @return text; of many panels the first four
picture_levels <- function(drawn) {
  curves <- "y" %in% names(drawn)
  value <- if (curves) drawn$y else drawn$value
  level <- drawn$what == if (curves) "measured" else "mean"
  panel <- ifelse(is.na(drawn$panel), "", as.character(drawn$panel))
  shown <- unique(panel[level])
  parts <- vapply(utils::head(shown, 4), function(one) {
    own <- which(level & panel == one)
    paste0(if (one != "") paste0(one, ": "), if (curves) "values " else "means go ",
           least_to_most(value[own], drawn$label[own]))
  }, "")
  count <- length(unique(drawn$label[level]))
  more <- length(shown) - length(parts)
  paste0(if (curves) "Lines" else "Rows of points", " for ", counted(count, "environment"), ". ",
         upper_first(paste(parts, collapse = "; ")),
         if (more > 0) paste0("; and ", counted(more, "panel"), " more"), ".")
}

#' What is seen in the figure of the run order
#'
#' @param drawn what it draws
#' @param evidence as from `read_evidence`
#' @return text
picture_order <- function(drawn, evidence) {
  parts <- vapply(unique(drawn$title), function(title) {
    own <- drawn$deviation[drawn$title == title]
    paste0(title, ": ", signed(round(min(own))), " to ", signed(round(max(own))), THIN, "%")
  }, "")
  paste0("Points along the order of measurement, scattered around zero. Deviations of ",
         paste(parts, collapse = "; "), ".")
}

#' @rdname picture_order
picture_drift <- function(drawn, evidence) {
  panel <- as.character(drift_panels(drawn$title, drawn$workload, evidence$plan))
  together <- !identical(panel, drawn$title)
  parts <- vapply(unique(panel), function(title) {
    own <- drawn[panel == title & drawn$counts == "yes", ]
    out <- sum(abs(own$level) > own$band, na.rm = TRUE)
    paste0(title, ": ", fixed(out, 0), " of ",
           if (together) counted(nrow(own), "level") else counted(nrow(own), "set"), " outside")
  }, "")
  paste0("A line from set to set for each metric, ",
         if (together) {
           "in a panel for each workload, whose filled points lie outside of the bands of their metrics. "
         } else {
           "around a grey band. Outside of the band lie, of "
         }, paste(parts, collapse = "; "), ".")
}

#' @rdname picture_order
picture_ratios <- function(drawn, evidence) {
  # The figure of the answers draws what was measured alone, a panel for each family of environments.
  answers <- !"what" %in% names(drawn)
  ours <- if (answers) cbind(drawn, panel = drawn$environment) else drawn[drawn$what == "measured", ]
  known <- ours[!is.na(ours$low) & !is.na(ours$high), ]
  paste0(
    counted(length(unique(if (answers) drawn$family else drawn$panel)), "panel"), " of ratios to native. Of ",
    counted(nrow(known), "interval"),
    ", ", fixed(sum(known$high < 1), 0), " lie wholly below 1, ", fixed(sum(known$low > 1), 0),
    " wholly above, and the others hold it.",
    if (nrow(ours) > 0) {
      paste0(" Ratios go ", least_to_most(ours$ratio, paste(ours$panel, ours$series, sep = ", ")), ".")
    }
  )
}

#' @rdname picture_order
picture_claims <- function(drawn, evidence) {
  counts <- table(factor(drawn$verdict, c(CLAIM_VERDICTS, TRANSFERRED_VERDICTS)))
  counts <- counts[counts > 0]
  names(counts) <- sub("^carries over$", "that carry over", sub("^does not", "that do not", names(counts)))
  below <- !is.na(drawn$tolerance_low) & drawn$ratio < drawn$tolerance_low
  outside <- below | (!is.na(drawn$tolerance_high) & drawn$ratio > drawn$tolerance_high)
  paste0(counted(nrow(drawn), "claim"), ", one in a row: ",
         listed(paste(fixed(counts, 0), names(counts))), ". The measured ratio of ", fixed(sum(outside), 0),
         " lies outside of the tolerance. Ratios go ",
         least_to_most(drawn$ratio, sub("[.]$", "", drawn$statement)), ".")
}

#' @rdname picture_order
picture_footprint <- function(drawn, evidence) {
  own <- drawn[drawn$quantity == "up_seconds", ]
  boot <- drawn[drawn$quantity == "boot_seconds", ]
  said_of <- function(rows) paste0(least_to_most(rows$mean, rows$label), NO_BREAK, "s")
  paste0(c(
    if (nrow(own) > 0) paste0("Mean times until all layers are up go ", said_of(own), "."),
    if (nrow(boot) > 0) paste0("Machines boot in ", said_of(boot), ".")
  ), collapse = " ")
}
