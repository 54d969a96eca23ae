# redis-benchmark: seven tests for each run and number of connections, in a log full of progress.

#' The tests of a run, in their order
REDIS_TESTS <- c("PING_INLINE", "PING_BULK", "SET", "GET", "LPUSH", "LPOP", "SADD")

#' Reads a log of redis-benchmark
#'
#' Progress is overwritten by carriage returns, and a result's header shares its line with it: what counts
#' is what follows the last carriage return.  A result belongs to the test that its header names; where a
#' header or a rate was lost, so is the result, and it is listed.  A last run that was cut off, and so
#' holds fewer numbers of connections than the first, is not used.
#'
#' @param lines of the log
#' @return as from `imported`; factors `test`, `connections`; metrics throughput (requests/s) and latency
#'   (ms), which is connections over throughput
read_redis <- function(lines) {
  text <- sub("^.*\r", "", lines)
  groups <- grep("^\\[DBG\\] Run #[0-9]+: Connections [0-9]+", text)
  if (length(groups) == 0) {
    return(imported(list(), list(problems(1, "no run of redis-benchmark in this file"))))
  }
  run <- as.integer(sub("^.*Run #([0-9]+):.*$", "\\1", text[groups]))
  connections <- as.integer(sub("^.*Connections ([0-9]+).*$", "\\1", text[groups]))
  partial <- partial_runs(run, connections, group_is_whole(text, groups))
  read <- Map(function(at, run, connections, partial) {
    if (partial) list() else redis_group(text, at, run, connections)
  }, blocks_of(text, groups), run, connections, run %in% partial)
  cut <- vapply(partial, function(number) groups[run == number][[1]], 0L)
  imported(lapply(read, `[[`, "values"), c(
    lapply(read, `[[`, "problems"),
    list(problems(cut, paste0("run ", partial, " was cut off after ", vapply(partial, function(number) {
      paste(range(connections[run == number]), collapse = " to ")
    }, ""), " connections; it is not used")))
  ))
}

#' Runs that were cut off
#'
#' @param run,connections of every group, in the order of the log
#' @param whole whether the group came to its last test
#' @return number of the last run, where it lacks connections that an earlier run has or the end of its
#'   last group; otherwise none.  The only run of a log has nothing to be compared with and is kept unless
#'   its last group was cut.
partial_runs <- function(run, connections, whole) {
  last <- run[[length(run)]]
  lacks <- !all(connections[run != last] %in% connections[run == last])
  if (lacks || (!whole[[length(whole)]] && last != run[[1]])) last else integer()
}

#' Whether the groups of a log came to the header of their last test
#'
#' @param text lines, without what a carriage return overwrote
#' @param groups numbers of the lines that start a group
#' @return logical vector
group_is_whole <- function(text, groups) {
  last <- paste0("====== ", REDIS_TESTS[[length(REDIS_TESTS)]], " ======")
  rate <- grepl("^[0-9.]+ requests per second", text)
  vapply(blocks_of(text, groups), function(at) {
    head <- at[endsWith(text[at], last)]
    length(head) > 0 && any(rate[at[at > head[[1]]]])
  }, NA)
}

#' Reads the tests of one run with one number of connections
#'
#' @param text lines, without what a carriage return overwrote
#' @param at numbers of the group's lines
#' @param run,connections of this group
#' @return list: `values`, `problems`
redis_group <- function(text, at, run, connections) {
  lines <- text[at]
  heads <- grep("====== [A-Z_]+.* ======$", lines)
  name <- sub("^.*?====== (.*) ======$", "\\1", lines[heads], perl = TRUE)
  parts <- blocks_of(lines, heads)
  rate <- line <- rep(NA_real_, length(heads))
  for (i in seq_along(heads)) {
    part <- lines[parts[[i]]]
    place <- grep("^[0-9.]+ requests per second", part)
    clients <- first_number(part, "^ *([0-9]+) parallel clients")
    if (length(place) == 1 && isTRUE(clients == connections)) {
      rate[[i]] <- as.numeric(sub(" .*", "", part[[place]]))
      line[[i]] <- at[[parts[[i]][[place]]]]
    }
  }
  good <- name %in% REDIS_TESTS & !is.na(rate) & rate > 0 & !name %in% name[duplicated(name)]
  lost <- setdiff(REDIS_TESTS, name[good])
  foreign <- setdiff(name, REDIS_TESTS)
  place <- function(test) {
    head <- heads[name == test]
    progress <- grep(paste0("^", test, ": "), lines)
    at[[c(head, progress, 1)[[1]]]]
  }
  where <- paste0("run ", run, ", ", connections, " connections: ")
  rows <- sum(good)
  factors <- paste0("test=", name[good], ";connections=", rep(connections, rows))
  list(
    values = readings(rep(c("throughput", "latency"), each = rows), rep(c("requests/s", "ms"), each = rows),
                      c(rate[good], 1000 * connections / rate[good]), rep(factors, 2), rep(run, 2 * rows),
                      rep(line[good], 2)),
    problems = rbind(
      problems(vapply(lost, place, 0L), sprintf("%sthe result of %s is lost or not complete", where, lost)),
      problems(vapply(foreign, place, 0L), sprintf("%sunknown test %s", where, foreign))
    )
  )
}
