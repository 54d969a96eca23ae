# The virtual machines as they were asked for, as they were made, and as the records of the runs tell of them.

#' The environments of the plan with a virtual machine
#'
#' @param plan as from `read_plan`
#' @return their names
machine_environments <- function(plan) {
  names(plan$environments)[as.logical(vapply(plan$environments, has_machine, NA))]
}

#' What virtual machines are in this project
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where the plan has none
machines_text <- function(evidence) {
  plan <- evidence$plan
  names <- machine_environments(plan)
  if (length(names) == 0) {
    return("")
  }
  profiles <- unique(unlist(lapply(plan$environments[names], function(entry) {
    lapply(entry$layers, function(layer) field(layer[[1]], "profile"))
  })))
  asked <- vapply(plan$vm$profiles[intersect(profiles, names(plan$vm$profiles))], function(profile) {
    text <- setting_text(lapply(as.list(profile), at_scale, scale = plan$scale))
    if (text == "") "nothing beyond the defaults" else text
  }, "")
  paste(c(
    paste("A virtual machine boots the same files from a disk made of the image. It is made anew for every",
          "run, and where it is emulated for every pass over the workloads."),
    if (length(asked) > 0) {
      paste0(if (length(asked) == 1) "Its profile asks for: " else "The profiles ask for: ",
             paste0("\u201c", names(asked), "\u201d: ", linked(asked, "plan"), collapse = "; "), ".")
    }
  ), collapse = " ")
}

#' A setting as it is at a scale
#'
#' @param setting what a profile asks for; one value, or one for each scale
#' @param scale its name
#' @return the value
at_scale <- function(setting, scale) {
  if (is.list(setting) && scale %in% names(setting)) setting[[scale]] else setting
}

#' How hardware acceleration was tried, and with what result
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where the plan tells nothing of it
acceleration_text <- function(evidence) {
  plan <- evidence$plan
  entries <- plan$environments[machine_environments(plan)]
  entries <- Filter(function(entry) is.character(entry[["accelerator"]]), entries)
  outcome <- vapply(entries, function(entry) {
    reason <- c(entry[["accelerator_reason"]], "")[[1]]
    result <- if (is_accelerated(entry)) {
      "hardware acceleration (KVM) was tried and proven"
    } else {
      paste("hardware acceleration was tried and could not be proven, so that the processor is emulated in",
            "software by", accelerator_text(entry[["accelerator"]]))
    }
    paste0(result, if (reason != "") paste0(" (", linked(sub("[.]$", "", reason), "plan"), ")"))
  }, "")
  different <- unique(outcome)
  if (length(different) == 1) {
    return(sentence(paste0("For the virtual machines ", different)))
  }
  labels <- in_sentence(environment_labels(plan, names(entries)))
  paste(vapply(different, function(one) {
    sentence(paste0("For ", listed(labels[outcome == one]), " ", one))
  }, ""), collapse = " ")
}

#' From what the virtual machines began, and how often one was tried again
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where no virtual machine was measured
starts_text <- function(evidence) {
  systems <- machine_systems(evidence)
  if (length(systems) == 0) {
    return("")
  }
  label <- in_sentence(environment_labels(evidence$plan, vapply(systems, `[[`, "", "environment")))
  began <- vapply(systems, function(one) {
    started <- field(one, "system", "vm", "started")
    if (is.character(started)) paste("a", started) else "a state that is not available"
  }, "")
  shown <- in_sentence(environment_labels(evidence$plan, machine_environments(evidence$plan)))
  total <- linked(counted(length(systems), "virtual machine"), "records")
  first <- if (length(unique(began)) == 1) {
    paste0(if (length(systems) == 1) "The " else "All ", total, " began from ", began[[1]], ".")
  } else {
    counts <- vapply(intersect(shown, label), function(name) {
      own <- table(factor(began[label == name], unique(began)))
      own <- own[own > 0]
      paste0(name, " ", listed(paste(linked(fixed(as.vector(own), 0), "records"), "from", names(own))))
    }, "")
    paste0("Of the ", total, ", in ", paste(counts, collapse = "; in "), ".")
  }
  paste(first, attempts_text(systems, label))
}

#' Which virtual machines took more than one attempt
#'
#' @param systems as from `machine_systems`
#' @param label of the environment of each
#' @return one sentence
attempts_text <- function(systems, label) {
  attempts <- field_numbers(systems, "system", "vm", "attempts")
  again <- which(!is.na(attempts) & attempts > 1)
  if (all(is.na(attempts))) {
    return("How many attempts that took is not available.")
  }
  if (length(again) == 0) {
    return("None had to be started a second time.")
  }
  shown <- utils::head(again, 6)
  block <- field_numbers(systems, "block")
  one_by_one <- linked(paste0("block ", block[shown], ": ", fixed(attempts[shown], 0)),
                       vapply(systems[shown], run_id, ""))
  more <- length(again) - length(shown)
  paste0(linked(counted(length(again), "start"), "records"), " took more than one attempt (",
         paste0(label[shown], " in ", one_by_one, collapse = "; "),
         if (more > 0) paste("; and", linked(fixed(more, 0), "records"), "more"), ").")
}

#' What was given to the virtual machines, as rows of the testbed's table
#'
#' @param evidence as from `read_evidence`
#' @return list of rows: `label`, `host` (text) and `values`, a text for each of `systems`; with the attribute
#'   `environments` of the systems; empty where there is none
machine_rows <- function(evidence) {
  systems <- machine_systems(evidence)
  if (length(systems) == 0) {
    return(list())
  }
  machine <- lapply(systems, field, "system", "vm")
  texts <- function(f) vapply(machine, f, "")
  versions <- unique(texts(function(vm) {
    told <- as.list(vm$versions)
    if (length(told) == 0) NOT_AVAILABLE else paste(names(told), unlist(told), collapse = ", ")
  }))
  list(
    list(label = "Accelerator", host = "",
         values = texts(function(vm) accelerator_text(c(vm[["accelerator"]], "")[[1]]))),
    list(label = "Given to it", host = "", values = texts(function(vm) {
      paste0(observed_text(vm$vcpus), " CPUs, ", observed_text(vm$memory_bytes, bytes), " of memory")
    })),
    list(label = "Disk for data", host = "", values = texts(function(vm) disk_text(vm$data_disk))),
    list(label = "Virtual machines made by", host = listed(versions, "or"), values = rep("", length(systems)))
  )
}

#' A disk for data in words
#'
#' @param disk of a record, or NULL
#' @return text such as "ext4 (rw,relatime), 10 GB, on the host's ext4"
disk_text <- function(disk) {
  if (!is.list(disk)) {
    return(NOT_AVAILABLE)
  }
  paste0(observed_text(disk$file_system), " (", gsub(",", ", ", observed_text(disk$options)), "), ",
         observed_text(disk$bytes, bytes), ", on the host\u2019s ", observed_text(disk$host_file_system))
}

#' What the profiles of the virtual machines asked for, and what of it was seen
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where no record tells of a setting
table_of_settings <- function(evidence) {
  found <- settings_seen(machine_systems(evidence))
  if (nrow(found) == 0) {
    return(NULL)
  }
  merged <- merged_settings(found, evidence)
  differ <- any(merged$where != "")
  cells <- merged[c("profile", "name", "asked", "seen", "applied", if (differ) "where")]
  starts <- !duplicated(merged$profile)
  cells$profile <- blank_repeats(cells$profile, starts)
  systems <- linked(counted(length(unique(found$system)), "system"), "records")
  table <- new_table(
    "settings", paste0("What the profiles of the virtual machines asked for, and what the running machine ",
                       "and its guest showed (", systems, ")"),
    c(list(column("Profile"), column("Setting", "wrap"), column("Asked for", "wrap"), column("Seen", "wrap"),
           column("Applied", "wrap", weight = 0.9)),
      if (differ) list(column("Where", "wrap", weight = 0.9))),
    cells, group_starts = starts,
    notes = if (differ) {
      "Where: rows without it hold for all systems of the profile; of others the systems are named."
    } else {
      "Each row holds for all systems of the profile."
    }
  )
  table$sources[, 3] <- "plan"
  table$sources[, 4:5] <- "records"
  table
}

#' The settings that the records tell of
#'
#' @param systems as from `machine_systems`
#' @return data frame, a row for each setting of each system: system (number), environment, block, profile,
#'   name, asked, seen, applied ("yes", or "no" and why)
settings_seen <- function(systems) {
  empty <- data.frame(system = integer(), environment = character(), block = numeric(), profile = character(),
                      name = character(), asked = character(), seen = character(), applied = character())
  rows <- lapply(seq_along(systems), function(i) {
    vm <- field(systems[[i]], "system", "vm")
    do.call(rbind, lapply(vm$settings, function(setting) {
      why <- observed_text(setting$why)
      data.frame(
        system = i, environment = systems[[i]]$environment, block = as.double(systems[[i]]$block),
        profile = observed_text(vm$profile), name = observed_text(setting$name),
        asked = observed_text(setting$asked), seen = observed_text(setting$seen),
        applied = if (isTRUE(setting$applied)) "yes" else paste0("no: ", if (why == NOT_AVAILABLE) {
          "the reason is not available"
        } else {
          why
        })
      )
    }))
  })
  do.call(rbind, c(list(empty), rows))
}

#' Equal settings of several systems as one
#'
#' @param found as from `settings_seen`
#' @param evidence as from `read_evidence`
#' @return data frame: profile, name, asked, seen, applied, and `where`, the systems in which it was so: ""
#'   for all systems of the profile
merged_settings <- function(found, evidence) {
  same <- c("profile", "name", "asked", "seen", "applied")
  first <- !duplicated(found[same])
  key <- function(table) do.call(paste, c(table[same], sep = "\r"))
  merged <- found[first, ]
  merged$where <- vapply(key(merged), function(one) {
    own <- found[key(found) == one, ]
    all <- unique(found[found$profile == own$profile[[1]], c("system", "environment", "block")])
    if (nrow(own) == nrow(all)) "" else systems_text(own, all, evidence)
  }, "")
  place <- match(merged$name, unique(found$name))
  merged <- merged[order(match(merged$profile, unique(found$profile)), place), ]
  rownames(merged) <- NULL
  merged
}

#' Systems by their environments and blocks
#'
#' @param own rows of `settings_seen`, of these systems
#' @param all systems of the profile: environment, block
#' @param evidence as from `read_evidence`
#' @return text such as "KVM; Docker in KVM, blocks 2 and 3"
systems_text <- function(own, all, evidence) {
  names <- intersect(names(evidence$plan$environments), own$environment)
  parts <- vapply(names, function(name) {
    blocks <- own$block[own$environment == name]
    label <- in_sentence(environment_labels(evidence$plan, name))
    whole <- length(blocks) == sum(all$environment == name)
    paste0(label, if (!whole) paste0(", ", if (length(unique(blocks)) == 1) "block " else "blocks ",
                                ranges(unique(blocks))))
  }, "")
  paste(parts, collapse = "; ")
}
