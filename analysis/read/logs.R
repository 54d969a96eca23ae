# What the parsers of the workloads share.
#
# The programs print one JSON object a line.  A parser says which kinds of objects a complete log holds,
# checks them against what was asked and against one another, and returns what was measured.

# How far, relatively, a number can be from what was printed of it with nine significant digits.
OF_NINE_DIGITS <- 5.1e-9

#' Stops because a log is not what a complete and correct run prints
#'
#' @param ... text of the reason; the caller adds the file
#' @section Errors: always, of class "broken_log"
broken_log <- function(...) {
  stop(structure(class = c("broken_log", "error", "condition"), list(message = paste0(...), call = NULL)))
}

#' Stops unless a condition holds
#'
#' @param condition TRUE or FALSE; anything else counts as FALSE
#' @param ... text of the reason
#' @section Errors: broken_log
require_that <- function(condition, ...) {
  if (!isTRUE(condition)) {
    broken_log(...)
  }
}

#' The JSON objects of a log
#'
#' Lines that do not start with "{" are what tools print beside their results and are passed over.
#'
#' @param lines character vector
#' @return list of named lists, in the order of the lines
#' @section Errors: broken_log, where a line that starts with "{" is not one complete JSON object
read_json_lines <- function(lines) {
  at <- which(startsWith(lines, "{"))
  text <- lines[at]
  objects <- NULL
  foreign <- !validUTF8(text)
  if (any(foreign)) {
    broken_log("line ", at[foreign][[1]], " is not a complete JSON object: it is not UTF-8")
  }
  # Flat objects are parsed at once.  Each such line holds one "{" and one "}", so that there are as many
  # objects as lines only if every line is an object by itself.
  if (all(grepl("^\\{[^][{}]*\\}[ \t\r]*$", text, useBytes = TRUE))) {
    objects <- tryCatch(jsonlite::parse_json(paste0("[", paste(text, collapse = ","), "]")),
                        error = function(e) NULL)
  }
  if (length(objects) != length(text)) {
    objects <- Map(read_json_object, text, at, USE.NAMES = FALSE)
  }
  twice <- vapply(objects, function(object) anyDuplicated(names(object)) > 0, NA)
  if (any(twice)) {
    broken_log("line ", at[twice][[1]], " holds the same key twice")
  }
  objects
}

#' One line as a JSON object
#'
#' @param text the line
#' @param number its number, for the message
#' @return named list
#' @section Errors: broken_log
read_json_object <- function(text, number) {
  tryCatch(jsonlite::parse_json(text), error = function(e) {
    start <- substr(iconv(text, "UTF-8", "ASCII", sub = "byte"), 1, 60)
    broken_log("line ", number, " is not a complete JSON object: ", start)
  })
}

#' The objects of a complete log, by kind
#'
#' @param lines character vector
#' @param ... for every kind its name and the key that only objects of this kind have
#' @return list with an entry for every kind: the list of its objects, in the order of the lines
#' @section Errors: broken_log, where the log does not end with `{"done": true}`, or where an object is of no
#'   kind
read_log <- function(lines, ...) {
  keys <- c(...)
  objects <- read_json_lines(lines)
  count <- length(objects)
  require_that(count > 0 && identical(objects[[count]], list(done = TRUE)),
               "the log does not end with {\"done\": true}")
  objects <- objects[-count]
  kind <- vapply(objects, function(object) {
    found <- which(keys %in% names(object))
    if (length(found) == 1) found else NA_integer_
  }, 0L)
  if (anyNA(kind)) {
    broken_log("an object with the keys ", paste(names(objects[is.na(kind)][[1]]), collapse = ", "),
               " does not belong in this log")
  }
  split(objects, factor(names(keys)[kind], names(keys)))
}

#' The points of a log: what tools printed between a line that opens and one that closes
#'
#' The programs of a sweep print `{"point": "NAME", ...}`, then whatever the tool prints, then
#' `{"end": "NAME"}`.
#'
#' @param lines character vector
#' @return list, an entry for each point in the order of the log: `head`, the opening object; `lines`, what
#'   stands between; `from` and `to`, the numbers of the opening and the closing line
#' @section Errors: broken_log, where a point is not closed, or closed twice, or by another's name
read_points <- function(lines) {
  opening <- which(startsWith(lines, "{\"point\":"))
  closing <- which(startsWith(lines, "{\"end\":"))
  require_that(length(opening) > 0, "the log holds no point")
  paired <- length(opening) == length(closing) && all(opening < closing) &&
    all(closing[-length(closing)] < opening[-1])
  require_that(paired, "the log holds ", length(opening), " points, not each of which ends")
  Map(function(from, to) {
    head <- read_json_lines(lines[from])[[1]]
    tail <- read_json_lines(lines[to])[[1]]
    require_that(identical(head$point, tail$end), "the point of line ", from, " does not end in line ", to)
    list(head = head, lines = lines[seq_len(to - from - 1) + from], from = from, to = to)
  }, opening, closing)
}

#' The points of a log that holds exactly the objects of a complete run
#'
#' @param lines character vector
#' @param expected the first key of each object that the log should hold, in order; the last is "done"
#' @return as from `read_points`
#' @section Errors: broken_log, where an object is missing, doubled or in another place, and where a point or
#'   the log does not end
read_sweep <- function(lines, expected) {
  objects <- read_json_lines(lines)
  found <- vapply(objects, function(object) c(names(object), "an empty object")[[1]], "")
  if (!identical(found, expected)) {
    count <- max(length(found), length(expected))
    found <- c(found, rep("nothing", count - length(found)))
    expected <- c(expected, rep("nothing", count - length(expected)))
    at <- which(found != expected)[[1]]
    broken_log("object ", at, " of the log should be ", expected[at], ", and is ", found[at])
  }
  require_that(identical(objects[[length(objects)]], list(done = TRUE)),
               "the log does not end with {\"done\": true}")
  read_points(lines)
}

#' What a tool prints as lines of the form KEY=value
#'
#' @param lines character vector; lines of another form are passed over
#' @param keys the keys in the order in which they should stand, each once
#' @return list of the values, by key: numbers where they are written as numbers, otherwise texts
#' @section Errors: broken_log, where there are other keys
read_settings <- function(lines, keys) {
  lines <- grep("^[A-Z][A-Z0-9_]*=", lines, value = TRUE, useBytes = TRUE)
  require_that(identical(sub("=.*", "", lines, useBytes = TRUE), keys),
               "there should be one line for each of ", paste(keys, collapse = ", "))
  stats::setNames(lapply(sub("^[^=]*=", "", lines, useBytes = TRUE), text_or_number), keys)
}

#' A number where a text is one
#'
#' @param text one text
#' @return the number, or the text
text_or_number <- function(text) {
  if (grepl("^-?[0-9]+([.][0-9]+)?$", text, useBytes = TRUE)) as.double(text) else text
}

#' Checks that the client was pinned as asked
#'
#' @param head the object that opens a point: `cpu`, the number of its processor or null
#' @param parameters the record's parameters: `client_cpu`
#' @section Errors: broken_log
require_pinned <- function(head, parameters) {
  require_that("cpu" %in% names(head) && "client_cpu" %in% names(parameters) &&
                 identical(as.double(unlist(head$cpu)), as.double(unlist(parameters$client_cpu))),
               "the client should run on processor ", deparse1(parameters$client_cpu),
               ", and the log says ", deparse1(head$cpu))
}

#' The only object of a kind
#'
#' @param log as from `read_log`
#' @param kind name of the kind
#' @return the object
#' @section Errors: broken_log, where there is none or more than one
require_one <- function(log, kind) {
  count <- length(log[[kind]])
  require_that(count == 1, "there should be one ", kind, ", and there are ", count)
  log[[kind]][[1]]
}

#' The numbers that objects hold
#'
#' @param objects list of objects
#' @param key their key
#' @param zero whether zero is allowed
#' @return numeric vector, an element for each object
#' @section Errors: broken_log, where a value is missing, not a number, not finite or not positive
numbers <- function(objects, key, zero = FALSE) {
  checked_numbers(lapply(objects, `[[`, key), key, zero)
}

#' Values that must be numbers
#'
#' A log may hold thousands of them, so that they are looked at together.
#'
#' @param values list
#' @param keys what they are called in messages: one text, or one for each
#' @param zero whether zero is allowed
#' @return numeric vector
#' @section Errors: broken_log, as of `numbers`
checked_numbers <- function(values, keys, zero = FALSE) {
  good <- lengths(values) == 1 & vapply(values, is.numeric, NA)
  found <- as.double(unlist(values[good], use.names = FALSE))
  good[good] <- is.finite(found) & (found > 0 | (zero & found == 0))
  if (!all(good)) {
    wrong <- values[!good][[1]]
    broken_log(rep_len(keys, length(values))[!good][[1]], " should be a positive number, and is ",
               if (is.null(wrong)) "missing" else deparse1(wrong))
  }
  found
}

#' The number that an object holds
#'
#' @inheritParams numbers
#' @param object one object
#' @return one number
#' @section Errors: broken_log, as of `numbers`
number <- function(object, key, zero = FALSE) {
  numbers(list(object), key, zero)
}

#' Checks that a program did what it was asked to
#'
#' @param object what the program reported
#' @param parameters what the record says was asked
#' @param keys names of the parameters
#' @section Errors: broken_log, where one differs or is missing
require_asked <- function(object, parameters, keys) {
  for (key in keys) {
    found <- number(object, key, zero = TRUE)
    expected <- asked(parameters, key)
    require_that(found == expected, key, " should be ", plain(expected), ", and the log says ", plain(found))
  }
}

#' A number that a program was asked for
#'
#' @param parameters the record's parameters
#' @param key name of the parameter
#' @return one number
#' @section Errors: broken_log, where the record does not hold it
asked <- function(parameters, key) {
  value <- parameters[[key]]
  require_that(is.numeric(value) && length(value) == 1,
               "the record does not say which ", key, " was asked for")
  as.double(value)
}

#' Checks that a tool that ends by its own clock ran for about as long as it was asked to
#'
#' It rounds what it prints, and on a busy machine starts late or ends early by some hundredths of a second:
#' that is no breakage.  A run that was cut short is told by what lacks in its log.
#'
#' @param what subject of the sentence, such as "the transfer took"
#' @param seconds that it says it ran
#' @param asked seconds that were asked for
#' @section Errors: broken_log, where more than a twentieth, and more than a tenth of a second, lacks
require_lasted <- function(what, seconds, asked) {
  require_that(seconds >= asked - max(0.1, 0.05 * asked), what, " ", plain(seconds),
               " s, less than was asked for")
}

#' Checks that two numbers agree within the rounding of what was printed
#'
#' @param what name of the quantity
#' @param found,expected vectors of one length, or `expected` one number
#' @param tolerance relative; six significant digits are rounded by at most 5e-6
#' @section Errors: broken_log
require_close <- function(what, found, expected, tolerance = 1e-5) {
  away <- which(!(abs(found - expected) <= tolerance * abs(expected)) %in% TRUE)
  if (length(away) > 0) {
    broken_log(what, " should be ", plain(expected[away][1]), ", and the log says ", plain(found[away][1]))
  }
}

#' What rounding to some significant digits takes from a number, or adds to it, at most
#'
#' @param x numbers above zero
#' @param digits significant digits
#' @return numbers
half_digit <- function(x, digits) {
  0.5 * 10^(floor(log10(x)) + 1 - digits)
}

#' Checks that numbers are others as they are printed, rounded to some digits
#'
#' A number with one digit changed, or one more, is not what printing gives, so that it is noticed.
#'
#' @param what name of the quantity
#' @param found numbers as they were printed
#' @param expected numbers, computed from printed ones of nine digits
#' @param digits significant digits with which `found` was printed
#' @param error by which `expected` may be wrong; that of one number alone is `half_digit`
#' @section Errors: broken_log
require_rounded <- function(what, found, expected, digits = 6, error = OF_NINE_DIGITS * expected) {
  as_printed <- abs(found - signif(found, digits)) <= 1e-12 * abs(found)
  away <- which(!(as_printed & abs(found - expected) <= half_digit(expected, digits) + error) %in% TRUE)
  if (length(away) > 0) {
    broken_log(what, " should be ", plain(signif(expected[away][1], digits)), ", and the log says ",
               plain(found[away][1]))
  }
}

#' Checks that things are numbered 1, 2, 3 ...
#'
#' @param objects list of objects
#' @param key the key that holds the number
#' @param count how many there should be
#' @section Errors: broken_log
require_counted <- function(objects, key, count) {
  require_that(length(objects) == count && all(numbers(objects, key) == seq_along(objects)),
               "the log should hold each ", key, " from 1 to ", plain(count), " once and in order")
}

#' What was measured, in the form that parsers return
#'
#' @param metric,unit,value,factors vectors; factors are texts "name=value;..." or "" where there are none
#' @return data frame with these columns, a row for each value
measured <- function(metric, unit, value, factors = "") {
  columns <- list(metric = metric, unit = unit, value = value, factors = factors)
  count <- if (all(lengths(columns) > 0)) max(lengths(columns)) else 0
  list2DF(lapply(columns, rep_len, count), count)
}

#' Several tables of what was measured, below one another
#'
#' Much cheaper than `rbind`, which a log of many points would call for each of them.
#'
#' @param tables list of data frames as from `measured`; NULL among them is passed over
#' @return data frame as from `measured`
all_measured <- function(tables) {
  columns <- c(metric = "metric", unit = "unit", value = "value", factors = "factors")
  list2DF(lapply(columns, function(name) unlist(lapply(tables, `[[`, name), use.names = FALSE)))
}

#' A number as plain text
#'
#' @param x numbers
#' @return text without exponents of whole numbers
plain <- function(x) {
  ifelse(is.finite(x) & x == round(x) & abs(x) < 1e15, sprintf("%.0f", x), sprintf("%.9g", x))
}
