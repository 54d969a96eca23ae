# sysbench's OLTP transactions on MariaDB: rate, latency and the host's CPU utilisation by number of threads.

# The lines of sysbench's report, in order.  Each must be there once; what is captured are its numbers.
mysql_report <- c(
  version = "^sysbench ([0-9.]+) \\(.*\\)$",
  running = "^Running the test with following options:$",
  threads = "^Number of threads: ([0-9]+)$",
  seed = "^Initializing random number generator from seed \\(([0-9]+)\\)\\.$",
  initializing = "^Initializing worker threads\\.\\.\\.$",
  started = "^Threads started!$",
  statistics = "^SQL statistics:$",
  performed = "^ +queries performed:$",
  read = "^ +read: +([0-9]+)$",
  write = "^ +write: +([0-9]+)$",
  other = "^ +other: +([0-9]+)$",
  total = "^ +total: +([0-9]+)$",
  transactions = "^ +transactions: +([0-9]+) +\\(([0-9.]+) per sec\\.\\)$",
  queries = "^ +queries: +([0-9]+) +\\(([0-9.]+) per sec\\.\\)$",
  ignored = "^ +ignored errors: +([0-9]+) +\\(([0-9.]+) per sec\\.\\)$",
  reconnects = "^ +reconnects: +([0-9]+) +\\(([0-9.]+) per sec\\.\\)$",
  general = "^General statistics:$",
  seconds = "^ +total time: +([0-9.]+)s$",
  events = "^ +total number of events: +([0-9]+)$",
  latency = "^Latency \\(ms\\):$",
  min = "^ +min: +([0-9.]+)$",
  avg = "^ +avg: +([0-9.]+)$",
  max = "^ +max: +([0-9.]+)$",
  p95 = "^ +95th percentile: +([0-9.]+)$",
  sum = "^ +sum: +([0-9.]+)$",
  fairness = "^Threads fairness:$",
  thread_events = "^ +events \\(avg/stddev\\): +([0-9.]+)/([0-9.]+)$",
  thread_seconds = "^ +execution time \\(avg/stddev\\): +([0-9.]+)/([0-9.]+)$"
)

# Queries of one transaction, by kind.
mysql_queries <- list("read-only" = c(read = 14, write = 0, other = 2),
                      "read-write" = c(read = 14, write = 4, other = 2))

# Transactions that were begun again because two wanted the same row, for each one that was done, at most.
mysql_most_ignored <- 0.05

# Seconds by which the time that sysbench divides by may be longer than the one it prints: it is taken later.
mysql_late <- 0.05

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`threads`, and `test` where it is not read-only)
#' @section Errors: broken_log
parse_mysql <- function(lines, parameters) {
  log <- read_log(lines, filled = "server", warmed = "warmed", observed = "observed", point = "point",
                  end = "end", accounted = "accounted", finished = "rows_left")
  points <- mysql_points(parameters)
  require_mysql_order(lines, length(points))
  require_mysql_table(require_one(log, "filled"), require_one(log, "finished"), parameters)
  all_measured(Map(function(point, found, warmed, accounted, i) {
    require_mysql_point(found$head, point, parameters)
    report <- read_mysql_report(found, point)
    require_mysql_report(report, found$head, point, parameters)
    require_mysql_account(report, point, warmed, accounted)
    cpu <- mysql_cpu_share(log$observed[2 * i - 1:0], report, point)
    test <- if (point$test == "read-only") "" else paste0("test=", point$test, ";")
    measured(c("throughput", "latency", "p95", "cpu"), c("tx/s", "ms", "ms", "%"),
             c(report$transactions[1] / report$seconds, report$sum / report$events, report$p95, 100 * cpu),
             paste0(test, "threads=", plain(point$threads)))
  }, points, read_points(lines), log$warmed, log$accounted, seq_along(points)))
}

#' The points that were asked for, in order
#'
#' @param parameters the record's parameters
#' @return list of `name`, `test`, `threads`
#' @section Errors: broken_log, where the record holds none, or kinds of transactions that are not known
mysql_points <- function(parameters) {
  tests <- unlist(parameters$tests)
  threads <- unlist(parameters$threads)
  require_that(length(tests) > 0 && all(tests %in% names(mysql_queries)) && is.numeric(threads),
               "the record does not say which tests and threads were asked for")
  grid <- expand.grid(threads = as.double(threads), test = tests, stringsAsFactors = FALSE)
  Map(function(test, threads) list(name = paste0(test, "-", plain(threads)), test = test, threads = threads),
      grid$test, grid$threads, USE.NAMES = FALSE)
}

#' Checks that the log's objects are there in their order
#'
#' @param lines the log's lines
#' @param count number of points
#' @section Errors: broken_log
require_mysql_order <- function(lines, count) {
  keys <- sub("^\\{\"([a-z_]+)\".*", "\\1", lines[startsWith(lines, "{")])
  point <- c("warmed", "observed", "point", "end", "observed", "accounted")
  expected <- c("server", rep(point, count), "rows_left", "done")
  require_that(identical(keys, expected), "the log should hold ", plain(count),
               " points, each with its warm-up, the CPU's time before and after, and the server's account")
}

#' Checks the server and its table, as they were before and after the sweep
#'
#' @param filled,finished objects of the log
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_mysql_table <- function(filled, finished, parameters) {
  require_that(is.character(filled$server) && grepl("MariaDB", filled$server, fixed = TRUE),
               "the server should be MariaDB, and is ", filled$server)
  rows <- asked(parameters, "rows")
  for (key in c("rows", "rows_of_index")) {
    require_close(key, number(filled, key), rows, tolerance = 0)
  }
  for (key in c("rows_left", "rows_left_of_index")) {
    require_close(key, number(finished, key), rows, tolerance = 0)
  }
  require_asked(filled, parameters, "log_bytes")
  # The server rounds the size of its buffer pool, some versions up to a multiple of 128 MiB.
  buffer <- number(filled, "buffer_bytes")
  over <- buffer - asked(parameters, "buffer_bytes")
  require_that(over > -2^20 && over < 2^27, "buffer_bytes should be ", plain(parameters$buffer_bytes),
               ", and the log says ", plain(buffer))
  require_that(number(filled, "table_bytes") <= buffer,
               "the buffer pool does not hold the table: ", plain(filled$table_bytes), " bytes")
  require_close("flush_log", number(filled, "flush_log", zero = TRUE), 0, tolerance = 0)
  # The server takes less where the system does not let it open enough files.
  for (key in c("max_connections", "table_open_cache")) {
    require_close(key, number(filled, key), 1024, tolerance = 0)
  }
  require_that(identical(filled$encryption, "DISABLED"), "connections may have been encrypted")
}

#' Checks that a point is what was asked for
#'
#' @param head the object that opens it
#' @param point as from `mysql_points`
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_mysql_point <- function(head, point, parameters) {
  require_that(identical(head$point, point$name) && identical(head$test, point$test),
               "the point should be ", point$name, ", and the log says ", head$point, " of ", head$test)
  require_asked(head, point, "threads")
  require_asked(head, parameters, c("rows", "seconds"))
}

#' The numbers of sysbench's report
#'
#' @param found as of `read_points`
#' @param point as from `mysql_points`
#' @return list: name of the line (as in `mysql_report`) -> its numbers
#' @section Errors: broken_log, where a line is missing, there twice, or out of its place
read_mysql_report <- function(found, point) {
  at <- lapply(mysql_report, grep, found$lines, perl = TRUE, useBytes = TRUE)
  bad <- names(at)[lengths(at) != 1]
  require_that(length(bad) == 0, "sysbench's report of ", point$name, " should hold one line each of: ",
               paste(bad, collapse = ", "))
  require_that(!is.unsorted(unlist(at)), "sysbench's report of ", point$name, " is out of order")
  require_that(!any(grepl("FATAL|ERROR", found$lines, useBytes = TRUE)), "sysbench reports an error of ",
               point$name)
  texts <- mapply(sub, mysql_report, "\\1 \\2", found$lines[unlist(at)],
                  MoreArgs = list(perl = TRUE, useBytes = TRUE))
  suppressWarnings(lapply(strsplit(texts, " ", fixed = TRUE), as.numeric))
}

#' Checks that a report agrees with what was asked and with itself
#'
#' @param report as from `read_mysql_report`
#' @param head the object that opens the point
#' @param point as from `mysql_points`
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_mysql_report <- function(report, head, point, parameters) {
  of <- function(...) paste(..., "of", point$name)
  same <- function(what, found, expected) require_close(of(what), found, expected, tolerance = 0)
  # Numbers are printed with so many decimals: what follows from one may differ by what its rounding hides.
  near <- function(what, found, expected, by) {
    require_that(abs(found - expected) <= by,
                 of(what), " should be ", plain(expected), ", and the log says ", plain(found))
  }
  count <- report$transactions[1]
  seconds <- report$seconds
  same("threads", report$threads, point$threads)
  same("seed", report$seed, number(head, "seed"))
  require_that(count > 0, "no transaction of ", point$name, " was done")
  same("number of events", report$events, count)
  require_lasted(paste(of("the time"), "is"), seconds, asked(parameters, "seconds"))
  # The threads end their last transactions, and on a busy machine some time goes by until all have.
  require_that(seconds <= 1.05 * asked(parameters, "seconds") + report$max / 1000 + 1,
               of("the time"), " should be ", plain(asked(parameters, "seconds")), " s, and is ",
               plain(seconds))

  ignored <- report$ignored[1]
  require_that(ignored <= mysql_most_ignored * count * (point$test == "read-write"),
               of(plain(ignored), "errors"), " were ignored in ", plain(count), " transactions")
  same("reconnects", report$reconnects[1], 0)
  expected <- mysql_queries[[point$test]] * count
  for (kind in names(expected)) {
    # A transaction that is begun again has done some of its queries.
    most <- expected[[kind]] + ignored * mysql_queries[[point$test]][[kind]]
    require_that(report[[kind]] >= expected[[kind]] && report[[kind]] <= most,
                 of(kind, "queries"), " should be ", plain(expected[[kind]]), ", and the log says ",
                 plain(report[[kind]]))
  }
  same("queries", report$total, report$read + report$write + report$other)
  same("queries", report$queries[1], report$total)

  for (key in c("transactions", "queries", "ignored", "reconnects")) {
    rates <- report[[key]][1] / (seconds + c(mysql_late, -0.0001))
    near(paste(key, "per second"), report[[key]][2], mean(rates), 0.00501 + diff(rates) / 2)
  }
  near("mean latency", report$avg, report$sum / count, 0.00501 + 0.005 / count)
  require_that(report$min > 0 && report$min <= report$avg && report$avg <= report$max,
               of("the mean latency"), " is not between the least and the greatest")
  # A percentile is the upper bound of a class of latencies, and classes are 1.8 % wide.
  require_that(report$p95 >= report$min && report$p95 <= report$max * 1.02,
               of("the 95th percentile"), " is not between the least and the greatest latency")
  near("events of a thread", report$thread_events[1], count / point$threads, 0.0000501)
  near("time of a thread", report$thread_seconds[1], report$sum / 1000 / point$threads, 0.0000501 + 5e-6)
  require_that(report$thread_seconds[1] <= seconds * 1.001,
               of("the time of a thread"), " is longer than the time of the point")
}

#' Checks that the server counted what sysbench did
#'
#' @param report as from `read_mysql_report`
#' @param point as from `mysql_points`
#' @param warmed,accounted the server's counters before and after
#' @section Errors: broken_log
require_mysql_account <- function(report, point, warmed, accounted) {
  require_that(identical(warmed$warmed, point$name) && identical(accounted$accounted, point$name),
               "the server's account of ", point$name, " is one of another point")
  commits <- diff(numbers(list(warmed, accounted), "commits"))
  require_close(paste("the server's commits of", point$name), commits, report$transactions[1], tolerance = 0)
  from_disk <- diff(numbers(list(warmed, accounted), "pages_from_disk", zero = TRUE))
  require_that(from_disk >= 0 && (from_disk == 0 || point$test == "read-write"), plain(from_disk),
               " pages were read from the disk in ", point$name, ", which the buffer pool should hold")
}

#' The share of the host's CPUs that was busy in a point
#'
#' @param observed what the host told before and after
#' @param report as from `read_mysql_report`
#' @param point as from `mysql_points`
#' @return share
#' @section Errors: broken_log
mysql_cpu_share <- function(observed, report, point) {
  seconds <- diff(numbers(observed, "seconds"))
  busy <- diff(numbers(observed, "busy_seconds"))
  cpus <- numbers(observed, "cpus")
  require_that(cpus[1] == cpus[2], "the number of CPUs changed in ", point$name)
  require_that(seconds >= report$seconds, "the CPUs were observed for ", plain(seconds), " s, less than ",
               point$name, " took")
  share <- busy / (seconds * cpus[1])
  # Busy time is counted in hundredths of a second.
  require_that(busy > 0 && share <= 1.02, "the CPUs were busy for ", plain(busy), " of ", plain(seconds),
               " s in ", point$name)
  share
}
