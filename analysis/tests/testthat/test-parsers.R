two_sizes <- updated(asked_for$linpack, sizes = list(500, 1500), min_trials = 2, min_seconds = 0.05)

#' A parser's error for a changed log or changed parameters
fails <- function(workload, lines, reason, parameters = asked_for[[workload]]) {
  expect_error(parser_of(workload)(lines, parameters), reason, class = "broken_log")
}

test_that("captured logs are read", {
  expect_equal(parser_of("stream")(fixture("stream"), asked_for$stream),
               data.frame(metric = c("copy", "scale", "add", "triad"), unit = "GB/s",
                          value = c(31.1398, 30.2523, 34.4096, 33.0236), factors = ""))
  expect_equal(parser_of("linpack")(fixture("linpack"), asked_for$linpack),
               data.frame(metric = "gflops", unit = "GFLOPS", value = 42.54, factors = "order=1000"))
  expect_equal(parser_of("linpack")(fixture("linpack", "two-sizes"), two_sizes),
               data.frame(metric = "gflops", unit = "GFLOPS", value = c(35.6222, 54.8443),
                          factors = c("order=500", "order=1500")))
  expect_equal(parser_of("randomaccess")(fixture("randomaccess"), asked_for$randomaccess),
               data.frame(metric = "gups", unit = "GUPS", value = 0.338893, factors = ""))
  expect_equal(parser_of("pxz")(fixture("pxz"), asked_for$pxz),
               data.frame(metric = "throughput", unit = "MB/s", value = 25165824 / 1526668, factors = ""))
})

test_that("what tools print beside the results is passed over", {
  for (workload in names(asked_for)) {
    lines <- fixture(workload)
    noisy <- c("warning: clock skew", lines[1], "", "[1] {not json", lines[-1], "done.")
    expect_equal(parser_of(workload)(noisy, asked_for[[workload]]),
                 parser_of(workload)(lines, asked_for[[workload]]))
  }
})

test_that("metrics and units are those of workload.yaml", {
  for (workload in names(asked_for)) {
    yaml <- readLines(file.path(project, "workloads", workload, "workload.yaml"))
    values <- parser_of(workload)(fixture(workload), asked_for[[workload]])
    for (i in seq_len(nrow(values))) {
      expect_true(any(startsWith(yaml, paste0("  ", values$metric[i], ": {")) &
                        grepl(paste0("unit: ", values$unit[i], ","), yaml, fixed = TRUE)))
    }
  }
})

test_that("no prefix of a log yields a number", {
  cases <- list(list("stream", "smoke"), list("linpack", "smoke"), list("linpack", "two-sizes"),
                list("randomaccess", "smoke"), list("pxz", "smoke"))
  for (case in cases) {
    parse <- parser_of(case[[1]])
    parameters <- if (case[[2]] == "two-sizes") two_sizes else asked_for[[case[[1]]]]
    text <- paste0(fixture(case[[1]], case[[2]]), "\n", collapse = "")
    whole <- nchar(text) - 1
    parse_prefix <- function(length) {
      lines <- strsplit(substr(text, 1, length), "\n", fixed = TRUE)[[1]]
      tryCatch(parse(lines, parameters), error = identity)
    }
    lengths <- some_of(seq_len(whole - 1))
    refused <- vapply(lengths, function(length) inherits(parse_prefix(length), "broken_log"), NA)
    expect_true(all(refused))
    expect_s3_class(parse_prefix(whole), "data.frame")
  }
})

test_that("a log that lacks any of its lines, or holds one twice, is refused", {
  for (workload in names(asked_for)) {
    lines <- fixture(workload)
    for (i in seq_along(lines)) {
      fails(workload, lines[-i], "")
      fails(workload, append(lines, lines[i], i), "")
    }
  }
})

test_that("an empty log and garbage are refused", {
  for (workload in names(asked_for)) {
    fails(workload, character(), "does not end with")
    fails(workload, "", "does not end with")
    fails(workload, c("\x7fELF\x02\x01", "{\x80\xff", "\xfe"), "not a complete JSON object")
  }
})

test_that("a log of another workload is refused", {
  for (workload in names(asked_for)) {
    for (other in setdiff(names(asked_for), workload)) {
      fails(workload, fixture(other), "", c(asked_for[[workload]], asked_for[[other]]))
    }
  }
})

test_that("a number that is changed in any line is noticed", {
  # Numbers that nothing else in the log depends on, and that no result does.
  free <- "mean_seconds|worst_seconds|error|limit|huge_page_bytes|residual|wrong_words|wrong_share"
  for (workload in names(asked_for)) {
    lines <- fixture(workload)
    keep <- "\"([a-z_0-9]+)\": (-?[0-9.e+-]+)"
    for (i in some_of(grep(keep, lines), 0.3)) {
      at <- gregexpr(keep, lines[i])
      found <- regmatches(lines[i], at)[[1]]
      for (k in which(!grepl(free, found))) {
        key <- sub(keep, "\\1", found[k])
        off <- as.numeric(sub(keep, "\\2", found[k])) * 1.01
        for (value in list(off, 0, -1, "nan", "1e999", "\"1\"", "null")) {
          hits <- found
          hits[k] <- paste0("\"", key, "\": ", value)
          changed <- lines
          regmatches(changed[i], at) <- list(hits)
          fails(workload, changed, "")
        }
      }
    }
  }
})

test_that("a run that did not do what it was asked to is refused", {
  differs <- function(workload, reason, ...) {
    fails(workload, fixture(workload), reason, updated(asked_for[[workload]], ...))
  }
  differs("stream", "threads should be 4, and the log says 2", threads = 4)
  differs("stream", "elements", elements = 8e7)
  differs("stream", "trials", trials = 20)
  differs("linpack", "threads", threads = 1)
  differs("linpack", "sizes should be 2000, and the log holds 1000", sizes = list(2000))
  differs("linpack", "sizes", sizes = list(1000, 2000))
  differs("linpack", "less than was asked", min_trials = 14)
  differs("linpack", "less than was asked", min_seconds = 1)
  differs("randomaccess", "threads", threads = 3)
  differs("randomaccess", "log2", log2 = 25)
  differs("randomaccess", "updates_per_pass", updates_per_word = 8)
  differs("randomaccess", "less than was asked", min_seconds = 2)
  differs("pxz", "threads", threads = 1)
  differs("pxz", "level", level = 6)
  differs("pxz", "bytes", bytes = 1e9)
  differs("pxz", "less than was asked", min_seconds = 2)
  differs("pxz", "corpus is not the one", corpus = "/data/enwik9")
  for (workload in names(asked_for)) {
    fails(workload, fixture(workload), "the record does not say|sizes should be", list())
  }
})

test_that("a result that was not verified is refused", {
  for (workload in c("stream", "linpack", "randomaccess")) {
    fails(workload, sub("\"verified\": true", "\"verified\": false", fixture(workload)), "not verified")
  }
  fails("pxz", sub("\"round_trip\": true", "\"round_trip\": false", fixture("pxz")), "does not come back")
  fails("stream", sub("\"error\": 0", "\"error\": 1e-12", fixture("stream")), "above its limit")
  fails("linpack", sub("\"residual\": 0.001838", "\"residual\": 17", fixture("linpack")), "above its limit")
  fails("linpack", sub("\"residual\": 0.001838", "\"residual\": 0.5", fixture("linpack")), "worst_residual")
  fails("randomaccess", sub("\"wrong_share\": 1.7e-06", "\"wrong_share\": 0.02", fixture("randomaccess")),
        "too many words")
})

test_that("lines in another order and swapped numbers are refused", {
  stream <- fixture("stream")
  fails("stream", stream[c(1, 3, 2, 4:7)], "each of the kernels")
  fails("stream", c(stream[1:2], sub("scale", "copy", stream[3]), stream[4:7]), "each of the kernels")
  swapped <- sub("31.1398", "x", stream)
  swapped <- sub("x", "30.2523", sub("30.2523", "31.1398", swapped))
  fails("stream", swapped, "gbps")
  fails("stream", sub("0.0117308", "0.0107308", stream), "not in order")
  linpack <- fixture("linpack", "two-sizes")
  fails("linpack", linpack[c(1, 3, 2, 4:length(linpack))], "each trial", two_sizes)
  stray <- sub("\"n\": 1500, \"trial\": 2", "\"n\": 1501, \"trial\": 2", linpack)
  fails("linpack", stray, "no size", two_sizes)
  fails("randomaccess", fixture("randomaccess")[c(1, 3, 2, 4:9)], "each pass")
})

test_that("a corpus that was given is accepted", {
  lines <- sub("\"gcide\", \"bytes\": 25165824", "\"given/data/enwik9\", \"bytes\": 25165824", fixture("pxz"))
  parameters <- updated(asked_for$pxz, corpus = "/data/enwik9", bytes = 1e9)
  expect_equal(parser_of("pxz")(lines, parameters)$value, 25165824 / 1526668)
})

test_that("matrices of 100,000 keep their size in the factors", {
  lines <- fixture("linpack")[c(1, 2, 15, 16)]
  rate <- 1e-10 * (2 / 3 * 1e15 + 2e10)
  lines[2] <- sprintf(paste("{\"n\": 100000, \"trial\": 1, \"gflops\": %.6g, \"seconds\": 10,",
                            "\"residual\": 0.01}"), rate)
  lines[3] <- sprintf(paste("{\"n\": 100000, \"trials\": 1, \"gflops_of_all\": %.6g, \"seconds\": 10,",
                            "\"verified\": true, \"worst_residual\": 0.01, \"limit\": 16}"), rate)
  parameters <- updated(asked_for$linpack, sizes = list(100000), min_trials = 1)
  expect_equal(parser_of("linpack")(lines, parameters)$factors, "order=100000")
})
