# dstat: the host's processors once a second, from which the runs are cut out again.

#' User share, in per cent, from which a second belongs to a run, and the least seconds of a run
BUSY_USER <- 2
LEAST_SECONDS <- 20

#' Reads a CSV file of dstat
#'
#' A run is a maximal stretch of seconds with a user share of at least 2 % and at least 20 s long; its
#' first and last second are left out, and its processor use is 100 less the mean idle share.
#'
#' @param lines of the file
#' @return as from `imported`; metric cpu (%), factor empty, repetition the number of the stretch
read_dstat <- function(lines) {
  fields <- strsplit(lines, ",", fixed = TRUE)
  heads <- which(vapply(fields, function(cells) identical(gsub("\"", "", cells)[1:3], c("usr", "sys", "idl")),
                        NA))
  if (length(heads) == 0) {
    return(imported(list(), list(problems(1, "no header of dstat with usr, sys and idl in this file"))))
  }
  columns <- length(fields[[heads[[1]]]])
  sample <- grepl("^[-+0-9.e]+,[-+0-9.e]+,[-+0-9.e]+,[-+0-9.e,]*$", lines) & seq_along(lines) > heads[[1]]
  whole <- sample & lengths(fields) == columns
  cells <- vapply(fields[whole], function(cells) suppressWarnings(as.numeric(cells[c(1, 3)])), c(0, 0))
  usr <- idle <- rep(NA_real_, length(lines))
  usr[whole] <- cells[1, ]
  idle[whole] <- cells[2, ]
  headers <- grepl("^\"|^,*$", lines)
  odd <- which(!headers & (!whole | is.na(usr) | is.na(idle)))
  # Only seconds count: a header between two samples, as of dstat's restart, ends a stretch like an idle
  # second.
  busy <- !is.na(usr) & usr >= BUSY_USER
  stretches <- rle(busy)
  ends <- cumsum(stretches$lengths)
  starts <- ends - stretches$lengths + 1
  runs <- stretches$values & stretches$lengths >= LEAST_SECONDS
  inner <- Map(function(from, to) (from + 1):(to - 1), starts[runs], ends[runs])
  use <- vapply(inner, function(seconds) 100 - mean(idle[seconds]), 0)
  imported(list(readings(rep("cpu", length(use)), rep("%", length(use)), use, rep("", length(use)),
                         seq_along(use),
                         starts[runs])),
           list(problems(odd, "a line that is neither a header nor a whole sample of dstat")))
}

#' Gives the stretches of a dstat file the threads of the runs that they belong to
#'
#' Runs are in the order of the sysbench files, each with the same rising numbers of threads.
#'
#' @param values as in the result of `read_dstat`
#' @param outputs list of vectors, one for each file of sysbench outputs in its order: the threads of its
#'   outputs
#' @return `values` with factor `threads` and the number of the file as `repetition`; NULL where the
#'   stretches can't be told apart: there are as many as outputs, or the files that are there agree in
#'   their threads and these fit in a whole number of times
assign_threads <- function(values, outputs) {
  threads <- unlist(outputs)
  count <- nrow(values)
  if (length(threads) == 0 || count == 0) {
    return(NULL)
  }
  if (count == length(threads)) {
    repetition <- rep(seq_along(outputs), lengths(outputs))
  } else if (length(unique(outputs)) == 1 && count %% length(outputs[[1]]) == 0) {
    repetition <- rep(seq_len(count / length(outputs[[1]])), each = length(outputs[[1]]))
    threads <- rep(outputs[[1]], count / length(outputs[[1]]))
  } else {
    return(NULL)
  }
  values$factors <- paste0("threads=", threads)
  values$repetition <- repetition
  values
}
