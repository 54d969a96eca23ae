# What of the text a reader needs no log for: rules that were set before measuring, and what was published.
CONSTANTS <- c(
  # What was published, and what was set before measuring: how many of what there is, and sizes.
  "\u201c[^\u201d]*\u201d", "\\((IBM|VMware) 20[0-9]{2}, [^)]*\\): .*", "tolerated [0-9.\u2013]+ %",
  "machines? \\([0-9]+\\)", "containers \\([0-9]+\\)", "\\([0-9]+ environments\\)",
  "in all [0-9]+ (metrics|ratios)",
  "at least [0-9]+ times the last-level cache",
  "the raw logs of 2014", "[0-9]+ of them for their labels",
  "By the authors\u2019 own numbers, [0-9]+ of [0-9]+ claims [^0-9]* 2014 [^0-9]*[0-9]+ do(es)? not",
  "95 % (t )?interval", "95 % distribution", "together at 95 %", "held at 5 %", "(below|at) 5 %",
  "[Ww]ithin 2 %", "by more than 2 %", "effect, 2 %", "2 % or more", "difference of 2 %", "interval at 90 %",
  "80 % probability", "it takes 10 runs", "Of [0-9]+ published claims,", "below 0\\.05 and", "from 100 %",
  "cap of 1000", "above 3\\.5", "(medians to|Runs for) \u00b11\\.0 %", "1 is native", "in 2014",
  "Of [0-9]+ published claims in [0-9]+ publications", "Load \\(1 min\\)", "ggplot2",
  "(R|knitr|pandoc) [0-9.]+"
)

#' The numbers on a page that are no part of a link
#'
#' @param page as from `xml2::read_html`
#' @param allowed regular expressions of what needs no link
#' @return texts that hold such numbers: of the abstract and of all sections from the testbed to the threats,
#'   without what was published
bare_numbers <- function(page, allowed) {
  section <- function(node) {
    if (length(xml2::xml_find_all(node, "ancestor::section[@class='abstract']")) > 0) {
      return("abstract")
    }
    xml2::xml_attr(xml2::xml_find_first(node, "preceding::h2[1]"), "id")
  }
  nodes <- xml2::xml_find_all(page, paste0(
    "//main//*[self::p or self::li or self::figcaption or self::td]",
    "[not(ancestor::section[@id='runs'])]",
    "[not(ancestor::*[@id='table-published' or @id='table-untested' or @id='table-kernels' or ",
    "@id='table-configurations'])]",
    "[not(ancestor::*[@id='table-claims'] and self::td)]"
  ))
  nodes <- nodes[vapply(nodes, section, "") %in%
                   c("abstract", "method", "testbed-as-observed", "results", "published-claims",
                     "threats-to-validity")]
  texts <- vapply(nodes, function(node) {
    # In rows that say so, the page's script links a number to where the one before it does.
    follows <- "ancestor::td[parent::tr[@data-links]][preceding-sibling::*[.//a]]"
    own <- xml2::xml_find_all(node, sprintf(
      ".//text()[not(ancestor::a or ancestor::sup or ancestor::figcaption/b or %s)]", follows
    ))
    paste(xml2::xml_text(own), collapse = "")
  }, "")
  texts <- gsub("[\u00a0\u202f\n]", " ", texts)
  for (pattern in allowed) {
    texts <- gsub(pattern, "", texts, perl = TRUE)
  }
  texts[grepl("[0-9]", texts)]
}

#' A page of made-up results, with emulated virtual machines, of which one run is missing, parsed
#'
#' @return list: `page`; `factors`, texts of the parameters that name metrics; and `folder` of the project
page_of_runs <- function() {
  folder <- tempfile("project-")
  results <- file.path(folder, "results")
  path <- make_machine_results("tcg", c("native", "docker", "vm", "vm-tuned"), repetitions = 6,
                               workloads = c("stream", "linpack"), results = results)
  plan <- jsonlite::read_json(path)
  plan$environments$absent <- list(label = "Absent", layers = list(), available = FALSE, reason = "no device")
  write_json(plan, path)
  write_json(list(format = 1, id = "sha256:f00", distribution = "debian", package_count = 2, file_count = 3),
             file.path(results, "image.json"))
  for (record in list.files(file.path(results, "raw"), "[.]json$", recursive = TRUE, full.names = TRUE)) {
    told <- small_record("native", inside = list(cpus = if (grepl("/vm", record)) 1 else 2),
                         steal = if (grepl("vm/stream/3", record)) 0.07 else 0.01)
    told <- utils::modifyList(jsonlite::read_json(record), told[c("started", "ended", "observed")])
    write_json(told, record)
  }
  unlink(file.path(results, "raw", "docker", "linpack", c("2.log", "2.json")))
  failed <- file.path(results, "failed", "docker", "linpack")
  dir.create(failed, recursive = TRUE)
  write_json(list(error = "killed by signal 9"), file.path(failed, "2.json"))
  analyse(path)
  in_folder(folder, expect_equal(
    run_r("report.R", "--plan", "results/plan.json", "--out", "paper/report.html", "--partial")$status, 0
  ))
  tidy <- read_csv(file.path(results, "tidy", "linpack.csv"), TIDY_COLUMNS)
  list(page = xml2::read_html(file.path(folder, "paper", "report.html")), folder = folder,
       factors = gsub(NO_BREAK, " ", unique(factor_text(tidy$factors))))
}

test_that("every measured number of the page leads to its logs in two steps", {
  skip_without_latex()
  made <- page_of_runs()
  allowed <- c(CONSTANTS, made$factors, sub("^, ", "", upper_first(made$factors)))
  expect_equal(bare_numbers(made$page, allowed), character())
  links <- xml2::xml_find_all(made$page, paste0(
    "//main//a[starts-with(@href, '#')][@class='value' or ancestor::td]",
    "[not(ancestor::section[@id='runs'])]"
  ))
  expect_gt(length(links), 100)
  files_of <- function(nodes) {
    xml2::xml_attr(xml2::xml_find_all(nodes, ".//a[not(starts-with(@href, '#'))]"), "href")
  }
  # The first step ends at a list of the page, the second at a file of the results.
  leads_to <- function(nodes) {
    at <- xml2::xml_attr(nodes, "data-at")
    ifelse(is.na(at), sub("^#", "", xml2::xml_attr(nodes, "href")), at)
  }
  for (to in unique(leads_to(links))) {
    target <- xml2::xml_find_all(made$page, sprintf("//*[@id='%s']", to))
    expect_length(target, 1)
    if (to != "table-untested") {
      files <- files_of(target)
      if (length(files) == 0) {
        # A list of runs of which the page has entries: these lead to the files.
        runs <- leads_to(xml2::xml_find_all(target, ".//a"))
        entries <- lapply(runs, function(id) xml2::xml_find_all(made$page, sprintf("//*[@id='%s']", id)))
        expect_true(all(lengths(entries) == 1), label = to)
        files <- unlist(lapply(entries, files_of))
      }
      expect_gt(length(files), 0, label = to)
      expect_true(all(file.exists(file.path(made$folder, "paper", files))), label = to)
    }
  }
  # A link that is taken out is noticed, wherever it stands in a sentence.
  values <- xml2::xml_find_all(made$page, paste0(
    "//h2[@id='results']/following::p[preceding::h2[1][@id='results']]//a[@class='value']"
  ))
  expect_gt(length(values), 10)
  for (value in values) {
    xml2::xml_name(value) <- "span"
    expect_gt(length(bare_numbers(made$page, allowed)), 0, label = xml2::xml_text(value))
    xml2::xml_name(value) <- "a"
  }
  expect_equal(bare_numbers(made$page, allowed), character())
})
