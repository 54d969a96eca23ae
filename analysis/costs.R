# Splits differences into parts: the costs of runs per unit of work.  Formula: docs/statistics.md.

# The parts of a run's CPU time, by the names that records have for them.
CPU_PARTS <- c(system_user = "system.user_seconds", system_kernel = "system.system_seconds",
               client_user = "client.user_seconds", client_kernel = "client.system_seconds",
               helpers_user = "helpers.user_seconds", helpers_kernel = "helpers.system_seconds")
# Counts that are not added to CPU time, by the names that records have for them.
UNCOUNTED_PARTS <- c(throttled = "system.throttled_seconds",
                     interrupts = "machine.interrupt_seconds",
                     major_faults = "system.major_faults", io_bytes = "system.io_bytes",
                     io_operations = "system.io_operations",
                     context_switches = "machine.context_switches")
# The keys of a record's `costs` under which its counts are.
COST_PARTIES <- c("system", "client", "helpers", "machine")

#' Add up the costs of runs, for each cell and each kind of run
#'
#' Runs of laps that do not count are left out.
#'
#' @param records list of records, of which `laps` and `costs` are read
#' @return data frame, one row for each cell and kind of run: cell (the key of make_cell_keys), how
#'   ("whole" or "slices"), elapsed_seconds and the quantities of each of COST_PARTIES, for example
#'   system.user_seconds; a sum is NA if a run lacks the quantity; NULL if no record has costs
add_up_costs <- function(records) {
  # Returns the quantities of a run as a numeric vector with names such as "system.user_seconds".
  read_counts <- function(run) {
    values <- unlist(run[c("elapsed_seconds", COST_PARTIES)])
    # "not available" becomes NA.
    stats::setNames(suppressWarnings(as.numeric(values)), names(values))
  }
  stack_rows(lapply(unname(records), function(record) {
    is_valid <- vapply(record$laps, `[[`, NA, "counts")
    invalid_laps <- vapply(record$laps, `[[`, 0, "lap")[!is_valid]
    runs <- Filter(function(run) !run$lap %in% invalid_laps, record$costs)
    if (length(runs) == 0) return(NULL)
    stack_rows(lapply(split(runs, vapply(runs, `[[`, "", "how")), function(runs) {
      data.frame(cell = make_cell_keys(record), how = runs[[1]]$how,
                 as.list(Reduce(`+`, lapply(runs, read_counts))))
    }))
  }))
}

# Makes a key for each cell from its environment, workload and repetition, for example
# "native stream 1".
# rows: a record, or a list or data frame with these three columns.
make_cell_keys <- function(rows) paste(rows$environment, rows$workload, rows$repetition)

#' Compute the seconds that a unit of work takes
#'
#' The unit of a metric, which workload.yaml declares, says whether it is a rate or a time: a new
#' unit of either has to be added here.
#'
#' @param rows data frame of all metrics of its workloads: workload, metric, unit, better, value
#' @return numeric vector, an element for each row; NA for metrics that are neither a rate nor a
#'   time, for times if the workload also has a rate, and for CPU times
compute_unit_seconds <- function(rows) {
  # OPS and UPS: operations and updates a second, with or without a prefix (GFLOPS, GUPS).
  is_rate <- rows$better == "higher" & grepl("(/s|/min|OPS|UPS)$", rows$unit)
  # Other units give NA.
  unit_seconds <- c(s = 1, ms = 1e-3, us = 1e-6, ns = 1e-9, "s/GB" = 1)[rows$unit]
  is_time <- rows$better == "lower" & !rows$workload %in% rows$workload[is_rate] &
    !rows$metric %in% c("cpu", "user", "system")
  rate_seconds <- ifelse(grepl("/min$", rows$unit), 60, 1) / rows$value
  seconds <- rep(NA_real_, nrow(rows))
  seconds[is_time] <- unname(rows$value * unit_seconds)[is_time]
  seconds[is_rate] <- rate_seconds[is_rate]
  seconds
}

#' Compare the costs of each environment's and native's runs per unit of work, part by part
#'
#' @param results list of read_results
#' @param comparisons table of compare_with_native, or NULL
#' @param pairs data frame of pair_with_native, or NULL
#' @return data frame, written as costs.csv, a row for each comparison and part: the columns of the
#'   comparison, part, native and value (the part's CPU seconds, seconds, bytes or number per unit
#'   of work, in native and in the environment), share (the difference as a share of native's time
#'   per unit of work; NA for parts that are not times); NULL if there are no costs or comparisons
compare_costs <- function(results, comparisons, pairs) {
  costs <- add_up_costs(results$records)
  if (is.null(costs) || is.null(comparisons)) return(NULL)
  tidy <- results$tidy
  tidy$seconds <- compute_unit_seconds(tidy)
  keys <- paste(make_keys(tidy), tidy$environment)
  blocks <- split(pairs$repetition, paste(make_keys(pairs), pairs$environment))
  # Returns the sums of each quantity over an environment's cells in some blocks, in runs of one
  # kind.
  add_up_cells <- function(environment, workload, repetitions, how) {
    cells <- make_cell_keys(list(environment = environment, workload = workload,
                                 repetition = repetitions))
    rows <- costs[costs$cell %in% cells, ]
    # Native may have no runs of the environment's kind: then all its runs count.
    if (how %in% rows$how) rows <- rows[rows$how == how, ]
    colSums(rows[setdiff(names(rows), c("cell", "how"))])
  }
  stack_rows(lapply(seq_len(nrow(comparisons)), function(i) {
    row <- comparisons[i, ]
    key <- paste(make_keys(row), row$environment)
    repetitions <- blocks[[key]]
    how <- tidy$how[match(key, keys)]
    # Native's mean seconds for a unit of work: split_difference returns multiples of it.
    is_native <- keys == paste(make_keys(row), NATIVE) & tidy$repetition %in% repetitions
    seconds <- mean(tidy$seconds[is_native])
    sums <- lapply(c(NATIVE, row$environment), add_up_cells, row$workload, repetitions, how)
    if (is.na(seconds + row$ratio)) return(NULL)
    parts <- split_difference(sums[[1]], sums[[2]], row$ratio)
    if (is.null(parts)) return(NULL)
    parts[c("native", "value")] <- parts[c("native", "value")] * seconds
    cbind(row, parts, row.names = NULL)
  }))
}

#' Split the difference between two times per unit of work into its parts
#'
#' tabulate_costs (markdown_tables.R) reads most parts by their names.
#'
#' @param native,costs numeric vectors with the sums of the quantities of add_up_costs, named like
#'   its columns, in native and in the environment
#' @param ratio the environment's performance as a share of native's, above 0: the time per unit of
#'   work is 1 / ratio of native's
#' @return data frame: part ("time", the names of CPU_PARTS, "rest", "waiting", the names of
#'   UNCOUNTED_PARTS), native and value (in native and in the environment, divided by native's time
#'   for a unit of work), share (their difference as a share of that time; NA for counts).  The
#'   shares of CPU times and of "waiting" add up to the share of "time".  "rest" is at least 0.
#'   NULL if a side lacks the CPU time of the system
split_difference <- function(native, costs, ratio) {
  shares <- lapply(list(native, costs), function(sums) sums / sums[["elapsed_seconds"]])
  required <- c("system.user_seconds", "system.system_seconds")
  if (!all(is.finite(c(shares[[1]][required], shares[[2]][required])))) return(NULL)
  sides <- Map(function(share, time) {
    cpu <- stats::setNames(share[CPU_PARTS], names(CPU_PARTS))
    # The rest is the machine's busy time that neither the run nor foreign processes used.
    busy <- share[["machine.busy_seconds"]] - share[["machine.foreign_seconds"]]
    cpu[["rest"]] <- max(busy - sum(cpu, na.rm = TRUE), 0)
    uncounted <- stats::setNames(share[UNCOUNTED_PARTS], names(UNCOUNTED_PARTS))
    list(time = time, cpu = time * cpu, uncounted = time * uncounted)
  }, shares, c(1, 1 / ratio))
  # A part that one side lacks is in no sum.
  is_on_both_sides <- !is.na(sides[[1]]$cpu + sides[[2]]$cpu)
  # The processors that native keeps busy at once, of which a unit of work takes all.
  processors <- max(1, sum(sides[[1]]$cpu[is_on_both_sides]))
  columns <- lapply(sides, function(side) {
    waiting <- side$time - sum(side$cpu[is_on_both_sides]) / processors
    c(time = side$time, side$cpu, waiting = waiting, side$uncounted)
  })
  # In the order of the columns: time, CPU times, waiting, and counts, which are not times.
  divisors <- c(1, rep(processors, length(sides[[1]]$cpu)), 1, rep(NA, length(UNCOUNTED_PARTS)))
  data.frame(part = names(columns[[1]]), native = columns[[1]], value = columns[[2]],
             share = (columns[[2]] - columns[[1]]) / divisors, row.names = NULL)
}
