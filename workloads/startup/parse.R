# Start-up: from the request for a system to the end of the first command in it.

#' @param lines the log's lines
#' @param parameters the record's parameters
#' @return data frame: metric, unit, value, factors (`start`: created, booted or restored); memory only where
#'   the environment holds any by itself
#' @section Errors: broken_log
parse_startup <- function(lines, parameters) {
  starts <- read_json_lines(lines)
  require_that(length(starts) == 1, "there should be one start, and there are ", length(starts))
  start <- starts[[1]]
  ways <- c(created = "created", boot = "booted", snapshot = "restored")
  require_that(is.character(start$start) && start$start %in% names(ways),
               "the log does not say how it started")
  way <- ways[[start$start]]
  require_that(way %in% c("created", parameters$way, "booted"), "it was ", way, ", not ", parameters$way)
  seconds <- number(start, "up_seconds") + number(start, "command_seconds")
  factors <- paste0("start=", way)
  held <- if (!is.null(start$memory_bytes)) number(start, "memory_bytes") / 1e6
  rbind(measured("first_command", "s", seconds, factors),
        if (!is.null(held)) measured("memory", "MB", held, factors))
}
