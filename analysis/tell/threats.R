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
    "One machine" = if (length(measured_nodes(evidence)) < 2) machine_threat(evidence),
    "Nodes" = if (length(measured_nodes(evidence)) > 1) {
      paste(c(machine_threat(evidence), node_threat(evidence)), collapse = " ")
    },
    "Emulation" = emulation_threat(evidence),
    "Snapshots" = snapshot_threat(evidence),
    "Noise" = paste(c(steal_text(evidence), load_text(evidence), quiet_threat(evidence)), collapse = " "),
    "Caches" = cache_threat(evidence),
    "Few runs" = runs_threat(evidence),
    "Assumptions" = assumption_threat(evidence),
    "Differences between systems" = difference_threat(evidence),
    "Missing runs" = if (evidence$partial) {
      paste(partial_sentence(evidence), "Missing runs are not random where something made them fail:",
            "comparisons rest on the sets that are there.")
    },
    "What could not be done" = if (NROW(evidence$unable) > 0) {
      paste(c(unable_sentences(evidence), "No ratio speaks of that: what is compared is what works."),
            collapse = " ")
    },
    "What was not asked for" = left_out_sentence(evidence),
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
    smoke = paste0("The sizes are small", run_seconds_text(evidence), ". They show that everything works, ",
                   "and should not be taken for the performance of a full-size run."),
    quick = paste("The sizes are below those of the originals, so that effects that need large memory or",
                  "long runs may not show.")
  )
}

#' How long the runs measured
#'
#' @param evidence as from `read_evidence`
#' @return text that begins with a colon; "" where no record tells it
run_seconds_text <- function(evidence) {
  seconds <- unlist(lapply(evidence$records, function(record) {
    own <- Filter(function(command) identical(command$step, "run"), record$commands)
    told <- unlist(lapply(own, `[[`, "seconds"))
    if (length(told) > 0) sum(told)
  }))
  if (length(seconds) == 0) {
    return("")
  }
  of <- function(x) linked(paste0(quantity(signif(x, 2)), NO_BREAK, "s"), "records")
  paste0(": what is measured of a run took ", of(stats::median(seconds)), " in the median (",
         of(min(seconds)), " to ", of(max(seconds)), ")")
}

#' That one machine is not all machines
#'
#' @param evidence as from `read_evidence`
#' @return text
machine_threat <- function(evidence) {
  guest <- host_as_guest(evidence)
  paste(c(
    paste0("All runs come from ", measured_machines_text(evidence),
           "; another processor, kernel or storage may give other ratios."),
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
    "virtual machine to the table works, and what emulation costs on this machine.",
    emulated_layers_text(evidence)
  )
}

#' What a layer adds under emulation
#'
#' @param evidence as from `read_evidence`
#' @return text that begins with a space; "" where no two emulated environments differ in a layer alone
emulated_layers_text <- function(evidence) {
  emulated <- emulated_environments(evidence$plan)
  rows <- evidence$choices
  rows <- rows[rows$base %in% emulated & rows$environment %in% emulated & rows$to %in% "top" &
                 !is.na(rows$ratio), ]
  if (NROW(rows) == 0) {
    return("")
  }
  rows[c("ratio", "ratio_low", "ratio_high")] <- performance_of(rows)
  pairs <- split(rows, factor(paste(rows$environment, rows$base), unique(paste(rows$environment, rows$base))))
  told <- vapply(pairs, function(own) {
    labels <- in_sentence(environment_labels(evidence$plan, c(own$environment[[1]], own$base[[1]])))
    called <- sum(own$reading %in% c("slower", "faster"))
    paste0(labels[[1]], " reached ", linked(span_text(own$ratio), "records"), " of ", labels[[2]], " (",
           linked(counted(nrow(own), "metric"), "records"),
           if (any(!is.na(own$ratio_low))) {
             paste0(", 95", THIN, "% intervals from ",
                    linked(percent(min(own$ratio_low, na.rm = TRUE)), "records"), " to ",
                    linked(percent(max(own$ratio_high, na.rm = TRUE)), "records"))
           },
           ", ", linked(n_is(n_text(own$ratio_n)), "records"), "; ",
           if (called == 0) "none" else fixed(called, 0), " called a difference)")
  }, "")
  paste0(" Between two emulated environments a layer can be told from the emulation: ", listed(told), ".")
}

#' The span of ratios
#'
#' @param ratio numbers
#' @return text such as "95.0 % to 101.2 %", or one value where they agree
span_text <- function(ratio) {
  ends <- unique(percent(range(ratio)))
  paste(ends, collapse = " to ")
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
#' @param evidence as from `read_evidence`
#' @return text, or NULL where no array is known or all are large enough
#' @source J. D. McCalpin, STREAM's run rules
cache_threat <- function(evidence) {
  found <- planned_arrays(evidence$plan)
  if (nrow(found) > 0 && is.na(found$cache[[1]])) {
    return(paste("The size of the last-level cache is not available, so that nobody can tell whether the",
                 "arrays exceed it."))
  }
  found <- found[found$each < CACHES_PER_ARRAY * found$cache, ]
  if (nrow(found) == 0) {
    return(NULL)
  }
  total <- found$arrays * found$each
  fits <- total <= found$cache
  named <- function(rows) listed(paste0(found$title[rows], " (", linked(bytes(total[rows]), "plan"), ")"))
  paste(c(
    paste0("Memory is measured where each array is at least four times the last-level cache (",
           linked(bytes(found$cache[[1]]), "plan"), " here)."),
    if (any(fits)) {
      paste0("All that ", named(fits), if (sum(fits) == 1) " touches" else " touch",
             " fits into it: what is measured is in part the cache, and environments may differ in it that ",
             "do not differ in memory.")
    },
    if (any(!fits)) {
      paste0("The arrays of ", named(!fits), " exceed it by less: what is measured is not memory alone.")
    }
  ), collapse = " ")
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
    paste0(there(max(rows$n)), " ", linked(n_text(rows$n), shared_source(rows)),
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

#' That environments differ in more than their isolation
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL where nothing else was seen to differ
difference_threat <- function(evidence) {
  found <- differences_told(evidence)
  if (length(found) > 0) {
    paste(c(paste("The environments differ in more than their isolation, which alone may explain that one is",
                  "faster."), found), collapse = " ")
  }
}
