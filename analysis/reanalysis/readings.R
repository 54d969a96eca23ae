# What every importer returns: the values it read, each with its line, and the lines that it could not use.

#' Values that were read from a log
#'
#' @param metric,unit,value,factors,repetition,line vectors of one length or of length one; factors are texts
#'   "name=value;...", repetition counts the runs of a file, line is where the value stands
#' @return data frame with these columns
readings <- function(metric, unit, value, factors, repetition, line) {
  table <- data.frame(metric = metric, unit = unit, value = as.double(value), factors = factors,
                      repetition = as.integer(repetition), line = as.integer(line))
  rownames(table) <- NULL
  table
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
  list(values = do.call(rbind, c(list(nothing), values)), problems = do.call(rbind, c(list(problems()), unreadable)))
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

#' The text of a block, for telling copies
#'
#' @param lines of a block
#' @return one text; blank lines and blanks at the ends of lines do not count
block_text <- function(lines) {
  trimmed <- trimws(lines, "right")
  paste(trimmed[trimmed != ""], collapse = "\n")
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
  if (grepl("--interleave=0,1", named[[1]], fixed = TRUE)) 2L else if (grepl("--localalloc", named[[1]], fixed = TRUE)) 1L else NA_integer_
}
