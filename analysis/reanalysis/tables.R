# The tables that the reanalysis writes, read back for its figures and its paper.

#' The columns of differences.csv
DIFFERENCE_COLUMNS <- c(
  place = "character", workload = "character", environment = "character", metric = "character",
  unit = "character", factors = "character", statistic = "character", planned = "integer",
  published = "character", n = "integer", recomputed = "numeric", low = "numeric", high = "numeric",
  rounded = "character", difference = "numeric", tolerance = "numeric", verdict = "character",
  note = "character", files = "character"
)

#' Reads differences.csv
#'
#' @param path of the file
#' @return data frame; `published` as printed, and `printed` as a number
read_differences <- function(path) {
  table <- read_csv(path, DIFFERENCE_COLUMNS)
  table$printed <- as.numeric(table$published)
  table
}

#' Reads what the paper of the reanalysis is made from
#'
#' @param folder that holds the tables and the figures
#' @param root folder of the project
#' @param measured path of the claims as they were tested on a machine at hand; NULL for none
#' @return list: `folder`, `series`, `differences` (with `disputed`, as of `read_published_values`), `claims`,
#'   `measured` (tested claims, without rows where there are none), `labels` of the
#'   publications, `readings` (how the print was read),
#'   `unreadable`, `sources`, `source`
read_reanalysis <- function(folder, root, measured = NULL) {
  path <- function(name) file.path(folder, name)
  differences <- read_differences(path("differences.csv"))
  differences$disputed <- differences$environment %in% disputed_environments(root)
  list(
    folder = folder,
    differences = differences,
    claims = read_csv(path("claims.csv"), OWN_CLAIM_COLUMNS),
    measured = if (is.null(measured)) empty_table(CLAIM_COLUMNS) else read_tested_claims(measured),
    labels = vapply(read_claims(file.path(root, "published", "claims.json"))$publications, `[[`, "", "label"),
    readings = read_json(file.path(root, "published", "ibm-readings.json"))$readings,
    series = read_csv(path("series.csv"), c(
      workload = "character", environment = "character", metric = "character", unit = "character",
      factors = "character", selection = "character", n = "integer", mean = "numeric", sd = "numeric",
      min = "numeric", max = "numeric", median = "numeric"
    )),
    unreadable = read_csv(path("unreadable.csv"),
                          c(file = "character", line = "integer", reason = "character")),
    sources = read_csv(path("sources.csv"),
                       c(file = "character", use = "character", values = "integer", note = "character")),
    source = read_json(path("source.json"))
  )
}

#' Labels of the environments of the original paper
#'
#' @param environments names
#' @return texts
original_labels <- function(environments) {
  known <- c(native = "Native", docker = "Docker", "docker-hostnet" = "Docker, host network",
             "docker-hostnet-layered" = "Docker, host network, AUFS", "docker-layered" = "Docker, AUFS",
             vm = "KVM",
             "vm-tuned" = "KVM, tuned")
  ifelse(environments %in% names(known), unname(known[environments]), environments)
}

#' The value of a factor
#'
#' @param factors texts "name=value;..."
#' @param name of the factor
#' @return texts; "" where it is not there
factor_value <- function(factors, name) {
  found <- regmatches(factors, regexec(paste0("(^|;)", name, "=([^;]*)"), factors))
  vapply(found, function(one) if (length(one) == 3) one[[3]] else "", "")
}
