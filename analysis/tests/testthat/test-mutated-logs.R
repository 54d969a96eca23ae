# Damaged logs: each is refused, or gives the very values of the whole one.  Our programs say twice whatever a
# value follows from, so that there are no exceptions; those of foreign tools are listed at the end.
# Some of the damages are tried, drawn by chance but always the same, and in the long tests all of them.

#' The captured logs with their parameters
captured_logs <- function() {
  names <- lapply(names(asked_for), function(workload) {
    files <- list.files(file.path(project, "workloads", workload, "fixtures"), "[.]log$")
    lapply(files, function(file) {
      name <- sub("[.]log$", "", file)
      parameters <- asked_for[[workload]]
      if (name == "two-sizes") {
        parameters <- updated(parameters, sizes = list(500, 1500), min_trials = 2, min_seconds = 0.05)
      }
      list(workload = workload, lines = fixture(workload, name), parameters = parameters)
    })
  })
  do.call(c, names)
}

#' Checks that each mutation of each captured log is refused, or changes no value
#'
#' @param mutate function of the lines of a log that gives a named list of mutated ones
#' @param least how many mutations there must be, over all logs, where all are tried
#' @param refused least share of them that must be refused
expect_no_other_number <- function(mutate, least, refused = 0.5) {
  count <- 0
  kept <- 0
  other <- character()
  for (log in captured_logs()) {
    parse <- parser_of(log$workload)
    right <- parse(log$lines, log$parameters)
    mutations <- some_of(mutate(log$lines))
    for (name in names(mutations)) {
      found <- tryCatch(parse(mutations[[name]], log$parameters), broken_log = function(e) NULL,
                        error = function(e) conditionMessage(e))
      count <- count + 1
      if (!is.null(found)) {
        kept <- kept + 1
        if (!identical(found, right)) {
          other <- c(other, paste0(log$workload, ", ", name, ": ", first_line(format(found)[[1]])))
        }
      }
    }
  }
  expect_equal(other, character())
  expect_gte(count, least * if (in_long_tests) 1 else 0.15)
  expect_lte(kept / count, 1 - refused)
}

#' A named list of mutations: the log with another character in the place of each that matches
each_character <- function(lines, pattern, replacement, every = 1) {
  found <- list()
  count <- 0
  for (i in seq_along(lines)) {
    at <- gregexpr(pattern, lines[[i]], perl = TRUE)[[1]]
    for (place in at[at > 0]) {
      count <- count + 1
      if (count %% every > 0) {
        next
      }
      character <- substr(lines[[i]], place, place)
      changed <- lines
      changed[[i]] <- paste0(substr(lines[[i]], 1, place - 1), replacement(character),
                             substring(lines[[i]], place + 1))
      found[[paste0("line ", i, ", character ", place)]] <- changed
    }
  }
  found
}

test_that("no digit can be another", {
  expect_no_other_number(function(lines) {
    each_character(lines, "[0-9]", function(digit) as.character((as.integer(digit) + 1) %% 10))
  }, 1500)
  expect_no_other_number(function(lines) {
    each_character(lines, "[0-9]", function(digit) as.character((as.integer(digit) + 9) %% 10))
  }, 1500)
})

test_that("no letter or sign can be another", {
  expect_no_other_number(function(lines) {
    each_character(lines, "[a-zA-Z_]", function(letter) if (letter == "x") "y" else "x")
  }, 1500)
  expect_no_other_number(function(lines) {
    each_character(lines, "[^a-zA-Z_0-9 ]", function(sign) if (sign == "-") "+" else "-")
  }, 1000)
})

test_that("no character can be missing or too many", {
  expect_no_other_number(function(lines) each_character(lines, ".", function(any) "", every = 2), 2000)
  for (more in c("0", "1", ".", "-", "e", "\"", ",", "}", "\\")) {
    expect_no_other_number(function(lines) {
      each_character(lines, ".", function(any) paste0(any, more), every = 41)
    }, 80, refused = 0.3)
  }
})

test_that("no two lines can change their places", {
  expect_no_other_number(function(lines) {
    found <- list()
    for (i in seq_along(lines)) {
      for (j in seq_len(i - 1)) {
        found[[paste("lines", j, "and", i)]] <- replace(lines, c(i, j), lines[c(j, i)])
      }
    }
    # The order in which sizes were asked for is that of the log, and a swap of equal lines is none.
    Filter(function(changed) !identical(changed, lines), found)
  }, 400, refused = 0.9)
})

test_that("no line can be another's, of this log or of any", {
  all <- unique(unlist(lapply(captured_logs(), function(log) log$lines)))
  foreign <- all[seq(1, length(all), by = 3)]
  expect_no_other_number(function(lines) {
    found <- list()
    for (i in seq_along(lines)) {
      for (other in setdiff(foreign, lines[[i]])) {
        found[[paste("line", i, "becomes", other)]] <- replace(lines, i, other)
      }
    }
    found
  }, 500, refused = 0.9)
})

test_that("nothing can be put between the lines that looks like a result", {
  inner <- c("", "\"x\": 1", "\"done\": true", "\"done\": false", "\"pass\": 1", "\"kernel\": \"copy\"",
             "\"verified\": true", "\"tool\": \"\"", "\"n\": 1000, \"trial\": 1", "\"passes\": 1", "{}",
             "\"point\": \"x\"", "\"end\": \"x\"", "null", "\"done\": true} {\"done\": true")
  garbage <- c("{", paste0("{", inner, "}"))
  expect_no_other_number(function(lines) {
    found <- list()
    for (i in 0:length(lines)) {
      for (text in garbage) {
        found[[paste("after line", i, text)]] <- append(lines, text, i)
      }
    }
    found
  }, 500, refused = 0.99)
})

test_that("lines that run together or are broken are refused", {
  expect_no_other_number(function(lines) {
    together <- lapply(seq_len(length(lines) - 1), function(i) {
      c(lines[seq_len(i - 1)], paste0(lines[[i]], lines[[i + 1]]), lines[-seq_len(i + 1)])
    })
    broken <- lapply(seq_along(lines), function(i) {
      half <- nchar(lines[[i]]) %/% 2
      parts <- substring(lines[[i]], c(1, half + 1), c(half, nchar(lines[[i]])))
      c(lines[seq_len(i - 1)], parts, lines[-seq_len(i)])
    })
    indented <- lapply(seq_along(lines), function(i) replace(lines, i, paste0(" ", lines[[i]])))
    stats::setNames(c(together, broken, indented), seq_len(3 * length(lines) - 1))
  }, 150, refused = 1)
})

test_that("ends of lines of another system, and blanks there, change nothing", {
  for (log in captured_logs()) {
    parse <- parser_of(log$workload)
    for (ending in c("\r", " ", "\t", " \r")) {
      expect_identical(parse(paste0(log$lines, ending), log$parameters), parse(log$lines, log$parameters))
    }
    marked <- replace(log$lines, 1, paste0("\ufeff", log$lines[[1]]))
    expect_error(parse(marked, log$parameters), class = "broken_log")
  }
})

test_that("a log with NUL bytes, or in another encoding, is refused with its name", {
  for (log in captured_logs()) {
    path <- tempfile("log-", fileext = ".log")
    content <- charToRaw(paste0(log$lines, "\n", collapse = ""))
    for (place in unique(round(seq(1, length(content), length.out = 9)))) {
      writeBin(append(content, as.raw(0), place), path)
      expect_error(log_lines(path), paste0(path, ": not a text file: it contains NUL bytes"), fixed = TRUE)
      writeBin(replace(content, place, as.raw(0)), path)
      expect_error(log_lines(path), "NUL", fixed = TRUE)
    }
    writeBin(unlist(iconv(rawToChar(content), "UTF-8", "UTF-16LE", toRaw = TRUE)), path)
    expect_error(log_lines(path), "NUL", fixed = TRUE)
    for (line in some_of(seq_along(log$lines))) {
      text <- replace(log$lines, line, sub("[0-9a-z]", "\xff", log$lines[[line]], useBytes = TRUE))
      writeLines(text, path, useBytes = TRUE)
      found <- tryCatch(parser_of(log$workload)(log_lines(path), log$parameters), error = identity)
      expect_s3_class(found, "broken_log")
    }
  }
})

#' The captured logs of tools that are not ours, with their parameters
#'
#' `free` matches the lines in which such a tool tells something once alone: only there a digit that was
#' changed can give another number (which the digest of the log in its record then betrays).
foreign_logs <- function() {
  redis <- list(connections = list(1, 4, 100), pipelines = list(1, 10), tests = list("set", "get"),
                data_bytes = 50, requests = 10000, keyspace = 2000, warmup_requests = 2000, port = 16379,
                server_cpu = 0, client_cpu = 1)
  netperf <- list(tests = list("TCP_RR", "UDP_RR"), placements = list("apart", "together"),
                  request_bytes = 100, response_bytes = 200, seconds = 1, warmup_seconds = 1, port = 22865,
                  data_port = 22866, server_cpu = 0, client_cpu = 1)
  nuttcp <- list(directions = list("transmit", "receive"), streams = 1, seconds = 1, warmup_seconds = 0.5,
                 rate_mbit = 500, port = 25000, data_ports = list(25101), paced_ports = list(25201),
                 netserver_port = 25865, netserver_data_port = 25866, server_cpu = 0, client_cpu = 1)
  mysql <- list(port = 13306, tests = list("read-only", "read-write"), threads = list(2, 8), rows = 10000,
                buffer_bytes = 67108864, log_bytes = 8388608, seconds = 1, warmup_seconds = 1)
  fio <- list(jobs = list("sequential-fill", "seq-read-1", "seq-read-2", "random-write-16",
                          "random-write-16x8", "random-read-16", "random-read-16x8", "mixed-random-rw-32x8"),
              bytes = 134217728, seconds = 0.5, ramp_seconds = 0.2)
  dvdstore <- list(systems = 1, ports = list(18100, 18200), size = "small", data_seed = 1,
                   threads = list(2, 4), think_seconds = 0, ramp_seconds = 1, warmup_seconds = 1, seconds = 4)
  list(
    # Rate, mean and percentile of a test.
    list(workload = "redis", parameters = redis, free = "^\"(SET|GET)\","),
    list(workload = "netperf", parameters = netperf, free = "^P(50|99)_LATENCY="),
    # A rate of which the length and the bytes are rounded; the host's clocks.
    list(workload = "nuttcp", parameters = nuttcp,
         free = "rate_Mbps=|^megabytes=|^THROUGHPUT=|^\\{\"observed\""),
    list(workload = "mysql", parameters = mysql,
         free = "95th percentile:|total time:|sum:|^\\{\"observed\""),
    # One line, in which the machinery tells its own times.
    list(workload = "startup", parameters = list(way = "restored"), free = "^\\{\"start\""),
    # All of it is told twice.
    list(workload = "dvdstore", parameters = dvdstore, free = "^$"),
    # A long log, of which fewer lines and digits are tried.
    list(workload = "fio", parameters = fio, free = "^$", lines = 8, every = 701)
  )
}

#' Which mutations of a log a parser reads as other numbers than those of the whole log
#'
#' @param log of `foreign_logs`
#' @param mutations list of lines
#' @return TRUE or FALSE for each
gives_other <- function(log, mutations) {
  parse <- parser_of(log$workload)
  right <- parse(fixture(log$workload), log$parameters)
  vapply(mutations, function(lines) {
    found <- tryCatch(parse(lines, log$parameters), broken_log = function(e) NULL,
                      error = function(e) conditionMessage(e))
    !is.null(found) && !identical(found, right)
  }, NA)
}

#' A log with one line missing, doubled, in another place, or followed by something else
with_line_moved <- function(lines, i) {
  list(missing = lines[-i], doubled = append(lines, lines[i], i), cut = lines[seq_len(i - 1)],
       moved = append(lines[-i], lines[i], if (i < length(lines)) i else 0),
       empty = append(lines, "{}", i), unknown = append(lines, "{\"x\": 1}", i),
       done = append(lines, "{\"done\": true}", i))
}

test_that("no line of a foreign tool's log can be missing, doubled, moved or foreign", {
  for (log in foreign_logs()) {
    lines <- fixture(log$workload)
    at <- unique(round(seq(1, length(lines), length.out = c(log$lines, 40)[[1]])))
    mutations <- do.call(c, lapply(some_of(at, 0.3), with_line_moved, lines = lines))
    expect_equal(names(mutations)[gives_other(log, mutations)], character(), info = log$workload)
  }
})

test_that("a digit of a foreign tool's log changes a number only where the tool tells it once", {
  for (log in foreign_logs()) {
    lines <- fixture(log$workload)
    digits <- each_character(lines, "[0-9]", function(digit) as.character((as.integer(digit) + 1) %% 10),
                             c(log$every, 3)[[1]])
    digits <- some_of(digits, 0.5)
    other <- digits[gives_other(log, digits)]
    at <- unique(vapply(other, function(changed) which(changed != lines), 0L))
    expect_equal(grep(log$free, lines[at], value = TRUE, invert = TRUE), character(), info = log$workload)
    expect_gt(length(digits), if (in_long_tests) 5 else 2)
  }
})
