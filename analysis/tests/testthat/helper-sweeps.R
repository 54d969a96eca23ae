# What the tests of the parsers of sweeps share.

#' Expects that a parser refuses a log
expect_refused <- function(workload, lines, parameters, reason = "") {
  expect_error(parser_of(workload)(lines, parameters), reason, class = "broken_log")
}

#' A log with a text replaced in one line, which must be there
changed <- function(lines, at, from, to) {
  stopifnot(grepl(from, lines[at], fixed = TRUE))
  lines[at] <- sub(from, to, lines[at], fixed = TRUE)
  lines
}

#' The numbers of the lines that a parser must not do without: all but what tools print while they warm up
needed_lines <- function(lines) {
  from <- grep("^\\{\"warmup\":", lines)
  to <- grep("^\\{\"warmed\":", lines)
  idle <- unlist(Map(function(from, to) seq_len(to - from - 1) + from, from, to))
  setdiff(seq_along(lines), idle)
}

#' Expects that a log yields nothing as long as it is not complete, and that noise does not matter
expect_all_or_nothing <- function(workload, lines, parameters) {
  parse <- parser_of(workload)
  outcome <- function(lines) tryCatch(parse(lines, parameters), error = identity)
  refused <- function(lines) inherits(outcome(lines), "broken_log")
  whole <- outcome(lines)
  expect_s3_class(whole, "data.frame")
  cut <- function(i) c(lines[seq_len(i - 1)], substr(lines[i], 1, nchar(lines[i]) %/% 2))
  expect_true(all(vapply(seq_along(lines), function(i) refused(lines[seq_len(i - 1)]), NA)))
  expect_true(all(vapply(seq_along(lines), function(i) refused(cut(i)), NA)))
  for (i in needed_lines(lines)) {
    expect_true(refused(lines[-i]), label = paste("a log without line", i, "is refused:", lines[i]))
    expect_true(refused(append(lines, lines[i], i)), label = paste("a log with line", i, "twice is refused"))
  }
  expect_true(refused(rev(lines)))
  expect_equal(outcome(append(lines, c("warning: clock skew", "", "[1] {not json"), 1)), whole)
  expect_equal(outcome(append(lines, "\xff\xfe", length(lines) - 2)), whole)
}

#' Expects that the metrics and units of a parser are those of workload.yaml
expect_declared <- function(workload, values) {
  yaml <- readLines(file.path(project, "workloads", workload, "workload.yaml"))
  for (i in seq_len(nrow(values))) {
    declared <- startsWith(yaml, paste0("  ", values$metric[i], ": {")) &
      grepl(paste0("unit: ", values$unit[i], ","), yaml, fixed = TRUE)
    expect_true(any(declared), label = paste(values$metric[i], "is declared"))
  }
}
