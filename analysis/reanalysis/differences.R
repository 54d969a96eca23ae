# Every printed value beside the one that the raw logs give.

#' Compares the printed values with the raw results
#'
#' The standard deviations of STREAM were printed with the divisor n, all others with n - 1; each is computed as it was
#' printed.
#'
#' @param published as from `read_published_values`
#' @param tidy table of values
#' @return data frame: the columns of `published` without tolerance; `n` values; `recomputed`; `rounded`, with as many
#'   digits as were printed; `difference` (recomputed less published); `tolerance`; `verdict` (agrees, differs, not
#'   available); `note`; `files`, separated by ";"
differences_from <- function(published, tidy) {
  used <- tidy[tidy$selection == "paper", ]
  key <- function(table) paste(table$workload, table$environment, table$metric, table$factors, sep = "\n")
  groups <- split(seq_len(nrow(used)), key(used))
  keys <- key(published)
  native <- key(replace(published, "environment", "native"))
  rows <- groups[keys]
  of_unit <- ifelse(published$workload == "fio" & published$unit == "MB/s", 1 / 1000, 1)
  recomputed <- mapply(function(own, reference, statistic, workload) {
    recompute(used$value[own], used$value[reference], statistic, workload)
  }, rows, groups[native], published$statistic, published$workload, USE.NAMES = FALSE) * of_unit
  printed <- as.numeric(published$published)
  away <- abs(recomputed - printed)
  # A printed number stands for all that round to it, whichever way a half is rounded.
  agrees <- away <= published$tolerance * (1 + 1e-9)
  decimals <- nchar(sub("^[^.]*\\.?", "", published$published))
  data.frame(
    published[c("place", "workload", "environment", "metric", "unit", "factors", "statistic", "published")],
    n = lengths(rows), recomputed = recomputed,
    rounded = ifelse(is.na(recomputed), "", sprintf("%.*f", as.integer(decimals), recomputed)),
    difference = recomputed - printed, tolerance = published$tolerance,
    verdict = ifelse(is.na(recomputed), "not available", ifelse(agrees, "agrees", "differs")),
    note = note_on(published, is.na(recomputed), agrees),
    files = vapply(rows, function(own) paste(unique(used$file[own]), collapse = ";"), ""), row.names = NULL
  )
}

#' One statistic of a series
#'
#' @param values of the series
#' @param reference values of the same series natively
#' @param statistic its name
#' @param workload of the series
#' @return one number; NA where there are too few values
recompute <- function(values, reference, statistic, workload) {
  n <- length(values)
  if (n == 0) {
    return(NA_real_)
  }
  switch(statistic,
         value = , mean = mean(values), min = min(values), max = max(values), sd = {
           if (n < 2) NA_real_ else stats::sd(values) * if (workload == "stream") sqrt((n - 1) / n) else 1
         }, deviation_percent = if (length(reference) == 0) NA_real_ else 100 * (mean(values) / mean(reference) - 1))
}

#' What has to be said about a comparison
#'
#' @param published as from `read_published_values`
#' @param missing whether it could not be recomputed
#' @param agrees whether it agrees
#' @return texts
note_on <- function(published, missing, agrees) {
  note <- rep("", nrow(published))
  is <- function(place, workload, environment = unique(published$environment)) {
    published$place %in% place & published$workload == workload & published$environment %in% environment
  }
  note[missing] <- "the raw results are not among the files that were read"
  note[missing & published$workload == "pxz"] <- "no raw results of parallel xz were ever published"
  note[missing & is("Figure 3", "netperf", "docker")] <- "the workbook's cells for Docker with NAT are empty"
  note[!missing & is("Table I", "linpack", "vm") & published$statistic != "sd" & !agrees] <-
    "the only complete raw log of the untuned virtual machine shows about half of the rate that is printed"
  note[!missing & is(paste("Figure", 10:13), "mysql", "docker-hostnet-layered")] <-
    "printed as Docker with NAT and a volume; measured with the host's network and the container's file system"
  note[!missing & is("Figure 5", "fio")] <- "the mean of fio's bandwidth samples, over about 21 s and not 60 s"
  note
}

#' Writes where the results were read from
#'
#' @param source as from `open_source`
#' @param path of the JSON file
write_source <- function(source, path) {
  object <- list(format = 1, path = source$path, revision = source$revision,
                 from = if (source$git) "git objects" else "files", files = length(source$files),
                 not_opened = length(source$private))
  write_whole(path, function(temporary) {
    writeLines(jsonlite::toJSON(object, auto_unbox = TRUE, pretty = TRUE), temporary)
  })
}
