published <- read_claims(file.path(project, "published", "claims.json"))

#' Tidy rows of two or more environments, one block after the other
tidy_of <- function(values, workload = "pxz", metric = "throughput", factors = "") {
  do.call(rbind, lapply(names(values), function(name) {
    n <- length(values[[name]])
    data.frame(environment = name, workload = workload, repetition = seq_len(n), block = seq_len(n),
               position = seq_len(n), order = seq_len(n), metric = metric, unit = "MB/s",
               value = values[[name]], factors = factors, check = "passed", counts = "yes",
               log = paste0("results/raw/", name, "/", workload, "/", seq_len(n), ".log"))
  }))
}

#' A plan with these environments, and every workload of a kind
plan_of <- function(environments = c("native", "docker", "vm"), accelerator = "kvm", better = "higher") {
  entries <- lapply(environments, function(name) {
    list(label = name, available = TRUE, accelerator = if (startsWith(name, "vm")) accelerator)
  })
  workloads <- Map(function(name) {
    metrics <- lapply(planned_metrics[[name]], updated, better = better)
    list(title = name, metrics = metrics, parameters = list())
  }, names(planned_metrics))
  list(environments = stats::setNames(entries, environments), workloads = workloads,
       results = "nowhere/results",
       path = "plan.json", scale = "smoke")
}

#' The row of one claim, as it was published or as it was transferred
tested <- function(id, tidy, plan = plan_of(), sockets = 2, claims = published, transferred = FALSE) {
  rows <- test_claims(claims, tidy, plan, sockets)
  expect_equal(names(rows), names(CLAIM_COLUMNS))
  moved <- rows$published_for != ""
  expect_equal(rows$id[!moved], vapply(claims$claims, `[[`, "", "id"))
  expect_true(all(rows$verdict[!moved] %in% CLAIM_VERDICTS))
  expect_true(all(rows$verdict[moved] %in% TRANSFERRED_VERDICTS))
  # Each stands behind the claim that it is a transfer of.
  expect_equal(rows$id[which(moved) - 1], rows$id[moved])
  rows[rows$id == id & moved == transferred, ]
}

base <- c(100, 101, 99, 100.5, 99.5, 100.2)
near <- c(0.999, 1.001, 1.0005, 0.9995, 1, 1.0002)

test_that("the verdict follows from interval and tolerance", {
  says <- function(low, high, from = 0.95, to = 1.05, ...) as.vector(claim_verdict(low, high, from, to, ...))
  expect_equal(says(0.96, 1.04), "reproduced")
  expect_equal(says(0.95, 1.05), "reproduced")
  expect_equal(says(0.94, 1.04), "inconclusive")
  expect_equal(says(0.96, 1.06), "inconclusive")
  expect_equal(says(0.5, 2), "inconclusive")
  expect_equal(says(0.5, 0.9499), "contradicted")
  expect_equal(says(0.5, 0.95), "inconclusive")
  expect_equal(says(1.0501, 2), "contradicted")
  expect_equal(says(NA, NA), "inconclusive")
  expect_equal(says(0.2, 0.3, NA, 0.6), "reproduced")
  expect_equal(says(0.7, 0.8, NA, 0.6), "contradicted")
  expect_equal(says(1.2, 9, 1.05, NA), "reproduced")
  expect_equal(says(0.9, 1, 1.05, NA), "contradicted")
  expect_equal(says(0.99, 1.01, testable = FALSE), "not testable here")
  expect_equal(says(numeric(), numeric()), "not testable here")
})

test_that("of several parts the worst decides, and a part that is missing can't be reproduced", {
  says <- function(low, high, testable = TRUE) {
    as.vector(claim_verdict(low, high, 0.95, 1.05, rep_len(testable, length(low))))
  }
  expect_equal(says(c(0.99, 0.98), c(1.01, 1.02)), "reproduced")
  expect_equal(says(c(0.99, 0.9), c(1.01, 1.02)), "inconclusive")
  expect_equal(says(c(0.5, 0.9), c(0.6, 1.02)), "contradicted")
  expect_equal(says(c(0.99, NA), c(1.01, NA), c(TRUE, FALSE)), "not testable here")
  expect_equal(says(c(0.5, NA), c(0.6, NA), c(TRUE, FALSE)), "contradicted")
  expect_equal(attr(claim_verdict(c(0.99, 0.5), c(1, 0.6), 0.95, 1.05), "parts"),
               c("reproduced", "contradicted"))
})

test_that("claims are reproduced or contradicted by runs that say so", {
  like <- function(factor) {
    tested("ibm-pxz-docker-similar", tidy_of(list(native = base, docker = base * near * factor)))
  }
  same <- like(1)
  expect_equal(same$verdict, "reproduced")
  fieller <- paired_ratio(base * near, base, 0.9)
  expect_equal(c(same$ratio, same$ratio_low, same$ratio_high), c(fieller$ratio, fieller$low, fieller$high))
  expect_equal(c(same$level, same$parts, same$ratio_n), c(0.9, 1, 6))
  expect_match(same$logs, "docker/pxz/1.log.*native/pxz/6.log")
  expect_equal(like(0.8)$verdict, "contradicted")
  expect_equal(like(0.95)$verdict, "inconclusive")
})

test_that("several parts share one level, and the worst is shown", {
  tidy <- do.call(rbind, lapply(names(planned_metrics$stream), function(metric) {
    slower <- if (metric == "add") 0.96 else 1
    tidy_of(list(native = base, docker = base * near * slower, vm = base * near), "stream", metric)
  }))
  row <- tested("ibm-stream-identical", tidy)
  expect_equal(c(row$parts, row$level), c(8, 0.9))
  expect_equal(c(row$environment, row$metric, row$verdict), c("docker", "add", "reproduced"))
  fieller <- paired_ratio(base * near * 0.96, base, 0.9)
  expect_equal(c(row$ratio_low, row$ratio_high), c(fieller$low, fieller$high))
  tidy$value[tidy$metric == "add" & tidy$environment == "docker"] <- base * near * 0.9
  row <- tested("ibm-stream-identical", tidy)
  fieller <- paired_ratio(base * near * 0.9, base, 1 - 0.05 / 8)
  expect_equal(c(row$verdict, row$metric), c("contradicted", "add"))
  expect_equal(c(row$level, row$ratio_low, row$ratio_high), c(1 - 0.05 / 8, fieller$low, fieller$high))
})

test_that("a claim is decided by intervals, never by the ratio", {
  # The ratio is 1 to the last digit; the interval at 90 % reaches beyond 2 % or does not.
  spread <- c(1, -1, 1, -1, 1, -1)
  like <- function(by, mean = 1) {
    tested("ibm-linpack-docker-identical",
           tidy_of(list(native = rep(100, 6), docker = 100 * (mean + by * spread)), "linpack", "gflops"))
  }
  half <- function(level) qt((1 + level) / 2, 5) * sd(spread) / sqrt(6)
  expect_equal(like(0.0199 / half(0.9))$verdict, "reproduced")
  open <- like(0.0201 / half(0.9))
  expect_equal(c(open$verdict, open$level), c("inconclusive", "0.95"))
  expect_true(open$more_sets_low <= open$more_sets && open$more_sets < open$more_sets_high)
  # Outside by the interval at 95 %, and not by that at 90 %.
  expect_equal(like(0.01 / half(0.95), 0.9699)$verdict, "contradicted")
  expect_equal(like(0.01 / half(0.9), 0.9699)$verdict, "inconclusive")
  expect_true(is.na(like(0.001)$more_sets))
})

test_that("claims ask for widths that follow from their tolerances, where they can be tested as a whole", {
  both <- list(native = base, docker = base)
  asked <- function(tidy, plan = plan_of(), claims = published, sockets = 2) {
    claimed_widths(claims, tidy, plan, sockets)
  }
  found <- asked(rbind(tidy_of(both), tidy_of(both, "linpack", "gflops"), tidy_of(both, "stream", "triad")))
  # What needs a machine that was not measured asks for nothing, and neither does what was not measured.
  expect_equal(found$claim, c("ibm-pxz-docker-similar", "ibm-linpack-docker-identical",
                              "vmw-stream-docker-1-2pct"))
  expect_equal(found$workload, c("pxz", "linpack", "stream"))
  expect_equal(unique(found$environment), "docker")
  # In the middle there are two edges, and 80 % are left by 10 % beyond each.
  expect_equal(found$half_width[1:2], c(0.05, 0.02) * 1.96 / (1.645 + 1.2816), tolerance = 1e-3)
  # Of no difference one edge may be closer, or it lies outside.
  expect_equal(width_that_decides(0.96, 1.01), 0.01 * 1.96 / (1.645 + 0.8416), tolerance = 1e-3)
  expect_equal(found$half_width[[3]], 0.005 * 1.96 / (1.645 + 1.2816) / 0.985, tolerance = 1e-3)
  expect_equal(width_that_decides(0.7, 0.8), 0.05 * 1.96 / (1.645 + 1.2816) / 0.75, tolerance = 1e-3)
  # Neither does one with a limit on one side, or of two environments of which none is native.
  machines <- tidy_of(list(native = base, docker = base, vm = base, `vm-tuned` = base))
  with_machines <- asked(machines, plan_of(c("native", "docker", "vm", "vm-tuned")))$claim
  expect_equal(with_machines, c("ibm-pxz-kvm-22pct", "ibm-pxz-docker-similar"))
  emulated <- plan_of(c("native", "docker", "vm"), accelerator = "tcg")
  expect_equal(asked(machines, emulated)$claim, "ibm-pxz-docker-similar")
  # Nor one whose limits are the same, within which no interval lies.
  tight <- published
  at <- match("ibm-pxz-docker-similar", vapply(tight$claims, `[[`, "", "id"))
  tight$claims[[at]]$tolerance <- list(low = 1, high = 1)
  expect_equal(nrow(asked(tidy_of(both), claims = tight)), 0)
  # Values play no part.
  expect_equal(asked(tidy_of(list(native = base, docker = base / 3))), asked(tidy_of(both)))
  expect_equal(nrow(asked(tidy_of(both)[0, ])), 0)
})

test_that("sets that were set aside test no claim", {
  tidy <- tidy_of(list(native = c(base, 1), docker = c(base * near, 50)))
  expect_equal(tested("ibm-pxz-docker-similar", tidy)$ratio_n, 7)
  tidy$counts[tidy$repetition == 7] <- "no"
  row <- tested("ibm-pxz-docker-similar", tidy)
  expect_equal(c(row$ratio_n, row$verdict), c("6", "reproduced"))
})

test_that("environments that were not measured leave a claim untested", {
  only_native <- tidy_of(list(native = base))
  row <- tested("ibm-pxz-docker-similar", only_native)
  expect_equal(c(row$verdict, row$reason), c("not testable here", "environment"))
  expect_true(is.na(row$ratio))
  plan <- plan_of()
  plan$environments$docker <- list(label = "Docker", available = FALSE, reason = "no daemon")
  expect_match(tested("ibm-pxz-docker-similar", only_native, plan)$because, "no daemon")
  row <- tested("ibm-pxz-docker-similar", tidy_of(list(docker = base)))
  expect_equal(row$because, "Native was not measured")
  expect_equal(tested("vmw-linpack-container-free", tidy_of(list(vm = base), "linpack", "gflops"))$reason,
               "environment")
})

test_that("a virtual machine under emulation tests no claim about KVM", {
  tidy <- tidy_of(list(native = base, vm = base * near * 0.78, `vm-tuned` = base * near * 0.78))
  environments <- c("native", "vm", "vm-tuned")
  verdict <- function(accelerator) tested("ibm-pxz-kvm-22pct", tidy, plan_of(environments, accelerator))
  expect_equal(verdict("kvm")$verdict, "reproduced")
  for (accelerator in list("tcg", NULL, "not available")) {
    row <- verdict(accelerator)
    expect_equal(c(row$verdict, row$reason), c("not testable here", "emulation"))
    expect_true(is.na(row$ratio))
  }
  rows <- test_claims(published, tidy, plan_of(environments, "tcg"), 2)
  kvm <- vapply(published$claims, function(claim) any(grepl("kvm", unlist(claim$pairs))), NA)
  expect_true(all(rows$verdict[kvm] == "not testable here"))
})

#' Values of all environments of a plan in every workload of the plan: native's, times a factor
everything <- function(plan, factors) {
  do.call(rbind, unlist(lapply(names(plan$workloads), function(workload) {
    lapply(names(plan$workloads[[workload]]$metrics), function(metric) {
      values <- lapply(names(plan$environments), function(name) {
        turned <- near[(seq_along(near) + match(name, names(plan$environments))) %% length(near) + 1]
        base * turned * if (name %in% names(factors)) factors[[name]] else 1
      })
      tidy_of(stats::setNames(values, names(plan$environments)), workload, metric)
    })
  }), recursive = FALSE))
}

test_that("every claim that a virtual machine may test needs one with hardware acceleration", {
  plan <- function(accelerator) {
    one <- plan_of()
    one$environments <- Map(planned_environment, names(all_labels(accelerator)), all_labels(accelerator),
                            accelerator)
    one
  }
  measured_by <- vapply(published$environments, function(one) {
    any(startsWith(as.character(unlist(one$measured_as)), "vm"))
  }, NA)
  machines <- names(published$environments)[as.logical(measured_by)]
  expect_setequal(machines, c("kvm", "kvm_untuned", "kvm_tuned", "kvm_qcow"))
  concerned <- vapply(published$claims, function(claim) {
    any(unlist(claim$pairs) %in% machines) &&
      claim$workload %in% c(names(planned_metrics), names(published$workload_groups), "*")
  }, NA)
  expect_gte(sum(concerned), 8)
  tcg <- plan("tcg")
  rows <- test_claims(published, everything(tcg, c(vm = 0.1, `vm-tuned` = 0.1)), tcg, 2)
  expect_equal(unique(rows$verdict[concerned]), "not testable here")
  expect_equal(unique(rows$reason[concerned]), "emulation")
  expect_equal(unique(rows$because[concerned]), paste0(
    c("VM (TCG emulation)", "VM (TCG emulation), tuned"), " is not proven to be accelerated by hardware: ",
    WHY[["tcg"]]
  ))
  expect_false(any(startsWith(c(rows$environment, rows$reference), "vm")))
  kvm <- plan("kvm")
  rows <- test_claims(published, everything(kvm, c(vm = 0.78, `vm-tuned` = 0.97)), kvm, 2)
  rows <- rows[rows$published_for == "", ]
  expect_true(all(rows$verdict[concerned] %in% c("reproduced", "contradicted")))
  expect_true(any(startsWith(rows$environment, "vm")))
})

#' A plan with machines, with and without Docker
machines_plan <- function(accelerator) {
  labels <- all_labels(accelerator)
  plan <- plan_of()
  plan$environments <- Map(planned_environment, names(labels), labels, accelerator)
  plan
}

test_that("what was published for vSphere is tested on KVM with a verdict of its own kind", {
  plan <- machines_plan("kvm")
  tidy <- everything(plan, c(vm = 0.975, `vm-docker` = 0.975))
  row <- tested("vmw-stream-vm-2-3pct", tidy, plan, transferred = TRUE)
  expect_equal(c(row$verdict, row$published_for, row$environment, row$reference),
               c("carries over", "vSphere", "vm", "native"))
  direct <- tested("vmw-stream-vm-2-3pct", tidy, plan)
  expect_equal(c(direct$verdict, direct$reason, direct$parts), c("not testable here", "transferred", "0"))
  slow <- everything(plan, c(vm = 0.5, `vm-docker` = 0.5))
  expect_equal(tested("vmw-stream-vm-2-3pct", slow, plan, transferred = TRUE)$verdict, "does not carry over")
  expect_equal(tested("vmw-linpack-container-free", slow, plan, transferred = TRUE)$verdict, "carries over")
  one <- tested("vmw-stream-vm-2-3pct", tidy[tidy$repetition == 1, ], plan, transferred = TRUE)
  expect_equal(c(one$verdict, one$because), c("transfer open", "there are too few runs for an interval"))
  # What is about a device that has no counterpart stays as it was.
  expect_equal(tested("vmw-netperf-passthrough", tidy, plan)$reason, "workload")
  expect_equal(nrow(tested("vmw-netperf-passthrough", tidy, plan, transferred = TRUE)), 0)
})

test_that("a claim of both kinds has both verdicts, each by its own environments", {
  plan <- machines_plan("kvm")
  plan$workloads <- list(dvdstore = list(title = "Orders", parameters = list(), metrics = list(
    throughput = list(label = "Orders", unit = "orders/min", better = "higher", statistic = "mean")
  )))
  verdicts <- function(...) {
    tidy <- updated(everything(plan, c(...)), factors = "customers=4")
    c(tested("dvd-docker-2-4pct", tidy, plan)$verdict,
      tested("dvd-docker-2-4pct", tidy, plan, transferred = TRUE)$verdict)
  }
  expect_equal(verdicts(docker = 0.5, vm = 0.6, `vm-docker` = 0.582), c("contradicted", "carries over"))
  expect_equal(verdicts(docker = 0.97, vm = 0.6, `vm-docker` = 0.5),
               c("not testable here", "does not carry over"))
})

test_that("an emulated virtual machine stands for no published one, whatever the claims ask for", {
  tcg <- machines_plan("tcg")
  tidy <- everything(tcg, numeric())
  rows <- test_claims(published, tidy, tcg, 2)
  expect_true(all(rows$published_for == ""))
  for (id in c("vmw-linpack-container-free", "vmw-stream-vm-2-3pct", "vmw-general-5pct")) {
    row <- rows[rows$id == id, ]
    expect_equal(c(row$verdict, row$reason), c("not testable here", "emulation"))
    expect_match(row$because, WHY[["tcg"]], fixed = TRUE)
  }
  # Neither where KVM is not asked for, nor where one of several machines is emulated.
  named <- published
  named$environments$vsphere["accelerator"] <- list(NULL)
  expect_equal(tested("vmw-stream-vm-2-3pct", tidy, tcg, claims = named)$reason, "emulation")
  mixed <- machines_plan("kvm")
  mixed$environments$`vm-docker` <- tcg$environments$`vm-docker`
  expect_equal(tested("vmw-linpack-container-free", tidy, mixed)$reason, "emulation")
})

test_that("why a claim was not transferred is said", {
  row <- tested("vmw-stream-vm-2-3pct", tidy_of(list(native = base), "stream", "copy"))
  expect_equal(c(row$reason, row$because),
               c("environment", "a VM on vSphere, for which vm may stand, was not measured"))
})

test_that("an environment with factors of its own is measured by the series that have them", {
  plan <- machines_plan("kvm")
  plan$workloads <- list(`redis-scaleout` = list(title = "Redis", parameters = list(), metrics = list(
    throughput = list(label = "Throughput", unit = "requests/s", better = "higher", statistic = "mean")
  )))
  series <- function(values, setup) {
    tidy_of(values, "redis-scaleout", "throughput", paste0("setup=", setup, ";servers=8"))
  }
  tidy <- rbind(series(list(native = base * 0.5, vm = base * near), "scale-out"),
                series(list(native = base, vm = base * 3), "pinned"))
  named <- published
  at <- which(vapply(named$claims, `[[`, "", "id") == "so-vm-4pct-of-pinned")
  named$claims[[at]]$tolerance <- list(low = 0.98, high = 1.02)
  row <- tested("so-vm-4pct-of-pinned", tidy, plan, claims = named, transferred = TRUE)
  expect_equal(c(row$verdict, row$factors), c("carries over", "setup=scale-out;servers=8"))
  expect_match(row$note, "against setup pinned, servers 8.", fixed = TRUE)
  expect_match(row$logs, "native/redis-scaleout")
  unpinned <- tested("so-vm-4pct-of-pinned", tidy[!grepl("pinned", tidy$factors), ], plan, claims = named)
  expect_equal(c(unpinned$reason, unpinned$because),
               c("size", "setup pinned, servers 8 was not measured"))
})

test_that("what many servers gain over one is a ratio within an environment, and takes processors", {
  plan <- machines_plan("kvm")
  plan$machine <- list(cpus = 16)
  plan$workloads <- list(`redis-scaleout` = list(title = "Redis", parameters = list(), metrics = list(
    throughput = list(label = "Throughput", unit = "requests/s", better = "higher", statistic = "mean")
  )))
  series <- function(times, factors) {
    values <- list(native = base, docker = base * near, vm = rev(base), `vm-docker` = base * rev(near))
    tidy_of(lapply(values, `*`, times), "redis-scaleout", "throughput", factors)
  }
  tidy <- rbind(series(1, "setup=baseline;servers=1"), series(5.6 * near, "setup=scale-out;servers=8"))
  direct <- tested("so-at-least-4x", tidy, plan)
  expect_equal(c(direct$verdict, direct$parts), c("not testable here", "2"))
  moved <- tested("so-at-least-4x", tidy, plan, transferred = TRUE)
  expect_equal(c(moved$verdict, moved$parts), c("carries over", "2"))
  moved <- tested("so-up-to-5.6x", tidy, plan, transferred = TRUE)
  expect_equal(c(moved$verdict, moved$environment, moved$reference), c("carries over", "vm", "vm"))
  expect_match(moved$note, "against setup baseline, servers 1.", fixed = TRUE)
  expect_equal(moved$ratio, 5.6, tolerance = 1e-3)
  # The same with too few servers, or too few processors.
  few <- transform(tidy, factors = sub("servers=8", "servers=2", factors))
  expect_equal(tested("so-at-least-4x", few, plan)$because, "setup scale-out, servers 8 was not measured")
  plan$machine$cpus <- 2
  row <- tested("so-at-least-4x", tidy, plan)
  expect_equal(c(row$reason, row$because), c("hardware", "it takes 16 processors, and the host has 2"))
})

test_that("hardware, metric, size, workload and kind are reasons too", {
  tidy <- tidy_of(list(native = base, docker = base, vm = base), "linpack", "gflops")
  reason <- function(id, ...) tested(id, ...)$reason
  expect_equal(reason("ibm-linpack-kvm-untuned-worse", tidy, sockets = 1), "hardware")
  expect_match(tested("ibm-linpack-kvm-untuned-worse", tidy, sockets = NA)$because, "not available")
  expect_equal(reason("ibm-linpack-kvm-untuned-worse", tidy, sockets = 2), "")
  expect_equal(reason("ibm-randomaccess-same", tidy), "workload")
  expect_equal(reason("ibm-redis-110k", tidy), "hardware")
  expect_equal(reason("ibm-nuttcp-limit-9.41", tidy), "statement")
  redis <- function(metric, factors) tidy_of(list(native = base, docker = base), "redis", metric, factors)
  plan <- plan_of()
  plan$workloads$redis <- list(title = "Redis", metrics = list(
    latency = list(label = "Latency", unit = "ms", better = "lower"),
    throughput = list(label = "Requests", unit = "req/s", better = "higher")
  ))
  expect_equal(reason("ibm-redis-nat-100conn", redis("throughput", "connections=100"), plan), "metric")
  expect_equal(reason("ibm-redis-nat-100conn", redis("latency", "connections=10"), plan), "size")
  expect_equal(reason("ibm-redis-nat-100conn", redis("latency", "connections=100;tls=no"), plan), "")
})

test_that("a claim about performance turns ratios of costs round", {
  tidy <- tidy_of(list(native = base, docker = base * near, vm = base * rev(near) * 1.3))
  claim <- "ibm-docker-geq-kvm"
  expect_equal(tested(claim, tidy, plan_of(better = "lower"))$verdict, "reproduced")
  expect_equal(tested(claim, tidy, plan_of(better = "higher"))$verdict, "contradicted")
})

test_that("too few runs leave a claim inconclusive, and say so", {
  row <- tested("ibm-pxz-docker-similar", tidy_of(list(native = 100, docker = 100)))
  expect_equal(row$verdict, "inconclusive")
  expect_match(row$because, "too few runs")
})

test_that("every claim has one row, whatever was measured", {
  rows <- test_claims(published, empty_table(TIDY_COLUMNS), plan_of(), NA_real_)
  expect_equal(nrow(rows), length(published$claims))
  expect_true(all(rows$verdict == "not testable here" & rows$reason %in% names(untestable_reasons())))
  expect_true(all(rows$because != ""))
})

test_that("broken claims are errors that name them", {
  path <- tempfile(fileext = ".json")
  broken <- function(change) {
    one <- published
    one$claims <- list(change(one$claims[[1]]))
    write_json(one, path)
    read_claims(path)
  }
  expect_silent(broken(identity))
  fails <- function(pattern, ...) expect_error(broken(function(claim) updated(claim, ...)), pattern)
  fails("ibm-pxz-kvm-22pct: there is no publication x", publication = "x")
  fails("there is no environment xen", pairs = list(list("xen", "native")))
  fails("no pairs", pairs = list(list("docker")))
  fails("no limit", tolerance = list(value = 1))
  fails("wrong order", tolerance = list(low = 2, high = 1))
  fails("not a known one", untestable = list(reason = "mood", because = "so"))
  fails("not explained", untestable = list(reason = "hardware"))
  expect_error(broken(function(claim) claim[names(claim) != "statement"]), "it has no statement")
  expect_error(broken(function(claim) claim[names(claim) != "id"]), "no name")
  writeLines("{\"format\": 2}", path)
  expect_error(read_claims(path), "not claims of format 1")
})

test_that("what was published stands in the figure of ratios beside what was measured", {
  values <- published_ratios(read_published(file.path(project, "published", "ibm-table1.json")),
                             read_csv(file.path(project, "published", "ibm-figures.csv"), FIGURE_VALUES))
  expect_equal(values$ratio[values$workload == "pxz" & values$environment == "kvm"], 59.2 / 76.2)
  expect_equal(values$ratio[grepl("job=random-read-16x8", values$factors) & values$environment == "kvm"],
               46231 / 84131)
  expect_equal(values$ratio[values$metric == "bandwidth" & values$environment == "kvm"],
               c(801.9 / 806.9, 740.2 / 751))
  tidy <- tidy_of(list(native = base, docker = base * near, vm = base * near * 0.8))
  plan <- read_plan(make_results(c("native", "docker", "vm"), "pxz"))
  drawn <- function(accelerator) {
    plan$environments$vm$accelerator <- accelerator
    ratio_data(summarise_workload(tidy, plan, read_cells(plan)), plan, values, published$environments)
  }
  data <- drawn("kvm")
  expect_equal(as.character(data$panel), c("docker", "docker", "vm", "vm", "KVM, tuned (published only)"))
  expect_equal(data$what, c("measured", "published", "measured", "published", "published"))
  expect_equal(data$ratio[data$what == "published"], c(73.5, 59.2, 62.2) / 76.2)
  expect_true("KVM (published only)" %in% drawn("tcg")$panel)
  limits <- ratio_limits(data)
  expect_true(all(data$ratio >= limits[[1]] & data$ratio <= limits[[2]]))
  out <- tempfile()
  draw_ratios(list(summarise_workload(tidy, plan, read_cells(plan))), plan, project, out)
  single <- summarise_workload(tidy[tidy$repetition == 1, ], plan, read_cells(plan))
  expect_true(all(is.na(single$ratio_low)))
  draw_ratios(list(single), plan, project, paste0(out, "-single"))
  wide <- updated(single, ratio_low = rep(0.001, 3), ratio_high = rep(99, 3))
  wide$ratio_low[1] <- NA
  expect_silent(draw_ratios(list(wide), plan, project, paste0(out, "-wide")))
  draw_ratios(list(), plan, project, paste0(out, "-none"))
  written <- outer(paste0(out, c("", "-none", "-single", "-wide")), c(".pdf", ".png", ".csv"), paste0)
  expect_true(all(file.exists(written)))
})

#' The published ratios that a claim is made of
#'
#' @return numbers; none for claims that say how they differ from what was printed, and for those that are
#'   about no certain load of a workload that is not in Table I
printed_for <- function(claim, values) {
  alias <- c(kvm_untuned = "kvm", docker_volume = "docker", docker_nat = "docker")
  names <- unlist(lapply(Filter(function(pair) pair[[2]] == "native", claim$pairs), `[[`, 1))
  names <- ifelse(names %in% names(alias), alias[names], names)
  own <- values[values$workload == claim$workload & values$environment %in% names &
                  has_factors(values$factors, claim$factors), ]
  # Other notes tell why the printed values are not those of the claim.
  noted <- !is.null(claim$note) && !grepl("^(Table I prints|Fig. 5 has)", claim$note)
  comparable <- !noted && (length(claim$factors) > 0 || claim$workload %in% names(asked_for))
  own$ratio[comparable & (length(claim$metrics) == 0 | own$metric %in% unlist(claim$metrics))]
}

test_that("what was published lies within the tolerances of the claims made of it", {
  values <- published_ratios(read_published(file.path(project, "published", "ibm-table1.json")),
                             read_csv(file.path(project, "published", "ibm-figures.csv"), FIGURE_VALUES))
  checked <- 0
  for (claim in Filter(function(claim) claim$publication == "ibm2014", published$claims)) {
    ratio <- printed_for(claim, values)
    low <- c(claim$tolerance$low, -Inf)[[1]]
    high <- c(claim$tolerance$high, Inf)[[1]]
    expect_true(all(ratio >= low - 0.005 & ratio <= high + 0.005), label = claim$id)
    checked <- checked + length(ratio)
  }
  expect_gt(checked, 10)
})
