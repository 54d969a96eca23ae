# Discussion and conclusion: true for a cost, for equality, for what stays open, and for nothing at all.

question_plan <- function(scale = "paper") {
  plan <- small_plan(scale = scale)
  plan$workloads$stream$question <- "memory"
  plan$workloads$`new-load`$question <- "network"
  plan
}

told_of <- function(..., plan = question_plan()) small_evidence(list(summary_row("native"), ...), plan)
advice <- function(evidence) read_aloud(discussion(evidence)[["What to do"]])
part <- function(evidence, name) read_aloud(unname(discussion(evidence)[name]))

test_that("where a cost is called, it is named with its size, and what is said of the others follows", {
  evidence <- told_of(summary_row("docker", ratio = 0.8, low = 0.75, high = 0.85),
                      summary_row("native", metric = "scale"),
                      summary_row("docker", metric = "scale", ratio = 1, low = 0.99, high = 1.01))
  expect_equal(advice(evidence),
               paste("In containers 1 of 2 ratios was called slower, most for STREAM copy in Docker (80 %",
                     "[75, 85], n = 5): who runs such work should expect that cost; of the others, 1 was",
                     "shown to be within 2 % of native."))
  expect_match(part(evidence, "Why"),
               "1 ratio of processor and memory was called slower (STREAM copy in Docker)", fixed = TRUE)
  expect_match(part(evidence, "How sure"), "2 of 2 ratios were decided (1 slower, 0 faster, 1 within 2 %)",
               fixed = TRUE)
  expect_match(read_aloud(conclusion_text(evidence)),
               "In containers, performance is lost in 1 of 2 ratios, up to 20 %", fixed = TRUE)
})

test_that("where all is equal, nothing is advised against, and nothing is left open", {
  evidence <- told_of(summary_row("docker", ratio = 1, low = 0.99, high = 1.01))
  expect_match(advice(evidence), "the one ratio was shown to be within 2 % of native", fixed = TRUE)
  expect_no_match(part(evidence, "How sure"), "would have been called")
  expect_match(read_aloud(conclusion_text(evidence)), "nothing is lost that exceeds 2 %", fixed = TRUE)
  expect_no_match(conclusion_text(evidence), "more sets")
})

test_that("what is open says how much of a loss it leaves room for", {
  evidence <- told_of(summary_row("docker", ratio = 0.97, low = 0.87, high = 1.05))
  expect_match(advice(evidence), "no cost was called. The 95 % intervals leave room for a loss of up to 13 %",
               fixed = TRUE)
  expect_match(part(evidence, "How sure"), "None of 1 ratio were decided, and 1 was left open", fixed = TRUE)
  expect_match(read_aloud(conclusion_text(evidence)),
               "no loss was found, and none above 13 % is left room for", fixed = TRUE)
  expect_match(conclusion_text(evidence), "more sets, which would decide what is open", fixed = TRUE)
  # Of a time, the inverse; an interval that holds zero bounds nothing.
  plan <- question_plan()
  plan$workloads$stream$metrics$copy$better <- "lower"
  dearer <- told_of(summary_row("docker", ratio = 1.1, low = 0.9, high = 1.25, better = "lower"), plan = plan)
  expect_match(advice(dearer), "up to 20 %", fixed = TRUE)
  unbounded <- told_of(summary_row("docker", ratio = 0.5, low = -0.5, high = 1.5))
  expect_match(advice(unbounded), "do not bound it", fixed = TRUE)
  expect_match(read_aloud(conclusion_text(unbounded)), "none can be excluded", fixed = TRUE)
})

test_that("without an interval, a ratio, a container or a run, there is nothing to advise", {
  expect_match(advice(told_of(summary_row("docker", ratio = 0.9))),
               "nothing can be advised: no ratio has an interval", fixed = TRUE)
  expect_equal(advice(told_of()), "Nothing was compared with native, so that nothing can be advised.")
  expect_false("Why" %in% names(discussion(told_of())))
  empty <- small_evidence()
  expect_equal(names(discussion(empty)), "What to do")
  expect_equal(conclusion_text(empty), "Nothing was measured, and so nothing is concluded.")
  expect_match(variation_text(empty), "cannot be told from these runs", fixed = TRUE)
})

test_that("emulated machines advise nothing about KVM, and are left out of what is sure", {
  plan <- question_plan()
  plan$environments$vm <- planned_environment("vm", "VM (TCG emulation)", "tcg")
  evidence <- told_of(summary_row("vm", ratio = 0.1, low = 0.08, high = 0.12), plan = plan)
  expect_match(advice(evidence), "help nobody to decide about KVM: they reached 10", fixed = TRUE)
  expect_false(any(c("Why", "How sure") %in% names(discussion(evidence))))
  expect_match(conclusion_text(evidence), "a machine on which KVM runs a guest", fixed = TRUE)
})

test_that("network is said to have been tried only where it was", {
  evidence <- told_of(summary_row("native", workload = "new-load", metric = "rate"),
                      summary_row("docker", workload = "new-load", metric = "rate", ratio = 0.7, low = 0.6,
                                  high = 0.8))
  expect_match(part(evidence, "Why"), "1 of 1 ratio was called slower, as expected", fixed = TRUE)
  expect_no_match(part(evidence, "Why"), "were not compared")
  evidence <- told_of(summary_row("docker", ratio = 1, low = 0.99, high = 1.01))
  expect_match(part(evidence, "Why"), "where a cost is expected, were not compared here", fixed = TRUE)
})

test_that("claims that held and did not are named, and the authors' logs are counted", {
  evidence <- told_of(summary_row("docker", ratio = 1, low = 0.99, high = 1.01))
  claims <- read_claims(file.path(project, "published", "claims.json"))
  evidence$publications <- claims$publications
  evidence$claims <- test_claims(claims, empty_table(TIDY_COLUMNS), evidence$plan, 1)
  evidence$claims$verdict[1:2] <- c("reproduced", "contradicted")
  told <- part(evidence, "What is left of 2014")
  expect_match(told, "reproduces \u201cUntuned KVM compresses about 22 % slower than native\u201d.",
               fixed = TRUE)
  expect_match(told, "It contradicts \u201cDocker compresses about as fast as native\u201d.", fixed = TRUE)
  own <- evidence$own$claims
  own <- own[own$publication == "ibm2014" & !own$raw_verdict %in% c("not available", "incomplete"), ]
  against <- sum(grepl("contradicted", own$raw_verdict))
  expect_match(told, sprintf("%d of %d claims of 2014", against, nrow(own)), fixed = TRUE)
})

test_that("the artifact names what was observed, and what was not as that", {
  record <- updated(small_record("docker"), log = list(bytes = 2e6))
  table <- function(...) {
    table <- table_of_artifact(small_evidence(list(summary_row("native"), summary_row("docker")), ...))
    cells <- as.matrix(table$cells)
    stats::setNames(read_aloud(cells[, 2]), cells[, 1])
  }
  before <- table(records = list(small_record("native"), record))
  expect_equal(before[["Containers made by"]], "not available")
  expect_match(before[["Address of the source"]], "^not available")
  expect_equal(before[["Disk"]], "raw logs 2 MB")
  expect_match(before[["Installed by make"]], "docker.io", fixed = TRUE)
  record$system <- list(docker = list(engine = "20.10", containerd = "1.6", runc = "1.1",
                                      storage_driver = "overlay2", cgroup_driver = "cgroupfs"))
  after <- table(records = list(small_record("native"), record))
  expect_equal(after[["Containers made by"]],
               "docker 20.10, containerd 1.6, runc 1.1; storage driver overlay2; control groups by cgroupfs")
  expect_match(after[["Time"]], "^1 minute from the first run to the end of the last")
  seen <- table_of_testbed(small_evidence(list(summary_row("native"), summary_row("docker")),
                                          records = list(small_record("native"), record)))
  expect_true("Containers made by" %in% seen$cells[[1]])
  native <- table_of_testbed(small_evidence(list(summary_row("native"))))
  expect_false("Containers made by" %in% native$cells[[1]])
})

test_that("every reference is cited, and the posts of VMware are among them", {
  text <- paste(readLines(file.path(project, "paper", "report.Rmd")), collapse = "\n")
  code <- unlist(lapply(Sys.glob(file.path(project, "analysis", "paper", "*.R")), readLines))
  code <- paste(code, collapse = "\n")
  keys <- grep("^@", readLines(file.path(project, "paper", "references.bib")), value = TRUE)
  keys <- sub("^@[a-z]+\\{(.*),$", "\\1", keys)
  expect_false(any(duplicated(keys)))
  expect_true(all(c("vmware2014", "vmware2015redis", "vmware2015cloudstone", "vmware2015dvdstore",
                    "vmware2017weathervane") %in% keys))
  for (key in keys) {
    expect_match(paste(text, code), paste0("@", key, "[];, ]"), label = key)
  }
})
