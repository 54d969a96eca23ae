# Sentences that were not true for some data: each is held to what it says, for data of every kind.

sized_plan <- function(elements = 5e6, log2 = 22, cache = 3e8) {
  plan <- small_plan()
  plan$workloads$stream$parameters$elements <- elements
  plan$workloads$`new-load`$parameters <- list(log2 = log2)
  plan$machine["cache_bytes"] <- list(cache)
  plan
}

test_that("what is said of arrays and caches follows from their sizes", {
  says <- function(...) read_aloud(arrays_text(list(plan = sized_plan(...)), "stream"))
  expect_equal(says(), paste("Its 3 arrays take 40 MB each, 120 MB together, which fits into the last-level",
                             "cache of 300 MB: what is measured may be the cache."))
  expect_match(says(cache = 1e8), "more than the last-level cache of 100 MB, but each of them less than 4")
  expect_match(says(cache = 1e7), "each at least 4 times the last-level cache of 10 MB", fixed = TRUE)
  expect_match(says(cache = NULL), "the size of the last-level cache is not available", fixed = TRUE)
  table <- read_aloud(arrays_text(list(plan = sized_plan(log2 = 30)), "new-load"))
  expect_equal(table, "Its table takes 8.59 GB, at least 4 times the last-level cache of 300 MB.")
  expect_null(arrays_text(list(plan = small_plan()), "new-load"))
  plan <- sized_plan()
  plan$workloads$stream$parameters$systems <- 3
  expect_match(read_aloud(arrays_text(list(plan = plan), "stream")), "9 arrays take 40 MB each, 360 MB")
})

test_that("no declaration of a workload speaks of caches that it cannot know", {
  for (path in Sys.glob(file.path(project, "workloads", "*", "workload.yaml"))) {
    about <- grep("^about:", readLines(path), value = TRUE)
    expect_length(about, 1)
    expect_no_match(about, "than the cache|in memory alone", info = path)
  }
})

test_that("a threat by caches names the workloads whose arrays fit, and those that do not", {
  threat <- function(...) cache_threat(list(plan = sized_plan(...)))
  expect_match(read_aloud(threat()), "All that STREAM (120 MB) and A new load (33.55 MB) touch fits into it",
               fixed = TRUE)
  expect_match(read_aloud(threat(cache = 5e7)), "All that A new load (33.55 MB) touches fits into it",
               fixed = TRUE)
  expect_match(read_aloud(threat(cache = 5e7)), "arrays of STREAM (120 MB) exceed it by less", fixed = TRUE)
  expect_null(threat(cache = 1e6))
})

test_that("environments differ in isolation alone only where nothing else was seen to differ", {
  sentence_of <- function(...) {
    inside <- list(huge_pages = "madvise", memory_bytes = 4e9)
    records <- list(small_record("native", inside = inside),
                    small_record("docker", inside = updated(inside, ...)))
    read_aloud(differences_sentence(small_evidence(records = records)))
  }
  expect_match(sentence_of(), "In nothing else that was observed", fixed = TRUE)
  expect_equal(sentence_of(kernel = "6.12", huge_pages = "always"),
               paste("They differ in more than their isolation, though: as observed, also in kernel and",
                     "transparent huge pages."))
  # What one of them does not tell is no difference.
  expect_match(sentence_of(memory_bytes = "not available"), "In nothing else", fixed = TRUE)
  expect_match(differences_sentence(small_evidence()), "can be told where two were measured", fixed = TRUE)
})

test_that("facts that part the environments alike are told together, in the plan's order", {
  plan <- small_plan(c(native = "Native", docker = "Docker", vm = "KVM"))
  zen <- list(core = "Zen")
  records <- list(small_record("docker", program = zen), small_record("native", program = zen),
                  small_record("vm", inside = list(kernel = "6.12", cpus = 4),
                               program = list(core = "Nehalem")))
  told <- read_aloud(differences_told(small_evidence(plan = plan, records = records)))
  expect_equal(told, paste("Native and Docker saw kernel 6.1, CPUs 2, BLAS kernel of STREAM Zen;",
                           "KVM saw kernel 6.12, CPUs 4, BLAS kernel of STREAM Nehalem."))
})

test_that("a profile is told as it is at the scale that ran", {
  expect_equal(at_scale(list(smoke = "2GiB", quick = "4GiB", paper = "host"), "quick"), "4GiB")
  expect_equal(at_scale(TRUE, "quick"), TRUE)
  plan <- small_plan(c(native = "Native", vm = "KVM"))
  plan$environments$vm <- planned_environment("vm", "KVM", "kvm")
  plan$vm <- list(profiles = list(default = list(memory = list(smoke = "2GiB", quick = "4GiB",
                                                                 paper = "host"))))
  text <- read_aloud(machines_text(small_evidence(plan = plan)))
  expect_match(text, "memory 2GiB.", fixed = TRUE)
  expect_no_match(text, "4GiB")
})

machine_record <- function(block, booted, restored) {
  record <- updated(small_record("vm", block), system = system_facts("vm", block))
  record$system$vm["boot_seconds"] <- list(booted)
  record$system$vm["restore_seconds"] <- list(restored)
  record
}

test_that("times to bring up say that they are restores, and which systems they leave out", {
  plan <- small_plan(c(native = "Native", vm = "KVM"))
  plan$environments$vm <- planned_environment("vm", "KVM", "kvm")
  note <- function(...) read_aloud(restored_note(small_evidence(plan = plan, records = list(...))))
  expect_equal(note(machine_record(1, 70, 3), machine_record(2, NULL, 3), machine_record(3, NULL, 3)),
               paste("Of 3 virtual machines 2 came up by a restore from a snapshot: the times to bring up",
                     "are those of restores, not of boots; 1 was booted and saved for the others first,",
                     "and is left out there (1 of 3 of KVM)."))
  expect_match(note(machine_record(1, 70, NULL), machine_record(2, NULL, 3)),
               "and 1 by a boot: .* together[.]$")
  expect_match(note(machine_record(1, 70, NULL)), "All virtual machines were booted", fixed = TRUE)
  expect_null(restored_note(small_evidence(list(summary_row("native")))))
  whole <- small_evidence(plan = plan, records = list(small_record("native"), machine_record(1, 70, 3),
                                                      machine_record(2, NULL, 3)))
  whole$footprint <- footprint_table(whole$records, plan)
  expect_match(read_aloud(start_lines(whole)), paste(
    "n = 1 of 2\\), restored from a snapshot; to boot anew took 70.00 s \\(n = 1 of 2\\) until the first",
    "command"
  ), all = FALSE)
})

test_that("what a layer adds under emulation is told with its ratios, or not promised", {
  plan <- small_plan(c(native = "Native", vm = "VM", `vm-docker` = "Docker in VM"))
  for (name in c("vm", "vm-docker")) {
    plan$environments[[name]] <- planned_environment(name, plan$environments[[name]]$label, "tcg")
  }
  slow <- function(name) summary_row(name, ratio = 0.1, low = 0.09, high = 0.11)
  evidence <- small_evidence(list(summary_row("native"), slow("vm"), slow("vm-docker")), plan)
  expect_no_match(emulation_threat(evidence), "layer")
  row <- evidence$choices[NA, ][1, ]
  row[c("base", "environment", "to", "better", "reading")] <- c("vm", "vm-docker", "top", "lower", "open")
  row[c("ratio", "ratio_low", "ratio_high", "ratio_n")] <- c(1.25, 1, 2, 3)
  evidence$choices <- row
  expect_match(read_aloud(emulation_threat(evidence)),
               paste("Docker in VM reached 80.0 % of VM (1 metric, 95 % intervals from 50.0 % to 100.0 %,",
                     "n = 3; none called a difference)"), fixed = TRUE)
})

test_that("one is not told as several", {
  expect_equal(c(there(1), there(0), there(2)), c("There is", "There are", "There are"))
  plan <- updated(small_plan(), repetitions = 1)
  expect_equal(read_aloud(precision_text(list(plan = plan))), "There is 1 set of each workload.")
  plan <- updated(small_plan(), repetitions = 9)
  plan$environments$docker$max <- 5
  expect_equal(read_aloud(precision_text(list(plan = plan))), paste(
    "There are 9 sets of each workload. Docker is in 5 of them at most, and decides nothing about",
    "their number."
  ))
  rows <- list(summary_row("native", n = 1), summary_row("docker", n = 1, ratio = 0.9))
  expect_match(read_aloud(threats(small_evidence(rows))[["Few runs"]]), "There is 1 run of", fixed = TRUE)
  rows <- list(summary_row("native"), summary_row("docker", ratio = 0.9, low = 0.8, high = 0.95))
  expect_match(read_aloud(multiplicity_text(small_evidence(rows))),
               "There is 1 comparison with native that has an interval", fixed = TRUE)
})

test_that("an axis is said not to start at zero only where it does not", {
  axis <- function(...) ratio_axis(data.frame(low = c(...)[c(TRUE, FALSE)], high = c(...)[c(FALSE, TRUE)]))
  expect_equal(axis(0.9, 1.1), "Ratio to native; the axis does not start at zero")
  expect_equal(axis(0.0, 1.1), "Ratio to native")
  expect_equal(axis(0.01, 1.1), "Ratio to native")
  expect_equal(axis(0.9, 1.1, 0.5, 2), "Ratio to native; axes differ and do not start at zero")
  expect_equal(axis(0.9, 1.1, 0, 1), "Ratio to native; axes differ and not all start at zero")
  expect_equal(axis(0, 2, 0, 1), "Ratio to native; axes differ")
})

test_that("a claim about Table I has the value that the table prints, the one farthest from native", {
  published <- read_published_ratios(project)
  claims <- read_claims(file.path(project, "published", "claims.json"))
  known <- published$ratios[published$ratios$source == "Table I", ]
  stand_for <- function(name) known$environment %in% c(name, c(kvm_untuned = "kvm")[name])
  for (claim in Filter(function(claim) claim$place == "Table I", claims$claims)) {
    own <- known$workload == claim$workload
    printed <- unlist(lapply(claim$pairs, function(pair) {
      over <- known$ratio[own & stand_for(pair[[2]])]
      known$ratio[own & stand_for(pair[[1]])] / if (length(over) > 0) over else 1
    }))
    farthest <- printed[[which.max(abs(printed - 1))]]
    expect_lt(abs(claim$published$value - farthest), 0.006, label = claim$id)
  }
})

test_that("sockets are asked for by claims that are about them, and by no other of Table I", {
  claims <- read_claims(file.path(project, "published", "claims.json"))$claims
  asks <- vapply(claims, function(claim) claim$place == "Table I" && !is.null(claim$sockets), NA)
  expect_equal(vapply(claims[asks], `[[`, "", "id"), "ibm-linpack-kvm-untuned-worse")
})

test_that("a host is a guest only where that was seen, and title page and abstract say so", {
  of <- function(seen) {
    record <- small_record("native")
    record$observed$host$static["virtualization"] <- list(seen)
    small_evidence(list(summary_row("native")), records = list(record))
  }
  guest <- of("guest of a hypervisor")
  expect_match(read_aloud(dateline(guest)), "on a host that is itself a virtual machine", fixed = TRUE)
  expect_match(read_aloud(abstract_text(guest)), "itself a virtual machine", fixed = TRUE)
  for (seen in list("none seen", "not available", NULL)) {
    said <- paste(dateline(of(seen)), abstract_text(of(seen)), threats(of(seen))[["One machine"]])
    expect_no_match(read_aloud(said), "itself a virtual machine", fixed = TRUE)
  }
})

test_that("every note of a claim is printed, with the claim that was tested and with the one that was not", {
  claims <- read_claims(file.path(project, "published", "claims.json"))
  evidence <- small_evidence(list(summary_row("native")))
  evidence$publications <- claims$publications
  evidence$claims <- test_claims(claims, empty_table(TIDY_COLUMNS), evidence$plan, 1)
  shown <- read_aloud(paste(unlist(table_of_untested(evidence)$cells), collapse = " "))
  notes <- unlist(lapply(claims$claims, `[[`, "note"))
  expect_gte(length(notes), 9)
  for (note in notes) {
    expect_match(shown, note, fixed = TRUE)
  }
  told <- read_aloud(raw_log_notes(evidence))
  expect_length(told, sum(grepl("raw logs", notes)))
  expect_match(told, "0.448 of native, and not the printed 0.83", fixed = TRUE, all = FALSE)
  expect_length(raw_log_notes(small_evidence()), 0)
})

test_that("values of Table I that its authors' logs contradict are marked beside ours", {
  plan <- small_plan()
  names(plan$workloads)[[2]] <- "linpack"
  plan$workloads$linpack$title <- "Linpack"
  table <- table_published(small_evidence(list(summary_row("native")), plan))
  at <- which(table$marks == "a", arr.ind = TRUE)
  expect_equal(unname(unlist(table$cells[at[, "row"], at[, "col"] - 1:0])), c("241.3", "(1.18)"))
  expect_match(read_aloud(table$notes[["a"]]), "they give 130.3 (7.57) GFLOPS, -55 %, n = 10", fixed = TRUE)
  expect_false("a" %in% names(table_published(small_evidence(list(summary_row("native"))))$notes))
})

test_that("a power of ten is no code point in the PDF", {
  expect_equal(latex_escape("10\u2079/s, m\u00b2, 10\u207b\u2076, x\u2081"),
               paste0("10\\textsuperscript{9}/s, m\\textsuperscript{2}, 10\\textsuperscript{\\ensuremath{-}}",
                      "\\textsuperscript{6}, x\\textsubscript{1}"))
})

test_that("how small a run is, follows from the runs", {
  record <- function(...) {
    commands <- Map(function(step, seconds) list(step = step, seconds = seconds), c("warmup", "run", "run"),
                    c(9, ...))
    updated(small_record("native"), commands = unname(commands))
  }
  evidence <- small_evidence(list(summary_row("native")), records = list(record(1, 2), record(0.2, 0.1)))
  expect_match(read_aloud(size_threat(evidence)), "took 1.6 s in the median (0.3 s to 3 s)", fixed = TRUE)
  expect_match(size_threat(small_evidence(list(summary_row("native")))), "^The sizes are small[.] They")
})

test_that("why a machine is emulated is told once, and not with every claim", {
  plan <- small_plan()
  plan$environments$vm <- updated(planned_environment("vm", "VM", "tcg"), accelerator_reason = "no /dev/kvm.")
  because <- c("VM is not proven to be accelerated by hardware: no /dev/kvm", "it is large")
  claims <- data.frame(because = because)
  expect_equal(because_text(claims, list(plan = plan)),
               c("VM is not proven to be accelerated by hardware", "it is large"))
})
