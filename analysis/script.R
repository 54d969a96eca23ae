# The beginning of every script of this folder.  A script sets `analysis`, the path of this folder,
# and sources this file; then it loads the files that it needs, and runs its function.

# The folder of the project.
ROOT <- dirname(normalizePath(analysis))

# No result depends on the caller's locale, time zone or date.
Sys.setenv(SOURCE_DATE_EPOCH = "0", TZ = "UTC", LC_ALL = "C.UTF-8")
invisible(Sys.setlocale("LC_ALL", "C.UTF-8"))
# Each function runs too seldom to be worth compiling.
invisible(compiler::enableJIT(0))

#' Load files of this folder into the global environment
#'
#' The messages of packages are suppressed, so that only results and errors are printed.
#'
#' @param ... names of files without their ending, in the order in which they are loaded; a file's
#'   constants may use those of earlier files
load_files <- function(...) {
  for (name in c(...)) {
    suppressMessages(source(file.path(ROOT, "analysis", paste0(name, ".R"))))
  }
}

#' Run a script's function with the arguments of the command line
#'
#' An error ends R with its message on standard error, which Strata's commands show.  If the script
#' refuses its input, the exit status is 3, and the message begins with "refused: "; otherwise the
#' status is 1.  strata/util/programs.py needs both for a refusal, so that it does not mistake the
#' failure of another program in R's place for one.
#'
#' @param write function that is called with the arguments, which are texts; it writes files or
#'   prints
#' @param usage names of the script and of its arguments, for the message of a wrong call
#' @param min_count,max_count how many arguments the script takes
run_script <- function(write, usage, min_count, max_count = min_count) {
  arguments <- commandArgs(TRUE)
  tryCatch({
    if (length(arguments) < min_count || length(arguments) > max_count) {
      stop("usage: ", usage, call. = FALSE)
    }
    do.call(write, as.list(arguments))
  }, error = function(error) {
    # An error of stop(..., call. = FALSE) is meant for users, and names no function.
    is_foreseen <- is.null(conditionCall(error))
    message(if (is_foreseen) paste0("refused: ", conditionMessage(error)) else as.character(error))
    quit(status = if (is_foreseen) 3 else 1)
  })
}
