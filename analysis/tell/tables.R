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
#'   `sources`, a matrix like `cells`: names, as `linked` takes them, of what a number rests on, ""
#'   where there is none
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
    paste0("Mean (deviation from native, of means paired by block) [standard deviation]; ",
           usual_runs(evidence)),
    statistic_notes(rows),
    if (any(absent)) paste0(EM_DASH, ": not measured."),
    if (!REFERENCE %in% environments) "Native was not measured, so that no deviation is known.",
    untold_text(evidence),
    emulation_note(evidence)
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
  decimals <- vapply(split(rows, rows$series), function(one) {
    decimals_for(if (all(is.na(one$sd))) NA else max(one$sd, na.rm = TRUE), levels_of(one)$value)
  }, 0)
  own <- rows[rows$environment == name, ]
  own <- own[match(series, own$series), ]
  places <- decimals[as.character(series)]
  places[is.na(places)] <- 0
  deviation <- if (name == REFERENCE) NA_real_ else own$ratio - 1
  usual <- most_frequent(rows$n)
  list(label = label,
       cells = printed_cells(fixed(levels_of(own)$value, places), deviation, significant(own$sd)),
       mark = ifelse(is.na(own$n) | own$n == usual, "", paste0("n=", own$n)),
       source = ifelse(is.na(own$n), "", source_id(own)))
}

#' How many runs the cells of a table in the form of Table I rest on
#'
#' @param evidence as from `read_evidence`
#' @return end of a sentence
usual_runs <- function(evidence) {
  rows <- told(evidence)
  n <- rows$n
  usual <- most_frequent(n)
  paste0(linked(n_is(usual), shared_source(rows)), if (usual == 1) " run" else " runs",
         if (any(n != usual)) ", except where marked", ".")
}

#' What is not to be concluded from emulated virtual machines
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where none was measured
emulation_note <- function(evidence) {
  names <- intersect(emulated_environments(evidence$plan), evidence$comparisons$environment)
  if (length(names) > 0) {
    paste0(listed(in_sentence(environment_labels(evidence$plan, names))), ": emulated in software, without ",
           "hardware acceleration; these values test no claim about KVM.")
  }
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
  needs <- vapply(groups, function(group) {
    max(nchar(strsplit(group$label, "\n", fixed = TRUE)[[1]]),
        sum(apply(nchar(group$cells), 2, max)) + 2) + 2
  }, 0)
  panels <- panels_of(as.vector(tapply(needs, units, sum)), room - sum(apply(nchar(stub), 2, max)) - 4)
  panels <- lapply(panels, function(panel) which(units %in% unique(units)[panel]))
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
  rows <- told(evidence)
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
    or_dash(fixed(rows$mean, decimals)),
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
      paste0("p: adjusted over all comparisons ",
             c("of this table", "with native, those of sweeps too")[[1 + (of_sweeps(evidence) != "")]],
             ". Reading: slower or faster where it is below ",
             "0.05 and the ratio differs from 100", THIN, "% by more than ", minimum, "; \u201c",
             reading("equal"), "\u201d where the whole interval lies within ", minimum, "; open otherwise.")
    },
    if (with_need) {
      paste0("Runs for ", target, ": how many would bring the limits of the median\u2019s interval that ",
             "near, as estimated from these runs.")
    },
    statistic_notes(rows),
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs."),
    if (length(everywhere) > 0) paste("All rows:", paste(everywhere, collapse = " ")),
    untold_text(evidence),
    emulation_note(evidence),
    flags$notes
  )
  numbers <- which(vapply(Filter(Negate(is.null), columns), function(one) one$align == "right", NA))
  keep <- rep(TRUE, ncol(cells))
  keep[ncol(cells)] <- !all(unflagged)
  keep[ncol(cells) - with_need - 5:1] <- with_ratio
  table <- new_table("intervals", paste0(
    "Means and medians", if (with_ratio) ", ratios of means paired by block,", " and their 95", THIN,
    "% intervals", of_sweeps(evidence),
    if (evidence$partial) " (partial)"
  ), Filter(Negate(is.null), columns)[keep], cells[, keep, drop = FALSE], group_starts = starts,
  notes = notes)
  table$sources[, which(keep) %in% numbers] <- source_id(rows)
  table
}

#' What is to be said of metrics that are not averaged as most are
#'
#' @param rows of the comparisons
#' @return notes, one for each such statistic
statistic_notes <- function(rows) {
  plain <- substr(rows$name, 1, nchar(rows$name) - nchar(factor_text(rows$factors)))
  named <- function(statistic) listed(unique(plain[rows$statistic == statistic]))
  c(
    if (any(rows$statistic == "harmonic")) {
      paste0("Harmonic means, since they are rates over equal work: ", named("harmonic"), ".")
    },
    if (any(rows$statistic == "percentile")) {
      paste0("Percentiles of single runs, of which no mean is taken but the median over the runs, and the ",
             "median of the ratios within the blocks: ", named("percentile"), ".")
    }
  )
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

#' Table I of the original beside what was measured here
#'
#' Each published environment is followed by the one that stands for it here, under the name that it has here.
#' A published value has the size of the originals; the largest that was measured stands beside it.
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
  measured <- published_series(rows, told(evidence))
  stand_ins <- vapply(names(published$environments), stand_in, "", evidence = evidence)
  pairs <- lapply(names(published$environments), function(name) {
    label <- published$environments[[name]]
    theirs <- published_group(rows, name, paste0(label, ", 2014"))
    here <- stand_ins[[name]]
    if (here == "" || all(is.na(measured$series))) {
      return(list(theirs))
    }
    own <- paste0(environment_labels(evidence$plan, here), ", here")
    list(theirs, measured_group(evidence, here, measured$series, own))
  })
  groups <- unlist(pairs, recursive = FALSE)
  beside <- any(lengths(pairs) > 1)
  gaps <- any(vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA))
  notes <- c(
    paste("2014: mean (deviation from native) [standard deviation], as printed; these are not measurements",
          "of this paper. The hardware differs, so that only the deviations can be compared."),
    if (beside) {
      paste("Here: the same of this paper\u2019s runs, means paired by block;", usual_runs(evidence))
    },
    measured$note,
    if (gaps) paste0(EM_DASH, if (beside) ": not published, or not measured here." else ": not published."),
    absent_note(stand_ins, evidence),
    emulation_note(evidence)
  )
  printed_table("published", if (beside) {
    "Table I of the original report, of 2014, beside what was measured here"
  } else {
    "Published in 2014, for orientation: values of Table I of the original report"
  }, vapply(rows, function(row) row$title, ""),
  vapply(rows, function(row) paste0(row$label, " (", row$unit, ")"), ""), groups, notes,
  units = rep(seq_along(pairs), lengths(pairs)))
}

#' The columns of one published environment
#'
#' @param rows of the published table
#' @param name of the environment
#' @param label of the columns
#' @return list as for `printed_table`
published_group <- function(rows, name, label) {
  values <- lapply(rows, function(row) row$values[[name]])
  text <- function(key) vapply(values, function(value) as.character(c(value[[key]], "")[[1]]), "")
  deviation <- vapply(values, function(value) c(value$deviation_percent, NA)[[1]] / 100, 0)
  list(label = label, cells = printed_cells(text("mean"), deviation, text("sd")),
       mark = rep("", length(rows)))
}

#' Which series was measured for each row of the published table
#'
#' @param rows of the published table
#' @param comparisons as from `compare`
#' @return list: `series`, numbers, NA where there is none of the same unit, and `note`, a sentence about the
#'   sizes that stand there, or NULL
published_series <- function(rows, comparisons) {
  known <- comparisons[!duplicated(comparisons$series), ]
  at <- vapply(rows, function(row) {
    own <- which(known$workload == row$workload & known$metric == row$metric & known$unit == row$unit)
    if (length(own) > 0) max(own) else NA_integer_
  }, 0L)
  sized <- unique(at[!is.na(at) & known$factors[at] != ""])
  sizes <- paste0(known$title[sized], " (", sub("^, ", "", factor_text(known$factors[sized])), ")",
                  recycle0 = TRUE)
  list(series = known$series[at], note = if (length(sized) > 0) {
    paste0("Sizes here: ", listed(sizes), "; those of 2014 are in the rows\u2019 names.")
  })
}

#' The measured environment that stands for a published one
#'
#' An emulated virtual machine stands beside the published one under its own name.
#'
#' @param name its published name
#' @param evidence as from `read_evidence`
#' @return name; "" where none was measured
stand_in <- function(name, evidence) {
  names <- intersect(unlist(evidence$known[[name]]$measured_as), evidence$comparisons$environment)
  if (length(names) > 0) names[[1]] else ""
}

#' Which published environments have nothing measured beside them, and why
#'
#' @param stand_ins as from `stand_in`, by their published names
#' @param evidence as from `read_evidence`
#' @return text; NULL where all have
absent_note <- function(stand_ins, evidence) {
  without <- names(stand_ins)[stand_ins == ""]
  if (length(without) > 0 && nrow(evidence$comparisons) > 0) {
    paste(sentence(vapply(without, absence, "", published = list(environments = evidence$known),
                          plan = evidence$plan)), collapse = " ")
  }
}
