# Runs lintr over every R file of the project, and codetools over the analysis; any finding is an error.
listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- Filter(file.exists, system2("git", listing, stdout = TRUE))
found <- parallel::mclapply(files, lintr::lint, cache = TRUE, mc.cores = parallel::detectCores(),
                            mc.preschedule = FALSE)
for (file in files[!vapply(found, inherits, logical(1), "lints")]) stop(file, ": lintr failed", call. = FALSE)
for (finding in unlist(found, recursive = FALSE)) print(finding)

# lintr looks at one file at a time, so that its check of what is used knows nothing of the other files: it is
# switched off, and done here over all of them, for functions and their arguments: dplyr and ggplot2 look up
# variables in data.
analysis <- list2env(list(where = identity), parent = globalenv())
files <- list.files("analysis", "[.]R$", full.names = TRUE)
parts <- lapply(files, function(file) as.list(parse(file, keep.source = FALSE, encoding = "UTF-8")))
for (one in unlist(parts)) {
  if (is.call(one) && identical(one[[1]], quote(library))) suppressPackageStartupMessages(eval(one))
  makes <- is.call(one) && identical(one[[1]], quote(`<-`)) && is.call(one[[3]])
  if (makes && identical(one[[3]][[1]], quote(`function`))) eval(one, analysis)
}
usage <- character()
codetools::checkUsageEnv(analysis, report = function(text) usage <<- c(usage, text))
usage <- grep("(global|local) variable", usage, value = TRUE, invert = TRUE)
cat(usage, sep = "")
quit(status = as.integer(sum(lengths(found)) + length(usage) > 0))
