# Runs lintr over every R file of the project; any finding is an error.
listing <- c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd")
files <- system2("git", listing, stdout = TRUE)
findings <- unlist(lapply(files[file.exists(files)], lintr::lint), recursive = FALSE)
for (finding in findings) print(finding)
quit(status = as.integer(length(findings) > 0))
