#' A small results folder with virtual machines
machine_plan <- function(accelerator = "kvm", environments = c("native", "vm", "vm-tuned"), workloads = "pxz",
                         repetitions = 3, ...) {
  read_plan(make_machine_results(accelerator, environments, workloads = workloads, repetitions = repetitions,
                                 ...))
}

#' Changes what the records of an environment say of their virtual machine
change_machine <- function(plan, environment, change, blocks = 1:3) {
  for (path in file.path(plan$results, "raw", environment, "pxz", paste0(blocks, ".json"))) {
    record <- jsonlite::read_json(path)
    record$system$vm <- change(record$system$vm)
    write_json(record, path)
  }
}

#' Evidence of virtual machines, without their results
machine_evidence <- function(plan) {
  cells <- read_cells(plan)
  records <- read_records(plan, cells)
  cells$measured <- !vapply(records, is.null, NA)
  records <- records[cells$measured]
  list(plan = plan, cells = cells, records = records, environments = environment_table(plan, cells),
       footprint = footprint_table(records, plan), partial = FALSE)
}

test_that("an environment is known by its layers", {
  plan <- machine_plan(environments = c("native", "docker", "vm", "vm-docker"), repetitions = 1)
  expect_equal(machine_environments(plan), c("vm", "vm-docker"))
  expect_equal(emulated_environments(plan), character())
  plan$environments$vm$accelerator <- "tcg"
  plan$environments$`vm-docker`["accelerator"] <- list(NULL)
  expect_equal(emulated_environments(plan), c("vm", "vm-docker"))
})

test_that("the testbed shows what guests saw beside what the others did", {
  plan <- machine_plan("tcg")
  evidence <- machine_evidence(plan)
  for (i in seq_along(evidence$records)) {
    guest <- startsWith(evidence$records[[i]]$environment, "vm")
    evidence$records[[i]]$observed <- list(inside = list(
      kernel = "6.12", cpu_model = if (guest) "QEMU TCG CPU" else "Xeon", versions = list(gcc = "14")
    ))
  }
  table <- table_of_testbed(evidence)
  expect_equal(table$columns$head, c("Observation", "Host", "Inside, on the host\u2019s kernel",
                                     "Inside the virtual machines"))
  row <- function(label) read_aloud(unlist(table$cells[table$cells[[1]] == label, -1], use.names = FALSE))
  expect_equal(row("Processor"), c("not available", "Xeon", "QEMU TCG CPU"))
  expect_equal(row("Accelerator"), c("", "", "TCG emulation"))
  expect_equal(row("Given to it"), c("", "", "2 CPUs, 21 GB of memory"))
  expect_equal(row("Disk for data"), c("", "", "ext4 (rw, relatime), 10 GB, on the host\u2019s ext4"))
  expect_match(row("Virtual machines made by")[[1]], "qemu 7.2.22, libvirt 9.0.0", fixed = TRUE)
  expect_equal(row("Packages")[2:3], rep("the same versions of 1 package", 2))
})

test_that("settings of a profile are merged, and told apart where blocks differ", {
  plan <- machine_plan()
  table <- table_of_settings(machine_evidence(plan))
  expect_equal(table$columns$head, c("Profile", "Setting", "Asked for", "Seen", "Applied"))
  cells <- as.matrix(table$cells)
  expect_equal(cells[, 1], c("default", "tuned", "", ""))
  expect_equal(cells[4, 2:5], c("Memory in huge pages", "2 MiB", "4 KiB",
                                "no: the host has no huge pages reserved"))
  change_machine(plan, "vm-tuned", function(vm) {
    vm$settings[[3]] <- setting("Memory in huge pages", "2 MiB")
    vm$settings[[2]]["why"] <- list(NULL)
    vm$settings[[2]]$applied <- FALSE
    vm
  }, 2:3)
  table <- table_of_settings(machine_evidence(plan))
  cells <- as.matrix(table$cells)
  expect_equal(table$columns$head[[6]], "Where")
  pinned <- cells[cells[, 2] == "vCPUs pinned one to one", c(5, 6)]
  expect_setequal(paste(pinned[, 1], "|", pinned[, 2]),
                  c("yes | KVM (tuned), block 1",
                    "no: the reason is not available | KVM (tuned), blocks 2, 3"))
  expect_equal(cells[cells[, 2] == "CPU model", 6], "")
})

test_that("how acceleration was tried is told with its result, for each kind of result", {
  said <- function(plan) unlinked(acceleration_text(list(plan = plan)))
  plan <- machine_plan("tcg", repetitions = 1)
  expect_equal(said(plan), paste(
    "For the virtual machines hardware acceleration was tried and could not be proven, so that the processor",
    "is emulated in software by TCG emulation (/dev/kvm is not there, and the processor shows neither vmx",
    "nor svm)."
  ))
  plan$environments$vm[c("accelerator", "accelerator_reason")] <- c("kvm", "it ran.")
  expect_match(said(plan),
               "For VM \\(TCG emulation\\) hardware acceleration \\(KVM\\) was .* \\(it ran\\)\\. For VM")
  plan$environments <- plan$environments["native"]
  expect_equal(said(plan), "")
})

test_that("boots, snapshots and further attempts are counted", {
  plan <- machine_plan()
  expect_equal(read_aloud(starts_text(machine_evidence(plan))), paste(
    "Of the 6 virtual machines, in KVM 3 from a boot; in KVM (tuned) 1 from a boot and 2 from a snapshot.",
    "1 start took more than one attempt (KVM (tuned) in block 2: 2)."
  ))
  expect_match(unlinked(snapshot_threat(machine_evidence(plan))), "^2 of 6")
  change_machine(plan, "vm-tuned", function(vm) updated(vm, started = "boot", attempts = 1))
  expect_equal(read_aloud(starts_text(machine_evidence(plan))),
               "All 6 virtual machines began from a boot. None had to be started a second time.")
  expect_null(snapshot_threat(machine_evidence(plan)))
  expect_equal(starts_text(machine_evidence(machine_plan(environments = "native"))), "")
})

test_that("what emulation does not tell is a threat where there is emulation, and only there", {
  expect_match(emulation_threat(machine_evidence(machine_plan("tcg"))), "no claim about KVM is tested")
  expect_null(emulation_threat(machine_evidence(machine_plan("kvm"))))
  expect_null(emulation_threat(machine_evidence(machine_plan("tcg", "native"))))
  nested <- machine_evidence(machine_plan("kvm"))
  nested$records[[1]]$observed$host$static$virtualization <- "kvm"
  expect_match(machine_threat(nested), "are nested in it", fixed = TRUE)
})

test_that("profiles are told by what they ask for", {
  plan <- machine_plan(repetitions = 1)
  expect_match(read_aloud(machines_text(list(plan = plan))),
               "cpu host-model, pinned no; \u201ctuned\u201d: cpu host-passthrough, pinned yes, huge")
  plan$environments <- plan$environments["native"]
  expect_equal(machines_text(list(plan = plan)), "")
})
