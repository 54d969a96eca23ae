cloudstone_asked <- list(systems = 1, web_ports = list(18080), geocoder_ports = list(18280), users = list(25),
                         loaded_users = 25, cycle_seconds = 0.5, ramp_seconds = 2, seconds = 20,
                         mix_points = 0.5,
                         workers = 4, children = 16, buffer_bytes = 33554432, log_bytes = 8388608)

#' What the parser says of a log
parse_stone <- function(lines, parameters = cloudstone_asked) {
  parser_of("cloudstone")(lines, parameters)
}

#' The parser refuses a log
refuses <- function(lines, reason, parameters = cloudstone_asked) {
  expect_error(parse_stone(lines, parameters), reason, class = "broken_log")
}

#' A log in which the values of the first object with a key are others
with_changed <- function(lines, key, ...) {
  at <- grep(paste0("^\\{\"", key, "\""), lines)[1]
  object <- jsonlite::parse_json(lines[at])
  for (name in ...names()) {
    object[[name]] <- list(...)[[name]]
  }
  lines[at] <- as.character(jsonlite::toJSON(object, auto_unbox = TRUE, digits = NA))
  lines
}

#' A log in which operations were counted otherwise, all that follows from their numbers with them
with_counts <- function(lines, count, seconds = 20) {
  for (operation in names(count)) {
    at <- grep(paste0("^\\{\"operation\": ?\"", operation, "\""), lines)
    object <- jsonlite::parse_json(lines[at])
    object$sum_seconds <- signif(object$sum_seconds / object$count * count[[operation]], 9)
    object$count <- count[[operation]]
    object$mean_ms <- signif(1000 * object$sum_seconds / object$count, 6)
    lines[at] <- as.character(jsonlite::toJSON(object, auto_unbox = TRUE, digits = NA))
  }
  objects <- lapply(grep("^\\{\"operation\"", lines, value = TRUE), jsonlite::parse_json)
  total <- sum(vapply(objects, `[[`, 0L, "count"))
  with_changed(lines, "total", total = total, rate = signif(total / seconds, 6))
}

#' The objects of operations, by name
operations_of <- function(lines) {
  objects <- lapply(grep("^\\{\"operation\"", lines, value = TRUE), jsonlite::parse_json)
  stats::setNames(objects, vapply(objects, `[[`, "", "operation"))
}

test_that("a point is read: latencies of what was done often enough, and what was spent", {
  lines <- fixture("cloudstone")
  values <- parse_stone(lines)
  expect_named(values, c("metric", "unit", "value", "factors"))
  operations <- operations_of(lines)
  told <- names(Filter(function(one) one$count >= 30, operations))
  expect_equal(values$metric, c(rep(c("latency", "p90"), each = length(told)), "strain", "rate", "cpu",
                                "driver_share"))
  expect_equal(values$factors[seq_along(told)], paste0("operation=", told, ";users=25"))
  expect_equal(values$value[values$metric == "latency"],
               unname(vapply(operations[told], `[[`, 0, "mean_ms")))
  expect_equal(values$value[values$metric == "p90"],
               unname(vapply(operations[told], `[[`, 0, "p90_ms")))
  expect_equal(values$value[values$metric == "strain"],
               max(vapply(operations[told], `[[`, 0, "mean_ms") / 250) * 100)
  observed <- lapply(grep("^\\{\"observed\"", lines, value = TRUE), jsonlite::parse_json)
  spent <- diff(vapply(observed, `[[`, 0, "busy_seconds")) / diff(vapply(observed, `[[`, 0, "seconds"))
  expect_equal(values$value[values$metric == "cpu"], 100 * spent / observed[[1]]$cpus)
  expect_true("TagSearch" %in% told)
  expect_false("AddPerson" %in% told)
})

test_that("metrics and units are those of workload.yaml", {
  declared <- yaml::read_yaml(file.path(project, "workloads", "cloudstone", "workload.yaml"))$metrics
  values <- parse_stone(fixture("cloudstone"))
  expect_setequal(values$metric, names(declared))
  expect_equal(values$unit, unname(vapply(declared[values$metric], `[[`, "", "unit")))
})

test_that("thresholds are those of each operation, and slow ones are told", {
  lines <- fixture("cloudstone")
  count <- operations_of(lines)$HomePage$count
  slow <- with_changed(lines, "operation", sum_seconds = count, mean_ms = 1000, p90_ms = 1200,
                       p90_seconds = 1.2, max_ms = 1500)
  values <- parse_stone(slow)
  expect_equal(values$value[values$metric == "strain"], 400)
})

test_that("a run whose mix is not the published one is refused", {
  lines <- fixture("cloudstone")
  count <- vapply(operations_of(lines), `[[`, 0L, "count")
  refuses(with_counts(lines, c(HomePage = count[["HomePage"]] + 60, TagSearch = count[["TagSearch"]] - 60)),
          "the mix is not the published one")
  few <- with_counts(lines, c(HomePage = count[["HomePage"]] + 5, TagSearch = count[["TagSearch"]] - 5))
  expect_equal(nrow(parse_stone(few)), nrow(parse_stone(lines)))
  refuses(lines, "the mix is not the published one", updated(cloudstone_asked, mix_points = 0.001))
})

test_that("a load generator that was in the way is refused", {
  lines <- fixture("cloudstone")
  driver <- jsonlite::parse_json(grep("^\\{\"driver\"", lines, value = TRUE))
  busy <- with_changed(lines, "driver", cpu_seconds = 19, share = signif(19 / 20 / driver$cpus, 6),
                       busiest_share = 0.95)
  refuses(busy, "one of its processes was busy for 95 % of the time")
  refuses(with_changed(lines, "driver", late_mean_ms = 101), "operations began 101 ms late")
  refuses(with_changed(lines, "driver", busiest_share = driver$busiest_share / 2), "cannot have taken")
})

test_that("what the tables hold is held against what was loaded and added", {
  lines <- fixture("cloudstone")
  loaded <- jsonlite::parse_json(lines[1])
  left <- jsonlite::parse_json(grep("^\\{\"left\"", lines, value = TRUE))
  refuses(with_changed(lines, "loaded", person = loaded$person - 1), "the rows of person should be 2500")
  refuses(with_changed(lines, "left", person = left$person - 1), "more rows of person")
  refuses(with_changed(lines, "left", socialevent = left$socialevent + 1), "more rows of socialevent")
  refuses(with_changed(lines, "left", broken = 1), "rows that break a rule")
  refuses(with_changed(lines, "left", person_person = left$person_person + 1), "the rows of person_person")
  refuses(lines, "more users than data were made for", updated(cloudstone_asked, users = list(26)))
})

test_that("a run in which nothing was done often enough is refused", {
  lines <- fixture("cloudstone")
  count <- vapply(operations_of(lines), `[[`, 0L, "count")
  few <- pmax(1L, as.integer(round(count * 60 / sum(count))))
  refuses(with_counts(lines, stats::setNames(few, names(count))), "no operation was done 30 times",
          updated(cloudstone_asked, mix_points = 5))
})

test_that("an operation that was not looked at is noticed", {
  lines <- fixture("cloudstone")
  refuses(with_changed(lines, "checked", operations = list("HomePage", "Login")), "not every operation")
  refuses(lines[-grep("^\\{\"checked\"", lines)], "should be checked")
})

test_that("numbers that do not go together are refused", {
  lines <- fixture("cloudstone")
  home <- operations_of(lines)$HomePage
  refuses(with_changed(lines, "operation", count = home$count + 1), "the number of operations")
  refuses(with_changed(lines, "operation", mean_ms = home$mean_ms * 1.1), "the mean of HomePage")
  refuses(with_changed(lines, "operation", p90_ms = home$p90_ms * 1.1), "the 90th percentile of HomePage")
  refuses(with_changed(lines, "operation", max_ms = home$mean_ms / 2), "not in order")
  refuses(with_changed(lines, "total", rate = 1), "the rate")
  refuses(with_changed(lines, "point", users = 24), "users should be 25")
  refuses(lines, "seconds should be 30", updated(cloudstone_asked, seconds = 30))
  long <- updated(cloudstone_asked, cycle_seconds = 5)
  refuses(with_changed(lines, "point", cycle_seconds = 5), "more than 25 users begin", long)
})

test_that("a log is whole or yields nothing", {
  expect_all_or_nothing("cloudstone", fixture("cloudstone"), cloudstone_asked)
})

test_that("a digit of which a value is made cannot be another", {
  lines <- fixture("cloudstone")
  right <- parse_stone(lines)
  at <- grep("^\\{\"(operation|total|driver)\"", lines)
  for (i in some_of(at)) {
    for (place in gregexpr("[0-9]", lines[i])[[1]]) {
      other <- lines
      substr(other[i], place, place) <- as.character((as.integer(substr(lines[i], place, place)) + 1) %% 10)
      found <- tryCatch(parse_stone(other), broken_log = function(e) right)
      expect_equal(found, right)
    }
  }
})

test_that("several instances are read together", {
  lines <- fixture("cloudstone")
  again <- function(lines, key) {
    at <- grep(paste0("^\\{\"", key, "\""), lines)
    append(lines, sub("^(\\{\"[a-z]+\": )0", "\\11", lines[at]), at)
  }
  two <- again(again(again(lines, "loaded"), "checked"), "left")
  two <- with_changed(two, "left", person = 2501, socialevent = 20)
  two <- with_changed(two, "point", instances = 2)
  together <- parse_stone(lines)
  together$factors <- paste0(together$factors, ";instances=2")
  expect_equal(parse_stone(two, updated(cloudstone_asked, web_ports = list(18080, 18081))), together)
  expect_equal(parse_stone(two, updated(cloudstone_asked, systems = 2)), together)
  refuses(lines, "should be loaded", updated(cloudstone_asked, systems = 2))
})

test_that("a long run tells of all seven operations, whose mix is within half a point of the published one", {
  lines <- fixture("cloudstone", "long")
  count <- vapply(operations_of(lines), `[[`, 0L, "count")
  expect_gt(sum(count), 10000)
  published <- c(26.14, 10.22, 33.37, 24.71, 2.65, 0.86, 2.04)
  expect_lt(max(abs(100 * count / sum(count) - published)), 0.5)
  values <- parse_stone(lines, updated(cloudstone_asked, cycle_seconds = 0.4, ramp_seconds = 4,
                                       seconds = 230))
  expect_equal(sum(values$metric == "latency"), 7)
  expect_equal(sum(values$metric == "p90"), 7)
})
