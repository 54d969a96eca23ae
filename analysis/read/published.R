# What the publications printed and claimed, as data, read and checked.

#' Why a claim may not be testable here
#'
#' @return named character vector: code to what it means
untestable_reasons <- function() {
  c(
    "statement" = "It is no statement about a difference between environments.",
    "workload" = "Its workload was not measured.",
    "environment" = "One of its environments was not measured.",
    "emulation" = "It speaks of a virtual machine with hardware acceleration, which was not proven here.",
    "metric" = "Its metric was not measured.",
    "size" = "Its size or load was not measured.",
    "hardware" = "It holds for other hardware only.",
    "transferred" = "It was published for another product, and was tested as a transferred claim."
  )
}

#' The values that the originals published
#'
#' @param path the file
#' @return nested lists: `publication`, `environments` (name to label) and `rows`
#' @section Errors: no such file; another format
read_published <- function(path) {
  published <- read_json(path)
  if (!identical(as.double(published$format), 1)) {
    stop_about(path, "not published values of format 1")
  }
  published
}

# The columns of ibm-figures.csv, and what the claims call its environments.
FIGURE_VALUES <- c(figure = "integer", workload = "character", environment = "character",
                   metric = "character", unit = "character", factors = "character", statistic = "character",
                   n = "integer", published = "numeric", tolerance = "numeric")
FIGURE_ENVIRONMENTS <- c(native = "native", docker = "docker", `docker-hostnet` = "docker_nethost",
                         `docker-layered` = "docker_nat_aufs", vm = "kvm")

#' The claims of the publications
#'
#' @param path the file
#' @return nested lists: `publications`, `environments`, `workload_groups` and `claims`
#' @section Errors: no such file; another format; a claim that lacks something, stands there twice, or names
#'   what the file does not know
read_claims <- function(path) {
  published <- read_json(path)
  if (!identical(as.double(published$format), 1)) {
    stop_about(path, "not claims of format 1")
  }
  ids <- vapply(published$claims, function(claim) as.character(c(claim$id, "")[[1]]), "")
  if (any(ids == "") || anyDuplicated(ids) > 0) {
    stop_about(path, "a claim has no name, or that of another: ", ids[duplicated(ids) | ids == ""][[1]])
  }
  for (claim in published$claims) {
    wrong <- claim_error(claim, published)
    if (!is.null(wrong)) {
      stop_about(path, claim$id, ": ", wrong)
    }
  }
  published
}

#' What is wrong with a claim
#'
#' @param claim its entry
#' @param published as from `read_claims`
#' @return text; NULL where nothing is
claim_error <- function(claim, published) {
  needed <- c("publication", "place", "statement", "workload")
  missing <- needed[!vapply(claim[needed], is.character, NA)]
  if (length(missing) > 0) {
    paste("it has no", missing[[1]])
  } else if (!claim$publication %in% names(published$publications)) {
    paste("there is no publication", claim$publication)
  } else if (is.null(claim$untestable)) {
    comparison_error(claim, names(published$environments))
  } else if (!isTRUE(claim$untestable$reason %in% setdiff(names(untestable_reasons()), "transferred"))) {
    "the reason why it is not testable is not a known one"
  } else if (!is.character(claim$untestable$because)) {
    "why it is not testable is not explained"
  }
}

#' What is wrong with the comparison that a claim makes
#'
#' @param claim its entry
#' @param environments names of the published environments
#' @return text; NULL where nothing is
comparison_error <- function(claim, environments) {
  names <- unlist(claim$pairs)
  if (length(names) == 0 || any(lengths(claim$pairs) != 2)) {
    return("it has no pairs of environments")
  }
  unknown <- setdiff(names, environments)
  if (length(unknown) > 0) {
    return(paste("there is no environment", unknown[[1]]))
  }
  limits <- c(claim$tolerance$low, claim$tolerance$high)
  if (length(limits) == 0 || !is.numeric(limits) || is.unsorted(limits)) {
    return("its tolerance has no limit, or limits in the wrong order")
  }
}

#' Reads what the original report printed in its Tables II and III, and its Figure 10, which belongs to the
#' latter
#'
#' @param root folder of the project
#' @return list: `kernels` and `configurations`, as in published/ibm-tables.json, and `throughput`, the mean
#'   rows of MySQL's throughput in published/ibm-figures.csv
#' @section Errors: no such file; another format
read_originals <- function(root) {
  path <- file.path(root, "published", "ibm-tables.json")
  tables <- read_json(path)
  if (!identical(as.double(tables$format), 1)) {
    stop_about(path, "not published tables of format 1")
  }
  figures <- read_csv(file.path(root, "published", "ibm-figures.csv"), FIGURE_VALUES)
  wanted <- figures$workload == "mysql" & figures$metric == "throughput" & figures$statistic == "mean"
  throughput <- figures[wanted, ]
  c(tables[c("kernels", "configurations")],
    list(throughput = throughput[!duplicated(throughput[c("environment", "factors")]), ]))
}
