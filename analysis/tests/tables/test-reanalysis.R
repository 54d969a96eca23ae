# The original's printed values and its raw logs.

source(file.path(root, "analysis", "reanalysis.R"))
published_folder <- file.path(root, "published")
printed <- printed_values(published_folder)

raw <- function(x, workload = "stream", environment = "native", metric = "copy", factors = "sockets=2") {
  data.frame(workload = workload, environment = environment, metric = metric, unit = "GB/s",
             factors = factors, selection = "paper", repetition = seq_along(x), value = x, file = "a.log",
             line = seq_along(x))
}
one <- function(statistic, published, tolerance, n = 3, workload = "stream", environment = "native") {
  data.frame(place = "Table I", workload = workload, environment = environment, metric = "copy",
             unit = "GB/s", factors = "sockets=2", statistic = statistic, n = n, published = published,
             tolerance = tolerance, doubted = environment == "docker-hostnet-layered")
}

test_that("a value agrees where it rounds to what was printed, and fewer runs decide nothing", {
  x <- c(41.2, 41.3, 41.38)
  found <- differences_of(one("mean", "41.3", 0.05), raw(x))
  expect_equal(found$verdict, "agrees")
  expect_equal(c(found$low, found$high), as.numeric(t.test(x)$conf.int))
  expect_equal(differences_of(one("mean", "41.4", 0.05), raw(x))$verdict, "differs")
  expect_equal(differences_of(one("mean", "41.3", 0.05, 10), raw(x))$verdict, "incomplete")
  expect_equal(differences_of(one("mean", "41.3", 0.05), raw(x)[0, ])$verdict, "not available")
  name <- "docker-hostnet-layered"
  doubted <- differences_of(one("mean", "41.3", 0.05, environment = name), raw(x, environment = name))
  expect_equal(doubted$verdict, "label contradicted")
})

test_that("standard deviations have the printed divisor, and deviations are from native", {
  x <- c(1, 2, 6)
  expect_equal(differences_of(one("sd", "2.16", 0.005), raw(x))$recomputed, sqrt(mean((x - 3) ^ 2)))
  expect_equal(differences_of(one("sd", "2.65", 0.005, workload = "linpack"), raw(x, "linpack"))$recomputed,
               sd(x))
  both <- rbind(raw(c(100, 100)), raw(c(98, 98), environment = "docker"))
  found <- differences_of(one("deviation_percent", "-2", 0.5, 2, environment = "docker"), both)
  expect_equal(found$recomputed, -2)
})

test_that("the printed values are complete", {
  expect_false(anyNA(as.numeric(printed$published)))
  expect_true(all(printed$tolerance > 0))
  expect_equal(c(table(printed$place)[c("Table I", "Figure 2", "Figure 8", "Figure 13")]),
               c("Table I" = 62, "Figure 2" = 6, "Figure 8" = 4 * 18 * 3, "Figure 13" = 5 * 15 * 2))
})

test_that("raw logs that contradict or bear out a claim say so, and a single run decides nothing", {
  verdict <- function(level, n = 10, id = "ibm-linpack-kvm-untuned-worse") {
    set.seed(1)
    noise <- function(mean) mean * exp(stats::rnorm(n, 0, 0.001))
    rows <- function(x, name) raw(x, "linpack", name, "gflops", "order=45000;sockets=2")
    both <- rbind(rows(noise(290), "native"), rows(noise(level), "vm"))
    found <- own_claims(published_folder, printed, both)
    found$verdict[found$id == id & found$source == "raw"]
  }
  expect_equal(verdict(0.83 * 290), "reproduced")
  expect_equal(verdict(130), "contradicted")
  expect_equal(verdict(130, n = 1), "undecided")
})

test_that("the findings of the document follow from the printed numbers", {
  claims <- own_claims(published_folder, printed, raw(1)[0, ])
  claims <- claims[claims$source == "printed", ]
  of <- function(id) claims[claims$id == id, ]
  expect_equal(table(claims$verdict)[["contradicted"]], 4)
  text <- paste(readLines(file.path(root, "paper", "reanalysis.Rmd"), encoding = "UTF-8"), collapse = " ")
  says <- function(...) expect_match(text, paste0(...), fixed = TRUE)
  printed$value <- as.numeric(printed$published)
  levels <- printed[printed$statistic %in% c("mean", "value"), ]
  level <- function(place, name, factors = NULL) {
    rows <- levels[levels$place == place & levels$environment == name, ]
    rows <- rows[order(rows$workload, rows$metric, rows$factors), ]
    if (is.null(factors)) rows$value else rows$value[rows$factors == factors]
  }
  few <- of("ibm-redis-nat-4conn")
  expect_equal(few$verdict, "contradicted")
  says(sprintf("%.1f µs, %.2f times native, and %.2f times with 100",
               1000 * of("ibm-redis-nat-4conn-51us")$ratio, few$ratio, of("ibm-redis-nat-100conn")$ratio))
  layers <- of("ibm-mysql-aufs-overhead")$ratio
  nat <- of("ibm-mysql-nat-little")$ratio
  expect_lt(layers, nat)
  says(sprintf("is to cost %.0f %%, is the step to NAT; and that to NAT, which is to cost %.1f %%",
               100 * (1 - layers), 100 * (1 - nat)))
  trips <- 100 * (level("Figure 3", "docker") / level("Figure 3", "vm") - 1)
  says(sprintf("by %.0f %% with TCP and %.0f %% with UDP", trips[[1]], trips[[2]]))
  ahead <- level("Figure 8", "vm") > level("Figure 8", "docker")
  says(sprintf("NAT at %d of the %d numbers of connections", sum(ahead), length(ahead)))
  expect_true(all(level("Figure 8", "vm") < level("Figure 8", "docker-hostnet")))
  table <- levels[levels$place == "Table I", ]
  lost <- function(name, workload = unique(table$workload)) {
    own <- table[table$environment == name & table$workload %in% workload, ]
    native <- table[table$environment == "native", ]
    max(100 * (1 - own$value / native$value[match(paste(own$workload, own$metric),
                                                  paste(native$workload, native$metric))]))
  }
  says(sprintf("lose %.0f %% in compression and %.0f %% in Linpack", lost("vm", "pxz"),
               lost("vm", "linpack")))
  says(sprintf("containers, which lose %.1f %% at the most", lost("docker")))
  says(sprintf("loses %.0f %% in compression", lost("vm-tuned", "pxz")))
})
