# What was observed, as text: values, and the environments in which they were seen.

#' Values with the environments in which they were seen
#'
#' @param values texts, one for each run
#' @param environments of the runs
#' @param evidence as from `read_evidence`
#' @param most different values of one environment that are listed; more are counted
#' @return one text: the value alone where all environments agree, otherwise such as "2 (Native, Docker); 4
#'   (KVM)"; the last group, where it is large, as "all others"
grouped_text <- function(values, environments, evidence, most = 3) {
  names <- intersect(names(evidence$plan$environments), environments)
  if (length(names) == 0) {
    return(NOT_AVAILABLE)
  }
  of_environment <- vapply(names, function(name) {
    seen <- unique(values[environments == name])
    if (length(seen) > most) paste(length(seen), "different values") else listed(seen, "or")
  }, "")
  if (length(unique(of_environment)) == 1) {
    return(of_environment[[1]])
  }
  values <- unique(of_environment)
  count <- vapply(values, function(value) sum(of_environment == value), 0L)
  values <- values[order(count >= 3 & count == max(count))]
  labels <- in_sentence(environment_labels(evidence$plan, names))
  paste(vapply(seq_along(values), function(i) {
    members <- of_environment == values[[i]]
    rest <- i == length(values) && sum(members) >= 3
    paste0(values[[i]], " (", if (rest) "all others" else paste(labels[members], collapse = ", "), ")")
  }, ""), collapse = "; ")
}

#' An observation as text
#'
#' @param value number, text, list of these, or NULL
#' @param number function from a number to text
#' @return text; "not available" where nothing was observed
observed_text <- function(value, number = quantity) {
  if (is.null(value) || length(value) == 0 || identical(value, "")) {
    NOT_AVAILABLE
  } else if (is.numeric(value)) {
    number(value)
  } else if (is.logical(value)) {
    if (isTRUE(value)) "yes" else "no"
  } else if (is.list(value)) {
    paste(c(names(value), unlist(value))[order(c(seq_along(names(value)), seq_along(value)))], collapse = " ")
  } else {
    as.character(value)
  }
}

#' The versions of packages that were observed
#'
#' @param records list of records
#' @param ... names that lead to the observations
#' @return matrix of texts, a row for each record and a column for each package
observed_versions <- function(records, ...) {
  found <- lapply(records, function(record) as.list(field(record, "observed", ...)$versions))
  names <- sort(unique(as.character(unlist(lapply(found, names)))), method = "radix")
  texts <- vapply(names, function(name) {
    vapply(found, function(of_run) observed_text(of_run[[name]]), "")
  }, character(length(records)))
  matrix(texts, length(records), length(names), dimnames = list(NULL, names))
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
