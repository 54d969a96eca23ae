# Several dates or machines side by side: every one against the first, and against the one before it.

HISTORY_COLUMNS <- c(from = "character", to = "character", COMPARED_COLUMNS)
HISTORY_RATIO_COLUMNS <- c(
  side = "character", environment = "character", workload = "character", metric = "character",
  unit = "character", better = "character", factors = "character", ratio = "numeric", ratio_low = "numeric",
  ratio_high = "numeric", ratio_n = "integer", reading = "character"
)

#' What sides are called
#'
#' @param sides list of sides as from `read_side`
#' @return texts
side_names <- function(sides) {
  vapply(sides, `[[`, "", "name")
}

#' The comparisons of several sides: each with the first, and with the one before it
#'
#' All of them are one family.
#'
#' @param sides list of at least two sides as from `read_side`, in their order
#' @param effect the minimum effect, as a share
#' @return data frame with the columns of HISTORY_COLUMNS: `from` and `to` name the two sides of each row, and
#'   `first` and `second` in the other columns' names stand for these
#' @section Errors: sides of different scales
history_of <- function(sides, effect = MINIMUM_EFFECT) {
  later <- seq_along(sides)[-1]
  pairs <- unique(rbind(data.frame(from = 1, to = later), data.frame(from = later - 1, to = later)))
  pairs <- pairs[order(pairs$to, -pairs$from), ]
  rows <- lapply(seq_len(nrow(pairs)), function(i) {
    first <- sides[[pairs$from[[i]]]]
    second <- sides[[pairs$to[[i]]]]
    found <- compared_rows(first, second, effect)
    if (nrow(found) > 0) cbind(data.frame(from = first$name, to = second$name), found)
  })
  table <- do.call(rbind, c(list(empty_table(HISTORY_COLUMNS)), rows))
  read_compared(table, effect)
}

#' The rows of a history that compare each side with the one before it
#'
#' @param history as from `history_of`
#' @param sides list of sides, in their order
#' @return rows of the history
changes_of <- function(history, sides) {
  names <- side_names(sides)
  history[match(history$from, names) == match(history$to, names) - 1, ]
}

#' The ratios to native that were found at each side
#'
#' @param sides list of sides as from `read_side`
#' @return data frame with the columns of HISTORY_RATIO_COLUMNS, of sweeps the points that stand for them; a
#'   side whose comparisons were not made has no rows in it
ratios_beside <- function(sides) {
  rows <- lapply(sides, function(side) {
    path <- result_path(side$plan, "comparisons")
    columns <- HISTORY_RATIO_COLUMNS[-1]
    found <- if (file.exists(path)) utils::read.csv(path, colClasses = "character", encoding = "UTF-8")
    # Of another version it may have more columns.
    if (NROW(found) == 0 || !all(names(columns) %in% names(found))) {
      return(NULL)
    }
    found <- found[names(columns)]
    numbers <- names(columns)[columns != "character"]
    found[numbers] <- lapply(found[numbers], as.numeric)
    cbind(data.frame(side = side$name), found[told_of(found, side$plan, side$plan), ])
  })
  do.call(rbind, c(list(empty_table(HISTORY_RATIO_COLUMNS)), rows))
}

#' What a history comes to, in sentences
#'
#' @param history as from `history_of`
#' @param sides list of sides, in their order
#' @param effect the minimum effect, as a share
#' @return text
history_text <- function(history, sides, effect) {
  changes <- changes_of(history, sides)
  if (outcome_of(history)$compared == 0) {
    return("No metric was measured often enough at two of them for an interval: nothing can be told.")
  }
  share <- percent(effect, if (effect * 100 == round(effect * 100)) 0 else 2)
  told <- vapply(seq_along(sides)[-1], function(i) {
    rows <- changes[changes$to == sides[[i]]$name, ]
    counts <- outcome_of(rows)
    what <- c(if (counts$slower > 0) paste("slower in", fixed(counts$slower, 0)),
              if (counts$faster > 0) paste("faster in", fixed(counts$faster, 0)))
    paste0(sides[[i]]$name, " is ", if (counts$compared == 0) {
      "without a metric that can be compared with the one before"
    } else if (length(what) == 0) {
      paste0("not found to differ in any of ", counted(counts$compared, "metric"))
    } else {
      paste0(paste(what, collapse = " and "), " of ", counted(counts$compared, "metric"))
    })
  }, "")
  paste0("By more than ", share, " beyond doubt, each compared with the one before it: ",
         paste(told, collapse = "; "), ".")
}
