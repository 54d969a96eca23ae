# The command as a whole, on an experiment with accelerated and emulated machines.

make_environment <- function(label, layers, kinds, emulated = FALSE) {
  descriptions <- lapply(kinds, function(kind) list(kind = kind, title = kind))
  list(label = label, available = TRUE, layers = layers, descriptions = descriptions,
       emulated = emulated)
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
                     round = values$repetition, order = 1, how = "whole",
                     values[c("metric", "unit", "value")],
                     counts = ifelse(values$repetition == 3, "no", "yes"), log = log)
  utils::write.csv(tidy, file.path(folder, "tidy", "stream.csv"), row.names = FALSE)
  dir.create(file.path(folder, "laps"))
  writeLines("environment,workload,repetition,how,metric,lap,value",
             file.path(folder, "laps", "stream.csv"))
  # A table of an earlier plan.
  writeLines("x", file.path(folder, "tidy", "other.csv"))
  cells <- unique(values[c("environment", "workload", "repetition")])
  utils::write.csv(cells, file.path(folder, "plan.csv"), row.names = FALSE, quote = FALSE)
  for (path in sub("log$", "json", sub("^results", folder, log))) {
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    record <- list(workload = "stream", seconds = 4, interference = list(flags = list("steal")),
                   started = "2026-01-02T03:04:05.000Z", ended = "2026-01-02T03:04:09.000Z")
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
  tables <- c("summary", "comparisons", "choices", "emulated", "claims", "blocks", "runs",
              "verdicts")
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
      c(record, list(interleaved = list("other"), together = together, ways = list("whole")))
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
                "docker 2" = "laps", "gvisor 4" = "alone", "slow 4" = "alone")
  expect_equal(how[names(expected)], expected)
  expect_equal(sum(grepl("unlike", how)), 3 + 2)
  # gVisor's run of the second block was taken with Docker's, which native's was not.
  paired <- make_tables(folder)$runs
  paired <- stats::setNames(paired$paired, paste(paired$environment, paired$repetition))
  expect_equal(paired[["docker 1"]], "yes")
  expect_equal(paired[["docker 2"]], "no")
  set_ways <- function(environment, ...) {
    edit_json(file.path("raw", environment, "stream", "1.json"), function(record) {
      record$ways <- list(...)
      record
    })
  }
  set_ways("native", "slices", "whole")
  set_ways("docker", "slices")
  expect_equal(read_how()[c("native 1", "docker 1")],
               c("native 1" = "slices and laps", "docker 1" = "slices"))
  set_ways("native", "whole")
  expect_equal(read_how()[["docker 1"]], "slices, unlike native")
})

test_that("each ratio is of two runs of one kind, and levels are of whole runs", {
  folder <- make_folder()
  path <- file.path(folder, "tidy", "stream.csv")
  rows <- utils::read.csv(path)
  # Slices cost every run a fifth, and each of native's blocks another share of it.
  in_slices <- rows$environment %in% c("native", "docker")
  cost <- 0.8 * (1 + rows$repetition / 100)
  sliced <- transform(rows, value = value * cost, how = "slices")[in_slices, ]
  rows <- rows[rows$environment != "docker", ]
  utils::write.csv(rbind(rows, sliced), path, row.names = FALSE)
  laps <- do.call(rbind, lapply(1:2, function(lap) {
    transform(sliced, lap = lap, value = value * lap)
  }))
  laps <- laps[c("environment", "workload", "repetition", "how", "metric", "lap", "value")]
  whole <- transform(laps[laps$environment == "native", ], how = "whole", value = 10 * lap)
  utils::write.csv(rbind(laps, whole), file.path(folder, "laps", "stream.csv"), row.names = FALSE)
  for (record in Sys.glob(file.path(folder, "raw", "*", "stream", "*.json"))) {
    block <- sub(".json", "", basename(record))
    content <- c(jsonlite::read_json(record), list(together = list(first = block)))
    jsonlite::write_json(content, record, auto_unbox = TRUE)
  }
  expected <- make_tables(make_folder())
  tables <- make_tables(folder)
  expect_equal(tables$comparisons$ratio, expected$comparisons$ratio, tolerance = 1e-6)
  expect_equal(tables$comparisons$robust[1], 1, tolerance = 0.01)
  # A run in slices and a whole one are compared by way of native.
  expect_equal(tables$choices$ratio, expected$choices$ratio, tolerance = 1e-6)
  summary <- tables$summary
  expect_equal(summary$how, ifelse(summary$environment == "docker", "slices", "whole"))
  expect_equal(summary$level, expected$summary$level, tolerance = 1e-6)
  # Without native's slices there is no ratio of slices to whole runs.
  rows <- rbind(rows, sliced[sliced$environment == "docker", ])
  utils::write.csv(rows, path, row.names = FALSE)
  expect_equal(make_tables(folder)$comparisons$environment, c("gvisor", "vm", "vm-docker"))
})

test_that("factors are columns in the order of their numbers, and laps belong to their values", {
  folder <- make_folder()
  path <- file.path(folder, "tidy", "stream.csv")
  rows <- utils::read.csv(path)
  rows <- do.call(rbind, lapply(c(100, 4, 20), function(number) {
    transform(rows, factor_connections = number, factor_mode = ifelse(number == 4, "a=b;c", ""))
  }))
  utils::write.csv(rows, path, row.names = FALSE)
  laps <- data.frame(environment = "docker", workload = "stream", repetition = 2, how = "whole",
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
  expect_equal(sum(is_selected(list(where = list(connections = c(4, 20), mode = "none")), read)),
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
  expect_equal(attr(output, "status"), 3)
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
