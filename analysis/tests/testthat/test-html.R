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
  expect_match(html, "<th scope=\"row\"></th>", fixed = TRUE)
  expect_match(html, paste0("<tr data-links>[^\n]*<a href=\"#runs-stream-copy-docker\">[0-9]+</a></td>",
                            "<td>10.00</td>"))
  expect_match(html, "<p class=\"note\"><sup>a</sup> A run has", fixed = TRUE)
  expect_no_match(html, paste0("<a[^>]*>", EM_DASH))
  rows <- regmatches(html, gregexpr("<tr[^>]*><t[dh] scope=.row.*?</tr>", html, perl = TRUE))[[1]]
  expect_equal(lengths(gregexpr("<t[dh]", rows[grepl("Docker|Native", rows)])), rep(ncol(table$cells), 4))
})

test_that("columns get their styles by their numbers, those that a page has and each once", {
  columns <- do.call(rbind, list(column("a"), column("b"), column("c", "decimal", span = 2)))
  expect_equal(column_classes(columns), c("left-2", "close-4"))
  page <- "/*columns*/<table class=\"plain left-2 close-4\"><table class=\"sortable left-2\">left-3"
  expect_equal(strsplit(sub("<.*", "", style_columns(page)), "\n")[[1]],
               c(".left-2 td:nth-child(2) { text-align: left; white-space: normal; }",
                 ".close-4 td:nth-child(4) { padding-left: 0; }"))
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

test_that("a link is written once for neighbours, unless a number among them is meant to have none", {
  expect_equal(shares_links(c("Docker", "3", "1.2", "[1, 2]", "slower"), c("", "a", "a", "a", "")),
               c(FALSE, FALSE, TRUE, TRUE, FALSE))
  expect_equal(shares_links(c("x", "3", "4", "5"), c("", "a", "b", "b")), c(FALSE, FALSE, FALSE, TRUE))
  expect_false(any(shares_links(c("3", "1.2", "2 of 5"), c("a", "a", ""))))
  expect_equal(shares_links(c("2 of 5", "3", "1.2"), c("", "a", "a")), c(FALSE, FALSE, TRUE))
  expect_false(any(shares_links(c("3", "equal"), c("a", "a"))))
  expect_false(any(shares_links(c("a", "b"), c("", ""))))
})

test_that("ends are left out only where a browser knows them", {
  expect_equal(without_ends("<tr><th>a</th><td>b</td></tr>\n<tr><td>c</td></tr></tbody></table>"),
               "<tr><th>a<td>b\n<tr><td>c</tbody></table>")
  expect_equal(without_ends("<ul><li>a</li>\n<li>b</li></ul> </td> x"), "<ul><li>a\n<li>b</ul> </td> x")
  page <- "<table><tr><th>a</th><td><b>b</b></td></tr><tr><td>c</td><td></td></tr></table><ul><li>d</li></ul>"
  texts <- function(text) {
    xml2::xml_text(xml2::xml_find_all(xml2::read_html(text), "//*[self::th or self::td or self::li]"))
  }
  expect_equal(texts(without_ends(page)), texts(page))
})

test_that("paths are found from the page", {
  folder <- normalizePath(tempdir())
  at <- function(...) file.path(folder, ...)
  expect_equal(relative_path(at("paper", "report.html"), at("results")), "../results")
  expect_equal(relative_path(at("a", "b", "report.html"), at("c", "d")), "../../c/d")
  expect_equal(relative_path(at("report.html"), at("results")), "results")
})

test_that("lists of very many runs name folders, and only those runs that are flagged or named", {
  quiet <- lapply(seq_len(RUNS_AS_LISTS), function(i) small_record("native", i))
  evidence <- small_evidence(records = quiet)
  each <- paste(html_records(evidence, ".."), collapse = "\n")
  expect_match(each, "id=\"run.native.stream.400\"", fixed = TRUE)
  others <- list(small_record("native", 401, steal = 0.3), small_record("docker"))
  more <- small_evidence(records = c(quiet, others))
  few <- paste(html_records(more, "..", named = "run.native.stream.7"), collapse = "\n")
  expect_match(few, "<li>STREAM: <a href=\"../nowhere/raw/native/stream/\">logs and records of 401",
               fixed = TRUE)
  expect_match(few, "<li>Docker: <a href=\"../nowhere/raw/docker/stream/\">logs and records of 1",
               fixed = TRUE)
  expect_match(few, "id=\"run.native.stream.7\"", fixed = TRUE)
  expect_no_match(few, "id=\"run.native.stream.8\"", fixed = TRUE)
  expect_lt(nchar(few), nchar(each) / 20)
})

test_that("many series are a table in which each has its name, and every value leads to its log", {
  rows <- lapply(1:3, function(k) summary_row("docker", n = 40, metric = "copy", factors = paste0("k=", k)))
  logs <- paste0("r/docker/stream/", 1:40, ".log")
  evidence <- small_evidence(lapply(rows, updated, logs = paste(logs, collapse = ";")))
  values <- do.call(rbind, lapply(1:3, function(k) {
    data.frame(workload = "stream", metric = "copy", factors = paste0("k=", k), environment = "docker",
               value = k + 1:40 / 100, log = logs)
  }))
  page <- xml2::read_html(html_runs(evidence, values, ".."))
  shown <- xml2::xml_find_all(page, "//table[@class='runs']//tr[@id]")
  expect_equal(xml2::xml_attr(shown, "id"), source_id(evidence$comparisons))
  expect_length(xml2::xml_find_all(page, "//table[@class='runs']//th/a"), 40)
  expect_equal(as.numeric(xml2::xml_text(xml2::xml_find_all(shown[[2]], "td"))[-1]), 2 + 1:40 / 100)
})

test_that("a sweep is one table of its series in all environments, which leads to the logs and the values", {
  rows <- unlist(lapply(seq_len(SERIES_WITH_RUNS + 1), function(k) {
    lapply(c("native", "docker"), summary_row, n = 3, metric = "copy", factors = paste0("k=", k), mean = k)
  }), recursive = FALSE)
  logs <- function(row) paste0("r/", row$environment, "/stream/", 1:3, ".log", collapse = ";")
  evidence <- small_evidence(lapply(rows, function(row) updated(row, logs = logs(row))))
  values <- data.frame(workload = "stream", metric = "copy", factors = "k=1", environment = "native",
                       value = 1, log = "r/native/stream/1.log")
  page <- xml2::read_html(html_runs(evidence, values, ".."))
  cells <- xml2::xml_find_all(page, "//table[@class='runs']//td[@id]")
  expect_setequal(xml2::xml_attr(cells, "id"), source_id(evidence$comparisons))
  expect_length(xml2::xml_find_all(page, "//table[@class='runs']/tbody/tr"), SERIES_WITH_RUNS + 1)
  expect_equal(xml2::xml_text(cells)[1:2], c("1 (3)", "1 (3)"))
  found <- xml2::xml_attr(xml2::xml_find_all(page, "//details[@id='series-stream']//p/a"), "href")
  each <- unlist(strsplit(evidence$comparisons$logs[1:2], ";", fixed = TRUE))
  tidy <- file.path(basename(evidence$plan$results), "tidy", "stream.csv")
  expect_setequal(found, file.path("..", c(each, tidy)))
})

test_that("a link into a list that waits leads to the list, and says where in it to go on", {
  list_of <- function(id, ...) html_list(id, "A list", c(...), tag = "div")
  lists <- waiting_lists(c(list_of("a", "<p id=\"a1\">1</p>", list_of("a2", "<a href=\"#b1\">2</a>")),
                           list_of("b", "<p id=\"b1\">3</p>")))
  page <- paste(c("<a href=\"#a1\">x</a><a href=\"#a2\">y</a>", "<a href=\"#b\">z</a><a href=\"#c\">c</a>",
                  lists), collapse = "\n")
  led <- xml2::read_html(lead_to_lists(page))
  links <- xml2::xml_find_all(led, "//a")
  expect_equal(xml2::xml_attr(links, "href"), c("#a", "#a", "#b", "#c", "#b"))
  expect_equal(xml2::xml_attr(links, "data-at"), c("a1", "a2", NA, NA, "b1"))
  waiting <- xml2::xml_find_all(led, "//details/noscript")
  expect_equal(xml2::xml_attr(xml2::xml_parent(waiting), "id"), c("a", "b"))
  expect_equal(lead_to_lists("<a href=\"#x\">"), "<a href=\"#x\">")
})

test_that("names of lists are short, and what led to one leads to it", {
  page <- paste("<a href=\"#runs-a-b\">1</a> <a href=\"#runs\">", "<p id=\"runs-c\">",
                "<a href=\"#runs-a-b\">2</a>", "<p id=\"runs-a-b\">", sep = "\n")
  expect_equal(short_names(page), paste("<a href=\"#r1\">1</a> <a href=\"#runs\">",
                                        "<p id=\"r2\">", "<a href=\"#r1\">2</a>",
                                        "<p id=\"r1\">", sep = "\n"))
  expect_equal(short_names("<p>none</p>"), "<p>none</p>")
})
