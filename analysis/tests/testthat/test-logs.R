done <- "{\"done\": true}"

test_that("JSON lines are read and other lines passed over", {
  objects <- read_json_lines(c("warning: something", "{\"a\": 1, \"b\": \"x\"}", "", "  {\"a\": 2}",
                               "{\"c\": true} \r"))
  expect_equal(objects, list(list(a = 1L, b = "x"), list(c = TRUE)))
  expect_equal(read_json_lines(character()), list())
})

test_that("nested objects and braces in texts are read", {
  expect_equal(read_json_lines(c("{\"a\": {\"b\": [1, 2]}}", "{\"t\": \"{x}\"}")),
               list(list(a = list(b = list(1L, 2L))), list(t = "{x}")))
})

test_that("a line that is not one JSON object is an error", {
  for (bad in c("{\"a\": 1", "{\"a\": 1} x", "{\"a\": nan}", "{\"a\": NaN}", "{\"a\": -inf}",
                "{\"a\": 1},{\"b\": 2}", "{", "{\"a\": 01}", "{'a': 1}", "{\"a\": \"\xff\"}")) {
    expect_error(read_json_lines(c("{\"x\": 1}", bad)), "line 2 is not a complete JSON object",
                 class = "broken_log")
  }
})

test_that("lines that are objects only together are an error", {
  expect_error(read_json_lines(c("{\"a\": \"x}", "{\", \"b\": 1}")), class = "broken_log")
  expect_error(read_json_lines(c("{\"a\": [{\"b\": 1}", "{\"c\": 2}]}")), class = "broken_log")
})

test_that("a key that stands twice is an error", {
  expect_error(read_json_lines("{\"a\": 1, \"a\": 2}"), "same key twice", class = "broken_log")
})

test_that("a log ends with done and holds known objects only", {
  log <- read_log(c("{\"tool\": \"t\"}", "{\"pass\": 1}", "{\"pass\": 2}", done),
                  header = "tool", pass = "pass")
  expect_equal(lengths(log), c(header = 1L, pass = 2L))
  expect_error(read_log("{\"tool\": \"t\"}", header = "tool"), "does not end with", class = "broken_log")
  expect_error(read_log(c("{\"tool\": \"t\"}", "{\"done\": false}"), header = "tool"), class = "broken_log")
  expect_error(read_log(c(done, "{\"tool\": \"t\"}"), header = "tool"), class = "broken_log")
  expect_error(read_log(c("{\"tool\": \"t\"}", done, done), header = "tool"), class = "broken_log")
  expect_error(read_log(c("{\"odd\": 1}", done), header = "tool"), "keys odd does not belong",
               class = "broken_log")
  expect_error(read_log(character(), header = "tool"), class = "broken_log")
  expect_error(require_one(log, "pass"), "one pass, and there are 2", class = "broken_log")
})

test_that("numbers must be finite and positive", {
  expect_equal(numbers(list(list(x = 1L), list(x = 2.5)), "x"), c(1, 2.5))
  for (bad in list(list(), list(x = 0), list(x = -1), list(x = "1"), list(x = TRUE), list(x = NULL),
                   list(x = Inf), list(x = list(1, 2)))) {
    expect_error(number(bad, "x"), "x should be a positive number", class = "broken_log")
  }
  expect_equal(number(list(x = 0), "x", zero = TRUE), 0)
  expect_error(number(list(x = -1), "x", zero = TRUE), class = "broken_log")
})

test_that("numbers are told by their own names where each has one", {
  expect_equal(checked_numbers(list(a = 1L, b = 2), c("a", "b")), c(1, 2))
  expect_error(checked_numbers(list(a = 1, b = "2", c = 0), c("a", "b", "c")),
               "b should be a positive number, and is \"2\"", class = "broken_log")
  expect_error(checked_numbers(list(a = 1, b = NULL), c("a", "b")), "b should be .* is missing",
               class = "broken_log")
})

test_that("tables of what was measured are put below one another as they are", {
  one <- measured(c("rate", "time"), c("1/s", "s"), c(2, 3), "threads=1")
  other <- measured("rate", "1/s", 5)
  expect_identical(one, data.frame(metric = c("rate", "time"), unit = c("1/s", "s"), value = c(2, 3),
                                   factors = "threads=1"))
  expect_identical(all_measured(list(one, NULL, measured(character(), character(), numeric(), "x"), other)),
                   rbind(one, other))
})

test_that("what was asked is compared with what was reported", {
  expect_silent(require_asked(list(threads = 2L), list(threads = 2), "threads"))
  expect_error(require_asked(list(threads = 1), list(threads = 2), "threads"),
               "threads should be 2, and the log says 1", class = "broken_log")
  expect_error(require_asked(list(threads = 1), list(), "threads"), "record does not say",
               class = "broken_log")
})

test_that("numbers agree within their rounding and no further", {
  expect_silent(require_close("rate", c(1, 2), c(1.000009, 2.00001)))
  expect_error(require_close("rate", c(1, 2), c(1, 2.0001)), "rate should be 2.0001", class = "broken_log")
  expect_error(require_close("rate", 1, NaN), class = "broken_log")
})

test_that("things are counted", {
  passes <- function(...) lapply(c(...), function(i) list(pass = i))
  expect_silent(require_counted(passes(1, 2, 3), "pass", 3))
  for (bad in list(passes(1, 2), passes(1, 3, 2), passes(1, 2, 2), passes(2, 3, 4), list())) {
    expect_error(require_counted(bad, "pass", 3), class = "broken_log")
  }
  expect_error(require_counted(passes(1, 2), "pass", 2.5), class = "broken_log")
})

test_that("whole numbers are printed without exponents", {
  expect_equal(plain(c(100000, 0.25, 45000, 1e6 + 0.5)), c("100000", "0.25", "45000", "1000000.5"))
})
