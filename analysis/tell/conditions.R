# The state of the host before, during and after the runs.

#' The state of the host before, during and after the runs
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_of_conditions <- function(evidence) {
  records <- evidence$records
  if (length(records) == 0) {
    return(NULL)
  }
  share <- function(x) 100 * x
  gigabytes <- function(x) x / 1e9
  quantities <- list(
    list("Load (1 min)", "load1", identity), list("CPU steal (%)", "steal_share", share),
    list("CPU busy (%)", "busy_share", share), list("Other processes (% of a CPU)", "others_share", share),
    list("Swap used (GB)", "swap_used_bytes", gigabytes),
    list("Swapped in or out (MB)", "swapped_bytes", function(x) x / 1e6),
    list("Temperature (\u00b0C)", "temperature_c", identity),
    list("Throttled (times)", "throttled", identity), list("Frequency (MHz)", "frequency_mhz", identity)
  )
  phases <- c("before", "during", "after")
  rows <- t(vapply(quantities, function(one) {
    c(one[[1]], vapply(phases, function(phase) {
      observed <- lapply(records, field, "observed", "host", phase, one[[2]])
      if (all(vapply(observed, is.null, NA))) {
        return("")
      }
      range_text(one[[3]](field_numbers(records, "observed", "host", phase, one[[2]])))
    }, ""))
  }, character(4)))
  rows <- rows[rowSums(rows[, -1, drop = FALSE] != "") > 0, , drop = FALSE]
  table <- new_table(
    "conditions", paste0("The host before, during and after the runs (",
                         linked(n_is(fixed(length(records), 0)), "records"), ")"),
    list(column("Quantity"), column("Before", "right"), column("During", "right"),
         column("After", "right")), rows,
    notes = paste("Median, and from least to most over the runs; steal is time that a hypervisor gave to",
                  "others, and other processes are those that belong neither to a run nor to its system."),
    wide = FALSE
  )
  table$sources[, 2:4] <- "records"
  table
}

#' Median and range of observations
#'
#' @param x numbers; missing ones are not counted
#' @return text such as "1.5, 0.2 to 3.1", with the count where some are missing
range_text <- function(x) {
  known <- x[!is.na(x)]
  if (length(known) == 0) {
    return(NOT_AVAILABLE)
  }
  decimals <- if (max(abs(known)) >= 100) 0 else if (max(abs(known)) >= 10) 1 else 2
  text <- fixed(stats::median(known), decimals)
  if (min(known) < max(known)) {
    text <- paste0(text, ", ", fixed(min(known), decimals), " to ", fixed(max(known), decimals))
  }
  if (length(known) < length(x)) paste0(text, " (", n_is(length(known)), ")") else text
}

#' How the processor's frequency was governed
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
frequency_text <- function(evidence) {
  values <- function(key) {
    unique(vapply(evidence$records, function(record) {
      observed_text(field(record, "observed", "host", "static", key))
    }, ""))
  }
  governor <- values("governor")
  turbo <- values("turbo")
  if (all(c(governor, turbo) == NOT_AVAILABLE)) {
    return("Neither the frequency governor nor the state of turbo frequencies could be read on this host.")
  }
  paste0("The frequency governor was ", listed(governor, "or"), "; turbo frequencies: ", listed(turbo, "or"),
         ".")
}

#' How much processor time a hypervisor under the host took
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
steal_text <- function(evidence) {
  steal <- field_numbers(evidence$records, "observed", "host", "during", "steal_share")
  if (all(is.na(steal))) {
    return("Steal time during the runs is not available.")
  }
  worst <- evidence$records[[which.max(steal)]]
  if (max(steal, na.rm = TRUE) == 0) {
    return(paste0("No processor time was stolen during the runs (",
                  linked(n_is(sum(!is.na(steal))), "records"), ")."))
  }
  paste0("During the runs a hypervisor under the host took a median of ",
         linked(percent(stats::median(steal, na.rm = TRUE)), "records"),
         " of the processor time, and at most ",
         linked(percent(max(steal, na.rm = TRUE)), run_id(worst)), " (",
         evidence$plan$workloads[[worst$workload]]$title, " in ",
         in_sentence(environment_labels(evidence$plan, worst$environment)),
         ", repetition ", linked(fixed(worst$repetition, 0), run_id(worst)), "; ",
         linked(n_is(sum(!is.na(steal))), "records"), ").")
}
