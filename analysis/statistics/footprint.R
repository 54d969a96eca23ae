# What it takes to bring an environment up: time, and of a virtual machine memory and disk of the host.

FOOTPRINT_COLUMNS <- c(
  environment = "character", quantity = "character", unit = "character", systems = "integer", n = "integer",
  mean = "numeric", sd = "numeric", mean_low = "numeric", mean_high = "numeric", min = "numeric",
  max = "numeric", records = "character"
)

#' The quantities of a footprint
#'
#' @return data frame: quantity, unit, and `of_machine`, whether only virtual machines have it
footprint_quantities <- function() {
  data.frame(
    quantity = c("up_seconds", "boot_seconds", "host_memory_bytes", "disk_bytes", "image_disk_bytes"),
    unit = c("s", "s", "B", "B", "B"), of_machine = c(FALSE, TRUE, TRUE, TRUE, TRUE)
  )
}

#' The systems that were brought up, each by the record of the first cell that it ran
#'
#' The cells of an environment in a block share one system, so that what it took to bring it up was measured
#' once and not for each cell.
#'
#' @param records list of records
#' @return list of records in the order of measurement, one for each system; records that tell of no system
#'   are left out
systems_of <- function(records) {
  id <- lapply(records, field, "system", "id")
  told <- vapply(id, is.character, NA)
  records <- records[told]
  turn <- order(field_numbers(records, "position", "actual"))
  records <- records[turn]
  records[!duplicated(unlist(id[told])[turn])]
}

#' The systems that were brought up by themselves, not together with equal ones
#'
#' @param records list of records
#' @return list of records, as from `systems_of`
single_systems <- function(records) {
  Filter(function(record) systems_at_once(record) == 1, systems_of(records))
}

#' What it took to bring the environments up
#'
#' @param records list of records, each with its `path`
#' @param plan as from `read_plan`
#' @return data frame with the columns of FOOTPRINT_COLUMNS in the order of the plan's environments.  The unit
#'   is the system; where a quantity was not available of any, `n` is 0 and its numbers are NA.  Several equal
#'   systems that came up together are left out: their time is that of all.
footprint_table <- function(records, plan) {
  systems <- single_systems(records)
  of <- vapply(systems, `[[`, "", "environment")
  rows <- lapply(intersect(names(plan$environments), of), function(name) {
    own <- systems[of == name]
    has_vm <- any(vapply(own, function(one) is.list(field(one, "system", "vm")), NA))
    quantities <- footprint_quantities()
    quantities <- quantities[has_vm | !quantities$of_machine, ]
    do.call(rbind, lapply(seq_len(nrow(quantities)), function(i) {
      footprint_row(name, own, quantities[i, ])
    }))
  })
  do.call(rbind, c(list(empty_table(FOOTPRINT_COLUMNS)), rows))
}

#' Whether a machine was booted and saved before it was restored
#'
#' That happens in the first block alone, and its time is not that of a restored machine.
#'
#' @param systems list of records
#' @return logical vector
saved_first <- function(systems) {
  booted <- field_numbers(systems, "system", "vm", "boot_seconds")
  restored <- field_numbers(systems, "system", "vm", "restore_seconds")
  !is.na(booted) & !is.na(restored)
}

#' One quantity of one environment
#'
#' @param environment its name
#' @param systems its systems, as from `systems_of`
#' @param quantity row of `footprint_quantities`
#' @return data frame of one row
footprint_row <- function(environment, systems, quantity) {
  path <- c("system", if (quantity$of_machine) "vm", quantity$quantity)
  x <- field_numbers(systems, path)
  if (quantity$quantity == "up_seconds") {
    x[saved_first(systems)] <- NA
  }
  paths <- vapply(systems, `[[`, "", "path")[!is.na(x)]
  x <- x[!is.na(x)]
  limits <- interval_of_mean(x)
  known <- function(f) if (length(x) > 0) f(x) else NA_real_
  data.frame(
    environment = environment, quantity = quantity$quantity, unit = quantity$unit, systems = length(systems),
    n = length(x), mean = known(mean), sd = known(stats::sd), mean_low = limits[["low"]],
    mean_high = limits[["high"]], min = known(min), max = known(max), records = paste(paths, collapse = ";")
  )
}

#' The records beside the logs of tidy tables
#'
#' @param plan as from `read_plan`
#' @param tidy rows of the tidy tables
#' @return list of records, each with its `path` as the logs' are given
#' @section Errors: a record is missing or broken
records_of <- function(plan, tidy) {
  lapply(sub("[.]log$", ".json", unique(tidy$log)), function(path) {
    record <- read_json(file.path(dirname(plan$results), path))
    record$path <- path
    record
  })
}

#' The footprints, read
#'
#' @param path of footprint.csv
#' @param plan as from `read_plan`
#' @param records list of records
#' @return data frame with the columns of FOOTPRINT_COLUMNS
#' @section Errors: a broken file; an environment that the plan does not know; other systems than the records'
read_footprint <- function(path, plan, records) {
  table <- read_csv(path, FOOTPRINT_COLUMNS)
  unknown <- setdiff(table$environment, names(plan$environments))
  if (length(unknown) > 0) {
    stop_about(path, unknown[[1]], " is not in ", plan$path)
  }
  there <- table(vapply(single_systems(records), `[[`, "", "environment"))
  own <- table[!duplicated(table$environment), ]
  if (!setequal(own$environment, names(there)) || any(own$systems != there[own$environment])) {
    stop_about(path, "it counts other systems than the records tell of; make it again by ",
               "snakemake --cores 1 --force results/footprint.csv")
  }
  table
}
