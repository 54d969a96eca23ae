# A social-events application under users who walk CloudStone's matrix: latency of each operation, the share
# of the thresholds that it uses up, rate, and what the host's and the load generator's processors spent.

# As published (1,500 users): the share of each operation in per cent, and its threshold for the mean in ms.
cloudstone_mix <- c(HomePage = 26.14, Login = 10.22, TagSearch = 33.37, EventDetail = 24.71,
                    PersonDetail = 2.65, AddPerson = 0.86, AddEvent = 2.04)
cloudstone_thresholds <- c(HomePage = 250, Login = 250, TagSearch = 250, EventDetail = 250,
                           PersonDetail = 500, AddPerson = 500, AddEvent = 500)

# Operations of a kind below which nothing is told of its latency.
cloudstone_least <- 30

# What the check of every operation adds to each instance.
cloudstone_check <- c(person = 1, socialevent = 2)

# The load generator is in the way where one of its processes uses so much of a processor, or where operations
# begin later than at the time drawn for them, by this share of the mean cycle.
cloudstone_busiest <- 0.9
cloudstone_late <- 0.2

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`users`, `operation` for latencies, and `instances` where
#'   there are several)
#' @section Errors: broken_log
parse_cloudstone <- function(lines, parameters) {
  users <- as.double(unlist(parameters$users))
  instances <- length(unlist(parameters$web_ports)) * asked(parameters, "systems")
  require_that(length(users) > 0 && instances > 0,
               "the record does not say which users and instances were asked for")
  point <- c("observed", "point", rep("operation", length(cloudstone_mix)), "total", "driver", "end",
             "observed")
  expected <- c(rep("loaded", instances), rep("checked", instances), rep(point, length(users)),
                rep("left", instances), "done")
  points <- read_sweep(lines, expected)
  log <- read_log(lines, loaded = "loaded", checked = "checked", observed = "observed", point = "point",
                  operation = "operation", total = "total", driver = "driver", end = "end", left = "left")
  require_cloudstone_rows(log, parameters, instances)
  all_measured(Map(function(point, users, i) {
    found <- cloudstone_point(point, users, instances, parameters)
    cpu <- cloudstone_cpu(log$observed[2 * i - 1:0], asked(parameters, "seconds"))
    told <- names(cloudstone_mix)[found$count >= cloudstone_least]
    require_that(length(told) > 0, "no operation was done ", cloudstone_least, " times with ", plain(users),
                 " users")
    strain <- found$mean[told] / cloudstone_thresholds[told]
    load <- paste0("users=", plain(users), if (instances > 1) paste0(";instances=", instances))
    each <- paste0("operation=", told, ";", load)
    measured(c(rep(c("latency", "p90"), each = length(told)), "strain", "rate", "cpu", "driver_share"),
             c(rep("ms", 2 * length(told)), "%", "operations/s", "%", "%"),
             c(found$mean[told], found$p90[told], 100 * max(strain), found$rate, 100 * cpu,
               100 * found$driver),
             c(each, each, rep(load, 4)))
  }, points, users, seq_along(points)))
}

#' Checks that the tables held what was to be loaded, that every operation was looked at, and that nothing
#' was lost
#'
#' @param log as from `read_log`
#' @param parameters the record's parameters
#' @param instances how many applications there were
#' @section Errors: broken_log
require_cloudstone_rows <- function(log, parameters, instances) {
  of_users <- max(asked(parameters, "loaded_users"), 25)
  require_that(max(unlist(parameters$users)) <= of_users, "more users than data were made for")
  tags <- round(5000 * tanh(of_users / 20000))
  loaded <- c(person = 100 * of_users, socialeventtag = tags, socialevent = 3 * tags,
              address = 100 * of_users + 3 * tags)
  for (i in seq_len(instances)) {
    for (kind in c("loaded", "checked", "left")) {
      require_close(paste("the number of what was", kind), number(log[[kind]][[i]], kind, zero = TRUE), i - 1,
                    0)
    }
    for (table in names(loaded)) {
      require_close(paste("the rows of", table), number(log$loaded[[i]], table), loaded[[table]],
                    tolerance = 0)
    }
    require_that(identical(unlist(log$checked[[i]]$operations), names(cloudstone_mix)),
                 "not every operation was looked at")
    for (kind in c("loaded", "left")) {
      require_close("rows that break a rule", number(log[[kind]][[i]], "broken", zero = TRUE), 0,
                    tolerance = 0)
    }
    for (table in c("person_person", "comments_rating")) {
      require_close(paste("the rows of", table), number(log$left[[i]], table), number(log$loaded[[i]], table),
                    0)
    }
  }
  # A person or an event that was added is there; nothing else is.
  for (table in names(cloudstone_check)) {
    added <- sum(numbers(log$left, table)) - sum(numbers(log$loaded, table)) -
      instances * cloudstone_check[[table]]
    operation <- c(person = "AddPerson", socialevent = "AddEvent")[[table]]
    done <- sum(numbers(lapply(log$total, `[[`, "added"), operation, zero = TRUE))
    require_that(added == done, plain(done), " times ", operation, " left ", plain(added), " more rows of ",
                 table)
  }
}

#' The numbers of one point, checked
#'
#' @param point as from `read_points`
#' @param users of each instance
#' @param instances how many applications there were
#' @param parameters the record's parameters
#' @return list: `count`, `mean` and `p90` (ms), by operation; `rate` (operations/s); `driver` (share)
#' @section Errors: broken_log
cloudstone_point <- function(point, users, instances, parameters) {
  require_asked(point$head, list(users = users, instances = instances), c("users", "instances"))
  require_asked(point$head, parameters, "cycle_seconds")
  require_that(identical(point$head$point, paste0("users-", plain(users))),
               "the point is that of other users")
  objects <- read_json_lines(point$lines)
  operations <- objects[seq_along(cloudstone_mix)]
  total <- objects[[length(cloudstone_mix) + 1]]
  driver <- objects[[length(cloudstone_mix) + 2]]
  require_that(identical(vapply(operations, `[[`, "", "operation"), names(cloudstone_mix)),
               "the operations of ", point$head$point, " are not those of CloudStone, in their order")
  count <- stats::setNames(numbers(operations, "count", zero = TRUE), names(cloudstone_mix))
  seconds <- number(total, "seconds")
  require_asked(total, parameters, "seconds")
  require_close("the number of operations", number(total, "total"), sum(count), tolerance = 0)
  require_rounded("the rate", number(total, "rate"), sum(count) / seconds)
  require_cloudstone_mix(count, asked(parameters, "mix_points"))
  under_way <- 0
  mean <- p90 <- stats::setNames(rep(NA_real_, length(count)), names(count))
  for (i in which(count > 0)) {
    one <- operations[[i]]
    mean[[i]] <- number(one, "mean_ms")
    p90[[i]] <- number(one, "p90_ms")
    mean_of_sum <- 1000 * number(one, "sum_seconds") / count[[i]]
    require_rounded(paste("the mean of", names(count)[i]), mean[[i]], mean_of_sum)
    longest <- 1000 * number(one, "p90_seconds")
    require_rounded(paste("the 90th percentile of", names(count)[i]), p90[[i]], longest,
                    error = half_digit(longest, 9))
    # At least a tenth of the values is as large as the percentile.
    require_that(p90[[i]] <= number(one, "max_ms") && mean[[i]] <= one$max_ms &&
                   0.1 * p90[[i]] <= mean[[i]] * 1.00001,
                 "the latencies of ", names(count)[i], " are not in order")
    under_way <- under_way + one$sum_seconds / (seconds + one$max_ms / 1000)
  }
  require_that(under_way <= users * instances, "more operations were under way than there are users")
  # Each user begins one operation in a cycle at most, but for chance.
  cycles <- users * instances * seconds / asked(parameters, "cycle_seconds")
  require_that(sum(count) <= cycles + 6 * sqrt(cycles), plain(sum(count)), " operations are more than ",
               plain(users * instances), " users begin in that time")
  list(count = count, mean = mean, p90 = p90, rate = total$rate,
       driver = cloudstone_driver(driver, seconds, instances, asked(parameters, "cycle_seconds")))
}

#' Checks that the operations came in the published mix
#'
#' @param count numbers, by operation
#' @param tolerance percentage points at 10,000 operations; of fewer, chance allows for more
#' @section Errors: broken_log
require_cloudstone_mix <- function(count, tolerance) {
  share <- 100 * count / sum(count)
  off <- abs(share - cloudstone_mix)
  most <- tolerance * max(1, sqrt(10000 / sum(count)))
  worst <- which.max(off)
  require_that(off[[worst]] <= most, "the mix is not the published one: ", plain(signif(share[[worst]], 4)),
               " % were ", names(count)[worst], ", and not ", plain(cloudstone_mix[[worst]]), " within ",
               plain(signif(most, 3)))
}

#' What the load generator took of its machine's processors, where it was not in the way itself
#'
#' @param driver object of the log
#' @param seconds of the point
#' @param instances how many applications there were, each with a process of the load generator
#' @param cycle seconds of the mean cycle
#' @return share
#' @section Errors: broken_log
cloudstone_driver <- function(driver, seconds, instances, cycle) {
  spent <- number(driver, "cpu_seconds")
  share <- number(driver, "share")
  busiest <- number(driver, "busiest_share")
  require_rounded("the load generator's share", share, spent / (seconds * number(driver, "cpus")))
  average <- spent / seconds / instances
  require_that(busiest >= average * 0.99999 && busiest <= spent / seconds * 1.00001,
               "the busiest process of the load generator cannot have taken ", plain(busiest),
               " of a processor")
  require_that(busiest < cloudstone_busiest,
               "the load generator was in the way: one of its processes was busy for ",
               plain(signif(100 * busiest, 3)), " % of the time")
  late <- number(driver, "late_mean_ms", zero = TRUE)
  require_that(late <= 1000 * cloudstone_late * cycle, "the load generator was in the way: operations began ",
               plain(signif(late, 3)), " ms late in the mean")
  share
}

#' The share of the host's CPUs that was busy in a point, its ramp included
#'
#' @param observed what the host told before and after
#' @param seconds of the point without its ramp
#' @return share
#' @section Errors: broken_log
cloudstone_cpu <- function(observed, seconds) {
  watched <- diff(numbers(observed, "seconds"))
  busy <- diff(numbers(observed, "busy_seconds"))
  cpus <- numbers(observed, "cpus")
  require_that(cpus[1] == cpus[2], "the number of CPUs changed")
  require_that(watched >= seconds, "the CPUs were observed for ", plain(watched),
               " s, less than the point took")
  # Busy time is counted in hundredths of a second.
  require_that(busy > 0 && busy <= 1.02 * watched * cpus[1], "the CPUs were busy for ", plain(busy), " of ",
               plain(watched), " s")
  busy / (watched * cpus[1])
}
