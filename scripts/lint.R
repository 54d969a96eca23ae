# Runs lintr over every R file of the project; any finding is an error.
files <- system2("git", c("ls-files", "--cached", "--others", "--exclude-standard", "*.R", "*.Rmd"), stdout = TRUE)
findings <- unlist(lapply(files[file.exists(files)], lintr::lint), recursive = FALSE)
for (finding in findings) print(finding)
quit(status = as.integer(length(findings) > 0))
