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
    narrow_note(evidence, rows$workload), emulation_note(evidence), left_out_note(evidence, rows$workload)
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
#' other, each without the rows of which none of its environments has anything.
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
  needs <- as.vector(tapply(needs, units, sum))
  beside <- function(metric) panels_of(needs, room - longest(title) - longest(metric) - 4)
  if (length(beside(metric)) > 1 && !in_html()) {
    metric <- folded(metric)
  }
  panels <- lapply(beside(metric), function(panel) which(units %in% unique(units)[panel]))
  widest <- max(lengths(panels))
  parts <- lapply(panels, function(panel) {
    printed_panel(groups[panel], title, metric, widest, all = length(panels) == 1)
  })
  below <- seq_along(parts) > 1
  of <- function(name, head) {
    do.call(rbind, Map(function(part, own) rbind(if (own) head(part), part[[name]]), parts, below))
  }
  columns <- c(list(column("Workload"), column("Metric")),
               lapply(parts[[1]]$heads[seq(3, by = 3, length.out = widest)], column,
                      align = c("right", "left", "right"), span = 3))
  if (any(vapply(parts, function(part) nrow(part$cells) < length(title), NA))) {
    notes <- c(notes, "A panel leaves out what was measured in none of its environments.")
  }
  table <- new_table(id, caption, columns, of("cells", function(part) part$heads),
                     of("marks", function(part) ""),
                     unlist(Map(function(part, own) c(if (own) TRUE, part$starts), parts, below)), notes)
  table$head_rows <- unlist(Map(function(part, own) c(if (own) TRUE, FALSE & part$starts), parts, below))
  table$sources <- of("sources", function(part) "")
  table
}

#' The environments of a table that stand side by side
#'
#' @param members of `groups`, as for `printed_table`
#' @param title,metric texts of the rows
#' @param widest how many environments the panel with the most of them has
#' @param all whether rows stand there of which no environment has anything
#' @return list: `heads`, texts; `cells`, `marks` and `sources`, matrices; `starts`, whether a workload begins
#'   with a row
printed_panel <- function(members, title, metric, widest, all) {
  known <- Reduce(`|`, lapply(members, function(group) group$cells[, 1] != EM_DASH))
  kept <- if (all || !any(known)) seq_along(title) else which(known)
  rows <- length(kept)
  empty <- matrix("", rows, 3 * (widest - length(members)))
  side <- function(first, of) {
    own <- lapply(members, function(group) of(group)[kept, , drop = FALSE])
    do.call(cbind, c(list(first), own, list(empty)))
  }
  every <- length(title)
  list(
    heads = c("", "", unlist(lapply(members, function(group) c(group$label, "", ""))),
              rep("", 3 * (widest - length(members)))),
    cells = side(cbind(blank_repeats(title[kept]), metric[kept]), function(group) group$cells),
    marks = side(matrix("", rows, 2), function(group) cbind("", group$mark, rep("", every))),
    sources = side(matrix("", rows, 2), function(group) {
      matrix(if (is.null(group$source)) "" else group$source, every, 3)
    }),
    starts = !duplicated(title[kept])
  )
}

# Letters of a row's name that stand on one line where room is short.
LONGEST_NAME <- 44

#' Names of rows, the long ones on two lines
#'
#' @param text texts
#' @return the same, with a line's end in the place of the space that is nearest to the middle
folded <- function(text) {
  vapply(text, function(one) {
    spaces <- gregexpr(" ", one, fixed = TRUE)[[1]]
    if (nchar(one) <= LONGEST_NAME || spaces[[1]] < 0) {
      return(one)
    }
    at <- spaces[[which.min(abs(spaces - nchar(one) / 2))]]
    paste0(substr(one, 1, at - 1), "\n", substring(one, at + 1))
  }, "", USE.NAMES = FALSE)
}

#' How many letters of a table fit on a line
#'
#' @return number; of a page it is what a window of 1,280 pixels shows in a font of wide digits
line_room <- function() {
  if (in_html()) 155 else 150
}

#' Columns that fit beside one another
#'
#' Those of a panel stand below those of the one before, and each of them is as wide as the widest.
#'
#' @param needs their widths, in letters
#' @param room letters that fit on a line
#' @return list of vectors of column numbers, as even as can be
panels_of <- function(needs, room) {
  count <- length(needs)
  for (panels in seq_len(count)) {
    groups <- split(seq_len(count), ceiling(seq_len(count) / ceiling(count / panels)))
    each <- lapply(groups, function(group) c(needs[group], numeric(length(groups[[1]]) - length(group))))
    if (sum(do.call(pmax, unname(each))) <= room) {
      break
    }
  }
  unname(groups)
}
