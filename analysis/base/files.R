# Files: read with errors that name them, written whole or not at all.

#' Stops with an error about a file
#'
#' @param path the file
#' @param ... text of the reason
#' @section Errors: always
stop_about <- function(path, ...) {
  stop(path, ": ", ..., call. = FALSE)
}

#' The bytes of a text file
#'
#' @param path the file
#' @return raw vector
#' @section Errors: no such file; bytes that are not text
text_bytes <- function(path) {
  size <- file.size(path)
  if (is.na(size)) {
    stop_about(path, "no such file")
  }
  bytes <- readBin(path, "raw", size)
  if (length(grepRaw(as.raw(0), bytes, fixed = TRUE)) > 0) {
    stop_about(path, "not a text file: it contains NUL bytes")
  }
  bytes
}

#' The bytes of a file as one text
#'
#' @param path the file
#' @return text marked as UTF-8
#' @section Errors: as of `text_bytes`
read_text <- function(path) {
  text <- rawToChar(text_bytes(path))
  Encoding(text) <- "UTF-8"
  text
}

#' A JSON object in a file as nested lists
#'
#' @param path the file
#' @return named list; nothing is simplified
#' @section Errors: no such file; not JSON; not an object
read_json <- function(path) {
  text <- read_text(path)
  object <- tryCatch(jsonlite::parse_json(text), error = function(e) {
    stop_about(path, "not valid JSON (", first_line(conditionMessage(e)), ")")
  })
  if (!is.list(object) || is.null(names(object))) {
    stop_about(path, "not a JSON object")
  }
  object
}

#' A CSV file with known columns
#'
#' @param path the file
#' @param columns named character vector: column to class ("character", "integer" or "numeric")
#' @return data frame of exactly these columns; empty cells are "" in text and NA in numbers
#' @section Errors: no such file; other columns; cells that are not of their class
read_csv <- function(path, columns) {
  text_bytes(path)
  # From the file and not from its text, of which another copy would be made for every line and cell.
  raw <- tryCatch(
    utils::read.csv(path, colClasses = "character", check.names = FALSE, na.strings = character(),
                    encoding = "UTF-8", fill = FALSE, row.names = NULL),
    error = function(e) stop_about(path, "not a CSV file (", first_line(conditionMessage(e)), ")")
  )
  if (!identical(names(raw), names(columns))) {
    stop_about(path, "its columns are ", paste(names(raw), collapse = ", "), ", not ",
               paste(names(columns), collapse = ", "),
               "; if another version made it, remove it and run snakemake again")
  }
  for (name in names(columns)[columns != "character"]) {
    cells <- raw[[name]]
    values <- suppressWarnings(as.numeric(cells))
    bad <- cells != "" & (is.na(values) | (columns[[name]] == "integer" & values != round(values)))
    if (any(bad)) {
      stop_about(path, "line ", which(bad)[[1]] + 1, ", ", name, ": '", cells[bad][[1]], "' is not a number",
                 if (columns[[name]] == "integer") " without a fraction")
    }
    raw[[name]] <- values
  }
  raw
}

#' A data frame as the text of a CSV file
#'
#' @param table data frame of text and numbers
#' @param digits significant digits of numbers
#' @return character vector of lines; missing values are empty cells
csv_lines <- function(table, digits = 15) {
  cells <- lapply(table, function(column) {
    if (is.numeric(column)) {
      column <- sprintf("%.*g", as.integer(digits), as.double(column))
      column[column %in% c("NA", "NaN")] <- ""
      return(column)
    }
    column <- enc2utf8(as.character(column))
    column[is.na(column)] <- ""
    quoted <- grepl("[\",\r\n]", column)
    column[quoted] <- paste0("\"", gsub("\"", "\"\"", column[quoted], fixed = TRUE), "\"")
    column
  })
  c(paste(names(table), collapse = ","), if (nrow(table) > 0) do.call(paste, c(unname(cells), sep = ",")))
}

#' Writes a CSV file
#'
#' @param table data frame of text and numbers
#' @param path the file
#' @param digits significant digits of numbers
write_csv <- function(table, path, digits = 15) {
  write_whole(path, function(temporary) {
    writeLines(csv_lines(table, digits), temporary, useBytes = TRUE)
  })
}

#' Writes a file whole or not at all
#'
#' What is written goes to a new file in the same folder, which then takes the place of the old one.
#'
#' @param path the file; its folder is made where there is none
#' @param write function of the path to write to
#' @section Errors: the file can't be written
write_whole <- function(path, write) {
  dir.create(dirname(path), showWarnings = FALSE, recursive = TRUE)
  temporary <- tempfile(paste0(".", basename(path), "-"), dirname(path), paste0(".", tools::file_ext(path)))
  on.exit(unlink(temporary))
  withCallingHandlers(
    tryCatch(write(temporary), error = function(e) {
      stop_about(path, "can't be written (", first_line(conditionMessage(e)), ")")
    }),
    warning = function(w) if (grepl("cannot open", conditionMessage(w))) invokeRestart("muffleWarning")
  )
  if (!file.rename(temporary, path)) {
    stop_about(path, "can't be written")
  }
  invisible(path)
}

#' The first line of a text
#'
#' @param text one text
#' @return its first line, at most 200 characters of it
first_line <- function(text) {
  substr(strsplit(text, "\n", fixed = TRUE)[[1]][[1]], 1, 200)
}

#' Writes a list as a JSON file, whole or not at all
#'
#' @param object named list; NULL becomes null, vectors of length 1 become scalars
#' @param path the file
write_json <- function(object, path) {
  text <- jsonlite::toJSON(object, auto_unbox = TRUE, digits = 10, null = "null", pretty = TRUE)
  write_whole(path, function(temporary) writeLines(text, temporary))
}

#' A table without rows
#'
#' @param columns named character vector: column to class
#' @return data frame
empty_table <- function(columns) {
  as.data.frame(lapply(columns, function(class) if (class == "character") character() else numeric()))
}
