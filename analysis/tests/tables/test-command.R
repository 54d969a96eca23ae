# The command as a whole, on an experiment with accelerated and emulated machines.

make_environment <- function(label, layers, kinds, emulated = FALSE) {
  told <- lapply(kinds, function(kind) list(kind = kind, title = kind))
  list(label = label, available = TRUE, layers = layers, told = told, emulated = emulated)
}

# Makes a folder of results: eight blocks, in which Docker costs nothing, the machine 10 % and
# gVisor 30 %.
make_folder <- function(scale = "full", vm_emulated = FALSE) {
  folder <- tempfile("results")
  docker <- list(docker = list(network = "bridge"))
  sandbox <- list(docker = list(network = "bridge", runtime = "runsc",
                                sandbox = list(stack = "own")))
  machine <- list(vm = list(profile = "default"))
  environments <- list(
    native = make_environment("Native", list(list(chroot = list())), "bare"),
    docker = make_environment("Docker", list(docker), "container"),
    gvisor = make_environment("gVisor", list(sandbox), "sandbox"),
    vm = make_environment("VM", list(machine), "machine", vm_emulated),
    "vm-docker" = make_environment("Docker in VM", list(machine, docker),
                                   c("machine", "container"), vm_emulated),
    slow = make_environment("VM (emulated)", list(machine), "machine", TRUE)
  )
  triad <- list(label = "Triad", unit = "GB/s", better = "higher")
  cell <- list(steps = list(list(step = "run")), ports = list(), servers = list())
  stream <- list(title = "STREAM", question = "memory", metrics = list(triad = triad),
                 figures = list(), cell = cell)
  plan <- list(scale = scale, machine = list(cpus = 8), environments = environments,
               workloads = list(stream = stream))
  dir.create(file.path(folder, "tidy"), recursive = TRUE)
  jsonlite::write_json(plan, file.path(folder, "plan.json"), auto_unbox = TRUE)
  values <- make_values(native = 10, docker = 10, gvisor = 7, vm = 9, "vm-docker" = 9, slow = 0.5)
  log <- paste0("results/raw/", values$environment, "/stream/", values$repetition, ".log")
  tidy <- data.frame(values[c("environment", "workload", "repetition")],
                     round = values$repetition, order = 1,
                     values[c("metric", "unit", "value")],
                     counts = ifelse(values$repetition == 3, "no", "yes"), log = log)
  utils::write.csv(tidy, file.path(folder, "tidy", "stream.csv"), row.names = FALSE)
  dir.create(file.path(folder, "laps"))
  writeLines("environment,workload,repetition,metric,lap,value",
             file.path(folder, "laps", "stream.csv"))
  # A table of an earlier plan.
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

run_tables <- function(folder) {
  command <- file.path(root, "analysis", "tables.R")
  suppressWarnings(system2("Rscript", c(command, folder), stdout = TRUE, stderr = TRUE))
}

make_tables <- function(folder) {
  output <- run_tables(folder)
  expect_null(attr(output, "status"), info = paste(output, collapse = "\n"))
  read_csv <- function(name) {
    utils::read.csv(file.path(folder, paste0(name, ".csv")), na.strings = "")
  }
  tables <- c("summary", "comparisons", "choices", "emulated", "claims", "blocks", "runs")
  sapply(tables, read_csv, simplify = FALSE)
}

test_that("accelerated machines are a family, and emulated ones a table", {
  tables <- make_tables(make_folder())
  rows <- tables$comparisons
  expect_equal(rows$environment, c("docker", "gvisor", "vm", "vm-docker"))
  expect_equal(rows$family, c("containers", "sandboxes", "machines", "machines"))
  expect_equal(rows$verdict, c("equivalent", rep("different", 3)))
  expect_equal(rows$ratio, c(1, 0.7, 0.9, 0.9), tolerance = 0.01)
  # A block that was set aside does not count, and is among the runs.
  expect_equal(unique(rows$n), 7)
  expect_equal(nrow(tables$runs), 48)
  expect_equal(unique(tables$runs$flags), "steal")
  expect_equal(tables$emulated$environment, "slow")
  expect_equal(tables$emulated$ratio, 0.05, tolerance = 0.01)
  expect_false("slow" %in% c(tables$summary$environment, tables$choices$environment))
  # A machine around Docker is one choice, Docker in the machine another.
  pairs <- paste(tables$choices$reference, tables$choices$environment)
  expect_setequal(pairs, c("docker gvisor", "docker vm-docker", "vm vm-docker"))
})

test_that("a run has the way it was measured, and whether native's was measured otherwise", {
  folder <- make_folder()
  edit_json <- function(path, change) {
    path <- file.path(folder, path)
    jsonlite::write_json(change(jsonlite::read_json(path)), path, auto_unbox = TRUE)
  }
  interleave <- function(environment, repetition, first) {
    path <- file.path("raw", environment, "stream", paste0(repetition, ".json"))
    together <- list(first = first, started = "then")
    edit_json(path, function(record) {
      c(record, list(interleaved = list("other"), together = together))
    })
  }
  for (environment in c("native", "docker", "slow")) interleave(environment, 1, "native")
  # Docker's run of the second block was measured again, together with gVisor's.
  interleave("native", 2, "native")
  for (environment in c("docker", "gvisor")) interleave(environment, 2, "gvisor")
  read_how <- function() {
    runs <- make_tables(folder)$runs
    stats::setNames(runs$how, paste(runs$environment, runs$repetition))
  }
  how <- read_how()
  expected <- c("native 1" = "laps", "docker 1" = "laps", "gvisor 1" = "alone, unlike native",
                "docker 2" = "laps, unlike native", "gvisor 4" = "alone", "slow 4" = "alone")
  expect_equal(how[names(expected)], expected)
  expect_equal(sum(grepl("unlike", how)), 3 + 4)
  edit_json("plan.json", function(plan) {
    plan$workloads$stream$cell$turn <- 0.05
    plan
  })
  expect_equal(read_how(), sub("laps", "slices", how))
})

test_that("factors are columns in the order of their numbers, and laps belong to their values", {
  folder <- make_folder()
  path <- file.path(folder, "tidy", "stream.csv")
  rows <- utils::read.csv(path)
  rows <- do.call(rbind, lapply(c(100, 4, 20), function(number) {
    transform(rows, factor_connections = number, factor_mode = ifelse(number == 4, "a=b;c", ""))
  }))
  utils::write.csv(rows, path, row.names = FALSE)
  laps <- data.frame(environment = "docker", workload = "stream", repetition = 2,
                     metric = "triad", factor_connections = 20, factor_mode = "", lap = 1:3,
                     value = c(5, 7, 6))
  utils::write.csv(laps, file.path(folder, "laps", "stream.csv"), row.names = FALSE)
  tables <- make_tables(folder)
  expect_equal(unique(tables$summary$factor_connections), c(4, 20, 100))
  expect_equal(unique(tables$comparisons$series),
               paste0("STREAM Triad, connections ", c("4, mode a b;c", "20", "100")))
  expect_equal(nrow(tables$comparisons), 3 * 4)
  read <- read_results(folder)$all
  with_laps <- read[lengths(read$laps) > 0, ]
  expect_equal(with_laps$laps, list(c(5, 7, 6)))
  expect_equal(paste(with_laps$environment, with_laps$repetition, with_laps$factor_connections),
               "docker 2 20")
  expect_equal(sum(match_rows(list(where = list(connections = c(4, 20), mode = "none")), read)),
               nrow(read) / 3)
})

test_that("claims about machines are tested where these were accelerated", {
  claims <- make_tables(make_folder())$claims
  expect_true(any(claims$environment %in% "vm"))
  tables <- make_tables(make_folder(vm_emulated = TRUE))
  expect_false(any(tables$claims$environment %in% c("vm", "vm-docker")))
  expect_true("emulation" %in% tables$claims$reason)
  expect_equal(sort(tables$emulated$environment), c("slow", "vm", "vm-docker"))
  expect_equal(tables$comparisons$family, c("containers", "sandboxes"))
})

test_that("every row says whether its size answers a question", {
  tables <- make_tables(make_folder(scale = "tiny"))
  expect_equal(unique(c(tables$summary$valid, tables$comparisons$valid)), "no")
  expect_equal(unique(tables$claims$verdict), "not tested")
})

test_that("a folder without a plan or a value is named", {
  folder <- make_folder()
  unlink(file.path(folder, "tidy", "stream.csv"))
  expect_match(run_tables(folder), "tidy: no value was measured", all = FALSE)
  unlink(file.path(folder, "plan.json"))
  output <- run_tables(folder)
  expect_match(output, "plan.json: missing", all = FALSE)
  expect_equal(attr(output, "status"), 1)
})

test_that("an empty column holds numbers", {
  path <- withr::local_tempfile(lines = c('"n","low","why"', '1,,"one block"'))
  expect_equal(read_table(path, "why"), data.frame(n = 1L, low = NA_real_, why = "one block"))
})

test_that("every script finds its files from a path with a space", {
  folder <- withr::local_tempdir(pattern = "a b")
  file.copy(file.path(root, "analysis"), folder, recursive = TRUE)
  for (name in c("tables.R", "widths.R", "compare.R", "reanalyse.R", "report.R")) {
    script <- shQuote(file.path(folder, "analysis", name))
    output <- suppressWarnings(system2("Rscript", script, stdout = TRUE, stderr = TRUE))
    expect_match(output, paste("usage:", name), all = FALSE)
  }
})
