# The DVD shop: orders per minute, the share of them that stood, and the response times of its pages, by the
# number of customers at each shop.

# What a load generator tells of, in the order in which it does; an order is all of its pages together.
dvdstore_operations <- c("order", "login", "new", "browse", "purchase")

# The share of a processor from which on a load generator, one process, is taken for the bottleneck.
dvdstore_busy <- 0.9

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`customers` at each shop; `operation` of response times)
#' @section Errors: broken_log
parse_dvdstore <- function(lines, parameters) {
  threads <- as.double(unlist(parameters$threads))
  require_that(length(threads) > 0, "the record does not say which points were asked for")
  shops <- length(unlist(parameters$ports)) * asked(parameters, "systems")
  point <- c("point", "drove", rep("operation", length(dvdstore_operations)), "end")
  expected <- c(rep("opened", shops), rep(point, length(threads)), rep("closed", shops), "done")
  points <- read_sweep(lines, expected)
  points <- Map(read_dvdstore_point, points, threads, MoreArgs = list(shops = shops, parameters = parameters))
  require_dvdstore_books(lines, shops, lapply(points, `[[`, "drove"), parameters)
  all_measured(lapply(points, `[[`, "measured"))
}

#' What was measured at one point
#'
#' @param point as from `read_sweep`
#' @param threads,shops what was asked for
#' @param parameters the record's parameters
#' @return list of `drove`, the object that tells how much was done, and `measured`
#' @section Errors: broken_log
read_dvdstore_point <- function(point, threads, shops, parameters) {
  head <- point$head
  require_asked(head, list(threads = threads, shops = shops), c("threads", "shops"))
  for (key in c("ramp", "warmup", "seconds", "think")) {
    name <- if (key == "seconds") key else paste0(key, "_seconds")
    require_close(key, number(head, key, zero = TRUE), asked(parameters, name), tolerance = 0)
  }
  require_that(identical(head$size, parameters$size) &&
                 identical(head$point, paste0("threads-", plain(threads))),
               "the point is not the one that was asked for")
  objects <- read_json_lines(point$lines)
  drove <- objects[[1]]
  operations <- objects[-1]
  require_that(identical(drove$drove, head$point) &&
                 identical(lapply(operations, `[[`, "operation"), as.list(dvdstore_operations)) &&
                 all(vapply(operations, function(one) identical(one$of, head$point), NA)),
               "there should be one line for each operation of ", head$point)
  # Of a short run perhaps nobody was new.
  operations <- operations[numbers(operations, "count", zero = TRUE) > 0]
  names(operations) <- vapply(operations, `[[`, "", "operation")
  times <- vapply(operations, read_dvdstore_times, numeric(6))
  seconds <- asked(parameters, "seconds")
  require_dvdstore_counts(drove, times, seconds, threads * shops, asked(parameters, "think_seconds"))
  busiest <- number(drove, "busiest_cpu_seconds") / seconds
  require_that(busiest < dvdstore_busy, "a load generator was busy for ", plain(round(100 * busiest)),
               " % of the time, so that it and not the shop was measured: ",
               "let there be fewer customers at each shop, and more shops")
  along <- paste0("customers=", plain(threads))
  rounds <- number(drove, "rounds")
  driver <- number(drove, "driver_percent")
  require_rounded("the load generators' share", driver,
                  100 * number(drove, "driver_cpu_seconds") / (number(drove, "cpus") * seconds))
  list(drove = drove, measured = all_measured(list(
    measured(c("throughput", "committed", "driver_share"), c("orders/min", "%", "%"),
             c(60 * rounds / seconds, 100 * number(drove, "orders") / rounds, driver), along),
    measured(rep(c("latency", "p95"), each = ncol(times)), "ms", c(times["mean_ms", ], times["p95_ms", ]),
             paste0("operation=", colnames(times), ";", along))
  )))
}

#' The times of an operation
#'
#' @param object of the log
#' @return numbers: `count`, `mean_ms`, `p95_ms`, `max_ms`, `sum_ms`, `p95_us`
#' @section Errors: broken_log, where they do not agree
read_dvdstore_times <- function(object) {
  keys <- c("count", "mean_ms", "p95_ms", "max_ms", "sum_ms", "p95_us")
  found <- stats::setNames(checked_numbers(object[keys], keys), keys)
  what <- object$operation
  require_rounded(paste("the mean of", what), found[["mean_ms"]], found[["sum_ms"]] / found[["count"]])
  # Both are of one class, which has three digits.
  require_close(paste("the percentile of", what), found[["p95_us"]], 1000 * found[["p95_ms"]], 1e-12)
  require_that(found[["mean_ms"]] <= found[["max_ms"]] && found[["p95_ms"]] <= 1.006 * found[["max_ms"]],
               "the times of ", what, " are not in order")
  found
}

#' Checks that what was counted and timed at a point agrees
#'
#' @param drove the object that tells how much was done
#' @param times matrix: a row for each of `read_dvdstore_times`, a column for each operation
#' @param seconds for which it was measured
#' @param users how many customers there were
#' @param think mean seconds between two orders of one
#' @section Errors: broken_log
require_dvdstore_counts <- function(drove, times, seconds, users, think) {
  count <- function(key) number(drove, key, zero = TRUE)
  timed <- function(row, ...) sum(times[row, intersect(colnames(times), c(...))])
  rounds <- number(drove, "rounds")
  require_close("rounds", rounds, count("orders") + count("rolled_back"), 0)
  require_close("orders_per_minute", number(drove, "orders_per_minute"), 60 * rounds / seconds, 1e-9)
  require_close("the timed orders", timed("count", "order"), rounds, 0)
  require_close("the timed purchases", timed("count", "purchase"), rounds, 0)
  require_close("the timed searches", timed("count", "browse"), count("searches"), 0)
  # The first page of an order may be of another time than the last one, which counts.
  require_that(abs(timed("count", "login", "new") - rounds) <= users,
               "orders do not go with those who came in")
  require_that(count("found") <= count("searches"), "more was found than looked for")
  for (key in c("orders", "rolled_back")) {
    require_that(count(paste0("all_", key)) >= count(key), "fewer ", key, " in all than at the point")
  }
  longest <- times["max_ms", "order"]
  spent <- timed("sum_ms", "order")
  parts <- timed("sum_ms", "login", "new", "browse", "purchase")
  require_that(abs(spent - parts) <= 2 * users * longest, "the pages' times are not those of the orders")
  # Each customer is in one order at a time, and always in one where nobody thinks.
  least <- if (think > 0) 0 else 0.5 * users * (1000 * seconds - longest)
  require_that(spent <= users * (1000 * seconds + longest) && spent >= least,
               "the times do not go together with ", plain(users), " customers for ", plain(seconds), " s")
  require_that(number(drove, "busiest_cpu_seconds") <= number(drove, "driver_cpu_seconds") * (1 + 1e-5),
               "one load generator took more of the processors than all")
}

#' Checks the shops' books against what the load generators say that they did
#'
#' @param lines the log's lines
#' @param shops number of shops
#' @param drove the points' objects that tell how much was done
#' @param parameters the record's parameters
#' @section Errors: broken_log
require_dvdstore_books <- function(lines, shops, drove, parameters) {
  books <- function(key) {
    found <- read_json_lines(lines[startsWith(lines, paste0("{\"", key, "\":"))])
    require_that(identical(as.integer(numbers(found, key, zero = TRUE)), seq_len(shops) - 1L),
                 "the books of each shop should be ", key, " once, in order")
    found
  }
  opened <- books("opened")
  closed <- books("closed")
  same <- c("size", "data_seed", "checksum", "server", "synchronous_commit", "fsync", "full_page_writes",
            "php", "opcache")
  for (one in c(opened, closed)) {
    require_that(identical(one[same], opened[[1]][same]), "the shops are not equal")
    for (key in c("torn", "lost", "adrift")) {
      require_close(paste("rows that are", key), number(one, key, zero = TRUE), 0, 0)
    }
    number(one, "least_stock", zero = TRUE)
  }
  first <- opened[[1]]
  require_that(identical(first$size, parameters$size), "the data are not of the size that was asked for")
  require_asked(first, parameters, "data_seed")
  require_that(grepl("^[0-9a-f]{64}$", c(first$checksum, "")[[1]]), "the data have no checksum")
  for (key in c("synchronous_commit", "fsync", "full_page_writes", "opcache")) {
    require_that(identical(first[[key]], "on"), key, " should be on")
  }
  for (one in opened) {
    require_that(number(one, "checked") >= 9, "not every operation was checked")
  }
  grown <- function(key) sum(numbers(closed, key)) - sum(numbers(opened, key))
  done <- function(key) sum(numbers(drove, paste0("all_", key), zero = TRUE))
  require_close("new orders in the books", grown("new_orders"), done("orders"), 0)
  require_close("orders in the books", grown("orders"), done("orders"), 0)
  require_close("customers in the books", grown("customers"), done("customers"), 0)
  require_close("cents in the books", grown("new_cents"), done("cents"), 0)
}
