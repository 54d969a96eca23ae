# What a reader would do with the results, why they are so, how sure that is, and what is left of 2014.

# The heading of what is left of the publications, which is the last.
CLAIMS_LEFT <- "What is left of 2014"

#' The discussion
#'
#' @param evidence as from `read_evidence`
#' @return named character vector: heading to text
discussion <- function(evidence) {
  rows <- ratios(evidence)
  found <- list(
    "What to do" = advice_text(rows, evidence),
    "Why" = reasons_text(rows, evidence),
    "How sure" = certainty_text(rows, evidence)
  )
  found[[CLAIMS_LEFT]] <- left_text(evidence)
  unlist(Filter(Negate(is.null), found))
}

#' What a reader would do with the ratios
#'
#' @param rows of the comparisons that have a ratio
#' @param evidence as from `read_evidence`
#' @return text
advice_text <- function(rows, evidence) {
  if (nrow(rows) == 0) {
    return("Nothing was compared with native, so that nothing can be advised.")
  }
  families <- families_of(evidence$plan)
  of <- families$family[match(rows$environment, families$environment)]
  present <- intersect(unique(families$family), of)
  paste(vapply(present, function(family) {
    own <- rows[of == family, ]
    if (all(own$environment %in% emulated_environments(evidence$plan))) {
      emulated_advice(own)
    } else {
      family_advice(own, lower_first(family))
    }
  }, ""), collapse = " ")
}

#' What a reader would do with a family of environments
#'
#' @param rows of the comparisons that have a ratio
#' @param family its name within a sentence
#' @return text
family_advice <- function(rows, family) {
  performance <- performance_of(rows)
  count <- function(verdicts) sum(rows$verdict %in% verdicts)
  all <- nrow(rows)
  slower <- which(rows$verdict == "slower")
  if (length(slower) > 0) {
    worst <- rows[slower[[which.min(performance$ratio[slower])]], ]
    rest <- c(if (count("equal") > 0) {
      paste(fixed(count("equal"), 0), were(count("equal")), "shown to be within", percent(MINIMUM_EFFECT, 0),
            "of native")
    }, if (count("faster") > 0) paste(fixed(count("faster"), 0), were(count("faster")), "called faster"),
    if (count(c("open", "unknown")) > 0) {
      paste(fixed(count(c("open", "unknown")), 0), were(count(c("open", "unknown"))), "left open")
    })
    return(paste0("In ", family, " ", linked(fixed(length(slower), 0), shared_source(rows[slower, ])), " of ",
                  linked(counted(all, "ratio"), shared_source(rows)), " ", were(length(slower)),
                  " called slower, most ",
                  worst_name(worst), " (", ratio_text(worst), "): who runs such work should expect that ",
                  "cost", if (length(rest) > 0) paste0("; of the others, ", listed(rest)), "."))
  }
  if (count(c("equal", "faster")) == all) {
    return(paste0("In ", family, " no work measured here costs anything that would matter: ",
                  if (count("faster") == 0) "" else "it is as fast or faster in ",
                  if (all == 1) "the one ratio" else paste("all", linked(counted(all, "ratio"),
                                                                         shared_source(rows))),
                  if (count("faster") == 0) {
                    paste0(" ", were(all), " shown to be within ",
                           percent(MINIMUM_EFFECT, 0), " of native")
                  }, "."))
  }
  bounded <- which(!is.na(performance$low))
  if (length(bounded) == 0) {
    return(paste0("In ", family, " nothing can be advised: no ratio has an interval."))
  }
  worst <- bounded[[which.min(performance$low[bounded])]]
  loss <- 1 - performance$low[[worst]]
  open <- rows[!is.na(rows$more_sets), ]
  paste0(
    "In ", family, " no cost was called",
    if (count("faster") > 0) paste(", and", fixed(count("faster"), 0), "of", counted(all, "ratio"), "faster"),
    ". ", room_sentence(loss, rows, worst, length(bounded)),
    " Who can bear that may use them as native",
    if (nrow(open) > 0) {
      longest <- open[which.max(open$more_sets), ]
      paste0("; who cannot has to measure on: ", linked(sets_text(longest), source_id(longest)),
             " would decide the ratio that takes most")
    } else {
      "; who cannot has to measure on"
    }, "."
  )
}

#' What a count asks for
#'
#' @param n count
#' @return "was" or "were"
were <- function(n) {
  if (n == 1) "was" else "were"
}

#' How much the intervals leave room for
#'
#' @param loss the largest, as a share of native
#' @param rows of the comparisons
#' @param worst the row that leaves most room
#' @param bounded how many rows have an interval
#' @return one sentence
room_sentence <- function(loss, rows, worst, bounded) {
  whose <- if (bounded == nrow(rows)) "" else " that there are"
  name <- paste0("95", THIN, "% intervals", whose)
  if (loss <= 0) {
    return(paste0("The ", name, " leave no room for one."))
  }
  if (loss >= 1) {
    return(paste0("The ", name, " do not bound it, least ", worst_name(rows[worst, ]), "."))
  }
  paste0("The ", name, " leave room for a loss of up to ",
         linked(rough_percent(loss), source_id(rows[worst, ])), " (", worst_name(rows[worst, ]), ").")
}

#' Where a ratio was found
#'
#' @param row of the comparisons
#' @return text such as "in STREAM copy in Docker"
worst_name <- function(row) {
  paste("for", row$name, "in", in_sentence(row$environment_label))
}

#' What a reader would do with emulated machines
#'
#' @param rows of the comparisons that have a ratio
#' @return text
emulated_advice <- function(rows) {
  told <- if (nrow(rows) == 1) performance_text(rows) else performance_range(rows)
  paste0("The emulated machines help nobody to decide about KVM: they reached ", told, ", which is what it ",
         "costs here to run a machine without acceleration.")
}

#' Why the ratios are as they are, as far as that is known
#'
#' @param rows of the comparisons that have a ratio
#' @param evidence as from `read_evidence`
#' @return text; NULL where no container, sandbox or accelerated machine was compared
reasons_text <- function(rows, evidence) {
  kinds <- vapply(evidence$plan$environments[unique(rows$environment)], kind_of, "")
  emulated <- names(kinds) %in% emulated_environments(evidence$plan)
  machines <- any(grepl("virtual machines", kinds) & !emulated)
  text <- c(
    if (any(kinds == "containers")) {
      c(paste("A container runs on the host\u2019s kernel: its instructions and its accesses to memory go",
              "the way that they go natively, and only calls into the kernel, packets over a bridge with",
              "address translation, and files on a layered file system go a longer one. So a cost is",
              "expected in network and storage, and none in processor and memory."),
        expectation_text(rows[rows$environment %in% names(kinds)[kinds == "containers"], ], evidence))
    },
    if (any(kinds == "sandboxes")) {
      paste("A sandbox has a kernel of its own, which is a program of the host: instructions and accesses to",
            "memory go the way that they go natively, and every call into the kernel, and so each packet and",
            "each file, goes through that program. So a cost is expected in network, storage and whatever",
            "starts or waits much, and little of one in processor and memory.")
    },
    if (machines) {
      paste("A virtual machine under KVM runs its instructions on the processor as well, but translates each",
            "address of memory twice, leaves the guest for most of what its devices do, and has a kernel of",
            "its own. So a cost is expected where memory is accessed at random and where much is sent or",
            "stored.")
    }
  )
  if (length(text) > 0) paste(text, collapse = " ")
}

#' Whether containers cost where that is not expected
#'
#' @param rows of the comparisons that have a ratio, of containers
#' @param evidence as from `read_evidence`
#' @return text; NULL where the plan does not tell what its workloads ask
expectation_text <- function(rows, evidence) {
  asked <- questions_of(evidence$plan)
  workloads <- function(questions) asked$workload[asked$question %in% questions]
  still <- rows[rows$workload %in% workloads(c("processor", "memory")), ]
  moving <- rows[rows$workload %in% workloads(c("network", "storage", "databases")), ]
  costly <- still[still$verdict == "slower", ]
  if (nrow(still) + nrow(moving) == 0) {
    return(NULL)
  }
  paste(c(
    if (nrow(costly) > 0) {
      paste0("Against that, ", linked(counted(nrow(costly), "ratio"), shared_source(costly)),
             " of processor and memory ", were(nrow(costly)), " called slower (",
             listed(unique(paste(costly$name, "in", in_sentence(costly$environment_label)))),
             "); this is not explained here.")
    } else if (nrow(still) > 0) {
      "No cost in processor or memory was called here, which does not speak against it."
    },
    if (nrow(moving) == 0) {
      "Network, storage and databases, where a cost is expected, were not compared here."
    } else if (any(moving$verdict == "slower")) {
      costly <- moving[moving$verdict == "slower", ]
      paste0("Of network, storage and databases, ",
             linked(fixed(nrow(costly), 0), shared_source(costly)), " of ",
             linked(counted(nrow(moving), "ratio"), shared_source(moving)),
             " ", were(nrow(costly)), " called slower, as expected.")
    } else {
      "In network, storage and databases, too, no cost was called."
    }
  ), collapse = " ")
}

#' How sure the findings are
#'
#' @param rows of the comparisons that have a ratio
#' @param evidence as from `read_evidence`
#' @return text; NULL where nothing was compared
certainty_text <- function(rows, evidence) {
  apart <- rows$environment %in% emulated_environments(evidence$plan)
  without <- if (any(apart)) "Without the emulated machines, " else ""
  rows <- rows[!apart, ]
  if (nrow(rows) == 0) {
    return(NULL)
  }
  count <- function(verdicts) sum(rows$verdict %in% verdicts)
  flagged <- grepl("non-normal|autocorrelated|outlier|drift", rows$flags)
  decided <- rows$verdict %in% c("slower", "faster", "equal")
  seen <- rows[rows$verdict == "open" & !is.na(rows$smallest_called), ]
  paste(c(
    sentence(paste0(
      without, if (any(decided)) linked(fixed(sum(decided), 0), "records") else "none", " of ",
           linked(counted(nrow(rows), "ratio"), "records"), " ", were(sum(decided)),
           " decided",
           if (any(decided)) {
             paste0(" (", fixed(count("slower"), 0), " slower, ", fixed(count("faster"), 0), " faster, ",
                    fixed(count("equal"), 0), " within ", percent(MINIMUM_EFFECT, 0), ")")
           }, ", and ",
           linked(fixed(sum(!decided), 0), "records"), " ", were(sum(!decided)), " left open."
    )),
    if (nrow(seen) > 0) {
      least <- seen[which.min(seen$smallest_called), ]
      most <- seen[which.max(seen$smallest_called), ]
      paste0("Where it is open, a difference of ", linked(seen_percent(least$smallest_called),
                                                          source_id(least)),
             if (nrow(seen) > 1) {
               paste0(" to ", linked(seen_percent(most$smallest_called), source_id(most)),
                      ", by metric and environment,")
             }, " would have been called; a smaller one may be there.")
    },
    if (any(decided)) {
      paste0("Of what is decided, ", linked(fixed(sum(decided & flagged), 0), "records"),
             if (sum(decided & flagged) == 1) " rests" else " rest",
             " on runs in which a test found what the intervals do not assume.")
    }
  ), collapse = " ")
}

#' What is left of the publications
#'
#' @param evidence as from `read_evidence`
#' @return text; NULL without claims
left_text <- function(evidence) {
  claims <- evidence$claims
  if (nrow(claims) == 0) {
    return(NULL)
  }
  named <- function(verdict, words) {
    own <- claims$statement[claims$verdict == verdict]
    if (length(own) > 0) {
      paste0(words, " ", listed(paste0("\u201c", sub("[.]$", "", with_percent(own)), "\u201d")), ".")
    }
  }
  own <- evidence$own$claims
  tested <- own[own$publication == "ibm2014" & !own$raw_verdict %in% c(NOT_AVAILABLE, "incomplete"), ]
  against <- sum(grepl("contradicted", tested$raw_verdict))
  paste(c(
    decided_sentence(evidence),
    named("reproduced", "What was measured here reproduces"),
    named("contradicted", "It contradicts"),
    transferred_text(evidence),
    if (nrow(tested) > 0) {
      paste0("Apart from any new measurement, ", fixed(against, 0), " of ",
             counted(nrow(tested), "claim"), " of 2014 that the authors\u2019 own raw logs can test ",
             if (against == 1) "does" else "do", " not follow from them: numbers of 2014 are better quoted ",
             "from the logs than from the print.")
    }
  ), collapse = " ")
}

#' What is concluded
#'
#' @param evidence as from `read_evidence`
#' @return text
conclusion_text <- function(evidence) {
  if (length(evidence$records) == 0) {
    return("Nothing was measured, and so nothing is concluded.")
  }
  rows <- ratios(evidence)
  emulated <- any(evidence$comparisons$environment %in% emulated_environments(evidence$plan))
  open <- any(rows$verdict %in% c("open", "unknown") &
                !rows$environment %in% emulated_environments(evidence$plan))
  next_steps <- c(
    if (open) "more sets, which would decide what is open",
    if (emulated) "a machine on which KVM runs a guest",
    if (evidence$plan$scale != "paper") "the sizes of the originals (\u201cscale: paper\u201d)",
    if (evidence$partial) "the runs that are missing"
  )
  paste(c(
    paste0("The comparison of 2014 can be done again by one command on any machine, and was done here on one",
           if (length(host_as_guest(evidence)) > 0) " that is itself a virtual machine", "."),
    if (nrow(rows) == 0) "No environment could be compared with native.",
    family_conclusions(rows, evidence),
    decided_sentence(evidence),
    if (length(next_steps) > 0) paste0("What would add most is ", listed(next_steps), ".")
  ), collapse = " ")
}

#' What is concluded of every family of environments
#'
#' @param rows of the comparisons that have a ratio
#' @param evidence as from `read_evidence`
#' @return sentences
family_conclusions <- function(rows, evidence) {
  families <- families_of(evidence$plan)
  of <- families$family[match(rows$environment, families$environment)]
  vapply(intersect(unique(families$family), of), function(family) {
    own <- rows[of == family, ]
    performance <- performance_of(own)
    bounded <- !is.na(performance$low)
    slower <- own$verdict == "slower"
    left <- 1 - min(performance$low[bounded], Inf)
    lost <- 1 - min(performance$ratio[slower], Inf)
    share <- function(x) linked(rough_percent(x), shared_source(own))
    sentence(paste0("In ", lower_first(family), ", ", if (any(slower)) {
      paste0("performance is lost in ", fixed(sum(slower), 0), " of ", counted(nrow(own), "ratio"),
             ", up to ", share(lost))
    } else if (all(own$verdict %in% c("equal", "faster"))) {
      paste("nothing is lost that exceeds", percent(MINIMUM_EFFECT, 0))
    } else if (!any(bounded)) {
      "nothing can be told"
    } else if (left <= 0) {
      "no loss was found, and the intervals leave room for none"
    } else if (left >= 1) {
      "no loss was found, and none can be excluded"
    } else {
      paste0("no loss was found, and none above ", share(left), " is left room for",
             if (!all(bounded)) " where there is an interval")
    }))
  }, "", USE.NAMES = FALSE)
}
