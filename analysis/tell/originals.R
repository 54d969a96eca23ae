# The tables of the original report beside what was measured here.

#' Table II: what an iteration of each kernel of STREAM moves and computes, and how many there were a second
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where STREAM is not in the plan
table_of_kernels <- function(evidence) {
  if (!"stream" %in% names(evidence$plan$workloads)) {
    return(NULL)
  }
  kernels <- evidence$originals$kernels
  of <- function(name) vapply(kernels, function(kernel) as.character(kernel[[name]]), "")
  bytes <- as.numeric(of("bytes"))
  printed <- Filter(function(row) row$workload == "stream", evidence$published$rows)
  printed <- vapply(printed, function(row) row$values$native$mean, "",
                    USE.NAMES = FALSE)[match(of("metric"), vapply(printed, `[[`, "", "metric"))]
  rows <- told(evidence)
  rows <- rows[rows$workload == "stream" & rows$environment == REFERENCE, ]
  rows <- rows[match(of("metric"), rows$metric), ]
  half <- (rows$mean_high - rows$mean_low) / 2
  decimals <- mapply(decimals_for, half, ifelse(is.na(rows$mean), 0, rows$mean))
  here <- trimws(paste(fixed(rows$mean, decimals), interval(rows$mean_low, rows$mean_high, decimals)))
  cells <- cbind(of("label"), of("bytes"), of("flop"), printed,
                 fixed(as.numeric(printed) / bytes, 2), or_dash(here),
                 or_dash(fixed(rows$mean / bytes, 2)))
  rate <- paste0("10\u2079/s")
  columns <- list(
    column("Kernel"), column("Bytes", "right", "One iteration"),
    column("FLOP", "right", "One iteration"), column("GB/s", "right", "Native, 2014"),
    column(rate, "right", "Native, 2014"),
    column(paste0("GB/s [95", THIN, "% interval]"), "right", "Native, here"),
    column(rate, "right", "Native, here")
  )
  notes <- c(
    paste("10\u2079/s: iterations, from the rate and the bytes. The bytes are those of the definition; every",
          "log here is checked to count the same."),
    if (anyNA(rows$mean)) paste0(EM_DASH, ": not measured.")
  )
  table <- new_table("kernels", "Table II of the original report, the kernels of STREAM, beside their rates",
                     columns, cells, notes = notes)
  table$sources[, 6:7] <- ifelse(is.na(rows$mean), "", source_id(rows))
  table
}

#' Table III: the configurations of MySQL, and what stands for them here
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where MySQL is not in the plan
table_of_configurations <- function(evidence) {
  if (!"mysql" %in% names(evidence$plan$workloads)) {
    return(NULL)
  }
  configurations <- evidence$originals$configurations
  of <- function(name) vapply(configurations, function(one) c(one[[name]], "")[[1]], "")
  here <- vapply(of("environment"), stand_in, "", evidence = evidence, USE.NAMES = FALSE)
  layers <- lapply(here, function(name) if (name != "") describe_layers(evidence$plan$environments[[name]]))
  part <- function(name) vapply(layers, function(one) c(one[[name]], "")[[1]], "")
  point <- throughput_point(evidence)
  measured <- point$rows[match(here, point$rows$environment), ]
  ours <- ifelse(here == REFERENCE, "",
                 or_dash(percent_interval(measured$ratio, measured$ratio_low, measured$ratio_high)))
  doubtful <- of("doubt") != ""
  letter <- rep("", length(configurations))
  letter[doubtful] <- letters[seq_len(sum(doubtful))]
  theirs <- printed_throughput(evidence$originals$throughput, of("drawn"), point$factors)
  cells <- cbind(of("label"), of("network"), of("storage"), percent(theirs$ratio),
                 or_dash(ifelse(here == "", "", environment_labels(evidence$plan, here))),
                 or_dash(part("network")), or_dash(part("data")), ours)
  marks <- matrix("", nrow(cells), ncol(cells))
  marks[, 4] <- letter
  columns <- list(
    column("Configuration", spanner = "2014"), column("Network", spanner = "2014"),
    column("Storage", spanner = "2014"), column("Throughput", "right", "2014"),
    column("Environment", spanner = "Here"), column("Network", spanner = "Here"),
    column("Data", spanner = "Here"), column("Throughput", "right", "Here")
  )
  notes <- c(
    paste0("Throughput: ratio to native; 2014 at ", sub("^, ", "", factor_text(theirs$factors)),
           if (!is.null(point$factors)) {
             paste0(", here at ", sub("^, ", "", factor_text(point$factors)), ", with its 95", THIN,
                    "% interval (", linked(n_is(n_text(point$rows$n)), shared_source(point$rows)), ")")
           }, "."),
    if (any(cells == EM_DASH)) paste0(EM_DASH, ": not measured."),
    emulation_note(evidence), left_out_note(evidence, "mysql"),
    stats::setNames(sentence(of("doubt")[doubtful]), letter[doubtful])
  )
  table <- new_table("configurations", paste("Table III of the original report, the configurations of MySQL,",
                                             "beside what stands for them here"), columns, cells, marks,
                     notes = notes)
  table$sources[, 8] <- ifelse(is.na(measured$ratio), "", source_id(measured))
  table
}

#' The throughput of MySQL that stands for its sweep
#'
#' @param evidence as from `read_evidence`
#' @return list: `rows` of the comparisons, of all environments, and their `factors`, NULL where there are
#'   none
throughput_point <- function(evidence) {
  rows <- told(evidence)
  rows <- rows[rows$workload == "mysql" & rows$metric == "throughput", ]
  plain <- rows[factor_of(rows$factors, "test") == "", ]
  if (nrow(plain) == 0) {
    return(list(rows = rows[0, ], factors = NULL))
  }
  factors <- plain$factors[[which.max(plain$series)]]
  list(rows = plain[plain$factors == factors, ], factors = factors)
}

#' The printed throughput of MySQL as ratios to native
#'
#' @param throughput rows of published/ibm-figures.csv
#' @param environments their names there
#' @param factors of the point that is asked for; where it was not printed, the largest one stands for it
#' @return list: `ratio`, one for each environment, missing for native, and `factors`
printed_throughput <- function(throughput, environments, factors) {
  printed <- unique(throughput$factors)
  if (is.null(factors) || !factors %in% printed) {
    factors <- printed[[which.max(natural_rank(printed))]]
  }
  at <- throughput[throughput$factors == factors, ]
  value <- at$published[match(environments, at$environment)]
  ratio <- value / value[[match(REFERENCE, environments)]]
  list(ratio = ifelse(environments == REFERENCE, NA, ratio), factors = factors)
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
  doubts <- published_doubts(rows, evidence)
  pairs <- lapply(names(published$environments), function(name) {
    label <- published$environments[[name]]
    theirs <- published_group(rows, name, paste0(label, ", 2014"), doubts)
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
    paste("2014: mean (standard deviation), and the deviation from native, as printed there in other",
          "brackets; these are not measurements of this paper. The hardware differs, so that only the",
          "deviations can be compared."),
    if (beside) {
      paste("Here: the same of this paper\u2019s runs, means paired by set;", usual_runs(evidence))
    },
    measured$note,
    if (gaps) paste0(EM_DASH, if (beside) ": not published, or not measured here." else ": not published."),
    absent_note(stand_ins, evidence),
    emulation_note(evidence), left_out_note(evidence, vapply(rows, `[[`, "", "workload")),
    stats::setNames(doubts$note, doubts$letter)
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
#' @param doubts as from `published_doubts`
#' @return list as for `printed_table`
published_group <- function(rows, name, label, doubts) {
  values <- lapply(rows, function(row) row$values[[name]])
  text <- function(key) vapply(values, function(value) as.character(c(value[[key]], "")[[1]]), "")
  deviation <- vapply(values, function(value) c(value$deviation_percent, NA)[[1]] / 100, 0)
  list(label = label, cells = printed_cells(text("mean"), text("sd"), deviation),
       mark = or_none(doubts$letter[match(key_of(rows, name), doubts$key)]))
}

#' Which printed values the authors' own raw logs contradict
#'
#' @param rows of the published table
#' @param evidence as from `read_evidence`
#' @return data frame, a row for each value: `key`, as from `key_of`, `letter` that marks it, and `note`
published_doubts <- function(rows, evidence) {
  own <- evidence$own$table
  names <- c(native = "native", docker = "docker", vm = "kvm", `vm-tuned` = "kvm_tuned")
  own$key <- paste(names[own$environment], own$workload, own$metric)
  shown <- unlist(lapply(names, function(name) key_of(rows, name)))
  found <- unique(own$key[own$verdict == "differs" & own$key %in% shown])
  part <- function(key, name) {
    c(own$rounded[own$key == key & own$statistic == name], "")[[1]]
  }
  notes <- vapply(found, function(key) {
    one <- own[own$key == key, ]
    sd <- part(key, "sd")
    deviation <- sub("-", MINUS, part(key, "deviation_percent"), fixed = TRUE)
    paste0("The authors\u2019 own raw logs contradict this: they give ", part(key, "mean"),
           if (sd != "") paste0(" (", sd, ")"), NO_BREAK, one$unit[[1]],
           if (deviation != "") paste0(", ", deviation, THIN, "%"), ", ", n_is(max(one$n)), ".")
  }, "")
  data.frame(key = found, letter = letters[seq_along(found)], note = unname(notes))
}

#' What names the printed values of an environment
#'
#' @param rows of the published table
#' @param name of the environment
#' @return texts
key_of <- function(rows, name) {
  paste(name, vapply(rows, `[[`, "", "workload"), vapply(rows, `[[`, "", "metric"))
}

#' Texts of which some are missing
#'
#' @param text texts
#' @return texts; missing ones are ""
or_none <- function(text) {
  ifelse(is.na(text), "", text)
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
