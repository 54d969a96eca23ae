# The questions that the workloads answer, in the order in which the paper asks them.

# For each its title, and what it asks.
QUESTIONS <- read_contract("questions")

#' The questions that the workloads of a plan answer
#'
#' A workload that names no question is one by itself, behind the others.
#'
#' @param plan as from `read_plan`
#' @return data frame, a row for each workload in the order of the questions and then of the plan: workload,
#'   question (its name, or that of the workload), title, asks ("" where the workload names none)
questions_of <- function(plan) {
  workloads <- names(plan$workloads)
  named <- vapply(plan$workloads, function(entry) c(entry$question, "")[[1]], "", USE.NAMES = FALSE)
  known <- named %in% names(QUESTIONS)
  text <- function(key, other) {
    vapply(seq_along(workloads), function(i) {
      if (known[[i]]) QUESTIONS[[named[[i]]]][[key]] else other[[i]]
    }, "")
  }
  titles <- vapply(plan$workloads, `[[`, "", "title", USE.NAMES = FALSE)
  found <- data.frame(workload = workloads, question = ifelse(known, named, workloads),
                      title = text("title", titles), asks = text("asks", rep("", length(workloads))))
  found[order(match(named, names(QUESTIONS)), seq_along(workloads)), ]
}
