# Title, abstract and dateline: what was measured, of what, and how it compares with native.

#' The title of the paper, by the kinds of environments that were measured
#'
#' @param evidence as from `read_evidence`
#' @return text
paper_title <- function(evidence) {
  environments <- evidence$environments
  present <- unique(environments$kind[environments$measured > 0])
  kinds <- c("virtual machines", "containers", "containers in virtual machines", "bare Linux",
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

#' The abstract
#'
#' @param evidence as from `read_evidence`
#' @return one text
abstract_text <- function(evidence) {
  environments <- evidence$environments
  others <- environments$name[environments$measured > 0 & environments$name != REFERENCE]
  emulated <- intersect(others, emulated_environments(evidence$plan))
  paste(c(
    scope_sentence(evidence),
    if (evidence$partial) partial_sentence(evidence),
    if (nrow(ratios(evidence)) > 0) {
      paste0("Ratios are of means paired by set, with 95", THIN, "% intervals by Fieller\u2019s method; a ",
             "difference is called only where it is significant with the false-discovery rate of all ",
             "comparisons held at 5", THIN, "%, and the ratio differs from equality by more than ",
             percent(MINIMUM_EFFECT, 0), ".")
    },
    vapply(setdiff(others, emulated), function(name) {
      overview(evidence, name, examples = if (length(others) > 4) 1 else 2)
    }, ""),
    emulated_sentence(evidence, emulated),
    decided_sentence(evidence),
    if (nrow(ratios(evidence)) == 0) "No environment can be compared with native.",
    unavailable_sentence(environments),
    if (evidence$plan$scale != "paper") {
      paste0("The sizes are those of the scale \u201c", evidence$plan$scale, "\u201d, which tries the ",
             "method and not the machine at full size.")
    }
  ), collapse = " ")
}

#' What is to be said of emulated virtual machines in few words
#'
#' @param evidence as from `read_evidence`
#' @param names of those that were measured
#' @return text, or NULL where there are none
emulated_sentence <- function(evidence, names) {
  if (length(names) == 0) {
    return(NULL)
  }
  rows <- ratios(evidence)
  rows <- rows[rows$environment %in% names & !is.na(rows$ratio_low), ]
  costs <- rows$better == "lower"
  rows[costs, c("ratio", "ratio_low", "ratio_high")] <-
    1 / rows[costs, c("ratio", "ratio_high", "ratio_low")]
  paste0(
    "Hardware acceleration was not proven on this machine, so that the virtual machines are emulated in ",
    "software", if (nrow(rows) > 0) {
      told <- function(column, place) {
        row <- rows[place(rows[[column]]), ]
        linked(percent(row[[column]]), source_id(row))
      }
      paste0(", at ", told("ratio", which.min), " to ", told("ratio", which.max),
             " of native (intervals from ", told("ratio_low", which.min), " to ",
             told("ratio_high", which.max), ", ",
             linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), if (any(costs)) {
               "; where less is better, the inverse"
             }, ")")
    }, "; nothing here speaks of KVM."
  )
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
  paste0("On one machine (", machine_phrase(evidence), ") we ran ", listed(titles), " in ",
         linked(counted(nrow(environments), "environment"), "records"), " (",
         listed(in_sentence(environments$label)), "), all made of one image: ",
         linked(counted(length(evidence$records), "run"), "records"), ", in ",
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

#' How an environment compares with native over all metrics
#'
#' @param evidence as from `read_evidence`
#' @param environment its name
#' @param examples differences that are named with their numbers, of each kind
#' @return one sentence
overview <- function(evidence, environment, examples = 2) {
  rows <- ratios(evidence, environment)
  label <- in_sentence(evidence$environments$label[evidence$environments$name == environment])
  if (nrow(rows) == 0) {
    return(paste0(label, " has no ratio to native."))
  }
  if (nrow(rows) == 1) {
    return(paste0("In ", rows$name, ", ", label, " is at ", ratio_text(rows), " of native: ",
                  verdict_phrase(rows$verdict), "."))
  }
  parts <- vapply(split(rows, factor(rows$verdict, VERDICTS)), function(part) {
    if (nrow(part) == 0) "" else overview_part(part, examples)
  }, "")
  parts <- parts[parts != ""]
  first <- if (startsWith(parts[[1]], "is ")) "" else "is "
  paste0("Of ", linked(counted(nrow(rows), "metric"), environment_list(environment)), ", ", label, " ", first,
         listed(parts), ".")
}

#' One kind of finding over several metrics
#'
#' @param rows of the comparisons, with one verdict
#' @param examples that are named with their numbers
#' @return part of a sentence
overview_part <- function(rows, examples) {
  rows <- rows[order(-abs(log(rows$ratio))), ]
  count <- nrow(rows)
  what <- c(
    slower = "slower than native in", faster = "faster than native in",
    equal = paste("within", percent(MINIMUM_EFFECT, 0), "of native in"),
    open = "not told apart from native in", unknown = "compared without an interval in"
  )[[rows$verdict[[1]]]]
  shown <- utils::head(rows, examples)
  named <- if (rows$verdict[[1]] %in% c("slower", "faster")) {
    paste0(" (", if (count > nrow(shown)) "most in ",
           paste(paste0(shown$name, ": ", ratio_text(shown)), collapse = "; "),
           ")")
  } else if (rows$verdict[[1]] != "unknown") {
    paste0(" (", if (count > 1) "intervals" else "interval", " from ",
           linked(percent(min(rows$ratio_low)), source_id(rows[which.min(rows$ratio_low), ])), " to ",
           linked(percent(max(rows$ratio_high)), source_id(rows[which.max(rows$ratio_high), ])), ", ",
           linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), ")")
  }
  paste0(what, " ", linked(fixed(count, 0), shared_source(rows)), named)
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
