# The command as a whole, on an experiment with accelerated machines and emulated ones.

made_environment <- function(label, layers, kinds, emulated = FALSE) {
  told <- lapply(kinds, function(kind) list(kind = kind, title = kind))
  list(label = label, available = TRUE, layers = layers, told = told, emulated = emulated)
}

#' An experiment's folder: eight blocks, of which Docker costs nothing, the machine 10 % and gVisor 30 %
made_folder <- function(scale = "full", vm_emulated = FALSE) {
  folder <- tempfile("results")
  docker <- list(docker = list(network = "bridge"))
  sandbox <- list(docker = list(network = "bridge", runtime = "runsc", sandbox = list(stack = "own")))
  machine <- list(vm = list(profile = "default"))
  environments <- list(
    native = made_environment("Native", list(list(chroot = list())), "bare"),
    docker = made_environment("Docker", list(docker), "container"),
    gvisor = made_environment("gVisor", list(sandbox), "sandbox"),
    vm = made_environment("VM", list(machine), "machine", vm_emulated),
    "vm-docker" = made_environment("Docker in VM", list(machine, docker), c("machine", "container"),
                                   vm_emulated),
    slow = made_environment("VM (emulated)", list(machine), "machine", TRUE)
  )
  triad <- list(label = "Triad", unit = "GB/s", better = "higher")
  stream <- list(title = "STREAM", question = "memory", metrics = list(triad = triad), figures = list(),
                 cell = list(steps = list(list(step = "run")), ports = list(), servers = list()))
  plan <- list(scale = scale, machine = list(cpus = 8), environments = environments,
               workloads = list(stream = stream))
  dir.create(file.path(folder, "tidy"), recursive = TRUE)
  jsonlite::write_json(plan, file.path(folder, "plan.json"), auto_unbox = TRUE)
  values <- made_values(native = 10, docker = 10, gvisor = 7, vm = 9, "vm-docker" = 9, slow = 0.5)
  log <- paste0("results/raw/", values$environment, "/stream/", values$repetition, ".log")
  tidy <- data.frame(values[c("environment", "workload", "repetition")], round = values$repetition, order = 1,
                     values[c("metric", "unit", "value", "laps", "factors")], check = "passed",
                     counts = ifelse(values$repetition == 3, "no", "yes"), log = log)
  utils::write.csv(tidy, file.path(folder, "tidy", "stream.csv"), row.names = FALSE)
  # An earlier plan's table, which is not of this one.
  writeLines("x", file.path(folder, "tidy", "other.csv"))
  cells <- unique(values[c("environment", "workload", "repetition")])
  utils::write.csv(cells, file.path(folder, "plan.csv"), row.names = FALSE, quote = FALSE)
  for (path in sub("log$", "json", sub("^results", folder, log))) {
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    record <- list(workload = "stream", seconds = 4, quiet = list(flags = list("steal")))
    jsonlite::write_json(record, path, auto_unbox = TRUE)
  }
  folder
}

run_command <- function(folder) {
  command <- file.path(root, "analysis", "tables.R")
  suppressWarnings(system2("Rscript", c(command, folder), stdout = TRUE, stderr = TRUE))
}

tables_of <- function(folder) {
  done <- run_command(folder)
  expect_null(attr(done, "status"), info = paste(done, collapse = "\n"))
  read <- function(name) utils::read.csv(file.path(folder, paste0(name, ".csv")), na.strings = "")
  names <- c("summary", "comparisons", "choices", "emulated", "claims", "blocks", "runs")
  sapply(names, read, simplify = FALSE)
}

test_that("accelerated machines are a family, and emulated ones a table", {
  found <- tables_of(made_folder())
  rows <- found$comparisons
  expect_equal(rows$environment, c("docker", "gvisor", "vm", "vm-docker"))
  expect_equal(rows$family, c("containers", "sandboxes", "machines", "machines"))
  expect_equal(rows$verdict, c("equivalent", rep("different", 3)))
  expect_equal(rows$ratio, c(1, 0.7, 0.9, 0.9), tolerance = 0.01)
  # A set that was put aside does not count, and is among the runs.
  expect_equal(unique(rows$n), 7)
  expect_equal(nrow(found$runs), 48)
  expect_equal(unique(found$runs$flags), "steal")
  expect_equal(found$emulated$environment, "slow")
  expect_equal(found$emulated$ratio, 0.05, tolerance = 0.01)
  expect_false("slow" %in% c(found$summary$environment, found$choices$environment))
  # A machine around Docker is one choice, Docker in the machine another.
  pairs <- paste(found$choices$reference, found$choices$environment)
  expect_setequal(pairs, c("docker gvisor", "docker vm-docker", "vm vm-docker"))
})

test_that("a run tells how it was taken, and whether native's was taken otherwise", {
  folder <- made_folder()
  edit <- function(path, change) {
    path <- file.path(folder, path)
    jsonlite::write_json(change(jsonlite::read_json(path)), path, auto_unbox = TRUE)
  }
  taken <- function(environment, repetition, first) {
    edit(file.path("raw", environment, "stream", paste0(repetition, ".json")), function(record) {
      c(record, list(interleaved = list("other"), together = list(first = first, started = "then")))
    })
  }
  for (environment in c("native", "docker", "slow")) taken(environment, 1, "native")
  # Of the second block Docker's was measured again, with gVisor's.
  taken("native", 2, "native")
  for (environment in c("docker", "gvisor")) taken(environment, 2, "gvisor")
  how <- function() {
    runs <- tables_of(folder)$runs
    stats::setNames(runs$how, paste(runs$environment, runs$repetition))
  }
  found <- how()
  expect_equal(unname(found[c("native 1", "docker 1", "gvisor 1", "docker 2", "gvisor 4", "slow 4")]),
               c("laps", "laps", "alone, unlike native", "laps, unlike native", "alone", "alone"))
  expect_equal(sum(grepl("unlike", found)), 3 + 4)
  edit("plan.json", function(plan) {
    plan$workloads$stream$cell$turn <- 0.05
    plan
  })
  expect_equal(how(), sub("laps", "slices", found))
})

test_that("claims on machines are tested where they were accelerated", {
  claims <- tables_of(made_folder())$claims
  expect_true(any(claims$environment %in% "vm"))
  emulated <- tables_of(made_folder(vm_emulated = TRUE))
  expect_false(any(emulated$claims$environment %in% c("vm", "vm-docker")))
  expect_true("emulation" %in% emulated$claims$reason)
  expect_equal(sort(emulated$emulated$environment), c("slow", "vm", "vm-docker"))
  expect_equal(emulated$comparisons$family, c("containers", "sandboxes"))
})

test_that("sizes that answer nothing are told in every row", {
  found <- tables_of(made_folder(scale = "tiny"))
  expect_equal(unique(c(found$summary$valid, found$comparisons$valid)), "no")
  expect_equal(unique(found$claims$verdict), "not tested")
})

test_that("a folder without a plan or a value is named", {
  folder <- made_folder()
  unlink(file.path(folder, "tidy", "stream.csv"))
  expect_match(run_command(folder), "tidy: no value was measured", all = FALSE)
  unlink(file.path(folder, "plan.json"))
  done <- run_command(folder)
  expect_match(done, "plan.json: missing", all = FALSE)
  expect_equal(attr(done, "status"), 1)
})

test_that("a column of which nothing is known holds numbers, as that of one block", {
  path <- withr::local_tempfile(lines = c('"n","low","why"', '1,,"one block"'))
  expect_equal(read_table(path, "why"), data.frame(n = 1L, low = NA_real_, why = "one block"))
})
