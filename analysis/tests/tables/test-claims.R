# Verdicts on claims whose truth is known.

published <- list(
  publications = list(one = list(label = "One")),
  environments = list(native = list(label = "Native", measured_as = list("native")),
                      docker = list(label = "Docker", measured_as = list("docker")),
                      kvm = list(label = "KVM", measured_as = list("vm")),
                      product = list(label = "A product", measured_as = list(),
                                     transferred = list(from = "Product", to = list("vm"))))
)
claim <- list(id = "a", publication = "one", place = "p", statement = "s", workload = "stream",
              pairs = list(list("docker", "native")),
              published = list(value = 0.9, unit = "ratio"),
              tolerance = list(low = 0.85, high = 0.95))

# Tests the claim above with the changes that are given.
test_changed <- function(values, ..., context = CONTEXT) {
  changes <- list(...)
  claim[names(changes)] <- changes
  test_claims(c(published, list(claims = list(claim))), values, context)
}

test_that("a claim is reproduced, contradicted or undecided by its interval", {
  values <- make_values(native = 10, docker = 9)
  row <- test_changed(values)
  expect_equal(c(row$verdict, row$against_published), c("reproduced", "equal"))
  higher <- test_changed(make_values(native = 10, docker = 9.3))
  expect_equal(c(higher$verdict, higher$against_published), c("same direction", "different"))
  expect_equal(test_changed(make_values(native = 10, docker = 8))$verdict, "contradicted")
  noisy <- make_values(native = 10, docker = 9, noise = 0.2)
  expect_equal(test_changed(noisy)$verdict, "undecided")
  unpaired <- test_changed(values, context = c(CONTEXT, list(paired = FALSE)))
  expect_equal(unpaired$ratio, 0.9, tolerance = 0.05)
  printed <- test_changed(values, context = c(CONTEXT, list(paired = FALSE, exact = TRUE)))
  expect_equal(printed$against_published, "equal")
})

test_that("the parts of a claim share its error", {
  values <- make_values(native = 10, docker = 9, vm = 9, noise = 0.2)
  row <- test_changed(values, pairs = c(claim$pairs, list(list("kvm", "native"))))
  expect_equal(c(row$parts, row$level), c(2, 0.975))
  by_environment <- split(values$value, values$environment)
  ratios <- by_environment[[row$environment]] / by_environment$native
  expected <- estimate_mean_ratio(ratios, level = 0.975)
  expect_equal(c(row$low, row$high), c(expected$low, expected$high))
})

test_that("a claim of performance inverts the ratio of costs", {
  costs <- make_values(native = 10, docker = 9, better = "lower")
  expect_equal(test_changed(costs)$ratio, 0.9, tolerance = 0.01)
  expect_equal(test_changed(costs, performance = TRUE)$ratio, 1 / 0.9, tolerance = 0.01)
})

test_that("a claim of one environment is about its level", {
  values <- make_values(native = 10, docker = 9)
  test_level <- function(low, high) {
    test_changed(values, pairs = list(list("docker")), published = list(value = 9, unit = "GB/s"),
                 tolerance = list(low = low, high = high))
  }
  level <- test_level(8, 10)
  expect_equal(level$ratio, 9, tolerance = 0.01)
  expect_equal(c(level$verdict, level$reference, level$against_published), c("reproduced", "", ""))
  expect_equal(test_level(9.5, NULL)$verdict, "contradicted")
})

test_that("a tolerance that ends at 1 requires a difference that matters", {
  below <- list(low = 0.9, high = 1)
  above <- list(low = 1, high = 1.1)
  same <- make_values(native = 10, docker = 9.99)
  expect_equal(test_changed(same, tolerance = below)$verdict, "contradicted")
  less <- make_values(native = 10, docker = 9.5)
  expect_equal(test_changed(less, tolerance = below)$verdict, "same direction")
  expect_equal(test_changed(same, tolerance = above)$verdict, "contradicted")
  more <- make_values(native = 10, docker = 10.5)
  expect_equal(test_changed(more, tolerance = above)$verdict, "other size")
})

test_that("a claim that cannot be tested has a reason", {
  values <- make_values(native = 10, docker = 9)
  change_context <- function(...) utils::modifyList(CONTEXT, list(...))
  reason <- function(...) test_changed(values, ...)$reason
  kvm <- list(list("kvm", "native"))
  expect_equal(reason(pairs = kvm), "environment")
  expect_equal(reason(pairs = kvm, context = change_context(emulated = "vm")), "emulation")
  # A claim about Docker is not tested by what a daemon made another environment of.
  entry <- list(label = "Docker (user-land proxy)", available = TRUE,
                otherwise = "user-land proxy")
  otherwise <- describe_environment("docker", entry)
  expect_equal(test_changed(values)$verdict, "reproduced")
  context <- make_claim_context(list(records = list(), environments = otherwise))
  expect_equal(reason(context = context[c("emulated", "otherwise", "sockets")]), "environment")
  elsewhere <- test_changed(values, workload = "fio")
  expect_equal(elsewhere$reason, "workload")
  expect_equal(c(elsewhere$tolerance_low, elsewhere$tolerance_high), c(0.85, 0.95))
  expect_equal(reason(metrics = list("copy")), "metric")
  expect_equal(reason(factors = list(threads = 9)), "size")
  expect_equal(reason(context = change_context(invalid = "stream")), "size")
  expect_equal(reason(sockets = 2), "hardware")
  partly <- test_changed(values, pairs = c(claim$pairs, kvm))
  expect_equal(partly$verdict, "tested in part")
})

test_that("a claim about a product is tested in a row of its own", {
  values <- make_values(native = 10, docker = 9, vm = 9)
  rows <- test_changed(values, pairs = list(list("product", "native")))
  expect_equal(rows$verdict, c("not tested", "reproduced"))
  expect_equal(rows$reason[[1]], "other-product")
  expect_equal(rows$transferred, c("", "Product"))
})

test_that("every published claim gets a verdict", {
  today <- jsonlite::read_json(file.path(root, "published", "today.json"))
  rows <- test_claims(today, make_values(native = 10, docker = 10), CONTEXT)
  expect_equal(rows$id, vapply(today$claims, `[[`, "", "id"))
  expect_true(all(rows$reason[rows$verdict == "not tested"] != ""))
  claims <- jsonlite::read_json(file.path(root, "published", "claims.json"))
  rows <- test_claims(claims, make_values(native = 10, docker = 10), CONTEXT)
  expect_equal(sort(unique(rows$id)), sort(vapply(claims$claims, `[[`, "", "id")))
  expect_true(all(rows$reason[rows$verdict == "not tested"] != ""))
  expect_equal(rows$verdict[rows$id == "ibm-stream-identical"], "tested in part")
})
