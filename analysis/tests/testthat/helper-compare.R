# Sides of comparisons.

#' A side as of made-up results
made_side <- function(name, ..., change = identity, make = make_results) {
  plan_path <- make(..., workloads = c("stream", "linpack"))
  plan <- change(read_json(plan_path))
  write_json(plan, plan_path)
  read_side(dirname(plan_path), name)
}

#' A side of a history, of which no file is known
history_side <- function(name, slower = c(docker = 1, vm = 1), repetitions = 8, ...) {
  c(made_side(name, slower = slower, repetitions = repetitions, ...),
    list(source = name, sha256 = NULL, paper = NULL))
}
