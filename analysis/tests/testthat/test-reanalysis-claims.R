own <- read_own_claims(project)
names(own) <- vapply(own, `[[`, "", "id")
printed_values <- read_published_values(project)
nothing <- no_values()

#' Raw results of one series
raw_values <- function(x, workload, environment, metric, factors) {
  data.frame(workload = workload, environment = environment, metric = metric, unit = "", factors = factors,
             selection = "paper", repetition = seq_along(x), value = x, file = paste0(environment, ".log"),
             line = seq_along(x))
}

#' The row of one claim
tested <- function(id, tidy = nothing) test_own_claims(own[id], printed_values, tidy)

test_that("every claim of the originals is tested by their own numbers, or it is said why not", {
  claims <- read_claims(file.path(project, "published", "claims.json"))$claims
  ids <- vapply(Filter(function(claim) claim$publication == "ibm2014", claims), `[[`, "", "id")
  expect_setequal(intersect(names(own), ids), ids)
  expect_false(anyDuplicated(names(own)) > 0)
  for (claim in own) {
    expect_true(xor(is.null(claim$tests), is.null(claim$none)), label = claim$id)
    for (test in claim$tests) {
      expect_false(is.null(test$low) && is.null(test$high), label = claim$id)
      known <- printed_values[printed_values$workload == test$workload, ]
      if (nrow(known) > 0 && test$workload != "nuttcp") {
        expect_true(all(unlist(test$pairs) %in% known$environment), label = claim$id)
        expect_true(all(unlist(test$metrics) %in% known$metric), label = claim$id)
        expect_true(any(any_factors(known$factors, test$factors)), label = claim$id)
      }
    }
  }
})

test_that("the text's numbers on Redis are not those of its own figures", {
  ratio <- tested("ibm-redis-nat-4conn")
  expect_equal(ratio$printed_verdict, "contradicted")
  expect_equal(ratio$printed, 0.0722 / 0.0552)
  expect_equal(ratio$printed_at, "Figure 9: Docker to Native, test SET, connections 4")
  expect_equal(ratio$raw_verdict, NOT_AVAILABLE)
  level <- tested("ibm-redis-nat-4conn-51us")
  expect_equal(c(level$printed_verdict, level$published, level$printed), c("contradicted", 51, 72.2))
  expect_equal(tested("ibm-redis-nat-100conn")$printed_verdict, "follows")
  expect_equal(tested("ibm-redis-kvm-83us")$printed, 83.4, tolerance = 1e-3)
  expect_equal(tested("ibm-mysql-cpu-1.5pct")$printed, 1.54, tolerance = 1e-2)
})

test_that("raw results decide where they are as many as are behind the print", {
  linpack <- function(n, vm) {
    factors <- "order=45000;sockets=2"
    rbind(raw_values(rep(c(290, 291), length.out = n), "linpack", "native", "gflops", factors),
          raw_values(rep(vm + c(-1, 1), length.out = n), "linpack", "vm", "gflops", factors))
  }
  id <- "ibm-linpack-kvm-untuned-worse"
  few <- tested(id, linpack(4, 130))
  expect_equal(few$raw_verdict, "incomplete")
  expect_equal(c(few$raw_n, few$raw_planned), c(4, 10))
  # The statement, that it is slower, holds all the more; its number does not.
  off <- tested(id, linpack(10, 130))
  expect_equal(off$raw_verdict, "number contradicted")
  expect_equal(off$raw, 130 / 290.5)
  expect_lt(off$raw_low, off$raw)
  expect_gt(off$raw_high, off$raw)
  expect_equal(off$files, "vm.log;native.log")
  expect_equal(tested(id, linpack(10, 290.5))$raw_verdict, "contradicted")
  expect_equal(tested(id, linpack(10, 0.83 * 290.5))$raw_verdict, "follows")
})

test_that("one part outside contradicts a claim; a part that was not read leaves it open", {
  id <- "ibm-cpu-mem-negligible"
  stream <- function(environment, rate) {
    do.call(rbind, lapply(c("copy", "scale", "add", "triad"), function(metric) {
      raw_values(rate + (1:10) / 100, "stream", environment, metric, "sockets=2")
    }))
  }
  native <- stream("native", 40)
  expect_equal(tested(id, rbind(native, stream("vm", 40), stream("docker", 40)))$raw_verdict, "incomplete")
  slow <- tested(id, rbind(native, stream("vm", 30)))
  expect_equal(slow$raw_verdict, "contradicted")
  expect_match(slow$raw_at, "KVM to Native, (copy|scale|add|triad), sockets 2")
})

test_that("numbers under a label that the raw results contradict get a verdict of their own", {
  expect_equal(tested("ibm-mysql-nat-little")$printed_verdict, "label contradicted")
  expect_equal(disputed_environments(project), "docker-hostnet-layered")
  at <- printed_values$disputed & printed_values$statistic == "mean" & printed_values$place == "Figure 10"
  expect_equal(sum(printed_values$disputed), 105)
  row <- printed_values[at, ][1, ]
  row$planned <- 2
  tidy <- raw_values(rep(as.numeric(row$published), 2), "mysql", row$environment, "throughput", row$factors)
  expect_equal(differences_from(row, tidy)$verdict, "label contradicted")
  row$disputed <- FALSE
  expect_equal(differences_from(row, tidy)$verdict, "agrees")
})

test_that("printed deviations are per cent, whatever their means are", {
  deviations <- printed_values[printed_values$statistic == "deviation_percent", ]
  expect_equal(unique(deviations$unit), "%")
  # Each follows from the means that are printed beside it.
  table <- deviations[deviations$place == "Table I", ]
  key <- function(rows, environment) paste(rows$workload, environment, rows$metric)
  means <- printed_values[printed_values$place == "Table I" & printed_values$statistic == "mean", ]
  mean_of <- function(environment) {
    as.numeric(means$published[match(key(table, environment), key(means, means$environment))])
  }
  shares <- 100 * (mean_of(table$environment) / mean_of("native") - 1)
  expect_true(all(abs(shares - as.numeric(table$published)) <= 0.6))
})

test_that("the stored verdicts are those of the raw results at hand, and no others contradict them", {
  stored <- read_own_verdicts(project)
  expect_equal(stored$claims$id, names(own))
  samples <- published_samples()
  tidy <- collect(open_source(samples))$tidy
  differences <- differences_from(printed_values, tidy)
  made <- list(claims = test_own_claims(own, printed_values, tidy),
               table = differences[differences$place == "Table I", names(OWN_TABLE_COLUMNS)])
  write_csv(made$claims, path <- tempfile())
  made$claims <- read_csv(path, OWN_CLAIM_COLUMNS)
  # Whatever was decided stays so when more is read.
  decided <- !stored$claims$raw_verdict %in% c(NOT_AVAILABLE, "incomplete")
  columns <- setdiff(names(OWN_CLAIM_COLUMNS), "files")
  expect_gt(sum(decided), 10)
  expect_equal(made$claims[decided, columns], stored$claims[decided, columns])
  decided <- !stored$table$verdict %in% c(NOT_AVAILABLE, "incomplete")
  expect_equal(made$table$verdict[decided], stored$table$verdict[decided])
  expect_equal(made$table$rounded[decided], stored$table$rounded[decided])
  # What was printed decides without raw results.
  print <- grep("^printed", names(OWN_CLAIM_COLUMNS), value = TRUE)
  expect_equal(made$claims[print], stored$claims[print])
})
