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
              pairs = list(list("docker", "native")), published = list(value = 0.9, unit = "ratio"),
              tolerance = list(low = 0.85, high = 0.95))
ask <- function(values, ..., here = HERE) {
  changed <- list(...)
  claim[names(changed)] <- changed
  test_claims(c(published, list(claims = list(claim))), values, here)
}

test_that("a claim is reproduced, contradicted or undecided by its interval", {
  found <- ask(made_values(native = 10, docker = 9))
  expect_equal(c(found$verdict, found$against_published), c("reproduced", "equal"))
  expect_equal(ask(made_values(native = 10, docker = 9.3))$against_published, "different")
  expect_equal(ask(made_values(native = 10, docker = 9.3))$verdict, "reproduced")
  expect_equal(ask(made_values(native = 10, docker = 8))$verdict, "contradicted")
  expect_equal(ask(made_values(native = 10, docker = 9, noise = 0.2))$verdict, "undecided")
  apart <- ask(made_values(native = 10, docker = 9), here = c(HERE, list(paired = FALSE)))
  expect_equal(apart$ratio, 0.9, tolerance = 0.05)
  printed <- ask(made_values(native = 10, docker = 9), here = c(HERE, list(paired = FALSE, exact = TRUE)))
  expect_equal(printed$against_published, "equal")
})

test_that("the parts of a claim share its error", {
  rows <- made_values(native = 10, docker = 9, vm = 9, noise = 0.2)
  found <- ask(rows, pairs = c(claim$pairs, list(list("kvm", "native"))))
  expect_equal(c(found$parts, found$level), c(2, 0.975))
  of <- split(rows$value, rows$environment)
  shown <- compare_pairs(of[[found$environment]] / of$native, level = 0.975)
  expect_equal(c(found$low, found$high), c(shown$low, shown$high))
})

test_that("a claim of performance turns a cost around", {
  costs <- made_values(native = 10, docker = 9, better = "lower")
  expect_equal(ask(costs)$ratio, 0.9, tolerance = 0.01)
  expect_equal(ask(costs, performance = TRUE)$ratio, 1 / 0.9, tolerance = 0.01)
})

test_that("a tolerance that ends at 1 asks for a difference that matters", {
  same <- made_values(native = 10, docker = 9.99)
  expect_equal(ask(same, tolerance = list(low = 0.9, high = 1))$verdict, "contradicted")
  less <- made_values(native = 10, docker = 9.5)
  expect_equal(ask(less, tolerance = list(low = 0.9, high = 1))$verdict, "reproduced")
  expect_equal(ask(same, tolerance = list(low = 1, high = 1.1))$verdict, "contradicted")
  more <- made_values(native = 10, docker = 10.5)
  expect_equal(ask(more, tolerance = list(low = 1, high = 1.1))$verdict, "reproduced")
})

test_that("what cannot be tested says why", {
  values <- made_values(native = 10, docker = 9)
  kvm <- list(list("kvm", "native"))
  expect_equal(ask(values, pairs = kvm)$reason, "environment")
  emulated <- utils::modifyList(HERE, list(emulated = "vm"))
  expect_equal(ask(values, pairs = kvm, here = emulated)$reason, "emulation")
  # What a daemon made another environment of is not the one that it is about.
  other <- read_environment("docker", list(label = "Docker (user-land proxy)", available = TRUE,
                                           otherwise = "user-land proxy"))
  expect_equal(ask(values)$verdict, "reproduced")
  here <- here_of(list(records = list(), environments = other))
  expect_equal(ask(values, here = here[c("emulated", "otherwise", "sockets")])$reason, "environment")
  elsewhere <- ask(values, workload = "fio")
  expect_equal(elsewhere$reason, "workload")
  expect_equal(c(elsewhere$tolerance_low, elsewhere$tolerance_high), c(0.85, 0.95))
  expect_equal(ask(values, metrics = list("copy"))$reason, "metric")
  expect_equal(ask(values, factors = list(threads = 9))$reason, "size")
  expect_equal(ask(values, here = utils::modifyList(HERE, list(invalid = "stream")))$reason, "size")
  expect_equal(ask(values, sockets = 2)$reason, "hardware")
  expect_equal(ask(values, pairs = c(claim$pairs, kvm))$verdict, "tested in part")
})

test_that("a product's claim is tested beside, under its own name", {
  found <- ask(made_values(native = 10, docker = 9, vm = 9), pairs = list(list("product", "native")))
  expect_equal(found$verdict, c("not tested", "reproduced"))
  expect_equal(found$reason[[1]], "other-product")
  expect_equal(found$transferred, c("", "Product"))
})

test_that("every published claim gets a verdict", {
  claims <- jsonlite::read_json(file.path(root, "published", "claims.json"))
  found <- test_claims(claims, made_values(native = 10, docker = 10), HERE)
  expect_equal(sort(unique(found$id)), sort(vapply(claims$claims, `[[`, "", "id")))
  expect_true(all(found$reason[found$verdict == "not tested"] != ""))
  expect_equal(found$verdict[found$id == "ibm-stream-identical"], "tested in part")
})
