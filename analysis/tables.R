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
#' @return list of these, `columns` as a data frame, and `head_rows`: for each row whether it holds headings
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
       group_starts = group_starts, head_rows = rep(FALSE, nrow(cells)), notes = notes, wide = wide)
}

#' A column of a table
#'
#' @param head text
#' @param align "left", "right", "centre", "decimal" (numbers aligned at their points) or "wrap" (text of several
#' lines)
#' @param spanner text above this and its neighbours of the same spanner, "" for none
#' @param weight share of the width that a column of several lines takes, relative to the others
#' @param span how many columns the heading spans: those that follow have no heading, and stand close to this one
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
  usual <- as.integer(names(which.max(table(rows$n))))
  groups <- lapply(environments, function(name) {
    own <- rows[rows$environment == name, ]
    own <- own[match(series$series, own$series), ]
    deviation <- if (name == REFERENCE) NA_real_ else own$ratio - 1
    list(label = environment_labels(evidence$plan, name),
         cells = printed_cells(fixed(own$mean, decimals), deviation, significant(own$sd)),
         mark = ifelse(is.na(own$n) | own$n == usual, "", paste0("n=", own$n)))
  })
  absent <- vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA)
  notes <- c(
    paste0("Mean (deviation from native, of means paired by block) [standard deviation]; ", n_is(usual),
           if (usual == 1) " run" else " runs", if (any(rows$n != usual)) ", except where marked", "."),
    if (any(absent)) paste0(EM_DASH, ": not measured."),
    if (!REFERENCE %in% environments) "Native was not measured, so that no deviation is known."
  )
  caption <- paste0("Results as Table I of the original report prints them", if (evidence$partial) " (partial)")
  printed_table("printed", caption, series$title, paste0(series$metric_label, " (", series$unit, ")"), groups, notes)
}

#' A table in the form of Table I of the original
#'
#' Where the environments are too many for the width of a page, they stand in several panels, one above the other.
#'
#' @param id,caption,notes as of `new_table`
#' @param title,metric texts of the rows
#' @param groups list with an element for each environment: `label`; `cells`, a matrix as from `printed_cells`; and
#'   `mark`, a text for each row that is set on the mean, "" for none
#' @param room letters that fit on a line
#' @return a table
printed_table <- function(id, caption, title, metric, groups, notes, room = 150) {
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
         }), list(empty))))
  })
  below <- seq_along(parts) > 1
  cells <- do.call(rbind, Map(function(part, head) rbind(if (head) part$heads, part$cells), parts, below))
  marks <- do.call(rbind, Map(function(part, head) rbind(if (head) "", part$marks), parts, below))
  columns <- c(list(column("Workload"), column("Metric")),
               lapply(parts[[1]]$heads[seq(3, by = 3, length.out = widest)], column,
                      align = c("right", "right", "left"), span = 3))
  table <- new_table(id, caption, columns, cells, marks, unlist(lapply(below, function(head) c(if (head) TRUE, starts))),
                     notes)
  table$head_rows <- unlist(lapply(below, function(head) c(if (head) TRUE, rep(FALSE, rows))))
  table
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
    ifelse(is.na(rows$ratio_low), missing_ratio, interval(100 * rows$ratio_low, 100 * rows$ratio_high, ratio_decimals)),
    ifelse(is.na(rows$ratio), missing_ratio, fixed(rows$ratio_n, 0)),
    ifelse(rows$verdict == "", missing_ratio, reading(rows$verdict)),
    flags$letters
  )
  columns <- list(
    column("Workload and metric"), column("Environment"), column("n", "right"), column("Mean", "right", "Level"),
    column(paste0("95", THIN, "% interval"), "right", "Level"), column("Median", "right", "Level"),
    if (with_median) column(paste0("95", THIN, "% interval"), "right", "Level"),
    column("%", "right", "Ratio to native"), column(paste0("95", THIN, "% interval"), "right", "Ratio to native"),
    column("Pairs", "right", "Ratio to native"), column("Reading", "left", "Ratio to native"), column("Flags", "left")
  )
  unflagged <- flags$letters == ""
  notes <- c(
    paste0("Reading: slower or faster where the interval excludes 100", THIN, "% and the ratio differs from it by more than ",
           percent(MINIMUM_EFFECT, 0), "; \u201c", reading("equal"), "\u201d where the whole interval lies within ",
           percent(MINIMUM_EFFECT, 0), "; open otherwise."),
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs."),
    if (length(everywhere) > 0) paste("All rows:", paste(everywhere, collapse = " ")),
    flags$notes
  )
  keep <- c(rep(TRUE, ncol(cells) - 1), !all(unflagged))
  new_table("intervals", paste0(
    "Means and medians, ratios of means paired by block, and their 95", THIN, "% intervals",
    if (evidence$partial) " (partial)"
  ), Filter(Negate(is.null), columns)[keep], cells[, keep, drop = FALSE], group_starts = starts, notes = notes)
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
#' @return list: `letters`, a text for each element such as "a, c"; `notes`, the meanings named by their letters; and
#'   `everywhere`, the meanings of flags that all of several elements have, which get no letter.  A code without a
#'   known meaning stands for itself.
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
  notes <- c("Mean (deviation from native) [standard deviation], as printed. These are not measurements of this paper: the",
             "hardware differs, so that only ratios are comparable.")
  gaps <- any(vapply(groups, function(group) any(group$cells[, 1] == EM_DASH), NA))
  printed_table("published", "Published in 2014, for orientation: values of Table I of the original report",
                title, metric, groups, c(paste(notes, collapse = " "), if (gaps) paste0(EM_DASH, ": not published.")))
}

#' The environments of the plan
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_environments <- function(evidence) {
  environments <- evidence$environments
  described <- lapply(unname(evidence$plan$environments), describe_layers)
  part <- function(name) vapply(described, `[[`, "", name)
  runs <- ifelse(environments$measured == environments$planned, fixed(environments$planned, 0),
                 paste(fixed(environments$measured, 0), "of", fixed(environments$planned, 0)))
  reasons <- !environments$available
  letter <- rep("", nrow(environments))
  letter[reasons] <- letters[(seq_len(sum(reasons)) - 1) %% 26 + 1]
  runs[reasons] <- NOT_AVAILABLE
  marks <- cbind(letter, "", "", "", "")
  notes <- paste0("Not available: ", ifelse(environments$reason == "", "no reason was given",
                                            environments$reason))[reasons]
  names(notes) <- letter[reasons]
  notes[] <- sentence(notes)
  new_table(
    "environments", "The environments, what isolates each from the host, and the runs that were measured in it",
    list(column("Environment"), column("Isolation"), column("Network"), column("Data"), column("Runs", "right")),
    cbind(environments$label, part("isolation"), part("network"), part("data"), runs), marks = marks, notes = notes
  )
}

#' What a stack of layers means
#'
#' @param environment entry of the plan
#' @return list of texts: isolation, network, data
describe_layers <- function(environment) {
  isolation <- network <- data <- character()
  for (layer in environment$layers) {
    name <- names(layer)
    options <- as.list(layer[[1]])
    others <- options[setdiff(names(options), c("network", "data"))]
    known <- c(host = "none: the host\u2019s own files", chroot = "change of root", docker = "Docker container",
               vm = "virtual machine")
    title <- if (name %in% names(known)) known[[name]] else words(name)
    details <- setting_text(others)
    isolation <- c(isolation, if (details == "") title else paste0(title, " (", details, ")"))
    network <- c(network, c(bridge = "bridge with NAT", host = if (length(isolation) > 1) "the VM\u2019s" else "the host\u2019s")[
      option_of(options$network)], if (name %in% c("host", "chroot")) "the host\u2019s")
    data <- c(data, c(volume = "volume", layered = "layered file system")[option_of(options$data)],
              if (name %in% c("host", "chroot")) "the host\u2019s disk")
    network <- c(network, unknown_option(options$network, c("bridge", "host")))
    data <- c(data, unknown_option(options$data, c("volume", "layered")))
  }
  list(isolation = paste(isolation, collapse = ", in it "),
       network = or_dash(paste(network[!is.na(network)], collapse = ", ")),
       data = or_dash(paste(data[!is.na(data)], collapse = ", ")))
}

#' An option as an index of known values
#'
#' @param option text or NULL
#' @return text, or a missing one
option_of <- function(option) {
  if (is.character(option)) option else character()
}

#' An option whose value has no words of its own
#'
#' @param option text or NULL
#' @param known values
#' @return the option, or nothing where it is known
unknown_option <- function(option, known) {
  if (is.character(option) && !option %in% known) words(option)
}

#' Settings as text
#'
#' @param settings named list of numbers, texts and lists of them; empty ones are left out, as are those that belong to
#'   an empty one (`corpus_sha1` to `corpus`)
#' @return one text such as "level 2, sizes 1,000 and 2,000"
setting_text <- function(settings) {
  empty <- names(settings)[vapply(settings, is.null, NA)]
  belongs <- vapply(names(settings), function(name) any(startsWith(name, paste0(empty, "_"))), NA)
  settings <- settings[!names(settings) %in% empty & !belongs]
  paste(vapply(names(settings), function(name) {
    paste0(words(name), NO_BREAK, value_text(settings[[name]]))
  }, ""), collapse = ", ")
}

#' A value of a setting as text
#'
#' @param value number, text, TRUE or FALSE, or a list of these
#' @return text; hashes are cut to twelve digits
value_text <- function(value) {
  if (length(value) == 0) {
    return("none")
  }
  texts <- vapply(value, function(one) {
    if (is.numeric(one)) {
      quantity(one)
    } else if (is.logical(one)) {
      if (isTRUE(one)) "yes" else "no"
    } else {
      sub("^([0-9a-f]{12})[0-9a-f]{20,}$", "\\1\u2026", paste(unlist(one), collapse = " "))
    }
  }, "")
  listed(unname(texts))
}

#' What was run, with which parameters
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_workloads <- function(evidence) {
  workloads <- evidence$plan$workloads
  rows <- vapply(names(workloads), function(name) {
    workload <- workloads[[name]]
    metrics <- metrics_of(evidence$plan, name)
    units <- paste0(lower_first(metrics$label), " (", metrics$unit, ", ", metrics$better, " is better)")
    if (length(unique(metrics$unit)) == 1 && length(unique(metrics$better)) == 1 && nrow(metrics) > 1) {
      units <- paste0(listed(lower_first(metrics$label)), " (", metrics$unit[[1]], ", ", metrics$better[[1]],
                      " is better)")
    }
    notes <- unlist(workload$notes)
    c(workload$title, sentence(listed(units)), sentence(parameters_text(evidence, name)),
      paste(c(sentence(paste("Warm-up:", workload$warmup)), sentence(as.character(notes)),
              if (length(checks_of(evidence, name)) > 0) {
                sentence(paste0("Checks: ", paste(checks_of(evidence, name), collapse = "; ")))
              }), collapse = " "))
  }, character(4))
  new_table(
    "workloads", paste0("The workloads and their parameters at the scale \u201c", evidence$plan$scale, "\u201d"),
    list(column("Workload", "wrap", weight = 0.5), column("Metrics", "wrap", weight = 0.95),
         column("Parameters", "wrap", weight = 1.2), column("Warm-up, notes and checks", "wrap", weight = 1.35)),
    t(unname(rows)), group_starts = rep(TRUE, length(workloads))
  )
}

#' The parameters of a workload as they were in the runs
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return one text; where environments differ in a parameter, each value with its environments
parameters_text <- function(evidence, workload) {
  planned <- evidence$plan$workloads[[workload]]$parameters
  records <- Filter(function(record) record$workload == workload, evidence$records)
  for (name in names(planned)) {
    ruled <- is.list(planned[[name]]) && !is.null(names(planned[[name]]))
    if (ruled && length(records) == 0) {
      planned[name] <- list("as the system has processors")
    } else if (ruled) {
      seen <- vapply(records, function(record) value_text(record$parameters[[name]]), "")
      planned[[name]] <- grouped_text(seen, vapply(records, `[[`, "", "environment"), evidence)
    }
  }
  text <- setting_text(planned)
  if (text == "") "none" else text
}
