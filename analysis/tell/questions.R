# What the paper tells of a question: why environments may differ in it, how that compares with what was
# published, and what is not known.

#' What the environments are made of, and what cannot be told from them, in every question
#'
#' @param evidence as from `read_evidence`
#' @return one text; "" where nothing but native was measured
layers_text <- function(evidence) {
  families <- families_of(evidence$plan)
  named <- function(family) {
    any(evidence$comparisons$environment %in% families$environment[families$family == family])
  }
  nested <- named("Containers in virtual machines under KVM")
  paste(c(
    if (named("Containers")) {
      paste("Containers run on the kernel and the processors that native runs on: namespaces and control",
            "groups stand between a program and that kernel, not between it and the processor or its memory.")
    },
    if (named("Sandboxes")) {
      paste("A sandbox runs a program's instructions on the processor itself, and answers its calls into the",
            "kernel by a kernel that is a program of the host.")
    },
    if (named("Virtual machines under KVM") || nested) {
      paste0("Under KVM a guest runs on the processor itself, with a kernel, page tables and devices of its ",
             "own", if (nested) "; a container in it adds its namespaces to that", ".")
    },
    if (named("Emulated virtual machines")) {
      paste("Emulated machines have each instruction translated by QEMU into those of the host: their ratios",
            "are those of a translator, and what a machine under KVM costs they cannot tell.")
    },
    if (nrow(evidence$comparisons) > 0 && evidence$plan$scale != "paper") {
      paste0("What holds at the sizes of the scale \u201c", evidence$plan$scale, "\u201d need not hold at ",
             "the originals\u2019.")
    }
  ), collapse = " ")
}

#' Why environments may differ in a question
#'
#' @param evidence as from `read_evidence`
#' @param workloads names of those that answer it
#' @return one text; "" where no container was measured
why_text <- function(evidence, workloads) {
  rows <- evidence$comparisons[evidence$comparisons$workload %in% workloads, ]
  families <- families_of(evidence$plan)
  containers <- intersect(families$environment[families$family == "Containers"], rows$environment)
  noticed <- Filter(function(touches) {
    any(vapply(evidence$plan$workloads[workloads], function(entry) notices(touches, entry), NA))
  }, c("network", "data"))
  paste(c(
    if (length(containers) > 0 && length(noticed) == 0) {
      paste("What runs here uses neither the network nor files, and can notice nothing in which containers",
            "are made differently.")
    },
    if (length(containers) > 0 && length(noticed) > 0) {
      paste0("Of a container, what runs here can notice ", ways_text(evidence, containers, noticed), ".")
    },
    question_choices(evidence, workloads)
  ), collapse = " ")
}

#' How environments differ in what is noticed
#'
#' @param evidence as from `read_evidence`
#' @param environments names
#' @param noticed some of "network" and "data"
#' @return text
ways_text <- function(evidence, environments, noticed) {
  labels <- in_sentence(environment_labels(evidence$plan, environments))
  described <- lapply(evidence$plan$environments[environments], describe_layers)
  listed(vapply(noticed, function(name) {
    way <- vapply(described, `[[`, "", name)
    each <- vapply(unique(way), function(one) paste0(one, " in ", listed(labels[way == one])), "")
    what <- c(network = "the network", data = "where data lie")[[name]]
    paste0(what, " (", paste(each, collapse = "; "), ")")
  }, ""))
}

#' How published claims about workloads fared
#'
#' @param evidence as from `read_evidence`
#' @param workloads names
#' @return one text; "" where nothing was claimed of them
against_text <- function(evidence, workloads) {
  claims <- evidence$claims[evidence$claims$workload %in% workloads, ]
  if (nrow(claims) == 0) {
    return("")
  }
  open <- claims$verdict == "not testable here"
  moved <- evidence$transferred[evidence$transferred$workload %in% workloads, ]
  paste(c(
    paste0("Of ", linked(counted(nrow(claims), "published claim"), "plan"), " about this, ",
           if (all(open)) "none" else linked(fixed(sum(!open), 0), "records"), " could be tested here",
           if (any(open)) untested_why(claims[open, ]), "."),
    unlist(lapply(split(claims, factor(claims$verdict, CLAIM_VERDICTS)), function(own) {
      own <- own[own$parts > 0, ]
      if (nrow(own) > 0) claims_named(own, evidence)
    })),
    if (nrow(moved) > 0) transferred_named(moved, evidence)
  ), collapse = " ")
}

#' Why claims could not be tested
#'
#' @param claims rows of those claims
#' @return text in parentheses
untested_why <- function(claims) {
  reasons <- table(factor(claims$reason, names(untestable_reasons())))
  reasons <- reasons[reasons > 0]
  paste0(" (of the others ", listed(paste(linked(fixed(as.vector(reasons), 0), "table-untested"), "for",
                                          c(statement = "claiming no difference between environments",
                                            workload = "a workload that was not measured",
                                            environment = "an environment that was not measured",
                                            emulation = "want of hardware acceleration",
                                            metric = "a metric that was not measured",
                                            size = "a size or load that was not measured",
                                            hardware = "other hardware",
                                            transferred = "another product")[names(reasons)])), ")")
}

#' Claims of one verdict
#'
#' @param claims rows of the claims
#' @param evidence as from `read_evidence`
#' @return one sentence
claims_named <- function(claims, evidence) {
  head <- c("reproduced" = "Reproduced", "contradicted" = "Contradicted", "inconclusive" = "Left open",
            "not testable here" = "Measured in part, which does not decide")
  paste0(head[[claims$verdict[[1]]]], ": ", claims_said(claims, evidence), ".")
}

#' Claims that were published for one product and tested on another
#'
#' @inheritParams claims_named
#' @return one sentence
transferred_named <- function(claims, evidence) {
  parted <- split(claims, factor(claims$verdict, TRANSFERRED_VERDICTS), drop = TRUE)
  each <- vapply(parted, function(own) paste0(own$verdict[[1]], ": ", claims_said(own, evidence)), "")
  paste0(upper_first(transferred_between(claims, evidence)), ", and counted by themselves: ",
         paste(each, collapse = "; "), ".")
}

#' Claims with what was measured of each
#'
#' @inheritParams claims_named
#' @return one text
claims_said <- function(claims, evidence) {
  value <- linked(percent_interval(claims$ratio, claims$ratio_low, claims$ratio_high),
                  claim_source(claims, evidence))
  each <- paste0("\u201c", sub("[.]$", "", with_percent(claims$statement)), "\u201d (",
                 ifelse(is.na(claims$ratio), "", paste0(value, ", ")), "tolerated ",
                 tolerance_text(claims), ")")
  paste(each, collapse = "; ")
}

#' What is not known of a question
#'
#' @param evidence as from `read_evidence`
#' @param workloads names of those that answer it
#' @return one text; "" where nothing is open
unknown_text <- function(evidence, workloads) {
  rows <- told(evidence)
  texts <- c(paste(open_sentence(rows[rows$workload %in% workloads, ]), collapse = ""),
             memory_bound_text(evidence, workloads))
  paste(texts[texts != ""], collapse = " ")
}
