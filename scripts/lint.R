# Usage: Rscript scripts/lint.R
# Runs lintr over every R file of the project, and codetools over the folder analysis.  Any finding
# is an error.

listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- Filter(file.exists, system2("git", listing, stdout = TRUE))
lints <- parallel::mclapply(files, lintr::lint, cache = TRUE, mc.cores = parallel::detectCores(),
                            mc.preschedule = FALSE)
for (file in files[!vapply(lints, inherits, logical(1), "lints")]) {
  stop(file, ": lintr failed", call. = FALSE)
}
for (lint in unlist(lints, recursive = FALSE)) print(lint)

# lintr reads one file at a time and does not know the functions of other files.  So .lintr switches
# its check of used objects off, and codetools checks all files of the analysis together.  codetools
# also reports the columns that dplyr and ggplot2 look up in data, and the variables in texts of
# glue; these are no mistakes if an argument, an element after $ or a text has the same name.

# Collects the names of arguments, the elements after $ and the words of texts in a piece of code.
# code: a parsed expression.
# Returns a character vector; NULL if the code has no such names.
collect_names <- function(code) {
  if (is.character(code)) {
    return(unlist(regmatches(code, gregexpr("[[:alpha:]][[:alnum:]_.]*", code))))
  }
  if (!is.call(code)) return(NULL)
  if (identical(code[[1]], quote(`$`))) {
    return(c(as.character(code[[3]]), collect_names(code[[2]])))
  }
  c(names(code), unlist(lapply(as.list(code), collect_names)))
}

# Returns whether code is a call of the function with a name.
# code: a parsed expression.  name: of the function, as text.
is_call_of <- function(code, name) is.call(code) && identical(code[[1]], as.name(name))

analysis <- list2env(list(where = identity), parent = globalenv())
columns <- character()
paths <- list.files("analysis", "[.]R$", full.names = TRUE)
# Parses a file of R; returns a list of its expressions.
parse_file <- function(path) as.list(parse(path, keep.source = FALSE, encoding = "UTF-8"))
for (code in unlist(lapply(paths, parse_file))) {
  columns <- c(columns, collect_names(code))
  if (is_call_of(code, "library")) suppressPackageStartupMessages(eval(code))
  if (is_call_of(code, "<-") && is.name(code[[2]])) {
    # Only functions are evaluated; of other values only the name matters.
    value <- code[[3]]
    if (is_call_of(value, "function")) value <- eval(value, analysis)
    assign(as.character(code[[2]]), value, analysis)
  }
}
usage <- character()
codetools::checkUsageEnv(analysis, report = function(text) usage <<- c(usage, text))
variable <- "(.*global|.*local) variable .(\\w+).*\n"
usage <- usage[!(grepl(variable, usage) & sub(variable, "\\2", usage) %in% columns)]
cat(usage, sep = "")
quit(status = as.integer(sum(lengths(lints)) + length(usage) > 0))
