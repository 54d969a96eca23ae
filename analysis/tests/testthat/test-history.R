# Several dates or machines side by side: which are compared, as one family, and what the page shows of them.

three_sides <- function() {
  list(history_side("A", seed = 1), history_side("B", seed = 2),
       history_side("C", slower = c(docker = 1.2, vm = 1), seed = 3))
}

test_that("each side is compared with the first and with the one before it, all as one family", {
  sides <- three_sides()
  history <- history_of(sides)
  expect_identical(names(history), names(HISTORY_COLUMNS))
  expect_identical(unique(paste(history$from, history$to)), c("A B", "B C", "A C"))
  expect_identical(nrow(history), 45L)
  expect_equal(history$p_adjusted, adjusted_p_values(history$p_value))
  # The same numbers as of two sides alone, but for what follows from the family.
  pair <- compare_sides(sides[[2]], sides[[3]])
  own <- history[history$from == "B" & history$to == "C", names(COMPARED_COLUMNS)]
  same <- setdiff(names(pair), c("p_adjusted", "reading"))
  rownames(own) <- NULL
  expect_equal(own[same], pair[same])
  expect_true(all(history$reading[history$environment == "docker" & history$to == "C"] == "slower"))
  expect_true(all(history$reading[history$to == "B"] %in% c("equal", "open")))
  changes <- changes_of(history, sides)
  expect_identical(unique(paste(changes$from, changes$to)), c("A B", "B C"))
})

test_that("two sides are one comparison, as compare makes it", {
  sides <- three_sides()[c(1, 3)]
  expect_equal(history_of(sides)[names(COMPARED_COLUMNS)], compare_sides(sides[[1]], sides[[2]]))
})

test_that("what came of it is told of each side against the one before", {
  sides <- three_sides()
  history <- history_of(sides)
  text <- gsub("[\u00a0\u202f]", " ", history_text(history, sides, 0.02))
  expect_match(text, "B is not found to differ in any of 15 metrics; C is slower in 5 of 15 metrics")
  expect_identical(outcome_of(history)$outcome, "difference")
  alone <- list(history_side("A", environments = "native"), history_side("B", environments = "docker"))
  expect_match(history_text(history_of(alone), alone, 0.02), "nothing can be told")
})

test_that("sides of another scale are refused by their names", {
  sides <- three_sides()
  sides[[3]]$plan$scale <- "paper"
  expect_error(history_of(sides), "C at scale paper")
})

test_that("the figure draws each series at each side, relative to the first", {
  sides <- three_sides()
  history <- history_of(sides)
  data <- history_data(history, sides)
  expect_identical(nrow(data), 45L)
  expect_true(all(data$ratio[data$side == "A"] == 1) && all(is.na(data$low[data$side == "A"])))
  of_c <- history[history$from == "A" & history$to == "C", ]
  expect_equal(data$ratio[data$side == "C"], of_c$ratio)
  out <- tempfile("history-")
  draw_history(history, sides, 0.02, file.path(out, "changes"))
  expect_equal(utils::read.csv(file.path(out, "changes.csv"))$ratio, data$ratio, tolerance = 1e-9)
  draw_history(history[0, ], sides, 0.02, file.path(out, "none"))
  expect_true(file.exists(file.path(out, "none.pdf")))
})

test_that("an emulated machine stands beside no accelerated one, and on an axis of its own", {
  with_machine <- function(name, accelerator) {
    c(made_side(name, accelerator, environments = c("native", "vm"), make = make_machine_results),
      list(source = name, sha256 = NULL, paper = NULL))
  }
  sides <- list(with_machine("A", "kvm"), with_machine("B", "tcg"), with_machine("C", "tcg"))
  history <- history_of(sides)
  cells <- table_history(history, sides, 0.02)$cells
  at <- function(side) cells[cells[[2]] == environment_labels(sides[[1]]$plan, "vm"), side]
  expect_false(any(at(4) == EM_DASH))
  for (column in 5:10) {
    expect_true(all(at(column) == EM_DASH))
  }
})

test_that("the page stands alone: sides, what they are from, papers, changes and ratios, and no markup", {
  sides <- three_sides()
  sides[[1]]$name <- "<A>"
  sides[[1]]$sha256 <- strrep("0a", 32)
  sides[[2]]$paper <- "papers/2-B.pdf"
  comparisons <- file.path(sides[[2]]$plan$results, "comparisons.csv")
  writeLines(c(
    "environment,workload,metric,unit,better,factors,ratio,ratio_low,ratio_high,ratio_n,reading,later",
    "docker,stream,copy,GB/s,higher,,0.98,0.97,0.99,8,slower,x"
  ), comparisons)
  out <- tempfile("history-")
  history <- history_of(sides)
  ratios <- ratios_beside(sides)
  expect_identical(names(ratios), names(HISTORY_RATIO_COLUMNS))
  expect_identical(ratios$side, "B")
  expect_identical(ratios$ratio_n, 8)
  draw_history(history, sides, 0.02, file.path(out, "changes"))
  differences <- stats::setNames(origins_apart(sides), c("item", side_names(sides)))
  page <- history_page(history, ratios, differences, sides, 0.02, file.path(out, "changes"), project)
  expect_false(grepl("<A>", page, fixed = TRUE))
  expect_true(grepl("&lt;A&gt;", page, fixed = TRUE))
  expect_false(grepl("<!--|data-of|<link|@import|src=\"http", page))
  expect_true(grepl(strrep("0a", 32), page, fixed = TRUE))
  expect_true(grepl("href=\"papers/2-B.pdf\"", page, fixed = TRUE))
  expect_true(grepl("98.0\u202f% [97.0, 99.0]", gsub("\u00a0", " ", page), fixed = TRUE))
  expect_identical(lengths(regmatches(page, gregexpr("<table", page))), 4L)
  # A side without comparisons is no error.
  expect_identical(nrow(ratios_beside(sides[1])), 0L)
})
