# Every printed value beside the one that the raw logs give.

#' Compares the printed values with the raw results
#'
#' The standard deviations of STREAM were printed with the divisor n, all others with n - 1; each is
#' computed as it was printed.
#'
#' @param published as from `read_published_values`
#' @param tidy table of values
#' @return data frame: the columns of `published` without tolerance; `n` values; `recomputed`; `low` and
#'   `high`, Student's 95 % interval of a mean; `rounded`, with as many digits as were printed;
#'   `difference` (recomputed less published); `tolerance`; `verdict`: agrees, label contradicted
#'   (it agrees, and the raw results contradict what it is printed as), differs, incomplete (fewer values than
#'   are behind the print) or not available; `note`; `files`, separated by ";"
differences_from <- function(published, tidy) {
  used <- tidy[tidy$selection == "paper", ]
  key <- function(table) paste(table$workload, table$environment, table$metric, table$factors, sep = "\n")
  groups <- split(seq_len(nrow(used)), key(used))
  rows <- unname(groups[key(published)])
  natively <- unname(groups[key(replace(published, "environment", "native"))])
  # The figure shows MB/s of 1000 KB/s.
  scale <- ifelse(published$workload == "fio" & published$unit == "MB/s", 1 / 1000, 1)
  statistics <- Map(function(own, reference, i) {
    recompute(used$value[own] * scale[[i]], used$value[reference] * scale[[i]], published$statistic[[i]],
              published$workload[[i]])
  }, rows, natively, seq_along(rows))
  part <- function(name) vapply(statistics, function(one) one[[name]], 0)
  recomputed <- part("value")
  printed <- as.numeric(published$published)
  n <- lengths(rows)
  # A printed number stands for all that round to it, whichever way a half is rounded.
  agrees <- abs(recomputed - printed) <= published$tolerance * (1 + 1e-9)
  verdict <- ifelse(is.na(recomputed), NOT_AVAILABLE,
                    ifelse(n < published$planned, "incomplete", ifelse(agrees, "agrees", "differs")))
  # The number is that of the raw results; what it is printed as is not.
  verdict[verdict == "agrees" & published$disputed] <- "label contradicted"
  decimals <- nchar(sub("^[^.]*\\.?", "", published$published))
  data.frame(
    published[c("place", "workload", "environment", "metric", "unit", "factors", "statistic", "planned",
                "published")],
    n = n, recomputed = recomputed, low = part("low"), high = part("high"),
    rounded = ifelse(is.na(recomputed), "",
                     sub("^-(0(\\.0*)?)$", "\\1", sprintf("%.*f", decimals, recomputed))),
    difference = recomputed - printed, tolerance = published$tolerance, verdict = verdict,
    note = note_on(published, verdict),
    files = vapply(rows, function(own) paste(unique(used$file[own]), collapse = ";"), ""), row.names = NULL
  )
}

#' One statistic of a series
#'
#' @param values of the series
#' @param reference values of the same series natively
#' @param statistic its name
#' @param workload of the series
#' @return list: `value`, `low`, `high`, numbers; NA where there are too few values
recompute <- function(values, reference, statistic, workload) {
  n <- length(values)
  result <- list(value = NA_real_, low = NA_real_, high = NA_real_)
  if (n == 0) {
    return(result)
  }
  divisor <- if (workload == "stream") n else n - 1
  result$value <- switch(
    statistic,
    value = , mean = mean(values),
    min = min(values),
    max = max(values),
    sd = if (n < 2) NA_real_ else sqrt(sum((values - mean(values))^2) / divisor),
    deviation_percent = if (length(reference) == 0) NA_real_ else 100 * (mean(values) / mean(reference) - 1)
  )
  if (statistic == "mean") {
    limits <- interval_of_mean(values)
    result$low <- limits[["low"]]
    result$high <- limits[["high"]]
  }
  result
}

#' What has to be said about a comparison
#'
#' @param published as from `read_published_values`
#' @param verdict as in the result of `differences_from`
#' @return texts
note_on <- function(published, verdict) {
  is <- function(place, workload, environment = unique(published$environment)) {
    published$place %in% place & published$workload == workload & published$environment %in% environment
  }
  missing <- verdict == NOT_AVAILABLE
  note <- ifelse(missing, "the raw results are not among the files that were read", "")
  note[verdict == "incomplete"] <- "fewer raw results were read than are behind the printed value"
  note[missing & published$workload == "pxz"] <- "no raw results of parallel xz were published"
  note[missing & published$place == "Figure 2"] <- "no cycles were published, only nuttcp\u2019s rates"
  note[missing & is("Figure 3", "netperf", "docker")] <- "the workbook's cells for Docker with NAT are empty"
  note[verdict == "differs" & is("Table I", "linpack", "vm")] <-
    "the one complete raw log of the untuned virtual machine gives about half of the printed rate"
  note[!missing & is(paste("Figure", 10:13), "mysql", "docker-hostnet-layered")] <-
    "printed as Docker with NAT and a volume; it had the host's network and the container's files"
  note[!missing & is("Figure 5",
                     "fio")] <- "the mean of fio's bandwidth samples, over about 21 s and not 60 s"
  note
}

#' Writes where the results were read from
#'
#' @param source as from `open_source`
#' @param path of the JSON file
write_source <- function(source, path) {
  object <- list(format = 1, revision = source$revision, from = if (source$git) "git objects" else "files",
                 files = length(source$files), not_opened = length(source$private))
  write_whole(path, function(temporary) {
    writeLines(jsonlite::toJSON(object, auto_unbox = TRUE, pretty = TRUE), temporary)
  })
}
