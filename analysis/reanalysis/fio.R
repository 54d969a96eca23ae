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
  average <- function(place) fio_number(fio_field(section[[place]], "avg"))
  one <- function(metric, unit, pattern, value) {
    place <- grep(pattern, section)
    if (length(place) != 1) {
      return(list(problems = problems(at[[1]], paste0(factors, ": no line of ", words(metric)))))
    }
    fio_values(metric, unit, value(place), factors, at[[place]])
  }
  kinds <- c(slat = "latency_submission", clat = "latency_completion", lat = "latency_total")
  parts <- c(
    list(fio_values("iops", "IOPS", fio_number(fio_field(section[[1]], "iops")), factors, at[[1]]),
         fio_values("bandwidth", "KB/s", fio_bytes(fio_field(section[[1]], "bw")) / 1024, factors, at[[1]])),
    lapply(names(kinds), function(kind) {
      one(kinds[[kind]], "us", paste0("^ *", kind, " *\\([a-z]+\\) *: *min="),
          function(place) average(place) * microseconds(section[[place]]))
    }),
    list(one("thread_bandwidth", "KB/s", "^ *bw *\\([KMG]?B/s\\) *: *min=", function(place) {
      unit <- sub("^ *bw *\\(([KMG]?B/s)\\).*", "\\1", section[[place]])
      average(place) * fio_bytes(paste0("1", unit)) / 1024
    })),
    fio_percentiles(section, at, factors)
  )
  list(values = do.call(rbind, lapply(parts, `[[`, "values")),
       problems = do.call(rbind, lapply(parts, `[[`, "problems")))
}

#' Values of one line, or the problem that there are none
#'
#' @param metric,unit,value,factors as of `readings`
#' @param line number of the line
#' @return list: `values` or `problems`
fio_values <- function(metric, unit, value, factors, line) {
  if (length(value) > 0 && all(is.finite(value) & value >= 0)) {
    list(values = readings(metric, unit, value, factors, 1, line))
  } else {
    list(problems = problems(line, paste0(factors[[1]], ": no ", words(metric), " can be read")))
  }
}

#' Reads the percentiles of the completion latency
#'
#' @param section lines of a read or write section
#' @param at their numbers
#' @param factors of the section
#' @return list of results of `fio_values`, one for each line of percentiles
fio_percentiles <- function(section, at, factors) {
  head <- grep("^ *clat percentiles \\(", section)
  if (length(head) != 1) {
    return(list(list(problems = problems(at[[1]], paste0(factors, ": no percentiles of the latency")))))
  }
  after <- seq_along(section) > head
  listed <- after & grepl("^ *\\|", section)
  listed <- listed & cumsum(after & !listed) == 0
  unlist(lapply(which(listed), function(place) {
    found <- regmatches(section[[place]], gregexpr("[0-9.]+th=\\[[^]]*\\]?", section[[place]]))[[1]]
    value <- fio_number(sub(".*\\[ *([^]]*)\\]?", "\\1", found)) * microseconds(section[[head]])
    more <- paste0(factors, ";percentile=", sub("th=.*", "", found), recycle0 = TRUE)
    good <- !is.na(value) & endsWith(found, "]")
    c(if (any(good)) list(fio_values("latency_percentile", "us", value[good], more[good], at[[place]])),
      if (!all(good) || length(found) == 0) {
        list(list(problems = problems(at[[place]], paste0(factors, ": a percentile that can't be read"))))
      })
  }), recursive = FALSE)
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
