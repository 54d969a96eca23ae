test_that("options are read", {
  options <- parse_options(c("--plan", "p.json", "--partial", "--out", "o.csv"), c("plan", "out"), "seed",
                           "partial")
  expect_equal(options[c("plan", "out", "partial", "rest")],
               list(plan = "p.json", out = "o.csv", partial = TRUE, rest = character()))
  expect_false(parse_options(character(), switches = "partial")$partial)
  expect_equal(parse_options(c("--out", "o", "a.csv", "b.csv"), "out", rest = "tables")$rest,
               c("a.csv", "b.csv"))
})

test_that("a mistake in the options is an error that names it", {
  expect_error(parse_options(c("--plam", "p"), "plan"), "unknown option --plam", fixed = TRUE)
  expect_error(parse_options(character(), c("plan", "out")), "missing: --plan, --out", fixed = TRUE)
  expect_error(parse_options("--plan", "plan"), "--plan needs a value", fixed = TRUE)
  expect_error(parse_options(c("--plan", "--out", "o"), c("plan", "out")), "--plan needs a value",
               fixed = TRUE)
  expect_error(parse_options(c("--plan", "a", "--plan", "b"), "plan"), "given twice")
  expect_error(parse_options("stray", "plan"), "missing: --plan", fixed = TRUE)
  expect_error(parse_options("stray"), "unexpected argument stray")
})

test_that("a script ends with one clear line and status 1", {
  for (script in c("tables.R", "figures.R", "report.R")) {
    run <- run_r(script, "--nonsense", "1")
    expect_equal(run$status, 1L)
    expect_equal(run$output, paste0(script, ": unknown option --nonsense"))
  }
  run <- run_r("tables.R", "--plan", "nowhere/plan.json")
  expect_equal(run, list(status = 1L, output = "tables.R: nowhere/plan.json: no such file"))
})

test_that("what is written as CSV comes back", {
  columns <- c(text = "character", whole = "integer", number = "numeric")
  table <- data.frame(text = c("plain", "a,b \"c\"", "two\nlines", "", "\u00e9\u2212"),
                      whole = c(1, 2147483648, 3, NA, 100000),
                      number = c(1 / 3, 1e-12, 123456789.125, NA, 1e15))
  path <- file.path(tempfile(), "deep", "table.csv")
  write_csv(table, path)
  expect_equal(read_csv(path, columns), table, tolerance = 1e-14)
  expect_match(readLines(path)[[2]], "0.333333333333333", fixed = TRUE)
  write_csv(table[0, ], path)
  expect_equal(nrow(read_csv(path, columns)), 0)
  expect_equal(list.files(dirname(path), all.files = TRUE, no.. = TRUE), "table.csv")
})

test_that("a broken CSV file is an error that names it", {
  path <- tempfile(fileext = ".csv")
  columns <- c(name = "character", count = "integer", value = "numeric")
  bad <- function(...) writeLines(c(...), path)
  bad("name,value", "a,1")
  expect_error(read_csv(path, columns), "its columns are name, value, not name, count, value", fixed = TRUE)
  bad("name,count,value", "a,1,fast")
  expect_error(read_csv(path, columns), "line 2, value: 'fast' is not a number", fixed = TRUE)
  bad("name,count,value", "a,1.5,2")
  expect_error(read_csv(path, columns), "without a fraction")
  bad("name,count,value", "a,1,2,3")
  expect_error(read_csv(path, columns), basename(path))
  bad("name,count,value", "a,1")
  expect_error(read_csv(path, columns), basename(path))
  bad(character())
  expect_error(read_csv(path, columns), basename(path))
  writeBin(as.raw(c(0x61, 0, 0x62)), path)
  expect_error(read_csv(path, columns), "NUL bytes")
  expect_error(read_csv(tempfile("none"), columns), "no such file")
})

test_that("a file is written whole or stays as it was", {
  path <- tempfile(fileext = ".csv")
  writeLines("old", path)
  expect_error(write_whole(path, function(temporary) {
    writeLines("half", temporary)
    stop("disk full")
  }), "can't be written (disk full)", fixed = TRUE)
  expect_equal(readLines(path), "old")
  expect_equal(list.files(dirname(path), paste0("^[.]", basename(path)), all.files = TRUE), character())
  expect_error(write_whole("/proc/none/file.csv", function(temporary) writeLines("x", temporary)),
               "can't be written")
})

test_that("a broken plan is an error that names it", {
  path <- file.path(tempfile("plan-"), "plan.json")
  dir.create(dirname(path))
  writeLines("{\"format\": 1, ", path)
  expect_error(read_plan(path), "plan.json: not valid JSON")
  writeLines("{\"format\": 1}", path)
  expect_error(read_plan(path), "not a plan of format 3")
  writeLines("{\"format\": 3, \"environments\": {}}", path)
  expect_error(read_plan(path), "it holds no workloads")
  plan <- read_plan(make_results(c("native", "docker"), "pxz", 2))
  expect_error(planned_workload(plan, "stream"), "there is no workload stream; there are pxz")
  cells <- read_csv(file.path(plan$results, "plan.csv"), c(position = "integer", block = "integer",
                                                           environment = "character", workload = "character",
                                                           repetition = "integer"))
  write_csv(rbind(cells, cells[1, ]), file.path(plan$results, "plan.csv"))
  expect_error(read_cells(plan), "a cell stands there twice")
  cells$environment[[2]] <- "moon"
  write_csv(cells, file.path(plan$results, "plan.csv"))
  expect_error(read_cells(plan), "moon is not in")
})

test_that("texts with numbers have a natural order", {
  x <- c("n=12000", "n=500", "n=1000", "n=500", "", "a=2;b=10", "a=2;b=9", "n=100000")
  expect_equal(order(natural_rank(x)), c(5, 7, 6, 2, 4, 3, 1, 8))
})
