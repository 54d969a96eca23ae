#' Evidence of workloads that measure sweeps
sweep_evidence <- function(...) {
  workloads <- c(...)
  environments <- c("native", "docker", "docker-hostnet", "vm")
  plan <- sweep_plan(workloads, environments)
  rows <- lapply(workloads, function(name) {
    tidy <- sweep_tidy(plan, name, few = TRUE)
    summarise_workload(tidy, plan, unique(tidy[c("environment", "workload", "repetition", "counts")]))
  })
  records <- do.call(c, lapply(workloads, function(name) lapply(environments, small_record, workload = name)))
  small_evidence(rows, plan, records)
}

evidence <- sweep_evidence("redis", "mysql", "netperf")

test_that("tables hold the points that stand for a sweep, and say how many series are elsewhere", {
  rows <- told(evidence)
  series <- rows[!duplicated(rows$series), ]
  expect_equal(nrow(series), 6 + 3 + 8)
  expect_setequal(series$factors[series$workload == "redis" & series$metric == "latency"],
                  paste0("test=", c("SET", "GET"), ";connections=10"))
  table <- table_of_intervals(evidence)
  expect_equal(nrow(table$cells), 17 * 4)
  expect_match(table$caption, "of sweeps at the points that stand for them", fixed = TRUE)
  note <- read_aloud(grep("stand for them", table$notes, value = TRUE))
  # In no figure are the latencies of pipelined requests, and of MariaDB all percentiles and what is neither
  # throughput nor read-only.
  expect_match(note, "Of 48 series, 15 more are in the figures of Redis and OLTP on MariaDB, and 16 of",
               fixed = TRUE)
  expect_equal(sum(!evidence$comparisons$headline), 4 * 31)
  printed <- table_as_printed(evidence)
  expect_match(printed$caption, "stand for them", fixed = TRUE)
  few <- small_evidence(list(summary_row("native"),
                             summary_row("docker", ratio = 0.9, low = 0.8, high = 0.95)))
  expect_null(untold_text(few))
  expect_no_match(table_of_intervals(few)$caption, "sweeps")
})

test_that("the comparisons of sweeps belong to the family that is tested", {
  all <- sum(!is.na(evidence$comparisons$p_adjusted))
  expect_equal(all, 3 * 48)
  expect_match(read_aloud(multiplicity_text(evidence)), "There are 144 comparisons with native", fixed = TRUE)
  notes <- table_of_intervals(evidence)$notes
  expect_true(any(grepl("all comparisons with native, those of sweeps too", notes)))
  table <- comparison_table(evidence$comparisons, evidence$plan)
  expect_equal(nrow(table), 3 * 48)
})

test_that("what is said of percentiles and harmonic means names metrics, not points", {
  notes <- read_aloud(statistic_notes(told(evidence)))
  expect_match(notes[[1]], "equal work: Redis throughput.", fixed = TRUE)
  expect_match(notes[[2]], ": netperf median round trip and netperf 99th percentile of round trips.",
               fixed = TRUE)
})

test_that("the text tells of few points, and of emulation by what is worse when it is lower", {
  text <- read_aloud(workload_text(evidence, "mysql"))
  expect_match(text, "threads 50", fixed = TRUE)
  expect_no_match(text, "threads 10 ")
  expect_lt(nchar(text), 1200)
  mysql <- ratios(evidence, "vm")
  answer <- read_aloud(family_answers(mysql[mysql$workload == "mysql", ], evidence$plan))
  found <- gregexpr("[0-9.]+(?= %( to|.* performance))", answer, perl = TRUE)
  shares <- as.numeric(regmatches(answer, found)[[1]])
  expect_true(length(shares) >= 2 && all(shares < 20))
})

test_that("the figures of ratios and of the order draw the points that stand for a sweep", {
  plan <- evidence$plan
  published <- read_published_ratios(project)
  data <- ratio_data(evidence$comparisons[names(SUMMARY_COLUMNS)], plan, published$ratios, published$known)
  expect_equal(nlevels(data$series), 17)
  expect_equal(sum(data$what == "measured"), 17 * 3)
  tidy <- sweep_tidy(plan, "mysql", few = TRUE)
  expect_equal(nrow(order_data(list(tidy), plan)), 4 * 6 * 3)
  many <- data[rep(seq_len(nrow(data)), 3), ]
  many$panel <- factor(rep(paste("environment", 1:8), length.out = nrow(many)))
  many$row <- factor(rep(paste("series", 1:9), length.out = nrow(many)))
  expect_equal(ratio_rows(many), 2)
  many$row <- factor(rep(paste("a long name of a series, number", 1:30), length.out = nrow(many)))
  expect_equal(ratio_rows(many), 1)
})

test_that("Table II stands beside the rates that were measured", {
  table <- table_of_kernels(small_evidence(list(
    summary_row("native", mean = 32, metric = "copy"), summary_row("native", mean = 36, metric = "scale")
  )))
  cells <- matrix(read_aloud(as.matrix(table$cells)), nrow(table$cells))
  expect_equal(cells[1, ], c("Copy", "16", "0", "41.3", "2.58", "32.00 [31.80, 32.20]", "2.00"))
  expect_equal(cells[4, ], c("Triad", "24", "2", "45.6", "1.90", EM_DASH, EM_DASH))
  expect_equal(table$sources[1, 6:7], rep("runs-stream-copy-native", 2))
  expect_equal(unique(as.vector(table$sources[, 1:5])), "")
  expect_null(table_of_kernels(evidence))
})

test_that("Table III stands beside what was measured for it, with its ratio at the same point", {
  table <- table_of_configurations(evidence)
  cells <- matrix(read_aloud(as.matrix(table$cells)), nrow(table$cells))
  expect_equal(cells[, 1], c("Native", "Docker, host network, volume", "Docker, NAT, volume",
                             "Docker, NAT, AUFS", "KVM"))
  expect_equal(cells[, 4], c("", "87.3 %", "89.1 %", "76.3 %", "45.9 %"))
  expect_equal(cells[2, 5:7], c("Docker (host network)", "its host\u2019s", "volume"))
  expect_equal(cells[4, 5:8], rep(EM_DASH, 4))
  own <- evidence$comparisons[evidence$comparisons$environment == "docker" &
                                evidence$comparisons$metric == "throughput" &
                                evidence$comparisons$factors == "threads=50", ]
  expect_equal(cells[3, 8], read_aloud(percent_interval(own$ratio, own$ratio_low, own$ratio_high)))
  expect_equal(table$marks[, 4], c("", "", "a", "", ""))
  expect_match(table$notes[["a"]], "raw logs")
  expect_match(read_aloud(table$notes[[1]]), "2014 at threads 50, here at threads 50", fixed = TRUE)
  other <- printed_throughput(evidence$originals$throughput, c("native", "vm"), "threads=7")
  expect_equal(other$factors, "threads=290")
  expect_null(table_of_configurations(small_evidence()))
})

test_that("a long table goes on under the headings of its own panel", {
  table <- table_as_printed(evidence)
  expect_true(any(table$head_rows))
  head <- which(table$head_rows)[[1]]
  parts <- split_rows(table, head - 3)
  expect_gt(length(parts), 2)
  of <- function(part) unlist(part$columns$head)
  expect_equal(of(parts[[1]]), of(table))
  last <- parts[[length(parts)]]
  expect_equal(of(last), as.character(unlist(table$cells[max(which(table$head_rows)), ])))
  for (part in parts) {
    expect_false(part$head_rows[[1]])
    expect_false(part$head_rows[[nrow(part$cells)]])
  }
  rows <- sum(vapply(parts, function(part) sum(!part$head_rows), 0L))
  expect_equal(rows, sum(!table$head_rows))
})
