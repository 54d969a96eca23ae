#' A record of a system
footprint_record <- function(environment, block, position, ..., accelerator = "kvm",
                             path = paste0(position, ".json")) {
  list(environment = environment, block = block, position = list(actual = position), path = path,
       system = updated(system_facts(environment, block, accelerator), ...))
}

footprint_plan <- function(names = c("native", "docker", "vm")) {
  plan <- small_plan(all_labels("kvm")[names])
  plan$environments <- Map(planned_environment, names, all_labels("kvm")[names], "kvm")
  plan
}

test_that("the unit of a footprint is the system, and not the cell", {
  records <- list(
    footprint_record("native", 1, 2, up_seconds = 0.3), footprint_record("native", 1, 1, up_seconds = 0.2),
    footprint_record("native", 2, 3, up_seconds = 0.4),
    list(environment = "native", position = list(actual = 4))
  )
  expect_equal(vapply(systems_of(records), `[[`, "", "path"), c("1.json", "3.json"))
  table <- footprint_table(records, footprint_plan())
  expect_equal(names(table), names(FOOTPRINT_COLUMNS))
  expect_equal(table$quantity, "up_seconds")
  expect_equal(c(table$systems, table$n, table$mean, table$min, table$max), c(2, 2, 0.3, 0.2, 0.4))
  expect_equal(c(table$mean_low, table$mean_high), unname(interval_of_mean(c(0.2, 0.4))))
  expect_equal(table$records, "1.json;3.json")
})

test_that("equal systems that came up together have a footprint of no single one", {
  records <- list(footprint_record("native", 1, 1, up_seconds = 0.2, parts = 1),
                  footprint_record("native", 1, 2, id = "both", up_seconds = 9, parts = 2),
                  footprint_record("docker", 1, 3, parts = 2))
  table <- footprint_table(records, footprint_plan())
  expect_equal(table$environment, "native")
  expect_equal(c(table$systems, table$max), c(1, 0.2))
  path <- tempfile(fileext = ".csv")
  write_csv(table, path)
  expect_equal(read_footprint(path, c(footprint_plan(), path = "plan.json"), records)$systems, 1)
})

test_that("virtual machines have more to tell, and what is not available is counted as that", {
  records <- lapply(1:3, function(block) footprint_record("vm", block, block))
  records[[2]]$system$vm$host_memory_bytes <- "not available"
  table <- footprint_table(c(records, list(footprint_record("docker", 1, 9))), footprint_plan())
  expect_equal(table$environment, c("docker", rep("vm", 5)))
  at <- function(name) table[table$environment == "vm" & table$quantity == name, ]
  expect_equal(at("boot_seconds")$mean, mean(14 + 1:3 / 10))
  expect_equal(c(at("host_memory_bytes")$systems, at("host_memory_bytes")$n), c(3, 2))
  expect_equal(at("host_memory_bytes")$mean, 5.12e8)
  for (i in 1:3) {
    records[[i]]$system$vm$disk_bytes <- "not available"
  }
  none <- footprint_table(records, footprint_plan())
  none <- none[none$quantity == "disk_bytes", ]
  expect_equal(c(none$systems, none$n), c(3, 0))
  expect_true(all(is.na(none[c("mean", "sd", "mean_low", "min")])))
})

test_that("the time of a restored machine is without that in which it was booted and saved", {
  records <- lapply(1:3, function(block) footprint_record("vm-tuned", block, block, up_seconds = 100 / block))
  for (i in 1:3) {
    records[[i]]$system$vm["restore_seconds"] <- list(4)
    records[[i]]$system$vm["boot_seconds"] <- list(if (i == 1) 90)
  }
  table <- footprint_table(records, footprint_plan("vm-tuned"))
  at <- function(name) table[table$quantity == name, ]
  expect_equal(c(at("up_seconds")$systems, at("up_seconds")$n, at("up_seconds")$max), c(3, 2, 50))
  expect_equal(c(at("boot_seconds")$n, at("boot_seconds")$mean), c(1, 90))
})

test_that("the table shows mean, interval and number, and a dash where nothing is recorded", {
  records <- c(lapply(1:3, function(block) footprint_record("native", block, block)),
               lapply(1:3, function(block) footprint_record("vm", block, 10 + block)))
  records[[5]]$system$vm$host_memory_bytes <- "not available"
  for (i in 4:6) {
    records[[i]]$system$vm$disk_bytes <- "not available"
  }
  evidence <- list(plan = footprint_plan(), footprint = footprint_table(records, footprint_plan()),
                   partial = FALSE)
  table <- table_of_footprint(evidence)
  cells <- as.matrix(table$cells)
  expect_equal(unname(cells[1, ]), c("Native", "3", "0.230", "[0.205,\u00a00.255]", rep(EM_DASH, 6)))
  expect_equal(unname(cells[2, c(1, 2, 5, 9, 10)]), c("KVM", "3", "14.20", NOT_AVAILABLE, EM_DASH))
  expect_equal(table$marks[2, ], c("", "", "", "", "", "", "n=2", "", "", ""))
  expect_true(any(grepl("takes 1.6.GB once for all of them", unlinked(table$notes))))
  lines <- read_aloud(start_lines(evidence))
  expect_equal(lines[[1]], "Native is up in 0.230 s ([0.205, 0.255], n = 3).")
  expect_match(lines[[2]], "^Virtual machines under KVM \\(KVM\\) are up in 16.5")
  only <- list(plan = evidence$plan, footprint = evidence$footprint[1, ], partial = FALSE)
  expect_equal(ncol(table_of_footprint(only)$cells), 4)
  expect_length(start_lines(only), 1)
  none <- list(plan = evidence$plan, footprint = empty_table(FOOTPRINT_COLUMNS), partial = FALSE)
  expect_null(table_of_footprint(none))
  expect_length(start_lines(none), 0)
})

test_that("one system has a time and no interval", {
  evidence <- list(plan = footprint_plan(), partial = FALSE,
                   footprint = footprint_table(list(footprint_record("native", 1, 1)), footprint_plan()))
  expect_equal(unname(as.matrix(table_of_footprint(evidence)$cells)[1, 3:4]), c("0.2200", EM_DASH))
})

test_that("the table holds what the records tell, and one of other systems is refused", {
  path <- make_machine_results("tcg", c("native", "vm"), workloads = c("pxz", "stream"), repetitions = 2)
  plan <- read_plan(path)
  out <- file.path(plan$results, "footprint.csv")
  write_tables(plan, project)
  records <- read_records(plan, read_cells(plan))
  table <- read_footprint(out, plan, records)
  expect_equal(table$systems, rep(2, 6))
  expect_equal(table$mean[1:2], c(0.225, 16.515))
  expect_true(all(file.exists(file.path(dirname(plan$results), strsplit(table$records[[1]], ";")[[1]]))))
  expect_error(read_footprint(out, plan, records[1:3]), "footprint.csv: it counts other systems")
  write_csv(updated(table, environment = "xen"), out)
  expect_error(read_footprint(out, plan, records), "footprint.csv: xen is not in")
  write_csv(table[-1], out)
  expect_error(read_footprint(out, plan, records), "its columns are")
  write_csv(footprint_table(list(), plan), out)
  expect_equal(nrow(read_footprint(out, plan, list())), 0)
})
