# Live auctions: the most users whose operations are answered in time, found by a search of which every probe
# is in the log; and latencies, rate and load of the first probe, which is the same everywhere.

# As published: the share of each operation in per cent, and the seconds within which 99 % of its answers must
# come at a cycle of 5 s (none for the one that waits for somebody's bid).
auction_mix <- c(HomePage = 0.93, Login = 0.93, GetActiveAuctions = 15.1, GetAuctionDetail = 7.59,
                 GetUserProfile = 0.93, UpdateUserProfile = 0.46, JoinAuction = 6.93, GetCurrentItem = 7.0,
                 GetNextBid = 39.75, PlaceBid = 2.8, LeaveAuction = 5.2, GetBidHistory = 0.46,
                 GetAttendanceHistory = 0.47, GetPurchaseHistory = 0.93, GetItemDetail = 7.59,
                 GetImageForItem = 0.4, AddItem = 1.38, AddImageForItem = 0.22, Logout = 0.93)
auction_limits <- local({
  limits <- auction_mix
  limits[] <- 2
  limits[c("Login", "JoinAuction", "GetCurrentItem", "Logout")] <- 3
  limits[c("GetImageForItem", "AddImageForItem")] <- 5
  limits[["GetNextBid"]] <- NA
  limits
})
auction_cycle <- 5

# Operations with fewer answers, of which 99 % cannot be told, are judged together.
auction_hundred <- 100
auction_rare <- "the rarer operations"

# By so much of a mean cycle operations may begin late on average, or the load itself has failed.
auction_latest <- 0.1

# The published tolerance of the mix, as a share of each operation's; of few ones chance allows for more.
auction_mix_tolerance <- 0.1

# Operations of a kind below which nothing is told of its latency.
auction_least <- 30

# The share of a processor from which on a load generator, one process, is taken for the bottleneck.
auction_busiest <- 0.9

# Of the books, what must be 0.
auction_broken <- c("adrift", "wrong", "unsold", "astray", "falling", "stolen")

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`load`: of the first probe, or of the highest that
#'   passed; `operation` of latencies)
#' @section Errors: broken_log
parse_auction <- function(lines, parameters) {
  sites <- asked(parameters, "systems")
  probe <- c("point", rep("operation", length(auction_mix)), "drove", "end")
  count <- sum(startsWith(lines, "{\"point\":"))
  expected <- c(rep("checked", sites), rep("opened", sites), rep(probe, count), rep("closed", sites),
                "found", "done")
  points <- read_sweep(lines, expected)
  log <- read_log(lines, checked = "checked", opened = "opened", point = "point", operation = "operation",
                  drove = "drove", end = "end", closed = "closed", found = "found")
  for (i in seq_len(sites)) {
    require_that(identical(unlist(log$checked[[i]]$operations), names(auction_mix)) &&
                   number(log$checked[[i]], "checked", zero = TRUE) == i - 1,
                 "not every operation was checked")
  }
  probes <- Map(auction_probe, points, seq_along(points),
                MoreArgs = list(sites = sites, parameters = parameters))
  found <- require_one(log, "found")
  require_auction_search(probes, found, parameters)
  require_auction_books(log, probes, found, sites, parameters)
  best <- Filter(function(probe) probe$passed && probe$users == found$found, probes)
  users <- if (found$found > 0) {
    measured(c("users", "bracket"), c("users", "%"),
             c(found$found, 100 * (found$fails - found$found) / found$found))
  }
  # What a probe of another mix came to is no number of these auctions.
  first <- if (probes[[1]]$mixed) probes[1]
  loads <- c(first = first, highest = best[length(best)])
  require_that(length(loads) > 0, "no probe has the published mix")
  all_measured(c(list(users), Map(auction_load, loads, names(loads)), lapply(first, auction_latencies)))
}

#' What a probe says of its load
#'
#' @param probe as from `auction_probe`
#' @param load what it stands for: first or highest
#' @return data frame as from `measured`
auction_load <- function(probe, load) {
  measured(c("rate", "driver_share"), c("operations/s", "%"), c(probe$rate, 100 * probe$driver),
           paste0("load=", load))
}

#' Latencies of a probe's operations, of those that were done often enough
#'
#' @param probe as from `auction_probe`
#' @return data frame as from `measured`, or NULL
auction_latencies <- function(probe) {
  told <- names(probe$count)[probe$count >= auction_least & !is.na(auction_limits)]
  if (length(told) > 0) {
    measured(rep(c("latency", "p99"), each = length(told)), "ms", c(probe$mean[told], probe$p99[told]),
             paste0("load=first;operation=", told))
  }
}

#' One probe, checked
#'
#' @param point as from `read_sweep`
#' @param i its number
#' @param sites how many sites there were
#' @param parameters the record's parameters
#' @return list: `users`, `passed`, `mixed` (whether its mix is the published one), `failing` (operations, or
#'   the load), `count`, `mean` and `p99` (ms) by operation, `rate` (operations/s), `driver` and `busiest`
#'   (shares), `bids`
#' @section Errors: broken_log
auction_probe <- function(point, i, sites, parameters) {
  head <- point$head
  users <- number(head, "users")
  what <- paste0("probe-", i)
  require_that(identical(head$point, what), "the probes are not in order")
  wanted <- list(sites = sites, auctions = ceiling(users / 15), cycle = parameters$cycle_seconds,
                 ramp = parameters$ramp_seconds, seconds = parameters$seconds)
  require_asked(head, wanted,
                c("sites", "auctions", "cycle", "ramp", "seconds"))
  objects <- read_json_lines(point$lines)
  operations <- objects[seq_along(auction_mix)]
  drove <- objects[[length(auction_mix) + 1]]
  require_that(identical(drove$drove, what) &&
                 identical(vapply(operations, `[[`, "", "operation"), names(auction_mix)),
               "the operations of ", what, " are not those of the auctions, in their order")
  count <- stats::setNames(numbers(operations, "count", zero = TRUE), names(auction_mix))
  cycle <- asked(parameters, "cycle_seconds")
  times <- Map(auction_times, operations, count, auction_limits * cycle / auction_cycle)
  names(times) <- names(auction_mix)
  read <- function(key) vapply(times, `[[`, 0, key)
  failing <- auction_failing(count, read("late"))
  lag <- number(drove, "late_seconds", zero = TRUE)
  failing <- c(failing, if (lag > auction_latest * cycle) "the load")
  require_that(identical(as.character(unlist(drove$failing)), failing) &&
                 identical(drove$passed, length(failing) == 0),
               what, " should ", if (length(failing) > 0) paste("fail by", failing[1]) else "pass",
               ", and the log says otherwise")
  # Users of a system that is overloaded wait for it, and do less of what comes after: it says that it failed.
  fault <- auction_mix_fault(count)
  require_that(length(failing) > 0 || is.null(fault),
               "the mix of ", what, " is not the published one: ", fault)
  load <- auction_driver(drove, count, users * sites, asked(parameters, "seconds"), cycle)
  c(list(users = users, passed = length(failing) == 0, mixed = is.null(fault), failing = failing,
         count = count, mean = read("mean"), p99 = read("p99"), bids = number(drove, "bids", zero = TRUE)),
    load)
}

#' The operations of which more than one answer in a hundred was late
#'
#' @param count,late numbers, by operation
#' @return names; those with few answers have one together
auction_failing <- function(count, late) {
  timed <- !is.na(auction_limits)
  rare <- timed & count < auction_hundred
  slow <- names(count)[timed & !rare & auction_hundred * late > count]
  too_many <- auction_hundred * sum(late[rare]) > sum(count[rare])
  # Nor does it pass where there was no answer at all.
  c(slow, if (too_many || all(count[timed] == 0)) auction_rare)
}

#' The latencies of an operation
#'
#' @param object of the log
#' @param count how often it was done
#' @param within seconds within which it should be answered; NA for one that nobody times
#' @return list: `late`, `mean` and `p99` in ms (NA where there are none)
#' @section Errors: broken_log
auction_times <- function(object, count, within) {
  if (is.na(within) || count == 0) {
    require_that(identical(names(object), c("operation", "count")),
                 object$operation, " should not be timed")
    return(list(late = 0, mean = NA_real_, p99 = NA_real_))
  }
  what <- object$operation
  late <- number(object, "late", zero = TRUE)
  mean <- number(object, "mean_ms")
  p99 <- number(object, "p99_ms")
  most <- number(object, "max_ms")
  require_close(paste("the time for", what), number(object, "within_seconds"), within)
  require_rounded(paste("the mean of", what), mean, 1000 * number(object, "sum_seconds") / count)
  longest <- 1000 * number(object, "p99_seconds")
  require_rounded(paste("the 99th percentile of", what), p99, longest, error = half_digit(longest, 9))
  require_that(late <= count && late == round(late), "more of ", what, " were late than there are")
  # A hundredth of the values is at least as large as the percentile, the others may be next to nothing.
  require_that(p99 <= most * 1.00001 && mean <= most * 1.00001 && p99 * ceiling(count / 100) <=
                 1000 * object$sum_seconds * 1.00001, "the latencies of ", what, " are not in order")
  # Late are those beyond the time: all of them together say which side of it percentile and maximum are on.
  over <- 1000 * within
  require_that((late > 0) == (most > over * 1.00001) || abs(most - over) <= over * 1e-5,
               "the number of ", what, " that were late does not go with the longest")
  above <- late > count - ceiling(0.99 * count)
  require_that(above == (p99 > over * 1.00001) || abs(p99 - over) <= over * 1e-5,
               "the number of ", what, " that were late does not go with the percentile")
  list(late = late, mean = mean, p99 = p99)
}

#' In what the mix of the operations that came is not the published one
#'
#' @param count numbers, by operation
#' @return text about the operation that is farthest from its share, or NULL
auction_mix_fault <- function(count) {
  expected <- sum(count) * auction_mix / sum(auction_mix)
  # Each operation comes as often as its share says, but for where users begin and end.
  most <- auction_mix_tolerance * expected + 4 * sqrt(expected) + 1
  worst <- which.max(abs(count - expected) - most)
  if (abs(count - expected)[[worst]] > most[[worst]]) {
    paste0(plain(count[[worst]]), " were ", names(count)[worst], ", and not ",
           plain(signif(expected[[worst]], 3)), " within ", plain(signif(most[[worst]], 2)))
  }
}

#' What the load generators did in a probe
#'
#' @param drove object of the log
#' @param count operations, by name
#' @param users of all sites
#' @param seconds of the probe
#' @param cycle seconds of the mean cycle
#' @return list: `rate`, `driver`, `busiest`
#' @section Errors: broken_log
auction_driver <- function(drove, count, users, seconds, cycle) {
  total <- sum(count)
  require_close("the number of operations", number(drove, "total"), total, tolerance = 0)
  require_asked(drove, list(seconds = seconds, came = users), c("seconds", "came"))
  require_rounded("the rate", number(drove, "rate"), total / seconds)
  # Each user begins one operation in a cycle at most, but for chance.
  cycles <- users * seconds / cycle
  require_that(total <= cycles + users + 6 * sqrt(cycles), plain(total), " operations are more than ",
               plain(users), " users begin in that time")
  spent <- number(drove, "cpu_seconds")
  require_rounded("the load generators' share", number(drove, "share"),
                  spent / (seconds * number(drove, "cpus")))
  busiest <- number(drove, "busiest_share")
  average <- spent / seconds / number(drove, "generators")
  require_that(busiest >= average * 0.99999 && busiest <= spent / seconds * 1.00001,
               "the busiest load generator cannot have taken ", plain(busiest), " of a processor")
  list(rate = drove$rate, driver = drove$share, busiest = busiest)
}

#' Checks that the probes are those of the search, and lead to what was found
#'
#' Its rule: `workloads/auction/search.py`.
#'
#' @param probes as from `auction_probe`
#' @param found object of the log
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_auction_search <- function(probes, found, parameters) {
  require_asked(found, list(probes = length(probes)), "probes")
  passed <- integer()
  fails <- NULL
  for (probe in probes) {
    wanted <- auction_next(passed, fails, parameters)
    require_that(identical(wanted, probe$users), "the search should ",
                 if (is.null(wanted)) "be at its end" else paste("go on with", plain(wanted), "users"),
                 ", and went on with ", plain(probe$users))
    if (probe$passed) {
      passed <- c(passed, probe$users)
    } else {
      fails <- min(fails, probe$users)
      passed <- passed[passed < fails]
    }
  }
  require_that(is.null(auction_next(passed, fails, parameters)), "the search is not at its end")
  best <- max(0, passed)
  require_close("the most users that passed", number(found, "found", zero = TRUE), best, tolerance = 0)
  require_that(!is.null(fails), "as many users pass as there are data for: let there be more (most_users)")
  require_close("the fewest users that failed", number(found, "fails"), fails, tolerance = 0)
  # The lowest failure bounds what was found: it must be the system's, and not that of what asks it.
  for (probe in Filter(function(probe) !probe$passed && probe$users == fails, probes)) {
    require_that(probe$busiest < auction_busiest, "the load generator was in the way with ", plain(fails),
                 " users: one of its processes was busy for ", plain(signif(100 * probe$busiest, 3)),
                 " % of the time")
  }
}

#' The number of users that is tried next
#'
#' @param passed numbers of users that passed, below all that failed
#' @param fails the lowest that failed, or NULL
#' @param parameters the record's parameters
#' @return one number, or NULL where the search is over
auction_next <- function(passed, fails, parameters) {
  most <- asked(parameters, "most_users")
  best <- max(0, passed)
  if (best == 0) {
    down <- if (is.null(fails)) asked(parameters, "start_users") else fails %/% 2
    return(if (down > 0) down)
  }
  if (is.null(fails) && best < most) {
    return(min(2 * best, most))
  }
  if (!is.null(fails) && fails - best > max(1, asked(parameters, "resolution") * best)) {
    return((fails + best) %/% 2)
  }
  if (sum(passed == best) <= asked(parameters, "confirmations")) best
}

#' Checks that the books balance: before, after, and with what the load generators were told
#'
#' @param log as from `read_log`
#' @param probes as from `auction_probe`
#' @param found object of the log
#' @param sites how many sites there were
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_auction_books <- function(log, probes, found, sites, parameters) {
  of_users <- asked(parameters, "most_users")
  open <- ceiling(of_users / 15)
  # What was loaded, and what the check of every operation added before the books were opened.
  loaded <- c(people = 2 * of_users, auctions = 2 * open, items = 20 * open + 1)
  first <- log$opened[[1]]
  same <- c("checksum", "server", "synchronous_commit", "fsync", "full_page_writes")
  for (kind in c("opened", "closed")) {
    for (i in seq_len(sites)) {
      book <- log[[kind]][[i]]
      require_close(paste("the number of what was", kind), number(book, kind, zero = TRUE), i - 1, 0)
      require_asked(book, list(users = of_users, data_seed = asked(parameters, "data_seed")),
                    c("users", "data_seed"))
      require_that(identical(book[same], first[same]), "the sites are not equal")
      for (key in auction_broken) {
        require_close(paste("what is", key, "in the books"), number(book, key, zero = TRUE), 0, 0)
      }
      for (key in c("people", "auctions", if (kind == "opened") "items")) {
        require_close(paste("the rows of", key), number(book, key), loaded[[key]], 0)
      }
      require_that(number(book, "accepted") <= number(book, "bids"), "more bids were accepted than placed")
    }
  }
  require_that(grepl("^[0-9a-f]{64}$", c(first$checksum, "")[[1]]), "the data have no checksum")
  for (key in c("synchronous_commit", "fsync", "full_page_writes")) {
    require_that(identical(first[[key]], "on"), key, " should be on")
  }
  grown <- sum(numbers(log$closed, "bids")) - sum(numbers(log$opened, "bids"))
  bids <- sum(vapply(probes, `[[`, 0, "bids"))
  require_close("the bids of all probes", number(found, "bids", zero = TRUE), bids, 0)
  require_close("new bids in the books", grown, bids, 0)
}
