# What every published file is: which importer reads it, and for which environment; or why none does.

#' Files of the published results and their use
#'
#' @param files paths
#' @return data frame: `file`; `reader`, name of the importer or ""; `environment`, or NA where the file's
#'   content tells it; `note`, why a file is not read
catalogue <- function(files) {
  table <- data.frame(file = files, reader = reader_of(files), environment = NA_character_, note = "")
  simple <- table$reader %in% c("randomaccess", "stream", "fio")
  table$environment[simple] <- environment_of_log(files[simple])
  linpack <- table$reader == "linpack"
  table$environment[linpack] <- ifelse(grepl("/gce/", files[linpack]), "gce",
                                       environment_of_log(files[linpack]))
  mysql <- table$reader %in% c("sysbench", "dstat")
  table$environment[mysql] <- environment_of_mysql(files[mysql])
  redis <- table$reader == "redis"
  table$environment[redis] <- environment_of_redis(files[redis])
  idle <- table$reader == ""
  table$note[idle] <- note_of(files[idle])
  table
}

#' Name of the importer of a file
#'
#' @param files paths
#' @return "" where none reads it
reader_of <- function(files) {
  patterns <- c(
    randomaccess = "^RandomAccess/results/(.+/)?(linux|native|docker|vm|kvm)[^/]*\\.log$",
    stream = "^Stream/results/(.+/)?(linux|native|docker|vm|kvm)[^/]*\\.log$",
    linpack = "^linpack/results/((linux|native|docker|vm|kvm)[^/]*\\.log|gce/.*(\\.(log|txt|out)|/[^./]+))$",
    fio = "^fio/results/(linux|native|docker|vm|kvm)[^/]*\\.log$",
    dstat = "^mysql/results/.+/dstat[^/]*\\.csv$",
    sysbench = "^mysql/results/.*(/records[^/]*|/[^./]+(\\.(log|out))?)$",
    netperf = "(^|/)netperf[^/]*\\.xlsx$",
    nuttcp = "(^|/)nuttcp[^/]*\\.xlsx$",
    redis = "^redis/results/(.+/)?run_[^/]+\\.txt$"
  )
  reader <- rep("", length(files))
  for (name in rev(names(patterns))) reader[grepl(patterns[[name]], files)] <- name
  derived <- "^mysql/.*/(decoded|results)[^/]*\\.csv$|/records[^/]*\\.(csv|png|pdf|xlsx|ods|R|RData)$"
  reader[grepl(paste0(derived, "|/[.~#][^/]*$|~$"), files)] <- ""
  reader
}

#' Environment of a log that is named after it
#'
#' @param files paths
#' @return names; NA for none
environment_of_log <- function(files) {
  name <- sub("^(linux|native|docker|vm|kvm).*$", "\\1", basename(files))
  unname(c(linux = "native", native = "native", docker = "docker", vm = "vm", kvm = "vm")[name])
}

#' Environment of a log of redis-benchmark
#'
#' @param files paths
#' @return names; NA for none
environment_of_redis <- function(files) {
  name <- sub("^run_([A-Za-z]+)_.*$", "\\1", basename(files))
  unname(c(native = "native", dockerbridge = "docker", dockerhost = "docker-hostnet", vm = "vm")[name])
}

#' Environment of a file of the database's results, by its folders
#'
#' What the paper calls a container with NAT and a volume (docker-nofs) had the host's network and the
#' container's file system: a transaction takes as many packets as natively, and a third of those behind
#' NAT.
#'
#' @param files paths
#' @return names; "unknown" where the path does not tell
environment_of_mysql <- function(files) {
  path <- tolower(sub("^mysql/results/", "", files))
  path <- sub("rebooted-[^/]*/", "rebooted/", path)
  rules <- c("nofs-nonet" = "docker-layered", "nofs" = "docker-hostnet-layered",
             "nethost-hostfs" = "docker-hostnet", "nethost" = "docker-hostnet-layered",
             "docker-single-container" = "docker-layered", "docker" = "docker-hostnet",
             "(^|[/_-])(kvm|vm)([/_.-]|$)" = "vm", "(^|[/_-])(bml|native|bare)([/_.-]|$)" = "native")
  environment <- rep("unknown", length(files))
  for (rule in rev(names(rules))) environment[grepl(rule, path)] <- rules[[rule]]
  environment
}

#' Why a file is not read
#'
#' @param files paths
#' @return texts
note_of <- function(files) {
  rules <- c(
    "^at-[0-9a-f]+/" = "of an older revision; read where that revision is asked for",
    "\\.(xlsx?|ods)$" = "a spreadsheet: its raw logs are read instead, or it was not published as a result",
    "\\.(csv|[Rr]|[Rr][Dd]ata|png|pdf|eps|svg|gp|plt|awk)$" = "derived from raw results, or a script",
    "/results/" = "not of a form that is known to hold raw results"
  )
  note <- rep("not among the results", length(files))
  for (rule in rev(names(rules))) note[grepl(rule, files)] <- rules[[rule]]
  note
}
