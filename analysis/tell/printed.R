# The results in the form of Table I of the original report.

#' A mean as the original report prints it, but for the brackets: round ones hold a standard deviation, and
#' square ones are left to intervals
#'
#' @param mean,sd texts; "" where they are not known
#' @param deviation from native as a share; missing for native and where it is not known
#' @param decimals of the deviation in per cent
#' @return matrix of three columns, such as "73.5", "(0.64)" and "-4 %"
printed_cells <- function(mean, sd, deviation, decimals = 0) {
  sign <- ifelse(!is.na(deviation) & round(100 * deviation, decimals) > 0, "+", "")
  cbind(or_dash(mean), ifelse(sd == "", "", paste0("(", sd, ")")),
        ifelse(is.na(deviation), "", paste0(sign, percent(deviation, decimals))))
}

#' What was measured, in the form of Table I of the original
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_as_printed <- function(evidence) {
  rows <- told(evidence)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  environments <- evidence$environments$name[evidence$environments$name %in% rows$environment]
  series <- rows[!duplicated(rows$series), ]
  groups <- lapply(environments, function(name) {
    measured_group(evidence, name, series$series, environment_labels(evidence$plan, name))
  })
  absent <- vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA)
  notes <- c(
    paste0("Mean (standard deviation), and the deviation from native, of means paired by set; ",
           usual_runs(evidence)),
    statistic_notes(rows),
    if (any(absent)) paste0(EM_DASH, ": not measured."),
    if (!REFERENCE %in% environments) "Native was not measured, so that no deviation is known.",
    untold_text(evidence),
    emulation_note(evidence), left_out_note(evidence, rows$workload)
  )
  caption <- paste0("Results in the form of Table I of the original report",
                    of_sweeps(evidence),
                    if (evidence$partial) " (partial)")
  printed_table("printed", caption, series$title, paste0(series$metric_label, " (", series$unit, ")"), groups,
                notes)
}

#' The columns of one environment in a table in the form of Table I
#'
#' @param evidence as from `read_evidence`
#' @param name of the environment
#' @param series numbers of the comparisons' series, one for each row; NA for none
#' @param label of the columns
#' @return list as for `printed_table`
measured_group <- function(evidence, name, series, label) {
  rows <- told(evidence)
  own <- rows[rows$environment == name, ]
  own <- own[match(series, own$series), ]
  level <- levels_of(own)$value
  places <- mapply(decimals_for, own$sd, ifelse(is.na(level), 0, level))
  deviation <- if (name == REFERENCE) NA_real_ else own$ratio - 1
  usual <- most_frequent(rows$n)
  list(label = label,
       cells = printed_cells(fixed(level, places), fixed(own$sd, places), deviation,
                             mapply(percent_decimals, own$ratio_low, own$ratio_high)),
       mark = ifelse(is.na(own$n) | own$n == usual, "", paste0("n=", own$n)),
       source = ifelse(is.na(own$n), "", source_id(own)))
}

#' A table in the form of Table I of the original
#'
#' Where the environments are too many for the width of a page, they stand in several panels, one above the
#' other.
#'
#' @param id,caption,notes as of `new_table`
#' @param title,metric texts of the rows
#' @param groups list with an element for each environment: `label`; `cells`, a matrix as from
#'   `printed_cells`; `mark`, a text for each row that is set on its second column, "" for none; and
#'   `source`, names as from `source_id`, or NULL
#' @param units for each group a number, the same for those that stand side by side in one panel
#' @param room letters that fit on a line
#' @return a table
printed_table <- function(id, caption, title, metric, groups, notes, units = seq_along(groups),
                          room = line_room()) {
  rows <- length(title)
  stub <- cbind(blank_repeats(title), metric)
  for (i in seq_along(groups)) {
    groups[[i]]$label <- in_two_lines(groups[[i]]$label)
  }
  # A browser breaks lines between words, LaTeX none.
  broken <- if (in_html()) "[ \n]+" else "\n"
  between <- if (in_html()) 0 else 2
  longest <- function(text) max(nchar(unlist(strsplit(text, broken))), 0)
  needs <- vapply(groups, function(group) {
    max(longest(group$label), sum(apply(nchar(group$cells), 2, max)) + between) + between
  }, 0)
  panels <- panels_of(as.vector(tapply(needs, units, sum)), room - sum(apply(stub, 2, longest)) - 4)
  panels <- lapply(panels, function(panel) which(units %in% unique(units)[panel]))
  widest <- max(lengths(panels))
  starts <- !duplicated(title)
  parts <- lapply(seq_along(panels), function(i) {
    members <- groups[panels[[i]]]
    empty <- matrix("", rows, 3 * (widest - length(members)))
    heads <- c("", "", unlist(lapply(members, function(group) c(group$label, "", ""))), empty[1, ])
    list(heads = heads, cells = do.call(cbind, c(list(stub), lapply(members, `[[`, "cells"), list(empty))),
         marks = do.call(cbind, c(list(matrix("", rows, 2)), lapply(members, function(group) {
           cbind("", group$mark, rep("", rows))
         }), list(empty))),
         sources = do.call(cbind, c(list(matrix("", rows, 2)), lapply(members, function(group) {
           matrix(if (is.null(group$source)) "" else group$source, rows, 3)
         }), list(empty))))
  })
  below <- seq_along(parts) > 1
  cells <- do.call(rbind, Map(function(part, head) rbind(if (head) part$heads, part$cells), parts, below))
  marks <- do.call(rbind, Map(function(part, head) rbind(if (head) "", part$marks), parts, below))
  columns <- c(list(column("Workload"), column("Metric")),
               lapply(parts[[1]]$heads[seq(3, by = 3, length.out = widest)], column,
                      align = c("right", "left", "right"), span = 3))
  table <- new_table(id, caption, columns, cells, marks,
                     unlist(lapply(below, function(head) c(if (head) TRUE, starts))),
                     notes)
  table$head_rows <- unlist(lapply(below, function(head) c(if (head) TRUE, rep(FALSE, rows))))
  table$sources <- do.call(rbind, Map(function(part, head) rbind(if (head) "", part$sources), parts, below))
  table
}

#' How many letters of a table fit on a line
#'
#' @return number; of a page it is what a window of 1,280 pixels shows in a font of wide digits
line_room <- function() {
  if (in_html()) 155 else 150
}

#' Columns that fit beside one another
#'
#' @param needs their widths, in letters
#' @param room letters that fit on a line
#' @return list of vectors of column numbers, as even as can be
panels_of <- function(needs, room) {
  count <- length(needs)
  for (panels in seq_len(count)) {
    groups <- split(seq_len(count), ceiling(seq_len(count) / ceiling(count / panels)))
    if (all(vapply(groups, function(group) sum(needs[group]), 0) <= room)) {
      break
    }
  }
  unname(groups)
}
