# Statistics of the series: all values of one workload, environment, metric and setting.

#' The workloads, in the order of the tables
WORKLOADS <- c("randomaccess", "stream", "linpack", "fio", "mysql", "netperf", "nuttcp", "redis")

#' The columns that name a series
SERIES_KEY <- c("workload", "environment", "metric", "unit", "factors", "selection")

#' Statistics of every series
#'
#' @param tidy table of values
#' @return data frame: the columns of `SERIES_KEY`, `n`, `mean`, `sd` (sample; NA from one value), `min`,
#'   `max`, `median`
series_of <- function(tidy) {
  groups <- split(seq_len(nrow(tidy)), interaction(tidy[SERIES_KEY], drop = TRUE, sep = "\n"))
  first <- vapply(groups, `[[`, 0L, 1)
  of <- function(f) vapply(groups, function(rows) f(tidy$value[rows]), 0, USE.NAMES = FALSE)
  table <- data.frame(tidy[first, SERIES_KEY], n = lengths(groups), mean = of(mean), sd = of(stats::sd),
                      min = of(min),
                      max = of(max), median = of(stats::median))
  rownames(table) <- NULL
  numbers <- vapply(strsplit(gsub("[^0-9;]", "", table$factors), ";"), function(parts) {
    paste(formatC(as.numeric(c(parts, 0)), width = 12, format = "f", digits = 0), collapse = " ")
  }, "")
  table[order(match(table$workload, WORKLOADS), table$selection, table$environment, table$metric,
              gsub("[0-9]+", "", table$factors), numbers, table$factors, method = "radix"), ]
}
