# The rooms of the analysis: no name is unknown or without use, and no call runs upward or in a circle.

#' The expressions of a file, by the names that they define
expressions_of <- function(path) {
  expressions <- as.list(parse(path, keep.source = FALSE, encoding = "UTF-8"))
  names <- vapply(expressions, function(one) {
    defines <- is.call(one) && identical(one[[1]], as.name("<-")) && is.name(one[[2]])
    if (defines) as.character(one[[2]]) else ""
  }, "")
  stats::setNames(expressions, names)
}

#' The names that an expression takes from around it
needs <- function(expression) {
  codetools::findGlobals(eval(call("function", NULL, expression)), merge = TRUE)
}

#' What stands in the rooms: a row for each definition
rooms <- local({
  files <- files_of_rooms(project, "paper")
  found <- lapply(files, expressions_of)
  data.frame(
    room = rep(basename(dirname(files)), lengths(found)),
    file = rep(file.path(basename(dirname(files)), basename(files)), lengths(found)),
    name = unlist(lapply(found, names)), needs = I(lapply(do.call(c, found), needs)), row.names = NULL
  )
})

#' What calls the rooms from outside: expressions by files
callers <- local({
  scripts <- Sys.glob(file.path(project, c("analysis/*.R", "tests/bench/*.R")))
  documents <- Sys.glob(file.path(project, "paper", "*.Rmd"))
  code_of <- function(path) {
    text <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
    chunks <- regmatches(text, gregexpr("(?s)```\\{r[^}]*\\}\n(.*?)```|`r ([^`]+)`", text, perl = TRUE))[[1]]
    code <- gsub("(?s)^```\\{r[^}]*\\}\n|```$|^`r |`$", "", chunks, perl = TRUE)
    as.list(parse(text = code, keep.source = FALSE))
  }
  stats::setNames(c(lapply(scripts, expressions_of), lapply(documents, code_of)),
                  sub(paste0(project, "/"), "", c(scripts, documents), fixed = TRUE))
})

#' Every use of a definition by another one
calls <- local({
  of <- rep(seq_len(nrow(rooms)), lengths(rooms$needs))
  to <- match(unlist(rooms$needs), rooms$name)
  found <- data.frame(from = rooms$file[of], by = rooms$name[of], name = rooms$name[to], to = rooms$file[to],
                      below = match(rooms$room[to], names(ROOMS)) <= match(rooms$room[of], names(ROOMS)))
  found[!is.na(to), ]
})

#' Expects that there are no such things, and names them
expect_none <- function(things) {
  expect(length(things) == 0, paste(things, collapse = "\n"))
}

#' Uses in words
told_uses <- function(uses) {
  paste0(uses$from, ": ", uses$by, " uses ", uses$name, " of ", uses$to, recycle0 = TRUE)
}

test_that("every folder is a room, and every file holds nothing but definitions, each once", {
  folders <- basename(list.dirs(file.path(project, "analysis"), recursive = FALSE))
  expect_setequal(folders, c(names(ROOMS), "tests"))
  expect_true(all(rooms$name != ""), label = paste("in", rooms$file[rooms$name == ""], collapse = ", "))
  expect_none(rooms$name[duplicated(rooms$name)])
})

test_that("no call runs upward from a room", {
  expect_none(told_uses(calls[!calls$below, ]))
})

test_that("the files of a room do not call one another in a circle", {
  left <- unique(calls[calls$from != calls$to & dirname(calls$from) == dirname(calls$to), c("from", "to")])
  # Whatever calls nothing that is left is in no circle.
  repeat {
    free <- !left$to %in% left$from
    if (!any(free)) {
      break
    }
    left <- left[!free, ]
  }
  expect_none(paste(left$from, "calls", left$to, recycle0 = TRUE))
})

test_that("what is set when a file is loaded needs nothing that is loaded later", {
  constant <- vapply(rooms$name, function(name) !is.function(get(name)), NA)
  later <- calls[calls$by %in% rooms$name[constant], ]
  expect_none(told_uses(later[match(later$name, rooms$name) > match(later$by, rooms$name), ]))
})

#' The rooms that a script loads
loaded_by <- function(expressions) {
  calls <- Filter(function(one) is.call(one) && identical(one[[1]], as.name("load_rooms")), expressions)
  # What loads none itself, as a document, is run by what has them all.
  last <- if (length(calls) == 0) "paper" else calls[[1]][[3]]
  names(ROOMS)[seq_len(match(last, names(ROOMS)))]
}

test_that("no name is unknown, and a script loads the rooms that it calls", {
  given <- c(".data", "files_of_rooms", "load_rooms", ls(baseenv(), all.names = TRUE))
  unknown <- lapply(rooms$needs, setdiff, c(rooms$name, given))
  found <- paste0(rep(rooms$file, lengths(unknown)), " uses ", unlist(unknown), recycle0 = TRUE)
  for (file in names(callers)) {
    needed <- unlist(lapply(callers[[file]], needs))
    known <- c(rooms$name[rooms$room %in% loaded_by(callers[[file]])], names(callers[[file]]), given)
    # The documents are knitted beside what they tell of.
    known <- c(known, if (endsWith(file, ".Rmd")) c("evidence", "results"))
    found <- c(found, paste(file, "uses", setdiff(needed, known), recycle0 = TRUE))
  }
  expect_none(found)
})

test_that("every definition is used by more than tests", {
  used <- c(calls$name[calls$name != calls$by], unlist(lapply(unlist(callers, recursive = FALSE), needs)))
  expect_none(setdiff(rooms$name, used))
})
