# The cells of an Excel workbook (ECMA-376): a ZIP archive of XML files.

#' Reads the cells of the first sheet of a workbook
#'
#' @param path of the file
#' @return data frame: `row` and `column` (numbers), `cell` (such as B5), `text` ("" for a number),
#'   `number` (NA for text); empty cells have no row
#' @section Errors: broken_log, where the file is no workbook
read_sheet <- function(path) {
  names <- tryCatch(suppressWarnings(utils::unzip(path, list = TRUE)$Name), error = function(e) character())
  sheets <- grep("^xl/worksheets/[^/]+\\.xml$", names, value = TRUE)
  require_that(length(sheets) > 0, "not an Excel workbook")
  sheet <- sheets[order(nchar(sheets), sheets, method = "radix")][[1]]
  shared <- if ("xl/sharedStrings.xml" %in% names) {
    vapply(xml2::xml_find_all(read_part(path, "xl/sharedStrings.xml"), "//si"), string_of, "")
  }
  cells <- xml2::xml_find_all(read_part(path, sheet), "//sheetData/row/c")
  name <- xml2::xml_attr(cells, "r")
  type <- xml2::xml_attr(cells, "t", default = "n")
  value <- xml2::xml_text(xml2::xml_find_first(cells, "./v"))
  text <- ifelse(type == "inlineStr", vapply(cells, string_of, ""),
                 ifelse(type %in% c("str", "e", "b"), value, ""))
  indexed <- which(type == "s")
  text[indexed] <- shared[as.integer(value[indexed]) + 1]
  # A number may be stored as text.
  plain_text <- grepl("^ *-?[0-9]+([.][0-9]+)? *$", text)
  number <- suppressWarnings(as.numeric(ifelse(type == "n", value, ifelse(plain_text, text, NA))))
  text[plain_text] <- ""
  filled <- !is.na(number) | (!is.na(text) & trimws(text) != "")
  table <- data.frame(row = as.integer(sub("^[A-Z]+", "", name)),
                      column = column_number(sub("[0-9]+$", "", name)),
                      cell = name, text = trimws(text), number = number)
  table[filled, ]
}

#' A part of a workbook as a document without namespaces
#'
#' @param path of the workbook
#' @param part its name
#' @return XML document
#' @section Errors: broken_log, where it is no XML
read_part <- function(path, part) {
  connection <- unz(path, part, "rb")
  on.exit(close(connection))
  bytes <- raw()
  repeat {
    more <- readBin(connection, "raw", 65536)
    if (length(more) == 0) break
    bytes <- c(bytes, more)
  }
  tryCatch(xml2::xml_ns_strip(xml2::read_xml(bytes)), error = function(e) broken_log(part, " is not XML"))
}

#' The text of a string, whose letters may be formatted in runs
#'
#' @param node that holds it
#' @return one text
string_of <- function(node) {
  paste(xml2::xml_text(xml2::xml_find_all(node, ".//t[not(ancestor::rPh)]")), collapse = "")
}

#' Number of a column from its letters
#'
#' @param letters such as "B" or "AA"
#' @return numbers
column_number <- function(letters) {
  vapply(strsplit(letters, ""), function(parts) {
    as.integer(Reduce(function(sum, letter) 26 * sum + match(letter, LETTERS), parts, 0))
  }, 0L)
}
