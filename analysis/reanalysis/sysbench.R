# sysbench 0.4.12: outputs for a rising number of threads, one below the other in a file.

#' Reads a file of sysbench outputs
#'
#' Throughput is transactions over total time; the rate that sysbench prints is a little off, since it is
#' rounded otherwise, and serves as a check.
#'
#' @param lines of the file
#' @return as from `imported`; factor `threads`; metrics throughput (tx/s), latency (ms, mean) and
#'   latency_p95 (ms)
read_sysbench <- function(lines) {
  starts <- grep("^sysbench [0-9.]+:", lines)
  if (length(starts) == 0) {
    return(imported(list(), list(problems(1, "no output of sysbench in this file"))))
  }
  read <- lapply(blocks_of(lines, starts), function(at) sysbench_block(lines, at))
  values <- Filter(Negate(is.null), lapply(read, `[[`, "values"))
  above <- if (starts[[1]] > 1 && any(grepl("[^ ]", lines[seq_len(starts[[1]] - 1)]))) {
    list(problems(1, "text above the first output of sysbench"))
  }
  imported(values, c(above, lapply(read, `[[`, "problems")))
}

#' Reads one output of sysbench
#'
#' @param lines of the file
#' @param at numbers of the output's lines
#' @return list: `values`, three rows, or `problems`
sysbench_block <- function(lines, at) {
  block <- lines[at]
  unusable <- function(reason) list(problems = problems(at[[1]], reason))
  one <- function(pattern) first_number(block, pattern)
  threads <- one("^Number of threads: *([0-9]+)")
  transactions <- one("^ *transactions: +([0-9]+)")
  printed <- one("^ *transactions: +[0-9]+ +\\(([0-9.]+) per sec")
  seconds <- one("^ *total time: +([0-9.]+)s")
  mean <- one("^ *avg: +([0-9.]+)ms")
  p95 <- one("^ *approx\\. +95 percentile: +([0-9.]+)ms")
  found <- c(threads = threads, transactions = transactions, "total time" = seconds, "mean latency" = mean,
             "95th percentile" = p95)
  if (anyNA(found) || !any(grepl("^ *execution time \\(avg/stddev\\)", block))) {
    lacking <- names(found)[is.na(found)]
    return(unusable(paste0("an output that was cut off", if (length(lacking) > 0) "; without ",
                           paste(lacking, collapse = ", "))))
  }
  if (isTRUE(one("^ *write: +([0-9]+)") > 0)) {
    return(unusable("a test that is not read-only"))
  }
  rate <- transactions / seconds
  if (!isTRUE(rate > 0 && abs(printed / rate - 1) < 1e-3)) {
    return(unusable("the printed rate contradicts the transactions and the total time"))
  }
  line <- function(pattern) at[[grep(pattern, block)[[1]]]]
  list(values = readings(
    c("throughput", "latency", "latency_p95"), c("tx/s", "ms", "ms"), c(rate, mean, p95),
    paste0("threads=", threads), NA,
    c(line("^ *transactions:"), line("^ *avg:"), line("percentile:"))
  ))
}
