# What the sizes of workloads mean beside the caches: whether it is memory that is measured.

# Arrays of at least so many times the last-level cache, which STREAM's rules ask for.
CACHES_PER_ARRAY <- 4

#' The arrays of the workloads that have any
#'
#' A workload has arrays where its parameters are `elements` (of 8 bytes, in three arrays as STREAM has) or
#' `log2` (of the number of words of 8 bytes, in one table).
#'
#' @param plan as from `read_plan`
#' @return data frame, a row for each such workload: workload, title, arrays (their number, in all systems
#'   that run at the same time), each (bytes) and cache (bytes of the last-level cache that the host shows; NA
#'   where it shows none)
planned_arrays <- function(plan) {
  rows <- lapply(names(plan$workloads), function(name) {
    parameters <- plan$workloads[[name]]$parameters
    systems <- if (is.numeric(parameters$systems)) parameters$systems else 1
    if (is.numeric(parameters$elements)) {
      data.frame(workload = name, arrays = 3 * systems, each = 8 * parameters$elements)
    } else if (is.numeric(parameters$log2)) {
      data.frame(workload = name, arrays = systems, each = 8 * 2^parameters$log2)
    }
  })
  none <- data.frame(workload = character(), arrays = numeric(), each = numeric())
  found <- do.call(rbind, c(list(none), rows))
  found$title <- vapply(found$workload, function(name) plan$workloads[[name]]$title, "")
  cache <- plan$machine$cache_bytes
  found$cache <- rep(if (is.numeric(cache)) cache else NA_real_, nrow(found))
  found
}

#' What the arrays of a workload are beside the last-level cache
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return a sentence; NULL where it has none
arrays_text <- function(evidence, workload) {
  found <- planned_arrays(evidence$plan)
  found <- found[found$workload == workload, ]
  if (nrow(found) == 0) {
    return(NULL)
  }
  total <- found$arrays * found$each
  subject <- if (found$arrays == 1) {
    paste("Its table takes", linked(bytes(total), "plan"))
  } else {
    paste0("Its ", linked(counted(found$arrays, "array"), "plan"), " take ",
           linked(bytes(found$each), "plan"), " each, ", linked(bytes(total), "plan"), " together")
  }
  cache <- linked(bytes(found$cache), "plan")
  if (is.na(found$cache)) {
    return(paste0(subject, "; the size of the last-level cache is not available, so that nobody can tell ",
                  "whether that is memory or the cache."))
  }
  paste0(subject, if (total <= found$cache) {
    paste0(", which fits into the last-level cache of ", cache, ": what is measured may be the cache.")
  } else if (found$each < CACHES_PER_ARRAY * found$cache) {
    paste0(", more than the last-level cache of ", cache, ", but ", if (found$arrays > 1) "each of them ",
           "less than ", fixed(CACHES_PER_ARRAY, 0), " times of it: what is measured is not memory alone.")
  } else {
    paste0(", ", if (found$arrays == 1) "" else "each ", "at least ", fixed(CACHES_PER_ARRAY, 0),
           " times the last-level cache of ", cache, ".")
  })
}
