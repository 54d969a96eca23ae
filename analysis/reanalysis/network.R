# The typed-in workbooks of netperf and nuttcp: the only results of these that were published.

#' The environment that a label means
#'
#' @param label text such as "Docker NAT"
#' @return names; NA for a label of none
environment_of_label <- function(label) {
  label <- tolower(label)
  docker <- grepl("docker|container", label)
  host <- grepl("host|--net|no.?nat", label)
  vm <- grepl("\\b(kvm|vm)\\b|virtual", label)
  native <- grepl("\\b(native|linux|bare|bml)\\b|bare.?metal", label)
  as.character(ifelse(docker & host, "docker-hostnet",
                      ifelse(docker, "docker", ifelse(vm, "vm", ifelse(native, "native", NA)))))
}

#' The label of a number in a sheet: the nearest text to its left, or above it, that satisfies a test
#'
#' @param sheet as from `read_sheet`
#' @param row,column of the number
#' @param accept function of texts; TRUE for those that will do
#' @param where "left" or "above"
#' @return text; NA where there is none
label_of <- function(sheet, row, column, accept, where) {
  near <- if (where == "left") {
    sheet[sheet$row == row & sheet$column < column, ]
  } else {
    sheet[sheet$column == column & sheet$row < row, ]
  }
  near <- near[near$text != "" & accept(near$text), ]
  distance <- if (where == "left") near$column else near$row
  if (nrow(near) == 0) NA_character_ else near$text[[which.max(distance)]]
}

#' The environment of a number in a sheet, by its row's label or else its column's
#'
#' @param sheet as from `read_sheet`
#' @param row,column of the number
#' @return name; NA where neither names one
environment_of_cell <- function(sheet, row, column) {
  accept <- function(text) !is.na(environment_of_label(text))
  label <- label_of(sheet, row, column, accept, "left")
  environment_of_label(if (is.na(label)) label_of(sheet, row, column, accept, "above") else label)
}

#' Reads the workbook of netperf
#'
#' Columns B and F hold rates of TCP_RR and UDP_RR; latency is the reciprocal.  An empty or zero cell was
#' not measured.
#'
#' @param path of the workbook
#' @return as from `imported`, with the column `environment` in `values`; factor `test`; metrics rate
#'   (tx/s) and latency (us); a problem's line is the row, and it names the cell
read_netperf <- function(path) {
  sheet <- read_sheet(path)
  rates <- sheet[!is.na(sheet$number) & sheet$column %in% c(2, 6), ]
  values <- list()
  unreadable <- list()
  for (i in seq_len(nrow(rates))) {
    cell <- rates[i, ]
    environment <- environment_of_cell(sheet, cell$row, cell$column)
    test <- test_of_cell(sheet, cell$row, cell$column)
    if (is.na(environment) || cell$number <= 0) {
      unreadable <- c(unreadable, list(problems(cell$row, paste0(
        cell$cell, ": ",
        if (is.na(environment)) "no label names its environment" else "zero, and so not measured"
      ))))
    } else {
      row <- readings(c("rate", "latency"), c("tx/s", "us"), c(cell$number, 1e6 / cell$number),
                      paste0("test=", test, "_RR"), 1, cell$row)
      values <- c(values, list(cbind(row, environment = environment)))
    }
  }
  network_result(values, c(unreadable, empty_cells(sheet, rates)))
}

#' The test of netperf that a number in its workbook belongs to
#'
#' @param sheet as from `read_sheet`
#' @param row,column of the number
#' @return "TCP" or "UDP": as a text above it or to its left says, the nearest one to the left of its
#'   column or in it; or else by its column
test_of_cell <- function(sheet, row, column) {
  tcp <- grepl("TCP", sheet$text, ignore.case = TRUE)
  udp <- grepl("UDP", sheet$text, ignore.case = TRUE)
  near <- sheet[xor(tcp, udp) & sheet$row <= row & sheet$column <= column, ]
  if (nrow(near) == 0) {
    return(c("2" = "TCP", "6" = "UDP")[[as.character(column)]])
  }
  near <- near[order(near$row == row, near$column == column, near$row, near$column), ]
  if (grepl("TCP", near$text[[nrow(near)]], ignore.case = TRUE)) "TCP" else "UDP"
}

#' Environments of a sheet that have a label and no number beside it
#'
#' @param sheet as from `read_sheet`
#' @param numbers rows of it that were read
#' @return list of data frames as from `problems`
empty_cells <- function(sheet, numbers) {
  labels <- sheet[sheet$text != "" & !is.na(environment_of_label(sheet$text)) & sheet$column < 6, ]
  between <- labels$row >= min(numbers$row, Inf) & labels$row <= max(numbers$row, -Inf)
  empty <- labels[between & !labels$row %in% numbers$row, ]
  lapply(seq_len(nrow(empty)), function(i) {
    problems(empty$row[[i]], paste0(empty$cell[[i]], ": no rate is given for ", empty$text[[i]]))
  })
}

#' Reads the workbook of nuttcp
#'
#' Rows 5 and 7 hold the rates of one connection in Mbit/s, rows 6 and 8 the same in Gbit/s, which are not
#' read; rows 19 to 24 hold a table over numbers of connections, which was not published.  Zero is what an
#' empty cell amounts to.
#'
#' @param path of the workbook
#' @return as from `imported`, with the columns `environment` and `published` in `values`; factors
#'   `direction` (transmit, of the system under test, or receive) or `connections`; metric throughput in
#'   Mbit/s or, over connections, as typed
read_nuttcp <- function(path) {
  sheet <- read_sheet(path)
  values <- unreadable <- list()
  take <- function(cell, unit, factors, published) {
    environment <- environment_of_cell(sheet, cell$row, cell$column)
    if (is.na(environment) || cell$number <= 0) {
      reason <- if (is.na(environment)) "no label names its environment" else "zero, and so not measured"
      unreadable <<- c(unreadable, list(problems(cell$row, paste0(cell$cell, ": ", reason))))
    } else {
      row <- readings("throughput", unit, cell$number, factors, 1, cell$row)
      values <<- c(values, list(cbind(row, environment = environment, published = published)))
    }
  }
  for (row in c(5, 7)) {
    cells <- sheet[sheet$row == row & !is.na(sheet$number) & sheet$column > 1, ]
    direction <- direction_of(sheet, row)
    for (i in seq_len(nrow(cells))) take(cells[i, ], "Mbit/s", paste0("direction=", direction), TRUE)
  }
  table <- sheet[sheet$row %in% 19:24 & !is.na(sheet$number), ]
  for (i in seq_len(nrow(table))) {
    cell <- table[i, ]
    connections <- connections_of(sheet, cell)
    if (!is.na(connections)) {
      take(cell, if (cell$number < 100) "Gbit/s" else "Mbit/s", paste0("connections=", connections), FALSE)
    }
  }
  network_result(values, unreadable)
}

#' The direction that a row of nuttcp's workbook is about
#'
#' @param sheet as from `read_sheet`
#' @param row its number
#' @return "transmit" or "receive": as its label says, or else the first row is what the system under test
#'   transmits
direction_of <- function(sheet, row) {
  text <- toupper(paste(sheet$text[sheet$row %in% c(row, row - 1) & sheet$column <= 2], collapse = " "))
  own <- toupper(paste(sheet$text[sheet$row == row], collapse = " "))
  told <- function(text) {
    if (grepl("C(LIENT)? *(-+>|TO) *S|TRANSMIT", text)) {
      "transmit"
    } else if (grepl("S(ERVER)? *(-+>|TO) *C|RECEIVE", text)) {
      "receive"
    }
  }
  c(told(own), told(text), if (row == 5) "transmit" else "receive")[[1]]
}

#' The number of connections that a cell of nuttcp's second table belongs to
#'
#' The environments stand either beside the rows or above the columns, and the connections on the other side.
#'
#' @param sheet as from `read_sheet`
#' @param cell row of it, a number
#' @return text; NA where the cell is itself a heading: a number of connections
connections_of <- function(sheet, cell) {
  names_one <- function(cells) any(!is.na(environment_of_label(cells$text)))
  left <- sheet[sheet$row == cell$row & sheet$column < cell$column, ]
  above <- sheet[sheet$column == cell$column & sheet$row < cell$row & sheet$row >= 17, ]
  if (names_one(left)) {
    named <- !is.na(environment_of_label(sheet$text)) & sheet$column < cell$column
    heads <- above[!above$row %in% sheet$row[named], ]
    head <- heads[which.max(heads$row), ]
    return(if (nrow(head) == 1) heading_number(head) else paste("column", sub("[0-9]+$", "", cell$cell)))
  }
  if (!names_one(above)) {
    return(NA_character_)
  }
  head <- left[which.min(left$column), ]
  if (nrow(head) == 1) heading_number(head) else paste("row", cell$row)
}

#' The number in a heading
#'
#' @param head row of a sheet
#' @return text; all of a text without a number
heading_number <- function(head) {
  if (!is.na(head$number)) {
    return(plain(head$number))
  }
  found <- regmatches(head$text, regexpr("[0-9]+", head$text))
  if (length(found) == 1) found else head$text
}

#' What the importers of workbooks return
#'
#' @param values list of data frames with the column `environment`
#' @param unreadable list of data frames as from `problems`
#' @return as from `imported`
network_result <- function(values, unreadable) {
  result <- imported(list(), unreadable)
  if (length(values) > 0) {
    result$values <- do.call(rbind, values)
  } else if (nrow(result$problems) == 0) {
    result$problems <- problems(1, "the workbook holds none of the expected numbers")
  }
  result
}
