# Two samples, and testbeds whose difference is known.

for (file in c("format.R", "testbeds.R")) {
  suppressMessages(source(file.path(root, "analysis", file)))
}

test_that("two samples have the interval of their ratio, and too few runs have none", {
  set.seed(3)
  covered <- vapply(seq_len(400), function(i) {
    row <- compare_samples(9 * exp(rnorm(8, 0, 0.02)), 10 * exp(rnorm(8, 0, 0.05)))
    row$low < 0.9 && 0.9 < row$high
  }, NA)
  expect_gt(mean(covered), 0.93)
  expect_equal(compare_samples(c(1, 2), c(2, 3))$why, "fewer than 3 runs")
  x <- c(5.1, 5, 4.9, 5)
  difference <- compare_samples(x, c(3, 3.1, 2.9, 3), "difference")
  expect_equal(c(difference$ratio, difference$low < 2, difference$high > 2), c(2, 1, 1))
  expect_equal(compare_samples(x, NULL, "level")$ratio, 5)
})

test_that("whatever the values, an interval has two ends or a reason why there is none", {
  values <- list(constant = function(n) rep(3.3, n), zero = function(n) rep(0, n),
                 nearly = function(n) 5 + 5e-11 * (seq_len(n) == 1),
                 rounded = function(n) 7 + 8 * .Machine$double.eps * seq_len(n),
                 normal = function(n) exp(cos(seq_len(n))),
                 ties = function(n) rep(1:2, length.out = n),
                 negative = function(n) -seq_len(n) / 10, mixed = function(n) seq_len(n) - 2,
                 huge = function(n) 1e300 * seq_len(n), tiny = function(n) 1e-300 * seq_len(n),
                 infinite = function(n) c(Inf, 1:9)[seq_len(n)],
                 missing = function(n) c(NA, 1:9)[seq_len(n)])
  compare_case <- function(first, second, n, how) {
    x <- values[[first]](n)
    if (second == "pairs") return(estimate_mean_ratio(x))
    if (second == "none") return(compare_samples(x, NULL, how))
    compare_samples(x, values[[second]](if (n > 3) 7 else n), how)
  }
  is_whole <- function(...) {
    row <- compare_case(...)
    ends <- unlist(row[c("low", "high")])
    if (any(is.nan(c(row$ratio, ends)))) return(FALSE)
    if (row$why != "") return(all(is.na(ends)))
    !anyNA(c(row$ratio, ends)) && row$low <= row$high
  }
  cases <- expand.grid(first = names(values), second = c(names(values), "none", "pairs"), n = 1:7,
                       how = c("ratio", "difference", "level"),
                       stringsAsFactors = FALSE)
  cases <- cases[(cases$second == "none") == (cases$how == "level"), ]
  whole <- do.call(mapply, c(list(is_whole), cases))
  expect_equal(do.call(paste, cases[!whole, ]), character())
})

test_that("a sample that does not vary has no error, and two of them have no interval", {
  x <- 3 * exp(c(0, 0.02, -0.01, 0.03, 0.01))
  columns <- c("ratio", "low", "high")
  rigid <- compare_samples(x, rep(2, 5))
  expect_equal(rigid$why, "")
  expect_equal(rigid[columns], estimate_mean_ratio(x / 2)[columns])
  hardly_varies <- compare_samples(x, 2 * (1 + 1e-9 * c(0, 1, 0, 0, 1)))
  expect_equal(rigid, hardly_varies, tolerance = 1e-6)
  inverse <- compare_samples(rep(2, 5), x)
  expect_equal(c(inverse$low, inverse$high), 1 / c(rigid$high, rigid$low))
  for (how in c("ratio", "difference")) {
    expect_match(compare_samples(rep(2, 5), rep(1, 5), how)$why, "same")
  }
  # Values that have no ratio are not left out.
  expect_match(estimate_mean_ratio(c(1, 1.1, 0, 1.2))$why, "not all")
  # The unit does not matter.
  ends <- c("low", "high")
  small <- compare_samples(1e-200 * x, NULL, "level")
  expect_equal(small[ends], 1e-200 * compare_samples(x, NULL, "level")[ends])
})

# Makes a session as read_session returns it; it has other parameters where `seed` is not 1.
make_session <- function(..., seed = 1, emulated = NULL, scale = "paper", better = "higher",
                         n = 6, apart = FALSE) {
  tidy <- make_values(..., n = n, seed = seed, better = better)
  tidy$session <- rep(paste("session", seed), nrow(tidy))
  # Runs are pairs if they are measured within the time of their block.
  if (apart) tidy$started <- tidy$ended <- 100 * seq_len(nrow(tidy))
  is_emulated <- tidy$environment %in% emulated
  observed <- list(host = list(static = list(kernel = "6.12")), inside = list(cgroup = seed))
  records <- lapply(unique(tidy$environment), function(environment) {
    list(environment = environment, workload = "stream",
         parameters = list(elements = if (seed > 1) 2 else 1),
         system = list(layers = list(environment)), source = list(revision = paste("r", seed)),
         observed = observed)
  })
  list(plan = list(scale = scale), valid = TRUE, tidy = tidy[!is_emulated, ],
       emulated = tidy[is_emulated, ], records = records)
}

# Makes a side as read_side returns it, of one session.
make_side <- function(name, ...) join_sessions(name, list(make_session(...)))

join_sessions <- function(name, sessions) {
  combine_sessions(sessions, list(name = name, source = name, sha256 = ""))
}

# The outcome of each environment's row.
get_outcomes <- function(rows) stats::setNames(rows$outcome, rows$environment)

test_that("a slower side is called slower, whichever way a metric counts", {
  before <- make_side("before", native = 10, docker = 10)
  for (better in c("higher", "lower")) {
    first <- make_side("before", native = 10, docker = 10, better = better)
    slower <- if (better == "higher") 7 else 10 / 0.7
    after <- make_side("after", native = 10, docker = slower, seed = 2, better = better)
    rows <- compare_sides(list(first, after))
    docker <- rows[rows$environment == "docker", ]
    expect_equal(get_outcomes(rows), c(native = "undecided", docker = "slower"))
    expect_equal(docker$ratio, 0.7, tolerance = 0.05)
    expect_equal(docker$change, 0.7, tolerance = 0.005)
    # Means are of the kind that the ratios are of.
    expect_equal(docker$change, docker$share_to / docker$share_from)
    means <- docker$mean_to / docker$mean_from
    expect_equal(docker$ratio, if (better == "lower") 1 / means else means)
    expect_equal(unique(rows$differs), "elements")
  }
  again <- make_side("again", native = 10, docker = 10, seed = 3)
  three <- compare_sides(list(before, again, after))
  expect_equal(unique(paste(three$from, three$to)),
               c("before again", "before after", "again after"))
  outcome <- summarise_comparison(rows, list(before, after), 0.02)
  expect_match(outcome$text, "after is slower in 1 of 1 series", fixed = TRUE)
  expect_equal(outcome$native$undecided, 1)
})

test_that("a slower machine is told as native's, and an environment's cost is found beside it", {
  before <- make_side("before", native = 10, docker = 9, vm = 8)
  cases <- list(
    list(levels = c(native = 7, docker = 6.3, vm = 5.6), vm = "equivalent", all = "equivalent"),
    list(levels = c(native = 13, docker = 11.7, vm = 9.88), vm = "slower", all = "difference"),
    list(levels = c(native = 7, docker = 6.3, vm = 6), vm = "faster", all = "difference")
  )
  for (case in cases) {
    after <- do.call(make_side, c(list("after", seed = 2), case$levels))
    rows <- compare_sides(list(before, after))
    host <- if (case$levels[["native"]] < 10) "slower" else "faster"
    expect_equal(get_outcomes(rows), c(native = host, docker = "equivalent", vm = case$vm))
    outcome <- summarise_comparison(rows, list(before, after), 0.02)
    expect_equal(outcome$outcome, case$all)
    expect_equal(c(outcome$compared, outcome$native[[host]]), c(2, 1))
    expect_match(outcome$text, paste0("Native.s own values.*after is ", host, " in 1 of 1"))
  }
})

test_that("what has no native, or no pairs, is not judged by a ratio to native", {
  before <- make_side("before", native = 10, docker = 10)
  without <- make_side("without", docker = 5, seed = 2)
  rows <- compare_sides(list(before, without))
  docker <- rows[rows$environment == "docker", ]
  expect_equal(c(docker$basis, docker$outcome), c(BY_VALUE, "slower"))
  expect_match(summarise_comparison(rows, list(before, without), 0.02)$text, "no native on both")
  # Native alone answers for itself.
  alone <- list(make_side("a", native = 10), make_side("b", native = 5, seed = 2))
  expect_equal(summarise_comparison(compare_sides(alone), alone, 0.02)$outcome, "difference")
  apart <- make_side("apart", native = 10, docker = 5, seed = 2, apart = TRUE)
  rows <- compare_sides(list(before, apart))
  expect_equal(get_outcomes(rows)[["docker"]], "no interval")
  expect_match(rows$why[rows$environment == "docker"], "fewer than 3 blocks")
})

test_that("each folder of a side is a session, even if all began at one moment", {
  side <- join_sessions("a", rep(list(make_session(native = 10, docker = 9)), 3))
  expect_true(has_several_sessions(list(side, side)))
})

test_that("several sessions have the variation between them in the interval", {
  # Docker's cost changes from one session to the next by 3 %; the truth is the same on both sides.
  make_sides <- function(i) {
    set.seed(i)
    effects <- exp(stats::rnorm(8, 0, 0.03))
    sessions <- lapply(1:8, function(number) {
      make_session(native = 10, docker = 9 * effects[[number]], seed = 10 * i + number)
    })
    list(join_sessions("a", sessions[1:4]), join_sessions("b", sessions[5:8]))
  }
  simulate <- function(i) {
    rows <- compare_sides(make_sides(i))
    row <- rows[rows$environment == "docker", ]
    c(covered = row$change_low < 1 && 1 < row$change_high, alarm = row$outcome == "slower",
      sessions = row$n_from == 24)
  }
  shares <- rowMeans(vapply(1:60, simulate, logical(3)))
  expect_gte(shares[["covered"]], 0.9)
  expect_lte(shares[["alarm"]], 0.05)
  expect_equal(shares[["sessions"]], 1)
})

test_that("the outcome says how much is known, and how many rows it rests on", {
  sides <- lapply(c("a", "b", "c"), function(name) list(name = name, values = list(session = 1)))
  summarise <- function(..., more = 40) {
    rows <- data.frame(from = c("a", "b", "a"), to = c("b", "c", "c"), environment = "docker",
                       emulated = FALSE, basis = BY_NATIVE, low_all = 0.9, outcome = c(...),
                       more = more)
    summarise_comparison(rows, sides, 0.02)
  }
  nothing <- summarise("undecided", "undecided", "no interval")
  expect_equal(nothing$outcome, "undecided")
  expect_match(nothing$text, "2 of 2 undecided: nothing.*about 40 more blocks on each.*1 more")
  expect_equal(nothing[c("compared", "undecided")], list(compared = 2, undecided = 2),
               ignore_attr = TRUE)
  # One row within the margin is not proof for the others.
  one <- summarise("undecided", "undecided", "equivalent", more = c(20, 210, NA))
  expect_equal(one$outcome, "undecided")
  expect_match(one$text, "2 of 3 undecided: about 20 more .* half of them, about 210 for all")
  expect_match(summarise("undecided", "undecided", "undecided", more = c(20, NA, NA))$text,
               "about 20 more .* for 1 of them, and the others lie at the margin")
  expect_equal(summarise("equivalent", "equivalent", "no interval")$outcome, "equivalent")
  without <- summarise("no interval", "no interval", "no interval")
  expect_equal(without$outcome, "nothing to compare")
  # A slow change shows between the first and the last side only.
  slow <- summarise("undecided", "equivalent", "slower")
  expect_equal(slow$outcome, "difference")
  expect_match(slow$text, "b is undecided in its only series.*c is equivalent in its only series")
  expect_match(slow$text, "with a: c is slower in 1 of 1")
})

test_that("emulated machines are compared with emulated ones only", {
  kvm <- make_side("kvm", native = 10, vm = 9)
  tcg <- make_side("tcg", native = 10, vm = 2, seed = 2, emulated = "vm")
  rows <- compare_sides(list(kvm, tcg))
  vm <- rows[rows$environment == "vm", ]
  expect_equal(vm$outcome, rep("no interval", 2))
  expect_equal(vm$why, c("measured on kvm alone", "measured on tcg alone"))
  tiny <- make_side("tiny", native = 1, scale = "tiny")
  expect_error(compare_sides(list(kvm, tiny)), "of one scale")
})

test_that("origins are compared item by item, and cells without parameters too", {
  sides <- list(make_side("one", native = 10), make_side("two", native = 10, seed = 2))
  origins <- list_provenance_differences(sides)
  expect_equal(origins$item, c("source.revision", "stream.elements"))
  expect_equal(origins$two, c("r 2", "2"))
  sides <- lapply(sides, function(side) {
    side$records[[1]]$parameters <- NULL
    side
  })
  expect_equal(compare_sides(sides)$differs, "")
})
