# What every importer returns: the values it read, each with its line, and the lines that it could not use.

#' Values that were read from a log
#'
#' @param value numbers
#' @param metric,unit,factors,repetition,line vectors of the same length or of length one; factors are texts
#'   "name=value;...", repetition counts the runs of a file, line is where the value stands
#' @return data frame with these columns
readings <- function(metric, unit, value, factors, repetition, line) {
  some <- function(column) rep_len(column, length(value))
  data.frame(metric = some(metric), unit = some(unit), value = as.double(value), factors = some(factors),
             repetition = as.integer(some(repetition)), line = as.integer(some(line)))
}

#' Lines that could not be used
#'
#' @param line their numbers
#' @param reason texts
#' @return data frame with these columns
problems <- function(line = integer(), reason = character()) {
  data.frame(line = as.integer(line), reason = as.character(rep_len(reason, length(line))))
}

#' What an importer returns
#'
#' @param values list of data frames as from `readings`; empty ones and NULL are allowed
#' @param unreadable list of data frames as from `problems`
#' @return list: `values`, `problems`
imported <- function(values, unreadable = list()) {
  nothing <- readings(character(), character(), double(), character(), integer(), integer())
  values <- Filter(function(one) !is.null(one) && nrow(one) > 0, values)
  list(values = if (length(values) == 0) nothing else do.call(rbind, values),
       problems = do.call(rbind, c(list(problems()), unreadable)))
}

#' What an importer of a log of blocks returns
#'
#' @param values list of data frames as from `readings`, one for each block, with the column `key` as from
#'   `block_key`
#' @param unreadable list of data frames as from `problems`
#' @return as from `imported`; `repetition` counts the blocks
block_values <- function(values, unreadable) {
  for (i in seq_along(values)) values[[i]]$repetition <- rep(i, nrow(values[[i]]))
  result <- imported(list(), unreadable)
  result$values <- if (length(values) == 0) cbind(result$values, key = character()) else do.call(rbind,
                                                                                                 values)
  result
}

#' Splits a log at the lines that start a block
#'
#' @param lines of the log
#' @param starts numbers of the lines that start a block, ascending
#' @return list of vectors of line numbers; lines above the first start belong to none
blocks_of <- function(lines, starts) {
  ends <- c(starts[-1] - 1, length(lines))
  Map(seq.int, starts, ends)
}

#' The number in the first line that matches
#'
#' @param lines of a block
#' @param pattern regular expression whose first group is the number
#' @return one number; NA where no line matches or the group is no number
first_number <- function(lines, pattern) {
  found <- regmatches(lines, regexec(pattern, lines))
  found <- Filter(function(one) length(one) > 1, found)
  if (length(found) == 0) NA_real_ else suppressWarnings(as.numeric(found[[1]][[2]]))
}

#' What tells a block from any other: its time and its results
#'
#' @param lines of a block
#' @param pattern regular expression of the lines of its results
#' @return one text, the same for copies of a block
block_key <- function(lines, pattern) {
  time <- grep("^(Generated on|Current date/time)", lines, value = TRUE)
  paste(trimws(c(time, grep(pattern, lines, value = TRUE)), "right"), collapse = "\n")
}

#' Sockets that a block says it ran on
#'
#' @param lines of a block
#' @return 2 or 1 from the line of the native runs that names their processors; NA where there is none
sockets_named <- function(lines) {
  named <- grep("numaopts", lines, value = TRUE, fixed = TRUE)
  if (length(named) == 0) {
    return(NA_integer_)
  }
  both <- grepl("--interleave=0,1", named[[1]], fixed = TRUE)
  one <- grepl("--localalloc", named[[1]], fixed = TRUE)
  if (both) 2L else if (one) 1L else NA_integer_
}
