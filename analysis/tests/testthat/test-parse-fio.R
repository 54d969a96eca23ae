# The parser of fio, on the log of a whole cell and on logs cut out of it.

fio_jobs <- c("sequential-fill", "seq-read-1", "seq-read-2", "random-write-16", "random-write-16x8",
              "random-read-16", "random-read-16x8", "mixed-random-rw-32x8")
fio_asked <- list(jobs = as.list(fio_jobs), bytes = 134217728, seconds = 0.5, ramp_seconds = 0.2)
fio_log <- fixture("fio")

#' The lines of a job in the captured log, from its opening to its closing line
fio_lines <- function(job) {
  fio_log[grep(paste0("\"point\": \"", job, "\""), fio_log):grep(paste0("\"end\": \"", job, "\""), fio_log)]
}

#' A whole log of some of the jobs
fio_cut <- function(jobs) {
  c(fio_log[1], unlist(lapply(jobs, fio_lines)), fio_log[length(fio_log)])
}

#' What the parser says of a log of some of the jobs
fio_parsed <- function(lines, jobs = fio_jobs, ...) {
  parser_of("fio")(lines, updated(fio_asked, jobs = as.list(jobs), ...))
}

#' The parser's error for a log of one job, seq-read-2 unless another is named, and for changed parameters
fio_fails <- function(lines, reason, job = "seq-read-2", ...) {
  expect_error(fio_parsed(lines, job, ...), reason, class = "broken_log")
}

#' Replaces a text that must be there
replaced <- function(lines, old, new) {
  at <- grep(old, lines, fixed = TRUE)
  stopifnot(length(at) > 0)
  lines[at[1]] <- sub(old, new, lines[at[1]], fixed = TRUE)
  lines
}

#' The numbers of the bins of a captured one-way job
fio_samples <- function(job) {
  output <- jsonlite::parse_json(paste(fio_lines(job)[c(-1, -length(fio_lines(job)))], collapse = "\n"))
  side <- output$jobs[[1]][[if (grepl("read", job)) "read" else "write"]]
  rep(as.numeric(names(side$clat_ns$bins)), unlist(side$clat_ns$bins))
}

test_that("a captured log is read", {
  values <- fio_parsed(fio_log)
  rates <- values[values$metric %in% c("bandwidth", "iops"), ]
  expect_equal(rates$factors,
               paste0("job=", fio_jobs, ";direction=",
                      c("write", "read", "read", "write", "write", "read", "read", "both")))
  expect_equal(rates$metric, rep(c("bandwidth", "iops"), c(3, 5)))
  expect_equal(rates$unit, rep(c("MB/s", "IOPS"), c(3, 5)))
  expect_equal(rates$value,
               c(1684013056 / 0.505e6, 1017118720 / 0.501e6, 896532480 / 0.501e6, 64452 / 0.501,
                 95278 / 0.501, 48046 / 0.501, 53718 / 0.502, (54235 + 23418) / 0.502))
  means <- values[values$metric == "latency", ]
  expect_equal(means$unit, rep("us", 9))
  expect_equal(means$factors,
               paste0("job=", fio_jobs[c(1:8, 8)], ";direction=",
                      c("write", "read", "read", "write", "write", "read", "read", "read", "write")))
  expect_equal(means$value,
               c(5011.925912, 482.19816701, 1152.788663158, 121.165670856, 669.842468376, 166.100493527,
                 1187.698184482, 1626.548575164, 1700.395952983))
  expect_true(all(values$unit[values$metric == "latency_percentile"] == "us"))
  expect_setequal(values$metric, c("bandwidth", "iops", "latency", "latency_percentile"))
})

test_that("percentiles are fio's own, and are given where enough operations lie beyond them", {
  values <- fio_parsed(fio_cut("seq-read-2"), "seq-read-2")
  found <- values[values$metric == "latency_percentile", ]
  # 855 operations: 4.3 lie beyond the 99.5th, and 0.9 beyond the 99.9th.
  told <- c("1.00" = 1056.768, "5.00" = 1089.536, "10.00" = 1105.920, "20.00" = 1122.304, "30.00" = 1138.688,
            "40.00" = 1138.688, "50.00" = 1138.688, "60.00" = 1155.072, "70.00" = 1155.072,
            "80.00" = 1155.072, "90.00" = 1187.840, "95.00" = 1220.608, "99.00" = 1318.912,
            "99.50" = 1417.216)
  expect_equal(found$factors, paste0("job=seq-read-2;direction=read;percentile=", names(told)))
  expect_equal(found$value, unname(told))
})

test_that("percentiles are those of the samples themselves", {
  shares <- c(1, 5, seq(10, 90, 10), 95, 99, 99.5, 99.9, 99.95, 99.99) / 100
  for (job in setdiff(fio_jobs, "mixed-random-rw-32x8")) {
    samples <- fio_samples(job)
    expected <- vapply(shares, function(share) percentile(samples, share), 0) / 1000
    values <- fio_parsed(fio_cut(job), job)
    expect_equal(values$value[values$metric == "latency_percentile"], expected[!is.na(expected)])
  }
})

test_that("factors are named as in the published figures", {
  published <- utils::read.csv(file.path(project, "published", "ibm-figures.csv"), colClasses = "character")
  published <- published[published$workload == "fio" & published$metric != "thread_bandwidth", ]
  values <- fio_parsed(fio_log)
  expect_true(all(paste(published$metric, published$unit, published$factors) %in%
                    paste(values$metric, values$unit, values$factors)))
})

test_that("what stands beside fio's output is passed over", {
  lines <- fio_lines("seq-read-2")
  noisy <- c("a warning", fio_log[1], "another", lines[1], "fio: a note", lines[2:(length(lines) - 1)], "",
             lines[length(lines)], fio_log[length(fio_log)])
  expect_equal(fio_parsed(noisy, "seq-read-2"), fio_parsed(fio_cut("seq-read-2"), "seq-read-2"))
})

test_that("no part of a log yields a number", {
  lines <- fio_cut("seq-read-2")
  for (count in some_of(seq_along(lines[-1]) - 1)) {
    fio_fails(lines[seq_len(count)], "")
  }
  fio_fails(c(lines[-length(lines)], "{\"done\": tru"), "not a complete JSON object")
  whole <- fio_cut(fio_jobs)
  for (job in some_of(fio_jobs, 0.3)) {
    expect_error(fio_parsed(fio_cut(setdiff(fio_jobs, job))), "the jobs should be", class = "broken_log")
    expect_error(fio_parsed(whole, setdiff(fio_jobs, job)), "the jobs should be", class = "broken_log")
    ends <- grep(paste0("\"end\": \"", job, "\""), whole)
    expect_error(fio_parsed(whole[-ends]), "not each of which ends|the log holds", class = "broken_log")
    expect_error(fio_parsed(whole[seq_len(ends)]), "does not end with", class = "broken_log")
  }
})

test_that("jobs in another order, twice, or outside of the run are refused", {
  two <- c("seq-read-1", "seq-read-2")
  expect_equal(nrow(fio_parsed(fio_cut(two), two)), 2 * (2 + 14))
  expect_error(fio_parsed(fio_cut(rev(two)), two), "the jobs should be", class = "broken_log")
  fio_fails(fio_cut(c("seq-read-2", "seq-read-2")), "the jobs should be")
  lines <- fio_cut("seq-read-2")
  last <- length(lines)
  fio_fails(lines[c(2:(last - 1), 1, last)], "between the layout and the end")
  fio_fails(lines[c(1, last, 2:(last - 1))], "between the layout and the end")
  fio_fails(replaced(lines, "\"point\": \"seq-read-2\"", "\"point\": \"seq-read-3\""), "does not end in")
  renamed <- gsub("seq-read-2", "seq-read-3", lines, fixed = TRUE)
  fio_fails(renamed, "none that is known", job = "seq-read-3")
})

test_that("a log that lacks a line which counts, or holds one twice, is refused", {
  lines <- fio_cut("seq-read-2")
  section <- function(name) grep(paste0("\"", name, "\" : {"), lines, fixed = TRUE)[1]
  counted <- c(seq_len(grep("\"fio version\"", lines)), grep("\"jobname\"|\"error\"", lines),
               section("job options"):section("read"),
               grep("\"(io_bytes|bw_bytes|iops|runtime|total_ios|short_ios|drop_ios)\" : ", lines),
               setdiff(section("clat_ns"):(section("lat_ns") - 1), grep("stddev", lines)),
               length(lines) - 2:0)
  counted <- counted[counted <= section("write") | counted > length(lines) - 3]
  expect_gt(length(counted), 80)
  for (i in some_of(counted)) {
    fio_fails(lines[-i], "")
  }
  for (i in some_of(seq_along(lines))) {
    fio_fails(append(lines, lines[i], i), "")
  }
  fio_fails(lines[-(3:(length(lines) - 2))], "one JSON object")
})

test_that("a number that is changed is noticed", {
  lines <- fio_cut("random-read-16")
  from <- grep("\"read\" : {", lines, fixed = TRUE)
  to <- grep("\"lat_ns\" : {", lines, fixed = TRUE)[1]
  keys <- "\"(io_bytes|bw_bytes|iops|runtime|total_ios|short_ios|drop_ios|min|max|mean|N|[0-9.]+)\" : "
  part <- from:to
  slat <- grep("\"slat_ns\" : {", lines, fixed = TRUE)[1] + 0:6
  at <- setdiff(part[grepl(keys, lines[part])], slat)
  expect_gt(length(at), 200)
  # The latencies' bins are many and alike.
  bins <- at[at > grep("\"bins\" : {", lines, fixed = TRUE)[1]]
  at <- c(setdiff(at, bins), bins[seq(1, length(bins), 9)])
  for (i in some_of(at)) {
    value <- as.numeric(sub("^.*: ([0-9.]+),?$", "\\1", lines[i]))
    for (new in list(plain(value * 1.02 + 1), "-1", "null", "\"1\"", "{}", "[]", "1e999")) {
      changed <- lines
      changed[i] <- sub(": [0-9.]+", paste0(": ", new), lines[i])
      fio_fails(changed, "", job = "random-read-16")
    }
  }
  bin <- lines[bins[2]]
  value <- as.numeric(sub("^.*\"([0-9]+)\" : .*$", "\\1", bin))
  fio_fails(replaced(lines, sprintf("\"%.0f\"", value), sprintf("\"%.0f\"", value + 1)),
            "bin of the distribution is none", job = "random-read-16")
  fio_fails(replaced(lines, sprintf("\"%.0f\"", value), "\"one\""), "bin of the distribution is none",
            job = "random-read-16")
})

test_that("a job that did not run as it was asked to is refused", {
  lines <- fio_cut("seq-read-2")
  fio_fails(lines, "bytes should be 268435456", bytes = 268435456)
  fio_fails(lines, "seconds should be 60, and the log says 0.5", seconds = 60)
  fio_fails(lines, "ramp_seconds should be 5", ramp_seconds = 5)
  expect_error(parser_of("fio")(lines, list(jobs = list("seq-read-2"))), "does not say which bytes",
               class = "broken_log")
  options <- list(
    c("\"rw\" : \"read\"", "\"rw\" : \"randread\""), c("\"bs\" : \"1048576\"", "\"bs\" : \"4096\""),
    c("\"iodepth\" : \"2\"", "\"iodepth\" : \"1\""), c("\"numjobs\" : \"1\"", "\"numjobs\" : \"2\""),
    c("\"ioengine\" : \"libaio\"", "\"ioengine\" : \"psync\""),
    c("\"direct\" : \"1\"", "\"direct\" : \"0\""), c("\"size\" : \"1342", "\"size\" : \"2342"),
    c("\"runtime\" : \"500ms\"", "\"runtime\" : \"500s\""), c("/data/fio.bin\",", "/tmp/fio.bin\",")
  )
  for (option in options) {
    changed <- lines
    at <- grep(option[1], changed, fixed = TRUE)
    at <- at[at > 2][1]
    changed[at] <- sub(option[1], option[2], changed[at], fixed = TRUE)
    fio_fails(changed, "the option [a-z]+ should be")
  }
  more <- append(lines, "        \"rate_iops\" : \"100\",", grep("\"job options\"", lines))
  fio_fails(more, "the option rate_iops should be missing, and is 100")
  fio_fails(replaced(lines, "\"jobname\" : \"seq-read-2\"", "\"jobname\" : \"seq-read-1\""), "another job")
  fio_fails(replaced(lines, "\"error\" : 0", "\"error\" : 5"), "tells of the error 5")
  fio_fails(replaced(lines, "\"fio version\" : \"fio-3.39\"", "\"fio version\" : \"fio-3.28\""),
            "another version")
  fio_fails(gsub("fio-3.39", "iozone", lines, fixed = TRUE), "not a log of fio")
  other_seed <- sub("\"seed\": 1402953371", "\"seed\": 1402953372", lines)
  fio_fails(c(lines[1], other_seed[-1]), "should be those of the layout")
  fio_fails(other_seed, "the option randseed should be 1402953372, and is 1402953371")
  idle <- grep("\"write\" : {", lines, fixed = TRUE)
  ios <- idle - 1 + grep("\"total_ios\" : 0", lines[idle:length(lines)])[1]
  wrote <- lines
  wrote[ios] <- sub(": 0", ": 3", lines[ios])
  fio_fails(wrote, "there should be no write")
})

test_that("a job that ended early, or that fio could not follow, is refused", {
  lines <- fio_cut("seq-read-2")
  early <- replaced(lines, "\"runtime\" : 501", "\"runtime\" : 250")
  fio_fails(early, "it ran for 0.25 s, less than was asked for")
  slow <- replaced(lines, "\"max\" : 2923319", "\"max\" : 18000000000")
  fio_fails(slow, "took 18 s, more than fio's distribution holds")
  lost <- replaced(lines, "\"total_ios\" : 854", "\"total_ios\" : 852")
  fio_fails(lost, "852 operations were issued, and 855 completed")
  fio_fails(replaced(lines, "\"io_bytes\" : 896532480", "\"io_bytes\" : 896532481"), "a multiple of 1048576")
  fio_fails(replaced(lines, "\"short_ios\" : 0", "\"short_ios\" : 1"), "short_ios should be 0")
})

test_that("a mixed job has the shares that were asked for", {
  mixed <- "mixed-random-rw-32x8"
  lines <- fio_cut(mixed)
  expect_equal(fio_parsed(lines, mixed)$value[1], 77653 / 0.502)
  from <- grep("\"read\" : {", lines, fixed = TRUE)[1]
  middle <- grep("\"write\" : {", lines, fixed = TRUE)[1]
  to <- grep("\"trim\" : {", lines, fixed = TRUE)[1]
  swapped <- c(lines[seq_len(from)], lines[(middle + 1):(to - 1)], lines[middle],
               lines[(from + 1):(middle - 1)], lines[to:length(lines)])
  fio_fails(swapped, "30.15.* % were reads, and 70 % were asked for", job = mixed)
})

test_that("garbage is refused", {
  fio_fails(character(), "holds no point")
  fio_fails(c("\x7fELF\x02\x01", "{\x80\xff", "\xfe"), "holds no point")
  lines <- fio_cut("seq-read-2")
  fio_fails(append(lines, "\xff\xfe", 5), "not a complete JSON object")
  fio_fails(append(lines, "}", 5), "one JSON object")
  fio_fails(append(lines, "fio: a message", 5), "not a complete JSON object")
  fio_fails(c(lines[1], lines), "one layout")
})

test_that("metrics and units are those of workload.yaml", {
  yaml <- readLines(file.path(project, "workloads", "fio", "workload.yaml"))
  values <- unique(fio_parsed(fio_log)[c("metric", "unit")])
  expect_equal(nrow(values), 4)
  for (i in seq_len(nrow(values))) {
    expect_true(any(startsWith(yaml, paste0("  ", values$metric[i], ": {")) &
                      grepl(paste0("unit: ", values$unit[i], ","), yaml, fixed = TRUE)))
  }
})
