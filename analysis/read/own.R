# What the originals' own numbers say of what they claim: the verdicts of the reanalysis, as they are stored
# in the project for the paper of what was measured.

#' The columns of the reanalysis' claims.csv, and of published/ibm-raw-claims.csv
OWN_CLAIM_COLUMNS <- c(
  id = "character", publication = "character", place = "character", statement = "character",
  workload = "character", published = "numeric", unit = "character", low = "numeric", high = "numeric",
  how = "character", printed = "numeric", printed_at = "character", printed_verdict = "character",
  raw = "numeric", raw_low = "numeric", raw_high = "numeric", raw_at = "character", raw_n = "numeric",
  raw_planned = "numeric", raw_verdict = "character", note = "character", files = "character"
)

#' The columns of the reanalysis' table1.csv, and of published/ibm-raw-table1.csv
OWN_TABLE_COLUMNS <- c(
  workload = "character", environment = "character", metric = "character", unit = "character",
  factors = "character", statistic = "character", published = "character", n = "integer",
  rounded = "character", verdict = "character", note = "character"
)

#' Reads the stored verdicts of the reanalysis
#'
#' They are those of the raw results that were at hand when they were stored; docs/reanalysis.md tells which,
#' and how to store others.
#'
#' @param root folder of the project
#' @return list: `claims` and `table`, data frames with the columns of OWN_CLAIM_COLUMNS and OWN_TABLE_COLUMNS
#' @section Errors: no such file; other columns
read_own_verdicts <- function(root) {
  path <- function(name) file.path(root, "published", name)
  list(claims = read_csv(path("ibm-raw-claims.csv"), OWN_CLAIM_COLUMNS),
       table = read_csv(path("ibm-raw-table1.csv"), OWN_TABLE_COLUMNS))
}
