# Series: a metric with its factors.  Which of them a figure draws, and which tables and sentences tell of.

#' The value of a factor
#'
#' @param factors texts such as "test=SET;connections=4"
#' @param name of the factor
#' @return texts; "" where there is no such factor
factor_of <- function(factors, name) {
  vapply(strsplit(factors, ";", fixed = TRUE), function(pairs) {
    found <- pairs[startsWith(pairs, paste0(name, "="))]
    if (length(found) == 0) "" else substring(found[[1]], nchar(name) + 2)
  }, "", USE.NAMES = FALSE)
}

#' Factors without one of them
#'
#' @param factors texts such as "test=SET;connections=4"
#' @param name of the factor that is left out
#' @return texts
without_factor <- function(factors, name) {
  vapply(strsplit(factors, ";", fixed = TRUE), function(pairs) {
    paste(pairs[!startsWith(pairs, paste0(name, "="))], collapse = ";")
  }, "", USE.NAMES = FALSE)
}

#' The numbers of a factor
#'
#' @param factors texts such as "test=SET;connections=4", which all have it
#' @param name of the factor
#' @return numbers
#' @section Errors: a value that is no number
factor_numbers <- function(factors, name) {
  value <- factor_of(factors, name)
  number <- suppressWarnings(as.numeric(value))
  wrong <- which(!is.finite(number))
  if (length(wrong) > 0) {
    stop("a figure along ", name, " needs numbers, and '", value[[wrong[[1]]]], "' is none", call. = FALSE)
  }
  number
}

#' Which series are asked for
#'
#' @param series data frame: metric, factors
#' @param metrics names; NULL for all
#' @param where named list: for a factor a value or several, "none" where it must be absent, or "largest" or
#'   "smallest", which is looked for among the series that agree in all else; numbers count as numbers
#' @return logical, one for each
selected <- function(series, metrics = NULL, where = NULL) {
  keep <- is.null(metrics) | series$metric %in% unlist(metrics)
  for (name in names(where)) {
    wanted <- as.character(unlist(where[[name]]))
    if (!any(wanted %in% c("largest", "smallest"))) {
      keep <- keep & factor_key(factor_of(series$factors, name)) %in% factor_key(sub("^none$", "", wanted))
    }
  }
  for (name in names(where)) {
    wanted <- as.character(unlist(where[[name]]))
    of <- intersect(wanted, c("largest", "smallest"))
    if (length(of) > 0) {
      value <- suppressWarnings(as.numeric(factor_of(series$factors, name)))
      keep <- keep & is.finite(value)
      group <- paste(series$metric, without_factor(series$factors, name))[keep]
      extreme <- lapply(of, function(one) {
        stats::ave(value[keep], group, FUN = if (one == "largest") max else min) == value[keep]
      })
      keep[keep] <- Reduce(`|`, extreme)
    }
  }
  keep
}

#' Values of factors in a form in which equal numbers are equal texts
#'
#' @param value texts
#' @return texts
factor_key <- function(value) {
  number <- suppressWarnings(as.numeric(value))
  ifelse(is.na(number), value, sprintf("%.15g", number))
}

# The kinds of figures, what their files are called, and the figures of all workloads together.
FIGURES <- read_contract("figures")

#' The figures of a workload
#'
#' @param plan as from `read_plan`
#' @param workload its name
#' @return list named by the stems of their files: declarations with `kind` ("runs", "sweep", "against" or
#'   "cdf") and what docs/workload-reference.md says of it; one of the kind "runs" where none is declared
figures_of <- function(plan, workload) {
  declared <- planned_workload(plan, workload)$figures
  if (length(declared) == 0) {
    return(stats::setNames(list(FIGURES$undeclared), filled(FIGURES$stems$undeclared, workload = workload)))
  }
  names <- vapply(declared, `[[`, "", "name")
  stats::setNames(declared, filled(FIGURES$stems$declared, workload = workload, name = names))
}

#' Whether a figure draws series
#'
#' @param figure its declaration
#' @param series data frame: metric, factors
#' @return logical, one for each
drawn_in <- function(figure, series) {
  metrics <- switch(figure$kind, runs = figure$metrics, c(figure$metric, figure$against))
  along <- if (is.null(figure$along)) TRUE else factor_of(series$factors, figure$along) != ""
  selected(series, metrics, figure$where) & along
}

#' Which series tables and sentences tell of
#'
#' Those are what a workload declares (`headline`).  Without that, they are all that the figures of single
#' runs draw and of every sweep the largest value; and all series of a workload that has no such figure.
#'
#' @param series data frame: workload, metric, factors
#' @param plan as from `read_plan`
#' @return logical, one for each
is_headline <- function(series, plan) {
  found <- rep(TRUE, nrow(series))
  for (workload in unique(series$workload)) {
    own <- series$workload == workload
    found[own] <- headline_of(planned_workload(plan, workload), figures_of(plan, workload), series[own, ])
  }
  found
}

#' @rdname is_headline
#' @param entry of the workload in the plan
#' @param figures as from `figures_of`
headline_of <- function(entry, figures, series) {
  chosen <- if (!is.null(entry$headline)) {
    lapply(entry$headline, function(point) selected(series, point$metric, point$where))
  } else {
    lapply(figures, function(figure) {
      if (figure$kind == "sweep") {
        drawn <- drawn_in(figure, series)
        drawn[drawn] <- selected(series[drawn, ], NULL, stats::setNames(list("largest"), figure$along))
        drawn
      } else {
        figure$kind == "runs" & drawn_in(figure, series)
      }
    })
  }
  chosen <- Reduce(`|`, chosen)
  if (any(chosen)) chosen else rep(TRUE, nrow(series))
}

#' What series are called
#'
#' @param rows data frame with workload, metric and factors
#' @param plan as from `read_plan`
#' @return texts such as "Linpack rate, order 1,000"
series_names <- function(rows, plan) {
  labels <- vapply(seq_len(nrow(rows)), function(i) {
    entry <- planned_workload(plan, rows$workload[[i]])
    paste(entry$title, lower_first(entry$metrics[[rows$metric[[i]]]]$label))
  }, "")
  paste0(labels, factor_text(rows$factors), recycle0 = TRUE)
}

#' Factors as text behind the label of a metric
#'
#' @param factors such as "order=1000;clients=4", "" where there are none
#' @return texts such as ", order 1,000, clients 4"
factor_text <- function(factors) {
  vapply(strsplit(factors, ";", fixed = TRUE), function(pairs) {
    if (length(pairs) == 0) {
      return("")
    }
    name <- sub("=.*", "", pairs)
    value <- sub("^[^=]*=?", "", pairs)
    number <- suppressWarnings(as.numeric(value))
    value <- ifelse(is.na(number), value, quantity(number))
    paste0(", ", paste0(words(name), NO_BREAK, value, collapse = ", "))
  }, "")
}
