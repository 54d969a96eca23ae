# Families of environments: those of one kind, told of together; and ratios as performance.

#' The families of a plan's environments
#'
#' Emulated virtual machines are one family, whatever runs in them.
#'
#' @param plan as from `read_plan`
#' @return data frame, a row for each environment in the order of the families: environment, family
families_of <- function(plan) {
  names <- names(plan$environments)
  kind <- vapply(plan$environments, kind_of, "", USE.NAMES = FALSE)
  family <- upper_first(kind)
  accelerated <- vapply(plan$environments, is_accelerated, NA, USE.NAMES = FALSE)
  family[accelerated] <- paste(family[accelerated], "under KVM")
  family[names %in% emulated_environments(plan)] <- "Emulated virtual machines"
  family[names == REFERENCE] <- "Native"
  known <- c("Native", "Bare Linux", "Containers", "Sandboxes", "Virtual machines under KVM",
             "Containers in virtual machines under KVM", "Emulated virtual machines")
  found <- data.frame(environment = names, family = family)
  found[order(match(family, known), seq_along(names)), ]
}

#' Ratios to native as performance
#'
#' @param rows of the comparisons that have a ratio
#' @return data frame: ratio, low, high: of a metric of which less is better the inverse, so that less than 1
#'   is worse than native in every row; a limit may be infinite
performance_of <- function(rows) {
  costs <- rows$better == "lower"
  data.frame(
    ratio = ifelse(costs, 1 / rows$ratio, rows$ratio),
    low = ifelse(costs, 1 / rows$ratio_high, rows$ratio_low),
    high = ifelse(!costs, rows$ratio_high, ifelse(rows$ratio_low > 0, 1 / rows$ratio_low, Inf))
  )
}
