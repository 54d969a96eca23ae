row_of <- function(table, label) {
  cells <- as.matrix(table$cells)
  read_aloud(unname(cells[cells[, 1] == label, -1]))
}

three <- c(native = "Native", docker = "Docker", vm = "KVM, tuned")

test_that("one value stands for all environments that agree", {
  evidence <- small_evidence(plan = small_plan(three))
  of <- function(values, environments = c("native", "docker", "vm")) {
    grouped_text(values, environments, evidence)
  }
  expect_equal(of(c("2", "2", "2")), "2")
  expect_equal(of(c("2", "2", "4")), "2 (Native, Docker); 4 (KVM (tuned))")
  expect_equal(of(c("2", "3"), c("vm", "vm")), "2 or 3")
  expect_equal(of(as.character(1:5), rep("vm", 5)), "5 different values")
  expect_equal(of(character(), character()), "not available")
})

test_that("a large group is told as all others, behind the small ones", {
  plan <- small_plan(stats::setNames(LETTERS[1:5], c("native", "b", "c", "d", "e")))
  evidence <- small_evidence(plan = plan)
  expect_equal(grouped_text(c("1", "1", "1", "2", "1"), names(plan$environments), evidence),
               "2 (D); 1 (all others)")
})

test_that("differences between environments are seen, from the table to the threats", {
  records <- list(small_record("native", program = list(tool = "lin", core = "Haswell")),
                  small_record("docker", program = list(tool = "lin", core = "Prescott"),
                               inside = list(cpus = 4)))
  evidence <- small_evidence(records = records)
  table <- table_of_testbed(evidence)
  expect_equal(row_of(table, "CPUs"), c("not available", "2 (Native); 4 (Docker)"))
  expect_equal(row_of(table, "Kernel"), c("6.1", "6.1"))
  expect_equal(row_of(table, "STREAM: BLAS core type"), c("", "Haswell (Native); Prescott (Docker)"))
  expect_match(unlinked(threats(evidence)[["Differences between systems"]]),
               "Docker saw CPUs 4, BLAS kernel of STREAM Prescott", fixed = TRUE)
})

test_that("environments that agree are no threat", {
  records <- list(small_record("native", program = list(tool = "lin", core = "Haswell")),
                  small_record("docker", program = list(tool = "lin", core = "Haswell")))
  expect_false("Differences between systems" %in% names(threats(small_evidence(records = records))))
})

test_that("what was not observed is not available", {
  records <- list(small_record("native", inside = list(os = "not available", memory_bytes = 4.1e9)))
  table <- table_of_testbed(small_evidence(records = records))
  expect_equal(row_of(table, "Operating system"), c("not available", "not available"))
  expect_equal(row_of(table, "Memory"), c("not available", "4.1 GB"))
  expect_equal(observed_text(NULL), "not available")
  expect_equal(observed_text(list()), "not available")
})

test_that("processors are shown with their topology where it is known", {
  expect_equal(read_aloud(cpus_text(list(cpus = 32, sockets = 2, cores_per_socket = 8,
                                         threads_per_core = 2))),
               "32 (2 sockets, 8 cores each, 2 threads each)")
  expect_equal(cpus_text(list(cpus = 2, sockets = "not available")), "2")
  expect_equal(cpus_text(list(cpus = "not available")), "not available")
})

test_that("identifiers of single runs are left out of control groups", {
  records <- lapply(1:2, function(i) {
    small_record("native", i, inside = list(cgroup = paste0("/strata/", strrep(i, 2), strrep("0a", 20))))
  })
  expect_equal(row_of(table_of_testbed(small_evidence(records = records)), "Control group")[[2]],
               "/strata/\u2026")
})

test_that("packages are counted where all runs agree, and named where not", {
  seen <- function(version) list(versions = list(gcc = "14", libc6 = version))
  records <- list(small_record("native", inside = seen("2.41")),
                  small_record("docker", inside = seen("2.36")))
  table <- table_of_testbed(small_evidence(records = records))
  expect_equal(row_of(table, "Packages")[[2]], "the same versions of 1 package")
  expect_equal(row_of(table, "Package libc6")[[2]], "2.41 (Native); 2.36 (Docker)")
})

test_that("flaws are counted by their state", {
  expect_equal(vulnerabilities_text(list(a = "Not affected", b = "Mitigation: x", c = "Vulnerable", d = "?")),
               "1 not affected, 1 mitigated, 1 vulnerable, 1 other; of 4 that the kernel knows")
  expect_equal(vulnerabilities_text("not available"), "not available")
  expect_equal(vulnerabilities_text(NULL), "not available")
})

test_that("conditions have median, range and number", {
  expect_equal(read_aloud(range_text(c(0.5, 1, 3))), "1.00, 0.50 to 3.00")
  expect_equal(range_text(c(0, 0)), "0.00")
  expect_equal(range_text(c(NA, NA)), "not available")
  expect_equal(read_aloud(range_text(c(2300, 2400, NA))), "2,350, 2,300 to 2,400 (n = 2)")
})

test_that("steal is told with its worst run", {
  records <- list(small_record("native"), small_record("docker", 2, steal = 0.125))
  expect_match(read_aloud(steal_text(small_evidence(records = records))),
               "at most 12.5 % (STREAM in Docker, repetition 2; n = 2)", fixed = TRUE)
  none <- small_evidence(records = list(small_record("native", steal = 0)))
  expect_equal(read_aloud(steal_text(none)), "No processor time was stolen during the runs (n = 1).")
  unknown <- small_evidence(records = list(small_record("native", steal = "not available")))
  expect_equal(steal_text(unknown), "Steal time during the runs is not available.")
})

test_that("what was measured on an emulated host is marked, also where only one run was", {
  of <- function(...) {
    small_evidence(list(summary_row("native")), records = lapply(list(...), function(machine) {
      record <- small_record("native")
      record$observed$host$static["machine"] <- list(machine)
      record
    }))
  }
  expect_equal(host_mark(of("Standard PC", NULL, NOT_AVAILABLE)), "")
  expect_equal(host_mark(small_evidence()), "")
  expect_match(host_mark(of("Standard PC", HOSTS$emulated[[1]])), "no result", fixed = TRUE)
})
