# What the command-line scripts share: their options, and errors that a user can read.

#' Options of a script
#'
#' @param arguments character vector, as from `commandArgs(trailingOnly = TRUE)`
#' @param required names of options that must be given, each followed by a value
#' @param optional names of options that may be given, each followed by a value
#' @param switches names of options without a value
#' @param rest what arguments that belong to no option are called in messages; `NULL` where none may be given
#' @return a named list: text for every option given, TRUE or FALSE for every switch, and `rest`, a character
#'   vector of the other arguments
#' @section Errors: an unknown, repeated, incomplete or missing option; arguments where none are expected
parse_options <- function(arguments, required = character(), optional = character(),
                          switches = character(), rest = NULL) {
  options <- as.list(stats::setNames(rep(FALSE, length(switches)), switches))
  others <- character()
  i <- 1
  while (i <= length(arguments)) {
    argument <- arguments[[i]]
    name <- substring(argument, 3)
    if (!startsWith(argument, "--")) {
      others <- c(others, argument)
    } else if (name %in% switches) {
      options[[name]] <- TRUE
    } else if (!name %in% c(required, optional)) {
      stop("unknown option ", argument, call. = FALSE)
    } else if (!is.null(options[[name]])) {
      stop("option ", argument, " is given twice", call. = FALSE)
    } else if (i == length(arguments) || startsWith(arguments[[i + 1]], "--")) {
      stop("option ", argument, " needs a value", call. = FALSE)
    } else {
      i <- i + 1
      options[[name]] <- arguments[[i]]
    }
    i <- i + 1
  }
  missing <- setdiff(required, names(options))
  if (length(missing) > 0) {
    stop("missing: ", paste0("--", missing, collapse = ", "), call. = FALSE)
  }
  if (is.null(rest) && length(others) > 0) {
    stop("unexpected argument ", others[[1]], call. = FALSE)
  }
  c(options, list(rest = others))
}

#' Runs a script's main function
#'
#' Any error ends the script with one line on standard error and status 1.  Text is UTF-8 whatever the locale.
#'
#' @param name name of the script, for messages
#' @param main function of the command line's arguments
run_script <- function(name, main) {
  if (!l10n_info()[["UTF-8"]]) {
    Sys.setlocale("LC_CTYPE", "C.UTF-8")
  }
  options(warn = 1)
  tryCatch(main(commandArgs(trailingOnly = TRUE)), error = function(e) {
    message(name, ": ", conditionMessage(e))
    quit(save = "no", status = 1)
  })
  invisible()
}
