cells_of <- function(table) {
  cells <- as.matrix(table$cells)
  matrix(read_aloud(cells), nrow(cells))
}

many <- stats::setNames(c("Native", paste("Environment number", 2:8)), c("native", paste0("e", 2:8)))

test_that("Table I has a row for each series and three columns for each environment", {
  table <- table_as_printed(small_evidence(list(
    summary_row("native", mean = 41.27, sd = 0.34), summary_row("native", metric = "scale", mean = 40),
    summary_row("docker", mean = 39.6, sd = 0.25, ratio = 0.9595, low = 0.95, high = 0.97)
  )))
  expect_equal(cells_of(table), rbind(
    c("STREAM", "Copy (GB/s)", "41.27", "(0.34)", "", "39.60", "(0.25)", "-4.0 %"),
    c("", "Scale (GB/s)", "40.00", "(0.10)", "", EM_DASH, "", "")
  ))
  expect_equal(table$columns$head, c("Workload", "Metric", "Native", "", "", "Docker", "", ""))
  expect_equal(table$columns$span, c(1, 1, 3, 0, 0, 3, 0, 0))
  expect_match(table$notes[[2]], "not measured", fixed = TRUE)
})

test_that("cells with another number of runs are marked", {
  table <- table_as_printed(small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"), summary_row("docker", n = 4)
  )))
  expect_equal(table$marks[, 7], c("n=4", ""))
  expect_match(read_aloud(table$notes[[1]]), "n = 5 runs, except where marked", fixed = TRUE)
})

test_that("one run has neither deviation nor standard deviation", {
  table <- table_as_printed(small_evidence(list(summary_row("native", n = 1, mean = 12.3456))))
  expect_equal(cells_of(table)[1, ], c("STREAM", "Copy (GB/s)", "12.35", "", ""))
  expect_match(read_aloud(table$notes[[1]]), "n = 1 run.", fixed = TRUE)
})

test_that("without native no deviation is known, and that is said", {
  table <- table_as_printed(small_evidence(list(summary_row("docker"))))
  expect_equal(cells_of(table)[, 5], "")
  expect_match(table$notes[[2]], "Native was not measured", fixed = TRUE)
})

test_that("many environments stand in even panels, each under its labels", {
  table <- table_as_printed(small_evidence(lapply(names(many), summary_row), small_plan(many)))
  expect_equal(sum(table$head_rows), 1)
  expect_equal(which(table$head_rows), 2)
  shown <- c(table$columns$head, unlist(table$cells[table$head_rows, ]))
  expect_equal(setdiff(shown, c("", "Workload", "Metric")), unname(many))
  expect_equal(sum(cells_of(table) == "10.00"), 8)
  expect_equal(nchar(gsub("[^&]", "", latex_heads(table$columns$head, table$columns))), 5)
})

test_that("a page has as many environments side by side as a window shows", {
  before <- knitr::opts_knit$get("rmarkdown.pandoc.to")
  on.exit(knitr::opts_knit$set(rmarkdown.pandoc.to = before))
  knitr::opts_knit$set(rmarkdown.pandoc.to = "html")
  made <- function(count, value = "27.95") {
    cells <- printed_cells(rep(value, 2), c("0.64", "0.64"), c(-0.04, 0.1))
    group <- list(label = "Docker in VM (TCG emulation), host network", cells = cells, mark = c("", ""))
    printed_table("printed", "Many", c("A", "A"), c("copy", "scale"), rep(list(group), count), "A note.")
  }
  shown <- function(table) sum(table$head_rows) + 1
  expect_equal(vapply(c(1, 9, 10, 30), function(count) shown(made(count)), 0), c(1, 1, 2, 4))
  expect_equal(shown(made(8, "1,234,567.95")), 2)
})

test_that("panels are as few as fit, and even", {
  expect_equal(panels_of(c(10, 10, 10), 30), list(1:3))
  expect_equal(panels_of(c(10, 10, 10), 29), list(1:2, 3L))
  expect_equal(panels_of(c(50, 10), 29), list(1L, 2L))
  # Those of a second panel widen those of the first.
  expect_equal(panels_of(c(10, 15, 15, 10), 30), list(1:2, 3:4))
  expect_equal(panels_of(c(10, 15, 15, 10), 29), list(1L, 2L, 3L, 4L))
})

test_that("nothing measured is no table", {
  evidence <- small_evidence()
  expect_null(table_as_printed(evidence))
  expect_null(table_of_intervals(evidence))
  expect_null(table_of_testbed(evidence))
  expect_null(table_of_conditions(evidence))
})

test_that("the table of intervals shows n, intervals, ratios, readings and flags", {
  table <- table_of_intervals(small_evidence(list(
    summary_row("native", flags = "few-runs"),
    summary_row("docker", mean = 9.5, ratio = 0.95, low = 0.93, high = 0.97, n = 4,
                flags = "missing;few-runs")
  )))
  expect_equal(cells_of(table), rbind(
    c("STREAM copy (GB/s)", "Native", "5", "10.00", "[9.80, 10.20]", "10.00", "", "", "", "", "", ""),
    c("", "Docker", "4", "9.50", "[9.30, 9.70]", "9.50", "95.0", "[93.0, 97.0]", "4", "0.0010", "slower", "a")
  ))
  expect_equal(unname(table$notes[names(table$notes) == "a"]), unname(flag_meanings()["missing"]))
  expect_true(any(grepl("^All rows: Below six runs", table$notes)))
})

test_that("a ratio without limits is shown as such", {
  table <- table_of_intervals(small_evidence(list(
    summary_row("native"), summary_row("docker", ratio = 0.95, flags = "ratio-unbounded")
  )))
  expect_equal(cells_of(table)[2, 7:12], c("95.0", EM_DASH, "5", EM_DASH, "no interval", "a"))
})

test_that("p values are adjusted, and never printed as zero", {
  expect_equal(p_text(c(0.03412, 0.2, 1, 1e-5, NA)), c("0.034", "0.20", "1.0", "<0.001", ""))
})

test_that("the runs needed have a column where they are known", {
  row <- updated(summary_row("native", n = 6), runs_needed = 142)
  over <- updated(summary_row("docker", n = 6, flags = "many-runs"), ratio_n = NA)
  table <- table_of_intervals(small_evidence(list(row, over)))
  at <- which(read_aloud(table$columns$head) == "Runs for \u00b11.0 %")
  expect_equal(cells_of(table)[, at], c("142", "> 1,000"))
  evidence <- small_evidence(list(row, over))
  expect_match(read_aloud(runs_needed_text(evidence)), paste(
    "the series need 142 runs. 1 series would need more than 1,000 runs."
  ))
  unknown <- small_evidence(list(summary_row("native")))
  expect_match(runs_needed_text(unknown), "not available: it takes 10 runs")
})

test_that("the interval of the median appears from six runs on", {
  row <- updated(summary_row("native", n = 6), median_low = 9.9, median_high = 10.1)
  table <- table_of_intervals(small_evidence(list(row)))
  expect_equal(cells_of(table)[1, 7], "[9.90, 10.10]")
  expect_false("Ratio to native" %in% table$columns$spanner)
})

test_that("flags get letters in the order of their meanings, unless all rows have them", {
  flags <- flag_letters(c("outlier", "missing;outlier", "", "strange-code"))
  expect_equal(flags$letters, c("b", "a, b", "", "c"))
  expect_equal(names(flags$notes), c("a", "b", "c"))
  expect_equal(unname(flags$notes["c"]), "Strange code.")
  expect_equal(flag_letters(c("drift", "drift"))$letters, c("", ""))
  expect_length(flag_letters(c("drift", "drift"))$everywhere, 1)
  expect_length(flag_letters(c("", ""))$notes, 0)
})

test_that("the published values are those of the report, and only of workloads in the plan", {
  table <- table_published(small_evidence())
  expect_match(table$caption, "^Published in 2014, for orientation")
  expect_equal(cells_of(table)[1, ], c("STREAM", "Copy (GB/s)", "41.3", "(0.06)", "", "41.2", "(0.08)",
                                       "0 %", "40.1", "(0.21)", "-3 %", EM_DASH, "", ""))
  expect_equal(nrow(table$cells), 4)
  plan <- small_plan()
  plan$workloads$stream <- NULL
  expect_null(table_published(small_evidence(plan = plan)))
})

#' Evidence of these environments in all four workloads
machine_table_evidence <- function(accelerator, environments = names(all_labels(accelerator)), ...) {
  plan <- small_plan(all_labels(accelerator)[environments])
  plan$environments <- Map(planned_environment, environments, all_labels(accelerator)[environments],
                           accelerator)
  small_evidence(lapply(environments, function(name) {
    if (name == "native") {
      summary_row(name)
    } else {
      summary_row(name, mean = 9, ratio = 0.9, low = 0.88, high = 0.92)
    }
  }), plan, ...)
}

test_that("what was measured stands beside Table I, under its own name", {
  table <- table_published(machine_table_evidence("tcg"))
  heads <- c(table$columns$head, unlist(table$cells[table$head_rows, ], use.names = FALSE))
  heads <- gsub("\n", " ", setdiff(heads, c("", "Workload", "Metric")))
  expect_equal(heads, c("Native, 2014", "Native, here", "Docker, 2014", "Docker, here", "KVM, 2014",
                        "VM (TCG emulation), here", "KVM, tuned, 2014", "VM (TCG emulation), tuned, here"))
  cells <- cells_of(table)
  below <- which(table$head_rows)
  expect_equal(cells[1, ], c("STREAM", "Copy (GB/s)", "41.3", "(0.06)", "", "10.00", "(0.10)", "", "41.2",
                             "(0.08)", "0 %", "9.00", "(0.10)", "-10.0 %"))
  expect_equal(cells[below + 1, 3:8], c("40.1", "(0.21)", "-3 %", "9.00", "(0.10)", "-10.0 %"))
  expect_true(any(grepl("emulated in software.*no claim about KVM", table$notes)))
  expect_equal(table$sources[below + 1, 6], "runs-stream-copy-vm")
  expect_equal(table$sources[1, 3], "")
  kvm <- table_published(machine_table_evidence("kvm"))
  expect_true("KVM, here" %in% unlist(kvm$cells[kvm$head_rows, ]))
  expect_false(any(grepl("emulated", kvm$notes)))
  expect_true(any(grepl("emulated", table_as_printed(machine_table_evidence("tcg"))$notes)))
  expect_true(any(grepl("emulated", table_of_intervals(machine_table_evidence("tcg"))$notes)))
})

test_that("a published environment that was not measured says why, and has no column here", {
  evidence <- machine_table_evidence("kvm", c("native", "vm"))
  evidence$plan$environments$`vm-tuned` <- list(label = "KVM, tuned", available = FALSE,
                                                reason = "no libvirt")
  table <- table_published(evidence)
  heads <- c(table$columns$head, unlist(table$cells[table$head_rows, ]))
  expect_false(any(c("Docker, here", "KVM, tuned, here") %in% heads))
  expect_true("KVM, here" %in% heads)
  expect_match(paste(table$notes, collapse = " "),
               "Docker is not in the plan. KVM, tuned is not available here: no libvirt.", fixed = TRUE)
})

test_that("the size that stands beside a published one is told, and is the largest", {
  rows <- published_series(list(list(workload = "stream", metric = "copy", unit = "GB/s"),
                                list(workload = "stream", metric = "triad", unit = "GB/s"),
                                list(workload = "stream", metric = "copy", unit = "MB/s")),
                           small_evidence(list(summary_row("native", factors = "order=500"),
                                               summary_row("native", factors = "order=12000")))$comparisons)
  expect_equal(rows$series, c(2, NA, NA))
  expect_equal(read_aloud(rows$note),
               "Sizes here: STREAM (order 12,000); those of 2014 are in the rows\u2019 names.")
})

test_that("long headings take two lines, in LaTeX and in HTML", {
  expect_equal(in_two_lines(c("Docker (layered storage)", "Docker in VM (TCG emulation), host network",
                              strrep("x", 40))),
               c("Docker (layered storage)", "Docker in VM (TCG\nemulation), host network", strrep("x", 40)))
  table <- table_as_printed(machine_table_evidence("tcg"))
  expect_match(latex_table(table), "\\shortstack{Docker in VM (TCG\\\\emulation), host network}",
               fixed = TRUE)
  expect_match(html_table(table), "Docker in VM (TCG<br>emulation), host network", fixed = TRUE)
})

test_that("the published file agrees with its own deviations", {
  published <- read_published(file.path(project, "published", "ibm-table1.json"))
  for (row in published$rows) {
    mean <- vapply(row$values, function(value) as.numeric(value$mean), 0)
    for (name in setdiff(names(row$values), "native")) {
      printed <- row$values[[name]]$deviation_percent
      expect_lte(abs(100 * (mean[[name]] / mean[["native"]] - 1) - printed), 1.1)
    }
  }
})

test_that("environments show layers, runs, and reasons where they are not available", {
  plan <- small_plan(c(native = "Native", docker = "Docker", vm = "VM"), unavailable = "vm")
  plan$environments$vm$layers <- list(list(vm = list(profile = "tuned")),
                                      list(docker = list(network = "host")))
  plan$environments$vm$told <- planned_told(plan$environments$vm$layers)
  table <- table_of_environments(small_evidence(list(summary_row("native"), summary_row("docker")), plan,
                                                missing = 1))
  expect_equal(cells_of(table), rbind(
    c("Native", "change of root", "the host\u2019s", "the host\u2019s disk", "1"),
    c("Docker", "Docker container", "bridge with NAT", "volume", "1 of 2"),
    c("VM", "virtual machine (profile tuned), in it Docker container", "its host\u2019s", EM_DASH,
      "not available")
  ))
  expect_equal(table$marks[, 1], c("", "", "a"))
  expect_equal(table$notes, c(a = "Not available: no such device & 100 %."))
})

test_that("a layer is shown as its file tells it, with its options", {
  told <- list(kind = "machine", title = "light machine", network = "user mode")
  layer <- describe_layer(list(`micro-vm` = list(network = "user_mode", pages = 4096)), told)
  expect_equal(layer$network, "user mode")
  expect_equal(read_aloud(layer$isolation), "light machine (pages 4,096)")
  expect_null(layer$data)
  expect_equal(kind_of(list(told = list(told))), "virtual machines")
  expect_equal(kind_of(list(told = list(list(kind = "sandbox")))), "sandboxes")
  expect_equal(kind_of(list(told = list(list(kind = "capsule")))), "other environments")
  expect_equal(kind_of(list()), "other environments")
})

test_that("parameters are words, without what is empty", {
  text <- setting_text(list(level = 2, sizes = list(1000, 12000), corpus = NULL, corpus_sha1 = "x",
                            fast_mode = TRUE, sum = strrep("0a", 20)))
  expect_equal(read_aloud(text), "level 2, sizes 1,000 and 12,000, fast mode yes, sum 0a0a0a0a0a0a\u2026")
  expect_equal(setting_text(list()), "")
})

test_that("parameters that the system decides are those of the runs", {
  records <- list(small_record("native"), small_record("docker", threads = 4))
  evidence <- small_evidence(list(summary_row("native")), records = records)
  expect_equal(read_aloud(parameters_text(evidence, "stream")),
               "threads 2 (Native); 4 (Docker), elements 20,000,000")
  expect_match(cells_of(table_of_workloads(evidence))[1, 4], "Checks: result verified.", fixed = TRUE)
})
