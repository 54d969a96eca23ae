# The table of what it takes to bring an environment up, and what the paper says of it.

#' What it took to bring the environments up
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where no record tells of it
table_of_footprint <- function(evidence) {
  rows <- evidence$footprint
  if (nrow(rows) == 0) {
    return(NULL)
  }
  own <- rows[!duplicated(rows$environment), ]
  with_machines <- any(rows$quantity == "boot_seconds")
  shown <- list(list("up_seconds", "Brought up (s)", 1))
  if (with_machines) {
    shown <- c(shown, list(list("boot_seconds", "Boot (s)", 1),
                           list("host_memory_bytes", "Memory on the host (MB)", 1e6),
                           list("disk_bytes", "Own disks (MB)", 1e6)))
  }
  parts <- lapply(shown, function(one) footprint_cells(rows, own, one[[1]], one[[3]]))
  cells <- do.call(cbind, c(
    list(environment_labels(evidence$plan, own$environment), fixed(own$systems, 0)),
    lapply(parts, `[[`, "cells")
  ))
  marks <- do.call(cbind, c(list(matrix("", nrow(own), 2)), lapply(parts, `[[`, "marks")))
  head <- paste0("95", THIN, "% interval")
  columns <- c(list(column("Environment"), column("n", "right")), unlist(lapply(shown, function(one) {
    list(column("Mean", "right", one[[2]]), column(head, "right", one[[2]]))
  }), recursive = FALSE))
  notes <- c(
    paste("n: systems, one for each run, and of an emulated machine one for each pass over the workloads.",
          "Brought up: until all layers are up."),
    restored_note(evidence),
    if (with_machines) "Boot: until the first command inside has ended.",
    if (with_machines) {
      paste("Memory: what the process of the virtual machine holds on the host after the boot. Own disks:",
            "what they take on the host then, without the image that they stand on.")
    },
    image_disk_note(rows, evidence),
    if (any(cells == NOT_AVAILABLE)) "Not available: no record that is counted tells it.",
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": not recorded of this environment, or no interval from one ",
                                      "system or from equal values.")
  )
  table <- new_table("footprint", paste0("What it took to bring an environment up",
                                         if (evidence$partial) " (partial)"), columns, cells, marks,
                     notes = notes)
  table$sources[, -1] <- environment_list(own$environment)
  table
}

#' Which bring-up times are those of a restore, and which systems they leave out
#'
#' @param evidence as from `read_evidence`
#' @return text; NULL where no virtual machine is among the systems
restored_note <- function(evidence) {
  machines <- Filter(function(record) is.list(field(record, "system", "vm")),
                     single_systems(evidence$records))
  if (length(machines) == 0) {
    return(NULL)
  }
  restored <- !is.na(field_numbers(machines, "system", "vm", "restore_seconds"))
  first <- saved_first(machines)
  if (!any(restored)) {
    return("All virtual machines were booted, so that their times are those of a boot.")
  }
  label <- in_sentence(environment_labels(evidence$plan, vapply(machines, `[[`, "", "environment")))
  left <- vapply(unique(label[first]), function(name) {
    paste(fixed(sum(first & label == name), 0), "of", fixed(sum(label == name), 0), "of", name)
  }, "")
  booted <- sum(!restored)
  paste0(
    "Of ", linked(counted(length(machines), "virtual machine"), "records"), " ",
    linked(fixed(sum(restored & !first), 0), "records"), " came up by a restore from a snapshot",
    if (booted > 0) paste(" and", linked(fixed(booted, 0), "records"), "by a boot"),
    ": the times to bring up are those of restores",
    if (booted > 0) " and boots together" else ", not of boots",
    if (any(first)) {
      paste0("; ", linked(fixed(sum(first), 0), "records"),
             if (sum(first) == 1) " was" else " were",
             " booted and saved for the others first, and ", if (sum(first) == 1) "is" else "are",
             " left out there (", paste(left, collapse = "; "), ")")
    }, "."
  )
}

#' The cells of one quantity
#'
#' @param rows of the footprints
#' @param own one row for each environment
#' @param quantity its name
#' @param scale by which values are divided
#' @return list: `cells` and `marks`, matrices of two columns (mean, interval) with a row for each environment
footprint_cells <- function(rows, own, quantity, scale) {
  rows <- rows[rows$quantity == quantity, ]
  rows <- rows[match(own$environment, rows$environment), ]
  half <- (rows$mean_high - rows$mean_low) / 2 / scale
  decimals <- mapply(decimals_for, half, ifelse(is.na(rows$mean), 0, rows$mean / scale))
  known <- !is.na(rows$n) & rows$n > 0
  mean <- ifelse(known, fixed(rows$mean / scale, decimals), ifelse(is.na(rows$n), EM_DASH, NOT_AVAILABLE))
  within <- or_dash(interval(rows$mean_low / scale, rows$mean_high / scale, decimals))
  fewer <- known & rows$n < own$systems
  list(cells = cbind(mean, within), marks = cbind(ifelse(fewer, paste0("n=", rows$n), ""), ""))
}

#' How much the disk image takes that all virtual machines stand on
#'
#' @param rows of the footprints
#' @param evidence as from `read_evidence`
#' @return text, or NULL where it is not known
image_disk_note <- function(rows, evidence) {
  rows <- rows[rows$quantity == "image_disk_bytes" & rows$n > 0, ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  low <- min(rows$min)
  high <- max(rows$max)
  size <- if (low == high) bytes(low) else paste(bytes(low), "to", bytes(high))
  paste0("The disk image of the virtual machines takes ", linked(size, "records"), " once for all of them (",
         linked(n_is(fixed(sum(rows$n), 0)), "records"), ").")
}
