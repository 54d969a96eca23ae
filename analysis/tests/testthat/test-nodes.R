# The nodes on which sets were measured: what they differ by, and what the paper says of it.

#' Rows of a tidy table, and records, of sets shared out among nodes
#'
#' @param values matrix with a row for each set, a column for each environment
#' @param nodes names of the nodes of the sets
on_nodes <- function(values, nodes, environments = c("native", "docker")) {
  grid <- expand.grid(repetition = seq_len(nrow(values)), environment = environments,
                      stringsAsFactors = FALSE)
  rows <- data.frame(
    environment = grid$environment, workload = "stream", repetition = grid$repetition,
    block = grid$repetition, position = seq_len(nrow(grid)), order = seq_len(nrow(grid)), metric = "copy",
    unit = "GB/s",
    value = as.vector(values), factors = "", check = "passed", counts = "yes",
    log = file.path("results/raw", grid$environment, "stream", paste0(grid$repetition, ".log"))
  )
  records <- Map(function(environment, repetition) {
    record <- small_record(environment, repetition)
    updated(record, node = list(name = nodes[[repetition]], boot = paste("boot of", nodes[[repetition]])))
  }, grid$environment, grid$repetition, USE.NAMES = FALSE)
  list(rows = rows, records = records)
}

spread_plan <- function() {
  plan <- small_plan()
  plan$spread <- TRUE
  plan
}

#' Values of sets on two nodes: the second is by `level` faster, and its ratio by `ratio` larger
two_nodes <- function(sets = 12, level = 1, ratio = 1, noise = 0.005, seed = 3) {
  set.seed(seed)
  second <- rep(c(FALSE, TRUE), length.out = sets)
  native <- 10 * ifelse(second, level, 1) * exp(stats::rnorm(sets, 0, noise))
  docker <- native * 0.95 * ifelse(second, ratio, 1) * exp(stats::rnorm(sets, 0, noise))
  on_nodes(cbind(native, docker), ifelse(second, "beta", "alpha"))
}

table_of <- function(made, plan = spread_plan()) nodes_table(made$rows, made$records, plan)

evidence_of <- function(made, plan = spread_plan(), nodes = table_of(made, plan)) {
  rows <- list(summary_row("native", mean = 10), summary_row("docker", mean = 9.5, ratio = 0.95, low = 0.94,
                                                              high = 0.96))
  evidence <- small_evidence(rows, plan, made$records)
  evidence$nodes <- nodes
  evidence
}

test_that("the effects and the test of groups are those of R's own analysis of variance", {
  set.seed(1)
  group <- rep(c("c", "a", "b"), c(4, 7, 5))
  y <- stats::rnorm(16) + (group == "b")
  found <- one_way(y, group)
  own <- stats::lm(y ~ factor(group), contrasts = list(`factor(group)` = "contr.sum"))
  expect_equal(found$p_value, stats::anova(own)[["Pr(>F)"]][[1]])
  expect_equal(found$groups$group, c("a", "b", "c"))
  expect_equal(found$groups$n, c(7, 5, 4))
  expect_equal(found$groups$effect[1:2], unname(stats::coef(own)[2:3]))
  limits <- stats::confint(own)[2:3, ]
  expect_equal(found$groups$low[1:2], unname(limits[, 1]))
  expect_equal(found$groups$high[1:2], unname(limits[, 2]))
})

test_that("a node's interval covers the truth at its level, and equal nodes are told apart rarely", {
  found <- lapply(1:400, function(seed) {
    set.seed(seed)
    one_way(stats::rnorm(9) + rep(c(0, 1, 2), 3), rep(c("a", "b", "c"), 3))$groups
  })
  covered <- vapply(found, function(groups) groups$low[[1]] <= -1 && groups$high[[1]] >= -1, NA)
  expect_gt(mean(covered), 0.95 - 4 * sqrt(0.95 * 0.05 / 400))
  called <- vapply(1:400, function(seed) {
    table <- table_of(two_nodes(8, seed = seed))
    table$p_value[table$quantity == "ratio"][[1]] < 0.05
  }, NA)
  expect_lt(mean(called), 0.05 + 4 * sqrt(0.95 * 0.05 / 400))
})

test_that("nothing is told of one group, of groups of one, and of what does not vary", {
  expect_true(is.na(one_way(1:4, rep("a", 4))$p_value))
  expect_true(is.na(one_way(1:2, c("a", "b"))$p_value))
  expect_true(is.na(one_way(c(1, 1, 2, 2), c("a", "a", "b", "b"))$p_value))
})

test_that("a node that is faster has another level, and the same ratio", {
  table <- table_of(two_nodes(level = 1.2))
  expect_equal(names(table), names(NODE_COLUMNS))
  level <- table[table$quantity == "level", ]
  expect_equal(level$node, c("node 1", "node 2"))
  expect_equal(level$sets, c(6, 6))
  expect_equal(level$value, c(1 / sqrt(1.2), sqrt(1.2)), tolerance = 0.01)
  expect_true(all(level$low < level$value & level$value < level$high))
  expect_lt(level$p_value[[1]], 1e-6)
  ratio <- table[table$quantity == "ratio", ]
  expect_equal(ratio$environment, c("docker", "docker"))
  expect_equal(ratio$value, c(0.95, 0.95), tolerance = 0.01)
  expect_gt(ratio$p_adjusted[[1]], 0.05)
})

test_that("a ratio is of the pairs of its own node, and of nodes as a sample it is unsure as they are few", {
  made <- two_nodes(ratio = 1.1)
  table <- table_of(made)
  ratio <- table[table$quantity == "ratio", ]
  first <- made$rows$repetition %% 2 == 1
  of <- function(environment) made$rows$value[first & made$rows$environment == environment]
  expected <- compare_runs(of("docker"), of("native"), "mean")
  expect_equal(c(ratio$value[[1]], ratio$low[[1]], ratio$high[[1]]),
               c(expected$ratio, expected$low, expected$high))
  expect_lt(ratio$p_adjusted[[1]], 1e-6)
  expect_equal(ratio$of_nodes[[1]], sqrt(0.95 * 0.95 * 1.1), tolerance = 0.01)
  expect_lt(ratio$of_nodes_low[[1]], ratio$low[[1]])
  expect_gt(ratio$of_nodes_high[[1]], ratio$high[[2]])
})

test_that("each comparison counts once in its family", {
  table <- table_of(two_nodes(ratio = 1.01))
  single <- table$p_value[table$quantity == "ratio"][[1]]
  expect_equal(table$p_adjusted[table$quantity == "ratio"], rep(single, 2))
})

test_that("percentiles are compared by ranks", {
  plan <- spread_plan()
  plan$workloads$stream$metrics$copy$statistic <- "percentile"
  made <- two_nodes(ratio = 1.1)
  ratio <- subset(table_of(made, plan), quantity == "ratio")
  logs <- log(made$rows$value[13:24] / made$rows$value[1:12])
  expect_equal(ratio$p_value[[1]], stats::kruskal.test(logs, rep(1:2, 6))$p.value)
})

test_that("nodes have numbers by their names, however a locale would sort them", {
  expect_equal(node_labels(c("n2", "N10", "n1", "n2")), c("node 3", "node 1", "node 2", "node 3"))
  expect_equal(node_labels(c("a", NA)), c("node 1", "a node that is not told"))
})

test_that("a set on two nodes is told, and in no table of nodes", {
  path <- make_results(c("native", "docker"), "stream", 4)
  plan <- read_plan(path)
  results <- dirname(path)
  for (file in list.files(file.path(results, "raw"), "[.]json$", recursive = TRUE, full.names = TRUE)) {
    record <- read_json(file)
    torn <- record$repetition == 3 && record$environment == "docker"
    name <- if (record$repetition %% 2 == 1 && !torn) "a" else "b"
    write_json(c(record, list(node = list(name = name, boot = NULL))), file)
  }
  plan$spread <- TRUE
  counts <- tidied(plan, "stream")
  records <- records_of(plan, counts)
  expect_equal(torn_sets(records), "stream 3")
  counts$counts[counts$repetition == 3] <- "no"
  table <- nodes_table(counts, records, plan)
  expect_equal(table$sets[table$quantity == "level"][1:2], c(1, 2))
})

test_that("of one machine, and of one node, nothing is told", {
  made <- two_nodes()
  alone <- evidence_of(made, small_plan(), empty_table(NODE_COLUMNS))
  expect_null(nodes_text(alone))
  expect_null(table_of_nodes(alone))
  expect_equal(measured_machines_text(alone), "one machine")
  expect_match(threats(alone)[["One machine"]], "^All runs come from one machine; another processor")
  single <- on_nodes(matrix(c(10, 11, 12, 9, 10, 11), 3), rep("alpha", 3))
  expect_equal(nrow(table_of(single)), 0)
  expect_null(nodes_text(evidence_of(single)))
  expect_true("One machine" %in% names(threats(evidence_of(single))))
})

test_that("the paper tells the nodes' sets, levels and ratios, in words where they differ", {
  evidence <- evidence_of(two_nodes(level = 1.2, ratio = 1.1))
  text <- read_aloud(nodes_text(evidence))
  expect_match(text, "among 2 nodes (6 on node 1, 6 on node 2); each set lies on one of them", fixed = TRUE)
  expect_match(text, "They were seen to be of one kind", fixed = TRUE)
  expect_match(text, "The F test tells the nodes apart in 1 of 1 metric ", fixed = TRUE)
  expect_match(text, "The ratios to native differ between nodes in 1 of 1 ratio: most in STREAM",
               fixed = TRUE)
  of <- function(percent) paste0(percent, "[.0-9]* % \\[[0-9., ]+\\]")
  expect_match(text, paste0("Docker, which is ", of("9[45]"), " on node 1 and ", of("104"), " on node 2"))
  expect_match(text, "were they a sample of their kind, the ratio would be", fixed = TRUE)
  told <- threats(evidence)
  expect_match(read_aloud(told[["Nodes"]]), "All runs come from 2 machines; another processor", fixed = TRUE)
  expect_match(read_aloud(told[["Nodes"]]), "is another on another node in 1 comparison", fixed = TRUE)
  expect_false("One machine" %in% names(told))
  table <- table_of_nodes(evidence)
  expect_equal(dim(table$cells), c(2, 9))
  expect_equal(table$cells[[2]], c("level", "Docker"))
  expect_equal(table$cells[[5]], c("node 1", "node 1"))
  expect_equal(table$cells[[8]], c("node 2", "node 2"))
})

test_that("alike nodes are not said to be proven alike, and too few sets say nothing", {
  text <- read_aloud(nodes_text(evidence_of(two_nodes())))
  expect_match(text, "In none of 1 ratio to native does the F test tell the nodes apart", fixed = TRUE)
  expect_match(text, "which is no proof that they are alike", fixed = TRUE)
  few <- read_aloud(nodes_text(evidence_of(two_nodes(2))))
  expect_match(few, "Too few sets of each node are there to tell", fixed = TRUE)
})

test_that("nodes of two kinds and torn sets are told, and names of one machine are called that", {
  made <- two_nodes()
  made$records <- lapply(made$records, function(record) {
    record$observed$host$static$cpu_model <- if (record$node$name == "beta") "New one" else "Old one"
    record
  })
  made$records[[1]]$node <- list(name = "beta", boot = "boot of beta")
  text <- read_aloud(nodes_text(evidence_of(made)))
  expect_match(text, "They differ in the processor (Old one on node 1; Old one or New one on node 2).",
               fixed = TRUE)
  expect_match(text, "1 set has runs on more than one node, being completed later, and does not count.",
               fixed = TRUE)
  expect_match(text, "(5 on node 1, 6 on node 2)", fixed = TRUE)
  made <- two_nodes()
  made$records <- lapply(made$records, function(record) {
    updated(record, node = updated(record$node, boot = "x"))
  })
  evidence <- evidence_of(made)
  expect_match(nodes_text(evidence), "All these names are of one machine", fixed = TRUE)
  expect_match(read_aloud(threats(evidence)[["Nodes"]]), "All runs come from one machine under 2 names;",
               fixed = TRUE)
})

test_that("the planned order is one on each node", {
  made <- two_nodes(4)
  made$records <- Map(function(record, place) {
    position <- list(planned = place, actual = (place + 1) %/% 2)
    updated(record, position = position, node = list(name = c("a", "b")[[1 + place %% 2]]))
  }, made$records, seq_along(made$records))
  expect_match(order_text(evidence_of(made, nodes = empty_table(NODE_COLUMNS))),
               "On each node the runs were made in the planned order.", fixed = TRUE)
  made$records[[1]]$position$actual <- 9
  expect_match(order_text(evidence_of(made, nodes = empty_table(NODE_COLUMNS))), "Not all runs", fixed = TRUE)
})
