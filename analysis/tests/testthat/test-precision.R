# A plan, tables and records as of a run whose machine and values are given, without any file.

precise <- function(...) {
  asked <- list(min = 3, max = 100, target = 0.02, budget = 1500, retries = 2)
  given <- list(...)
  asked[names(given)] <- given
  asked
}

plan_of <- function(environments = c("native", "docker"), workloads = c("linpack", "randomaccess"),
                    precision = precise(), emulated = character()) {
  list(
    path = "plan.json", results = tempfile("results-"), precision = precision, repetitions = precision$max,
    environments = sapply(environments, function(name) {
      list(label = name, available = TRUE, emulated = name %in% emulated)
    }, simplify = FALSE),
    workloads = sapply(workloads, function(name) list(metrics = planned_metrics[[name]]), simplify = FALSE)
  )
}

cells_of <- function(plan, sets) {
  cells <- expand.grid(environment = names(plan$environments), workload = names(plan$workloads),
                       repetition = seq_len(sets), stringsAsFactors = FALSE)
  cbind(position = seq_len(nrow(cells)), block = cells$repetition, cells)
}

#' One value for every cell, by a function of its row
tables_of <- function(plan, cells, value) {
  sapply(names(plan$workloads), function(workload) {
    own <- cells[cells$workload == workload, ]
    data.frame(own[c("environment", "workload", "repetition", "block")], position = own$position,
               order = own$position, metric = names(planned_metrics[[workload]])[[1]], unit = "",
               value = vapply(seq_len(nrow(own)), function(i) value(own[i, ]), 0), factors = "",
               check = "passed", counts = "yes", log = "")
  }, simplify = FALSE)
}

#' Records of cells that follow one another after half a second
records_for <- function(cells, seconds = 1, disturbed = FALSE) {
  start <- as.POSIXct("2026-01-01", tz = "UTC") + (cells$position - 1) * (seconds + 0.5)
  moment <- function(time) format(time, "%Y-%m-%dT%H:%M:%OS3Z")
  disturbed <- rep_len(disturbed, nrow(cells))
  lapply(seq_len(nrow(cells)), function(i) {
    list(environment = cells$environment[[i]], workload = cells$workload[[i]],
         repetition = cells$repetition[[i]], position = list(actual = cells$position[[i]]),
         started = moment(start[[i]]), ended = moment(start[[i]] + seconds), seconds = seconds,
         quiet = list(flags = if (disturbed[[i]]) list(list(what = "busy")) else list()))
  })
}

no_aside <- set_aside(list())

#' Values around 1 that differ from run to run by about a share, the same in every call
varied <- function(share) {
  function(cell) 1 + share * sin(37 * cell$position + 11 * cell$repetition)
}

decided <- function(plan, sets, share = 0.1, value = varied(share), before = list(), ...) {
  cells <- cells_of(plan, sets)
  decide_round(tables_of(plan, cells, value), records_for(cells, ...), cells, plan, sets, before)
}

test_that("a half-width is a share of the value, infinite without an interval, and zero without variation", {
  expect_equal(relative_half_width(100, 95, 105, FALSE), 0.05)
  expect_equal(relative_half_width(100, NA, NA, FALSE), Inf)
  expect_equal(relative_half_width(100, NA, NA, TRUE), 0)
  expect_equal(level_half_width(c(99, 100, 101), "mean"), diff(interval_of_mean(c(99, 100, 101)))[[1]] / 200)
  expect_equal(level_half_width(1:5, "percentile"), Inf)
})

test_that("headline values are the ratios to native of what is in sets", {
  plan <- plan_of(c("native", "docker", "vm", "gone"), "linpack", emulated = "vm")
  plan$environments$gone$available <- FALSE
  cells <- cells_of(plan, 6)
  tidy <- tables_of(plan, cells[cells$environment != "gone", ], varied(0.1))$linpack
  found <- headline_widths(tidy, plan)
  expect_equal(found[c("environment", "metric")], data.frame(environment = "docker", metric = "gflops"))
  of <- function(name) tidy$value[tidy$environment == name]
  ratio <- paired_ratio(of("docker"), of("native"))
  expect_equal(found$half_width, (ratio$high - ratio$low) / 2 / ratio$ratio)
  # Paired by the number of the set, wherever its rows stand.
  expect_equal(headline_widths(tidy[rev(seq_len(nrow(tidy))), ], plan)$half_width, found$half_width)
})

test_that("without native the means are headline values", {
  plan <- plan_of(c("docker", "podman"), "linpack")
  tidy <- tables_of(plan, cells_of(plan, 6), varied(0.1))$linpack
  found <- headline_widths(tidy, plan)
  expect_equal(found$environment, c("docker", "podman"))
  expect_equal(found$half_width[[1]], level_half_width(tidy$value[tidy$environment == "docker"], "mean"))
})

test_that("a set costs its cells and what lies between cells, whatever interrupted the run", {
  plan <- plan_of()
  cells <- cells_of(plan, 4)
  records <- records_for(cells, seconds = 2)
  expect_equal(costs_of(records, plan)$spent, 16 * 2.5)
  expect_equal(costs_of(records, plan)$set, c(linpack = 5, randomaccess = 5))
  for (i in 9:16) {
    records[[i]]$started <- sub("2026", "2027", records[[i]]$started)
    records[[i]]$ended <- sub("2026", "2027", records[[i]]$ended)
  }
  expect_equal(costs_of(records, plan)$spent, 16 * 2.5)
  # A cell that was measured again later follows no other.
  records[[3]]$position$actual <- 40
  expect_equal(costs_of(records, plan)$spent, 16 * 2.5)
  expect_equal(costs_of(records[1], plan)$spent, 2)
  expect_equal(costs_of(records[1], plan)$set, c(linpack = 2, randomaccess = 0))
})

test_that("an environment that is in a part of the sets decides nothing, and its cells are paid beforehand", {
  plan <- plan_of(c("native", "docker", "sandbox"))
  plan$environments$sandbox$max <- 5
  cells <- cells_of(plan, 4)
  records <- records_for(cells, seconds = 2)
  costs <- costs_of(records, plan)
  expect_equal(costs$set, c(linpack = 5, randomaccess = 5))
  expect_equal(costs$spent, 24 * 2.5)
  expect_equal(still_to_spend(costs$cell, cells, plan), 2 * 2.5)
  expect_equal(still_to_spend(costs$cell, cells_of(plan, 5), plan), 0)
  # What it was found unable to do is not planned any more, and costs nothing.
  able <- cells[cells$environment != "sandbox" | cells$workload != "linpack", ]
  done <- records[cell_key(cells) %in% cell_key(able)]
  expect_equal(still_to_spend(costs_of(done, plan)$cell, able, plan), 2.5)
  tidy <- tables_of(plan, cells, varied(0.1))$linpack
  expect_equal(headline_widths(tidy, plan)$environment, "docker")
  # The same number of sets of the others fits as if the rest of its cells were spent already.
  expect_equal(decided(plan, 4, seconds = 2)$workloads$linpack$seconds, 5)
  more <- function(budget) {
    plan$precision$budget <- budget
    vapply(decided(plan, 4, seconds = 2)$workloads, `[[`, 0, "more")
  }
  expect_equal(sum(more(60 + 5 + 30)), 6)
  expect_equal(sum(more(60 + 5 + 29)), 5)
  # Where there may be no more sets than it is in, it is like the others.
  plan$repetitions <- 5
  expect_equal(headline_widths(tidy, plan)$environment, c("docker", "sandbox"))
})

test_that("cells that took turns cost what they took, and share what lies behind all of them", {
  plan <- plan_of(c("native", "docker"), "linpack")
  cells <- cells_of(plan, 4)
  # Two at a time within three seconds, of which each has one and a half, and a second until the next.
  records <- lapply(records_for(cells, seconds = 1.5), function(record) {
    pair <- (record$position$actual - 1) %/% 2
    start <- as.POSIXct("2026-01-01", tz = "UTC") + 4 * pair
    moment <- function(time) format(time, "%Y-%m-%dT%H:%M:%OS3Z")
    updated(record, repetition = pair + 1, started = moment(start), ended = moment(start + 3),
            interleaved = list("other"))
  })
  expect_equal(measured_together(records), rep(1:4, each = 2))
  expect_equal(costs_of(records, plan)[c("spent", "set")], list(spent = 8 * 2, set = c(linpack = 4)))
  # One that was measured alone follows at once.
  records[[8]]$interleaved <- records[[7]]$interleaved <- NULL
  records[[8]]$started <- records[[7]]$ended
  records[[8]]$ended <- sub("15", "18", records[[8]]$ended)
  expect_equal(measured_together(records), c(1, 1, 2, 2, 3, 3, 4, 5))
})

test_that("an emulated machine is paid for and belongs to no set", {
  plan <- plan_of(c("native", "docker", "vm"), "linpack", emulated = "vm")
  cells <- cells_of(plan, 2)
  records <- records_for(cells, seconds = 2, disturbed = cells$environment == "vm")
  expect_equal(costs_of(records, plan)[c("spent", "set")], list(spent = 6 * 2.5, set = c(linpack = 5)))
  expect_equal(nrow(disturbed_sets(plan, records)), 0)
  expect_equal(counts_of(plan, cells, data.frame(workload = "linpack", repetition = 2)),
               ifelse(cells$repetition == 2 & cells$environment != "vm", "no", "yes"))
})

test_that("a disturbed set is measured again, and what took its place too, as often as is allowed", {
  disturbed <- data.frame(workload = c("b", "a", "a"), repetition = c(2, 2, 1))
  costs <- c(a = 10, b = 20)
  again <- function(...) sets_again(disturbed, ..., costs = costs)
  expect_equal(again(no_aside, 2, left = Inf)$workload, c("a", "a", "b"))
  expect_equal(again(no_aside, 2, left = Inf)$repetition, c(1, 2, 2))
  expect_equal(nrow(again(no_aside, 0, left = Inf)), 0)
  # As far as the time allows.
  expect_equal(again(no_aside, 2, left = 39)$workload, c("a", "a"))
  expect_equal(nrow(again(no_aside, 2, left = -5)), 0)
  # What was set aside stays so; what took its place may be disturbed as well.
  disturbed <- data.frame(workload = "a", repetition = c(1, 4, 7))
  aside <- data.frame(workload = c("a", "b", "a"), repetition = c(1, 4, 4), by = c(4, 7, 7))
  expect_equal(again(aside[1:2, ], 2, left = Inf)$repetition, c(4, 7))
  expect_equal(nrow(again(aside, 2, left = Inf)), 0)
  expect_equal(again(aside, 3, left = Inf)$repetition, 7)
})

further <- function(half_width, seconds = 1, counted = 20, again = 0, left = Inf, ...) {
  n <- length(half_width)
  asked <- precise(...)
  further_sets(rep_len(counted, n), rep_len(again, n), half_width, rep_len(seconds, n), asked, left)
}

test_that("the next sets go where the distance to the target is largest for its cost", {
    expect_equal(further(c(0.04, 0.01), left = 200), c(20, 0))
  dear <- further(c(0.1, 0.1), seconds = c(1, 10), left = 200)
  expect_gt(dear[[1]], 2 * dear[[2]])
  expect_gt(sum(dear * c(1, 10)), 50)
  wide <- further(c(0.2, 0.1), left = 60, budget = 100)
  expect_gt(wide[[1]], wide[[2]])
  expect_equal(sum(wide), 30)
})

test_that("what is within the target gets no more, and what is not gets enough to be so", {
  expect_equal(further(c(0.02, 0.019), left = 1000), c(0, 0))
  more <- further(0.024, left = 1000, max = 1000)
  expect_lte(foreseen_half_width(0.024, 20, 20 + more), AIM * 0.02)
  expect_gt(foreseen_half_width(0.024, 20, 20 + more - 1), AIM * 0.02)
})

wanted <- data.frame(environment = "docker", workload = c("linpack", "randomaccess"),
                     metric = c("gflops", "gups"), factors = "", claim = c("close", "wide"),
                     half_width = c(0.004, 0.5))

test_that("the claim ahead is the closest of those that take narrower intervals, told by its farthest part", {
  widths <- data.frame(environment = c("docker", "podman"), workload = "linpack", metric = "gflops",
                       factors = "", half_width = c(0.01, 0.015), n = c(40, 20))
  ahead <- function(...) claim_ahead(widths, data.frame(widths[1:4], ...))
  none <- list(claim = "", half_width = 0, target = Inf, n = 0, environments = character())
  expect_equal(claim_ahead(widths, NULL), none)
  expect_equal(claim_ahead(widths, wanted[2, ]), none)
  expect_equal(ahead(claim = c("a", "b"), half_width = c(0.01, 0.02)), none)
  both <- ahead(claim = "one", half_width = 0.005)
  expect_equal(both, list(claim = "one", half_width = 0.015, target = 0.005, n = 20,
                          environments = c("docker", "native", "podman")))
  second <- ahead(claim = c("a", "b"), half_width = c(0.005, 0.010))
  expect_equal(second[c("claim", "n", "environments")],
               list(claim = "b", n = 20, environments = c("native", "podman")))
  expect_equal(ahead(claim = c("a", "b"), half_width = c(0.009, 0.001))$claim, "a")
  widths$half_width <- c(Inf, 0.015)
  expect_equal(ahead(claim = c("a", "b"), half_width = 0.02)[c("claim", "half_width")],
               list(claim = "a", half_width = Inf))
})

test_that("once all are within the target, the claims get sets that take the least time for theirs", {
  given <- function(half_width, claimed, target, seconds = 1, left = Inf, counted = 20, ...) {
    claims <- data.frame(claim = c("a", "b"), half_width = claimed, target = target, n = counted,
                         seconds = seconds)
    next_sets(rep_len(counted, 2), c(0, 0), rep_len(half_width, 2), rep_len(seconds, 2), precise(...), left,
              claims)
  }
  still_wide <- given(c(0.03, 0.01), 0.01, 0.005, budget = NULL)
  expect_false(attr(still_wide, "claims"))
  expect_equal(still_wide[[2]], 0)
  narrow <- given(c(0.01, 0.01), c(0.01, 0.006), c(0.005, 0.005), budget = NULL, max = 1000)
  expect_true(attr(narrow, "claims"))
  # As many as bring it below, and no more than twice what there is.
  expect_equal(as.vector(narrow), c(20, 16))
  expect_lte(foreseen_half_width(0.006, 20, 36), AIM * 0.005)
  expect_equal(as.vector(given(0.01, 0.01, c(0.01, Inf), budget = NULL)), c(0, 0))
  # Of a budget the claim that takes less has all that it needs first, whether by its width or by its cost.
  expect_equal(as.vector(given(0.01, c(0.01, 0.006), 0.005, left = 20, budget = 300)), c(4, 16))
  dear <- given(0.01, c(0.006, 0.006), 0.005, seconds = c(2, 1), left = 26, budget = 300)
  expect_equal(as.vector(dear), c(5, 16))
  expect_equal(as.vector(given(0.01, Inf, 0.005, left = 300, budget = 300)), c(20, 20))
  without <- precise()
  without["target"] <- list(NULL)
  claims <- data.frame(claim = "a", half_width = 0.01, target = 0.005, n = 20, seconds = 1)
  expect_equal(as.vector(next_sets(20, 0, 0.01, 1, without, Inf, claims)), 0)
  # What was added for the claim before counts for it, and not for the target.
  claims <- data.frame(claim = "a", half_width = 0.006, target = 0.005, n = 40, seconds = 1)
  more <- function(most) as.vector(next_sets(20, 0, 0.01, 2, precise(), Inf, claims, 30, most))
  expect_equal(more(1000), ceiling(40 * (0.006 / AIM / 0.005)^2) - 40)
  expect_equal(more(50), 10)
})

test_that("a decision for claims says which, and that they end by the budget", {
  asked <- function(share, claimed = wanted, budget = 1e5, ...) {
    plan <- plan_of(precision = precise(min = 24, budget = budget, ...))
    cells <- cells_of(plan, 24)
    decide_round(tables_of(plan, cells, varied(share)), records_for(cells), cells, plan, 24, list(),
                 claimed)
  }
  without <- asked(0.03, NULL)
  expect_equal(without$reason, "the target was reached")
  expect_null(without$workloads$linpack$claim)
  with <- asked(0.03)
  expect_equal(with$workloads$linpack$claim,
               list(id = "close", half_width = without$workloads$linpack$half_width, target = 0.004,
                    seconds = without$workloads$linpack$seconds))
  # It compares all that a set holds.
  expect_null(with$workloads$linpack$environments)
  expect_gt(with$workloads$linpack$more, 0)
  expect_match(with$workloads$linpack$reason, paste(
    "^Its widest .* %, and it gets .* more sets of docker and native for close, whose interval is to be",
    "± 0.4 %[.]$"
  ))
  expect_equal(with$workloads$randomaccess, without$workloads$randomaccess)
  expect_equal(with$reached, without$reached)
  spent <- asked(0.03, budget = 145)
  expect_equal(spent$reason, "the budget was spent")
  expect_true(spent$enough)
  expect_equal(spent$workloads$linpack$claim$id, "close")
  # What is not within the target comes first, and claims wait.
  wide <- asked(0.1)
  expect_match(wide$workloads$linpack$reason, "which should bring it to")
  expect_equal(asked(0.003)$reason, "the target was reached")
})

test_that("sets for a claim hold its environments alone, and count for nothing else", {
  plan <- plan_of(c("native", "docker", "podman"), precision = precise(min = 24, budget = 1e5))
  cells <- cells_of(plan, 24)
  ask <- function(cells, block, before, share = 0.03) {
    tables <- tables_of(plan, cells, function(cell) {
      share <- if (cell$environment == "docker") share else share / 10
      varied(share)(cell)
    })
    decide_round(tables, records_for(cells), cells, plan, block, before, wanted)
  }
  first <- ask(cells, 24, list())
  told <- first$workloads$linpack
  expect_equal(as.vector(told$environments), c("docker", "native"))
  expect_equal(told$claim$seconds, told$seconds * 2 / 3, tolerance = 1e-3)
  expect_equal(narrow_sets(list(first)),
               data.frame(workload = "linpack", repetition = 24 + seq_len(told$more)))
  expect_equal(nrow(narrow_sets(list())), 0)
  # All of them are measured.
  added <- cells_of(plan, 24 + told$more)
  added <- added[added$workload == "linpack" & added$repetition > 24 & added$environment != "podman", ]
  added$position <- max(cells$position) + seq_len(nrow(added))
  second <- ask(rbind(cells, added), 24 + told$more, list(first))
  expect_equal(second$workloads$linpack$sets, 24 + told$more)
  expect_lt(second$workloads$linpack$claim$half_width, told$claim$half_width)
  # What is left of the largest number is left for all.
  expect_lte(second$workloads$linpack$more, 24 + told$more)
})

test_that("half of what is left is spent, and all of it where that is little; never more", {
  expect_equal(further(0.5, left = 40, budget = 300), 20)
  expect_equal(further(0.5, left = 40, counted = 50, budget = 1500), 40)
  expect_equal(further(0.5, seconds = 15, left = 29, budget = 100), 1)
  expect_equal(further(0.5, seconds = 15, left = 14, budget = 100), 0)
  expect_equal(further(0.5, left = -3), 0)
})

test_that("a round doubles the sets at most, and the largest number holds", {
  expect_equal(further(c(0.5, 0.01), budget = NULL), c(20, 0))
  expect_equal(further(0.5, max = 25), 5)
  expect_equal(further(0.5, max = 20), 0)
  expect_equal(further(0.5, again = 2, max = 25), 3)
})

test_that("all have a first stage before widths decide, as far as the time allows", {
  expect_equal(further(c(0, 0.5), counted = 3), rep(FIRST_STAGE - 3, 2))
  expect_equal(further(c(0, 0.5), counted = c(3, FIRST_STAGE)), c(FIRST_STAGE - 3, 0))
  expect_equal(further(0, counted = 3, max = 5), 2)
  # Who has fewest comes first, whatever is wider or cheaper.
  expect_equal(further(c(0.9, 0.1), counted = c(6, 3), seconds = c(1, 2), left = 10), c(2, 4))
  expect_equal(further(c(0.1, 0.9), counted = 3, seconds = c(1, 10), left = 14), c(4, 1))
})

test_that("what has no interval gets sets, and what could not be measured none", {
  expect_gt(further(Inf), 0)
  expect_equal(further(c(Inf, 0), counted = c(0, 3), seconds = c(0, 1)), c(0, FIRST_STAGE - 3))
})

test_that("without a target there are no further sets", {
  asked <- precise(budget = NULL)
  asked["target"] <- list(NULL)
  expect_equal(further_sets(3, 0, 0.5, 1, asked, Inf), 0)
})

test_that("a decision says what follows, and why", {
  found <- decided(plan_of(precision = precise(min = 24, budget = 100000)), 24)
  expect_false(found$enough)
  expect_equal(found$reason, "more sets are needed")
  expect_equal(found[c("block", "target", "budget_seconds", "spent_seconds", "metrics", "reached")],
               list(block = 24, target = 0.02, budget_seconds = 100000, spent_seconds = 96 * 1.5,
                    metrics = 2L, reached = 0L))
  expect_equal(names(found$workloads), c("linpack", "randomaccess"))
  of_one <- found$workloads$linpack
  expect_equal(of_one[c("sets", "seconds")], list(sets = 24, seconds = 3))
  expect_gt(of_one$more, 0)
  expect_match(of_one$reason, "^Its widest headline interval is ± .* %, and it gets .* more sets, which")
  expect_equal(found$widest$half_width, max(of_one$half_width, found$workloads$randomaccess$half_width))
  ended <- decided(plan_of(precision = precise(min = 24)), 24, share = 0.001)
  expect_true(ended$enough)
  expect_equal(ended$reason, "the target was reached")
  expect_equal(ended$reached, 2)
  expect_match(ended$workloads$linpack$reason, "within the target of ± 2.0 %[.]$")
  spent <- decided(plan_of(precision = precise(min = 24, budget = 60)), 24)
  expect_true(spent$enough)
  expect_equal(spent$reason, "the budget was spent")
  most <- decided(plan_of(precision = precise(min = 24, max = 24)), 24)
  expect_equal(most$reason, "the largest number of sets was reached")
})

test_that("disturbed sets are set aside and measured again, also where the number is fixed", {
  asked <- precise(budget = NULL)
  asked["target"] <- list(NULL)
  plan <- plan_of(precision = asked)
  cells <- cells_of(plan, 24)
  odd <- cells$workload == "linpack" & cells$repetition == 5 & cells$environment == "docker"
  shifted <- function(cell) varied(0.01)(cell) + 10 * (cell$workload == "linpack" && cell$repetition == 5)
  found <- decided(plan, 24, value = shifted, disturbed = odd)
  expect_equal(as.numeric(found$workloads$linpack$again), 5)
  expect_equal(found$workloads$linpack$more, 0)
  expect_lt(found$workloads$linpack$half_width, 0.05)
  expect_match(found$workloads$linpack$reason, "interval is ± 0.2 %; 1 disturbed set is measured again[.]$")
  expect_equal(found$reason, "disturbed sets are measured again")
  expect_false(found$enough)
  # Once another has taken its place, it is left alone, and left out.
  still_odd <- cells_of(plan, 25)$position %in% cells$position[odd]
  later <- decided(plan, 25, value = shifted, disturbed = still_odd,
                   before = list(found))
  expect_true(later$enough)
  expect_lt(later$workloads$linpack$half_width, 0.05)
  expect_equal(later$reason, "the number of sets was set beforehand")
})

test_that("a ratio counts where all of its sets are set aside", {
  plan <- plan_of(precision = precise(min = 3))
  found <- decided(plan, 3, disturbed = cells_of(plan, 3)$workload == "linpack")
  expect_equal(found$metrics, 2)
  expect_null(found$workloads$linpack$half_width)
  expect_equal(found$workloads$linpack[c("sets", "more")], list(sets = 3, more = FIRST_STAGE - 3))
  expect_match(found$workloads$linpack$reason, "; 3 disturbed sets are measured again[.]$")
})

test_that("a difference between environments does not matter", {
  plan <- plan_of(precision = precise(min = 24, budget = 100000))
  apart <- decided(plan, 24, value = function(cell) {
    varied(0.1)(cell) * if (cell$environment == "docker") 3 else 1
  })
  expect_equal(apart, decided(plan, 24))
})

test_that("decisions follow one another, and others beside them play no part", {
  plan <- plan_of()
  decision <- function(block, enough, again = list(), more = 0, sets = block) {
    path <- result_path(plan, "precision", block = block)
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    write_json(list(block = block, enough = enough, workloads = list(
      linpack = list(sets = sets, again = again, more = more),
      randomaccess = list(sets = 3, again = list(), more = 0)
    )), path)
  }
  expect_length(decisions_of(plan), 0)
  expect_equal(needed_blocks(plan), Inf)
  decision(3, FALSE, list(1, 3), 2)
  decision(5, TRUE)
  expect_equal(needed_blocks(plan), Inf)
  decision(7, FALSE, list(4), 0)
  decision(8, TRUE)
  decision(9, FALSE, list(2), 0)
  expect_equal(needed_blocks(plan), 8)
  expect_equal(set_aside(decisions_of(plan)),
               data.frame(workload = "linpack", repetition = c(1, 3, 4), by = c(4, 5, 8)))
  expect_equal(nrow(set_aside(decisions_of(plan, before = 7))), 2)
  decision(8, FALSE)
  expect_error(decisions_of(plan), "precision/8.json: it decides neither")
})

tidy_folder <- function(path) file.path(dirname(path), "tidy")

test_that("the script decides from the files, and tells it in a form that can be read again", {
  path <- make_results(c("native", "docker"), "pxz", 3)
  plan <- jsonlite::read_json(path)
  plan$precision <- list(min = 3, max = 3, target = NULL, budget = NULL, retries = 2)
  write_json(plan, path)
  flagged <- file.path(dirname(path), "raw", "docker", "pxz", "2.json")
  record <- jsonlite::read_json(flagged)
  record$quiet$flags <- list(list(what = "busy"))
  write_json(record, flagged)
  out <- file.path(dirname(path), "precision", "3.json")
  found <- run_r("precision.R", "--plan", path, "--block", "3", "--tidy", tidy_folder(path), "--out", out)
  expect_equal(found$status, 0, info = found$output)
  decision <- jsonlite::read_json(out)
  expect_equal(names(decision), c("block", "enough", "reason", "target", "budget_seconds", "spent_seconds",
                                  "metrics", "reached", "widest", "workloads"))
  expect_false(decision$enough)
  expect_null(decision$target)
  expect_equal(decision$spent_seconds, 12)
  expect_equal(decision$workloads$pxz[c("sets", "seconds", "again", "more")],
               list(sets = 3, seconds = 4, again = list(2), more = 0))
  expect_equal(set_aside(decisions_of(read_plan(path))), data.frame(workload = "pxz", repetition = 2, by = 4))
})

test_that("the script asks for what the published claims take, where the plan says so", {
  path <- make_results(c("native", "docker"), "pxz", 3, spread = 0.2)
  asked <- function(...) {
    plan <- jsonlite::read_json(path)
    plan$precision <- list(min = 3, max = 30, target = 0.02, ..., budget = NULL, retries = 0)
    write_json(plan, path)
    out <- file.path(dirname(path), "precision", "3.json")
    found <- run_r("precision.R", "--plan", path, "--block", "3", "--tidy", tidy_folder(path), "--out", out,
                   "--rests-on", "a1")
    expect_equal(found$status, 0, info = found$output)
    expect_equal(jsonlite::read_json(out)$rests_on, "a1")
    jsonlite::read_json(out)$workloads$pxz$claim
  }
  width <- asked(claims = TRUE)
  expect_equal(width$id, "ibm-pxz-docker-similar")
  expect_equal(width$target, 0.03348, tolerance = 1e-3)
  expect_gt(width$half_width, width$target)
  expect_null(asked())
})

test_that("what lies between two cells is of one node, where there are several", {
  plan <- plan_of()
  plan$spread <- TRUE
  cells <- cells_of(plan, 4)
  alone <- records_for(cells)
  costs <- costs_of(alone, plan_of())
  # The same on each of two nodes at the same time.
  twice <- c(lapply(alone, updated, node = list(name = "a")), lapply(alone, updated, node = list(name = "b")))
  found <- costs_of(twice, plan)
  expect_equal(found$set, costs$set)
  expect_equal(found$spent, 2 * costs$spent)
})

test_that("the paper tells which runs were made in turns", {
  commands <- list(list(step = "warmup"), list(step = "run", lap = 8))
  records <- lapply(1:4, function(i) list(commands = commands))
  expect_equal(turns_text(list(records = records)), "One system under test is up at a time.")
  records[1:2] <- lapply(records[1:2], updated, interleaved = list("docker"))
  expect_match(read_aloud(turns_text(list(records = records))),
               "2 runs of 4 took turns .*: in each of 8 laps")
})
