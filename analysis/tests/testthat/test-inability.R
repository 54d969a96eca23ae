# What an environment was found unable to do: no result, no gap, and told with its reason.

#' A small results folder in which docker could not do pxz
unable_results <- function(doubtful = TRUE) {
  path <- make_results(workloads = c("pxz", "stream"), environments = c("native", "docker"))
  plan <- read_json(path)
  if (doubtful) {
    plan$environments$docker$doubtful <- TRUE
  }
  write_json(plan, path)
  plan <- read_plan(path)
  for (repetition in 1:3) {
    cell <- data.frame(environment = "docker", workload = "pxz", repetition = repetition)
    record <- read_json(cell_path(plan, "record", cell))
    record$cannot <- list(reason = paste("its step", repetition, "failed"), commands = list())
    write_json(record, cell_path(plan, "record", cell))
    writeLines("no such call", cell_path(plan, "log", cell))
  }
  plan
}

test_that("its cells are no cells of which results are awaited", {
  plan <- unable_results()
  cells <- read_cells(plan)
  expect_false(any(cells$environment == "docker" & cells$workload == "pxz"))
  expect_equal(nrow(cells), 9)
  tidy <- tidied(plan, "pxz")
  expect_equal(unique(tidy$environment), "native")
  expect_equal(unique(tidied(plan, "stream")$environment), c("native", "docker"),
               ignore_order = TRUE)
  expect_equal(unique(summarise_workload(tidy, plan, cells)$environment), "native")
})

test_that("of an environment that has to do everything no record is believed that it cannot", {
  plan <- unable_results(doubtful = FALSE)
  expect_equal(nrow(read_inability(plan, read_planned(plan))), 0)
  expect_equal(nrow(read_cells(plan)), 12)
})

test_that("it is told with its reason, once", {
  plan <- unable_results()
  evidence <- list(plan = plan, unable = read_inability(plan, read_planned(plan)))
  expect_equal(nrow(evidence$unable), 3)
  expect_equal(unable_sentences(evidence), "pxz cannot be done in docker: its step 1 failed.")
  expect_equal(unable_sentences(evidence, "native"), character())
  expect_match(unable_sentence(evidence), "docker cannot do pxz.", fixed = TRUE)
  evidence$unable <- evidence$unable[0, ]
  expect_null(unable_sentence(evidence))
})

test_that("what was seen of a sandbox and of a container's bounds is told", {
  seen <- list(sandbox = list(program = "runsc", version = "1", platform = "ptrace", stack = "host"),
               settings = list(list(name = "memory", asked = "1GiB", seen = "1073741824")))
  expect_equal(settings_told(seen), paste0("; runsc 1, platform ptrace, network stack: host",
                                           "; memory: 1GiB was asked for and 1073741824 seen"))
  expect_equal(settings_told(list(engine = "20")), "")
})

test_that("two sandboxes that differ in one setting make a pair", {
  environment <- function(platform, stack) {
    options <- list(network = "bridge", runtime = "runsc", sandbox = list(platform = platform, stack = stack))
    list(layers = list(list(docker = options)), told = list(list(kind = "sandbox", title = platform)))
  }
  plain <- list(layers = list(list(docker = list(network = "bridge"))),
                told = list(list(kind = "container", title = "Docker")))
  choice <- single_choice(environment("ptrace", "host"), environment("systrap", "host"))
  expect_equal(choice[c("option", "from", "to")], list(option = "platform", from = "ptrace", to = "systrap"))
  expect_null(single_choice(environment("ptrace", "host"), environment("systrap", "sandbox")))
  # A container becomes a sandbox by its runtime; what that has of its own follows.
  choice <- single_choice(plain, environment("ptrace", "host"))
  expect_equal(choice[c("option", "to", "touches")], list(option = "runtime", to = "runsc", touches = ""))
})

test_that("what was measured at times is not called impossible", {
  evidence <- small_evidence(list(summary_row("native"), summary_row("docker")))
  evidence$unable <- data.frame(environment = "docker", workload = "stream", repetition = 2,
                                reason = "it fell")
  expect_equal(unable_sentences(evidence), "STREAM could not be done in every run in Docker: it fell.")
  expect_null(unable_sentence(evidence))
  evidence$comparisons <- evidence$comparisons[evidence$comparisons$environment == "native", ]
  expect_equal(unable_sentences(evidence), "STREAM cannot be done in Docker: it fell.")
  expect_match(unable_sentence(evidence), "Docker cannot do STREAM", fixed = TRUE)
})

test_that("what emulated machines were not asked for is told, and only where there are such machines", {
  plan <- read_plan(make_results(workloads = c("pxz", "stream"), environments = c("native", "docker")))
  evidence <- list(plan = plan, environments = data.frame(name = c("native", "docker"), available = TRUE))
  expect_null(left_out_sentence(evidence))
  evidence$plan$not_emulated <- list("stream")
  expect_null(left_out_sentence(evidence))
  evidence$plan$environments$docker$told <- list(list(kind = "machine", title = "a virtual machine"))
  evidence$plan$environments$docker$accelerator <- "tcg"
  expect_match(left_out_sentence(evidence), "were not asked for stream, by choice", fixed = TRUE)
  evidence$environments$available <- FALSE
  expect_null(left_out_sentence(evidence))
})

#' Evidence of native and an emulated machine, which was not asked for the second workload
left_out_evidence <- function(accelerator = "tcg") {
  plan <- small_plan(all_labels(accelerator)[c("native", "vm")])
  plan$environments <- Map(planned_environment, c("native", "vm"), all_labels(accelerator)[c("native", "vm")],
                           accelerator)
  plan$not_emulated <- list("new-load")
  small_evidence(list(
    summary_row("native"), summary_row("vm", ratio = 0.1, low = 0.09, high = 0.11),
    summary_row("native", workload = "new-load", metric = "rate")
  ), plan)
}

test_that("what emulated machines were not asked for is told beside the tables that lack it", {
  evidence <- left_out_evidence()
  said <- "Emulated virtual machines were not asked for A new load, by choice of the experiment."
  expect_true(said %in% table_as_printed(evidence)$notes)
  expect_true(said %in% table_of_intervals(evidence)$notes)
  # Table I of the original has no such workload.
  expect_false(said %in% table_published(evidence)$notes)
  evidence$plan$not_emulated <- list("stream")
  expect_true(sub("A new load", "STREAM", said) %in% table_published(evidence)$notes)
  all <- left_out_evidence("kvm")
  expect_false(any(grepl("not asked for", c(table_as_printed(all)$notes, table_of_intervals(all)$notes))))
})

test_that("what emulated machines were not asked for is told under the figures that lack it", {
  evidence <- left_out_evidence()
  asked <- "Emulated virtual machines were not asked for it."
  expect_match(workload_caption(evidence, "new-load"), paste0(asked, "$"))
  expect_no_match(workload_caption(evidence, "stream"), "asked")
  expect_no_match(workload_caption(left_out_evidence("kvm"), "new-load"), "asked")
  # No mark of that workload is drawn among the ratios: nothing but native ran it.
  expect_no_match(ratios_caption(evidence), "asked")
  evidence$plan$not_emulated <- list("stream")
  expect_match(ratios_caption(evidence), "were not asked for STREAM, by choice of the experiment.$")
  expect_match(answers_note(evidence)[[2]], "KVM, and were not asked for every workload.$")
  expect_match(answers_note(left_out_evidence())[[2]], "nothing about KVM.$")
})
