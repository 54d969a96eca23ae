# The verdict with the p value of Fieller's interval as the only comparison
read <- function(ratio, low, high, better = "higher") {
  p <- if (is.na(low)) NA else if (low > 1 || high < 1) 0.04 else 0.06
  equal_p <- if (is.na(low)) NA else if (low >= 0.98 && high <= 1.02) 0.04 else 0.05
  verdict(ratio, low, high, better, p, equal_p)
}

test_that("a difference is called only where it is significant and beyond the minimum effect", {
  expect_equal(read(0.95, 0.93, 0.97), "slower")
  expect_equal(read(1.05, 1.03, 1.07), "faster")
  expect_equal(read(1.05, 1.03, 1.07, "lower"), "slower")
  expect_equal(read(0.95, 0.93, 0.97, "lower"), "faster")
  expect_equal(read(0.99, 0.985, 0.995), "equal")
  expect_equal(read(0.985, 0.978, 0.992), "open")
  expect_equal(read(0.95, 0.89, 1.01), "open")
  expect_equal(read(1, 1, 1), "equal")
  expect_equal(read(0.95, NA, NA), "unknown")
  expect_equal(read(NA, NA, NA), "")
})

test_that("an interval that excludes equality is not enough where the adjusted p value is not", {
  expect_equal(verdict(0.95, 0.93, 0.97, "higher", 0.0499, 0.9), "slower")
  expect_equal(verdict(0.95, 0.93, 0.97, "higher", 0.05, 0.9), "open")
  # The wider interval at 95 % says nothing of equality.
  expect_equal(verdict(0.99, 0.979, 1.001, "higher", 0.06, 0.049), "equal")
  rows <- do.call(rbind, lapply(c(0.03, 0.9, 0.8, 0.7), function(p) {
    summary_row("docker", ratio = 0.95, low = 0.93, high = 0.97, p_value = p,
                metric = if (p < 0.5) "copy" else "scale", factors = paste0("p=", p))
  }))
  rows <- compare(rows, small_plan())
  expect_equal(rows$p_adjusted[rows$metric == "copy"], 0.12)
  expect_equal(rows$verdict[rows$metric == "copy"], "open")
  alone <- compare(rows[rows$metric == "copy", ], small_plan())
  expect_equal(alone$verdict, "slower")
})

test_that("the family of comparisons is that of all workloads", {
  rows <- rbind(summary_row("native"),
                summary_row("docker", ratio = 0.9, low = 0.8, high = 0.99, p_value = 0.03),
                summary_row("docker", ratio = 0.9, low = 0.8, high = 1.1, p_value = 0.4,
                            workload = "new-load",
                            metric = "rate"))
  table <- comparison_table(rows, small_plan())
  expect_equal(names(table), COMPARISON_COLUMNS)
  expect_equal(table$p_adjusted, c(0.06, 0.4))
  expect_equal(table$reading, c("open", "open"))
})

test_that("the minimum effect itself is no difference, and a hair more is one", {
  expect_equal(read(0.98, 0.975, 0.985), "open")
  expect_equal(read(0.9799, 0.975, 0.985), "slower")
  expect_equal(read(0.95, 0.90, 1), "open")
  expect_equal(read(0.95, 0.90, 0.9999), "slower")
  expect_equal(read(1, 0.98, 1.02), "equal")
  expect_equal(read(1, 0.9799, 1.02), "open")
})

test_that("the paper says how many sets there were, and why", {
  evidence <- small_evidence(list(summary_row("native")))
  expect_match(read_aloud(precision_text(evidence)), "There are 5 sets of each workload.")
  evidence$plan$precision <- list(min = 5, max = 30, target = 0.05, budget = 1500)
  expect_match(precision_text(evidence), "not available")
  evidence$precision <- list(block = 7, target = 0.05, enough = TRUE, reason = "the target was reached",
                             metrics = 2, reached = 2, workloads = list(stream = list(sets = 9)),
                             widest = list(environment = "native", workload = "stream", metric = "copy",
                                           half_width = 0.034))
  expect_match(read_aloud(precision_text(evidence)), paste(
    "at least 5 sets of each workload.*5.0 %.*as long as 25 minutes.*there were 9 of stream, because the",
    "target was reached; 2 of 2 ratios were within the target, and the widest was .3.4 %"
  ))
  evidence$plan$precision$claims <- TRUE
  expect_match(read_aloud(precision_text(evidence)), paste(
    "for what a set costs, and once all were within that, for published claims that take narrower intervals,",
    "those first that take the least time, in sets of the environments alone that the claim compares, as",
    "long as 25 minutes.*there were 9 of stream, because"
  ))
  evidence$narrow <- data.frame(workload = c("stream", "stream"), repetition = 8:9)
  expect_match(read_aloud(precision_text(evidence)), "there were 9 of stream (2 of them for claims), because",
               fixed = TRUE)
  expect_match(narrow_note(evidence, c("pxz", "stream")),
               "^Some sets of STREAM hold only what a claim compares")
  expect_null(narrow_note(evidence, "pxz"))
  expect_null(narrow_note(updated(evidence, narrow = NULL), "stream"))
  evidence$precision$widest$half_width <- NULL
  expect_match(precision_text(evidence), "no interval")
})

test_that("rows are ordered and named by the plan", {
  rows <- list(summary_row("docker", factors = "order=12000"), summary_row("native", factors = "order=12000"),
               summary_row("native", factors = "order=500"), summary_row("native", metric = "scale"))
  rows <- compare(do.call(rbind, rows), small_plan())
  expect_equal(rows$environment, c("native", "native", "docker", "native"))
  expect_equal(read_aloud(rows$metric_label),
               c("Copy, order 500", "Copy, order 12,000", "Copy, order 12,000", "Scale"))
  expect_equal(rows$series, c(1, 2, 2, 3))
  expect_equal(read_aloud(rows$name[[1]]), "STREAM copy, order 500")
})

test_that("factors are words", {
  expect_equal(read_aloud(factor_text(c("", "clients=40;request_mode=tcp"))),
               c("", ", clients 40, request mode tcp"))
})

test_that("an environment is told by verdicts, with numbers, intervals and pairs", {
  evidence <- small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"),
    summary_row("docker", ratio = 0.95, low = 0.93, high = 0.97),
    summary_row("docker", ratio = 0.999, low = 0.995, high = 1.003, metric = "scale")
  ))
  text <- read_aloud(workload_text(evidence, "stream"))
  expect_match(text, "Native reached copy 10.00 GB/s [9.80, 10.20] and scale", fixed = TRUE)
  expect_match(text, "Slower than native (n = 5 pairs): Docker in copy (95.0 % [93.0, 97.0]).", fixed = TRUE)
  expect_match(text, "Within 2 % of native (n = 5 pairs): Docker in scale (99.9 % [99.5, 100.3]).",
               fixed = TRUE)
})

test_that("a workload of one series is told by verdicts", {
  plan <- small_plan(c(native = "Native", docker = "Docker", `docker-hostnet` = "Docker, host network"))
  evidence <- small_evidence(list(
    summary_row("native"), summary_row("docker", ratio = 1.1, low = 1.05, high = 1.15),
    summary_row("docker-hostnet", ratio = 0.9, low = 0.8, high = 1.1, n = 4)
  ), plan)
  text <- read_aloud(workload_text(evidence, "stream"))
  expect_match(text, "Faster than native (5 pairs): Docker at 110 % [105, 115].", fixed = TRUE)
  expect_match(text, "Docker (host network) at 90 % [80, 110]", fixed = TRUE)
  expect_match(text, "it (4 pairs)", fixed = TRUE)
})

test_that("without native there are levels and no ratios", {
  evidence <- small_evidence(list(summary_row("docker", mean = 12.34, n = 3)))
  text <- read_aloud(workload_text(evidence, "stream"))
  expect_match(text, "Native was not measured", fixed = TRUE)
  expect_match(text, "Docker reached 12.34 GB/s [12.14, 12.54] (mean and 95 % interval, n = 3)", fixed = TRUE)
  expect_match(abstract_text(evidence), "No environment can be compared with native", fixed = TRUE)
  expect_equal(multiplicity_text(evidence), "No ratio has an interval, so that no difference is called.")
})

test_that("without any run nothing is said to be measured", {
  evidence <- small_evidence(plan = small_plan(unavailable = c("native", "docker")))
  text <- abstract_text(evidence)
  expect_match(text, "^Nothing was measured\\.")
  expect_match(text, "Native and Docker are not available on this machine.", fixed = TRUE)
  expect_no_match(text, "ratio")
  expect_equal(paper_title(evidence), "Virtual Machines and Containers: Nothing Measured Yet")
  expect_equal(workload_text(evidence, "stream"), "No run of this workload was measured.")
  expect_equal(names(threats(evidence)), "No results")
})

test_that("with native alone there is no talk of ratios", {
  evidence <- small_evidence(list(summary_row("native")), small_plan(c(native = "Native")))
  expect_equal(paper_title(evidence), "Bare Linux, Measured Again")
  expect_no_match(abstract_text(evidence), "ratio")
  expect_no_match(workload_text(evidence, "stream"), "ratio")
})

test_that("one run has no interval, and nothing is found from it", {
  evidence <- small_evidence(list(summary_row("native", n = 1), summary_row("docker", ratio = 0.5, n = 1)))
  text <- read_aloud(workload_text(evidence, "stream"))
  expect_match(text, "mean without an interval, n = 1", fixed = TRUE)
  expect_match(text, "without an interval (1 pair): Docker at 50.0 %.", fixed = TRUE)
  expect_no_match(read_aloud(abstract_text(evidence)), "slower", fixed = TRUE)
})

test_that("an environment that shares no set with native is named", {
  evidence <- small_evidence(list(summary_row("native"), summary_row("docker")))
  expect_match(workload_text(evidence, "stream"), "Docker shares no set with native", fixed = TRUE)
  expect_match(abstract_text(evidence), "No environment can be compared with native", fixed = TRUE)
})

test_that("the title says what was measured, and that it is partial", {
  stack <- list(list(vm = list()), list(docker = list()))
  vm <- list(layers = stack[1], told = planned_told(stack[1]), label = "KVM", available = TRUE,
             accelerator = "kvm")
  nested <- updated(vm, layers = stack, told = planned_told(stack), label = "Docker in KVM")
  plan <- small_plan()
  plan$environments <- c(plan$environments, list(vm = vm, `vm-docker` = nested))
  title <- function(measured, missing = 0) {
    paper_title(small_evidence(lapply(measured, summary_row), plan, missing = missing))
  }
  expect_equal(title(c("native", "docker", "vm", "vm-docker")),
               "Virtual Machines, Containers and Bare Linux, Measured Again")
  expect_equal(title(c("native", "vm-docker"), 2),
               "Containers in Virtual Machines and Bare Linux, Measured Again (Partial Results)")
  plan$environments$vm$accelerator <- "tcg"
  expect_equal(title(c("native", "vm")), "Emulated Virtual Machines and Bare Linux, Measured Again")
})

test_that("reasons are told without what a step tells its log", {
  expect_equal(in_words(c(
    "its step ended with exit code 1; it said last: {\"warmup\": 1, \"rate\": null} / tool: broken pipe",
    "ended with exit code 1; it said last: {\"a\": 1}", "killed by signal 9", ""
  )), c("its step ended with exit code 1; it said last: tool: broken pipe", "ended with exit code 1",
        "killed by signal 9", ""))
})

test_that("missing runs are listed with their reasons", {
  evidence <- small_evidence(list(summary_row("native"), summary_row("docker")), missing = 3)
  evidence$failed <- c("", "killed_by signal 9", "")
  expect_equal(read_aloud(partial_sentence(evidence)),
               "The results are partial: 3 of 5 planned runs are missing.")
  expect_equal(unlinked(missing_sentences(evidence)),
               "STREAM in Docker, repetitions 11\u201313 (killed_by signal 9).")
  # Environments that lack the same stand together, and others by themselves.
  evidence$cells$environment[4:5] <- "native"
  evidence$cells$repetition[3:5] <- c(11, 11, 12)
  evidence$failed <- c("", "", "")
  expect_equal(unlinked(missing_sentences(evidence)),
               c("STREAM in Docker, repetition 11 (not tried).",
                 "STREAM in Native, repetitions 11, 12 (not tried)."))
  evidence$cells <- evidence$cells[-5, ]
  evidence$failed <- c("", "")
  expect_equal(unlinked(missing_sentences(evidence)),
               "STREAM in Native and Docker, repetition 11 (not tried).")
  evidence$failed <- c("lost", "")
  expect_length(missing_sentences(evidence), 2)
  expect_match(abstract_text(evidence), "The results are partial", fixed = TRUE)
  expect_true("Missing runs" %in% names(threats(evidence)))
})

test_that("threats follow from the data", {
  rows <- list(summary_row("native"), summary_row("docker", ratio = 0.95, low = 0.9, high = 1, n = 4,
                                                  flags = "few-runs;outlier"))
  found <- read_aloud(threats(small_evidence(rows)))
  names(found) <- names(threats(small_evidence(rows)))
  expect_match(found[["Size"]], "The sizes are small", fixed = TRUE)
  expect_no_match(paste(names(found), collapse = " "), "Caches")
  expect_match(found[["Few runs"]], "There are 4 to 5 runs", fixed = TRUE)
  expect_match(found[["Few runs"]], "1 comparison is left open", fixed = TRUE)
  expect_match(found[["Assumptions"]], "outliers in 1", fixed = TRUE)
  expect_match(found[["Noise"]], "a median of 1.0 % of the processor time", fixed = TRUE)
  expect_false("Missing environments" %in% names(found))
})

test_that("arrays are held against four times the cache", {
  plan <- small_plan()
  threat <- function(elements, cache) {
    plan$workloads$stream$parameters$elements <- elements
    plan$machine["cache_bytes"] <- list(cache)
    cache_threat(list(plan = plan))
  }
  expect_null(threat(20000000, 40e6))
  expect_match(threat(19999999, 40e6), "not memory alone", fixed = TRUE)
  expect_match(threat(1666666, 40e6), "in part the cache", fixed = TRUE)
  expect_match(threat(20000000, NULL), "not available", fixed = TRUE)
})

test_that("at full scale nothing is said of small sizes", {
  evidence <- small_evidence(list(summary_row("native", n = 10)), small_plan(scale = "paper"))
  expect_false(any(c("Size", "Few runs") %in% names(threats(evidence))))
  expect_no_match(abstract_text(evidence), "scale", fixed = TRUE)
})
