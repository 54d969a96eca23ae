# The original's printed values and its raw logs.

source(file.path(root, "analysis", "reanalysis.R"))
published_folder <- file.path(root, "published")
printed <- read_printed_values(published_folder)

make_raw <- function(x, workload = "stream", environment = "native", metric = "copy",
                     order = "") {
  data.frame(workload = workload, environment = environment, metric = metric, unit = "GB/s",
             factor_order = order, factor_sockets = "2", selection = "paper",
             repetition = seq_along(x), value = x,
             file = "a.log", line = seq_along(x))
}
make_printed <- function(statistic, published, tolerance, n = 3, workload = "stream",
                         environment = "native") {
  data.frame(place = "Table I", workload = workload, environment = environment, metric = "copy",
             unit = "GB/s", factor_sockets = "2", statistic = statistic, n = n,
             published = published, tolerance = tolerance,
             doubted = environment == "docker-hostnet-layered")
}

test_that("a value agrees if it rounds to the printed one, and fewer runs decide nothing", {
  x <- c(41.2, 41.3, 41.38)
  raw <- make_raw(x)
  row <- compare_printed_values(make_printed("mean", "41.3", 0.05), raw)
  expect_equal(row$verdict, "agrees")
  expect_equal(c(row$low, row$high), as.numeric(t.test(x)$conf.int))
  verdict <- function(raw, ...) compare_printed_values(make_printed("mean", ...), raw)$verdict
  expect_equal(verdict(raw, "41.4", 0.05), "differs")
  expect_equal(verdict(raw, "41.3", 0.05, n = 10), "incomplete")
  expect_equal(verdict(raw[0, ], "41.3", 0.05), "not available")
  name <- "docker-hostnet-layered"
  expect_equal(verdict(make_raw(x, environment = name), "41.3", 0.05, environment = name),
               "label contradicted")
})

test_that("standard deviations have the printed divisor, and deviations are from native", {
  x <- c(1, 2, 6)
  recomputed <- function(raw, ...) compare_printed_values(make_printed(...), raw)$recomputed
  expect_equal(recomputed(make_raw(x), "sd", "2.16", 0.005), sqrt(mean((x - 3) ^ 2)))
  linpack <- recomputed(make_raw(x, "linpack"), "sd", "2.65", 0.005, workload = "linpack")
  expect_equal(linpack, sd(x))
  raw <- rbind(make_raw(c(100, 100)), make_raw(c(98, 98), environment = "docker"))
  expect_equal(recomputed(raw, "deviation_percent", "-2", 0.5, 2, environment = "docker"), -2)
})

test_that("the printed values are complete", {
  expect_false(anyNA(as.numeric(printed$published)))
  expect_true(all(printed$tolerance > 0))
  expect_equal(c(table(printed$place)[c("Table I", "Figure 2", "Figure 8", "Figure 13")]),
               c("Table I" = 62, "Figure 2" = 6, "Figure 8" = 4 * 18 * 3, "Figure 13" = 5 * 15 * 2))
})

test_that("raw logs contradict or reproduce a claim, and a single run decides nothing", {
  verdict <- function(level, n = 10, id = "ibm-linpack-kvm-untuned-worse") {
    set.seed(1)
    make_rows <- function(mean, environment) {
      values <- mean * exp(stats::rnorm(n, 0, 0.001))
      make_raw(values, "linpack", environment, "gflops", order = "45000")
    }
    raw <- rbind(make_rows(290, "native"), make_rows(level, "vm"))
    claims <- test_original_claims(published_folder, printed, raw)
    claims$verdict[claims$id == id & claims$source == "raw"]
  }
  expect_equal(verdict(0.83 * 290), "reproduced")
  expect_equal(verdict(130), "contradicted")
  expect_equal(verdict(130, n = 1), "undecided")
})

test_that("the statements of the document follow from the printed numbers", {
  claims <- test_original_claims(published_folder, printed, make_raw(1)[0, ])
  claims <- claims[claims$source == "printed", ]
  find_claim <- function(id) claims[claims$id == id, ]
  expect_equal(table(claims$verdict)[["contradicted"]], 4)
  text <- paste(readLines(file.path(root, "paper", "reanalysis.Rmd"), encoding = "UTF-8"),
                collapse = " ")
  expect_text <- function(...) expect_match(text, sprintf(...), fixed = TRUE)
  printed$value <- as.numeric(printed$published)
  levels <- printed[printed$statistic %in% c("mean", "value"), ]
  level <- function(place, environment) {
    rows <- levels[levels$place == place & levels$environment == environment, ]
    rows$value[order(make_keys(rows))]
  }
  few <- find_claim("ibm-redis-nat-4conn")
  expect_equal(few$verdict, "contradicted")
  expect_text("%.1f µs, %.2f times native, and %.2f times with 100",
              1000 * find_claim("ibm-redis-nat-4conn-51us")$ratio, few$ratio,
              find_claim("ibm-redis-nat-100conn")$ratio)
  layers <- find_claim("ibm-mysql-aufs-overhead")$ratio
  nat <- find_claim("ibm-mysql-nat-little")$ratio
  expect_lt(layers, nat)
  expect_text("at a printed cost of %.0f %%, is the step to NAT", 100 * (1 - layers))
  expect_text("the step to NAT, at a printed cost of %.1f %%", 100 * (1 - nat))
  trips <- 100 * (level("Figure 3", "docker") / level("Figure 3", "vm") - 1)
  expect_text("by %.0f %% with TCP and %.0f %% with UDP", trips[[1]], trips[[2]])
  ahead <- level("Figure 8", "vm") > level("Figure 8", "docker")
  expect_text("NAT at %d of the %d numbers of connections", sum(ahead), length(ahead))
  expect_true(all(level("Figure 8", "vm") < level("Figure 8", "docker-hostnet")))
  table_one <- levels[levels$place == "Table I", ]
  native <- table_one[table_one$environment == "native", ]
  largest_loss <- function(name, workload = unique(table_one$workload)) {
    rows <- table_one[table_one$environment == name & table_one$workload %in% workload, ]
    at <- match(paste(rows$workload, rows$metric), paste(native$workload, native$metric))
    max(100 * (1 - rows$value / native$value[at]))
  }
  expect_text("loses %.0f %% in compression and %.0f %% in Linpack", largest_loss("vm", "pxz"),
              largest_loss("vm", "linpack"))
  expect_text("containers, which lose %.1f %% at most", largest_loss("docker"))
  expect_text("loses %.0f %% in compression", largest_loss("vm-tuned", "pxz"))
})
