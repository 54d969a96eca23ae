values_of <- function(read, pattern = "") read$values$value[grepl(pattern, read$values$factors)]

test_that("RandomAccess: sockets come from the processors named or the rate, in any order", {
  read <- read_randomaccess(c(gups_log(0.0125, 1, BOTH), gups_log(0.0127, 2, apt = TRUE),
                              gups_log(0.0455, 3, ONE),
                              gups_log(0.0460, 4)))
  expect_equal(values_of(read, "sockets=2"), c(0.0125, 0.0127))
  expect_equal(values_of(read, "sockets=1"), c(0.0455, 0.0460))
  expect_equal(nrow(read$problems), 0)
  expect_equal(read$values$line[[1]], 8)
})

test_that("RandomAccess: a run that is cut off, fails, or contradicts itself is listed and not used", {
  expect_listed <- function(lines, reason, kept = 1) {
    read <- read_randomaccess(c(gups_log(0.0125, 1), lines))
    expect_equal(nrow(read$values), kept)
    expect_match(read$problems$reason, reason)
    expect_gt(read$problems$line, 10)
  }
  expect_listed(head(gups_log(0.0126, 2), 5), "without a rate")
  expect_listed(gups_log(0.0126, 2, passed = "failed"), "verification")
  expect_listed(gups_log(0.0126, 2, seconds = 40), "contradicts")
  expect_listed(gups_log(0.0455, 2, BOTH), "contradict its rate")
  expect_match(read_randomaccess("nothing")$problems$reason, "no run")
})

test_that("STREAM: rates in GB/s, sockets from threads, and only what validated", {
  read <- read_stream(c(stream_log(c(41.2, 41.3, 45.6, 45.7), 32, 1), "",
                        stream_log(c(22500, 22600, 25100, 25200), 16, 2, unit = "MB/s")))
  expect_equal(read$values$value, c(41.2, 41.3, 45.6, 45.7, 22.5, 22.6, 25.1, 25.2))
  expect_equal(unique(read$values$factors), c("sockets=2", "sockets=1"))
  expect_equal(read$values$metric[1:4], c("copy", "scale", "add", "triad"))
  bad <- list(stream_log(1:4, valid = FALSE), head(stream_log(1:4), 7), stream_log(1:4, threads = 8),
              stream_log(1:4, unit = "TB/s"))
  for (lines in bad) {
    read <- read_stream(lines)
    expect_equal(nrow(read$values), 0)
    expect_equal(nrow(read$problems), 1)
  }
})

test_that("Linpack: the summary is no trial", {
  read <- read_linpack(linpack_log(c(291.5, 290.3, 292.1)))
  expect_equal(read$values$value, c(291.5, 290.3, 292.1))
  expect_equal(read$values$factors, rep("order=45000", 3))
  expect_true(read$blocks$complete)
  expect_equal(nrow(read$problems), 0)
  wrong <- read_linpack(linpack_log(c(291.5, 290.3), average = 290.0))
  expect_match(wrong$problems$reason, "summary contradicts")
})

test_that("Linpack: failed, headless, bare and cut blocks", {
  lines <- c(
    linpack_log(c(288, 289, 290), header = FALSE, day = 1),
    linpack_log(numeric(), asked = 10, day = 2),
    c(strrep("-", 80), "Running linpack, started at Tue Aug 19 14:47:09 CDT 2014"),
    linpack_log(c(284, 285), asked = 10, day = 3, summary = FALSE),
    linpack_log(c(132, 108), day = 4, cpus = 32, cores = 32)
  )
  read <- read_linpack(lines)
  expect_equal(read$values$value, c(288, 289, 290, 284, 285, 132, 108))
  expect_equal(read$blocks$block, c(1, 4, 5))
  expect_equal(read$blocks$complete, c(TRUE, FALSE, TRUE))
  expect_equal(read$blocks$tuned, c(TRUE, TRUE, FALSE))
  expect_equal(sum(grepl("before its first trial", read$problems$reason)), 2)
  expect_equal(sum(grepl("2 of 10 trials, and no summary", read$problems$reason)), 1)
  failed <- read_linpack(linpack_log(c(1, 2), check = c("pass", "FAIL")))
  expect_equal(failed$values$value, 1)
  expect_match(failed$problems$reason, "residual", all = FALSE)
  expect_match(read_linpack("")$problems$reason, "no run")
})

test_that("fio: units differ by line, numbers carry suffixes, fields have blanks", {
  read <- read_fio(c(fio_section("a", bw = "1.5MB/s", iops = "1.2K"),
                     fio_section("b", 1, "write", unit = "msec", avg = "22.37", max = "323",
                                 percentiles = c("5", "1.5K")),
                     FIO_END))
  get <- function(metric, factors) {
    read$values$value[read$values$metric == metric & read$values$factors == factors]
  }
  expect_equal(get("iops", "job=a;direction=read"), 1200)
  expect_equal(get("bandwidth", "job=a;direction=read"), 1536)
  expect_equal(get("thread_bandwidth", "job=a;direction=read"), 42031.22)
  expect_equal(get("latency_submission", "job=a;direction=read"), 9.71)
  expect_equal(get("latency_completion", "job=a;direction=read"), 1479.68)
  expect_equal(get("latency_completion", "job=b;direction=write"), 22370)
  expect_equal(get("latency_percentile", "job=b;direction=write;percentile=1.00"), 5000)
  expect_equal(get("latency_percentile", "job=b;direction=write;percentile=5.00"), 1.5e6)
  expect_equal(get("latency_percentile", "job=b;direction=write;percentile=99.99"), 9e6)
  expect_equal(nrow(read$problems), 0)
  expect_equal(fio_number(c("1001.4K", "7", "x", "")), c(1001400, 7, NA, NA))
})

test_that("fio: a mixed job is the sum, a percentile of zero is kept, what fails is listed", {
  mixed <- read_fio(c(fio_section("m", direction = c("read", "write"), iops = 100, percentiles = c("0", "9")),
                      FIO_END))
  both <- mixed$values[mixed$values$factors == "job=m;direction=both", ]
  expect_equal(both$value[both$metric == "iops"], 200)
  expect_true(0 %in% mixed$values$value)
  broken <- read_fio(c("lost: (g=7): rw=randrw, bs=4K-4K/4K-4K", fio_section("e", error = 5),
                       fio_section("n", iops = "many")))
  expect_setequal(sub(".*(error|iops|announced|summary).*", "\\1", broken$problems$reason),
                  c("error", "iops", "announced", "summary"))
  expect_false("iops" %in% broken$values$metric)
  garbled <- fio_section("g")
  at <- grep("99.99th", garbled)
  garbled[[at]] <- "     | 99.95th=[ 80x0], 99.99th=[ 9000]"
  read <- read_fio(c(garbled, FIO_END))
  expect_equal(read$problems$line, at)
  expect_match(read$problems$reason, "percentile")
  expect_true(9000 %in% read$values$value)
  expect_match(read_fio("fio: unknown option")$problems$reason, "no job")
})

test_that("sysbench: transactions over time, output by output, and a cut one is listed", {
  read <- read_sysbench(c(sysbench_log(10), sysbench_log(30, 406018, 60.0036, 4.42),
                          head(sysbench_log(50), 7)))
  rates <- read$values[read$values$metric == "throughput", ]
  expect_equal(rates$value, c(204320 / 60.0026, 406018 / 60.0036))
  expect_equal(rates$factors, c("threads=10", "threads=30"))
  expect_equal(read$values$value[read$values$metric == "latency"], c(2.93, 4.42))
  expect_match(read$problems$reason, "cut off; without total time")
  expect_match(read_sysbench(sysbench_log(10, rate = 3000))$problems$reason, "contradicts")
  expect_match(read_sysbench(sysbench_log(10, write = 4))$problems$reason, "read-only")
})

test_that("dstat: runs are long busy stretches without their ends; blips and broken lines are none", {
  run <- function(use) dstat_seconds(c(50, rep(use, 20), 2), 100 - c(50, rep(use, 20), 2))
  lines <- c(DSTAT_HEAD, dstat_seconds(10), dstat_seconds(rep(0, 3)), run(20), dstat_seconds(0), run(80), "",
             "",
             DSTAT_HEAD[-1], dstat_seconds(30), dstat_seconds(rep(1.9, 30)), run(40), "12.0,0.1,8")
  read <- read_dstat(lines)
  expect_equal(read$values$value, c(20, 80, 40))
  expect_equal(read$problems$line, length(lines))
  short <- read_dstat(c(DSTAT_HEAD, dstat_seconds(rep(5, 19))))
  expect_equal(nrow(short$values), 0)
  expect_equal(nrow(read_dstat(c(DSTAT_HEAD, dstat_seconds(rep(5, 20))))$values), 1)
  expect_match(read_dstat("1,2,3")$problems$reason, "no header")
})

test_that("dstat's runs get the threads of the outputs only where these fit", {
  values <- readings("cpu", "%", 1:6, "", 1:6, 1:6)
  whole <- assign_threads(values, rep(list(c(10, 30)), 3))
  expect_equal(whole$factors, rep(c("threads=10", "threads=30"), 3))
  expect_equal(whole$repetition, rep(1:3, each = 2))
  expect_equal(assign_threads(values, list(c(10, 30)))$repetition, rep(1:3, each = 2))
  expect_equal(assign_threads(values, list(c(1, 2, 3, 4), c(1, 2)))$factors[5:6], c("threads=1", "threads=2"))
  expect_null(assign_threads(values, list(c(10, 30, 50, 70))))
  expect_null(assign_threads(values, list(c(1, 2), c(1, 2, 3))))
  expect_null(assign_threads(values, list()))
})

test_that("redis: results are told by their header behind the last carriage return", {
  read <- read_redis(redis_run(1, 50))
  expect_equal(nrow(read$problems), 0)
  expect_equal(values_of(read, "test=SET;")[[1]], 1050.3)
  expect_equal(values_of(read, "test=SET;")[[2]], 1000 * 50 / 1050.3)
  expect_equal(sum(read$values$metric == "throughput"), 7)
})

test_that("redis: a lost summary loses one value, and the next test keeps its own", {
  lines <- redis_run(1, 110)
  at <- grep("====== GET ======", lines)
  next_head <- grep("====== LPUSH ======", lines)
  lines[[next_head]] <- paste0("GET: 5.00\rGET: 6.00", lines[[next_head]])
  lines <- lines[-(at:(next_head - 1))]
  read <- read_redis(c(lines, redis_run(2, 110)))
  throughput <- read$values[read$values$metric == "throughput", ]
  expect_equal(sum(grepl("test=GET;", throughput$factors)), 1)
  expect_equal(throughput$value[grepl("test=LPUSH;", throughput$factors)], c(1110.5, 2110.5))
  expect_match(read$problems$reason, "run 1, 110 connections: the result of GET is lost")
})

test_that("redis: a last run that was cut off is left out, a killed log's whole runs are kept", {
  whole <- c(redis_run(1, 50), redis_run(1, 60), redis_run(2, 50), redis_run(2, 60))
  read <- read_redis(c(whole, redis_run(3, 50)))
  expect_equal(unique(read$values$repetition), 1:2)
  expect_match(read$problems$reason, "run 3 was cut off")
  cut <- read_redis(c(whole, redis_run(3, 50), head(redis_run(3, 60), 30)))
  expect_equal(unique(cut$values$repetition), 1:2)
  killed <- read_redis(c(whole, "------------------", "[DBG] Wed Jul 16 22:37:07 CDT 2014"))
  expect_equal(nrow(killed$problems), 0)
  expect_equal(unique(killed$values$repetition), 1:2)
  expect_match(read_redis("OK")$problems$reason, "no run")
  other <- sub("50 parallel", "20 parallel", redis_run(1, 50))
  expect_equal(nrow(read_redis(other)$values), 0)
})

test_that("workbooks: rates by labels, latency as reciprocal, empty and zero cells are told", {
  path <- write_workbook(tempfile(fileext = ".xlsx"), list(
    A1 = "TCP_RR", B2 = "tx/s", E1 = "UDP_RR", A3 = "Native", B3 = 25000, C3 = 40, E3 = "Native", F3 = 20000,
    A4 = "Docker NAT", B4 = NA, A5 = "Docker Host", B5 = 24000, E5 = "Docker Host", F5 = 0, A6 = "KVM",
    B6 = 12500,
    E6 = "KVM", F6 = 16000, B9 = 5
  ))
  read <- read_netperf(path)
  latency <- read$values[read$values$metric == "latency", ]
  expect_equal(latency$value[latency$factors == "test=TCP_RR"], c(40, 1e6 / 24000, 80))
  expect_equal(latency$environment[latency$factors == "test=UDP_RR"], c("native", "vm"))
  expect_equal(latency$value[latency$factors == "test=UDP_RR"], c(50, 62.5))
  expect_match(read$problems$reason, "A4: no rate is given for Docker NAT", all = FALSE)
  expect_match(read$problems$reason, "F5: zero", all = FALSE)
})

test_that("workbooks: a test is named above its own rates, wherever its title stands", {
  rows <- list(A3 = "Native", B3 = 25000, F3 = 20000)
  test <- function(...) {
    path <- write_workbook(tempfile(fileext = ".xlsx"), c(list(...), rows))
    values <- read_netperf(path)$values
    values$factors[match(c(25000, 20000), values$value)]
  }
  expect_equal(test(), c("test=TCP_RR", "test=UDP_RR"))
  expect_equal(test(A1 = "TCP_RR", E1 = "UDP_RR"), c("test=TCP_RR", "test=UDP_RR"))
  expect_equal(test(B1 = "UDP_RR", F1 = "tcp"), c("test=UDP_RR", "test=TCP_RR"))
  expect_equal(test(A1 = "TCP_RR and UDP_RR"), c("test=TCP_RR", "test=UDP_RR"))
})

test_that("workbooks: nuttcp's rows, directions, and its second table", {
  path <- write_workbook(tempfile(fileext = ".xlsx"), list(
    B4 = "Native", C4 = "Docker NAT", D4 = "Docker Host", E4 = "KVM",
    A5 = "C->S", B5 = 9410, C5 = 9330, D5 = 0, E5 = 9400, B6 = 9.41, A7 = "S->C", B7 = 9415, E7 = 9390,
    B19 = "Native", C19 = "Docker NAT", A20 = 1, B20 = 9.4, C20 = 7.12, A21 = 2, B21 = 9.41
  ))
  read <- read_nuttcp(path)
  get <- function(environment, factors) {
    read$values$value[read$values$environment == environment & read$values$factors == factors]
  }
  expect_equal(get("docker", "direction=transmit"), 9330)
  expect_equal(get("native", "direction=receive"), 9415)
  expect_equal(get("docker", "connections=1"), 7.12)
  expect_equal(get("native", "connections=2"), 9.41)
  expect_equal(sum(read$values$published), 5)
  expect_match(read$problems$reason, "D5: zero")
  turned <- write_workbook(tempfile(fileext = ".xlsx"), list(
    B4 = "Native", A5 = "C->S", B5 = 9410, A18 = "connections", B18 = 1, C18 = 4, A19 = "Native", B19 = 9.4,
    C19 = 9.41,
    A20 = "Docker NAT", B20 = 7.12, C20 = 9.3
  ))
  read <- read_nuttcp(turned)
  expect_equal(get("docker", "connections=1"), 7.12)
  expect_equal(get("native", "connections=4"), 9.41)
  expect_equal(nrow(read$values), 5)
  writeLines("not a workbook", path)
  expect_error(read_nuttcp(path), "not an Excel workbook", class = "broken_log")
})
