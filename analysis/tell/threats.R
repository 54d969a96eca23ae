# What may be wrong with the results, as far as the data tell.

#' Threats to the validity of the results
#'
#' @param evidence as from `read_evidence`
#' @return named character vector: heading to text
threats <- function(evidence) {
  if (length(evidence$records) == 0) {
    return(c("No results" = paste("Nothing was measured, so that nothing can be concluded.",
                                  unavailable_sentence(evidence$environments))))
  }
  found <- list(
    "Size" = size_threat(evidence),
    "One machine" = machine_threat(evidence),
    "Emulation" = emulation_threat(evidence),
    "Snapshots" = snapshot_threat(evidence),
    "Noise" = paste(c(steal_text(evidence), load_text(evidence), quiet_threat(evidence)), collapse = " "),
    "Caches" = cache_threat(evidence),
    "Few runs" = runs_threat(evidence),
    "Assumptions" = assumption_threat(evidence),
    "Differences between systems" = core_threat(evidence),
    "Missing runs" = if (evidence$partial) {
      paste(partial_sentence(evidence), "Missing runs are not random where something made them fail:",
            "comparisons rest on the sets that are there.")
    },
    "Missing environments" = if (!all(evidence$environments$available)) {
      paste(unavailable_sentence(evidence$environments), "Nothing here speaks of them.")
    }
  )
  unlist(Filter(Negate(is.null), found))
}

#' That small sizes tell little
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL at the full scale
size_threat <- function(evidence) {
  switch(
    evidence$plan$scale,
    smoke = paste("The sizes are small: a run takes seconds, and much of it passes in caches and in starting",
                  "up.",
                  "They show that everything works, and should not be taken for the performance of a",
                  "full-size run."),
    quick = paste("The sizes are below those of the originals, so that effects that need large memory or",
                  "long runs may not show.")
  )
}

#' That one machine is not all machines
#'
#' @param evidence as from `read_evidence`
#' @return text
machine_threat <- function(evidence) {
  seen <- unique(unlist(lapply(evidence$records, field, "observed", "host", "static", "virtualization")))
  guest <- setdiff(seen, c("none", "bare metal", NOT_AVAILABLE))
  paste(c(
    "All runs come from one machine; another processor, kernel or storage may give other ratios.",
    if (length(guest) > 0) {
      paste0("The host is itself a virtual machine (", listed(guest), "), so that \u201cnative\u201d means ",
             "without any further layer, and not bare metal.")
    },
    if (length(guest) > 0 && any(accelerated_environments(evidence))) {
      "The virtual machines measured here are nested in it, and pay for two layers where bare metal has one."
    }
  ), collapse = " ")
}

#' Which environments are virtual machines with hardware acceleration that were measured
#'
#' @param evidence as from `read_evidence`
#' @return TRUE or FALSE for each environment
accelerated_environments <- function(evidence) {
  evidence$environments$measured > 0 & vapply(unname(evidence$plan$environments), function(entry) {
    has_machine(entry) && is_accelerated(entry)
  }, NA)
}

#' What emulated virtual machines do not tell
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL where none was measured
emulation_threat <- function(evidence) {
  environments <- evidence$environments
  names <- intersect(emulated_environments(evidence$plan), environments$name[environments$measured > 0])
  if (length(names) == 0) {
    return(NULL)
  }
  paste0(
    "Hardware acceleration was not proven on this machine, so that ",
    listed(in_sentence(environment_labels(evidence$plan, names))),
    if (length(names) == 1) " is" else " are", " emulated: QEMU translates the guest\u2019s instructions ",
    "into the host\u2019s while they run. How much slower that makes a program depends on its instructions, ",
    "so that neither the size of a ratio nor the order of the environments carries over to KVM, and no ",
    "claim about KVM is tested by it. What these runs show is that the way from the image through the ",
    "virtual machine to the table works, what emulation costs on this machine, and, between two emulated ",
    "environments, what a layer adds under emulation."
  )
}

#' That a snapshot is not a boot
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL where no virtual machine began from a snapshot
snapshot_threat <- function(evidence) {
  started <- vapply(machine_systems(evidence), function(one) {
    identical(field(one, "system", "vm", "started"), "snapshot")
  }, NA)
  if (any(started)) {
    paste0(linked(fixed(sum(started), 0), "records"), " of ",
           linked(counted(length(started), "virtual machine"), "records"), " began from a ",
           "snapshot of one that had booted before. Such machines share the layout of memory and the state ",
           "of the caches of that one boot, so that their spread may be less than that of independent boots.")
  }
}

#' How busy the host was before the runs
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
load_text <- function(evidence) {
  load <- field_numbers(evidence$records, "observed", "host", "before", "load1")
  if (all(is.na(load))) {
    return("The load before the runs is not available.")
  }
  busiest <- evidence$records[[which.max(load)]]
  paste0("Before a run the load average over one minute was ",
         linked(fixed(stats::median(load, na.rm = TRUE), 2), "records"), " in the median and at most ",
         linked(fixed(max(load, na.rm = TRUE), 2), run_id(busiest)), " (",
         linked(n_is(sum(!is.na(load))), "records"), "); earlier runs of this experiment are part of it.")
}

#' Which arrays are smaller than the rule for memory benchmarks asks for
#'
#' The rule of STREAM asks for arrays of at least four times the last-level cache. A workload has arrays where
#' its parameters are `elements` (of 8 bytes) or `log2` (of the number of words of 8 bytes).
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL where no array is known or all are large enough
#' @source J. D. McCalpin, STREAM's run rules
cache_threat <- function(evidence) {
  cache <- evidence$plan$machine$cache_bytes
  workloads <- evidence$plan$workloads
  size <- vapply(workloads, function(workload) {
    elements <- workload$parameters$elements
    log2 <- workload$parameters$log2
    if (is.numeric(elements)) 8 * elements else if (is.numeric(log2)) 8 * 2^log2 else NA_real_
  }, 0)
  titles <- vapply(workloads, `[[`, "", "title")
  if (all(is.na(size))) {
    return(NULL)
  }
  if (!is.numeric(cache)) {
    return(paste("The size of the last-level cache is not available, so that nobody can tell whether the",
                 "arrays exceed it."))
  }
  small <- which(!is.na(size) & size < 4 * cache)
  if (length(small) == 0) {
    return(NULL)
  }
  paste0("Arrays should be at least four times the last-level cache (", linked(bytes(cache), "plan"),
         " here). ", paste0(titles[small], " has ", linked(bytes(size[small]), "plan"), collapse = "; "),
         ": what is measured is ",
         if (any(size[small] < cache)) "in part the cache" else "not memory alone", ".")
}

#' That intervals of few runs are wide
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL
runs_threat <- function(evidence) {
  rows <- evidence$comparisons
  if (nrow(rows) == 0 || min(rows$n) >= 10) {
    return(NULL)
  }
  open <- sum(ratios(evidence, all = TRUE)$verdict %in% c("open", "unknown"))
  paste(c(
    paste0("There are ", linked(n_text(rows$n), shared_source(rows)),
           if (max(rows$n) == 1) " run" else " runs",
           " of each environment; the originals report ten."),
    if (min(rows$n) < 6) {
      paste0("Below six runs no distribution-free 95", THIN,
             "% interval of a median exists, and none is printed.")
    },
    if (open > 0) {
      paste0(linked(counted(open, "comparison"), "records"), if (open == 1) " is" else " are",
             " left open, which more sets might decide.")
    }
  ), collapse = " ")
}

#' Where the data contradict what the intervals assume
#'
#' @param evidence as from `read_evidence`
#' @return text
assumption_threat <- function(evidence) {
  codes <- strsplit(evidence$comparisons$flags, ";", fixed = TRUE)
  count <- function(code) sum(vapply(codes, function(x) code %in% x, NA))
  found <- c("values that are not normal" = count("non-normal"), "outliers" = count("outlier"),
             "correlated successive runs" = count("autocorrelated"), "drift" = count("drift"))
  found <- found[found > 0]
  paste(
    "Student\u2019s and Fieller\u2019s intervals assume independent runs whose means are about normal.",
    if (length(found) == 0) {
      "No test of this speaks against it, which with few runs says little."
    } else {
      paste0("Of ", linked(fixed(length(codes), 0), "records"), " series, tests find ",
             listed(paste(names(found), "in", linked(fixed(found, 0), "records"))), "; the flags say where.")
    }
  )
}

#' That programs chose other code in some environments
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL where all environments report the same
core_threat <- function(evidence) {
  if (length(evidence$records) == 0) {
    return(NULL)
  }
  environments <- vapply(evidence$records, `[[`, "", "environment")
  rows <- program_rows(evidence, environments)
  inside <- vapply(evidence$records, function(record) {
    observed_text(field(record, "observed", "inside", "cpus"))
  }, "")
  differing <- c(
    if (length(unique(inside)) > 1) {
      paste("CPUs:", linked(grouped_text(inside, environments, evidence), "records"))
    },
    if (!is.null(rows)) {
      cores <- rows[grepl("core type$", rows[, 1]) & grepl(";", rows[, 3], fixed = TRUE), , drop = FALSE]
      paste0(cores[, 1], ": ", linked(cores[, 3], rep("records", nrow(cores))), recycle0 = TRUE)
    }
  )
  if (length(differing) > 0) {
    sentence(paste0("Not every environment saw the same machine, which alone may explain a difference. ",
                    paste(differing, collapse = ". ")))
  }
}
