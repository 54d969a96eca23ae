test_that("a page whose tags do not match is noticed", {
  expect_balanced("<p><a href=\"x\">b</a><br></p>")
  expect_failure(expect_balanced("<p><a>b</p></a>"))
  expect_failure(expect_balanced("<p><b>b</b>"))
})

test_that("nothing in a text is markup", {
  expect_equal(html_escape("<b a='1'>\"&amp;\n"), "&lt;b a=&#39;1&#39;&gt;&quot;&amp;amp; ")
})

test_that("a table is whole: headings, groups, repeats, notes, and links to the runs", {
  evidence <- small_evidence(list(
    summary_row("native", flags = "outlier"), summary_row("docker", ratio = 0.95, low = 0.93, high = 0.97),
    summary_row("native", metric = "scale"), summary_row("docker", metric = "scale")
  ))
  table <- table_of_intervals(evidence)
  html <- html_table(table)
  expect_balanced(html)
  expect_match(html, "class=\"sortable")
  expect_match(html, "colspan=\"3\" scope=\"colgroup\">Level")
  expect_match(html, "<span class=\"repeat\">STREAM copy (GB/s)</span>", fixed = TRUE)
  expect_match(html, "<a href=\"#runs-stream-copy-docker\">10.00</a>", fixed = TRUE)
  expect_match(html, "<p class=\"note\"><sup>a</sup> A run has", fixed = TRUE)
  expect_no_match(html, paste0("<a[^>]*>", EM_DASH))
  rows <- regmatches(html, gregexpr("<tr[^>]*><t[dh] scope=.row.*?</tr>", html, perl = TRUE))[[1]]
  expect_equal(lengths(gregexpr("<t[dh]", rows[grepl("Docker|Native", rows)])), rep(ncol(table$cells), 4))
})

test_that("every number of the tables of results leads to its runs", {
  rows <- list(summary_row("native"), summary_row("docker", ratio = 0.95, low = 0.93, high = 0.97))
  evidence <- small_evidence(rows)
  for (table in list(table_as_printed(evidence), table_of_intervals(evidence))) {
    cells <- as.matrix(table$cells)
    own <- grepl("[0-9]", cells) & col(cells) > 2 & !table$columns$align[col(cells)] %in% "wrap"
    own[, table$columns$head %in% c("Environment", "Reading", "Flags")] <- FALSE
    expect_true(all(table$sources[own] != ""))
    expect_true(all(table$sources[own] %in% source_id(evidence$comparisons)))
  }
  many <- small_evidence(list(summary_row("native", factors = "n=1"), summary_row("native", factors = "n=10"),
                              summary_row("docker", factors = "n=1"),
                              summary_row("docker", factors = "n=10")))
  expect_equal(anyDuplicated(source_id(many$comparisons)), 0)
})

test_that("tables and figures are numbered in their order, wherever they are named", {
  see <- function(id) sprintf("<span class=\"number\" data-of=\"%s\"></span>", id)
  page <- paste(see("table-b"), "<figure class=\"table\" id=\"table-a\">", see("table-a"),
                "<figure class=\"drawing\" id=\"figure-x\">", see("figure-x"),
                "<figure class=\"table\" id=\"table-b\">", see("table-b"))
  expect_equal(gsub("<[^>]*> ?", "", number_floats(page)), "2 1 1 2")
  expect_error(number_floats(see("table-c")), "table-c")
})

test_that("paths are found from the page", {
  folder <- normalizePath(tempdir())
  at <- function(...) file.path(folder, ...)
  expect_equal(relative_path(at("paper", "report.html"), at("results")), "../results")
  expect_equal(relative_path(at("a", "b", "report.html"), at("c", "d")), "../../c/d")
  expect_equal(relative_path(at("report.html"), at("results")), "results")
})
