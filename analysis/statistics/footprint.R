# What it takes to bring an environment up: time, and of a virtual machine memory and disk of the host.

#' The quantities of a footprint
#'
#' @return data frame: quantity, unit, and `of_machine`, whether only virtual machines have it
footprint_quantities <- function() {
  data.frame(
    quantity = c("up_seconds", "boot_seconds", "host_memory_bytes", "disk_bytes", "image_disk_bytes"),
    unit = c("s", "s", "B", "B", "B"), of_machine = c(FALSE, TRUE, TRUE, TRUE, TRUE)
  )
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
#' That happens once in a run, and its time is not that of a restored machine.
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
