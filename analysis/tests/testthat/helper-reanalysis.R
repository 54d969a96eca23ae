# Small imitations of the published logs, written for these tests, and folders of them.

#' A run of RandomAccess
gups_log <- function(rate, minute = 0, numa = "", apt = FALSE, passed = "passed", seconds = 1 / rate) {
  c(strrep("-", 80),
    paste0("Running gups", numa, ", started at Sat Jul 12 11:19:40 CDT 2014"),
    if (apt) c("Selecting previously unselected package libgomp1:amd64.",
               "Processing triggers for libc-bin ..."),
    sprintf("Generated on 2014-07-12:16:%02d:40 GMT", minute),
    "Main table size   = 2^33 = 8589934592 words",
    "Number of updates = 1000000000",
    sprintf("CPU time used  = %.6f seconds", seconds), sprintf("Real time used = %.6f seconds", seconds),
    sprintf("%.9f Billion(10^9) Updates    per second [GUP/s]", rate),
    sprintf("Found 1 errors in 8589934592 locations (%s).", passed), "")
}

BOTH <- " with numaopts <  --physcpubind=0-31 --interleave=0,1  >"
ONE <- " with numaopts <  --physcpubind=0-7,16-23 --localalloc  >"

#' A run of STREAM
stream_log <- function(rates, threads = 32, minute = 0, unit = "GB/s", valid = TRUE) {
  c(strrep("-", 80), "Running stream, started at Sat Jul 12 10:27:26 CDT 2014",
    sprintf("Generated on 2014-07-12:15:%02d:32 GMT", minute),
    "This system uses 8 bytes per DOUBLE PRECISION word.",
    paste("Number of Threads requested =", threads),
    sprintf("Function      Rate (%s)   Avg time     Min time     Max time", unit),
    sprintf("%-7s %14.4f       0.6440       0.6395       0.6686", c("Copy:", "Scale:", "Add:", "Triad:"),
            rates),
    if (valid) "Solution Validates", "")
}

#' A start of Linpack
linpack_log <- function(gflops, asked = length(gflops), header = TRUE, day = 17, cpus = 2, cores = 16,
                        threads = 32,
                        summary = TRUE, check = "pass", numa = "", average = mean(gflops)) {
  c(if (header) c(strrep("-", 80),
                  paste0("Running linpack", numa, ", started at Thu Jul 17 22:17:38 CDT 2014")),
    "This is a SAMPLE run script for SMP LINPACK. Change it to reflect",
    "Intel(R) Optimized LINPACK Benchmark data", "",
    sprintf("Current date/time: Thu Jul %d 22:17:39 2014", day),
    sprintf("Number of CPUs: %d", cpus), sprintf("Number of cores: %d", cores),
    sprintf("Number of threads: %d", threads),
    sprintf("Number of trials to run                     : %-5d", asked),
    "Size   LDA    Align. Time(s)    GFlops   Residual     Residual(norm) Check",
    sprintf("45000  45000  1      208.417    %.4f 1.876477e-09 3.301464e-02   %s", gflops, check),
    if (summary && length(gflops) > 0) {
      c("", "Performance Summary (GFlops)", "", "Size   LDA    Align.  Average  Maximal",
        sprintf("45000  45000  1       %.4f %.4f", average, max(gflops)), "", "Residual checks PASSED")
    })
}

#' A job's section of fio's output
fio_section <- function(job, group = 0, direction = "read", iops = 84044, bw = "336178KB/s", unit = "usec",
                        avg = "1479.68", max = "9507", percentiles = c("274", "660"), error = 0) {
  c(sprintf("%s: (groupid=%d, jobs=8): err= %d: pid=9550", job, group, error),
    unlist(lapply(direction, function(one) {
      c(sprintf("  %-5s: io=19699MB, bw=%s, iops=%s , runt= 60002msec", one, bw, iops),
        "    slat (usec): min=2 , max=6555 , avg= 9.71, stdev=82.55",
        sprintf("    clat (%s): min=81 , max=%s, avg=%s, stdev=417.11", unit, max, avg),
        sprintf("     lat (%s): min=81 , max=%s, avg=%s, stdev=417.11", unit, max, avg),
        sprintf("    clat percentiles (%s):", unit),
        sprintf("     |  1.00th=[%5s],  5.00th=[%5s],", percentiles[[1]], percentiles[[2]]),
        "     | 99.99th=[ 9000]",
        "    bw (KB/s)  : min=40272, max=42944, per=12.50%, avg=42031.22, stdev=366.80",
        "    lat (usec) : 250=0.01%, 500=1.16%")
    })),
    "  cpu          : usr=8.16%, sys=31.18%, ctx=1004, majf=0, minf=0")
}

FIO_END <- c("", "Run status group 0 (all jobs):", "   READ: io=19699MB, aggrb=336178KB/s")

#' An output of sysbench
sysbench_log <- function(threads, transactions = 204320, seconds = 60.0026, avg = 2.93, write = 0,
                         rate = transactions / seconds) {
  c("sysbench 0.4.12:  multi-threaded system evaluation benchmark", "",
    sprintf("Number of threads: %d", threads),
    "Doing read-only test", "    queries performed:",
    sprintf("        write:                           %d", write),
    sprintf("    transactions:                        %d (%.2f per sec.)", transactions, rate),
    sprintf("    total time:                          %.4fs", seconds),
    "         min:                                  2.20ms",
    sprintf("         avg:                                  %.2fms", avg),
    "         approx.  95 percentile:               3.34ms",
    "    execution time (avg/stddev):   59.8141/0.01", "")
}

#' dstat's header
DSTAT_HEAD <- c("\"Dstat 0.7.2 CSV output\"", "\"Host:\",\"a\",,,,\"User:\",\"b\"", "",
                "\"total cpu usage\",,,,,,\"net/total\",,",
                "\"usr\",\"sys\",\"idl\",\"wai\",\"hiq\",\"siq\",\"recv\",\"send\"")

#' Seconds of dstat
dstat_seconds <- function(usr, idle = 100 - usr) {
  sprintf("%.3f,0.0,%.3f,0.0,0.0,0.0,1.0,2.0", usr, idle)
}

#' A test of redis-benchmark
redis_test <- function(name, rate, connections, progress = "0.00") {
  c(paste0(name, ": ", progress, "\r", name, ": ", rate + 1, "\r====== ", name, " ======"),
    "  500000 requests completed in 4.94 seconds", sprintf("  %d parallel clients", connections),
    "", "100.00% <= 0 milliseconds", sprintf("%.2f requests per second", rate), "")
}

#' A run of redis-benchmark with one number of connections
redis_run <- function(run, connections, rate = 1000 * run + connections, tests = REDIS_TESTS) {
  c("[DBG] Wed Jul 16 22:11:46 CDT 2014", sprintf("[DBG] Run #%d: Connections %d.", run, connections), "OK",
    "[DBG] Running tests",
    unlist(lapply(seq_along(tests), function(i) {
      redis_test(tests[[i]], rate + i / 10, connections, if (i == 2) "-nan" else "0.00")
    })), "------------------")
}

#' A folder of published results
#'
#' @param ... lines of files, named by their paths
#' @return its path
published_folder <- function(...) {
  folder <- tempfile("raw-")
  files <- list(...)
  for (file in names(files)) {
    dir.create(dirname(file.path(folder, file)), recursive = TRUE, showWarnings = FALSE)
    if (is.raw(files[[file]])) {
      writeBin(files[[file]], file.path(folder, file))
    } else {
      writeLines(files[[file]], file.path(folder, file))
    }
  }
  folder
}

#' Everything that is read from such a folder
collect_folder <- function(...) {
  collect(open_source(published_folder(...)))
}

#' Runs git in a folder
git_in <- function(folder, ...) {
  identity <- c("-c", "user.name=test", "-c", "user.email=test@localhost", "-c", "init.defaultBranch=main")
  out <- system2("git", shQuote(c("-C", folder, identity, ...)), stdout = TRUE, stderr = TRUE)
  stopifnot(is.null(attr(out, "status")))
  out
}

#' A folder as a git repository with one commit
as_repository <- function(folder) {
  git_in(folder, "init", "-q")
  git_in(folder, "add", "-A")
  git_in(folder, "commit", "-q", "-m", "results")
  folder
}

#' An Excel workbook
#'
#' @param path to write to
#' @param cells named list: cell to number or text
write_workbook <- function(path, cells) {
  rows <- split(names(cells), as.integer(sub("^[A-Z]+", "", names(cells))))
  texts <- unique(unlist(Filter(is.character, cells)))
  xml <- vapply(names(rows), function(row) {
    inner <- vapply(rows[[row]], function(name) {
      value <- cells[[name]]
      if (is.null(value) || is.na(value)) {
        sprintf("<c r=\"%s\" s=\"1\"/>", name)
      } else if (is.character(value)) {
        sprintf("<c r=\"%s\" t=\"s\"><v>%d</v></c>", name, match(value, texts) - 1)
      } else {
        sprintf("<c r=\"%s\"><v>%.10g</v></c>", name, value)
      }
    }, "")
    sprintf("<row r=\"%s\">%s</row>", row, paste(inner, collapse = ""))
  }, "")
  space <- "xmlns=\"http://schemas.openxmlformats.org/spreadsheetml/2006/main\""
  sheet <- sprintf("<?xml version=\"1.0\"?><worksheet %s><sheetData>%s</sheetData></worksheet>", space,
                   paste(xml, collapse = ""))
  strings <- sprintf("<?xml version=\"1.0\"?><sst %s>%s</sst>", space,
                     paste(sprintf("<si><r><t>%s</t></r></si>", gsub(">", "&gt;", texts)), collapse = ""))
  writeBin(zip_of(list("xl/worksheets/sheet1.xml" = sheet, "xl/sharedStrings.xml" = strings)), path)
  path
}

#' A ZIP archive of uncompressed texts
zip_of <- function(files) {
  number <- function(x, bytes) as.raw(floor(x / 256^(seq_len(bytes) - 1)) %% 256)
  local <- central <- raw()
  for (name in names(files)) {
    data <- charToRaw(files[[name]])
    about <- c(number(20, 2), number(0, 2), number(0, 2), number(0, 4), crc32(data), number(length(data), 4),
               number(length(data), 4), number(nchar(name), 2), number(0, 2))
    central <- c(central, charToRaw("PK"), as.raw(c(1, 2)), number(20, 2), about, number(0, 2), number(0, 4),
                 number(0, 4), number(length(local), 4), charToRaw(name))
    local <- c(local, charToRaw("PK"), as.raw(c(3, 4)), about, charToRaw(name), data)
  }
  c(local, central, charToRaw("PK"), as.raw(c(5, 6)), number(0, 4), number(length(files), 2),
    number(length(files), 2), number(length(central), 4), number(length(local), 4), number(0, 2))
}

#' The CRC-32 of bytes, lowest byte first
crc32 <- function(bytes) {
  crc <- -1L
  for (byte in as.integer(bytes)) {
    crc <- bitwXor(crc, byte)
    for (bit in 1:8) {
      low <- bitwAnd(crc, 1L)
      crc <- bitwXor(logical_shift(crc), if (low == 1L) -306674912L else 0L)
    }
  }
  crc <- bitwNot(crc)
  as.raw(c(bitwAnd(crc, 255L), bitwAnd(logical_shift(crc, 8), 255L), bitwAnd(logical_shift(crc, 16), 255L),
           bitwAnd(logical_shift(crc, 24), 255L)))
}

#' A whole number of 32 bits shifted to the right, zeros coming in
logical_shift <- function(x, by = 1) {
  unsigned <- if (x < 0) x + 2^32 else x
  shifted <- floor(unsigned / 2^by)
  as.integer(if (shifted >= 2^31) shifted - 2^32 else shifted)
}

#' A folder of published raw results; without one the test is skipped
published_samples <- function() {
  samples <- Filter(dir.exists, c(Sys.getenv("STRATA_PUBLISHED_RAW"),
                                  file.path(dirname(project), "shared", "ibm-raw-samples")))
  testthat::skip_if(length(samples) == 0,
                    "no published raw results beside the checkout (STRATA_PUBLISHED_RAW names them)")
  samples[[1]]
}
