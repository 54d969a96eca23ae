# Tables II and III of the original report, beside what was measured here.

#' Reads what the original report printed in its Tables II and III, and its Figure 10, which belongs to the
#' latter
#'
#' @param root folder of the project
#' @return list: `kernels` and `configurations`, as in published/ibm-tables.json, and `throughput`, the mean
#'   rows of MySQL's throughput in published/ibm-figures.csv
#' @section Errors: no such file; another format
read_originals <- function(root) {
  path <- file.path(root, "published", "ibm-tables.json")
  tables <- read_json(path)
  if (!identical(as.double(tables$format), 1)) {
    stop_about(path, "not published tables of format 1")
  }
  figures <- read_csv(file.path(root, "published", "ibm-figures.csv"), FIGURE_VALUES)
  wanted <- figures$workload == "mysql" & figures$metric == "throughput" & figures$statistic == "mean"
  throughput <- figures[wanted, ]
  c(tables[c("kernels", "configurations")],
    list(throughput = throughput[!duplicated(throughput[c("environment", "factors")]), ]))
}

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
  decimals <- decimals_for((rows$mean_high - rows$mean_low) / 2, rows$mean)
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
    emulation_note(evidence),
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
