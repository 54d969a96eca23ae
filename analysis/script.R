# What the scripts of this folder begin with.  A script sets `analysis`, the path of this folder,
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
#' @param ... names of files without their ending, in the order in which they are loaded
load_files <- function(...) {
  for (name in c(...)) {
    suppressMessages(source(file.path(ROOT, "analysis", paste0(name, ".R"))))
  }
}

#' Run a script's function with the arguments of the command line
#'
#' An error ends R with exit status 1 and its message on standard error.
#'
#' @param write function of the arguments, which are texts
#' @param usage names of the script and of its arguments
#' @param least,most how many arguments the script takes
run_script <- function(write, usage, least, most = least) {
  arguments <- commandArgs(TRUE)
  tryCatch({
    if (length(arguments) < least || length(arguments) > most) {
      stop("usage: ", usage, call. = FALSE)
    }
    do.call(write, as.list(arguments))
  }, error = function(error) {
    # Only an error that nobody foresaw names the function in which it arose.
    is_foreseen <- is.null(conditionCall(error))
    message(if (is_foreseen) conditionMessage(error) else as.character(error))
    quit(status = 1)
  })
}
