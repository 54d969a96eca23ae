# Whether the machine was quiet: which runs were flagged as disturbed, by what, and how much.

# What is judged, in words and by the field of the record in which it was seen.
QUIET <- read_contract("quiet")

#' What is judged: how it is called, what it did, and how a value of it is shown
#'
#' @return named list in the order in which disturbances are told: `head` of a row, `cause` (a clause, for the
#'   reader who knows the threshold) and `show`, a function from a number to text
disturbances <- function() {
  heads <- c(busy = "Other processes", steal = "CPU steal", swap = "Swapping", temperature = "Temperature",
             throttled = "Throttling", load = "Load")
  show <- list(
    share = function(x) percent(x),
    bytes = function(x) ifelse(x == 0, paste0("0", NO_BREAK, "B"), bytes(x)),
    degrees = function(x) paste0(quantity(x), NO_BREAK, "\u00b0C"),
    times = function(x) counted(x, "time"),
    number = function(x) fixed(x, 2)
  )
  sapply(names(QUIET), function(name) {
    judged <- QUIET[[name]]
    of <- if (!is.null(judged$of)) paste(" of", judged$of)
    list(head = heads[[name]], cause = paste(judged$says, judged$above),
         show = function(x) paste0(show[[judged$shown]](x), of))
  }, simplify = FALSE)
}

#' The flags of all runs
#'
#' @param records list of records
#' @return data frame, a row for each flag in the order of the records: `run` (place of the record), `what`,
#'   `when`, `value`, `threshold`, and `by`, the busiest of other processes ("" where it is not known)
quiet_flags <- function(records) {
  flags <- lapply(seq_along(records), function(i) {
    do.call(rbind, lapply(field(records[[i]], "quiet", "flags"), function(flag) {
      data.frame(run = i, what = flag$what, when = flag$when, value = as.double(flag$value),
                 threshold = as.double(flag$threshold),
                 by = paste(vapply(flag$by, `[[`, "", "name"), collapse = ", "))
    }))
  })
  none <- data.frame(run = integer(), what = character(), when = character(), value = double(),
                     threshold = double(), by = character())
  found <- do.call(rbind, c(list(none), flags))
  found[found$what %in% names(disturbances()), ]
}

#' Flags in words
#'
#' @param flags rows of `quiet_flags`
#' @return texts such as "other processes: 31.0 % of a CPU during the run (cc1, make)"
flag_text <- function(flags) {
  known <- disturbances()
  vapply(seq_len(nrow(flags)), function(i) {
    flag <- flags[i, ]
    paste0(lower_first(known[[flag$what]]$head), ": ", known[[flag$what]]$show(flag$value), " ", flag$when,
           " the run", if (flag$by != "") paste0(" (", flag$by, ")"))
  }, "")
}

#' What of the disturbances was judged in the runs
#'
#' @param records list of records with the field `quiet`
#' @return list: `limits`, named numbers, the thresholds that all runs have in common; and `unread`, names of
#'   those that no run could read
judged_limits <- function(records) {
  thresholds <- lapply(records, field, "quiet", "thresholds")
  names <- names(disturbances())
  limits <- vapply(names, function(name) {
    own <- unique(lapply(thresholds, function(one) one[[name]]))
    if (length(own) == 1 && is.numeric(own[[1]])) as.double(own[[1]]) else NA_real_
  }, 0)
  unread <- vapply(names, function(name) {
    all(is.na(field_numbers(records, "observed", "host", "before", QUIET[[name]]$field)))
  }, NA)
  list(limits = limits[!is.na(limits)], unread = names[unread])
}

#' Whether the machine was quiet
#'
#' @param evidence as from `read_evidence`
#' @return sentences; NULL where no run was judged
quiet_text <- function(evidence) {
  records <- Filter(function(record) !is.null(record$quiet), evidence$records)
  if (length(records) == 0) {
    return(NULL)
  }
  flags <- quiet_flags(records)
  judged <- judged_limits(records)
  known <- disturbances()[setdiff(names(judged$limits), judged$unread)]
  causes <- vapply(names(known), function(name) {
    paste0(known[[name]]$cause, " ", known[[name]]$show(judged$limits[[name]]),
           if (!"during" %in% QUIET[[name]]$when) " before it")
  }, "")
  paste(c(
    if (length(causes) > 0) {
      paste0("A run is flagged where, shortly before or while it was measured, ", listed(causes, "or"), ".")
    },
    flagged_sentence(flags, records, evidence),
    waited_sentence(records),
    if (length(intersect(judged$unread, names(judged$limits))) > 0) {
      heads <- vapply(disturbances()[intersect(names(judged$limits), judged$unread)], `[[`, "", "head")
      paste0("Not available on this host, and so not judged: ", listed(lower_first(heads)), ".")
    }
  ), collapse = " ")
}

#' How many runs were flagged, and why
#'
#' @param flags as from `quiet_flags`
#' @param records that were judged
#' @param evidence as from `read_evidence`
#' @return one sentence
flagged_sentence <- function(flags, records, evidence) {
  count <- length(unique(flags$run))
  of_all <- linked(counted(length(records), "run"), "records")
  if (count == 0) {
    return(paste0("None of ", of_all, " was flagged."))
  }
  reasons <- vapply(intersect(names(disturbances()), flags$what), function(name) {
    own <- flags[flags$what == name, ]
    worst <- own[which.max(own$value), ]
    record <- records[[worst$run]]
    paste0(lower_first(disturbances()[[name]]$head), " in ",
           linked(fixed(length(unique(own$run)), 0), "records"), " (at most ",
           linked(disturbances()[[name]]$show(worst$value), run_id(record)), ", ",
           evidence$plan$workloads[[record$workload]]$title, " in ",
           in_sentence(environment_labels(evidence$plan, record$environment)), ", repetition ",
           linked(fixed(record$repetition, 0), run_id(record)), ")")
  }, "")
  paste0("Of ", of_all, ", ", linked(fixed(count, 0), "records"), if (count == 1) " was" else " were",
         " flagged: ", paste(reasons, collapse = "; "), ". Flagged runs are kept",
         if (length(sets_measured(evidence)$aside) == 0) {
           " like all others."
         } else {
           "; sets that were measured again for them are set aside."
         })
}

#' How many runs waited until the machine was quiet
#'
#' @param records that were judged
#' @return one sentence, or NULL where none waited
waited_sentence <- function(records) {
  waited <- field_numbers(records, "quiet", "waited_seconds")
  waited[is.na(waited)] <- 0
  if (any(waited > 0)) {
    longest <- records[[which.max(waited)]]
    paste0(linked(counted(sum(waited > 0), "run"), "records"), " waited for the machine to be quiet, for ",
           linked(paste0(quantity(max(waited)), NO_BREAK, "s"), run_id(longest)), " at most.")
  }
}

#' That some runs were disturbed
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where no run was flagged
quiet_threat <- function(evidence) {
  flags <- quiet_flags(evidence$records)
  count <- length(unique(flags$run))
  if (count > 0) {
    heads <- vapply(disturbances()[intersect(names(disturbances()), flags$what)], `[[`, "", "head")
    paste0("While or before they ran, ", linked(counted(count, "run"), "records"), " of ",
           linked(fixed(length(evidence$records), 0), "records"),
           " met more than the declared thresholds of ", listed(lower_first(heads)),
           "; to leave out more of them than a rule said beforehand would be a choice by results.")
  }
}
