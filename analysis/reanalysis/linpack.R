# Intel MKL's Linpack: trials, and below them a summary that looks almost like one.

#' Reads a log of MKL's Linpack
#'
#' A block is one start of the program.  A trial has eight fields, of which the last says whether the
#' residual passed; the summary has five, of which the last is the maximum.  A block that ended before its
#' first trial is listed; one that was cut off among its trials keeps them, and is marked as not complete.
#'
#' @param lines of the log
#' @return as from `imported`, and `blocks`, a data frame with a row for each block that holds trials:
#'   `block`, `line`, `trials`, `asked`, `complete`, `sockets`, `threads`, `tuned`; in `values`, the
#'   columns `block` and `key`
read_linpack <- function(lines) {
  headed <- grep("^Running linpack", lines)
  scripts <- grep("^This is a SAMPLE run script", lines)
  # Some blocks have no header of their own: then the script's first line starts them.
  bare <- scripts[!mapply(function(from, to) any(headed > from & headed < to),
                          c(0, scripts)[seq_along(scripts)], scripts)]
  starts <- sort(c(headed, bare))
  starts <- if (length(starts) == 0) grep("^Intel\\(R\\) Optimized LINPACK Benchmark data", lines) else starts
  values <- unreadable <- blocks <- list()
  sections <- blocks_of(lines, starts)
  for (number in seq_along(sections)) {
    read <- linpack_block(lines, sections[[number]])
    unreadable <- c(unreadable, list(read$problems))
    if (!is.null(read$block)) {
      values <- c(values, list(cbind(read$values, block = number)))
      blocks <- c(blocks, list(cbind(block = number, read$block)))
    }
  }
  if (length(starts) == 0) unreadable <- list(problems(1, "no run of Linpack in this file"))
  result <- imported(values, unreadable)
  if (length(values) == 0) result$values <- cbind(result$values, key = character(), block = integer())
  result$blocks <- do.call(rbind, blocks)
  result
}

#' Reads one start of Linpack
#'
#' @param lines of the log
#' @param at numbers of the block's lines
#' @return list: `values`, `problems`, and `block`, one row, or NULL where no trial can be used
linpack_block <- function(lines, at) {
  block <- lines[at]
  fields <- strsplit(trimws(block), " +")
  count <- lengths(fields)
  numeric <- grepl("^[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]", trimws(block))
  trial <- which(numeric & count == 8)
  summary <- which(numeric & count == 5)
  odd <- which(numeric & !count %in% c(5, 8))
  unreadable <- problems(at[odd],
                         rep("a line of results with neither a trial's eight fields nor a summary's five",
                                      length(odd)))
  field <- function(rows, i) suppressWarnings(as.numeric(vapply(fields[rows], `[[`, "", i)))
  gflops <- field(trial, 5)
  passed <- vapply(fields[trial], `[[`, "", 8) == "pass" & is.finite(gflops)
  unreadable <- rbind(unreadable, problems(at[trial[!passed]], "a trial whose residual did not pass"))
  asked <- first_number(block, "^Number of trials to run *: *([0-9]+)")
  if (length(trial) == 0) {
    return(list(problems = rbind(unreadable, problems(at[[1]], "a block that ended before its first trial"))))
  }
  complete <- length(summary) == 1 && isTRUE(length(trial) == asked)
  if (!complete) {
    unreadable <- rbind(unreadable, problems(at[[1]], paste0(
      "a block that was cut off: ", length(trial), " of ",
      if (is.na(asked)) "an unknown number of" else asked,
      " trials", if (length(summary) == 0) ", and no summary"
    )))
  } else if (any(abs(c(mean(gflops) - field(summary, 4), max(gflops) - field(summary, 5))) > 1.01e-4)) {
    unreadable <- rbind(unreadable, problems(at[[summary]], "the summary contradicts the trials above it"))
  }
  threads <- first_number(block, "^Number of threads: *([0-9]+)")
  named <- sockets_named(block)
  used <- trial[passed]
  if (length(used) == 0) {
    return(list(problems = unreadable))
  }
  cpus <- first_number(block, "^Number of CPUs: *([0-9]+)")
  list(
    values = cbind(readings("gflops", "GFLOPS", gflops[passed], paste0("order=", plain(field(used, 1))),
                            seq_along(used), at[used]),
                   key = block_key(block, "^[0-9]+ +[0-9]+ +[0-9]+ +[0-9.]")),
    problems = unreadable,
    block = data.frame(
      line = at[[1]], trials = length(used), asked = asked, complete = complete && all(passed),
      threads = threads,
      sockets = if (!is.na(named)) named else unname(c("32" = 2L, "16" = 1L)[as.character(threads)]),
      # A virtual machine that shows the host's topology has few sockets; an untuned one has as many as
      # processors.
      tuned = isTRUE(cpus < first_number(block, "^Number of cores: *([0-9]+)"))
    )
  )
}
