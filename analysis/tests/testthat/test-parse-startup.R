start <- function(...) {
  line <- list(start = "created", up_seconds = 0.5, boot_seconds = NULL, restore_seconds = NULL,
               command_seconds = 0.25, memory_bytes = 3e6)
  as.character(jsonlite::toJSON(updated(line, ...), auto_unbox = TRUE, null = "null", digits = NA))
}

test_that("a captured start is read", {
  expect_equal(parser_of("startup")(fixture("startup"), list(way = "restored")),
               data.frame(metric = c("first_command", "memory"), unit = c("s", "MB"),
                          value = c(0.612 + 0.091318, 12.20608), factors = "start=created"))
})

test_that("how a machine started is a factor", {
  parse <- parser_of("startup")
  expect_equal(parse(start(start = "boot"), list(way = "booted"))$factors[[1]], "start=booted")
  expect_equal(parse(start(start = "snapshot"), list(way = "restored"))$factors[[1]], "start=restored")
  # A machine without a snapshot boots whatever was asked for.
  expect_equal(parse(start(start = "boot"), list(way = "restored"))$factors[[1]], "start=booted")
})

test_that("what holds no memory of its own has none", {
  line <- sub("\"memory_bytes\":3000000", "\"memory_bytes\":null", start(), fixed = TRUE)
  expect_equal(parser_of("startup")(line, list(way = "booted")),
               data.frame(metric = "first_command", unit = "s", value = 0.75, factors = "start=created"))
})

test_that("anything else is no number", {
  parse <- function(...) parser_of("startup")(c(...), list(way = "booted"))
  expect_error(parse(start(), start()), "there should be one start", class = "broken_log")
  expect_error(parse("nothing"), "there should be one start", class = "broken_log")
  expect_error(parse(start(start = "moon")), "does not say how", class = "broken_log")
  expect_error(parse(start(start = "snapshot")), "it was restored, not booted", class = "broken_log")
  expect_error(parse(start(up_seconds = -1)), "up_seconds", class = "broken_log")
  expect_error(parse(start(command_seconds = "1")), "command_seconds", class = "broken_log")
  expect_error(parse(start(memory_bytes = 0)), "memory_bytes", class = "broken_log")
  expect_error(parse(substr(start(), 1, 60)), "not a complete JSON object", class = "broken_log")
})
