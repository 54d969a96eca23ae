# The text that fio 2.0.8 prints: one section for each job, with units that differ from line to line.

#' Reads the output of fio
#'
#' @param lines of the log
#' @return as from `imported`; factors `job`, `direction` (read, write, or both for the sum of a mixed job)
#'   and, for percentiles, `percentile`.  Metrics: iops; bandwidth (of the job) and thread_bandwidth (the
#'   mean of the samples of one thread) in KB/s; latency_submission, latency_completion, latency_total in
#'   us (means); latency_percentile in us
read_fio <- function(lines) {
  starts <- grep("^[^ ].*: \\(groupid=[0-9]+, jobs=[0-9]+\\):", lines)
  if (length(starts) == 0) {
    return(imported(list(), list(problems(1, "no job of fio in this file"))))
  }
  ends <- grep("^Run status group", lines)
  last <- if (length(ends) > 0) ends[[1]] - 1 else length(lines)
  announced <- unique(sub(":.*", "", grep("^[^ ]+: \\(g=[0-9]+\\): rw=", lines, value = TRUE)))
  sections <- blocks_of(lines[seq_len(last)], starts[starts <= last])
  read <- lapply(sections, function(at) fio_job(lines, at))
  missing <- setdiff(announced, sub(": \\(groupid.*", "", lines[starts]))
  imported(lapply(read, `[[`, "values"), c(
    lapply(read, `[[`, "problems"),
    list(problems(rep(1, length(missing)), paste0("the job ", missing, " was announced and has no result"))),
    if (length(ends) == 0) list(problems(length(lines), "the output ends before fio's summary"))
  ))
}

#' Reads one job
#'
#' @param lines of the log
#' @param at numbers of the lines of the job's section
#' @return list: `values`, `problems`
fio_job <- function(lines, at) {
  job <- sub(": \\(groupid.*", "", lines[[at[[1]]]])
  if (!grepl("err= *0:", lines[[at[[1]]]])) {
    return(list(problems = problems(at[[1]], paste0("the job ", job, " ended with an error"))))
  }
  heads <- at[grepl("^ *(read|write) *: +io=", lines[at])]
  if (length(heads) == 0) {
    return(list(problems = problems(at[[1]],
                                    paste0("the job ", job, " has neither a read nor a write section"))))
  }
  # What follows the last section's bandwidth belongs to the job as a whole.
  parts <- Map(function(from, to) from:to, heads, c(heads[-1] - 1, at[[length(at)]]))
  read <- lapply(parts, function(part) fio_direction(lines, part, job))
  values <- do.call(rbind, lapply(read, `[[`, "values"))
  if (length(heads) == 2) {
    for (metric in c("iops", "bandwidth")) {
      both <- values[values$metric == metric, ]
      if (nrow(both) == 2) {
        values <- rbind(values, readings(metric, both$unit[[1]], sum(both$value),
                                         paste0("job=", job, ";direction=both"), 1, both$line[[1]]))
      }
    }
  }
  list(values = values, problems = do.call(rbind, lapply(read, `[[`, "problems")))
}

#' Reads the read or the write section of a job
#'
#' @param lines of the log
#' @param at numbers of the section's lines
#' @param job its name
#' @return list: `values`, `problems`
fio_direction <- function(lines, at, job) {
  section <- lines[at]
  factors <- paste0("job=", job, ";direction=", sub("^ *(read|write).*", "\\1", section[[1]]))
  rows <- list()
  failed <- problems()
  add <- function(metric, unit, value, place, more = "") {
    if (all(is.finite(value) & value >= 0) && length(value) > 0) {
      rows[[length(rows) + 1]] <<- readings(metric, unit, value, paste0(factors, more), 1, at[place])
    } else {
      failed <<- rbind(failed, problems(at[[place[[1]]]], paste0(factors, ": no ", metric, " can be read")))
    }
  }
  add("iops", "IOPS", fio_number(fio_field(section[[1]], "iops")), 1)
  add("bandwidth", "KB/s", fio_bytes(fio_field(section[[1]], "bw")) / 1024, 1)
  kinds <- c(slat = "latency_submission", clat = "latency_completion", lat = "latency_total")
  for (kind in names(kinds)) {
    place <- grep(paste0("^ *", kind, " *\\([a-z]+\\) *: *min="), section)
    if (length(place) == 1) {
      add(kinds[[kind]], "us",
          fio_number(fio_field(section[[place]], "avg")) * microseconds(section[[place]]), place)
    } else {
      failed <- rbind(failed, problems(at[[1]], paste0(factors, ": no line of ", kind)))
    }
  }
  place <- grep("^ *bw *\\([KMG]?B/s\\) *: *min=", section)
  if (length(place) == 1) {
    scale <- fio_bytes(paste0("1", sub("^ *bw *\\(([KMG]?B/s)\\).*", "\\1", section[[place]]))) / 1024
    add("thread_bandwidth", "KB/s", fio_number(fio_field(section[[place]], "avg")) * scale, place)
  } else {
    failed <- rbind(failed, problems(at[[1]], paste0(factors, ": no line of bandwidth samples")))
  }
  head <- grep("^ *clat percentiles \\(", section)
  if (length(head) == 1) {
    scale <- microseconds(section[[head]])
    below <- seq_along(section) > head & grepl("^ *\\|", section)
    below <- below & cumsum(seq_along(section) > head & !below) == 0
    for (place in which(below)) {
      found <- regmatches(section[[place]],
                          gregexpr("[0-9.]+th=\\[ *[0-9.]+[KMG]?\\]", section[[place]]))[[1]]
      percentile <- sub("th=.*", "", found)
      value <- fio_number(sub(".*\\[ *([^]]*)\\]", "\\1", found)) * scale
      add("latency_percentile", "us", value, rep(place, length(found)), paste0(";percentile=", percentile))
    }
  } else {
    failed <- rbind(failed, problems(at[[1]], paste0(factors, ": no percentiles of the completion latency")))
  }
  list(values = do.call(rbind, rows), problems = failed)
}

#' A field of a line such as "iops=84044 , runt= 60002msec"
#'
#' @param line text
#' @param name of the field
#' @return its text; "" where the line does not have it
fio_field <- function(line, name) {
  found <- regmatches(line, regexec(paste0("(^|[ ,:])", name, "= *([^ ,]+)"), line))[[1]]
  if (length(found) == 3) found[[3]] else ""
}

#' A number that may carry the suffix K, M or G, in powers of 1000
#'
#' @param text such as "1001.4K"
#' @return numbers; NA for what is none
fio_number <- function(text) {
  suffix <- sub("^[0-9.]+", "", text)
  scale <- unname(c(1, "K" = 1e3, "M" = 1e6, "G" = 1e9)[match(suffix, c("", "K", "M", "G"))])
  suppressWarnings(as.numeric(sub("[KMG]$", "", text))) * scale
}

#' A rate in bytes, in powers of 1024
#'
#' @param text such as "336178KB/s"
#' @return bytes a second; NA for what is none
fio_bytes <- function(text) {
  unit <- sub("^[0-9.]+", "", text)
  scale <- 1024^(match(unit, c("B/s", "KB/s", "MB/s", "GB/s")) - 1)
  suppressWarnings(as.numeric(sub("[KMG]?B/s$", "", text))) * scale
}

#' Microseconds in the unit that a line names in parentheses
#'
#' @param line such as "    clat (msec): min=2 , max=323"
#' @return one number; NA for an unknown unit
microseconds <- function(line) {
  unit <- sub("^[^(]*\\(([a-z]+)\\).*", "\\1", line)
  unname(c(usec = 1, msec = 1000, sec = 1e6, nsec = 1e-3)[unit])
}
