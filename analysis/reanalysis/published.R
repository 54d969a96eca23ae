# The values that the paper printed: Table I with the digits as printed, and the figures as they were
# measured from the vector and bitmap graphics of the document.

#' Reads the printed values
#'
#' @param root folder of the project
#' @return data frame with a row for each printed number: `disputed`, whether the raw results contradict the
#'   name that its environment has in print; `place` ("Table I", "Figure 3", ...), workload,
#'   environment, metric, unit, factors, `statistic` (value, mean, sd, min, max, deviation_percent),
#'   `planned` (values behind it), `published` (text), `tolerance` (half of the last digit of a table; for
#'   figures, what they can be read to)
read_published_values <- function(root) {
  figures <- read_csv(file.path(root, "published", "ibm-figures.csv"), c(
    figure = "integer", workload = "character", environment = "character", metric = "character",
    unit = "character",
    factors = "character", statistic = "character", n = "integer", published = "character",
    tolerance = "numeric"
  ))
  names(figures)[names(figures) == "n"] <- "planned"
  figures <- cbind(place = paste("Figure", figures$figure), figures[-1])
  values <- rbind(published_table(read_json(file.path(root, "published", "ibm-table1.json"))), figures)
  cbind(values, disputed = values$environment %in% disputed_environments(root))
}

#' Environments that are not what the print calls them
#'
#' @param root folder of the project
#' @return names, of which published/ibm-tables.json doubts the label
disputed_environments <- function(root) {
  tables <- read_json(file.path(root, "published", "ibm-tables.json"))
  doubted <- Filter(function(one) !is.null(one$doubt), tables$configurations)
  vapply(doubted, `[[`, "", "drawn")
}

#' Runs behind each mean of Table I
TABLE_RUNS <- 10

#' The rows of Table I
#'
#' @param table object of published/ibm-table1.json
#' @return data frame as from `read_published_values`
published_table <- function(table) {
  names <- c(native = "native", docker = "docker", kvm = "vm", kvm_tuned = "vm-tuned")
  do.call(rbind, lapply(table$rows, function(row) {
    conditions <- row$conditions
    factors <- paste(c(if (!is.null(conditions$order)) paste0("order=", plain(conditions$order)),
                       if (!is.null(conditions$sockets)) paste0("sockets=", conditions$sockets)),
                       collapse = ";")
    do.call(rbind, lapply(intersect(names(names), names(row$values)), function(name) {
      value <- row$values[[name]]
      printed <- c(mean = value$mean, deviation_percent = value$deviation_percent, sd = value$sd)
      data.frame(place = "Table I", workload = row$workload, environment = names[[name]], metric = row$metric,
                 unit = ifelse(names(printed) == "deviation_percent", "%", row$unit), factors = factors,
                 statistic = names(printed), planned = TABLE_RUNS,
                 published = unname(printed),
                 tolerance = half_of_last_digit(printed), row.names = NULL)
    }))
  }))
}

#' Half a unit of the last digit of a printed number
#'
#' @param text such as "0.0126"
#' @return numbers
half_of_last_digit <- function(text) {
  decimals <- nchar(sub("^[^.]*\\.?", "", text))
  unname(0.5 * 10^-decimals)
}
