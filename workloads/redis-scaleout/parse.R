# Redis at scale: requests per second of one server and of many, and who took the processors' time.

# The set-ups that there are.
scaleout_setups <- c("baseline", "half", "scale-out", "pinned")

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`setup=NAME;servers=N`)
#' @section Errors: broken_log
parse_redis_scaleout <- function(lines, parameters) {
  setups <- as.character(unlist(parameters$setups))
  require_that(length(setups) > 0 && all(setups %in% scaleout_setups),
               "the record does not say which set-ups were asked for")
  systems <- if (is.null(parameters$systems)) 1 else asked(parameters, "systems")
  servers <- length(unlist(parameters$ports)) * systems
  count <- ifelse(setups == "baseline", 1, servers)
  expected <- unlist(Map(function(setup, count) {
    c("point", "checked", rep("server", count), "total", "client", "end")
  }, setups, count))
  points <- read_sweep(lines, unname(c(expected, "done")))
  tables <- Map(scaleout_point, points, setups, count, MoreArgs = list(parameters = parameters))
  alone <- tables[[match("baseline", setups)]]$value[[1]]
  gained <- setups %in% c("scale-out", "pinned")
  rates <- vapply(tables, function(table) table$value[[1]], 0)
  speedup <- measured("speedup", "×", rates[gained] / alone, scaleout_factors(setups, count)[gained])
  all_measured(c(tables, list(speedup)))
}

#' The factors of set-ups
#'
#' @param setup their names
#' @param servers how many servers took part
#' @return texts
scaleout_factors <- function(setup, servers) {
  paste0("setup=", setup, ";servers=", plain(servers))
}

#' What was measured of one set-up
#'
#' @param point as from `read_sweep`
#' @param setup its name
#' @param count how many servers should take part
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors; the first is the throughput
#' @section Errors: broken_log
scaleout_point <- function(point, setup, count, parameters) {
  head <- point$head
  require_that(identical(head$point, setup), "the set-up should be ", setup)
  require_that(is.character(head$client) && startsWith(head$client, "redis-benchmark "),
               "this is not a log of redis-benchmark")
  connections <- asked(parameters, if (setup == "baseline") "baseline_connections" else "connections")
  if (setup == "half") {
    connections <- connections %/% 2
  }
  require_asked(head, list(servers = count, connections = connections), c("servers", "connections"))
  require_asked(head, parameters, c("pipeline", "data_bytes", "keys"))
  objects <- read_json_lines(point$lines)
  log <- split(objects, vapply(objects, function(object) names(object)[[1]], ""))
  check_kept(require_one(log, "checked"), count)
  total <- require_one(log, "total")
  rate <- scaleout_rate(log$server, total, asked(parameters, "seconds"))
  client <- require_one(log, "client")
  shares <- scaleout_shares(client, 4 * count)
  factors <- scaleout_factors(setup, count)
  known <- shares[shares > 0]
  all_measured(list(
    measured("throughput", "requests/s", rate, factors),
    measured("get_share", "%", number(total, "get_share"), factors),
    measured(names(known), rep("%", length(known)), unname(known), factors)
  ))
}

#' Checks that the keys that were written lie each in one server
#'
#' @param checked what was looked at before the load
#' @param count how many servers there are
#' @section Errors: broken_log
check_kept <- function(checked, count) {
  kept <- checked_numbers(checked$kept, "kept", zero = TRUE)
  require_that(length(kept) == count && sum(kept) == number(checked, "checked"),
               "the servers should hold each of ", plain(number(checked, "checked")), " keys once")
  require_that(all(kept > 0), "a server holds none of the keys, so that it would take no part")
}

#' The requests per second that all servers answered
#'
#' @param servers what each of them counted
#' @param total what the client made of it
#' @param seconds for which they should have been counted
#' @return number
#' @section Errors: broken_log, where numbers do not go together, a request failed, or the mix is not the one
#'   that was asked for
scaleout_rate <- function(servers, total, seconds) {
  took <- numbers(servers, "seconds")
  gets <- numbers(servers, "gets")
  sets <- numbers(servers, "sets")
  require_that(identical(numbers(servers, "server", zero = TRUE), as.double(seq_along(servers) - 1)),
               "the servers should be told of in their order")
  require_that(all(numbers(servers, "failed", zero = TRUE) == 0), "a server rejected or failed a request")
  require_that(all(took >= seconds), "a server was looked at for less than ", plain(seconds), " s")
  looked_up <- numbers(servers, "hits", zero = TRUE) + numbers(servers, "misses", zero = TRUE)
  require_that(all(looked_up == gets), "the servers looked up ", plain(sum(looked_up)), " keys for ",
               plain(sum(gets)), " requests")
  numbers(servers, "cpu_seconds", zero = TRUE)
  rates <- (gets + sets) / took
  require_rounded("a server's rate", numbers(servers, "rate"), rates)
  require_rounded("the rate of all", number(total, "total"), sum(rates))
  share <- 100 * sum(gets) / sum(gets + sets)
  require_rounded("the share of GET", number(total, "get_share"), share)
  require_that(abs(share - 75) <= 10, "the share of GET should be 75 %, and is ", plain(share), " %")
  number(total, "total")
}

#' Who took the processors' time at the client
#'
#' @param client what the client measured of itself
#' @param processes how many processes should have made the load
#' @return named numbers, per cent of the time of all its processors
#' @section Errors: broken_log
scaleout_shares <- function(client, processes) {
  require_asked(client, list(processes = processes), "processes")
  room <- number(client, "client") * number(client, "cpus")
  vapply(c(driver_share = "driver", proxy_share = "proxy"), function(who) {
    name <- paste0(who, "_share")
    share <- number(client, name, zero = TRUE)
    spent <- 100 * number(client, paste0(who, "_seconds"), zero = TRUE) / room
    if (spent > 0) require_rounded(name, share, spent) else require_that(share == 0, name, " should be 0")
    require_that(share <= 105, name, " is more than all of the time")
    share
  }, 0)
}
