# What a machine can reach at most.

# Units of a core that multiply and add numbers of 64 bits in full registers at the same time: no processor up
# to now has more.
UNITS_PER_CORE <- 2

#' The most that the arithmetic of a machine can do with numbers of 64 bits
#'
#' The product of cores, cycles per second and operations per cycle; these are the numbers in a register,
#' twice as many where one instruction multiplies and adds, times UNITS_PER_CORE.
#'
#' @param machine of the plan
#' @return list: `gflops`, NA where the kernel told too little; `cores` (as many as processors where the
#'   kernel tells none), `ghz`, `nominal` (whether a turbo may exceed it), `per_cycle`, `bits`, `fma`
#' @source R. Dolbeau, Theoretical peak FLOPS per instruction set: a tutorial, The Journal of Supercomputing
#'   74, 2018
arithmetic_bound <- function(machine) {
  told <- machine$arithmetic
  number <- function(value) if (is.numeric(value)) value else NA_real_
  cores <- if (is.numeric(told$cores)) told$cores else machine$cpus
  ghz <- number(told$clock_mhz) / 1000
  bits <- number(told$vector_bits)
  per_cycle <- UNITS_PER_CORE * bits / 64 * (1 + isTRUE(told$fma))
  list(gflops = cores * ghz * per_cycle, cores = cores, ghz = ghz,
       nominal = !identical(told$clock, "highest"), per_cycle = per_cycle, bits = bits,
       fma = isTRUE(told$fma))
}

#' What bounds the values of a workload
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @param metrics names of those of its metrics that are asked for
#' @return one number in the metrics' unit; NA where they have no known bound in common
bound_of <- function(plan, workload, metrics) {
  known <- metrics_of(plan, workload)
  known <- known[known$metric %in% metrics, ]
  systems <- plan$workloads[[workload]]$parameters$systems
  # Of several systems that run at the same time each has a part of the machine.
  alone <- !is.numeric(systems) || systems == 1
  if (alone && nrow(known) > 0 && all(known$bound == "arithmetic" & known$unit == "GFLOPS")) {
    arithmetic_bound(plan$machine)$gflops
  } else {
    NA_real_
  }
}
