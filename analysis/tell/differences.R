# In what the environments differ besides their isolation, as it was observed.

#' The facts in which environments may differ besides their isolation
#'
#' @return list of facts: `label` as it stands in a sentence, and `text`, a function from what was observed
#'   inside to text
compared_facts <- function() {
  names <- c("Kernel", "Operating system", "Processor", "CPUs", "Last-level cache", "Memory",
             "Transparent huge pages", "Clock source")
  facts <- Filter(function(fact) fact$label %in% names, testbed_facts())
  lapply(facts, function(fact) list(label = lower_first(fact$label), text = fact$text))
}

#' In what the environments differ besides their isolation
#'
#' @param evidence as from `read_evidence`
#' @return list of facts, named by what differs: what each environment saw, a text by its name; empty where
#'   nothing was seen to differ
differences_seen <- function(evidence) {
  records <- evidence$records
  workloads <- vapply(records, `[[`, "", "workload")
  facts <- lapply(compared_facts(), function(fact) {
    parted_by(fact$label, records, function(record) fact$text(field(record, "observed", "inside")))
  })
  kernels <- lapply(unique(workloads), function(name) {
    parted_by(paste("BLAS kernel of", evidence$plan$workloads[[name]]$title), records[workloads == name],
              function(record) observed_text(record$program$core))
  })
  packages <- unique(unlist(lapply(records, function(record) {
    names(field(record, "observed", "inside")$versions)
  })))
  versions <- lapply(sort(as.character(packages), method = "radix"), function(name) {
    parted_by(paste("package", name), records, function(record) {
      observed_text(field(record, "observed", "inside")$versions[[name]])
    })
  })
  unlist(c(facts, kernels, versions), recursive = FALSE)
}

#' A fact in which environments differ
#'
#' @param label what it is
#' @param records list of records
#' @param text function from a record to what was seen
#' @return list of one: what each environment saw, by its name; NULL where all that saw it saw the same
parted_by <- function(label, records, text) {
  seen <- vapply(records, text, "")
  known <- seen != NOT_AVAILABLE
  of <- vapply(records, `[[`, "", "environment")[known]
  each <- vapply(split(seen[known], factor(of, unique(of))), function(one) {
    listed(sort(unique(one), method = "radix"), "or")
  }, "")
  if (length(unique(each)) > 1) stats::setNames(list(each), label)
}

#' What each group of environments saw, where groups differ
#'
#' Facts that part the environments in the same way are told together.
#'
#' @param evidence as from `read_evidence`
#' @return sentences
differences_told <- function(evidence) {
  found <- differences_seen(evidence)
  if (length(found) == 0) {
    return(character())
  }
  parting <- vapply(found, function(each) {
    each <- each[order(names(each))]
    paste(names(each), match(each, unique(each)), collapse = " ")
  }, "")
  vapply(split(found, factor(parting, unique(parting))), function(facts) {
    values <- facts[[1]]
    groups <- lapply(unique(values), function(value) names(values)[values == value])
    groups <- groups[order(-lengths(groups))]
    groups <- lapply(groups, function(members) intersect(names(evidence$plan$environments), members))
    told <- vapply(groups, function(members) {
      saw <- vapply(facts, function(each) each[[members[[1]]]], "")
      paste0(listed(in_sentence(environment_labels(evidence$plan, members))), " saw ",
             paste(names(facts), linked(saw, "records"), collapse = ", "))
    }, "")
    sentence(paste(told, collapse = "; "))
  }, "", USE.NAMES = FALSE)
}

#' In what the environments differ besides their isolation, in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
differences_sentence <- function(evidence) {
  measured <- evidence$environments$measured > 0
  if (sum(measured) < 2) {
    return("In what else they differ than in their isolation can be told where two were measured.")
  }
  found <- differences_seen(evidence)
  if (length(found) == 0) {
    return(paste("In nothing else that was observed (kernel, processor, caches, memory, huge pages, clock,",
                 "versions of packages) did they differ but in their isolation."))
  }
  paste0("They differ in more than their isolation, though: as observed, also in ",
         listed(linked(names(found), "records")), ".")
}
