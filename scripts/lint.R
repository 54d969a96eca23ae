# Runs lintr over every R file of the project, and codetools over the analysis; any finding is an error.
listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- Filter(file.exists, system2("git", listing, stdout = TRUE))
found <- parallel::mclapply(files, lintr::lint, cache = TRUE, mc.cores = parallel::detectCores(),
                            mc.preschedule = FALSE)
for (file in files[!vapply(found, inherits, logical(1), "lints")]) stop(file, ": lintr failed", call. = FALSE)
for (finding in unlist(found, recursive = FALSE)) print(finding)

# lintr looks at one file at a time, so that its check of what is used knows nothing of the other files: it is
# switched off, and done here over all of them.  Columns, which dplyr and ggplot2 look up in data, and what
# glue puts into texts are no variables: they are named elsewhere, as an argument, behind a $ or in a text.
named <- function(one) {
  if (is.character(one)) return(unlist(regmatches(one, gregexpr("[[:alpha:]][[:alnum:]_.]*", one))))
  if (is.call(one) && identical(one[[1]], quote(`$`))) return(c(as.character(one[[3]]), named(one[[2]])))
  if (is.call(one)) c(names(one), unlist(lapply(as.list(one), named)))
}
analysis <- list2env(list(where = identity), parent = globalenv())
columns <- character()
files <- list.files("analysis", "[.]R$", full.names = TRUE)
for (one in unlist(lapply(files,
                          function(file) as.list(parse(file, keep.source = FALSE, encoding = "UTF-8"))))) {
  columns <- c(columns, named(one))
  if (is.call(one) && identical(one[[1]], quote(library))) suppressPackageStartupMessages(eval(one))
  # What is no function is only there.
  if (is.call(one) && identical(one[[1]], quote(`<-`)) && is.name(one[[2]])) {
    makes <- is.call(one[[3]]) && identical(one[[3]][[1]], quote(`function`))
    assign(as.character(one[[2]]), if (makes) eval(one[[3]], analysis), analysis)
  }
}
usage <- character()
codetools::checkUsageEnv(analysis, report = function(text) usage <<- c(usage, text))
variable <- "(.*global|.*local) variable .(\\w+).*\n"
usage <- usage[!(grepl(variable, usage) & sub(variable, "\\2", usage) %in% columns)]
cat(usage, sep = "")
quit(status = as.integer(sum(lengths(found)) + length(usage) > 0))
