# Which runs were disturbed, in the words of the paper and on its page.

limits <- list(load = NULL, steal = 0.02, busy = 0.05, swap = 2^20, temperature = 90, throttled = 0)

#' A record that says whether it was quiet
quiet_record <- function(environment, repetition = 1, flags = list(), waited = 0, thresholds = limits,
                         before = list(others_share = 0.01, swapped_bytes = 0, throttled = "not available",
                                       temperature_c = "not available", steal_share = 0, load1 = 0.5),
                         during = list(others_share = 0.02, swapped_bytes = 0, steal_share = 0)) {
  record <- small_record(environment, repetition)
  record$observed$host$before <- before
  record$observed$host$during <- during
  record$quiet <- list(action = "flag", flags = flags, waited_seconds = waited, thresholds = thresholds)
  record
}

#' A flag as of a record
flag <- function(what, value, when = "during", threshold = limits[[what]], by = NULL) {
  entries <- lapply(by, function(name) list(name = name, share = value / length(by)))
  c(list(what = what, when = when, value = value, threshold = threshold),
    if (what == "busy") list(by = entries))
}

#' The sentences about records
said <- function(...) {
  text <- quiet_text(small_evidence(records = list(...)))
  if (!is.null(text)) read_aloud(text)
}

rule <- paste("A run is flagged where, shortly before or while it was measured, other processes used more",
              "than 5.0 % of a CPU, a hypervisor took more than 2.0 % of the CPU time or swapping moved more",
              "than 1.049 MB.")
unread <- "Not available on this host, and so not judged: temperature and throttling."

test_that("runs that were not judged are not spoken of", {
  expect_null(said(small_record("native")))
  expect_null(quiet_threat(small_evidence(records = list(small_record("native")))))
  expect_equal(html_flags(small_record("native")), "")
})

test_that("a quiet machine is told with what was judged, and what could not be", {
  expect_equal(said(quiet_record("native"), quiet_record("docker")),
               paste(rule, "None of 2 runs was flagged.", unread))
  everything <- list(others_share = 0, swapped_bytes = 0, throttled = 0, temperature_c = 50, steal_share = 0,
                     load1 = 1)
  thresholds <- updated(limits, load = 4)
  expect_equal(
    said(quiet_record("native", thresholds = thresholds, before = everything)),
    paste("A run is flagged where, shortly before or while it was measured, other processes used more than",
          "5.0 % of a CPU, a hypervisor took more than 2.0 % of the CPU time, swapping moved more than",
          "1.049 MB, the temperature was above 90 \u00b0C, the processor was throttled more often than 0",
          "times or the load average over one minute was above 4.00 before it. None of 1 run was flagged.")
  )
})

test_that("flagged runs are counted by their reason, with the worst of each", {
  records <- list(
    quiet_record("native"),
    quiet_record("docker", 1, list(flag("busy", 0.31, "before", by = "cc1"), flag("busy", 0.2, by = "cc1"))),
    quiet_record("docker", 2, list(flag("busy", 0.855, by = c("cc1", "make")), flag("steal", 0.04)))
  )
  expect_equal(
    do.call(said, records),
    paste(rule, "Of 3 runs, 2 were flagged: other processes in 2 (at most 85.5 % of a CPU, STREAM in Docker,",
          "repetition 2); CPU steal in 1 (at most 4.0 % of the CPU time, STREAM in Docker, repetition 2).",
          "Flagged runs are kept like all others.", unread)
  )
  expect_match(do.call(said, records[1:2]), "Of 2 runs, 1 was flagged: other processes in 1 (at most 31.0 %",
               fixed = TRUE)
  threat <- read_aloud(threats(small_evidence(records = records))[["Noise"]])
  expect_match(threat, "2 runs of 3 met more than the declared thresholds of other processes and CPU steal;",
               fixed = TRUE)
})

test_that("flags lead to the runs that they are of", {
  record <- quiet_record("docker", 2, list(flag("busy", 0.5, by = "cc1")))
  text <- quiet_text(small_evidence(records = list(quiet_record("native"), record)))
  expect_match(text, linked(paste(percent(0.5), "of a CPU"), run_id(record)), fixed = TRUE)
})

test_that("runs that waited are told", {
  expect_match(said(quiet_record("native"), quiet_record("docker", waited = 40.5)),
               "None of 2 runs was flagged. 1 run waited for the machine to be quiet, for 40.5 s at most.",
               fixed = TRUE)
})

test_that("thresholds that differ between runs, and those that were switched off, are not told as one", {
  records <- list(quiet_record("native"), quiet_record("docker", thresholds = updated(limits, busy = 0.5)))
  expect_false(grepl("other processes", do.call(said, records)))
  expect_equal(said(quiet_record("native", thresholds = list(load = NULL))), "None of 1 run was flagged.")
})

test_that("a flagged run is marked on the page, and what is in a name is no markup", {
  record <- quiet_record("docker", 2, list(flag("busy", 0.5, "before", by = "<b>x"), flag("throttled", 3)))
  line <- run_line(record, small_evidence(records = list(record)), "..")
  marked <- paste("record</a> <strong class=\"flag\">flagged: other processes: 50.0 % of a CPU before the",
                  "run (&lt;b&gt;x); throttling: 3 times during the run</strong>")
  expect_match(read_aloud(line), marked, fixed = TRUE)
  expect_false(grepl("flagged", run_line(quiet_record("native"), small_evidence(), "..")))
})

test_that("the table of conditions tells of other processes, swapping and throttling", {
  busy <- list(others_share = 0.12, swapped_bytes = 5e6)
  records <- list(quiet_record("native"), quiet_record("docker", during = busy))
  table <- table_of_conditions(small_evidence(records = records))
  row <- function(head) read_aloud(unlist(table$cells[table$cells[[1]] == head, -1], use.names = FALSE))
  expect_equal(row("Other processes (% of a CPU)"), c("1.00", "7.0, 2.0 to 12.0", ""))
  expect_equal(row("Swapped in or out (MB)"), c("0.00", "2.50, 0.00 to 5.00", ""))
  expect_equal(row("Throttled (times)"), c("not available", "", ""))
  expect_length(row("Frequency (MHz)"), 0)
})
