# The rooms of the analysis, in the order in which data flow: what lies in a room calls only what lies in it
# or in one before it.  The commands stand beside this file and call any room; nothing calls them.

ROOMS <- c(
  base = "files, command lines, words and links: what knows nothing of the experiment",
  read = "plan, tidy tables, records, series and what was published: from files to checked values",
  statistics = "means, intervals, comparisons, verdicts: from values to numbers",
  evidence = "what the paper may tell: all results, read and checked against one another",
  draw = "figures",
  tell = "tables and sentences, by theme",
  paper = "LaTeX, HTML and the document that they stand in"
)

#' The files of a room and of all rooms below it, in the order in which they are loaded
#'
#' @param root folder of the project
#' @param last name of the room
#' @return paths
files_of_rooms <- function(root, last) {
  rooms <- names(ROOMS)[seq_len(match(last, names(ROOMS)))]
  unlist(lapply(file.path(root, "analysis", rooms), function(room) {
    file.path(room, sort(list.files(room, "[.]R$"), method = "radix"))
  }))
}

#' Loads a room and all rooms below it
#'
#' @param root folder of the project
#' @param last name of the room
#' @param into environment
load_rooms <- function(root, last, into = globalenv()) {
  # What is told and drawn is not ASCII.
  if (!l10n_info()[["UTF-8"]]) {
    invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
  }
  options(strata.contracts = file.path(normalizePath(root), "contracts"))
  for (file in files_of_rooms(root, last)) {
    source(file, local = into, encoding = "UTF-8", keep.source = FALSE)
  }
}
