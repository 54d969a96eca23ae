plain_table <- function(cells, ...) {
  heads <- paste0("H", seq_len(ncol(cells)))
  new_table("t", "caption & 100 %", lapply(heads, column, align = "right"), cells, ...)
}

test_that("nothing is markup in what becomes LaTeX", {
  expect_equal(latex_escape("50 % & #1_x {y} ~ ^ \\ $"),
               "50 \\% \\& \\#1\\_x \\{y\\} \\textasciitilde{} \\textasciicircum{} \\textbackslash{} \\$")
  expect_equal(latex_escape(paste0(MINUS, "3", THIN, "%", NO_BREAK, "\u00b5s")),
               "\\ensuremath{-}3\\,\\%~\\textmu{}s")
  expect_equal(latex_escape(c("--", "caf\u00e9", "\u4e2d", "a\033b\nc", "")),
               c("{-}{-}", "caf\u00e9", "U+4E2D", "a b c", ""))
})

test_that("long words may break, and hashes stand in the typewriter font", {
  expect_equal(latex_breaking("short words stay"), "short words stay")
  expect_equal(latex_breaking("a_word_of_more_than_twenty_letters"),
               paste0("a\\_word\\_o\\allowbreak{}f\\_more\\_t\\allowbreak{}han\\_twen\\allowbreak{}",
                      "ty\\_lette\\allowbreak{}rs"))
  expect_match(latex_breaking(strrep("0a", 32)), "^\\\\texttt\\{0a0a0a0a\\\\allowbreak")
})

test_that("a table has its caption, label, heads and rows", {
  text <- latex_table(plain_table(cbind(c("1", "2"), c("a", "b"))))
  expect_match(text, "\\begin{table*}[tp]\n\\caption{Caption \\& 100 \\%.}\n\\label{table:t}", fixed = TRUE)
  expect_match(text, "\\begin{tabular}{@{}rr@{}}", fixed = TRUE)
  expect_match(text, "\\multicolumn{1}{c}{H1} & \\multicolumn{1}{c}{H2} \\\\\n\\midrule\n", fixed = TRUE)
  expect_match(text, "\\midrule\n1 & a \\\\\n2 & b \\\\\n\\bottomrule", fixed = TRUE)
})

test_that("numbers are aligned at their points", {
  expect_equal(latex_padding(c("1.25", "10", "2.5", "n/a")),
               c("", "\\phantom{.25}", "\\phantom{5}", ""))
  expect_equal(latex_padding(c("a", "b")), c("", ""))
})

test_that("marks stand on their cells and notes under the table", {
  marks <- cbind(c("a", ""), c("", ""))
  text <- latex_table(plain_table(cbind(c("1", "2"), c("x", "y")), marks = marks,
                                  notes = c(a = "5 % off", "General.")))
  expect_match(text, "1\\textsuperscript{a} & x", fixed = TRUE)
  expect_match(text, "\\textsuperscript{a}\\,5 \\% off", fixed = TRUE)
  expect_match(text, "General.", fixed = TRUE)
})

test_that("equal neighbouring spanners share one heading", {
  expect_equal(latex_spanners(c("", "", "A", "A", "B")),
               c(" &  & \\multicolumn{2}{c}{A} & \\multicolumn{1}{c}{B} \\\\",
                 "\\cmidrule(lr){3-4}\\cmidrule(lr){5-5}"))
  expect_equal(latex_spanners(c("", "")), character())
})

test_that("a long table is split between groups, with its notes at the end and one number", {
  cells <- cbind(as.character(1:10), "x")
  table <- plain_table(cells, group_starts = rep(c(TRUE, FALSE, FALSE), length.out = 10), notes = "The note.")
  parts <- split_rows(table, 4)
  expect_equal(lapply(parts, function(part) part$cells[[1]]), list(c("1", "2", "3"), c("4", "5", "6"),
                                                                  c("7", "8", "9", "10")))
  text <- latex_table(table, 4)
  expect_length(gregexpr("\\label{table:t}", text, fixed = TRUE)[[1]], 1)
  expect_length(gregexpr("\\ContinuedFloat", text, fixed = TRUE)[[1]], 2)
  expect_length(gregexpr("The note.", text, fixed = TRUE)[[1]], 1)
  expect_equal(unlist(lapply(split_rows(table, 2), function(part) part$cells[[1]])), as.character(1:10))
})

test_that("rows of several lines fill a page sooner", {
  cells <- cbind("short", c("one line", strrep("many words ", 60)))
  table <- new_table("t", "t", list(column("A"), column("B", "wrap")), cells)
  lines <- lines_of_rows(table)
  expect_equal(lines[[1]], 1)
  expect_gt(lines[[2]], 4)
  long <- new_table("t", "t", list(column("A"), column("B", "wrap")), cells[rep(2, 30), ])
  parts <- split_rows(long, 60)
  expect_gt(length(parts), 2)
  expect_true(all(vapply(parts, function(part) sum(lines_of_rows(part)), 0) <= 60))
  expect_equal(sum(vapply(parts, function(part) nrow(part$cells), 0L)), 30)
  expect_length(split_rows(long, 3), 30)
})

test_that("what a LaTeX log says is found", {
  log <- c("This is pdfTeX", "! Undefined control sequence.", "l.12 \\nonsense", "more")
  expect_equal(latex_failure(log), log[2:4])
  expect_equal(latex_failure("quiet"), "quiet")
  notes <- c("Overfull \\hbox (0.5pt too wide) in paragraph",
             "Overfull \\hbox (12.1pt too wide) in paragraph",
             "LaTeX Warning: Reference `x' on page 1 undefined")
  expect_equal(latex_blemishes(notes), notes[2:3])
})

test_that("a long table of the appendix has its heads on every page, and its notes behind it", {
  text <- latex_long(plain_table(cbind(c("1", "2"), c("a", "b")), notes = "A note."))
  expect_match(text, "\\begin{longtable}{@{}rr@{}}\n\\caption{Caption \\& 100 \\%.}\\label{table:t}",
               fixed = TRUE)
  expect_equal(lengths(regmatches(text, gregexpr("\\multicolumn{1}{c}{H1}", text, fixed = TRUE))), 2)
  expect_match(text, "(continued)", fixed = TRUE)
  expect_match(text, "\\\\end[{]longtable[}]\n\\\\longnotes[{]\n.*A note")
  expect_match(text, "\\footnotesize", fixed = TRUE)
})

test_that("a long table that is too wide is set smaller, and then gives up the column of its groups", {
  wide <- function(letters) {
    cells <- cbind(c("Group one", "", "Group two"), matrix(strrep("x", letters), 3, 4))
    plain_table(cells, group_starts = c(TRUE, FALSE, TRUE))
  }
  fits <- latex_long(wide(5))
  expect_match(fits, "\\footnotesize", fixed = TRUE)
  expect_match(fits, "Group one & xxxxx", fixed = TRUE)
  small <- latex_long(wide(60))
  expect_match(small, "\\longtype", fixed = TRUE)
  expect_match(small, "\\multicolumn{4}{@{}l}{\\textit{Group one}} \\\\*\n", fixed = TRUE)
  expect_no_match(small, "Group one &", fixed = TRUE)
  # Each row is there once, and once where its width is found.
  expect_equal(lengths(regmatches(small, gregexpr("\\textit{Group", small, fixed = TRUE))), 2)
  expect_equal(lengths(regmatches(small, gregexpr(strrep("x", 60), small, fixed = TRUE))), 2 * 3 * 4)
  expect_match(small, "\\end{tabular}}\n\\narrowgaps{6}", fixed = TRUE)
  expect_no_match(fits, "narrowgaps", fixed = TRUE)
})

test_that("a float stands behind the first paragraph of its part that names it", {
  float <- function(name) c("```{=latex}", paste0("\\label{", name, "}"), "```", "")
  lines <- c("Opening.", "", float("table:a"), "Nothing here.", "", "See \\ref{table:a}.", "",
             "Again \\ref{table:a}.", "", "The end.", "")
  placed <- floats_after_citations(lines)
  flat <- unlist(strsplit(placed, "\n"))
  expect_equal(flat[flat != ""], c("Opening.", "Nothing here.", "See \\ref{table:a}.", "```{=latex}",
                                   "\\label{table:a}", "```", "Again \\ref{table:a}.", "The end."))
  # One that follows a paragraph that names it stays there, and one that is named nowhere where it is.
  stays <- c("See \\ref{table:a}.", "", "Again \\ref{table:a}.", "", float("table:a"), float("figure:b"),
             "End.", "")
  flat <- unlist(strsplit(floats_after_citations(stays), "\n"))
  expect_equal(flat[flat != ""], stays[stays != ""])
  # A mention in the appendix is none of the body's.
  parts <- c(float("table:a"), "Body.", "", "# Appendix", "", "See \\ref{table:a}.", "")
  flat <- unlist(strsplit(floats_after_citations(parts), "\n"))
  expect_equal(flat[flat != ""], parts[parts != ""])
})

test_that("a table's width is that of its longest lines, and known where it has no rows", {
  columns <- list(column("Metric"), column("Number"))
  of <- function(cells) natural_width(new_table("t", "T", columns, cells))
  expect_equal(of(cbind(c("a long\nname", "b"), c("1", "22"))), of(cbind(c("a long", "b"), c("1", "22"))))
  expect_gt(of(cbind("a long name", "1")), of(cbind("a long\nname", "1")))
  expect_equal(of(matrix(character(), 0, 2)), of(cbind("a", "1")))
  expect_equal(latex_lines(c("a & b\nc", "d")),
               c("\\begin{tabular}[t]{@{}l@{}}a \\& b\\\\c\\end{tabular}", "d"))
})
