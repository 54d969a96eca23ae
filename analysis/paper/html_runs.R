# The end of the web page: the runs behind its numbers, and from them the way to logs, records and files.

# Of so many values in an environment at most each series has a list of its own; more stand in one table.
VALUES_AS_LISTS <- 100
# A workload of so many series at most tells of every run; one of more is a sweep.
SERIES_WITH_RUNS <- 12
# Of so many runs at most every list names each; longer ones name the folders in which they lie.
RUNS_AS_LISTS <- 400

#' The runs behind every row of the summary, to which the tables' numbers lead
#'
#' @param evidence as from `read_evidence`
#' @param values rows of the tidy tables
#' @param base way from the page to the folder that the logs' paths start from
#' @param named names of single runs to which a text of the page leads, as from `run_id`
#' @return one text
html_runs <- function(evidence, values, base, named = character()) {
  rows <- evidence$comparisons
  # A sweep has thousands of rows: what belongs to each is looked for once.
  key <- function(table) paste(table$workload, table$metric, table$factors, table$environment, sep = "\r")
  keys <- key(rows)
  of_value <- key(values)
  of_row <- split(seq_along(of_value), factor(of_value, unique(keys)))
  own_values <- lapply(seq_len(nrow(rows)), function(i) {
    own <- values[of_row[[keys[[i]]]], ]
    own[match(strsplit(rows$logs[[i]], ";", fixed = TRUE)[[1]], own$log), ]
  })
  # Each sweep as a whole, of all else each environment.
  series <- tapply(rows$series, rows$workload, function(own) length(unique(own)))
  sweeps <- names(series)[series > SERIES_WITH_RUNS]
  of_group <- paste(rows$workload, ifelse(rows$workload %in% sweeps, "", rows$environment), sep = "\r")
  groups <- split(seq_len(nrow(rows)), factor(of_group, unique(of_group)))
  items <- lapply(groups, function(at) {
    if (rows$workload[at[[1]]] %in% sweeps) {
      html_sweep_table(rows[at, ], evidence, base)
    } else if (length(at) > 1 && sum(rows$n[at]) > VALUES_AS_LISTS) {
      html_series_table(rows[at, ], own_values[at], rows, base)
    } else {
      vapply(at, function(i) html_series_list(rows[i, ], own_values[[i]], rows, base), "")
    }
  })
  of_items <- rows$workload[vapply(groups, `[[`, 0L, 1)]
  items <- vapply(unique(of_items), function(workload) {
    own <- unlist(items[of_items == workload])
    if (length(own) == 1) own else html_list(paste0("records-values-", workload), paste0(
      "The values of ", evidence$plan$workloads[[workload]]$title, ", ",
      counted(sum(rows$workload == workload), "series", "series")
    ), own, tag = "div")
  }, "")
  paste(c("<section id=\"runs\"><h2>Runs behind the numbers</h2>",
          "<p>Every measured number of this page leads here, and from here to the raw logs, as the tools",
          "printed them, and to the records of what was observed.</p>",
          waiting_lists(c(items, html_records(evidence, base, named))),
          "</section>"), collapse = "\n")
}

#' Lists whose content waits as a text, which the page's script reads when one is opened
#'
#' The elements of all lists would be a third of a page, and most are never looked at.  Without scripts they
#' are there.
#'
#' @param lists HTML, each a `details`
#' @return HTML
waiting_lists <- function(lists) {
  sub("</details>$", "</noscript></details>", sub("</summary>", "</summary><noscript>", lists, fixed = TRUE))
}

#' The runs of one series in one environment, as a list
#'
#' @param row of the comparisons
#' @param own rows of the tidy tables, one for each of its logs
#' @param rows the comparisons
#' @param base as of `html_runs`
#' @return HTML
html_series_list <- function(row, own, rows, base) {
  level <- levels_of(row)
  lines <- sprintf("<li><a href=\"%s\">%s</a>: %s</li>", html_escape(file.path(base, own$log)),
                   html_escape(basename(own$log)), html_escape(format(own$value, digits = 7, trim = TRUE)))
  native <- rows[rows$series == row$series & rows$environment == REFERENCE, ]
  paste(c(
    sprintf("<details id=\"%s\"><summary>%s, %s: %s, %s %s%s%s</summary>", source_id(row),
            html_escape(row$name), html_escape(row$environment_label), n_is(fixed(row$n, 0)),
            if (level$median) "median" else "mean", format(level$value, digits = 7), NO_BREAK,
            html_escape(row$unit)),
    "<ul>", lines, "</ul>",
    if (!is.na(row$ratio) && nrow(native) == 1) {
      sprintf("<p>Its ratio is to <a href=\"#%s\">the runs of %s</a>.</p>", source_id(native),
              html_escape(native$environment_label))
    },
    "</details>"
  ), collapse = "\n")
}

#' The runs of many series of a workload in one environment, as a table with a row for each series
#'
#' A sweep has hundreds of them, whose lists would make a page of megabytes.
#'
#' @param some rows of the comparisons, of one workload and environment
#' @param own list with rows of the tidy tables for each of them
#' @inheritParams html_series_list
#' @return HTML
html_series_table <- function(some, own, rows, base) {
  logs <- unique(unlist(lapply(own, `[[`, "log")))
  level <- levels_of(some)
  cells <- vapply(own, function(values) {
    value <- values$value[match(logs, values$log)]
    paste0("<td>", ifelse(is.na(value), "", format(value, digits = 6, trim = TRUE)), "</td>", collapse = "")
  }, "")
  native <- rows$environment == REFERENCE & rows$workload == some$workload[[1]]
  title <- paste0(some$title[[1]], ", ", some$environment_label[[1]])
  units <- if (length(unique(some$unit)) > 1) paste0(" (", some$unit, ")") else ""
  paste(c(
    sprintf("<details id=\"series-%s-%s\"><summary>%s: %s, %s</summary>", some$workload[[1]],
            some$environment[[1]], html_escape(title), counted(nrow(some), "series", "series"),
            n_is(n_text(some$n))),
    sprintf("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Runs of %s\">",
            html_escape(title)),
    "<table class=\"runs\"><thead><tr><th scope=\"col\">Series</th><th scope=\"col\">Mean or median</th>",
    sprintf("<th scope=\"col\"><a href=\"%s\">%s</a></th>", html_escape(file.path(base, logs)),
            html_escape(basename(logs))), "</tr></thead><tbody>",
    sprintf("<tr id=\"%s\"><th scope=\"row\">%s%s</th><td>%s</td>%s</tr>", source_id(some),
            html_escape(some$name), html_escape(units), format(level$value, digits = 6, trim = TRUE), cells),
    "</tbody></table></div>",
    if (some$environment[[1]] != REFERENCE && any(native)) {
      sprintf("<p>Ratios are to <a href=\"#series-%s-%s\">the runs of %s</a>.</p>", some$workload[[1]],
              REFERENCE, html_escape(rows$environment_label[native][[1]]))
    },
    "</details>"
  ), collapse = "\n")
}

#' The series of a sweep in all environments, as a table with a row for each series
#'
#' What single runs came to stands in the tidy table, to which it leads, and in their logs: of a sweep's
#' hundreds of series every run has every one.
#'
#' @param some rows of the comparisons, of one workload
#' @inheritParams html_runs
#' @return HTML
html_sweep_table <- function(some, evidence, base) {
  workload <- some$workload[[1]]
  title <- some$title[[1]]
  series <- unique(some$series)
  environments <- intersect(names(evidence$plan$environments), some$environment)
  level <- levels_of(some)
  cells <- matrix("<td></td>", length(series), length(environments))
  cells[cbind(match(some$series, series), match(some$environment, environments))] <-
    sprintf("<td id=\"%s\">%s (%s)</td>", source_id(some),
            vapply(level$value, format, "", digits = 6), fixed(some$n, 0))
  first <- some[match(series, some$series), ]
  units <- if (length(unique(some$unit)) > 1) paste0(" (", first$unit, ")") else ""
  logs <- vapply(environments, function(name) {
    own <- unique(unlist(strsplit(some$logs[some$environment == name], ";", fixed = TRUE)))
    links <- sprintf("<a href=\"%s\">%s</a>", html_escape(file.path(base, own)), html_escape(basename(own)))
    paste0(html_escape(environment_labels(evidence$plan, name)), ": ", paste(links, collapse = ", "))
  }, "")
  tidy <- file.path(base, basename(evidence$plan$results), "tidy", paste0(workload, ".csv"))
  paste(c(
    sprintf("<details id=\"series-%s\"><summary>%s: %s in %s</summary>", workload, html_escape(title),
            counted(length(series), "series", "series"), counted(length(environments), "environment")),
    sprintf(paste("<p>Means or medians, with the number of runs. <a href=\"%s\">The tidy table</a> has what",
                  "each run came to, of these logs. %s.</p>"),
            html_escape(tidy), paste(logs, collapse = "; ")),
    sprintf("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Series of %s\">",
            html_escape(title)),
    "<table class=\"runs\"><thead><tr><th scope=\"col\">Series</th>",
    sprintf("<th scope=\"col\">%s</th>", html_escape(environment_labels(evidence$plan, environments))),
    "</tr></thead><tbody>",
    sprintf("<tr><th scope=\"row\">%s%s</th>%s</tr>", html_escape(shorter_name(first$name, title)),
            html_escape(units), apply(cells, 1, paste, collapse = "")),
    "</tbody></table></div>", "</details>"
  ), collapse = "\n")
}

#' Names of series without that of their workload
#'
#' @param name texts
#' @param title of the workload
#' @return texts
shorter_name <- function(name, title) {
  ifelse(startsWith(name, paste0(title, " ")), upper_first(substring(name, nchar(title) + 2)), name)
}

#' The records of all runs as lists, by environment and by workload, and the files that are of no single run
#'
#' Counts, extremes and observations lead here.  A run that is flagged or that a text names has an entry of
#' its own; the others too, unless they are very many.
#'
#' @inheritParams html_runs
#' @return HTML, one text for each list
html_records <- function(evidence, base, named = character()) {
  records <- evidence$records
  of <- function(key) vapply(records, `[[`, "", key)
  ids <- vapply(records, run_id, "")
  many <- length(records) > RUNS_AS_LISTS
  single <- !many | ids %in% named | vapply(records, html_flags, "") != ""
  entries <- function(own, other) {
    c(if (many) folder_lines(records[own], evidence, base, other),
      if (any(own & single)) {
        sprintf("<li id=\"%s\">%s</li>", html_escape(ids[own & single]),
                vapply(records[own & single], run_line, "", evidence = evidence, base = base))
      })
  }
  by_environment <- lapply(intersect(names(evidence$plan$environments), of("environment")), function(name) {
    own <- of("environment") == name
    html_list(environment_list(name), paste0("The runs in ", environment_labels(evidence$plan, name), ", ",
                                       n_is(fixed(sum(own), 0))), entries(own, "workload"), open = TRUE)
  })
  by_workload <- lapply(intersect(names(evidence$plan$workloads), of("workload")), function(name) {
    own <- of("workload") == name
    html_list(workload_list(name), paste0("The runs of ", evidence$plan$workloads[[name]]$title, ", ",
                                       n_is(fixed(sum(own), 0))), if (many) {
      folder_lines(records[own], evidence, base, "environment")
    } else {
      sprintf("<li><a href=\"#%s\">%s</a></li>", html_escape(ids[own]), html_escape(run_text(records[own])))
    })
  })
  c(html_list("records", paste("All", counted(length(records), "run")), by_environment, tag = "div"),
    unlist(by_workload), html_missing(evidence, base),
    html_files("plan", "The plan", evidence, base, c("plan.json", "plan.csv")),
    html_files("image", "The image", evidence, base, c("image.json", "image-manifest.json")))
}

#' The folders in which runs lie, linked, with how many of them there are
#'
#' @param records list of records, of one environment or of one workload
#' @inheritParams html_runs
#' @param by "workload" or "environment", the one in which they differ
#' @return lines, one for each folder
folder_lines <- function(records, evidence, base, by) {
  folders <- vapply(records, function(one) file.path(one$environment, one$workload), "")
  first <- records[!duplicated(folders)]
  path <- dirname(vapply(first, function(one) {
    cell_path(list(results = file.path(base, basename(evidence$plan$results))), "log", one)
  }, ""))
  label <- vapply(first, function(one) {
    if (by == "workload") evidence$plan$workloads[[one$workload]]$title
    else environment_labels(evidence$plan, one$environment)
  }, "")
  count <- as.vector(table(factor(folders, unique(folders))))
  sprintf("<li>%s: <a href=\"%s/\">logs and records of %s</a></li>", html_escape(label), html_escape(path),
          counted(count, "run"))
}

#' A list that opens where a number leads to it
#'
#' @param id its name
#' @param title text
#' @param items lines of HTML
#' @param tag that holds the items
#' @param open whether it is open from the start
#' @return one text
html_list <- function(id, title, items, tag = "ul", open = FALSE) {
  paste(c(sprintf("<details id=\"%s\"%s><summary>%s</summary>", html_escape(id), if (open) " open" else "",
                  html_escape(title)), sprintf("<%s>", tag), unlist(items), sprintf("</%s>", tag),
          "</details>"), collapse = "\n")
}

#' Runs as they are listed
#'
#' @param records list of records
#' @return texts such as "docker/stream/3"
run_text <- function(records) {
  vapply(records, function(record) {
    file.path(record$environment, record$workload, format(record$repetition, scientific = FALSE))
  }, "")
}

#' The log and the record of a run, linked
#'
#' @param record its record
#' @inheritParams html_runs
#' @return HTML
run_line <- function(record, evidence, base) {
  name <- run_text(list(record))
  linked <- list(results = file.path(base, basename(evidence$plan$results)))
  sprintf("<a href=\"%s\">%s.log</a>, <a href=\"%s\">record</a>%s",
          html_escape(cell_path(linked, "log", record)), html_escape(name),
          html_escape(cell_path(linked, "record", record)), html_flags(record))
}

#' The runs of the plan that are missing, with the records of those that failed
#'
#' @inheritParams html_runs
#' @return one text; NULL where no run is missing
html_missing <- function(evidence, base) {
  cells <- evidence$cells[!evidence$cells$measured, ]
  if (nrow(cells) == 0) {
    return(NULL)
  }
  name <- html_escape(file.path(cells$environment, cells$workload, cells$repetition))
  linked <- function(kind, became) {
    path <- cell_path(list(results = file.path(base, basename(evidence$plan$results))), kind, cells)
    sprintf("<li><a href=\"%s\">%s</a>: %s</li>", html_escape(path), name, became)
  }
  items <- ifelse(cells$left_out, linked("log", "left out"),
                  ifelse(file.exists(cell_path(evidence$plan, "failed", cells)), linked("failed", "failed"),
                         sprintf("<li>%s: not tried</li>", name)))
  html_list("missing", paste("The", counted(nrow(cells), "run"), "of the plan that",
                             if (nrow(cells) == 1) "is missing" else "are missing"), items)
}

#' Files of the results, linked
#'
#' @param id,title as of `html_list`
#' @param names of the files, of which those are listed that there are
#' @inheritParams html_runs
#' @return one text
html_files <- function(id, title, evidence, base, names) {
  there <- names[file.exists(file.path(evidence$plan$results, names))]
  items <- sprintf("<li><a href=\"%s\">%s</a></li>",
                   html_escape(file.path(base, basename(evidence$plan$results), there)), html_escape(there))
  html_list(id, title, if (length(there) == 0) "<li>not available</li>" else items)
}

#' The flags of one run, for the list of runs of the web page
#'
#' @param record its record
#' @return HTML; "" where it was not flagged
html_flags <- function(record) {
  texts <- flag_text(quiet_flags(list(record)))
  if (length(texts) == 0) {
    return("")
  }
  sprintf(" <strong class=\"flag\">flagged: %s</strong>", html_escape(paste(texts, collapse = "; ")))
}

#' Leads every link into a list that waits to the list itself, which is there, and says where in it to go on
#'
#' @param page one text, with lists as from `waiting_lists`
#' @return the page
lead_to_lists <- function(page) {
  lists <- strsplit(page, "<noscript>", fixed = TRUE)[[1]]
  waits <- which(endsWith(lists, "</summary>"))
  ids <- function(text) regmatches(text, gregexpr("(?<= id=\")[^\"]+", text, perl = TRUE))[[1]]
  own <- vapply(lists[waits], function(text) {
    utils::tail(ids(sub("(?s).*(<details )", "\\1", text, perl = TRUE)), 1)
  }, "")
  within <- lapply(waits + 1, function(i) ids(sub("</noscript>.*", "", lists[[i]])))
  of <- stats::setNames(rep(own, lengths(within)), unlist(within))
  lines <- strsplit(page, "\n", fixed = TRUE)[[1]]
  found <- gregexpr("(?<=href=\"#)[^\"]+", lines, perl = TRUE)
  names <- regmatches(lines, found)
  to <- as.character(unlist(names))
  led <- ifelse(to %in% names(of), paste0(of[to], "\" data-at=\"", to), to)
  regmatches(lines, found) <- utils::relist(led, names)
  paste(lines, collapse = "\n")
}

#' Gives lists of runs short names
#'
#' Every number of every table leads to one, and names of all that tells series apart would be a seventh of
#' a page.
#'
#' @param page one text
#' @return the page
short_names <- function(page) {
  # Line by line, for which it need not count the letters of all lines before.
  lines <- strsplit(page, "\n", fixed = TRUE)[[1]]
  found <- gregexpr("(?<=id=\"|href=\"#)(runs-|records-|run[.])[^\"]+", lines, perl = TRUE)
  names <- regmatches(lines, found)
  named <- as.character(unlist(names))
  short <- paste0(ifelse(startsWith(named, "runs"), "r", "n"), match(named, unique(named)), recycle0 = TRUE)
  regmatches(lines, found) <- utils::relist(short, names)
  paste(lines, collapse = "\n")
}
