# Runs lintr over every R file of the project, and codetools over the rooms of the analysis; any finding is an
# error.
listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- system2("git", listing, stdout = TRUE)
findings <- unlist(lapply(files[file.exists(files)], lintr::lint), recursive = FALSE)
for (finding in findings) print(finding)

# lintr looks at one file at a time, so that its check of what is used knows nothing of the other files: it is
# switched off, and done here over all of them.
source("analysis/load.R")
rooms <- new.env(parent = list2env(list(.data = NULL), parent = baseenv()))
load_rooms(".", names(ROOMS)[[length(ROOMS)]], rooms)
usage <- character()
codetools::checkUsageEnv(rooms, report = function(text) usage <<- c(usage, text))
cat(usage, sep = "")
quit(status = as.integer(length(findings) + length(usage) > 0))
