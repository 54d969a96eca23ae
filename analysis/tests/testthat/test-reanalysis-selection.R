series_in <- function(all, ...) {
  series <- series_of(all$tidy)
  wanted <- list(...)
  for (name in names(wanted)) series <- series[series[[name]] == wanted[[name]], ]
  series
}

test_that("blocks that another log repeats are counted once, misnamed copies included", {
  two <- c(gups_log(0.0125, 1), gups_log(0.0127, 2))
  one <- c(gups_log(0.0455, 3), gups_log(0.0460, 4))
  all <- collect_folder("RandomAccess/results/vm.log" = c(two, one),
                        "RandomAccess/results/vm.two-socket.interleavedalloc.log" = two,
                        "RandomAccess/results/vm.single-socket.localalloc.log" = two)
  expect_equal(series_in(all, selection = "paper")$n, 2)
  expect_equal(series_in(all, selection = "variant")$mean, 0.04575)
  expect_true(all(all$tidy$file == "RandomAccess/results/vm.log"))
  note <- all$sources$note[all$sources$file == "RandomAccess/results/vm.single-socket.localalloc.log"]
  expect_match(note, "all of its blocks repeat.*its runs used two")
})

test_that("a log of one part alone is read where the combined log is missing", {
  all <- collect_folder("RandomAccess/results/docker.single-socket.localalloc.log" = gups_log(0.0125, 1))
  expect_equal(series_in(all)$factors, "sockets=2")
  expect_equal(series_in(all)$environment, "docker")
})

test_that("Linpack: the last complete block of ten is the paper's, all others are named by their block", {
  ten <- function(at) at + (1:10) / 10
  all <- collect_folder(
    "linpack/results/vm.log" = c(
      linpack_log(131, cpus = 32, cores = 32, day = 1), linpack_log(ten(130), cpus = 32, cores = 32, day = 2),
      linpack_log(ten(284)[1:6], asked = 10, summary = FALSE, day = 3), linpack_log(ten(285), day = 4)
    ),
    "linpack/results/vm.two-socket.interleavedalloc.log" = linpack_log(ten(130), header = FALSE, cpus = 32,
                                                                       cores = 32,
                                                                      day = 2),
    "linpack/results/native.log" = linpack_log(c(280, 281, 282), day = 5),
    "linpack/results/linux.log" = c(linpack_log(ten(290), numa = BOTH, day = 6),
                                    linpack_log(ten(150), numa = ONE, threads = 16, day = 7)),
    "linpack/results/gce/run.log" = linpack_log(ten(99), day = 8)
  )
  paper <- series_in(all, selection = "paper")
  expect_equal(paper$environment, c("native", "vm", "vm-tuned"))
  expect_equal(paper$mean, c(290.55, 130.55, 285.55))
  expect_true(all(paper$factors == "order=45000;sockets=2"))
  old <- series_in(all, selection = "superseded")
  expect_setequal(old$n, c(1, 6, 3))
  expect_true(all(grepl(";run=.*:[0-9]$", old$factors)))
  variant <- series_in(all, selection = "variant")
  expect_equal(variant$environment, c("gce", "native"))
  expect_equal(series_in(all, environment = "vm", n = 1)$sd, NA_real_)
})

test_that("fio: the paper's run of the virtual machine is that of the older revision", {
  log <- function(iops) c(fio_section("random-read-16x8", iops = iops), fio_section("seq-read-1", 1), FIO_END)
  beside <- collect_folder("fio/results/vm.log" = log(42543), "at-b72ae3e/fio/results/vm.log" = log(46173))
  iops <- series_in(beside, metric = "iops", factors = "job=random-read-16x8;direction=read")
  expect_equal(iops$mean[match(c("paper", "variant"), iops$selection)], c(46173, 42543))
  expect_false(any(beside$tidy$selection == "paper" & grepl("seq-read-1;", beside$tidy$factors)))
  missing <- collect_folder("fio/results/vm.log" = log(42543))
  expect_equal(unique(missing$tidy$selection), "variant")
  expect_match(missing$unreadable$file, "b72ae3e:fio/results/vm.log")
})

test_that("fio: the older revision is read from git, from a checkout and from a bare directory", {
  skip_if(Sys.which("git") == "", "git is not installed")
  log <- function(iops) c(fio_section("random-read-16x8", iops = iops), FIO_END)
  folder <- as_repository(published_folder("fio/results/vm.log" = log(46173)))
  git_in(folder, "tag", "b72ae3e")
  writeLines(log(42543), file.path(folder, "fio/results/vm.log"))
  git_in(folder, "commit", "-q", "-a", "-m", "replace")
  bare <- paste0(folder, ".git")
  git_in(folder, "clone", "-q", "--bare", folder, bare)
  for (path in c(folder, bare, file.path(folder, ".git"))) {
    all <- collect(open_source(path))
    iops <- series_in(all, metric = "iops")
    expect_equal(iops$mean[match(c("paper", "variant"), iops$selection)], c(46173, 42543))
    expect_equal(nrow(all$unreadable), 0)
  }
})

test_that("MySQL: folders tell environments; copies count once; a truncated file keeps whole outputs", {
  levels <- c(10, 30, 50)
  file <- function(plus, levels) {
    unlist(lapply(levels, function(threads) sysbench_log(threads, 200000 + threads + plus)))
  }
  base <- "mysql/results/"
  files <- list()
  for (i in 0:2) {
    files[[paste0(base, "performance-governor/KVM/records-20140716112752-", i)]] <- file(i, levels)
    files[[paste0(base, "KVM/records-20140716112752-", i)]] <- file(i, levels)
    files[[paste0(base, "performance-governor/docker-nofs/records-20140702224410-", i)]] <- file(10 + i,
                                                                                                 levels)
    files[[paste0(base, "docker-single-container-nethost-hostfs-10run/records-20140617000000",
                  i)]] <- file(20 + i, levels)
    files[[paste0(base, "rebooted-arldcn24/records-20140620000000-", i)]] <- file(30 + i, 100)
    files[[paste0(base, "rebooted-arldcn24/records-20140621000000-", i)]] <- file(40 + i, 100)
  }
  short <- paste0(base, "docker-single-container-nethost-10run/records-20140615000000-1")
  files[[short]] <- head(file(50, levels), -8)
  files[[paste0(base, "decoded-bml.csv")]] <- "1,2,3"
  run <- unlist(lapply(1:9, function(i) c(dstat_seconds(rep(10 * i, 22)), dstat_seconds(0))))
  files[[paste0(base, "performance-governor/KVM/dstat-run.csv")]] <- c(DSTAT_HEAD, run)
  all <- do.call(collect_folder, files)
  paper <- series_in(all, selection = "paper", metric = "throughput")
  expect_equal(unique(paper$environment), c("docker-hostnet-layered", "vm"))
  expect_equal(paper$n, rep(3, 6))
  expect_equal(paper$mean[[4]], mean(200010 + 0:2) / 60.0026)
  cpu <- series_in(all, metric = "cpu")
  expect_equal(cpu$mean, c(40, 50, 60))
  old <- series_in(all, selection = "superseded", metric = "throughput")
  expect_setequal(old$environment, c("docker-hostnet", "docker-hostnet-layered", "unknown"))
  expect_equal(old$n[old$environment == "docker-hostnet"], rep(3, 3))
  expect_equal(old$n[old$environment == "docker-hostnet-layered"], c(1, 1))
  expect_equal(sum(grepl("set=rebooted-arldcn24;batch=", old$factors)), 2)
  expect_equal(all$unreadable$file, short)
  copies <- all$sources[grepl("^mysql/results/KVM/", all$sources$file), ]
  expect_true(all(copies$use == "not used" & copies$note == "a copy of another file"))
  expect_match(all$sources$note[all$sources$file == "mysql/results/decoded-bml.csv"], "derived")
})

test_that("MySQL: processors that can't be matched with outputs are listed", {
  all <- collect_folder("mysql/results/performance-governor/bml/records-20140702111751-0" =
                          c(sysbench_log(10), sysbench_log(30)),
                        "mysql/results/performance-governor/bml/dstat-a.csv" = c(DSTAT_HEAD,
                                                                                 dstat_seconds(rep(9, 30))))
  expect_match(all$unreadable$reason, "can't be matched")
  alone <- collect_folder("mysql/results/bml/dstat-a.csv" = c(DSTAT_HEAD, dstat_seconds(rep(9, 30))))
  expect_match(alone$unreadable$reason, "can't be matched")
  expect_false("cpu" %in% all$tidy$metric)
})

test_that("Redis: all logs of an environment are pooled but the superseded one; only SET is the paper's", {
  runs <- function(plus) c(redis_run(1, 50, 100 + plus), redis_run(2, 50, 200 + plus))
  all <- collect_folder("redis/results/run_dockerbridge_20140716_2252.txt" = runs(1),
                        "redis/results/run_dockerbridge_20140717_1058.txt" = runs(2),
                        "redis/results/run_dockerbridge_20140717_1831.txt" = runs(3),
                        "redis/results/run_else_20140717_1831.txt" = runs(4))
  set <- series_in(all, selection = "paper", metric = "throughput")
  expect_equal(set$factors, "test=SET;connections=50")
  expect_equal(c(set$n, set$mean, set$min, set$max, set$median), c(4, 152.8, 102.3, 203.3, 152.8))
  expect_equal(series_in(all, selection = "variant", metric = "latency")$n, rep(4, 6))
  expect_equal(series_in(all, selection = "superseded", metric = "throughput")$n, rep(2, 7))
  expect_equal(all$unreadable$file, "redis/results/run_else_20140717_1831.txt")
})

test_that("files that can't be read are listed, and the others are read all the same", {
  all <- collect_folder("Stream/results/vm.log" = as.raw(c(1, 0, 2)), "Stream/results/docker.log" = raw(),
                        "Stream/results/linux.log" = stream_log(1:4), "netperf/netperf.xlsx" = "no workbook",
                        "redis/results/run_vm_20140716_1509.txt" = as.raw(c(0xff, 0x0a)))
  expect_setequal(all$unreadable$file,
                  c("Stream/results/vm.log", "Stream/results/docker.log", "netperf/netperf.xlsx",
                                         "redis/results/run_vm_20140716_1509.txt"))
  expect_equal(nrow(all$tidy), 4)
})

test_that("series have sample statistics, and numbers sort as numbers", {
  tidy <- data.frame(workload = "redis", environment = "vm", metric = "m", unit = "u",
                     factors = paste0("connections=", c(100, 100, 20, 100)), selection = "paper",
                     value = c(1, 2, 7, 6))
  series <- series_of(tidy)
  expect_equal(names(series),
               c("workload", "environment", "metric", "unit", "factors", "selection", "n", "mean", "sd",
                                "min", "max", "median"))
  expect_equal(series$factors, c("connections=20", "connections=100"))
  expect_equal(series$sd, c(NA, sd(c(1, 2, 6))))
  expect_equal(series$median, c(7, 2))
})
