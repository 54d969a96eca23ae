# The tables of the paper as cells of text.  What becomes of the cells (LaTeX, HTML) is decided elsewhere.

#' A table
#'
#' @param id what refers to it
#' @param caption text
#' @param columns list of columns, each as from `column`
#' @param cells data frame or matrix of texts, a column for each of `columns`
#' @param marks matrix like `cells`: the letters of the notes on a cell, "" where there are none
#' @param group_starts for each row whether it begins a group
#' @param notes texts that stand under the table; the names of those with a letter are the letters
#' @param wide whether it spans both columns of a page
#' @return list of these, `columns` as a data frame; `head_rows`: for each row whether it holds headings; and
#'   `sources`, a matrix like `cells`: names as from `source_id` of what a number rests on, "" where there is
#'   none
new_table <- function(id, caption, columns, cells, marks = NULL, group_starts = NULL, notes = character(),
                      wide = TRUE) {
  cells <- as.data.frame(cells, stringsAsFactors = FALSE)
  names(cells) <- NULL
  if (is.null(marks)) {
    marks <- matrix("", nrow(cells), ncol(cells))
  }
  if (is.null(group_starts)) {
    group_starts <- rep(FALSE, nrow(cells))
  }
  list(id = id, caption = caption, columns = do.call(rbind, columns), cells = cells, marks = marks,
       sources = matrix("", nrow(cells), ncol(cells)), group_starts = group_starts,
       head_rows = rep(FALSE, nrow(cells)), notes = notes, wide = wide)
}

#' A column of a table
#'
#' @param head text
#' @param align "left", "right", "centre", "decimal" (numbers aligned at their points) or "wrap" (text of
#'   several lines)
#' @param spanner text above this and its neighbours of the same spanner, "" for none
#' @param weight share of the width that a column of several lines takes, relative to the others
#' @param span how many columns the heading spans: those that follow have no heading, and stand close to this
#'   one
#' @return data frame of one row for each column that is spanned, `span` being 0 in those that follow
column <- function(head, align = "left", spanner = "", weight = 1, span = 1) {
  data.frame(head = c(head, rep("", span - 1)), align = align, spanner = spanner, weight = weight,
             span = c(span, rep(0, span - 1)))
}

#' Names for what rows of the summary rest on
#'
#' @param rows of the comparisons
#' @return texts, each different, of letters, digits and hyphens
source_id <- function(rows) {
  text <- paste("runs", rows$workload, rows$metric, rows$factors, rows$environment, sep = "-")
  gsub("^-+|-+$", "", gsub("-+", "-", gsub("[^A-Za-z0-9.]+", "-", text)))
}

#' Values with empty cells where a value repeats the one above
#'
#' @param text texts
#' @param starts for each whether it is shown in any case
#' @return texts
blank_repeats <- function(text, starts = rep(FALSE, length(text))) {
  repeated <- c(FALSE, text[-1] == text[-length(text)])[seq_along(text)]
  ifelse(repeated & !starts, "", text)
}

#' A mean as the original report prints it
#'
#' @param mean,sd texts; "" where they are not known
#' @param deviation from native as a share; missing for native and where it is not known
#' @return matrix of three columns, such as "73.5", "(-4 %)" and "[0.64]"
printed_cells <- function(mean, deviation, sd) {
  cbind(or_dash(mean), ifelse(is.na(deviation), "", paste0("(", percent(deviation, 0), ")")),
        ifelse(sd == "", "", paste0("[", sd, "]")))
}

#' A number with two significant digits
#'
#' @param x numbers
#' @return texts
significant <- function(x) {
  fixed(x, pmax(0, 1 - magnitude(signif(x, 2))))
}

#' Table I of the original, with what was measured here
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_as_printed <- function(evidence) {
  rows <- evidence$comparisons
  if (nrow(rows) == 0) {
    return(NULL)
  }
  environments <- evidence$environments$name[evidence$environments$name %in% rows$environment]
  series <- rows[!duplicated(rows$series), ]
  decimals <- vapply(split(rows, rows$series), function(one) {
    decimals_for(if (all(is.na(one$sd))) NA else max(one$sd, na.rm = TRUE), one$mean)
  }, 0)
  usual <- most_frequent(rows$n)
  groups <- lapply(environments, function(name) {
    own <- rows[rows$environment == name, ]
    own <- own[match(series$series, own$series), ]
    deviation <- if (name == REFERENCE) NA_real_ else own$ratio - 1
    list(label = environment_labels(evidence$plan, name),
         cells = printed_cells(fixed(own$mean, decimals), deviation, significant(own$sd)),
         mark = ifelse(is.na(own$n) | own$n == usual, "", paste0("n=", own$n)),
         source = ifelse(is.na(own$n), "", source_id(own)))
  })
  absent <- vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA)
  notes <- c(
    paste0("Mean (deviation from native, of means paired by block) [standard deviation]; ", n_is(usual),
           if (usual == 1) " run" else " runs", if (any(rows$n != usual)) ", except where marked", "."),
    if (any(absent)) paste0(EM_DASH, ": not measured."),
    if (!REFERENCE %in% environments) "Native was not measured, so that no deviation is known."
  )
  caption <- paste0("Results as Table I of the original report prints them",
                    if (evidence$partial) " (partial)")
  printed_table("printed", caption, series$title, paste0(series$metric_label, " (", series$unit, ")"), groups,
                notes)
}

#' A table in the form of Table I of the original
#'
#' Where the environments are too many for the width of a page, they stand in several panels, one above the
#' other.
#'
#' @param id,caption,notes as of `new_table`
#' @param title,metric texts of the rows
#' @param groups list with an element for each environment: `label`; `cells`, a matrix as from
#'   `printed_cells`; `mark`, a text for each row that is set on the mean, "" for none; and `source`, names as
#'   from `source_id`, or NULL
#' @param room letters that fit on a line
#' @return a table
printed_table <- function(id, caption, title, metric, groups, notes, room = line_room()) {
  rows <- length(title)
  stub <- cbind(blank_repeats(title), metric)
  needs <- vapply(groups, function(group) {
    max(nchar(group$label), sum(apply(nchar(group$cells), 2, max)) + 2) + 2
  }, 0)
  panels <- panels_of(needs, room - sum(apply(nchar(stub), 2, max)) - 4)
  widest <- max(lengths(panels))
  starts <- !duplicated(title)
  parts <- lapply(seq_along(panels), function(i) {
    members <- groups[panels[[i]]]
    empty <- matrix("", rows, 3 * (widest - length(members)))
    heads <- c("", "", unlist(lapply(members, function(group) c(group$label, "", ""))), empty[1, ])
    list(heads = heads, cells = do.call(cbind, c(list(stub), lapply(members, `[[`, "cells"), list(empty))),
         marks = do.call(cbind, c(list(matrix("", rows, 2)), lapply(members, function(group) {
           cbind(matrix("", rows, 2), group$mark)
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
                      align = c("right", "right", "left"), span = 3))
  table <- new_table(id, caption, columns, cells, marks,
                     unlist(lapply(below, function(head) c(if (head) TRUE, starts))),
                     notes)
  table$head_rows <- unlist(lapply(below, function(head) c(if (head) TRUE, rep(FALSE, rows))))
  table$sources <- do.call(rbind, Map(function(part, head) rbind(if (head) "", part$sources), parts, below))
  table
}

#' How many letters of a table fit on a line
#'
#' @return number; without limit where the page scrolls
line_room <- function() {
  if (in_html()) Inf else 150
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

#' The results with their intervals
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_of_intervals <- function(evidence) {
  rows <- evidence$comparisons
  if (nrow(rows) == 0) {
    return(NULL)
  }
  of_series <- function(f) unlist(unname(lapply(split(rows, rows$series), f)))
  decimals <- of_series(function(one) {
    rep(decimals_for((one$mean_high - one$mean_low) / 2, c(one$mean, one$median)), nrow(one))
  })
  with_median <- any(!is.na(rows$median_low))
  with_ratio <- any(!is.na(rows$ratio))
  with_need <- any(!is.na(rows$runs_needed)) || any(grepl("many-runs", rows$flags))
  target <- paste0("\u00b1", percent(wanted_precision(evidence$plan)))
  starts <- !duplicated(rows$series)
  flags <- flag_letters(rows$flags)
  everywhere <- flags$everywhere
  ratio_decimals <- mapply(percent_decimals, rows$ratio_low, rows$ratio_high)
  missing_ratio <- ifelse(rows$environment == REFERENCE, "", EM_DASH)
  cells <- cbind(
    ifelse(starts, paste0(rows$name, " (", rows$unit, ")"), ""),
    rows$environment_label,
    fixed(rows$n, 0),
    fixed(rows$mean, decimals),
    or_dash(interval(rows$mean_low, rows$mean_high, decimals)),
    fixed(rows$median, decimals),
    if (with_median) or_dash(interval(rows$median_low, rows$median_high, decimals)),
    ifelse(is.na(rows$ratio), missing_ratio, fixed(100 * rows$ratio, ratio_decimals)),
    ifelse(is.na(rows$ratio_low), missing_ratio,
           interval(100 * rows$ratio_low, 100 * rows$ratio_high, ratio_decimals)),
    ifelse(is.na(rows$ratio), missing_ratio, fixed(rows$ratio_n, 0)),
    ifelse(is.na(rows$p_adjusted), missing_ratio, p_text(rows$p_adjusted)),
    ifelse(rows$verdict == "", missing_ratio, reading(rows$verdict)),
    if (with_need) or_dash(ifelse(grepl("many-runs", rows$flags), paste(">", fixed(MOST_RUNS, 0)),
                                  fixed(rows$runs_needed, 0))),
    flags$letters
  )
  interval_head <- paste0("95", THIN, "% interval")
  columns <- list(
    column("Workload and metric"), column("Environment"), column("n", "right"),
    column("Mean", "right", "Level"), column(interval_head, "right", "Level"),
    column("Median", "right", "Level"), if (with_median) column(interval_head, "right", "Level"),
    column("%", "right", "Ratio to native"), column(interval_head, "right", "Ratio to native"),
    column("Pairs", "right", "Ratio to native"), column("p", "right", "Ratio to native"),
    column("Reading", "left", "Ratio to native"), if (with_need) column(paste("Runs for", target), "right"),
    column("Flags", "left")
  )
  unflagged <- flags$letters == ""
  minimum <- percent(MINIMUM_EFFECT, 0)
  notes <- c(
    if (with_ratio) {
      paste0("p: adjusted over all comparisons of this table. Reading: slower or faster where it is below ",
             "0.05 and the ratio differs from 100", THIN, "% by more than ", minimum, "; \u201c",
             reading("equal"), "\u201d where the whole interval lies within ", minimum, "; open otherwise.")
    },
    if (with_need) {
      paste0("Runs for ", target, ": how many would bring the limits of the median\u2019s interval that ",
             "near, as estimated from these runs.")
    },
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs."),
    if (length(everywhere) > 0) paste("All rows:", paste(everywhere, collapse = " ")),
    flags$notes
  )
  numbers <- which(vapply(Filter(Negate(is.null), columns), function(one) one$align == "right", NA))
  keep <- rep(TRUE, ncol(cells))
  keep[ncol(cells)] <- !all(unflagged)
  keep[ncol(cells) - with_need - 5:1] <- with_ratio
  table <- new_table("intervals", paste0(
    "Means and medians", if (with_ratio) ", ratios of means paired by block,", " and their 95", THIN,
    "% intervals",
    if (evidence$partial) " (partial)"
  ), Filter(Negate(is.null), columns)[keep], cells[, keep, drop = FALSE], group_starts = starts,
  notes = notes)
  table$sources[, which(keep) %in% numbers] <- source_id(rows)
  table
}

#' A p value
#'
#' @param p p values
#' @return texts of two significant digits, "<0.001" for smaller ones; "" where there is none
p_text <- function(p) {
  ifelse(is.na(p), "", ifelse(p < 0.001, "<0.001", significant(pmin(p, 1))))
}

#' Texts with a dash where they are empty
#'
#' @param text texts
#' @return texts
or_dash <- function(text) {
  ifelse(text == "", EM_DASH, text)
}

#' A verdict as a cell
#'
#' @param verdict as from `verdict`
#' @return texts
reading <- function(verdict) {
  c(slower = "slower", faster = "faster", equal = paste("within", percent(MINIMUM_EFFECT, 0)), open = "open",
    unknown = "no interval")[verdict]
}

#' Letters for flags
#'
#' @param flags texts of codes separated by ";", "" where there are none
#' @return list: `letters`, a text for each element such as "a, c"; `notes`, the meanings named by their
#'   letters; and `everywhere`, the meanings of flags that all of several elements have, which get no letter.
#'   A code without a known meaning stands for itself.
flag_letters <- function(flags) {
  codes <- strsplit(flags, ";", fixed = TRUE)
  known <- flag_meanings()
  present <- unique(unlist(codes))
  present <- c(names(known)[names(known) %in% present], setdiff(present, names(known)))
  meanings <- ifelse(present %in% names(known), known[present], sentence(words(gsub("-", " ", present))))
  meanings <- with_percent(unname(meanings))
  count <- vapply(present, function(code) sum(vapply(codes, function(x) code %in% x, NA)), 0L)
  common <- length(flags) > 1 & count == length(flags)
  lettered <- present[!common]
  letter <- c(letters, paste0(rep(letters, each = 26), letters))[seq_along(lettered)]
  list(letters = vapply(codes, function(code) {
    paste(letter[lettered %in% code], collapse = ", ")
  }, ""), notes = stats::setNames(meanings[!common], letter), everywhere = meanings[common])
}

#' The values that the originals published
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where the plan has none of their workloads
table_published <- function(evidence) {
  published <- evidence$published
  rows <- Filter(function(row) row$workload %in% names(evidence$plan$workloads), published$rows)
  if (length(rows) == 0) {
    return(NULL)
  }
  rows <- rows[order(match(vapply(rows, `[[`, "", "workload"), names(evidence$plan$workloads)))]
  title <- vapply(rows, function(row) row$title, "")
  metric <- vapply(rows, function(row) paste0(row$label, " (", row$unit, ")"), "")
  groups <- lapply(names(published$environments), function(name) {
    values <- lapply(rows, function(row) row$values[[name]])
    text <- function(key) vapply(values, function(value) as.character(c(value[[key]], "")[[1]]), "")
    deviation <- vapply(values, function(value) c(value$deviation_percent, NA)[[1]] / 100, 0)
    list(label = published$environments[[name]], cells = printed_cells(text("mean"), deviation, text("sd")),
         mark = rep("", length(rows)))
  })
  notes <- c("Mean (deviation from native) [standard deviation], as printed. These are not measurements of",
             "this paper: the hardware differs, so that only ratios are comparable.")
  gaps <- any(vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA))
  printed_table("published", "Published in 2014, for orientation: values of Table I of the original report",
                title, metric, groups, c(paste(notes, collapse = " "),
                                         if (gaps) paste0(EM_DASH, ": not published.")))
}
