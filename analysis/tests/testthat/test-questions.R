# The questions that workloads answer: their order, and those that workloads do not name.

test_that("questions stand in their order, and a workload without one is a question by itself", {
  workload <- function(title, question = NULL) list(title = title, question = question)
  plan <- list(workloads = list(own = workload("My own"), disk = workload("fio", "storage"),
                                a = workload("A", "processor"), odd = workload("Odd", "no such"),
                                b = workload("B", "processor")))
  found <- questions_of(plan)
  expect_equal(found$workload, c("a", "b", "disk", "own", "odd"))
  expect_equal(found$question, c("processor", "processor", "storage", "own", "odd"))
  expect_equal(found$title, c("Processor", "Processor", "Storage", "My own", "Odd"))
  expect_equal(found$asks == "", c(FALSE, FALSE, FALSE, TRUE, TRUE))
  expect_equal(nrow(questions_of(list(workloads = list()))), 0)
})

test_that("the least and the greatest are told with decimals that go together", {
  span <- function(value, decimals) read_aloud(span_told(value, decimals, c("a", "b", "c"), " %"))
  expect_equal(span(c(99.5, 101, 100), c(1, 0, 0)), "100 % to 101 %")
  expect_equal(span(c(0.548, 15.3, 2), c(2, 0, 1)), "0.55 % to 15 %")
  expect_equal(span(c(3.3, 3.4, 3.35), c(0, 0, 0)), "3 %")
})

test_that("many series of an environment are told by their range, and emulated machines together and last", {
  plan <- small_plan(c(native = "Native", docker = "Docker", vm = "VM", `vm-tuned` = "VM, tuned"))
  for (name in c("vm", "vm-tuned")) {
    plan$environments[[name]] <- planned_environment(name, plan$environments[[name]]$label, "tcg")
  }
  series <- function(environment, ratio) {
    lapply(1:3, function(i) {
      summary_row(environment, factors = paste0("size=", i), ratio = ratio + i / 100, low = ratio - 0.05,
                  high = ratio + 0.07)
    })
  }
  evidence <- small_evidence(c(lapply(1:3, function(i) summary_row("native", factors = paste0("size=", i))),
                               series("docker", 0.98), series("vm", 0.1), series("vm-tuned", 0.2)), plan)
  text <- read_aloud(workload_text(evidence, "stream"))
  expect_match(text, "it \\(n = 5 pairs\\): Docker in all 3 metrics, at 99 % to 101 %\\. Emulated")
  expect_match(text, paste("Emulated virtual machines (2 environments): slower than native in all 6 ratios",
                           "(11 % to 23 % of native\u2019s performance, 95 % intervals within [5, 27],",
                           "n = 5 sets each)."), fixed = TRUE)
})

test_that("why and against what follow from layers and claims", {
  plan <- small_plan(c(native = "Native", docker = "Docker", `docker-hostnet` = "Docker (host network)"))
  plan$workloads$stream$storage <- FALSE
  rows <- list(summary_row("native"), summary_row("docker", ratio = 1, low = 0.9, high = 1.1))
  evidence <- small_evidence(rows, plan)
  expect_match(why_text(evidence, "stream"), "uses neither the network nor files", fixed = TRUE)
  expect_match(layers_text(evidence), "^Containers run on the kernel.*need not hold")
  expect_no_match(layers_text(evidence), "QEMU")
  evidence$plan$workloads$stream$cell <- list(ports = list("port"))
  evidence$plan$environments$docker$told[[1]]$network <- "bridge with NAT"
  expect_match(why_text(evidence, "stream"), "can notice the network (bridge with NAT in Docker).",
               fixed = TRUE)
  expect_equal(why_text(small_evidence(list(summary_row("native")), plan), "stream"), "")
  expect_equal(layers_text(small_evidence()), "")
  expect_equal(against_text(evidence, "stream"), "")
  claims <- empty_table(CLAIM_COLUMNS)[1:3, ]
  claims$workload <- "stream"
  claims$statement <- c("It is so.", "It is not so.", "It is elsewhere.")
  claims$verdict <- CLAIM_VERDICTS[c(1, 3, 4)]
  claims$reason <- c("", "", "emulation")
  claims$parts <- c(1, 1, 0)
  claims$ratio <- c(0.99, 0.97, NA)
  claims$ratio_low <- c(0.985, 0.9, NA)
  claims$ratio_high <- c(0.995, 1.04, NA)
  claims$tolerance_low <- 0.98
  claims$tolerance_high <- 1.02
  claims[c("measured_workload", "environment", "metric", "factors")] <- ""
  evidence$claims <- claims
  expect_equal(read_aloud(against_text(evidence, "stream")), paste(
    "Of 3 published claims about this, 2 could be tested here (of the others 1 for want of hardware",
    "acceleration). Reproduced: \u201cIt is so\u201d (99.0 % [98.5, 99.5], tolerated 98\u2013102 %).",
    "Left open: \u201cIt is not so\u201d (97 % [90, 104], tolerated 98\u2013102 %)."
  ))
  claims$verdict[[2]] <- CLAIM_VERDICTS[[4]]
  claims$reason[[2]] <- "size"
  evidence$claims <- claims
  expect_match(read_aloud(against_text(evidence, "stream")), "does not decide: .It is not so")
})

test_that("transferred claims are told with their product, and counted by themselves", {
  plan <- small_plan(c(native = "Native", vm = "KVM"))
  plan$environments$vm <- planned_environment("vm", "KVM", "kvm")
  evidence <- small_evidence(plan = plan)
  expect_null(transferred_text(evidence))
  expect_null(table_of_transferred(evidence))
  claims <- empty_table(CLAIM_COLUMNS)[1:3, ]
  claims$workload <- claims$measured_workload <- "stream"
  claims$id <- c("vmw-a", "vmw-b", "vmw-c")
  claims$publication <- "vmware2014"
  claims$statement <- c("It is so.", "It is not so.", "It may be.")
  claims$verdict <- unname(TRANSFERRED_VERDICTS)[c(1, 2, 3)]
  claims$published_for <- "vSphere"
  claims$environment <- "vm"
  claims$reference <- "native"
  claims[c("metric", "factors", "note", "because", "unit", "place")] <- ""
  claims$parts <- 1
  claims$ratio <- c(0.99, 0.5, 0.97)
  claims$ratio_low <- c(0.985, 0.4, 0.9)
  claims$ratio_high <- c(0.995, 0.6, 1.04)
  claims$ratio_n <- 5
  claims$tolerance_low <- 0.98
  claims$tolerance_high <- 1.02
  evidence$transferred <- claims
  evidence$publications <- list(vmware2014 = list(label = "VMware 2014"))
  evidence$claims <- updated(claims, verdict = "not testable here", reason = "transferred", parts = 0,
                             ratio = NA_real_, published_for = "")
  told <- read_aloud(transferred_text(evidence))
  expect_equal(told, paste("Transferred claims are counted by themselves: of 3 claims published for vSphere",
                           "and tested here on KVM, 1 carries over, 1 does not carry over and 1 stays open."))
  expect_match(read_aloud(claims_answer(evidence)), paste(
    "0 were reproduced, 0 contradicted and 0 left inconclusive; 3 could not be tested here",
    "(it was published for another product: 3). Transferred claims"
  ), fixed = TRUE)
  against <- read_aloud(against_text(evidence, "stream"))
  expect_match(against, "none could be tested here (of the others 3 for another product).",
               fixed = TRUE)
  expect_match(against, "vSphere and tested here on KVM, and counted by themselves: carries over:")
  expect_equal(against_text(updated(evidence, claims = claims[0, ]), "pxz"), "")
  table <- table_of_transferred(evidence)
  expect_match(table$caption, "Claims published for vSphere and tested here on KVM", fixed = TRUE)
  expect_equal(table$cells[, 6], c("carries over", "does not carry over", "transfer open"))
  expect_equal(nrow(table_of_untested(evidence)$cells), 3)
  expect_match(left_text(evidence), "Transferred claims are counted by themselves", fixed = TRUE)
})

test_that("figures are put on pages so that each has the first that is left and what fills it", {
  expect_equal(packed(c(300, 500, 200, 100), 600), c(1, 3, 4, 2))
  expect_equal(packed(c(900, 100), 600), c(2, 1))
  expect_equal(packed(c(900, 800), 600), 1:2)
  expect_equal(packed(numeric(), 600), integer())
  expect_equal(packed(c(300, 250, 290), 600), c(1, 3, 2))
  # What is left of the page on which they begin is filled first, by what fits there.
  expect_equal(packed(c(500, 200, 90, 150), 600, 260), c(3, 4, 1, 2))
  expect_equal(packed(c(500, 200, 400), 600, 100), c(1, 2, 3))
})

test_that("LaTeX takes the order for the room that it finds, and each order has all figures once", {
  heights <- c(500, 200, 90, 150)
  text <- paste(by_room(letters[1:4], heights), collapse = "\n")
  rooms <- as.numeric(regmatches(text, gregexpr("(?<=>)[0-9]+(?=pt)", text, perl = TRUE))[[1]])
  expect_equal(rooms, sort(rooms, decreasing = TRUE))
  orders <- strsplit(gsub("[^a-d|]", "", gsub("\\\\else", "|", gsub("```.*?```", "|", gsub("\n", "", text)))),
                     "|", fixed = TRUE)[[1]]
  orders <- orders[orders != ""]
  expect_length(orders, length(rooms) + 1)
  expect_true(all(vapply(strsplit(orders, ""), function(one) identical(sort(one), letters[1:4]), NA)))
  expect_equal(lengths(regmatches(text, gregexpr("\\\\fi(?!d)", text, perl = TRUE))), length(rooms))
  expect_equal(orders[[1]], paste(letters[packed(heights, ROOM_FOR_FIGURES, 600)], collapse = ""))
  # Where not even the lowest fits, a page begins with their heading.
  fresh <- packed(heights, ROOM_FOR_FIGURES, ROOM_FOR_FIGURES - THEIR_HEADING)
  expect_equal(utils::tail(orders, 1)[[1]], paste(letters[fresh], collapse = ""))
  expect_equal(utils::tail(rooms, 1), min(heights) + SPARE_ROOM)
  expect_no_match(text, "penalty0\\", fixed = TRUE)
})
