# What the readers of the published files share.

#' Stops because a file is not what a complete and correct run leaves
#'
#' @param ... text of the reason; the caller adds the file
#' @section Errors: always, of class "broken_log"
broken_log <- function(...) {
  stop(structure(class = c("broken_log", "error", "condition"), list(message = paste0(...), call = NULL)))
}

#' Stops unless a condition holds
#'
#' @param condition TRUE or FALSE; anything else counts as FALSE
#' @param ... text of the reason
#' @section Errors: broken_log
require_that <- function(condition, ...) {
  if (!isTRUE(condition)) {
    broken_log(...)
  }
}

#' A number as plain text
#'
#' @param x numbers
#' @return text without exponents of whole numbers
plain <- function(x) {
  ifelse(is.finite(x) & x == round(x) & abs(x) < 1e15, sprintf("%.0f", x), sprintf("%.9g", x))
}
