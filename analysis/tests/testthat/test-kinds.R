# What a layer's file says of its kind is all that the analysis knows of it: its name says nothing.

#' A plan with a container and a machine, whose layers are called anything
plan_of_layers <- function(container, machine, accelerator) {
  layer <- function(name, options) stats::setNames(list(options), name)
  plan <- small_plan(c(native = "Native", a = "First", b = "Second"), scale = "paper")
  plan$workloads$stream$question <- "memory"
  plan$workloads$`new-load`$question <- "network"
  plan$environments$a <- list(
    label = "First", layers = list(layer(container, list(network = "host"))), available = TRUE,
    told = list(list(kind = "container", title = "box", network = "its host\u2019s"))
  )
  plan$environments$b <- list(
    label = "Second", layers = list(layer(machine, list(profile = "tuned"))), available = TRUE,
    told = list(list(kind = "machine", title = "light machine")), accelerator = accelerator,
    accelerator_reason = "it was tried", emulated = accelerator == "tcg"
  )
  plan$vm <- list(profiles = list(tuned = list(pin = TRUE)))
  plan
}

#' What the paper tells of it
told_of_plan <- function(plan) {
  evidence <- small_evidence(list(summary_row("native"),
                                  summary_row("a", ratio = 0.8, low = 0.75, high = 0.85),
                                  summary_row("b", ratio = 0.5, low = 0.45, high = 0.55)), plan)
  read_aloud(c(paper_title(evidence), abstract_text(evidence), unlist(discussion(evidence)),
               conclusion_text(evidence), layers_text(evidence), machines_text(evidence),
               acceleration_text(evidence), unlist(table_of_environments(evidence)$cells)))
}

test_that("what is told follows from the kinds of the layers, whatever these are called", {
  for (accelerator in c("kvm", "tcg")) {
    known <- told_of_plan(plan_of_layers("docker", "vm", accelerator))
    expect_equal(told_of_plan(plan_of_layers("lxc", "microvm", accelerator)), known)
    expect_equal(told_of_plan(plan_of_layers("capsule", "engine", accelerator)), known)
    # The light machine's kind, its profile and the container's kind are in it.
    said <- paste(known, collapse = " ")
    expect_match(said, if (accelerator == "kvm") "A virtual machine under KVM" else "emulated machines")
    expect_match(said, "A container runs on the host", fixed = TRUE)
    expect_match(said, "light machine (profile tuned)", fixed = TRUE)
    expect_match(said, "\u201ctuned\u201d: pin yes", fixed = TRUE)
  }
})

test_that("what made a container is told by the program that did", {
  plan <- plan_of_layers("capsule", "engine", "kvm")
  record <- small_record("a")
  record$system <- list(container = list(program = "capsuled", version = "7"))
  row <- container_row(small_evidence(list(summary_row("a")), plan, list(record)))
  expect_match(paste(row, collapse = " "), "capsuled 7", fixed = TRUE)
  # With all that it said of itself, and what was seen of what was asked for.
  record$system$container <- c(record$system$container, list(
    runtime = "crun 1.8", storage_driver = "overlay",
    settings = list(list(name = "memory", asked = "1GiB", seen = "1073741824"))
  ))
  row <- container_row(small_evidence(list(summary_row("a")), plan, list(record)))
  expect_match(row[[3]], "capsuled 7; runtime crun 1.8; storage driver overlay; memory: 1GiB was asked",
               fixed = TRUE)
})

test_that("a runtime of Docker's of which only the name is known is told by that, and is no container", {
  plan <- plan_of_layers("capsule", "engine", "kvm")
  plan$environments$a$told[[1]]$kind <- "other"
  expect_equal(kind_of(plan$environments$a), "other environments")
  record <- small_record("a")
  runtime <- list(name = "kata", program = "/k", version = "3")
  record$system <- list(docker = list(engine = "28", runtime = runtime))
  row <- container_row(small_evidence(list(summary_row("a")), plan, list(record)))
  expect_match(row[[3]], "runtime kata (3)", fixed = TRUE)
})

test_that("no code of the analysis names a layer but those of the original paper", {
  listed <- readLines(file.path(project, "strata", "layers", "__init__.py"))
  layers <- regmatches(listed, regexpr('(?<=^    ")[a-z-]+(?=": "strata)', listed, perl = TRUE))
  later <- setdiff(layers, c("host", "chroot", "docker", "vm"))
  expect_gt(length(later), 0)
  named <- paste0("\\b(", paste(later, collapse = "|"), ")\\b")
  for (path in files_of_rooms(project, "paper")) {
    expect_no_match(paste(readLines(path), collapse = "\n"), named)
  }
})
