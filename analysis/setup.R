# What was set up: environments, workloads with their parameters, and the order of the runs.

#' The environments of the plan
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_environments <- function(evidence) {
  environments <- evidence$environments
  described <- lapply(unname(evidence$plan$environments), describe_layers)
  part <- function(name) vapply(described, `[[`, "", name)
  runs <- ifelse(environments$measured == environments$planned, fixed(environments$planned, 0),
                 paste(fixed(environments$measured, 0), "of", fixed(environments$planned, 0)))
  reasons <- !environments$available
  letter <- rep("", nrow(environments))
  letter[reasons] <- letters[(seq_len(sum(reasons)) - 1) %% 26 + 1]
  runs[reasons] <- NOT_AVAILABLE
  marks <- cbind(letter, "", "", "", "")
  notes <- paste0("Not available: ", ifelse(environments$reason == "", "no reason was given",
                                            environments$reason))[reasons]
  names(notes) <- letter[reasons]
  notes[] <- sentence(notes)
  new_table(
    "environments",
    "The environments, what isolates each from the host, and the runs that were measured in it",
    list(column("Environment"), column("Isolation"), column("Network"), column("Data"),
         column("Runs", "right")),
    cbind(environments$label, part("isolation"), part("network"), part("data"), runs),
    marks = marks, notes = notes
  )
}

#' What a stack of layers means
#'
#' @param environment entry of the plan
#' @return list of texts: isolation, network, data
describe_layers <- function(environment) {
  layers <- lapply(environment$layers, describe_layer)
  part <- function(name) unlist(lapply(layers, `[[`, name))
  list(isolation = or_dash(paste(part("isolation"), collapse = ", in it ")),
       network = or_dash(paste(part("network"), collapse = ", in it ")),
       data = or_dash(paste(part("data"), collapse = ", in it ")))
}

# Words for the layers and for the options that they are known to have.
LAYER_WORDS <- c(host = "none: the host\u2019s own files", chroot = "change of root",
                 docker = "Docker container", vm = "virtual machine")
NETWORK_WORDS <- c(bridge = "bridge with NAT", host = "its host\u2019s")
DATA_WORDS <- c(volume = "volume", layered = "layered file system")

#' What a layer means
#'
#' @param layer list of one element: options by the layer's name
#' @return list of texts, empty ones left out: isolation, network, data
describe_layer <- function(layer) {
  name <- names(layer)
  options <- as.list(layer[[1]])
  on_host <- name %in% c("host", "chroot")
  details <- setting_text(options[setdiff(names(options), c("network", "data"))])
  title <- in_words(name, LAYER_WORDS)
  list(
    isolation = if (details == "") title else paste0(title, " (", details, ")"),
    network = if (on_host) "the host\u2019s" else in_words(options$network, NETWORK_WORDS),
    data = if (on_host) "the host\u2019s disk" else in_words(options$data, DATA_WORDS)
  )
}

#' A name or an option in words
#'
#' @param value text, or NULL
#' @param known named character vector
#' @return text; NULL for NULL
in_words <- function(value, known) {
  if (is.null(value)) NULL else if (value %in% names(known)) known[[value]] else words(gsub("-", " ", value))
}

#' Settings as text
#'
#' @param settings named list of numbers, texts and lists of them; empty ones are left out, as are those that
#'   belong to an empty one (`corpus_sha1` to `corpus`)
#' @return one text such as "level 2, sizes 1,000 and 2,000"
setting_text <- function(settings) {
  empty <- names(settings)[vapply(settings, is.null, NA)]
  belongs <- vapply(names(settings), function(name) any(startsWith(name, paste0(empty, "_"))), NA)
  settings <- settings[!names(settings) %in% empty & !belongs]
  paste(vapply(names(settings), function(name) {
    paste0(words(name), NO_BREAK, value_text(settings[[name]]))
  }, ""), collapse = ", ")
}

#' A value of a setting as text
#'
#' @param value number, text, TRUE or FALSE, or a list of these
#' @return text; hashes are cut to twelve digits
value_text <- function(value) {
  if (length(value) == 0) {
    return("none")
  }
  texts <- vapply(value, function(one) {
    if (is.numeric(one)) {
      quantity(one)
    } else if (is.logical(one)) {
      if (isTRUE(one)) "yes" else "no"
    } else {
      sub("^([0-9a-f]{12})[0-9a-f]{20,}$", "\\1\u2026", paste(unlist(one), collapse = " "))
    }
  }, "")
  listed(unname(texts))
}

#' What was run, with which parameters
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_workloads <- function(evidence) {
  workloads <- evidence$plan$workloads
  rows <- vapply(names(workloads), function(name) {
    workload <- workloads[[name]]
    metrics <- metrics_of(evidence$plan, name)
    units <- paste0(lower_first(metrics$label), " (", metrics$unit, ", ", metrics$better, " is better)")
    if (length(unique(metrics$unit)) == 1 && length(unique(metrics$better)) == 1 && nrow(metrics) > 1) {
      units <- paste0(listed(lower_first(metrics$label)), " (", metrics$unit[[1]], ", ", metrics$better[[1]],
                      " is better)")
    }
    notes <- unlist(workload$notes)
    c(workload$title, sentence(listed(units)), sentence(parameters_text(evidence, name)),
      paste(c(sentence(paste("Warm-up:", workload$warmup)), sentence(as.character(notes)),
              if (length(checks_of(evidence, name)) > 0) {
                sentence(paste0("Checks: ", paste(checks_of(evidence, name), collapse = "; ")))
              }), collapse = " "))
  }, character(4))
  new_table(
    "workloads", paste0("The workloads and their parameters at the scale \u201c", evidence$plan$scale,
                        "\u201d"),
    list(column("Workload", "wrap", weight = 0.5), column("Metrics", "wrap", weight = 0.95),
         column("Parameters", "wrap", weight = 1.2),
         column("Warm-up, notes and checks", "wrap", weight = 1.35)),
    t(unname(rows)), group_starts = rep(TRUE, length(workloads))
  )
}

#' The parameters of a workload as they were in the runs
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return one text; where environments differ in a parameter, each value with its environments
parameters_text <- function(evidence, workload) {
  planned <- evidence$plan$workloads[[workload]]$parameters
  records <- Filter(function(record) record$workload == workload, evidence$records)
  for (name in names(planned)) {
    ruled <- is.list(planned[[name]]) && !is.null(names(planned[[name]]))
    if (ruled && length(records) == 0) {
      planned[name] <- list("as the system has processors")
    } else if (ruled) {
      seen <- vapply(records, function(record) value_text(record$parameters[[name]]), "")
      planned[[name]] <- grouped_text(seen, vapply(records, `[[`, "", "environment"), evidence)
    }
  }
  text <- setting_text(planned)
  if (text == "") "none" else text
}

#' The image in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
image_text <- function(evidence) {
  contents <- contents_text(evidence)
  paste0(distribution_text(evidence), if (contents != NOT_AVAILABLE) paste(" with", contents), ".")
}

#' Which environments are in the plan, and which of them could be measured
#'
#' @param evidence as from `read_evidence`
#' @return text
environments_text <- function(evidence) {
  environments <- evidence$environments
  if (all(environments$available)) {
    return(paste0("All ", fixed(nrow(environments), 0), " of the plan were available on this machine."))
  }
  paste0(fixed(sum(environments$available), 0), " of the ", fixed(nrow(environments), 0),
         " of the plan were available. ",
         unavailable_sentence(environments), " The reasons are given there, and nothing was put in their ",
         "place.")
}

#' What every run was checked for
#'
#' @param evidence as from `read_evidence`
#' @return text
checks_text <- function(evidence) {
  checks <- vapply(evidence$records, function(record) length(record$checks), 0L)
  paste0("A run counts only if every command ended without an error and every check of its output passed",
         if (length(checks) > 0) paste0(", as did the ", counted(sum(checks), "check"), " of the ",
                                        counted(length(checks), "run"), " reported here"),
         ". A run that fails leaves no log among the results.")
}

#' How the order of the runs was made, and whether it was kept
#'
#' @param evidence as from `read_evidence`
#' @return text
order_text <- function(evidence) {
  plan <- evidence$plan
  planned <- field_numbers(evidence$records, "position", "planned")
  actual <- field_numbers(evidence$records, "position", "actual")
  kept <- !anyNA(c(planned, actual)) && !is.unsorted(actual[order(planned)], strictly = TRUE)
  paste0("There are ", counted(plan$repetitions, "block"), "; the seed is ",
         format(plan$seed, scientific = FALSE), ". ",
         if (length(evidence$records) > 0 && kept) "The runs were made in the planned order.",
         if (!kept) "Not all runs were made in the planned order, as the records show.")
}

#' How many findings chance alone would give
#'
#' @param evidence as from `read_evidence`
#' @return text
multiplicity_text <- function(evidence) {
  rows <- ratios(evidence)
  bounded <- sum(rows$verdict %in% c("slower", "faster", "equal", "open"))
  if (bounded == 0) {
    return("No ratio has an interval, so that no difference is called.")
  }
  called <- sum(rows$verdict %in% c("slower", "faster"))
  paste0("There are ", counted(bounded, "comparison"), " with native that have an interval. Were no ",
         "environment any different, about ", format(signif(0.05 * bounded, 2)), " of these intervals would ",
         "still exclude equality by chance, which the minimum effect of ", percent(MINIMUM_EFFECT, 0),
         " makes rarer; ", if (called == 0) "no difference" else counted(called, "difference"),
         if (called <= 1) " is" else " are", " called here.")
}
