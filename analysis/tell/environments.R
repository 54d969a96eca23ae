# The environments: what isolates each from the host, and which of them could be measured.

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
  notes <- vapply(seq_len(nrow(environments)), function(i) {
    row <- environments[i, ]
    if (row$available) {
      return(paste(unable_sentences(evidence, row$name), collapse = " "))
    }
    paste("Not available:", if (row$reason == "") "no reason was given" else row$reason)
  }, "")
  noted <- notes != ""
  letter <- rep("", nrow(environments))
  letter[noted] <- letters[(seq_len(sum(noted)) - 1) %% 26 + 1]
  runs[!environments$available] <- NOT_AVAILABLE
  marks <- cbind(letter, "", "", "", "")
  notes <- notes[noted]
  names(notes) <- letter[noted]
  notes[] <- sentence(notes)
  table <- new_table(
    "environments",
    "The environments, what isolates each from the host, and the runs that were measured in it",
    list(column("Environment"), column("Isolation", "wrap"), column("Network"), column("Data"),
         column("Runs", "right")),
    cbind(environments$label, part("isolation"), part("network"), part("data"), runs),
    marks = marks, notes = notes
  )
  table$sources[, 1:4] <- "plan"
  table$sources[, 5] <- ifelse(environments$measured > 0, environment_list(environments$name),
                               ifelse(environments$available, "missing", "plan"))
  table
}

#' What a stack of layers means
#'
#' @param environment entry of the plan
#' @return list of texts: isolation, network, data
describe_layers <- function(environment) {
  layers <- Map(describe_layer, unname(environment$layers), unname(environment$told))
  part <- function(name) unlist(lapply(layers, `[[`, name))
  list(isolation = or_dash(paste(part("isolation"), collapse = ", in it ")),
       network = or_dash(paste(part("network"), collapse = ", in it ")),
       data = or_dash(paste(part("data"), collapse = ", in it ")))
}

#' What a layer means
#'
#' @param layer list of one element: options by the layer's name
#' @param told what the layer's file says of it: title, and network and data where they are its own
#' @return list of texts, empty ones left out: isolation, network, data
describe_layer <- function(layer, told) {
  options <- as.list(layer[[1]])
  # What a profile asks for has a table of its own, and the label names the accelerator.
  said <- names(options)[!vapply(options, is.list, TRUE)]
  details <- setting_text(options[setdiff(said, c("network", "data", "accelerator"))])
  list(
    isolation = if (details == "") told$title else paste0(told$title, " (", details, ")"),
    network = told$network, data = told$data
  )
}

#' Which environments are in the plan, and which of them could be measured
#'
#' @param evidence as from `read_evidence`
#' @return text
environments_text <- function(evidence) {
  environments <- evidence$environments
  if (all(environments$available)) {
    return(paste0("All ", linked(fixed(nrow(environments), 0), "plan"),
                  " of the plan were available on this machine."))
  }
  paste0(linked(fixed(sum(environments$available), 0), "plan"), " of the ",
         linked(fixed(nrow(environments), 0), "plan"), " of the plan were available. ",
         unavailable_sentence(environments), " The reasons are given there, and nothing was put in their ",
         "place.")
}
