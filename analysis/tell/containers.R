# What the containers' daemons said of themselves, on the host and in the machines.

#' What made the containers: versions, and how they store files and limit processes
#'
#' @param evidence as from `read_evidence`
#' @param text function of values and their environments, as of `inside_columns`; all in one column unless
#'   given
#' @return texts: label, host, and those of `text`; NULL where no container was measured
container_row <- function(evidence, text = function(values, of) grouped_text(values, of, evidence)) {
  with_container <- names(Filter(function(entry) "container" %in% layer_kinds(entry),
                                 evidence$plan$environments))
  records <- Filter(function(record) record$environment %in% with_container, evidence$records)
  if (length(records) == 0) {
    return(NULL)
  }
  told <- vapply(records, function(record) {
    seen <- field(record, "system", "docker")
    if (length(seen) == 0) {
      return(NOT_AVAILABLE)
    }
    part <- function(key) observed_text(seen[[key]])
    paste0("docker ", part("engine"), ", containerd ", part("containerd"), ", runc ", part("runc"),
           "; storage driver ", part("storage_driver"), "; control groups by ", part("cgroup_driver"))
  }, "")
  c("Containers made by", "", text(told, vapply(records, `[[`, "", "environment")))
}
