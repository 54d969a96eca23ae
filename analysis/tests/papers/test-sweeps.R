test_that("the paper has every figure of a sweep, each once, with what it shows", {
  skip_without_latex()
  folder <- tempfile("project-")
  path <- make_sweep_results(c("redis", "mysql"), c("native", "docker", "vm"), repetitions = 3,
                             results = file.path(folder, "results"))
  in_folder(folder, {
    for (kind in c("html", "pdf")) {
      done <- run_r("report.R", "--plan", "results/plan.json", "--out", paste0("paper/report.", kind))
      expect_equal(done$status, 0, info = paste(tail(done$output, 3), collapse = " "))
      expect_no_match(done$output, "arning|too large")
    }
  })
  page <- xml2::read_html(file.path(folder, "paper", "report.html"))
  plan <- read_plan(path)
  stems <- unlist(lapply(names(plan$workloads), function(name) names(figures_of(plan, name))))
  drawn <- xml2::xml_attr(xml2::xml_find_all(page, "//figure[@class='drawing']"), "id")
  expect_setequal(drawn, paste0("figure-", c("answers", stems, "ratios", "claims", "order", "drift")))
  expect_equal(anyDuplicated(drawn), 0)
  text <- gsub("[[:space:]]+", " ", xml2::xml_text(page))
  expect_match(text, "shows the throughput against the connections and what is lost", fixed = TRUE)
  expect_match(text, "OLTP on MariaDB, read-only: the transactions against the CPU utilisation", fixed = TRUE)
  expect_match(text, "So few runs give no 95", fixed = TRUE)
  expect_match(text, "on dotted lines", fixed = TRUE)
  links <- sub("#", "", grep("^#", xml2::xml_attr(xml2::xml_find_all(page, "//a"), "href"), value = TRUE))
  ids <- xml2::xml_attr(xml2::xml_find_all(page, "//*[@id]"), "id")
  expect_equal(setdiff(links, ids), character())
  expect_equal(anyDuplicated(ids), 0)
  # Every series has its runs on the page, also those that no table tells of.
  series <- vapply(names(plan$workloads), function(name) {
    nrow(read_summary(file.path(plan$results, "summary", paste0(name, ".csv")), plan))
  }, 0L)
  expect_equal(sum(grepl("^r[0-9]+$", ids)), sum(series))
})
