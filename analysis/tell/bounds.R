# What the machine can reach at most, and how much of it was reached.

#' Which of a plan's workloads have metrics that something of the machine bounds
#'
#' @param plan as from `read_plan`
#' @param what "arithmetic" or "memory"
#' @return names of workloads
bounded_by <- function(plan, what) {
  Filter(function(name) what %in% metrics_of(plan, name)$bound, names(plan$workloads))
}

#' The bound of the machine's arithmetic, and what it is made of
#'
#' @param evidence as from `read_evidence`
#' @return one sentence; "" where no workload has such a bound
bound_text <- function(evidence) {
  if (length(bounded_by(evidence$plan, "arithmetic")) == 0) {
    return("")
  }
  bound <- arithmetic_bound(evidence$plan$machine)
  if (is.na(bound$gflops)) {
    return(paste("What the machine\u2019s arithmetic could do at most is not available, since the kernel",
                 "does not tell its clock or its registers."))
  }
  told <- function(text) linked(text, "plan")
  measure <- function(value, unit) told(paste0(quantity(value), NO_BREAK, unit))
  paste0(
    "The arithmetic of this machine is bounded by ", measure(bound$gflops, "GFLOPS"), ": ",
    told(counted(bound$cores, "core")), " at ", measure(bound$ghz, "GHz"), " (",
    if (bound$nominal) {
      "the rate of the time-stamp counter, which a turbo may exceed"
    } else {
      "the highest that its driver of frequencies knows"
    }, ") with at most ", told(fixed(bound$per_cycle, 0)), " operations of 64 bits in a cycle (registers of ",
    told(fixed(bound$bits, 0)), " bits", if (bound$fma) ", multiplication and addition in one instruction",
    ", two units in a core)."
  )
}

#' How much of its bound a workload reached in native
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return one sentence; "" where it has no bound that is known, or native was not measured
reached_text <- function(evidence, workload) {
  rows <- evidence$comparisons[evidence$comparisons$workload == workload, ]
  rows <- rows[rows$environment == REFERENCE, ]
  bound <- vapply(rows$metric, function(metric) bound_of(evidence$plan, workload, metric), 0)
  rows <- rows[!is.na(bound), ]
  bound <- bound[!is.na(bound)]
  if (nrow(rows) == 0) {
    return("")
  }
  known <- levels_of(rows)
  best <- which.max(known$value)
  share <- percent_interval(known$value[[best]] / bound[[1]], known$low[[best]] / bound[[1]],
                            known$high[[best]] / bound[[1]])
  paste0(if (nrow(rows) == 1) "That is " else "The most that native reached is ",
         linked(share, source_id(rows[best, ])), " of what bounds the machine\u2019s arithmetic.")
}

#' That nobody can tell what bounds a bandwidth of memory
#'
#' @param evidence as from `read_evidence`
#' @param workloads names
#' @return one sentence; "" where they have no such metric
memory_bound_text <- function(evidence, workloads) {
  if (length(intersect(bounded_by(evidence$plan, "memory"), workloads)) == 0) {
    return("")
  }
  "What the memory could reach at most is not available: the kernel tells no rate of its modules."
}
