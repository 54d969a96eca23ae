# Title, abstract and dateline: what was measured, of what, and how it compares with native.

#' The title of the paper, by the kinds of environments that were measured
#'
#' @param evidence as from `read_evidence`
#' @return text
paper_title <- function(evidence) {
  environments <- evidence$environments
  present <- unique(environments$kind[environments$measured > 0])
  kinds <- c("virtual machines", "sandboxes", "containers", "containers in virtual machines", "bare Linux",
             "other environments")
  present <- kinds[kinds %in% present]
  if (all(c("virtual machines", "containers") %in% present)) {
    present <- setdiff(present, "containers in virtual machines")
  }
  machines <- environments$name[environments$measured > 0 & grepl("virtual machines", environments$kind)]
  if (length(machines) > 0 && all(machines %in% emulated_environments(evidence$plan))) {
    present <- sub("virtual machines", "emulated virtual machines", present)
  }
  subject <- if (length(present) == 0) "virtual machines and containers" else listed(present)
  titled <- gsub("\\b(?!in\\b|and\\b)([a-z])", "\\U\\1", subject, perl = TRUE)
  paste0(titled, if (length(present) == 0) ": Nothing Measured Yet" else ", Measured Again",
         if (evidence$partial && length(present) > 0) " (Partial Results)")
}

#' The abstract: what was found, over all questions
#'
#' @param evidence as from `read_evidence`
#' @return one text
abstract_text <- function(evidence) {
  rows <- ratios(evidence)
  answer <- if (many_answers(evidence)) counted_answer else family_answer
  answers <- family_answers(rows, evidence$plan, answer)
  paste(c(
    scope_sentence(evidence),
    if (evidence$partial) partial_sentence(evidence),
    paste0(names(answers), ": ", answers, ".", recycle0 = TRUE),
    if (any(rows$environment %in% emulated_environments(evidence$plan))) {
      paste("What is emulated in software, since hardware acceleration was not proven on this machine, says",
            "nothing of KVM.")
    },
    if (nrow(rows) == 0) "No environment can be compared with native.",
    decided_sentence(evidence),
    unavailable_sentence(evidence$environments),
    unable_sentence(evidence),
    if (evidence$plan$scale != "paper") {
      paste0("The sizes are those of the scale \u201c", evidence$plan$scale, "\u201d, which tries the ",
             "method and not the machine at full size.")
    }
  ), collapse = " ")
}

#' What was measured, in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
scope_sentence <- function(evidence) {
  environments <- evidence$environments[evidence$environments$measured > 0, ]
  if (nrow(environments) == 0) {
    return("Nothing was measured.")
  }
  titles <- unique(vapply(evidence$records, function(record) record$workload, ""))
  titles <- vapply(intersect(names(evidence$plan$workloads), titles),
                   function(name) evidence$plan$workloads[[name]]$title, "")
  in_sets <- paired_environments(evidence$plan)
  paired <- Filter(function(record) record$environment %in% in_sets, evidence$records)
  sets <- length(unique(vapply(paired, function(record) paste(record$workload, record$repetition), "")))
  families <- families_of(evidence$plan)
  of <- table(factor(families$family[families$environment %in% environments$name], unique(families$family)))
  of <- of[of > 0]
  named <- ifelse(names(of) == "Native", "native", paste0(lower_first(names(of)), " (", as.vector(of), ")"))
  # The figure of the answers names them all.
  many <- many_answers(evidence)
  ran <- if (many) linked(counted(length(titles), "workload"), "records") else listed(titles)
  paste0("On one machine (", machine_phrase(evidence), ") we ran ", ran, " in ",
         linked(counted(nrow(environments), "environment"), "records"), " (", listed(named), "), ",
         "all made of one image: ", linked(counted(length(evidence$records), "run"), "records"), ", in ",
         linked(counted(sets, "set"), "records"), " of one workload in each environment",
         if (!all(environments$name %in% in_sets)) " that is not emulated", ", side by side in random order.")
}

#' The machine in a few words
#'
#' @param evidence as from `read_evidence`
#' @return text such as "Intel Xeon, 2 CPUs, 25.3 GB of memory"
machine_phrase <- function(evidence) {
  machine <- evidence$plan$machine
  models <- unique(unlist(lapply(evidence$records, field, "observed", "host", "static", "cpu_model")))
  models <- setdiff(models, NOT_AVAILABLE)
  model <- if (length(models) == 1) gsub("\\((R|TM)\\)| CPU", "", models)
  parts <- c(if (length(model) == 1) linked(model, "records"),
             if (is.numeric(machine$cpus)) linked(counted(machine$cpus, "CPU"), "plan"),
             if (is.numeric(machine$memory_bytes)) {
               paste(linked(bytes(machine$memory_bytes), "plan"), "of memory")
             })
  if (length(parts) == 0) {
    parts <- "of unknown kind"
  }
  paste(c(parts, if (length(host_as_guest(evidence)) > 0) linked("itself a virtual machine", "records")),
        collapse = ", ")
}

#' The line under the title
#'
#' @param evidence as from `read_evidence`
#' @return text
dateline <- function(evidence) {
  period <- measured_period(evidence$records)
  paste(c(
    if (length(period) == 2 && !anyNA(period)) {
      paste("Measured", linked(period_text(period), "records"))
    } else {
      "Nothing measured"
    },
    if (length(host_as_guest(evidence)) > 0) linked("on a host that is itself a virtual machine", "records"),
    paste("scale", evidence$plan$scale),
    paste("seed", linked(format(evidence$plan$seed, scientific = FALSE), "plan"))
  ), collapse = " \u00b7 ")
}
