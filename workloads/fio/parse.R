# fio: bandwidth of the sequential jobs, operations a second of the random ones, and the distribution of the
# completion latency of all.

# The jobs as job.sh runs them.
FIO_JOBS <- data.frame(
  job = c("sequential-fill", "seq-read-1", "seq-read-2", "random-write-16", "random-write-16x8",
          "random-read-16", "random-read-16x8", "mixed-random-rw-32x8"),
  rw = c("write", "read", "read", "randwrite", "randwrite", "randread", "randread", "randrw"),
  block = c(rep(1048576, 3), rep(4096, 5)),
  depth = c(16, 1, 2, 16, 16, 16, 16, 32),
  threads = c(1, 1, 1, 1, 8, 1, 8, 8)
)

# Share of reads in the mixed job, in percent.
FIO_READS <- 70

# Those that the originals published.
FIO_PERCENTILES <- c(1, 5, seq(10, 90, 10), 95, 99, 99.5, 99.9, 99.95, 99.99)

# fio counts latencies in bins, 64 for each power of two, and names a bin by its middle: what falls into it is
# at most this share away.
FIO_BIN_ERROR <- 1 / 128

# ns; longer latencies fall into fio's last bin, whatever they are.
FIO_LONGEST <- 2^34

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`job`, `direction` and, for percentiles, `percentile`)
#' @section Errors: broken_log
parse_fio <- function(lines, parameters) {
  points <- read_points(lines)
  within <- unlist(lapply(points, function(point) point$from:point$to))
  log <- read_log(lines[-within], layout = "layout")
  layout <- require_one(log, "layout")
  first <- which(startsWith(lines, "{\"layout\":"))
  last <- which(startsWith(lines, "{\"done\":"))
  require_that(all(first < min(within)) && all(last > max(within)),
               "the jobs should stand between the layout and the end")
  require_that(is.character(layout$tool) && startsWith(layout$tool, "fio-"), "this is not a log of fio")
  require_asked(layout, parameters, "bytes")
  jobs <- vapply(points, function(point) paste(point$head$point, collapse = " "), "")
  require_that(identical(jobs, as.character(unlist(parameters$jobs))),
               "the jobs should be ", paste(unlist(parameters$jobs), collapse = ", "),
               ", and the log holds ", paste(jobs, collapse = ", "))
  require_that(all(jobs %in% FIO_JOBS$job), "a job is none that is known")
  asked_for <- split(FIO_JOBS[match(jobs, FIO_JOBS$job), ], seq_along(jobs))
  all_measured(Map(fio_values, points, asked_for, list(layout), list(parameters)))
}

#' What was measured in one job
#'
#' @param point as from `read_points`
#' @param job row of FIO_JOBS
#' @param layout object that tells of the test file
#' @param parameters the record's parameters
#' @return as from `measured`
#' @section Errors: broken_log
fio_values <- function(point, job, layout, parameters) {
  require_asked(point$head, parameters, c("bytes", "seconds", "ramp_seconds"))
  require_that(identical(point$head$tool, layout$tool) && identical(point$head$seed, layout$seed),
               job$job, ": tool and seed should be those of the layout")
  output <- fio_output(point$lines, job$job)
  require_that(identical(output[["fio version"]], layout$tool), job$job, ": another version of fio ran")
  require_that(length(output$jobs) == 1, job$job, ": fio should tell of one group of threads")
  group <- output$jobs[[1]]
  require_that(identical(group$jobname, job$job), job$job, ": fio tells of another job")
  require_that(number(group, "error", zero = TRUE) == 0, job$job, ": fio tells of the error ", group$error)
  require_options(c(output[["global options"]], group[["job options"]]),
                  fio_options(job, layout, parameters), job$job)
  directions <- switch(sub("^rand", "", job$rw), rw = c("read", "write"), sub("^rand", "", job$rw))
  for (idle in setdiff(c("read", "write", "trim"), directions)) {
    require_that(number(fio_part(group, idle), "total_ios", zero = TRUE) == 0,
                 job$job, ": there should be no ", idle)
  }
  sides <- lapply(directions, function(direction) {
    fio_side(fio_part(group, direction), paste0(job$job, ", ", direction), job, parameters)
  })
  factors <- paste0("job=", job$job, ";direction=", directions)
  all_measured(c(list(fio_rate(sides, job, factors)), Map(fio_latencies, sides, factors)))
}

#' What fio printed for a job
#'
#' @param lines of a point
#' @param job its name, for messages
#' @return nested lists
#' @section Errors: broken_log, where there is not one complete JSON object, or one holds a key twice
fio_output <- function(lines, job) {
  from <- which(lines == "{")
  to <- which(lines == "}")
  require_that(length(from) == 1 && length(to) == 1 && all(from < to),
               job, ": fio's output should be one JSON object")
  text <- paste(lines[from:to], collapse = "\n")
  output <- if (validUTF8(text)) {
    tryCatch(jsonlite::parse_json(text), error = function(e) NULL)
  }
  require_that(!is.null(output), job, ": fio's output is not a complete JSON object")
  require_that(all_names_once(output), job, ": fio's output holds a key twice")
  output
}

#' Whether no list in nested lists holds a name twice
#'
#' @param x nested lists
#' @return TRUE or FALSE
all_names_once <- function(x) {
  anyDuplicated(names(x)) == 0 && all(vapply(x[vapply(x, is.list, NA)], all_names_once, NA))
}

#' A part of what fio printed, which must be an object
#'
#' @param object named list
#' @param key name of the part
#' @return named list
#' @section Errors: broken_log
fio_part <- function(object, key) {
  part <- object[[key]]
  require_that(is.list(part) && !is.null(names(part)), "fio's output has no ", key)
  part
}

#' The options with which a job must have run, as fio tells them
#'
#' @inheritParams fio_values
#' @return named character vector
fio_options <- function(job, layout, parameters) {
  ms <- function(key) sprintf("%.0fms", 1000 * asked(parameters, key))
  options <- c(
    name = job$job, filename = layout$layout, size = plain(asked(parameters, "bytes")), rw = job$rw,
    bs = plain(job$block), iodepth = plain(job$depth), numjobs = plain(job$threads), ioengine = "libaio",
    direct = "1", thread = "1", group_reporting = "1", time_based = "1",
    randseed = plain(number(layout, "seed", zero = TRUE)),
    runtime = ms("seconds"), ramp_time = ms("ramp_seconds"), clocksource = "clock_gettime",
    allow_file_create = "0", disk_util = "0"
  )
  if (job$rw == "randrw") c(options, rwmixread = plain(FIO_READS)) else options
}

#' Checks that a job ran with the options that it should, and with no others
#'
#' @param found named list of texts, as fio tells them
#' @param expected as from `fio_options`
#' @param job its name, for messages
#' @section Errors: broken_log
require_options <- function(found, expected, job) {
  keys <- union(names(expected), names(found))
  one <- vapply(found[keys], paste, "", collapse = " ")
  one[!keys %in% names(found)] <- "missing"
  other <- expected[keys]
  other[is.na(other)] <- "missing"
  wrong <- c(which(one != other), 0)[[1]]
  require_that(wrong == 0,
               job, ": the option ", keys[wrong], " should be ", other[wrong], ", and is ", one[wrong])
}

#' The operations of a job in one direction
#'
#' What counts are the operations that were completed after the ramp.  fio's `total_ios` and `iops` are of
#' those that were issued after it: they leave out what was under way when it ended, while the time goes on
#' until the last operation is completed.  Each thread may have one operation whose bytes fio counted to one
#' side of the ramp's end and whose latency to the other.
#'
#' @param side what fio printed about them
#' @param what job and direction, for messages
#' @param job row of FIO_JOBS
#' @param parameters the record's parameters
#' @return list: `operations`, `bytes`, `ms` (for which it ran), `mean` (latency in ns), `bins` (as from
#'   `fio_bins`)
#' @section Errors: broken_log
fio_side <- function(side, what, job, parameters) {
  bytes <- number(side, "io_bytes")
  ms <- number(side, "runtime")
  issued <- number(side, "total_ios")
  latency <- fio_part(side, "clat_ns")
  samples <- number(latency, "N")
  operations <- bytes / job$block
  require_that(operations == round(operations), what, ": io_bytes should be a multiple of ", plain(job$block))
  require_that(abs(operations - samples) <= job$threads,
               what, ": io_bytes tells of ", plain(operations), " operations, and N of ", plain(samples))
  require_that(abs(samples - issued) <= job$depth * job$threads,
               what, ": ", plain(issued), " operations were issued, and ", plain(samples), " completed")
  for (key in c("short_ios", "drop_ios")) {
    require_that(number(side, key, zero = TRUE) == 0, what, ": ", key, " should be 0")
  }
  require_lasted(paste0(what, ": it ran for"), ms / 1000, asked(parameters, "seconds"))
  require_close(paste0(what, ": bw_bytes"), number(side, "bw_bytes"), 1000 * bytes / ms)
  require_close(paste0(what, ": iops"), number(side, "iops"), 1000 * issued / ms)
  bins <- fio_bins(latency, what)
  require_that(sum(bins$count) == samples,
               what, ": the distribution should be that of ", plain(samples), " operations")
  mean <- number(latency, "mean")
  require_close(paste0(what, ": mean latency"), mean, sum(bins$value * bins$count) / samples,
                FIO_BIN_ERROR)
  list(operations = operations, bytes = bytes, ms = ms, mean = mean, bins = bins)
}

#' The distribution of the completion latency
#'
#' @param latency what fio printed about it
#' @param what job and direction, for messages
#' @return data frame: value (ns, ascending), count
#' @section Errors: broken_log, also where fio's own extremes and percentiles are not those of its bins
fio_bins <- function(latency, what) {
  bins <- fio_part(latency, "bins")
  value <- suppressWarnings(as.double(names(bins)))
  count <- checked_numbers(bins, names(bins))
  bits <- floor(log2(pmax(value, 1))) - 6
  middle <- ifelse(bits < 1, value == round(value), value %% 2^bits == 2^(bits - 1))
  require_that(all(middle & value >= 0) && all(count == round(count)),
               what, ": a bin of the distribution is none")
  ascending <- order(value)
  bins <- list2DF(list(value = value[ascending], count = count[ascending]))
  extremes <- c(number(latency, "min"), number(latency, "max"))
  require_that(extremes[2] < FIO_LONGEST, what, ": an operation took ", plain(extremes[2] / 1e9),
               " s, more than fio's distribution holds")
  require_close(paste0(what, ": least and greatest latency"), range(bins$value), extremes, FIO_BIN_ERROR)
  told <- fio_part(latency, "percentile")
  require_that(identical(names(told), sprintf("%f", FIO_PERCENTILES)), what, ": percentiles are missing")
  told <- checked_numbers(told, names(told))
  # Where a rank is a whole number, fio's rounding decides which of two neighbours it takes.
  exact <- round(100 * FIO_PERCENTILES) * sum(bins$count) / 1e4
  agree <- told == value_at(bins, ceiling(exact)) | told == value_at(bins, floor(exact) + 1)
  require_that(all(agree), what, ": fio's percentiles should be those of its bins")
  bins
}

#' The value that has a rank
#'
#' @param bins as from `fio_bins`
#' @param rank 1 for the least; beyond the greatest counts as the greatest
#' @return ns
value_at <- function(bins, rank) {
  through <- cumsum(bins$count)
  bins$value[findInterval(pmin(rank, through[length(through)]), through, left.open = TRUE) + 1]
}

#' How much a job did: MB/s where it is sequential, operations a second where it is random
#'
#' @param sides as from `fio_side`, one for each direction
#' @param job row of FIO_JOBS
#' @param factors of the directions
#' @return as from `measured`, one row
#' @section Errors: broken_log, where the shares of a mixed job are not those that were asked for
fio_rate <- function(sides, job, factors) {
  per_ms <- function(key) sum(vapply(sides, function(side) side[[key]] / side$ms, 0))
  if (length(sides) == 2) {
    operations <- vapply(sides, `[[`, 0, "operations")
    share <- operations[1] / sum(operations)
    # Each operation's direction is drawn by itself, so that the share of few varies.
    require_that(abs(share - FIO_READS / 100) <= 0.02 + 2 / sqrt(sum(operations)),
                 job$job, ": ", plain(100 * share), " % were reads, and ", FIO_READS, " % were asked for")
    factors <- paste0("job=", job$job, ";direction=both")
  }
  if (startsWith(job$rw, "rand")) {
    measured("iops", "IOPS", 1000 * per_ms("operations"), factors)
  } else {
    measured("bandwidth", "MB/s", per_ms("bytes") / 1000, factors)
  }
}

#' The completion latency in one direction: its mean, and those percentiles beyond which enough operations lie
#'
#' A percentile is the middle of the bin in which the nearest rank lies, and within FIO_BIN_ERROR of what was
#' measured.
#'
#' @param side as from `fio_side`
#' @param factors of the direction
#' @return as from `measured`
fio_latencies <- function(side, factors) {
  share <- FIO_PERCENTILES / 100
  samples <- sum(side$bins$count)
  enough <- samples * pmin(share, 1 - share) >= SAMPLES_BEYOND - 1e-9
  rank <- ceiling(round(100 * FIO_PERCENTILES) * samples / 1e4)
  all_measured(list(
    measured("latency", "us", side$mean / 1000, factors),
    measured(rep("latency_percentile", sum(enough)), rep("us", sum(enough)),
             value_at(side$bins, rank[enough]) / 1000,
             sprintf("%s;percentile=%.2f", factors, FIO_PERCENTILES[enough]))
  ))
}
