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

test_that("figures hold printed and recomputed points, each with its own error bar", {
  published <- read_published_values(project)
  tidy <- values(c(50000, 60000, 70000), "redis")
  tidy$metric <- "throughput"
  tidy$factors <- "test=SET;connections=50"
  path <- tempfile()
  write_csv(differences_from(published, tidy), path)
  points <- figure_points(read_differences(path), "8")
  own <- points[points$source == "recomputed", ]
  expect_equal(nrow(own), 1)
  expect_equal(unlist(own[c("x", "y", "low", "high")], use.names = FALSE), c(50, 60, 50, 70))
  expect_equal(sum(points$source == "published"), 72)
  expect_s3_class(original_figure(points, "8"), "ggplot")
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
  results <- read_reanalysis(out)
  one <- table_one(results)
  shown <- apply(one$cells, 1, paste, collapse = "|")
  expect_match(shown, "Native\\|290.8 \\[1.13\\]\\|290.8 \\[1.19\\]\\|10\\|.*differs", all = FALSE)
  expect_match(shown, "KVM\\|241.3 .*\\|130.0 .*differs", all = FALSE)
  expect_match(source_sentence(results), "1\u00a0private file stayed closed|1\u00a0private file,? stayed")
  contradictions <- table_of_contradictions(results)
  expect_equal(nrow(contradictions$cells), 4)
  verdicts <- table_of_verdicts(results)
  expect_equal(verdicts$cells[[2]][[13]], "1,154")
  expect_match(abstract_of_reanalysis(results), "Of 1,154 values")
  expect_length(tables_of_figure(results, "8"), 3)
  expect_match(latex_table(tables_of_figure(results, "10")[[1]]), "Recomputed")
})
