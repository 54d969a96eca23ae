# What the containers' daemons said of themselves, on the host and in the machines.

#' What made the containers: versions, and how they store files and limit processes
#'
#' @param evidence as from `read_evidence`
#' @param text function of values and their environments, as of `inside_columns`; all in one column unless
#'   given
#' @return texts: label, host, and those of `text`; NULL where no container was measured
container_row <- function(evidence, text = function(values, of) grouped_text(values, of, evidence)) {
  kinds <- c("container", "sandbox", "other")
  with_container <- names(Filter(function(entry) any(kinds %in% layer_kinds(entry)),
                                 evidence$plan$environments))
  records <- Filter(function(record) record$environment %in% with_container, evidence$records)
  if (length(records) == 0) {
    return(NULL)
  }
  told <- vapply(records, function(record) {
    seen <- field(record, "system", "docker")
    program <- field(record, "system", "container")
    if (length(program) > 0) {
      return(program_told(program))
    }
    if (length(seen) == 0) {
      return(NOT_AVAILABLE)
    }
    part <- function(key) observed_text(seen[[key]])
    runtime <- seen$runtime
    paste0("docker ", part("engine"), ", containerd ", part("containerd"), ", runc ", part("runc"),
           "; storage driver ", part("storage_driver"), "; control groups by ", part("cgroup_driver"),
           if (length(runtime) > 0) paste0("; runtime ", runtime$name, " (", runtime$version, ")"),
           settings_told(seen))
  }, "")
  c("Containers made by", "", text(told, vapply(records, `[[`, "", "environment")))
}

#' What another program than Docker said of itself and of the container
#'
#' @param program what a record holds of it
#' @return text
program_told <- function(program) {
  named <- c(runtime = "runtime", conmon = "held by conmon", storage_driver = "storage driver",
             network_backend = "network by", cgroup_driver = "control groups by")
  more <- named[names(named) %in% names(program)]
  paste0(paste(observed_text(program$program), observed_text(program$version)),
         paste0("; ", more, " ", vapply(names(more), function(key) observed_text(program[[key]]), ""),
                recycle0 = TRUE, collapse = ""),
         settings_told(program))
}

#' What was seen of a sandbox, and of what a container was allowed
#'
#' @param seen what a record holds of the container
#' @return text that begins with a semicolon; "" where nothing was asked for
settings_told <- function(seen) {
  sandbox <- seen$sandbox
  paste(c(
    if (length(sandbox) > 0) {
      paste0("; ", sandbox$program, " ", sandbox$version, ", platform ", sandbox$platform,
             ", network stack: ", sandbox$stack)
    },
    vapply(seen$settings, function(setting) {
      paste0("; ", words(setting$name), ": ", setting$asked, " was asked for and ", setting$seen, " seen")
    }, "")
  ), collapse = "")
}
