# What the measured programs said of themselves in their logs.

#' What the measured programs said of themselves in their logs
#'
#' The object of a log that has the key "tool" names the program; its texts are shown, and how much of its
#' memory was in huge pages.
#'
#' @param evidence as from `read_evidence`
#' @param environments of the records
#' @param text function of values and their environments, as of `inside_columns`; all in one column unless
#'   given
#' @return matrix of texts, in columns label, host, and those of `text`; or NULL
program_rows <- function(evidence, environments,
                         text = function(values, of) grouped_text(values, of, evidence)) {
  programs <- lapply(evidence$records, `[[`, "program")
  workload <- vapply(evidence$records, `[[`, "", "workload")
  rows <- lapply(names(evidence$plan$workloads), function(name) {
    here <- workload == name
    texts <- unique(unlist(lapply(programs[here], function(one) names(Filter(is.character, one)))))
    title <- evidence$plan$workloads[[name]]$title
    said <- lapply(texts, function(key) {
      values <- vapply(programs[here], function(one) observed_text(one[[key]]), "")
      c(paste0(title, ": ", program_key(key)), "", text(values, environments[here]))
    })
    pages <- vapply(programs[here], function(one) as.double(c(one$huge_page_bytes, NA)[[1]]), 0)
    if (any(!is.na(pages))) {
      sizes <- ifelse(is.na(pages), NOT_AVAILABLE, bytes(signif(pages, 2)))
      said <- c(said, list(c(paste0(title, ": memory in huge pages"), "", text(sizes, environments[here]))))
    }
    do.call(rbind, said)
  })
  do.call(rbind, rows)
}

#' A key of a program's own description as words
#'
#' @param key such as "blas"
#' @return such as "BLAS"
program_key <- function(key) {
  known <- c(tool = "program", blas = "BLAS", core = "BLAS core type")
  if (key %in% names(known)) known[[key]] else words(key)
}
