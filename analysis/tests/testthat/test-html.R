#' Whether a text is well-formed XML but for the tags that HTML leaves open
tags_of <- function(html) {
  tags <- regmatches(html, gregexpr("</?[a-z0-9]+", html))[[1]]
  tags[!sub("</?", "", tags) %in% c("img", "meta", "br", "link", "hr")]
}

#' Expects that every tag is closed where it was opened
expect_balanced <- function(html) {
  html <- gsub("<(script|style)>.*?</\\1>", "", gsub("<!--.*?-->|<!DOCTYPE html>", "", html), perl = TRUE)
  open <- character()
  for (tag in tags_of(html)) {
    if (startsWith(tag, "</")) {
      if (!identical(sub("</", "", tag), utils::tail(open, 1))) {
        break
      }
      open <- open[-length(open)]
    } else {
      open <- c(open, sub("<", "", tag))
    }
  }
  expect_equal(open, character())
}

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
  expect_match(html, "class=\"sortable\"")
  expect_match(html, "colspan=\"3\" scope=\"colgroup\">Level")
  expect_match(html, "<span class=\"repeat\">STREAM copy (GB/s)</span>", fixed = TRUE)
  expect_match(html, "<a href=\"#runs-stream-copy-docker\">10.00</a>", fixed = TRUE)
  expect_match(html, "<p class=\"note\"><sup>a</sup> A run has", fixed = TRUE)
  expect_no_match(html, paste0("<a[^>]*>", EM_DASH))
  rows <- regmatches(html, gregexpr("<tr[^>]*><td.*?</tr>", html, perl = TRUE))[[1]]
  expect_equal(lengths(gregexpr("<td", rows[grepl("Docker|Native", rows)])), rep(ncol(table$cells), 4))
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

test_that("the page holds what the PDF does, needs no network, and leads from numbers to logs", {
  skip_without_latex()
  folder <- tempfile("project-")
  plan <- make_paper_results(labels = c("Native", "Docker & 100%_#$<b>", "VM, \u4e2d~^\\"),
                             results = file.path(folder, "results"))
  out <- file.path(folder, "paper", "report.html")
  page <- in_folder(folder, {
    done <- run_r("report.R", "--plan", "results/plan.json", "--out", "paper/report.html")
    expect_equal(done$status, 0)
    expect_no_match(done$output, "arning")
    read_text(out)
  })
  expect_balanced(page)
  expect_match(page, "Docker &amp; 100%_#$&lt;b&gt;", fixed = TRUE)
  expect_match(page, "Published claims that could not be tested here", fixed = TRUE)
  expect_no_match(page, "data-of=\"(table|figure)-[a-z]*\"></span>")
  expect_no_match(page, "(src|href)=\"(https?:)?//[^\"]*[.](js|css|png)\"|url\\(|@import|<link")
  links <- regmatches(page, gregexpr("(?<=href=\")[^\"]+", page, perl = TRUE))[[1]]
  inner <- unique(sub("#", "", links[startsWith(links, "#")]))
  ids <- regmatches(page, gregexpr("(?<= id=\")[^\"]+", page, perl = TRUE))[[1]]
  expect_equal(setdiff(inner, ids), character())
  expect_equal(anyDuplicated(ids), 0)
  files <- unique(links[!startsWith(links, "#") & !startsWith(links, "http")])
  expect_true(all(file.exists(file.path(folder, "paper", files))))
  logs <- list.files(file.path(folder, "results", "raw"), "[.]log$", recursive = TRUE)
  expect_setequal(sub("^../results/raw/", "", grep("[.]log$", files, value = TRUE)), logs)
  again <- file.path(folder, "paper", "again.html")
  in_folder(folder, run_r("report.R", "--plan", "results/plan.json", "--out", "paper/again.html"))
  expect_equal(unname(tools::md5sum(again)), unname(tools::md5sum(out)))
  unlink(file.path(folder, "results", "figures", "ratios.png"))
  done <- run_r("report.R", "--plan", plan, "--out", out)
  expect_equal(done$status, 1)
  expect_match(done$output[length(done$output)], "ratios.png: no such figure")
  expect_equal(read_text(out), page)
})

test_that("nothing measured is a page too", {
  skip_without_latex()
  plan <- make_results(repetitions = 1)
  results <- dirname(plan)
  unlink(file.path(results, "raw"), recursive = TRUE)
  claims <- read_claims(file.path(project, "published", "claims.json"))
  write_csv(test_claims(claims, empty_table(TIDY_COLUMNS), read_plan(plan), NA),
            file.path(results, "claims.csv"))
  write_csv(footprint_table(list(), read_plan(plan)), file.path(results, "footprint.csv"))
  out <- file.path(results, "report.html")
  expect_equal(run_r("report.R", "--plan", plan, "--out", out, "--partial")$status, 0)
  expect_balanced(read_text(out))
  expect_match(read_text(out), "Nothing was measured", fixed = TRUE)
  page <- xml2::read_html(out)
  inner <- sub("^#", "", xml2::xml_attr(xml2::xml_find_all(page, "//a[starts-with(@href, '#')]"), "href"))
  expect_equal(setdiff(inner, xml2::xml_attr(xml2::xml_find_all(page, "//*[@id]"), "id")), character())
})
