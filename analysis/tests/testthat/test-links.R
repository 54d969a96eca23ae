test_that("a linked text is a link on the page, and plain text elsewhere", {
  text <- paste0("It took ", linked("95 % [93, 97]", "runs-a"), " and ", linked("", "runs-b"), "<i>.")
  expect_equal(unlinked(text), "It took 95 % [93, 97] and <i>.")
  expect_equal(html_text(text),
               "It took <a class=\"value\" href=\"#runs-a\">95 % [93, 97]</a> and &lt;i&gt;.")
  expect_equal(html_escape(text), "It took 95 % [93, 97] and &lt;i&gt;.")
  expect_equal(latex_escape(text), "It took 95 \\% [93, 97] and \\textless{}i\\textgreater{}.")
  expect_equal(as_markdown(text), "It took 95 % \\[93, 97\\] and \\<i\\>.")
  before <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  knitr::opts_knit$set(rmarkdown.pandoc.to = "html")
  markdown <- as_markdown(text)
  knitr::opts_knit$set(rmarkdown.pandoc.to = before)
  expect_equal(markdown, "It took [95 % \\[93, 97\\]](#runs-a){.value} and \\<i\\>.")
  expect_equal(html_text("\u0002half a mark"), " half a mark")
  expect_equal(html_text(character()), character())
})

test_that("runs of several rows are found in the smallest list that holds them", {
  rows <- rbind(summary_row("native"), summary_row("docker"), summary_row("docker", metric = "scale"),
                summary_row("docker", workload = "new-load", metric = "rate"))
  expect_equal(shared_source(rows[1, ]), source_id(rows[1, ]))
  expect_equal(shared_source(rows[1:3, ]), "records-of-stream")
  expect_equal(shared_source(rows[2:4, ]), "records-in-docker")
  expect_equal(shared_source(rows), "records")
})
