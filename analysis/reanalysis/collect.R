# From the published files to one table of values: what is a copy, what the paper used, and what was wrong.

#' Reads all published results
#'
#' @param source as from `open_source`
#' @param say function that is told what is being read
#' @return list: `tidy`, one row for each value (workload, environment, metric, unit, factors, selection,
#'   repetition, value, file, line); `unreadable` (file, line, reason); `sources` (file, use, values, note)
collect <- function(source, say = function(...) NULL) {
  table <- catalogue(source$files)
  result <- list(values = list(), unreadable = list(), notes = list())
  parts <- list(randomaccess = collect_blocks, stream = collect_blocks, linpack = collect_linpack,
                fio = collect_fio,
                sysbench = collect_mysql, netperf = collect_network, nuttcp = collect_network,
                redis = collect_redis)
  for (name in names(parts)) {
    files <- table[table$reader %in% c(name, if (name == "sysbench") "dstat"), ]
    if (nrow(files) == 0) {
      next
    }
    say(if (name == "sysbench") "mysql" else name, ": ", counted(nrow(files), "file"))
    part <- parts[[name]](source, files)
    result <- Map(function(have, more) c(have, more), result, part[names(result)])
  }
  tidy <- number_repetitions(do.call(rbind, c(list(no_values()), result$values)))
  unreadable <- do.call(rbind, c(list(data.frame(file = character(), line = integer(), reason = character())),
                                 result$unreadable))
  list(tidy = tidy, unreadable = unreadable[order(unreadable$file, unreadable$line, method = "radix"), ],
       sources = account(source, table, tidy, result$notes))
}

#' Files of one importer, the combined log of each environment first
#'
#' @param files rows of `catalogue`
#' @return the same rows in another order
combined_first <- function(files) {
  files[order(grepl("\\..*\\.", basename(files$file)), nchar(files$file), files$file, method = "radix"), ]
}

#' Collects the logs of RandomAccess or STREAM
#'
#' The paper shows runs on two sockets; those on one are a variant.  The logs named after one of both
#' repeat the combined logs, and those of RandomAccess that are named after one socket repeat the runs on
#' two.
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_blocks <- function(source, files) {
  reader <- files$reader[[1]]
  seen <- new.env(parent = emptyenv())
  files <- combined_first(files)
  together(lapply(seq_len(nrow(files)), function(i) {
    read <- attempt(source, files$file[[i]],
                    list(randomaccess = read_randomaccess, stream = read_stream)[[reader]])
    once <- without_copies(read, seen, files$environment[[i]])
    read <- once$read
    misnamed <- grepl("single-socket", files$file[[i]]) && once$note != "" && nrow(read$values) == 0 &&
      reader == "randomaccess"
    collected(files$file[[i]], read, reader, files$environment[[i]],
              ifelse(read$values$factors == "sockets=2", "paper", "variant"),
              paste0(once$note, if (misnamed) "; named after one socket, its runs used two"))
  }))
}

#' Collects the logs of Linpack
#'
#' The paper shows, for each environment, the last complete block of ten trials or more on two sockets.
#' Other blocks on two sockets are superseded by it, even where they were cut off; blocks on one socket,
#' and those of another machine (gce), are variants.  A virtual machine is tuned where it sees the host's
#' topology.
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_linpack <- function(source, files) {
  seen <- new.env(parent = emptyenv())
  files <- combined_first(files)
  read <- lapply(files$file, function(file) attempt(source, file, read_linpack))
  once <- Map(function(one, environment) without_copies(one, seen, environment), read, files$environment)
  blocks <- do.call(rbind, lapply(seq_along(read), function(i) {
    block <- read[[i]]$blocks
    block <- block[block$block %in% once[[i]]$read$values$block, ]
    if (!is.null(block) && nrow(block) > 0) cbind(file = i, block)
  }))
  if (!is.null(blocks)) {
    environment <- files$environment[blocks$file]
    blocks$environment <- ifelse(environment == "vm" & blocks$tuned, "vm-tuned", environment)
    shown <- blocks$complete & blocks$trials >= 10 & blocks$sockets %in% 2 & environment != "gce"
    blocks$selection <- ifelse(blocks$sockets %in% 2 & environment != "gce", "superseded", "variant")
    last <- shown & !duplicated(ifelse(shown, blocks$environment, seq_len(nrow(blocks))), fromLast = TRUE)
    blocks$selection[last] <- "paper"
    blocks$factors <- paste0(
      ifelse(is.na(blocks$sockets) | environment == "gce", paste0(";threads=", blocks$threads),
             paste0(";sockets=", blocks$sockets)),
      ifelse(last, "",
             paste0(";run=", sub("^linpack/results/", "", files$file[blocks$file]), ":", blocks$block))
    )
  }
  together(lapply(seq_along(read), function(i) {
    one <- once[[i]]$read
    at <- match(paste(i, one$values$block), paste(blocks$file, blocks$block))
    if (nrow(one$values) > 0) {
      one$values$factors <- paste0(one$values$factors, blocks$factors[at])
    }
    collected(files$file[[i]], one, "linpack", blocks$environment[at], blocks$selection[at], once[[i]]$note)
  }))
}

#' Jobs of fio that none of the paper's figures shows
HIDDEN_JOBS <- "job=(seq-read-1|random-write-16);"

#' Collects the outputs of fio
#'
#' The virtual machine's log was replaced after the paper's figures were made, so that theirs is read from
#' the revision before; the later run is a variant, and so are the jobs that no figure shows.
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_fio <- function(source, files) {
  replaced <- "fio/results/vm.log"
  beside <- file.path(paste0("at-", STORAGE_REVISION), replaced)
  earlier <- if (beside %in% source$files) beside else paste0(STORAGE_REVISION, ":", replaced)
  old <- attempt(source, replaced, read_fio, revision = STORAGE_REVISION)
  shown <- function(read) ifelse(grepl(HIDDEN_JOBS, read$values$factors), "variant", "paper")
  together(c(lapply(seq_len(nrow(files)), function(i) {
    file <- files$file[[i]]
    read <- attempt(source, file, read_fio)
    if (file != replaced) {
      collected(file, read, "fio", files$environment[[i]], shown(read))
    } else if (nrow(old$values) > 0 && identical(read$values, old$values)) {
      collected(file, imported(list()), "fio", "vm", "paper", paste("a copy of", earlier))
    } else {
      collected(file, read, "fio", "vm", "variant", paste("a later run than the paper's, which is", earlier))
    }
  }), list(collected(earlier, old, "fio", "vm", shown(old)))))
}

#' Superseded log of redis-benchmark: measured again a day later over all numbers of connections, and in no
#' figure
SUPERSEDED_REDIS <- "run_dockerbridge_20140716_2252.txt"

#' Collects the logs of redis-benchmark
#'
#' The paper shows the test SET, pooled over all logs of an environment but one, which is superseded; the
#' other tests of the pooled logs are variants.
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_redis <- function(source, files) {
  seen <- new.env(parent = emptyenv())
  together(lapply(seq_len(nrow(files)), function(i) {
    file <- files$file[[i]]
    if (is.na(files$environment[[i]])) {
      return(collected(file,
                       imported(list(), list(problems(1, "the file's name tells no known environment"))),
                       "redis",
                       NA, NA))
    }
    read <- attempt(source, file, read_redis)
    key <- paste(c(files$environment[[i]], read$values$value), collapse = " ")
    if (nrow(read$values) > 0 && met(seen, key)) {
      return(collected(file, imported(list()), "redis", NA, NA, "a copy of another file"))
    }
    old <- basename(file) == SUPERSEDED_REDIS
    selection <- ifelse(grepl("test=SET;", read$values$factors), "paper", "variant")
    collected(file, read, "redis", files$environment[[i]], if (old) "superseded" else selection,
              if (old) "superseded by a later log, and in no figure" else "")
  }))
}

#' Collects the typed-in workbooks of netperf and nuttcp
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_network <- function(source, files) {
  reader <- files$reader[[1]]
  together(lapply(files$file, function(file) {
    read <- attempt(source, file, list(netperf = read_netperf, nuttcp = read_nuttcp)[[reader]], lines = FALSE)
    published <- if (is.null(read$values$published)) TRUE else read$values$published
    collected(file, read, reader, read$values$environment,
              ifelse(rep_len(published, nrow(read$values)), "paper", "variant"),
              "typed in by hand: no raw output was published, and the repetitions are unknown")
  }))
}

#' Numbers the values of each series, in the order in which they were read
#'
#' @param tidy table of values
#' @return the same with `repetition` from 1 in each series
number_repetitions <- function(tidy) {
  series <- interaction(tidy[SERIES_KEY], drop = TRUE, lex.order = TRUE, sep = "\n")
  tidy$repetition <- as.integer(stats::ave(seq_len(nrow(tidy)), series, FUN = seq_along))
  rownames(tidy) <- NULL
  tidy
}

#' What became of every file
#'
#' @param source as from `open_source`
#' @param table as from `catalogue`
#' @param tidy table of values
#' @param notes list of texts named by files
#' @return data frame: file, use (read, not used, not opened), values, note
account <- function(source, table, tidy, notes) {
  count <- table(tidy$file)
  files <- c(table$file, setdiff(names(count), table$file), source$private)
  values <- as.integer(count[files])
  values[is.na(values)] <- 0L
  note <- c(table$note, rep("", length(files) - nrow(table)))
  told <- files %in% names(notes)
  note[told] <- vapply(notes[files[told]], identity, "")
  private <- files %in% source$private
  note[private] <- "private key, or in a folder of private keys"
  use <- ifelse(private, "not opened", ifelse(values > 0, "read", "not used"))
  result <- data.frame(file = files, use = use, values = values, note = note)
  result[order(result$file, method = "radix"), ]
}
