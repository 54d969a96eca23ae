# The database's results: folders of sysbench outputs, and beside them the host's processors.

#' Folder of the results that the paper shows: measured with the performance governor
PAPER_MYSQL <- "mysql/results/performance-governor/"

#' Collects the outputs of sysbench and dstat
#'
#' Folders with the performance governor are the paper's.  All others were measured earlier, with the
#' default governor, and are superseded; their series bear the folder's name (`set`) and, where one folder
#' holds several batches of runs, that of the batch.  A file that repeats another is not read twice.
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`
#' @return as from `collected`
collect_mysql <- function(source, files) {
  paper <- startsWith(files$file, PAPER_MYSQL)
  files <- files[order(!paper, files$file, method = "radix"), ]
  seen <- new.env(parent = emptyenv())
  folder <- ifelse(grepl("^mysql/results/[^/]+$", files$file), "mysql/results", dirname(files$file))
  together(unname(lapply(split(files, factor(folder, unique(folder))), function(set) {
    collect_mysql_set(source, set, seen)
  })))
}

#' Collects one folder of the database's results
#'
#' @param source as from `open_source`
#' @param files rows of `catalogue`, all of one folder
#' @param seen environment of the contents that were met, which is added to
#' @return as from `collected`
collect_mysql_set <- function(source, files, seen) {
  outputs <- files[files$reader == "sysbench", ]
  digits <- gsub("[^0-9]", "", basename(outputs$file))
  outputs <- outputs[order(digits, outputs$file, method = "radix"), ]
  reads <- lapply(outputs$file, function(file) attempt(source, file, read_outputs))
  copy <- vapply(seq_along(reads), function(i) {
    !is.null(reads[[i]]$key) && met(seen, paste(outputs$environment[[i]], reads[[i]]$key))
  }, NA)
  foreign <- vapply(seq_along(reads), function(i) {
    nrow(reads[[i]]$values) == 0 && !grepl("^records", basename(outputs$file[[i]]))
  }, NA)
  selection <- if (startsWith(files$file[[1]], PAPER_MYSQL)) "paper" else "superseded"
  used <- !copy & !foreign
  batches <- batch_factors(outputs$file[used])
  more <- rep("", nrow(outputs))
  more[used] <- batches
  set <- sub("^mysql/results/?", "", dirname(files$file[[1]]))
  ending <- if (selection == "superseded") paste0(";set=", if (set == "") "." else set) else ""
  parts <- lapply(seq_along(reads), function(i) {
    file <- outputs$file[[i]]
    if (copy[[i]]) {
      return(collected(file, imported(list()), "mysql", NA, NA, "a copy of another file"))
    }
    if (foreign[[i]]) {
      return(collected(file, imported(list()), "mysql", NA, NA, "holds no output of sysbench"))
    }
    read <- reads[[i]]
    read$values$factors <- paste0(read$values$factors, if (nrow(read$values) > 0) ending,
                                  if (nrow(read$values) > 0 && ending != "") more[[i]])
    collected(file, read, "mysql", outputs$environment[[i]], selection)
  })
  threads <- lapply(reads[used], function(read) threads_of(read$values))
  samples <- files[files$reader == "dstat", ]
  parts <- c(parts, lapply(seq_len(nrow(samples)), function(i) {
    collect_dstat(source, samples[i, ], threads[lengths(threads) > 0], selection, ending, seen)
  }))
  together(parts)
}

#' Reads a file of sysbench outputs, with what tells it from others
#'
#' @param lines of the file
#' @return as from `read_sysbench`, and `key`
read_outputs <- function(lines) {
  c(read_sysbench(lines), list(key = paste(c("sysbench", trimws(lines, "right")), collapse = "\n")))
}

#' The numbers of threads of the outputs in a file, in their order
#'
#' @param values as in the result of `read_sysbench`
#' @return integers
threads_of <- function(values) {
  of <- values$factors[values$metric == "throughput"]
  as.integer(sub("^threads=([0-9]+).*$", "\\1", of))
}

#' Factors of the batches in a folder
#'
#' The files of a batch bear one time stamp and a running digit.
#'
#' @param files paths
#' @return texts: ";batch=..." where the folder holds several batches of two files or more, "" elsewhere
batch_factors <- function(files) {
  stamp <- substr(gsub("[^0-9]", "", basename(files)), 1, 14)
  large <- names(which(table(stamp) > 1))
  if (length(large) < 2) rep("", length(files)) else paste0(";batch=", stamp)
}

#' Collects one file of dstat
#'
#' @param source as from `open_source`
#' @param file row of `catalogue`
#' @param threads list of vectors: threads of the outputs of each file of the folder
#' @param selection,ending of the folder's series
#' @param seen environment of the contents that were met, which is added to
#' @return as from `collected`
collect_dstat <- function(source, file, threads, selection, ending, seen) {
  read <- attempt(source, file$file, read_dstat)
  key <- paste(c("dstat", file$environment, read$values$value), collapse = " ")
  if (nrow(read$values) > 0 && met(seen, key)) {
    return(collected(file$file, imported(list()), "mysql", NA, NA, "a copy of another file"))
  }
  assigned <- assign_threads(read$values, threads)
  if (is.null(assigned)) {
    reason <- paste0(counted(nrow(read$values), "run"),
                     " can be told, and the outputs of sysbench beside it are ",
                     sum(lengths(threads)), ": they can't be matched")
    read <- list(values = read$values[0, ], problems = rbind(read$problems, problems(1, reason)))
  } else {
    assigned$factors <- paste0(assigned$factors, ending)
    read$values <- assigned
  }
  collected(file$file, read, "mysql", file$environment, selection)
}
