# Where the published results are read from: a folder, a checkout, or a git repository without one.
# Private keys that lie among them are told by their names and never opened.

#' Revision of the repository that the formats were described from, and the one that holds the virtual
#' machine's storage run of the paper, which a later commit replaced
PUBLISHED_REVISION <- "6820500"
STORAGE_REVISION <- "b72ae3e"

#' Folders whose presence shows that a folder holds the published results
RESULT_FOLDERS <- c("RandomAccess", "Stream", "linpack", "fio", "mysql", "netperf", "nuttcp", "redis")

#' Opens the published results
#'
#' @param path folder, checkout, or git directory
#' @return list: `path`; `git`, TRUE where files come from the repository's objects rather than from the
#'   folder; `has_git`, whether older revisions can be asked for; `revision`, the commit or "not
#'   available"; `files`, paths of all files, without private ones; `private`, paths of those; `opened`, an
#'   environment that records what was read
#' @section Errors: no such folder; none of the known results in it; git missing where it is needed
open_source <- function(path) {
  if (!dir.exists(path)) {
    stop_about(path, if (file.exists(path)) "not a folder" else "no such folder",
               "; published_raw should be a checkout ",
               "or a git directory of the published results")
  }
  path <- normalizePath(path)
  bare <- file.exists(file.path(path, "HEAD")) && dir.exists(file.path(path, "objects"))
  has_git <- bare || file.exists(file.path(path, ".git"))
  if (has_git && Sys.which("git") == "") {
    stop_about(path, "is a git repository, and git is not installed")
  }
  source <- list(path = path, has_git = has_git, git = bare, opened = new.env(parent = emptyenv()))
  source$revision <- revision_of(source)
  files <- if (!bare) files_in_folder(path)
  if (has_git && !any(is_result(files))) {
    source$git <- TRUE
    if (source$revision == NOT_AVAILABLE) {
      stop_about(path, "this git repository has no commit that HEAD points to")
    }
    files <- files_in_commit(source, "HEAD")
  }
  if (!any(is_result(files))) {
    stop_about(path, "holds none of the published results; expected are folders such as ",
               paste0(RESULT_FOLDERS[c(1, 2, 8)], "/results", collapse = ", "))
  }
  private <- is_private(files) | leads_out(source, files)
  source$files <- sort(files[!private], method = "radix")
  source$private <- sort(files[private], method = "radix")
  source
}

#' Whether a path is that of a private key, or lies in a folder that holds some
#'
#' @param files paths
#' @return logical vector
is_private <- function(files) {
  grepl("(^|/)(common|\\.ssh|keys?|secrets?)/", files, ignore.case = TRUE) |
    grepl("(^|/)(id_(rsa|dsa|ecdsa|ed25519)|identity|ssh_host_|authorized_keys|known_hosts)[^/]*$", files,
          ignore.case = TRUE) |
    grepl("(^|/)[^/]*((private|secret)[^/]*|\\.(pem|key|ppk|p12|pfx|der|jks|asc|gpg)(\\.[^/]*)?)$", files,
          ignore.case = TRUE)
}

#' Whether a path is among the known results
#'
#' @param files paths
#' @return logical vector
is_result <- function(files) {
  grepl(paste0("^(", paste(RESULT_FOLDERS, collapse = "|"), ")/([^/]+\\.xlsx$|results/)"), files)
}

#' Whether a file is a link to a place outside of the results, or to a private key
#'
#' @param source as `open_source` makes it
#' @param files paths
#' @return logical vector; all FALSE for files in a commit
leads_out <- function(source, files) {
  if (source$git) {
    return(rep(FALSE, length(files)))
  }
  full <- file.path(source$path, files)
  linked <- nzchar(Sys.readlink(full)) | nzchar(Sys.readlink(dirname(full)))
  real <- normalizePath(full[linked], mustWork = FALSE)
  inside <- startsWith(real, paste0(source$path, "/"))
  linked[linked] <- !inside | is_private(substring(real, nchar(source$path) + 2))
  linked
}

#' The commit that HEAD points to
#'
#' @param source as `open_source` makes it
#' @return 40 hexadecimal digits, or "not available"
revision_of <- function(source) {
  if (!source$has_git) {
    return(NOT_AVAILABLE)
  }
  said <- run_git(source, c("rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
  if (said$status == 0) said$lines[[1]] else NOT_AVAILABLE
}

#' Paths of the files in a folder
#'
#' @param path the folder
#' @return character vector, relative to the folder; hidden ones are left out
files_in_folder <- function(path) {
  list.files(path, recursive = TRUE)
}

#' Paths of the files in a commit
#'
#' @param source as from `open_source`
#' @param revision the commit
#' @return character vector
#' @section Errors: git fails
files_in_commit <- function(source, revision) {
  said <- run_git(source, c("ls-tree", "-r", "--name-only", "--full-tree", revision))
  if (said$status != 0) {
    stop_about(source$path, "git can't list ", revision, " (status ", said$status, ")")
  }
  said$lines
}

#' Runs git in the repository of the results
#'
#' The repository may belong to another user, and its own settings and hooks have no say.
#'
#' @param source as `open_source` makes it
#' @param arguments of git
#' @param out file for its output; NULL for lines of text
#' @return list: `status`, `lines`
run_git <- function(source, arguments, out = NULL) {
  always <- c("-C", source$path, "-c", paste0("safe.directory=", source$path), "-c", "core.quotePath=false",
              "-c", "core.fsmonitor=false", "--no-pager")
  said <- suppressWarnings(system2("git", shQuote(c(always, arguments)),
                                   stdout = if (is.null(out)) TRUE else out,
                                   stderr = FALSE))
  if (!is.null(out)) {
    return(list(status = said, lines = character()))
  }
  status <- attr(said, "status")
  list(status = if (is.null(status)) 0 else status, lines = as.character(said))
}

#' Copies one of the published files to where it can be read
#'
#' @param source as from `open_source`
#' @param file its path
#' @param revision an older commit; "" for the results as they are
#' @return path of a file, which may be a temporary one; NULL where the revision does not hold it
#' @section Errors: the file is private
fetch <- function(source, file, revision = "") {
  if (is_private(file)) {
    stop_about(file, "is private and is not read")
  }
  if (revision != "") {
    beside <- file.path(paste0("at-", revision), file)
    if (beside %in% source$files) {
      return(fetch(source, beside))
    }
    if (!source$has_git) {
      return(NULL)
    }
  } else if (!source$git) {
    assign(file, TRUE, envir = source$opened)
    return(file.path(source$path, file))
  }
  copy <- tempfile("published-", fileext = paste0(".", tools::file_ext(file)))
  said <- run_git(source, c("cat-file", "blob", paste0(if (revision == "") "HEAD" else revision, ":", file)),
                  copy)
  if (said$status != 0) {
    unlink(copy)
    return(NULL)
  }
  assign(paste0(if (revision != "") paste0(revision, ":"), file), TRUE, envir = source$opened)
  copy
}

#' The lines of a published log
#'
#' What is not ASCII becomes a question mark, since nothing that is read is written so.  A carriage return
#' is progress that a terminal overwrites, and stays in its line.
#'
#' @param path of the file
#' @return character vector
#' @section Errors: broken_log, where the file can't be read, is empty or holds NUL bytes
published_lines <- function(path) {
  size <- file.size(path)
  require_that(!is.na(size), "the file can't be read")
  require_that(size > 0, "the file is empty")
  bytes <- tryCatch(suppressWarnings(readBin(path, "raw", size)), error = function(e) raw())
  require_that(length(bytes) == size, "the file can't be read")
  require_that(!any(bytes == 0), "the file holds NUL bytes and is no text")
  bytes[bytes > as.raw(127)] <- charToRaw("?")
  sub("\r$", "", strsplit(rawToChar(bytes), "\n", fixed = TRUE)[[1]])
}
