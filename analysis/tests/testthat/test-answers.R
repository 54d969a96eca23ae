# The answers of the first page: true of what was measured, whatever that is.

asked_plan <- function(...) {
  plan <- small_plan(...)
  plan$workloads$stream$question <- "memory"
  plan
}

three <- c(native = "Native", docker = "Docker", `docker-hostnet` = "Docker (host network)")

#' The answers as one reads them
answers_aloud <- function(evidence) lapply(answers_of(evidence)$lines, function(lines) read_aloud(lines))

test_that("a family is told by its extremes, what all intervals lie within, and what would have been seen", {
  evidence <- small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"),
    summary_row("docker", ratio = 0.95, low = 0.891, high = 1.01),
    summary_row("docker-hostnet", ratio = 1.02, low = 0.97, high = 1.0712, n = 4, metric = "scale")
  ), asked_plan(three))
  answers <- answers_aloud(evidence)
  expect_equal(names(answers), "Memory")
  # Limits are rounded outward, so that no interval reaches beyond.
  expect_match(answers$Memory, paste(
    "Containers (2 environments): no difference from native is shown in any of 2 ratios (95 % to 102 % of",
    "native\u2019s performance, 95 % intervals within [89, 108], n = 4 to 5 sets each); a difference of"
  ), fixed = TRUE)
  rows <- ratios(evidence)
  expect_match(answers$Memory, paste(read_aloud(rough_percent(max(rows$smallest_called))),
                                     "would have been called in each."), fixed = TRUE)
  expect_match(paste(answers_of(evidence)$notes, collapse = " "),
               "Of processor, network, storage, databases, applications and start-up there is no data here.",
               fixed = TRUE)
})

test_that("findings that differ are counted, and a cost is the inverse of performance", {
  evidence <- small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"),
    summary_row("docker", ratio = 2, low = 1.9, high = 2.1, better = "lower"),
    summary_row("docker", ratio = 1, low = 0.995, high = 1.005, metric = "scale")
  ), asked_plan())
  expect_equal(answers_aloud(evidence)$Memory, paste(
    "Containers (Docker): slower than native in 1 of 2 ratios and within 2 % of it in 1 (50.0 % to 100.0 %",
    "of native\u2019s performance, 95 % intervals within [47.6, 100.5], n = 5 sets each)."
  ))
  rows <- ratios(evidence)
  expect_equal(performance_of(rows)$ratio, c(0.5, 1))
  rows$ratio_low <- -0.1
  expect_equal(performance_of(rows)$high, c(Inf, 1.005))
})

test_that("one ratio is told with its interval, and one without an interval as that", {
  one <- function(...) {
    rows <- list(summary_row("native"), summary_row("docker", ...))
    answers_aloud(small_evidence(rows, asked_plan()))$Memory
  }
  expect_equal(one(ratio = 0.9, low = 0.89, high = 0.91), paste(
    "Containers (Docker): slower than native (90.0 % [89.0, 91.0] of native\u2019s performance, n = 5 sets)."
  ))
  expect_equal(one(ratio = 0.9, n = 1), paste(
    "Containers (Docker): compared with native without an interval (90.0 % of native\u2019s performance,",
    "n = 1 set)."
  ))
  # A workload without a question may answer any.
  unasked <- small_evidence(list(summary_row("native"), summary_row("docker", ratio = 0.9)))
  expect_equal(names(answers_of(unasked)$lines), "STREAM")
  expect_no_match(paste(answers_of(unasked)$notes, collapse = " "), "no data here")
  none <- small_evidence(list(summary_row("docker")), asked_plan())
  expect_match(answers_aloud(none)$Memory, "no set together with native", fixed = TRUE)
  expect_length(answers_of(small_evidence(plan = asked_plan()))$lines, 0)
})

test_that("emulated machines are one family that is never KVM, and KVM has its name", {
  of <- function(accelerator) families_of(planned_machines(accelerator))
  planned_machines <- function(accelerator) {
    labels <- all_labels(accelerator)
    list(environments = Map(planned_environment, names(labels), labels, accelerator))
  }
  emulated <- of("tcg")
  expect_equal(unique(emulated$family), c("Native", "Containers", "Emulated virtual machines"))
  expect_equal(unique(of("kvm")$family),
               c("Native", "Containers", "Virtual machines under KVM",
                 "Containers in virtual machines under KVM"))
  expect_no_match(emulated$family, "KVM")
})

test_that("an interval that ends at zero or goes on without end is told so", {
  rows <- data.frame(environment = "vm", workload = "stream", metric = "copy", factors = "",
                     ratio_low = c(-0.1, 0.02), ratio_high = c(0.2, 0.114), ratio = c(0.05, 0.06),
                     better = "higher")
  text <- function(rows) read_aloud(bounds_text(rows, performance_of(rows), 0))
  expect_equal(text(rows), ", no 95 % interval above 20 %")
  expect_equal(text(rows[2, ]), ", 95 % intervals within [2, 12]")
  rows$better <- "lower"
  expect_equal(text(rows), ", 95 % intervals from 500 % without an upper limit")
  rows$ratio_low <- rows$ratio_high <- NA_real_
  expect_equal(text(rows), ", without 95 % intervals")
})

test_that("the figure has a row for each series, or for each workload where they are many", {
  rows <- c(lapply(c("native", "docker", "docker-hostnet"), summary_row, ratio = 1, low = 0.9, high = 1.1),
            list(summary_row("docker", workload = "new-load", metric = "rate", ratio = 2, low = 1.5, high = 3,
                             better = "lower")))
  rows[[1]]$ratio <- NA
  summary <- do.call(rbind, rows)
  data <- answer_data(summary, asked_plan(three))
  expect_equal(levels(data$question), c("Memory", "A new load"))
  expect_equal(as.character(data$row), c("STREAM copy", "STREAM copy", "A new load rate"))
  expect_equal(data$ratio, c(1, 1, 0.5))
  places <- answer_places(data)
  expect_gt(places[[1]], places[[2]])
  expect_equal(places[[3]], 0)
  limits <- answer_limits(data)
  expect_true(all(limits$from <= data$ratio & data$ratio <= limits$to))
  many <- summary[rep(2, MOST_ANSWER_ROWS + 1), ]
  many$factors <- paste0("size=", seq_len(nrow(many)))
  expect_equal(levels(answer_data(many, asked_plan(three))$row), "STREAM")
  started <- asked_plan(three)
  started$workloads$stream$question <- "start-up"
  expect_equal(nrow(answer_data(summary[-4, ], started)), 0)
})

test_that("short words tell extremes, what all intervals lie within, n, and how often each finding is met", {
  rows <- ratios(small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"), summary_row("native", metric = "add"),
    summary_row("docker", ratio = 0.9, low = 0.89, high = 0.91),
    summary_row("docker", ratio = 1.02, low = 0.97, high = 1.0712, metric = "scale"),
    summary_row("docker", ratio = 0.95, metric = "add")
  ), asked_plan()))
  from <- read_aloud(rough_percent(max(rows$smallest_called, na.rm = TRUE)))
  expect_equal(unname(read_aloud(brief_answer(rows))), paste0(
    "90 % to 102 % [89, 108], n = 5; of 3 ratios 1 slower, 1 no interval and 1 open (from ", from, ")"
  ))
  rows$ratio_low[[2]] <- -0.5
  expect_match(read_aloud(brief_answer(rows)), "[0, 110]", fixed = TRUE)
  expect_equal(brief_bounds(data.frame(low = c(0.1, 0.2), high = c(Inf, 1)), 0), " [10, no limit]")
  expect_equal(brief_bounds(data.frame(low = NA_real_, high = NA_real_), 0), "")
})

test_that("short words are for more than four questions", {
  plan <- small_plan()
  asked <- c("processor", "memory", "network", "storage", "databases")
  for (question in asked) {
    plan$workloads[[question]] <- plan$workloads$stream
    plan$workloads[[question]][c("question", "title")] <- question
  }
  plan$workloads$stream <- NULL
  evidence_of <- function(questions) {
    rows <- lapply(questions, function(name) {
      list(summary_row("native", workload = name), summary_row("docker", workload = name, ratio = 0.9))
    })
    small_evidence(unlist(rows, recursive = FALSE), plan)
  }
  expect_false(many_answers(evidence_of(asked[1:4])))
  many <- evidence_of(asked)
  expect_true(many_answers(many))
  expect_match(answers_aloud(many)$Storage, "Containers (Docker): 90.0 %, n = 5; of 1 ratio 1 no interval.",
               fixed = TRUE)
  expect_match(answers_of(many)$notes[[2]], "Told are the least and the greatest", fixed = TRUE)
  # The abstract does not need the box's note.
  expect_match(read_aloud(abstract_text(many)), paste0(
    "Containers (Docker): 90.0 % of native\u2019s performance, without 95 % intervals; of 5 ratios 5 are ",
    "without an interval."
  ), fixed = TRUE)
})

test_that("counts are told with the verb of their number, and of one ratio its interval", {
  rows <- ratios(small_evidence(list(
    summary_row("native"), summary_row("native", metric = "scale"), summary_row("native", metric = "add"),
    summary_row("docker", ratio = 0.9, low = 0.89, high = 0.91),
    summary_row("docker", ratio = 0.92, low = 0.91, high = 0.93, metric = "scale"),
    summary_row("docker", ratio = 0.95, metric = "add")
  ), asked_plan()))
  told <- sub("\u2019", "'", read_aloud(counted_answer(rows)), fixed = TRUE)
  expect_equal(told, paste0("90.0 % to 95.0 % of native's performance, 95 % intervals where there are any ",
                            "within [89.0, 93.0]; of 3 ratios 2 are slower and 1 is without an interval"))
  expect_match(read_aloud(counted_answer(rows[1, ])), "90.0 % [89.0, 91.0] of native", fixed = TRUE)
})

test_that("the legend of the answers has as many entries side by side as there is room for", {
  expect_equal(answer_legend_columns(c("Docker", "KVM")), 2)
  expect_equal(answer_legend_columns(rep("Docker (host network)", 8)), 4)
  expect_equal(answer_legend_columns(c("Docker", rep("Docker in VM (TCG emulation), host network", 7))), 3)
  expect_equal(answer_legend_columns(strrep("a", 200)), 1)
})
