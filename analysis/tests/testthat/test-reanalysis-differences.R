printed <- function(statistic, published, tolerance, workload = "stream", environment = "native",
                    planned = 3) {
  data.frame(place = "Table I", workload = workload, environment = environment, metric = "copy",
             unit = "GB/s",
             factors = "sockets=2", statistic = statistic, planned = planned, published = published,
             tolerance = tolerance, disputed = FALSE)
}

values <- function(x, workload = "stream", environment = "native", selection = "paper") {
  data.frame(workload = workload, environment = environment, metric = "copy", unit = "GB/s",
             factors = "sockets=2",
             selection = selection, repetition = seq_along(x), value = x, file = "a.log", line = seq_along(x))
}

test_that("a value agrees where it rounds to what was printed", {
  one <- differences_from(printed("mean", "41.3", 0.05), values(c(41.2, 41.3, 41.38)))
  expect_equal(one$verdict, "agrees")
  expect_equal(one$rounded, "41.3")
  expect_equal(one$difference, mean(c(41.2, 41.3, 41.38)) - 41.3)
  expect_equal(c(one$low, one$high), as.numeric(t.test(c(41.2, 41.3, 41.38))$conf.int))
  expect_equal(differences_from(printed("mean", "41.4", 0.05), values(c(41.2, 41.3, 41.38)))$verdict,
               "differs")
})

test_that("fewer values than are behind the print decide nothing; other selections do not count", {
  expect_equal(differences_from(printed("mean", "9.9", 0.05), values(c(1, 2)))$verdict, "incomplete")
  none <- differences_from(printed("mean", "9.9", 0.05), values(1:3, selection = "variant"))
  expect_equal(none$verdict, "not available")
  expect_equal(none$n, 0)
  expect_equal(none$rounded, "")
})

test_that("standard deviations have the divisor that was printed", {
  x <- c(1, 2, 6)
  stream <- differences_from(printed("sd", "2.16", 0.005), values(x))
  expect_equal(stream$recomputed, sqrt(mean((x - 3)^2)))
  other <- differences_from(printed("sd", "2.65", 0.005, "linpack"), values(x, "linpack"))
  expect_equal(other$recomputed, sd(x))
  expect_equal(c(stream$verdict, other$verdict), c("agrees", "agrees"))
})

test_that("deviations are from native, and a zero has no sign", {
  tidy <- rbind(values(c(100, 100, 100)), values(c(99.7, 99.7, 99.7), environment = "docker"))
  one <- differences_from(printed("deviation_percent", "0", 0.5, environment = "docker"), tidy)
  expect_equal(one$recomputed, -0.3)
  expect_equal(one$rounded, "0")
  expect_equal(one$verdict, "agrees")
})

test_that("the printed values are complete: every cell of Table I and every point of the figures", {
  published <- read_published_values(project)
  expect_false(anyNA(as.numeric(published$published)))
  expect_true(all(published$tolerance > 0))
  count <- table(published$place)
  expect_equal(names(count), c(paste("Figure", c(10:13, 2:3, 5:9)), "Table I"))
  expect_equal(count[["Figure 2"]], 6)
  expect_equal(count[["Figure 3"]], 6)
  expect_equal(count[["Figure 8"]], 4 * 18 * 3)
  expect_equal(count[["Figure 13"]], 5 * 15 * 2)
  redis <- published[published$place == "Figure 8" & published$statistic == "mean", ]
  expect_equal(range(redis$planned), c(10, 40))
})

#' The differences of a few throughputs of Redis, as they are read back
redis_differences <- function(values_of, factors = "test=SET;connections=50") {
  tidy <- values(values_of, "redis")
  tidy$metric <- "throughput"
  tidy$factors <- factors
  write_csv(differences_from(read_published_values(project), tidy), path <- tempfile())
  read_differences(path)
}

test_that("figures show one mark for each value, and how far the print is from it", {
  few <- redis_differences(c(50000, 60000, 70000))
  points <- figure_points(few, "8")
  level <- points[points$part == "level", ]
  expect_equal(nrow(level), 72)
  own <- level[level$source == "recomputed", ]
  expect_equal(unlist(own[c("x", "y", "low", "high")], use.names = FALSE), c(50, 60, 50, 70))
  expect_equal(sum(level$source == "published"), 71)
  apart <- points[points$part == "difference", ]
  printed <- few[few$place == "Figure 8" & few$environment == "native" & few$statistic == "mean" &
                   few$factors == "test=SET;connections=50", ]
  expect_equal(apart$y, 60000 - printed$printed)
  expect_equal(apart$source, "fewer runs")
  expect_equal(apart$tolerance, printed$tolerance)
  whole <- figure_points(redis_differences(rep(60000, printed$planned)), "8")
  expect_equal(whole$source[whole$part == "difference"], "recomputed")
  for (number in names(original_figures())) {
    expect_s3_class(original_figure(figure_points(few, number), number), "ggplot")
  }
})

test_that("only what was recomputed is in the tables of values, with a star where runs are missing", {
  results <- list(differences = redis_differences(c(50000, 60000, 70000)))
  expect_null(values_of_figure(results, "10"))
  expect_equal(values_as_latex(results, "10"), "")
  parts <- values_of_figure(results, "8")$parts
  expect_equal(vapply(parts, `[[`, "", "head"),
               paste0("Throughput, ", c("mean", "smallest run", "largest run"), " (requests/s)"))
  mean <- parts[[1]]$cells
  expect_equal(nrow(mean), 1)
  expect_match(mean[[3]], "^\u2212?[0-9,]+[*]$")
  expect_equal(figures_read(results), "8")
})

test_that("the samples agree with Table I digit by digit, and with Figures 5 to 7", {
  all <- collect(open_source(published_samples()))
  differences <- differences_from(read_published_values(project), all$tidy)
  table <- differences[differences$place == "Table I" & differences$n > 0, ]
  wrong <- table[table$verdict != "agrees", ]
  expect_equal(unique(paste(wrong$workload, wrong$environment)), "linpack vm")
  expect_gte(nrow(table), 45)
  figures <- differences[differences$place %in% paste("Figure", 5:7) & differences$n > 0, ]
  expect_true(all(figures$verdict == "agrees"))
  expect_equal(nrow(figures), 6 + 9 + 48)
})

test_that("the paper's texts and tables say what the tables hold", {
  expect_equal(varying_factors(c("test=SET;connections=1", "test=SET;connections=2")),
               c("connections=1", "connections=2"))
  expect_equal(varying_factors(c("a=1", "a=1;b=2")), c("a=1", "a=1;b=2"))
  out <- tempfile()
  dir.create(out)
  folder <- published_folder("linpack/results/linux.log" = linpack_log(rep(c(289.7, 291.96), 5), numa = BOTH),
                             "linpack/results/vm.log" = linpack_log(rep(130, 10), cpus = 32, cores = 32),
                             "common/id_rsa" = "secret")
  expect_equal(run_r("reanalyse.R", "--raw", folder, "--out", out)$status, 0)
  results <- read_reanalysis(out, project)
  one <- table_one(results)
  shown <- apply(one$cells, 1, paste, collapse = "|")
  expect_match(shown, "Native\\|290.8 \\(1.13\\)\\|290.8 \\(1.19\\)\\|10\\|.*differs", all = FALSE)
  expect_match(shown, "KVM\\|241.3 .*\\|130.0 .*differs", all = FALSE)
  expect_match(source_sentence(results), "1\u00a0private file stayed closed|1\u00a0private file,? stayed")
  contradictions <- table_of_contradictions(results)
  expect_equal(nrow(contradictions$cells), 4)
  # What is a share is no rate.
  expect_equal(contradictions$cells[[10]][grepl("deviation", contradictions$cells[[3]])], "%")
  verdicts <- table_of_verdicts(results)
  expect_equal(verdicts$cells[[2]][[13]], "1,154")
  readings <- table_of_readings(results)
  expect_equal(sum(as.numeric(gsub(",", "", readings$cells[[3]]))), 1154)
  expect_match(readings$cells[[4]][[2]], "0.02")
  abstract <- abstract_of_reanalysis(results)
  expect_match(abstract, "Of 1,154 values")
  expect_match(abstract, "5\u00a0conclusions of it: untuned KVM loses 55\u202f% .* and not the printed 17")
  found <- contradicted_findings(results)
  expect_equal(vapply(found, `[[`, "", "head")[1:2], c("Linpack on untuned KVM", "Redis behind NAT"))
  expect_match(found[[2]]$found, "51 \u00b5s a request, 1.05 times native.* 72.2 \u00b5s, 1.31 times native")
  expect_match(found[[3]]$found, "^The 105 values")
})

test_that("a conclusion that the raw results bear out is not told as contradicted", {
  out <- tempfile()
  dir.create(out)
  folder <- published_folder("linpack/results/linux.log" = linpack_log(rep(c(290, 291.6), 5), numa = BOTH),
                             "linpack/results/vm.log" = linpack_log(rep(c(240, 242.6), 5), cpus = 32,
                                                                    cores = 32))
  expect_equal(run_r("reanalyse.R", "--raw", folder, "--out", out)$status, 0)
  results <- read_reanalysis(out, project)
  heads <- vapply(contradicted_findings(results), `[[`, "", "head")
  expect_false("Linpack on untuned KVM" %in% heads)
  expect_match(abstract_of_reanalysis(results), "contradict 4\u00a0conclusions of it: with 4 connections")
  joined <- joined_claims(results$claims, results$measured)
  expect_equal(joined$own[joined$id == "ibm-linpack-kvm-untuned-worse"], "follows")
})

test_that("the verdict by the machine at hand stands beside that of the authors' own numbers", {
  own <- read_own_verdicts(project)$claims
  none <- joined_claims(own, empty_table(CLAIM_COLUMNS))
  expect_true(all(none$here == ""))
  expect_equal(ncol(table_of_joined(own, empty_table(CLAIM_COLUMNS), "IBM")$cells), 5)
  measured <- as.data.frame(lapply(CLAIM_COLUMNS, function(class) {
    if (class == "character") rep("", 2) else rep(0.98, 2)
  }))
  measured$id <- c("ibm-linpack-docker-identical", "vmw-stream-docker-1-2pct")
  measured$publication <- c("ibm2014", "vmware2014")
  measured$verdict <- c("contradicted", "reproduced")
  measured$parts <- 1
  measured$ratio_n <- 30
  both <- joined_claims(own, measured)
  row <- both[both$id == "ibm-linpack-docker-identical", ]
  expect_equal(c(row$own, row$here), c("follows", "contradicted"))
  expect_match(row$from, "raw logs, n\u00a0=\u00a010")
  expect_equal(both$own[both$id == "vmw-stream-docker-1-2pct"], "")
  table <- table_of_joined(own, measured, c(ibm2014 = "IBM", vmware2014 = "VMware"))
  expect_equal(ncol(table$cells), 7)
  expect_match(table$cells[[2]][both$publication == "vmware2014"], "^VMware, ")
  expect_match(joined_text(own, measured),
               "reproduced 0 and contradicted 1 of those that follow, and 0 and 0 of those that do not")
  # What the authors' own numbers contradict comes first.
  expect_true(all(diff(grepl("contradicted", both$own)) <= 0))
})
