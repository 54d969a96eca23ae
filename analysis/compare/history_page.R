# The page of several dates or machines: one file that needs no network.

#' The page of a history
#'
#' @param history as from `history_of`
#' @param ratios as from `ratios_beside`
#' @param differences as from `origins_apart`
#' @param sides list of sides as from `read_side`, with `source`, `sha256` and `paper`, in their order
#' @param effect the minimum effect, as a share
#' @param figure path of the figure without its ending
#' @param root folder of the project
#' @return one text
history_page <- function(history, ratios, differences, sides, effect, figure, root) {
  text <- history_text(history, sides, effect)
  bare_page(paste("History of", listed(side_names(sides))), c(
    sprintf("<p>%s</p>", html_escape(text)),
    html_table(table_sides(sides)),
    papers_list(sides),
    html_figure(figure, basename(figure), "changes", history_caption(sides, effect), text),
    html_table(table_history(history, sides, effect)),
    if (nrow(ratios) > 0) html_table(table_ratios_beside(ratios, sides)),
    html_table(new_table("origins", "What was observed to differ between them",
                         c(list(column("What", "wrap")), lapply(side_names(sides), column, "wrap")),
                         differences, notes = if (nrow(differences) == 0) "Nothing." else character())),
    sprintf("<p>%s</p>", html_escape(history_method()))
  ), root)
}

#' The papers of the sides, to be opened beside one another
#'
#' @param sides list of sides, with `paper`
#' @return HTML; NULL where there is none
papers_list <- function(sides) {
  there <- Filter(function(side) !is.null(side$paper), sides)
  if (length(there) > 0) {
    links <- vapply(there, function(side) {
      sprintf("<li><a href=\"%s\">The paper of %s</a></li>",
              html_escape(utils::URLencode(side$paper)), html_escape(side$name))
    }, "")
    paste(c("<ul>", links, "</ul>"), collapse = "\n")
  }
}

#' The table of the sides and of what each is from
#'
#' @param sides list of sides, with `source` and `sha256`
#' @return a table
table_sides <- function(sides) {
  cells <- do.call(rbind, lapply(sides, function(side) {
    seen <- function(...) {
      values <- unlist(lapply(side$records, field, ...))
      if (length(values) == 0) {
        return(NOT_AVAILABLE)
      }
      paste(sort(unique(values), method = "radix"), collapse = ", ")
    }
    revision <- side$plan$source$revision
    data.frame(side$name, period_text(measured_period(side$records)), fixed(length(side$records), 0),
               seen("observed", "host", "static", "cpu_model"), seen("observed", "host", "static", "kernel"),
               if (is.null(revision)) NOT_AVAILABLE else substr(revision, 1, 12), side$source,
               if (is.null(side$sha256)) EM_DASH else side$sha256)
  }))
  new_table("sides", "What stands side by side", list(
    column("Name"), column("Measured", "wrap"), column("Runs", "right"), column("Processor", "wrap"),
    column("Kernel"), column("Revision"), column("From", "wrap"), column("Its SHA-256", "wrap")
  ), cells, notes = paste("From an archive everything here can be made again, and every number be followed",
                          "to its raw log."))
}

#' The table of all series at all sides
#'
#' @param history as from `history_of`
#' @param sides list of sides, in their order
#' @param effect the minimum effect, as a share
#' @return a table
table_history <- function(history, sides, effect) {
  names <- side_names(sides)
  plan <- sides[[1]]$plan
  known <- history$from == names[[1]] & history$n_first > 0
  key <- function(rows) {
    paste(rows$environment, rows$workload, rows$metric, rows$unit, rows$factors, sep = "\r")
  }
  keys <- unique(key(history[known, ]))
  rows <- history[match(keys, key(history)), ]
  # As it compares with the first: a machine with acceleration and one without are two environments.
  level <- function(name) {
    own <- name == names[[1]]
    of <- history[history$from == names[[1]] & history$n_first > 0 & (own | history$to == name), ]
    of <- of[match(keys, key(of)), ]
    value <- function(end) of[[paste0("mean_", if (own) "first" else "second", end)]]
    vapply(seq_along(keys), function(i) {
      if (is.na(value("")[[i]])) {
        return(EM_DASH)
      }
      limits <- c(value("_low")[[i]], value("_high")[[i]])
      decimals <- decimals_for(diff(limits) / 2, value("")[[i]])
      trimws(paste(fixed(value("")[[i]], decimals), interval(limits[[1]], limits[[2]], decimals)))
    }, "")
  }
  levels <- lapply(names, level)
  changes <- changes_of(history, sides)
  change <- function(k) {
    of <- changes[changes$to == names[[k]] & !is.na(changes$ratio), ]
    of <- of[match(keys, key(of)), ]
    told <- !is.na(of$ratio) & levels[[k - 1]] != EM_DASH & levels[[k]] != EM_DASH
    list(ifelse(told, percent_interval(of$ratio, of$ratio_low, of$ratio_high), EM_DASH),
         ifelse(told, of$reading, EM_DASH))
  }
  cells <- c(list(compared_names(rows, plan, plan), environment_labels(plan, rows$environment), rows$unit,
                  levels[[1]]),
             unlist(lapply(seq_along(names)[-1], function(k) c(levels[k], change(k))), recursive = FALSE))
  cells <- stats::setNames(as.data.frame(cells, stringsAsFactors = FALSE), paste0("c", seq_along(cells)))
  mean_head <- "Mean [95\u202f% interval]"
  columns <- c(list(column("Metric"), column("Environment"), column("Unit"),
                    column(mean_head, "right", names[[1]])),
               unlist(lapply(names[-1], function(name) {
                 list(column(mean_head, "right", name), column("To the one before", "right", name),
                      column("Reading", "left", name))
               }), recursive = FALSE))
  new_table("history", "Everything that the first measured, at each of them", columns, cells, notes = paste0(
    "To the one before: the ratio of means with its 95", THIN, "% interval. Slower and faster where the ",
    "adjusted p value is below 0.05 and the ratio differs from 1 by more than ", percent(effect, 1),
    "; equal where two one-sided tests at 5", THIN, "% exclude that; open otherwise; unknown where there is ",
    "no interval."
  ))
}

#' The table of the ratios to native side by side
#'
#' @param ratios as from `ratios_beside`
#' @param sides list of sides, in their order
#' @return a table
table_ratios_beside <- function(ratios, sides) {
  key <- paste(ratios$environment, ratios$workload, ratios$metric, ratios$factors, sep = "\r")
  keys <- unique(key)
  names <- side_names(sides)
  rows <- ratios[match(keys, key), ]
  told <- lapply(seq_along(keys), function(i) {
    plan <- sides[[match(rows$side[[i]], names)]]$plan
    c(compared_names(rows[i, ], plan, plan), environment_labels(plan, rows$environment[[i]]))
  })
  of <- function(name) {
    own <- ratios[ratios$side == name, ]
    own <- own[match(keys, key[ratios$side == name]), ]
    list(ifelse(is.na(own$ratio), EM_DASH, percent_interval(own$ratio, own$ratio_low, own$ratio_high)),
         ifelse(is.na(own$ratio), EM_DASH, own$reading))
  }
  cells <- c(list(vapply(told, `[[`, "", 1), vapply(told, `[[`, "", 2)),
             unlist(lapply(names, of), recursive = FALSE))
  cells <- stats::setNames(as.data.frame(cells, stringsAsFactors = FALSE), paste0("c", seq_along(cells)))
  columns <- c(list(column("Metric"), column("Environment")), unlist(lapply(names, function(name) {
    list(column("Ratio to native [95\u202f% interval]", "right", name), column("Reading", "left", name))
  }), recursive = FALSE))
  new_table("ratios", "What environments cost at each of them", columns, cells, notes = paste(
    "As each side's own paper has them: paired by set, and tested as one family of that side."
  ))
}

#' The caption of the figure of a history
#'
#' @param sides list of sides
#' @param effect the minimum effect, as a share
#' @return text
history_caption <- function(sides, effect) {
  emulated <- any(lengths(lapply(sides, function(side) emulated_environments(side$plan))) > 0)
  paste0("Ratio of each mean to that of ", side_names(sides)[[1]], ", with its 95", THIN, "% interval; of ",
         "sweeps at the points that stand for them. The grey band is the minimum effect, ",
         percent(effect, 1), " to either side; an axis need not start at zero.",
         if (emulated) " Emulated virtual machines stand below, on an axis of their own.",
         " Lines join an environment's marks in the order given, and say nothing of what lies between.")
}

#' How a history is made
#'
#' @return text
history_method <- function() {
  paste(compared_method(), "Each side is compared with the first, as in the figure, and with the one before",
        "it, as in the table; all of that is one family.")
}
