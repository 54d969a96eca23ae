sweep <- c("{\"warmup\": \"a\"}", "noise", "{\"warmed\": \"a\"}", "{\"point\": \"a\", \"n\": 1}", "1 2 3",
           "{\"end\": \"a\"}", "{\"point\": \"b\"}", "{\"end\": \"b\"}", "{\"done\": true}")
kinds <- c("warmup", "warmed", "point", "end", "point", "end", "done")

test_that("the points of a complete sweep are read", {
  points <- read_sweep(sweep, kinds)
  expect_equal(lapply(points, `[[`, "head"), list(list(point = "a", n = 1L), list(point = "b")))
  expect_equal(lapply(points, `[[`, "lines"), list("1 2 3", character()))
})

test_that("a sweep with other objects is refused, and told where", {
  refused <- function(lines, reason, expected = kinds) {
    expect_error(read_sweep(lines, expected), reason, class = "broken_log")
  }
  refused(sweep[-9], "object 7 of the log should be done, and is nothing")
  refused(c(sweep, "{\"done\": true}"), "object 8 of the log should be nothing, and is done")
  refused(sweep[-3], "object 2 of the log should be warmed, and is point")
  refused(sweep[c(1:3, 7:9, 4:6)], "object 5")
  refused(append(sweep, "{\"odd\": 1}", 4), "object 4 of the log should be end, and is odd")
  refused(append(sweep, "{}", 4), "and is an empty object")
  refused(character(), "should be warmup, and is nothing")
  refused(c(sweep[-9], "{\"done\": false}"), "does not end with")
  refused(sub("\"end\": \"b\"", "\"end\": \"a\"", sweep), "does not end in line 8")
})

test_that("settings are read, numbers as numbers", {
  lines <- c("RATE=1.50", "noise", "UNIT=10^6bits/s", "lower=3", "EMPTY=", "NEGATIVE=-3", "TEXT=a=b",
             "NAN=-nan")
  keys <- c("RATE", "UNIT", "EMPTY", "NEGATIVE", "TEXT", "NAN")
  expect_identical(read_settings(lines, keys),
                   list(RATE = 1.5, UNIT = "10^6bits/s", EMPTY = "", NEGATIVE = -3, TEXT = "a=b",
                        NAN = "-nan"))
  for (bad in list(lines[-1], c(lines, "RATE=2"), rev(lines), c(lines, "OTHER=1"), character())) {
    expect_error(read_settings(bad, keys), "one line for each of RATE, UNIT", class = "broken_log")
  }
})

test_that("a client on another processor is refused", {
  expect_silent(require_pinned(list(cpu = 1L), list(client_cpu = 1)))
  nothing <- jsonlite::parse_json("{\"cpu\": null, \"client_cpu\": null}")
  expect_silent(require_pinned(nothing, nothing))
  for (head in list(list(cpu = 0L), list(), nothing["cpu"])) {
    expect_error(require_pinned(head, list(client_cpu = 1)), "processor 1", class = "broken_log")
  }
})
