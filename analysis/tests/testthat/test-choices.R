# What single choices cost: the pairs of environments, what a workload can notice, and the controls.

#' The default environments, machines under an accelerator, with settings that follow from their profiles
choice_plan <- function(accelerator = "kvm") {
  plan <- small_plan()
  labels <- all_labels(accelerator)
  plan$environments <- Map(planned_environment, names(labels), labels, accelerator)
  for (name in names(MACHINE_LABELS)) {
    options <- plan$environments[[name]]$layers[[1]]$vm
    options$fresh <- "snapshot"
    options$settings <- machine_profiles[[options$profile]]
    plan$environments[[name]]$layers[[1]]$vm <- options
  }
  plan
}

test_that("pairs that differ in one choice are found from their layers", {
  pairs <- choice_pairs(choice_plan())
  expect_equal(
    do.call(paste, c(unname(pairs), sep = "/")),
    c("docker/docker-hostnet/docker/network/bridge/host/network",
      "docker/docker-layered/docker/data/volume/layered/data",
      "docker/vm-docker/vm///below/",
      "docker-hostnet/vm-docker-hostnet/vm///below/",
      "vm/vm-tuned/vm/profile/default/tuned/",
      "vm/vm-docker/docker///top/",
      "vm/vm-docker-hostnet/docker///top/",
      "vm-docker/vm-docker-hostnet/docker/network/bridge/host/network")
  )
})

test_that("neither names of environments nor the order of options decide", {
  plan <- choice_plan()
  renamed <- plan
  names(renamed$environments) <- letters[seq_along(plan$environments)]
  given <- function(pairs) pairs[c("layer", "option", "from", "to", "touches")]
  expect_equal(given(choice_pairs(renamed)), given(choice_pairs(plan)))
  plan$environments$docker$layers[[1]]$docker <- rev(plan$environments$docker$layers[[1]]$docker)
  expect_equal(choice_pairs(plan), choice_pairs(choice_plan()))
})

test_that("two choices, another layer or an environment that is not available make no pair", {
  plan <- choice_plan()
  apart <- c("native", "docker-hostnet", "docker-layered", "vm-tuned", "vm-docker")
  plan$environments <- plan$environments[apart]
  expect_equal(nrow(choice_pairs(plan)), 0)
  plan <- choice_plan()
  plan$environments <- lapply(plan$environments[c("vm", "vm-tuned")], function(entry) {
    entry$layers[[1]]$vm <- entry$layers[[1]]$vm["profile"]
    entry
  })
  expect_equal(choice_pairs(plan)$option, "profile")
  plan <- choice_plan()
  plan$environments$docker$available <- FALSE
  expect_false("docker" %in% unlist(choice_pairs(plan)[c("base", "environment")]))
  plan$environments <- plan$environments["native"]
  expect_equal(nrow(choice_pairs(plan)), 0)
})

test_that("a layer that nobody here knows is compared by its options", {
  plan <- small_plan()
  entry <- function(...) {
    list(label = "x", available = TRUE, layers = list(list(jail = list(...))),
         told = list(list(kind = "container", title = "jail")))
  }
  plan$environments <- list(a = entry(level = 1, quota = TRUE), b = entry(level = 2, quota = TRUE),
                            c = entry(level = 2, quota = FALSE), d = entry(level = 2))
  pairs <- choice_pairs(plan)
  expect_equal(paste(pairs$base, pairs$environment, pairs$option, pairs$from, pairs$to),
               c("a b level 1 2", "b c quota yes no", "b d quota yes none", "c d quota no none"))
  expect_true(all(pairs$touches == ""))
})

test_that("a workload notices the network by its servers and client, and storage unless it touches no file", {
  quiet <- list(storage = FALSE, cell = list(steps = list(list(step = "run", argv = list("x")))))
  with <- function(...) updated(quiet, cell = updated(quiet$cell, ...))
  inner <- list(list(step = "run", `for` = "sizes",
                     steps = list(list(step = "run", argv = list("x"), at = "client"))))
  expect_false(notices("network", quiet))
  expect_true(notices("network", with(ports = list("port"))))
  expect_true(notices("network", with(servers = list(list(name = "redis")))))
  expect_true(notices("network", with(steps = inner)))
  expect_false(notices("data", with(steps = inner)))
  expect_false(notices("data", quiet))
  expect_true(notices("data", updated(quiet, storage = TRUE)))
  expect_true(notices("data", quiet["cell"]))
  # Whatever brings systems up while it measures notices all of them, and any other choice is noticed by all.
  fresh <- list(list(step = "run", argv = list("x"), fresh = "way"))
  for (touches in c("network", "data")) {
    expect_true(notices(touches, with(steps = fresh)))
  }
  expect_true(notices("", quiet))
})

test_that("the workloads of the project say whether they touch files", {
  declared <- Sys.glob(file.path(project, "workloads", "*", "workload.yaml"))
  says <- vapply(declared, function(path) {
    line <- grep("^storage: ", readLines(path), value = TRUE)
    if (length(line) == 1) sub("storage: ", "", line) else "nothing"
  }, "")
  names(says) <- basename(dirname(declared))
  expect_equal(names(says)[says == "true"],
               c("auction", "cloudstone", "dvdstore", "fio", "mysql", "pxz", "redis-scaleout"))
  expect_equal(names(says)[says == "nothing"], "startup")
})

#' Runs of the given environments, each slower by its own factor
choice_rows <- function(factors, sets = 10, seed = 3, workload = "stream", metric = "copy") {
  set.seed(seed)
  do.call(rbind, lapply(names(factors), function(name) {
    data.frame(environment = name, workload = workload, repetition = seq_len(sets), block = seq_len(sets),
               position = seq_len(sets), order = seq_len(sets), metric = metric, unit = "GB/s",
               value = factors[[name]] * exp(stats::rnorm(sets, 0, 0.004)), factors = "", check = "passed",
               counts = "yes", log = paste0("results/raw/", name, "/", workload, "/", seq_len(sets), ".log"))
  }))
}

#' A plan in which STREAM serves and the other workload computes
served_plan <- function(...) {
  plan <- choice_plan(...)
  plan$workloads$stream$cell <- list(ports = list("port"), steps = list(list(step = "run", argv = list("x"))))
  plan$workloads$`new-load`$cell <- list(steps = list(list(step = "run", argv = list("x"))))
  plan
}

test_that("a choice that costs something is told, and a control is one", {
  rows <- rbind(choice_rows(c(native = 1, docker = 1, `docker-hostnet` = 1.2)),
                choice_rows(c(docker = 1, `docker-hostnet` = 1), workload = "new-load", metric = "rate"))
  table <- choices_table(rows, served_plan())
  expect_equal(names(table), names(CHOICE_COLUMNS))
  expect_equal(table$workload, c("stream", "new-load"))
  expect_equal(table$control, c("no", "yes"))
  expect_equal(table$reading, c("faster", "equal"))
  values <- split(rows$value[rows$workload == "stream"], rows$environment[rows$workload == "stream"])
  expected <- paired_ratio(values[["docker-hostnet"]], values[["docker"]])
  expect_equal(unlist(table[1, c("ratio", "ratio_low", "ratio_high", "ratio_n")], use.names = FALSE),
               unlist(expected[c("ratio", "low", "high", "n")], use.names = FALSE))
  # Each is a family of one here, so that nothing is adjusted.
  expect_equal(table$p_adjusted, table$p_value)
  expect_equal(nrow(choices_table(rows[0, ], served_plan())), 0)
  expect_equal(nrow(choices_table(rows, small_plan())), 0)
})

test_that("what was set aside does not count, but for emulated machines, which are families of their own", {
  rows <- choice_rows(c(docker = 1, `docker-hostnet` = 1.1, `vm-docker` = 0.1, vm = 0.1))
  rows$counts[rows$repetition < 3 & !startsWith(rows$environment, "vm")] <- "no"
  table <- choices_table(rows, served_plan("tcg"))
  expect_equal(paste(table$base, table$environment),
               c("docker docker-hostnet", "docker vm-docker", "vm vm-docker"))
  expect_equal(table$ratio_n, c(8, 10, 10))
  expect_equal(table$emulated, c("no", "yes", "yes"))
  expect_equal(table$p_adjusted[[1]], table$p_value[[1]])
  expect_equal(table$p_adjusted[2:3], stats::p.adjust(table$p_value[2:3], "BH"))
})

test_that("false calls are counted among controls alone, with the interval of a rate", {
  choices <- data.frame(control = c(rep("yes", 12), "no"),
                        p_value = c(0.01, 0.04, seq(0.1, 0.9, length.out = 9), NA, 0.001),
                        reading = c("slower", rep("open", 11), "faster"))
  calls <- false_calls(choices)
  expect_equal(unlist(calls[c("tested", "called", "below")], use.names = FALSE), c(11, 1, 2))
  expect_equal(calls$called_limits, as.vector(stats::binom.test(1, 11)$conf.int))
  expect_equal(calls$below_limits, as.vector(stats::binom.test(2, 11)$conf.int))
  expect_equal(false_calls(choices[0, ])$tested, 0)
})

#' Evidence with choices
choices_evidence <- function(rows, plan = served_plan()) {
  evidence <- small_evidence(plan = plan)
  evidence$choices <- choices_table(rows, plan)
  evidence
}

test_that("choices are told in words, controls and emulated machines apart", {
  rows <- rbind(choice_rows(c(native = 1, docker = 1, `docker-hostnet` = 1.2, vm = 0.1, `vm-tuned` = 0.2)),
                choice_rows(c(docker = 1, `docker-hostnet` = 1), workload = "new-load", metric = "rate"))
  evidence <- choices_evidence(rows, served_plan("tcg"))
  expect_match(read_aloud(question_choices(evidence, "stream")), paste0(
    "^Network: host, not bridge \\(Docker \\(host network\\) against Docker\\): of 1 metric that can notice ",
    "it, faster in 1 \\(STREAM copy: 1(19|20|21)\\.[0-9] % \\["
  ))
  text <- read_aloud(choices_text(evidence))
  expect_match(text, "^Where a workload cannot notice")
  expect_match(text, "Of 1 control, 0 (0 % [0, 98]) were called slower or faster", fixed = TRUE)
  expect_match(text, "1 more pair holds an emulated machine: results/choices.csv has them", fixed = TRUE)
  table <- table_of_choices(evidence)
  expect_equal(table$cells[[1]], c("Network: host, not bridge", "Network: host, not bridge (control)"))
  expect_equal(table$cells[[2]], rep("Docker (host network) to Docker", 2))
  expect_equal(table$cells[[8]], c("faster", paste("within", percent(MINIMUM_EFFECT, 0))))
  expect_equal(choices_text(small_evidence()), "")
  expect_length(question_choices(evidence, "new-load"), 0)
  expect_null(table_of_choices(small_evidence()))
})

test_that("a layer more is told by where it lies", {
  rows <- choice_rows(c(docker = 1, vm = 0.8, `vm-docker` = 0.7))
  evidence <- choices_evidence(rows)
  expect_equal(choice_text(evidence$choices, evidence$plan),
               c("below it a virtual machine", "on top of it a Docker container"))
  rows <- choice_rows(c(docker = 1, `docker-hostnet` = 1), workload = "new-load", metric = "rate")
  alone <- read_aloud(choices_text(choices_evidence(rows)))
  expect_match(alone, "^No workload measured here can notice one of these choices. Where a workload cannot")
})
