# Runs lintr over every R file of the project, and codetools over the rooms of the analysis; any finding is an
# error.  A file in which lintr found nothing is not looked at again before it or the linters change.
listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- system2("git", listing, stdout = TRUE)
files <- files[file.exists(files)]
sums <- tools::md5sum(files)
linters <- paste(tools::md5sum(".lintr"), utils::packageVersion("lintr"))
cache <- ".lintr_cache"
good <- if (file.exists(cache)) readLines(cache)
changed <- files[!paste(linters, sums) %in% good]
found <- parallel::mclapply(changed, lintr::lint, mc.cores = parallel::detectCores(), mc.preschedule = FALSE)
for (file in changed[!vapply(found, inherits, logical(1), "lints")]) {
  stop(file, ": lintr failed", call. = FALSE)
}
for (finding in unlist(found, recursive = FALSE)) print(finding)
bad <- changed[lengths(found) > 0]
writeLines(paste(linters, sums[setdiff(files, bad)]), cache)

# lintr's check of how tangled a function is takes more time than all its other ones: it is switched
# off, and decisions are counted here.
MOST_DECISIONS <- 15
tangled <- unlist(lapply(grep("[.]R$", files, value = TRUE), function(file) {
  expressions <- as.list(parse(file, keep.source = FALSE, encoding = "UTF-8"))
  decisions <- vapply(expressions, function(one) {
    sum(all.names(one) %in% c("if", "for", "while", "repeat", "&&", "||"))
  }, 0L)
  too_many <- expressions[decisions > MOST_DECISIONS]
  paste0(file, ": more than ", MOST_DECISIONS, " decisions in ",
         vapply(too_many, function(one) deparse(one)[[1]], ""), recycle0 = TRUE)
}))
writeLines(tangled)

# lintr looks at one file at a time, so that its check of what is used knows nothing of the other files: it is
# switched off, and done here over all of them.
source("analysis/load.R")
rooms <- new.env(parent = list2env(list(.data = NULL), parent = baseenv()))
load_rooms(".", names(ROOMS)[[length(ROOMS)]], rooms)
usage <- character()
codetools::checkUsageEnv(rooms, report = function(text) usage <<- c(usage, text))
cat(usage, sep = "")
quit(status = as.integer(length(bad) + length(usage) + length(tangled) > 0))
