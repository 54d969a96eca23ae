# What the project says of itself: where it is to be had, under which licence, and what it installs.

#' Reads what the project says of itself
#'
#' @param root folder of the project
#' @return list: `version`, `license` and `address`, texts of CITATION.cff, "not available" where it has none;
#'   `packages`, a list of the distribution's packages by their purpose ("run", "vm", "paper")
#' @section Errors: no such file
read_artifact <- function(root) {
  lines <- readLines(file.path(root, "CITATION.cff"), warn = FALSE)
  of <- function(key) {
    found <- sub(paste0("^", key, ": *"), "", grep(paste0("^", key, ": *[^ ]"), lines, value = TRUE))
    c(gsub("^[\"']|[\"']$", "", trimws(found)), NOT_AVAILABLE)[[1]]
  }
  rows <- strsplit(grep("^(run|vm|paper) ", readLines(file.path(root, "scripts", "packages.txt")),
                        value = TRUE), " +")
  purpose <- vapply(rows, `[[`, "", 1)
  list(version = of("version"), license = of("license"), address = of("repository-code"),
       packages = lapply(split(vapply(rows, `[[`, "", 3), purpose), unique))
}
