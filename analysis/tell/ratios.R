# Ratios to native in words: what tables and sentences share.

#' A ratio with its interval and its number of pairs
#'
#' @param rows of the comparisons
#' @param n whether the number of pairs is named
#' @return texts such as "96.2 % [95.0, 97.4], n = 5", linked to their runs
ratio_text <- function(rows, n = TRUE) {
  text <- percent_interval(rows$ratio, rows$ratio_low, rows$ratio_high)
  linked(if (n) paste0(text, ", ", n_is(rows$ratio_n)) else text, source_id(rows))
}

#' From the least to the greatest of several values
#'
#' Values that are close have equal decimals, and those far apart each its own.
#'
#' @param value,decimals numbers
#' @param to for each what it links to
#' @param unit behind each value
#' @return text such as "94 % to 104 %"; one value where both ends read the same
span_told <- function(value, decimals, to, unit) {
  ends <- c(which.min(value), which.max(value))
  near <- value[[ends[[2]]]] < 3 * value[[ends[[1]]]]
  places <- if (near) rep(min(decimals[ends]), 2) else decimals[ends]
  text <- paste0(fixed(value[ends], places), unit)
  paste(unique(linked(text, if (text[[1]] == text[[2]]) to[[ends[[2]]]] else to[ends])), collapse = " to ")
}

#' Numbers of runs as text
#'
#' @param n numbers
#' @return text such as "5" or "4 to 5"
n_text <- function(n) {
  if (min(n) == max(n)) fixed(n[[1]], 0) else paste(min(n), "to", max(n))
}

#' The most frequent of numbers
#'
#' @param n numbers
#' @return the one that stands there most often, the largest of several such; 0 where there are none
most_frequent <- function(n) {
  counts <- table(n)
  max(0, as.numeric(names(counts)[counts == max(counts, 0)]))
}

#' Where the rest of the sweeps is
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where tables and sentences tell of everything
untold_text <- function(evidence) {
  rows <- evidence$comparisons
  if (all(rows$headline)) {
    return(NULL)
  }
  drawn <- rep(FALSE, nrow(rows))
  for (workload in unique(rows$workload)) {
    own <- rows$workload == workload
    drawn[own] <- Reduce(`|`, lapply(figures_of(evidence$plan, workload), drawn_in, series = rows[own, ]))
  }
  drawn <- drawn[!rows$headline]
  untold <- rows[!rows$headline, ]
  count <- function(part) linked(fixed(length(unique(part$series)), 0), shared_source(part))
  paste0("Of sweeps, these are the points that stand for them. Of ",
         linked(counted(length(unique(rows$series)), "series", "series"), "records"), ", ",
         if (any(drawn)) {
           paste0(count(untold[drawn, ]), " more are in the figures of ",
                  listed(unique(untold$title[drawn])))
         },
         if (any(drawn) && !all(drawn)) ", and ",
         if (!all(drawn)) paste0(count(untold[!drawn, ]), " of ", listed(unique(untold$title[!drawn])),
                                 " in none"),
         "; all are in results/summary and results/comparisons.csv.")
}

#' What a caption says where not everything is told of
#'
#' @param evidence as from `read_evidence`
#' @return part of a sentence; "" where all is
of_sweeps <- function(evidence) {
  if (all(evidence$comparisons$headline)) "" else ", of sweeps at the points that stand for them"
}

#' What is not to be concluded from emulated virtual machines
#'
#' @param evidence as from `read_evidence`
#' @return one sentence, or NULL where none was measured
emulation_note <- function(evidence) {
  names <- intersect(emulated_environments(evidence$plan), evidence$comparisons$environment)
  if (length(names) > 0) {
    paste0(listed(in_sentence(environment_labels(evidence$plan, names))), ": emulated in software, without ",
           "hardware acceleration; these values test no claim about KVM.")
  }
}

#' Why levels of different numbers of runs are not to be set against each other
#'
#' @param evidence as from `read_evidence`
#' @param workloads of which levels are shown
#' @return one sentence, or NULL where each set of these holds all environments that are to be in it
narrow_note <- function(evidence, workloads) {
  narrow <- intersect(workloads, evidence$narrow$workload)
  if (length(narrow) > 0) {
    titles <- vapply(evidence$plan$workloads[narrow], `[[`, "", "title")
    paste0("Some sets of ", listed(titles), " hold only what a claim compares: a level is over all sets of ",
           "its environment, a ratio over those that hold native too, so that levels with different n are ",
           "not to be compared.")
  }
}

#' How many runs the cells of a table in the form of Table I rest on
#'
#' @param evidence as from `read_evidence`
#' @return end of a sentence
usual_runs <- function(evidence) {
  rows <- told(evidence)
  n <- rows$n
  usual <- most_frequent(n)
  paste0(linked(n_is(usual), shared_source(rows)), if (usual == 1) " run" else " runs",
         if (any(n != usual)) ", except where marked", ".")
}

#' A verdict as a cell
#'
#' @param verdict as from `verdict`
#' @return texts
reading <- function(verdict) {
  c(slower = "slower", faster = "faster", equal = paste("within", percent(MINIMUM_EFFECT, 0)), open = "open",
    unknown = "no interval")[verdict]
}

#' A p value
#'
#' @param p p values
#' @return texts of two significant digits, "<0.001" for smaller ones; "" where there is none
p_text <- function(p) {
  ifelse(is.na(p), "", ifelse(p < 0.001, "<0.001", significant(pmin(p, 1))))
}

#' A number with two significant digits
#'
#' @param x numbers
#' @return texts
significant <- function(x) {
  fixed(x, pmax(0, 1 - magnitude(signif(x, 2))))
}

#' What is to be said of metrics that are not averaged as most are
#'
#' @param rows of the comparisons
#' @return notes, one for each such statistic
statistic_notes <- function(rows) {
  plain <- substr(rows$name, 1, nchar(rows$name) - nchar(factor_text(rows$factors)))
  named <- function(statistic) listed(unique(plain[rows$statistic == statistic]))
  c(
    if (any(rows$statistic == "harmonic")) {
      paste0("Harmonic means, since they are rates over equal work: ", named("harmonic"), ".")
    },
    if (any(rows$statistic == "percentile")) {
      paste0("Percentiles of single runs, of which no mean is taken but the median over the runs, and the ",
             "median of the ratios within the sets: ", named("percentile"), ".")
    }
  )
}
