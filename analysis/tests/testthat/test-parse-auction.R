auction_asked <- list(systems = 1, web_port = 17100, broker_ports = list(17200, 17300, 17400), processes = 2,
                      most_users = 6000, data_seed = 1, start_users = 150, resolution = 0.4,
                      confirmations = 0, cycle_seconds = 0.5, poll_seconds = 1.5, item_seconds = 3,
                      ramp_seconds = 1.5, seconds = 2.5, buffer_bytes = 67108864)

#' What the parser says of a log
parse_auctions <- function(lines, parameters = auction_asked) {
  parser_of("auction")(lines, parameters)
}

#' The parser refuses a log
refuses_auction <- function(lines, reason, parameters = auction_asked) {
  expect_error(parse_auctions(lines, parameters), reason, class = "broken_log")
}

#' The objects of a log with a key
auction_objects <- function(lines, key) {
  lapply(grep(paste0("^\\{\"", key, "\""), lines, value = TRUE), jsonlite::parse_json)
}

#' A log in which values of the nth object with a key are others
auction_changed <- function(lines, key, ..., nth = 1) {
  at <- grep(paste0("^\\{\"", key, "\""), lines)[nth]
  object <- jsonlite::parse_json(lines[at])
  object[...names()] <- list(...)
  lines[at] <- as.character(jsonlite::toJSON(object, auto_unbox = TRUE, digits = NA, null = "null"))
  lines
}

#' Checks that a log's values are those of its search's end, and of its first and its highest probe
expect_search_read <- function(lines) {
  values <- parse_auctions(lines)
  expect_named(values, c("metric", "unit", "value", "factors"))
  found <- auction_objects(lines, "found")[[1]]
  expect_gt(found$found, 0)
  expect_equal(values$value[values$metric == "users"], found$found)
  expect_equal(values$value[values$metric == "bracket"], 100 * (found$fails - found$found) / found$found)
  drove <- auction_objects(lines, "drove")
  users <- vapply(auction_objects(lines, "point"), `[[`, 0L, "users")
  highest <- which(users == found$found)
  expect_equal(values$value[values$metric == "rate"], c(drove[[1]]$rate, drove[[highest]]$rate))
  expect_equal(values$value[values$metric == "driver_share"],
               100 * c(drove[[1]]$share, drove[[highest]]$share))
  expect_equal(values$factors[values$metric == "rate"], c("load=first", "load=highest"))
  operations <- Filter(function(one) one$count >= 30 && !is.null(one$late),
                       auction_objects(lines, "operation")[1:19])
  told <- vapply(operations, `[[`, "", "operation")
  expect_true("GetActiveAuctions" %in% told)
  expect_equal(values$factors[values$metric == "latency"], paste0("load=first;operation=", told))
  expect_equal(values$value[values$metric == "latency"], vapply(operations, `[[`, 0, "mean_ms"))
  expect_equal(values$value[values$metric == "p99"], vapply(operations, `[[`, 0, "p99_ms"))
}

test_that("the search's end is read, and what the first and the highest probe came to", {
  expect_search_read(fixture("auction"))
  expect_search_read(fixture("auction", "docker"))
})

test_that("metrics and units are those of workload.yaml", {
  declared <- yaml::read_yaml(file.path(project, "workloads", "auction", "workload.yaml"))$metrics
  values <- parse_auctions(fixture("auction"))
  expect_setequal(values$metric, names(declared))
  expect_equal(values$unit, unname(vapply(declared[values$metric], `[[`, "", "unit")))
})

test_that("where not one user is served in time there is no number of users, and the rest is told", {
  # Everything is to be answered within a millisecond.
  asked <- updated(auction_asked, start_users = 2, cycle_seconds = 0.002, poll_seconds = 0.1,
                   most_users = 60)
  values <- parse_auctions(fixture("auction", "none"), asked)
  expect_false(any(values$metric %in% c("users", "bracket")))
  expect_setequal(values$metric[values$factors == "load=first"], c("rate", "driver_share"))
  expect_false(any(grepl("load=highest", values$factors)))
  # Without a probe of the published mix there is no number at all.
  lines <- fixture("auction", "none")
  operations <- auction_objects(lines, "operation")
  at <- which(vapply(operations, `[[`, "", "operation") == "GetNextBid")[1]
  total <- auction_objects(lines, "drove")[[1]]$total + 500
  more <- auction_changed(lines, "operation", count = operations[[at]]$count + 500, nth = at)
  more <- auction_changed(more, "drove", total = total, rate = signif(total / 2.5, 6), nth = 1)
  refuses_auction(more, "no probe has the published mix", asked)
})

test_that("the probes must be those of the search", {
  lines <- fixture("auction")
  refuses_auction(lines, "should go on with 50 users", updated(auction_asked, start_users = 50))
  refuses_auction(lines, "the search is not at its end", updated(auction_asked, resolution = 0.001))
  refuses_auction(lines, "the search is not at its end", updated(auction_asked, confirmations = 1))
  found <- auction_objects(lines, "found")[[1]]
  refuses_auction(auction_changed(lines, "found", found = found$found + 1), "the most users that passed")
  refuses_auction(auction_changed(lines, "found", fails = found$fails + 1), "the fewest users that failed")
  refuses_auction(auction_changed(lines, "found", probes = found$probes + 1), "probes should be")
})

test_that("a probe must have passed or failed as its numbers say", {
  lines <- fixture("auction")
  refuses_auction(auction_changed(lines, "drove", passed = FALSE, failing = list("Login")), "should pass")
  at <- which(vapply(auction_objects(lines, "operation"), `[[`, "", "operation") == "GetActiveAuctions")[1]
  one <- auction_objects(lines, "operation")[[at]]
  refuses_auction(auction_changed(lines, "operation", late = one$count, nth = at), "does not go with")
  refuses_auction(auction_changed(lines, "operation", late = one$count + 1, nth = at), "more of")
  late <- auction_changed(lines, "operation", late = one$count, max_ms = 9000, p99_ms = 5000,
                          p99_seconds = 5, mean_ms = 5000, sum_seconds = 5 * one$count, nth = at)
  refuses_auction(late, "should fail by (GetActiveAuctions|the rarer)")
  refuses_auction(auction_changed(lines, "drove", late_seconds = 0.06), "should fail by the load")
})

test_that("a load generator that was in the way of the lowest failure is refused, and of others is not", {
  lines <- fixture("auction")
  found <- auction_objects(lines, "found")[[1]]
  users <- vapply(auction_objects(lines, "point"), `[[`, 0L, "users")
  drove <- auction_objects(lines, "drove")
  busy <- function(nth) {
    one <- drove[[nth]]
    spent <- 0.95 * 2.5 * one$generators
    auction_changed(lines, "drove", busiest_share = 0.95, cpu_seconds = spent,
                    share = signif(spent / (2.5 * one$cpus), 6), nth = nth)
  }
  refuses_auction(busy(which(users == found$fails)), "the load generator was in the way")
  expect_equal(nrow(parse_auctions(busy(which(users == found$found)))), nrow(parse_auctions(lines)))
})

test_that("a run in which all pass for whom there are data is refused", {
  lines <- fixture("auction")
  found <- auction_objects(lines, "found")[[1]]
  users <- vapply(auction_objects(lines, "point"), `[[`, 0L, "users")
  # As if the first failure had been beyond what there are data for.
  passed <- vapply(auction_objects(lines, "drove"), `[[`, NA, "passed")
  highest <- max(users[seq_len(match(FALSE, passed) - 1)])
  expect_lte(highest, found$found)
  first <- seq_len(grep("^\\{\"end\"", lines)[which(users == highest)])
  all_pass <- c(lines[first], lines[grep("^\\{\"closed\"", lines):length(lines)])
  bids <- sum(vapply(auction_objects(all_pass, "drove"), `[[`, 0L, "bids"))
  opened <- auction_objects(lines, "opened")[[1]]
  all_pass <- auction_changed(all_pass, "closed", bids = opened$bids + bids)
  all_pass <- auction_changed(all_pass, "found", found = highest, fails = NULL, bids = bids,
                              probes = which(users == highest))
  for (kind in c("opened", "closed")) {
    open <- ceiling(highest / 15)
    all_pass <- auction_changed(all_pass, kind, users = highest, people = 2 * highest,
                                auctions = 2 * open, items = 20 * open + 1)
  }
  refuses_auction(all_pass, "let there be more \\(most_users\\)",
                  updated(auction_asked, most_users = highest))
})

test_that("a first probe that fails in another mix gives no numbers, and the search is read", {
  # Of gVisor, for which as many users were by far too many.
  asked <- updated(auction_asked, start_users = 200, resolution = 0.5, seconds = 2)
  values <- parse_auctions(fixture("auction", "gvisor"), asked)
  expect_equal(values$value[values$metric == "users"], 75)
  expect_false(any(startsWith(values$factors, "load=first")))
  expect_setequal(values$metric[values$factors == "load=highest"], c("rate", "driver_share"))
})

test_that("a mix that is not the published one is refused, but of a probe that fails", {
  lines <- fixture("auction")
  # Fewer of the operation that nobody times, in the nth probe.
  fewer <- function(probe, by) {
    operations <- auction_objects(lines, "operation")
    at <- which(vapply(operations, `[[`, "", "operation") == "GetNextBid")[probe]
    total <- auction_objects(lines, "drove")[[probe]]$total - by
    moved <- auction_changed(lines, "operation", count = operations[[at]]$count - by, nth = at)
    auction_changed(moved, "drove", total = total, rate = signif(total / 2.5, 6), nth = probe)
  }
  passed <- vapply(auction_objects(lines, "drove"), `[[`, TRUE, "passed")
  refuses_auction(fewer(1, 120), "the mix of probe-1 is not the published one")
  last <- max(which(passed))
  refuses_auction(fewer(last, 300), paste0("the mix of probe-", last, " is not the published one"))
  expect_equal(parse_auctions(fewer(which(!passed)[1], 400)), parse_auctions(lines))
})

test_that("the books must balance", {
  lines <- fixture("auction")
  closed <- auction_objects(lines, "closed")[[1]]
  refuses_auction(auction_changed(lines, "closed", bids = closed$bids - 1), "new bids in the books")
  refuses_auction(auction_changed(lines, "closed", adrift = 1), "adrift in the books")
  refuses_auction(auction_changed(lines, "closed", adrift = -1), "adrift should be")
  refuses_auction(auction_changed(lines, "opened", wrong = 1), "wrong in the books")
  refuses_auction(auction_changed(lines, "closed", people = closed$people + 1), "the rows of people")
  refuses_auction(auction_changed(lines, "closed", synchronous_commit = "off"), "the sites are not equal")
  refuses_auction(lines, "data_seed should be 2", updated(auction_asked, data_seed = 2))
  off <- auction_changed(auction_changed(lines, "closed", fsync = "off"), "opened", fsync = "off")
  refuses_auction(off, "fsync should be on")
})

test_that("what was not checked, or is of another run, is refused", {
  lines <- fixture("auction")
  refuses_auction(auction_changed(lines, "checked", operations = list("HomePage")), "not every operation")
  refuses_auction(lines, "seconds should be 3", updated(auction_asked, seconds = 3))
  refuses_auction(lines, "cycle should be 5", updated(auction_asked, cycle_seconds = 5))
  drove <- auction_objects(lines, "drove")[[1]]
  refuses_auction(auction_changed(lines, "drove", came = drove$came - 1), "came should be")
})

test_that("numbers that do not go together are refused", {
  lines <- fixture("auction")
  at <- which(vapply(auction_objects(lines, "operation"), `[[`, "", "operation") == "GetItemDetail")[1]
  one <- auction_objects(lines, "operation")[[at]]
  refuses_auction(auction_changed(lines, "operation", mean_ms = one$mean_ms * 1.1, nth = at), "the mean of")
  refuses_auction(auction_changed(lines, "operation", p99_ms = one$p99_ms * 1.1, nth = at), "99th percentile")
  refuses_auction(auction_changed(lines, "operation", max_ms = one$mean_ms / 2, nth = at), "not in order")
  refuses_auction(auction_changed(lines, "operation", within_seconds = 1, nth = at), "the time for")
  refuses_auction(auction_changed(lines, "operation", count = one$count + 1, nth = at), "the mean of")
  refuses_auction(auction_changed(lines, "drove", rate = 1), "the rate")
  refuses_auction(auction_changed(lines, "drove", share = 0.5), "the load generators' share")
})

test_that("a log is whole or yields nothing", {
  expect_all_or_nothing("auction", fixture("auction"), auction_asked)
})

test_that("a digit of which a value is made cannot be another", {
  lines <- fixture("auction")
  right <- parse_auctions(lines)
  at <- grep("^\\{\"(point|operation|drove|found)\"", lines)
  for (i in some_of(at)) {
    for (place in some_of(gregexpr("[0-9]", lines[i])[[1]])) {
      other <- lines
      substr(other[i], place, place) <- as.character((as.integer(substr(lines[i], place, place)) + 1) %% 10)
      found <- tryCatch(parse_auctions(other), broken_log = function(e) right)
      expect_equal(found, right)
    }
  }
})

test_that("the parser searches as the load generator does", {
  environment <- new.env(parent = globalenv())
  sys.source(file.path(project, "workloads", "auction", "parse.R"), environment)
  environment$asked <- function(parameters, key) parameters[[key]]
  searched <- function(served, confirmations) {
    parameters <- list(most_users = 6000, start_users = 100, resolution = 0.02, confirmations = confirmations)
    passed <- numeric()
    fails <- NULL
    tried <- numeric()
    while (!is.null(users <- environment$auction_next(passed, fails, parameters))) {
      tried <- c(tried, users)
      if (users <= served) passed <- c(passed, users) else fails <- min(fails, users)
    }
    list(tried = tried, found = max(0, passed), fails = fails)
  }
  for (served in c(0, 1, 2, 30, 100, 250, 5999)) {
    found <- searched(served, 2)
    expect_true(found$found <= served && found$fails > served)
    expect_lte(found$fails - found$found, max(1, 0.02 * found$found))
    expect_equal(sum(found$tried == found$found), if (served > 0) 3 else 0)
  }
  expect_equal(searched(30, 0)$tried, c(100, 50, 25, 37, 31, 28, 29, 30))
})
