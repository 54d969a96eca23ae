mysql_asked <- list(port = 13306, tests = list("read-only", "read-write"), threads = list(2, 8), rows = 10000,
                    buffer_bytes = 67108864, log_bytes = 8388608, seconds = 1, warmup_seconds = 1)
contended_asked <- updated(mysql_asked, tests = list("read-write"), threads = list(16, 32))

#' What the parser says of a log
parse_sweep <- function(lines, parameters = mysql_asked) {
  parser_of("mysql")(lines, parameters)
}

#' The parser refuses a log
refused <- function(lines, reason, parameters = mysql_asked) {
  expect_error(parse_sweep(lines, parameters), reason, class = "broken_log")
}

#' A log in which the first line that matches is changed
changed <- function(lines, pattern, replacement) {
  at <- grep(pattern, lines)[1]
  lines[at] <- sub(pattern, replacement, lines[at])
  lines
}

test_that("a sweep is read, point by point", {
  values <- parse_sweep(fixture("mysql"))
  expect_named(values, c("metric", "unit", "value", "factors"))
  expect_equal(values$metric, rep(c("throughput", "latency", "p95", "cpu"), 4))
  expect_equal(values$unit, rep(c("tx/s", "ms", "ms", "%"), 4))
  expect_equal(values$factors, rep(c("threads=2", "threads=8", "test=read-write;threads=2",
                                     "test=read-write;threads=8"), each = 4))
  expect_equal(values$value[1:4], c(1786 / 1.0018, 1998.42 / 1786, 3.55, 100 * 2.07 / (1.041461 * 2)))
  expect_equal(values$value[5:8], c(2339 / 1.0043, 8001.84 / 2339, 5.28, 100 * 2.14 / (1.079968 * 2)))
  expect_equal(values$value[9:12], c(3516 / 1.0009, 1995.13 / 3516, 0.69, 100 * 2.29 / (1.143326 * 2)))
  expect_equal(values$value[13:16], c(1283 / 1.0502, 8145.40 / 1283, 12.30, 100 * 2.85 / (1.427972 * 2)))
})

test_that("transactions that were begun again are allowed where rows are written, if they are few", {
  lines <- fixture("mysql", "contended")
  values <- parse_sweep(lines, contended_asked)
  expect_equal(values$value[values$metric == "throughput"], c(1257 / 1.0090, 857 / 1.0289))
  expect_equal(values$factors[c(1, 5)], c("test=read-write;threads=16", "test=read-write;threads=32"))
  expect_true(any(grepl("ignored errors: +[1-9]", lines)))
  many <- changed(lines, "(ignored errors: +)[0-9]+ +\\([0-9.]+", "\\163     (62.44")
  refused(many, "63 errors of read-write-16 were ignored in 1257 transactions", contended_asked)
  some <- changed(fixture("mysql"), "(ignored errors: +)0 +\\(0.00", "\\11     (1.00")
  refused(some, "1 errors of read-only-2 were ignored")
})

test_that("metrics and units are those of workload.yaml", {
  yaml <- readLines(file.path(project, "workloads", "mysql", "workload.yaml"))
  values <- unique(parse_sweep(fixture("mysql"))[c("metric", "unit")])
  found <- vapply(seq_len(nrow(values)), function(i) {
    any(startsWith(yaml, paste0("  ", values$metric[i], ": {")) &
          grepl(paste0("unit: \"?", values$unit[i], "\"?,"), yaml))
  }, NA)
  expect_true(all(found))
})

test_that("what is printed beside the results is passed over", {
  lines <- fixture("mysql")
  at <- grep("^Threads started!", lines)[1]
  expect_equal(parse_sweep(append(c("a warning", "", lines), "clock skew", at + 2)), parse_sweep(lines))
})

test_that("no log that was cut off yields a number", {
  lines <- fixture("mysql")
  for (n in some_of(seq_along(lines) - 1)) {
    refused(lines[seq_len(n)], "")
  }
  last <- lines[length(lines)]
  for (n in some_of(seq_len(nchar(last) - 1))) {
    refused(c(lines[-length(lines)], substr(last, 1, n)), "")
  }
})

test_that("a log that lacks any of its lines, or holds one twice, is refused", {
  lines <- fixture("mysql")
  for (i in some_of(which(nzchar(lines)))) {
    refused(lines[-i], "")
    refused(append(lines, lines[i], i), "")
  }
})

test_that("points in another order, of another place, or more than were asked for, are refused", {
  lines <- fixture("mysql")
  first <- grep("^\\{\"warmed\"", lines)
  parts <- split(lines, findInterval(seq_along(lines), c(first, length(lines) - 1)))
  expect_equal(unlist(parts, use.names = FALSE), lines)
  arranged <- function(...) unlist(parts[c(...)], use.names = FALSE)
  expect_s3_class(parse_sweep(arranged(1:6)), "data.frame")
  refused(arranged(1, 3, 2, 4:6), "should be read-only-2, and the log says read-only-8")
  refused(arranged(1, 2, 2, 4:6), "should be read-only-8, and the log says read-only-2")
  refused(arranged(1:5, 5, 6), "should hold 4 points")
  refused(arranged(1:4, 6), "should hold 4 points")
  refused(arranged(1:6), "should hold 6 points", updated(mysql_asked, threads = list(2, 8, 32)))
  refused(arranged(1:6), "should hold 2 points", updated(mysql_asked, tests = list("read-only")))
  other_way <- updated(mysql_asked, tests = list("read-write", "read-only"))
  refused(arranged(1:6), "should be read-write-2", other_way)
  # The report of one point in the place of another's.
  report <- function(part) {
    from <- grep("^sysbench ", part)
    seq(from, grep("^ +execution time", part))
  }
  swapped <- parts
  swapped[[3]][report(parts[[3]])] <- parts[[2]][report(parts[[2]])]
  refused(unlist(swapped, use.names = FALSE), "threads of read-only-8 should be 8, and the log says 2")
  out_of_order <- parts
  out_of_order[[2]][report(parts[[2]])] <- rev(parts[[2]][report(parts[[2]])])
  refused(unlist(out_of_order, use.names = FALSE), "out of order")
})

test_that("a number that is changed in a report is noticed", {
  lines <- fixture("mysql")
  # Deviations, bounds of the latency and its percentile stand alone, but within one another.
  free <- "stddev|min:|max:|percentile"
  keep <- "[0-9]+(\\.[0-9]+)?"
  from <- grep("^SQL statistics", lines)[1]
  to <- grep("^\\{\"end\"", lines)[1]
  count <- 0
  for (i in some_of(Filter(function(i) grepl(keep, lines[i]) && !grepl(free, lines[i]), from:to), 0.3)) {
    found <- gregexpr(keep, lines[i])
    hits <- regmatches(lines[i], found)[[1]]
    for (k in seq_along(hits)) {
      off <- as.numeric(hits[k]) * 1.2
      for (value in c(if (off > 0) sprintf("%.4f", off), "7", "-1", "nan", "1e999", "")) {
        if (identical(value, hits[k])) next
        other <- hits
        other[k] <- value
        wrong <- lines
        regmatches(wrong[i], found) <- list(other)
        refused(wrong, "")
        count <- count + 1
      }
    }
  }
  expect_gt(count, if (in_long_tests) 80 else 20)
  refused(changed(lines, "(min: +)[0-9.]+", "\\15.00"), "not between the least and the greatest")
  refused(changed(lines, "(max: +)[0-9.]+", "\\10.50"), "not between the least and the greatest")
  refused(changed(lines, "(95th percentile: +)[0-9.]+", "\\10.01"), "the 95th percentile of read-only-2")
  refused(changed(lines, "(95th percentile: +)[0-9.]+", "\\1999.00"), "the 95th percentile of read-only-2")
  refused(changed(lines, "(avg/stddev\\): +)[0-9.]+/", "\\1895.0000/"), "events of a thread")
  refused(changed(lines, "(execution time .*: +)[0-9.]+/", "\\10.9900/"), "time of a thread")
})

test_that("a run that did not do what it was asked to is refused", {
  lines <- fixture("mysql")
  differs <- function(reason, ...) refused(lines, reason, updated(mysql_asked, ...))
  differs("rows should be 20000, and the log says 10000", rows = 20000)
  differs("buffer_bytes should be 134217728, and the log says 67108864", buffer_bytes = 134217728)
  refused(changed(lines, "(\"buffer_bytes\": )[0-9]+", "\\1268435456"), "buffer_bytes should be 67108864")
  differs("log_bytes should be", log_bytes = 4194304)
  differs("seconds should be 2, and the log says 1", seconds = 2)
  differs("should be read-only-4", threads = list(4, 8))
  differs("does not say which tests", tests = list("read-mostly"))
  differs("does not say which tests", threads = list())
  refused(lines, "does not say which tests", list())
  refused(changed(lines, "total time: +1", "total time:       0"),
          "the time of read-only-2 is 0[.0-9]* s, less than")
  refused(changed(lines, "total time: +1", "total time:       9"), "the time of read-only-2 should be 1 s")
  refused(changed(lines, "from seed \\([0-9]+\\)", "from seed (5)"), "seed of read-only-2")
  refused(changed(lines, "(\"seed\": )[0-9]+", "\\15"), "seed of read-only-2")
  refused(changed(lines, "(reconnects: +)0 +\\(0.00", "\\11     (1.00"), "reconnects of read-only-2")
  refused(changed(lines, "^Threads started!$", "FATAL: mysql_stmt_execute() returned error 2013"), "started")
  at <- grep("^Threads started!", lines)[1]
  refused(append(lines, "FATAL: unable to connect", at), "reports an error of read-only-2")
})

test_that("another server than the one that was described is refused", {
  lines <- fixture("mysql")
  refused(changed(lines, "11[.0-9]*-MariaDB[^\"]*", "8.0.45"), "should be MariaDB, and is 8.0.45")
  refused(changed(lines, "(\"encryption\": )\"DISABLED\"", "\\1\"YES\""), "encrypted")
  refused(changed(lines, "(\"flush_log\": )0", "\\11"), "flush_log should be 0")
  refused(changed(lines, "(\"max_connections\": )1024", "\\1214"), "max_connections should be 1024")
  refused(changed(lines, "(\"table_open_cache\": )1024", "\\1200"), "table_open_cache should be 1024")
  refused(changed(lines, "(\"table_bytes\": )[0-9]+", "\\167108865"), "buffer pool does not hold the table")
  refused(changed(lines, "(\"rows_of_index\": )10000", "\\19999"), "rows_of_index should be 10000")
  refused(changed(lines, "(\"rows_left\": )10000", "\\19999"), "rows_left should be 10000")
  refused(changed(lines, "(\"rows_left_of_index\": )10000", "\\19999"), "rows_left_of_index should be 10000")
})

test_that("a server that counted other than the client, or read from the disk, is refused", {
  lines <- fixture("mysql")
  accounts <- grep("^\\{\"accounted\"", lines)
  more <- function(key, i) {
    pattern <- paste0("(\"", key, "\": )([0-9]+)")
    value <- as.numeric(sub(paste0(".*", pattern, ".*"), "\\2", lines[accounts[i]])) + 1
    replace(lines, accounts[i], sub(pattern, paste0("\\1", value), lines[accounts[i]]))
  }
  refused(more("commits", 1), "commits of read-only-2 should be 1786, and the log says 1787")
  refused(more("commits", 4), "commits of read-write-8")
  refused(more("pages_from_disk", 1), "1 pages were read from the disk in read-only-2")
  expect_equal(parse_sweep(more("pages_from_disk", 3)), parse_sweep(lines))
  refused(sub("(\"pages_from_disk\": )[0-9]+", "\\1null", lines), "pages_from_disk")
})

test_that("what the host's CPUs did must fit the point", {
  lines <- fixture("mysql")
  observed <- grep("^\\{\"observed\"", lines)
  with <- function(key, value, i) {
    pattern <- paste0("(\"", key, "\": )[0-9.]+")
    replace(lines, observed[i], sub(pattern, paste0("\\1", value), lines[observed[i]]))
  }
  refused(with("seconds", "2307.7", 2), "observed for 0.975[0-9]* s, less than read-only-2 took")
  refused(with("busy_seconds", "2227.42", 2), "busy for 0 of")
  refused(with("busy_seconds", "2237.42", 2), "busy for 10 of")
  refused(with("cpus", "4", 2), "the number of CPUs changed")
  refused(with("cpus", "null", 1), "cpus should be a positive number")
  idle <- parse_sweep(with("busy_seconds", "2227.52", 2))
  expect_equal(idle$value[4], 100 * 0.1 / (1.041461 * 2))
})
