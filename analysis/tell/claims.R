# The tables and sentences about published claims.

#' How the claims fared, in sentences
#'
#' @param evidence as from `read_evidence`
#' @return one text
claims_text <- function(evidence) {
  claims <- evidence$claims
  counts <- table(factor(claims$verdict, CLAIM_VERDICTS))
  reasons <- table(factor(claims$reason[claims$verdict == "not testable here"], names(untestable_reasons())))
  reasons <- reasons[reasons > 0]
  phrases <- c(statement = "no statement about a difference between environments",
               workload = "the workload was not measured", environment = "an environment was not measured",
               emulation = "no hardware acceleration was proven", metric = "the metric was not measured",
               size = "the size or load was not measured", hardware = "it holds for other hardware only")
  paste0(
    "Of ", counted(nrow(claims), "published claim"), " in ",
    counted(length(unique(claims$publication)), "publication"), ", ",
    listed(paste(linked(fixed(counts[1:3], 0), if (sum(counts[1:3]) > 0) "records" else "plan"),
                 c("were reproduced", "contradicted", "left inconclusive"))), "; ",
    linked(fixed(counts[[4]], 0), if (counts[[4]] > 0) "table-untested" else "plan"),
    " could not be tested here",
    if (length(reasons) > 0) {
      paste0(" (", paste0(phrases[names(reasons)], ": ", linked(fixed(reasons, 0), "table-untested"),
                          collapse = "; "), ")")
    }, "."
  )
}

#' What the authors' own raw logs say of published claims
#'
#' @param evidence as from `read_evidence`
#' @return texts, one for each claim that has a note on them
raw_log_notes <- function(evidence) {
  claims <- evidence$claims[grepl("raw logs", evidence$claims$note, fixed = TRUE), ]
  paste0("“", with_percent(claims$statement), "” (", source_text(claims, evidence), "): ",
         with_percent(claims$note), recycle0 = TRUE)
}

#' The claims of which at least a part was measured
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where there is none
table_of_claims <- function(evidence) {
  claims <- evidence$claims[evidence$claims$parts > 0, ]
  if (nrow(claims) == 0) {
    return(NULL)
  }
  claims <- claims[order(match(claims$verdict, CLAIM_VERDICTS)), ]
  named <- vapply(seq_len(nrow(claims)), function(i) measured_name(claims[i, ], evidence), "")
  cells <- cbind(
    with_percent(claims$statement),
    source_text(claims, evidence),
    or_dash(published_value(claims)),
    tolerance_text(claims),
    paste0(percent_interval(claims$ratio, claims$ratio_low, claims$ratio_high), ", ",
           n_is(fixed(claims$ratio_n, 0)), ": ", named),
    claims$verdict,
    sentence_or_dash(claims, evidence)
  )
  notes <- c(
    paste0("Measured: the ratio of the two environments, paired by set, with Fieller\u2019s interval. ",
           "Reproduced: each interval at 90", THIN, "% lies within the tolerance (two one-sided tests at ",
           "5", THIN, "%); contradicted: one interval, of those that hold together at 95", THIN, "%, lies ",
           "outside of it; inconclusive: neither. The part that decides is shown, with the interval that ",
           "does."),
    if (any(!is.na(claims$more_sets))) {
      paste0("More sets: with ", percent(POWER, 0), " probability, if ratio and scatter stay as seen; in ",
             "parentheses the same at the limits of the variance\u2019s interval.")
    },
    if (evidence$plan$scale != "paper") {
      paste0("The sizes are those of the scale \u201c", evidence$plan$scale,
             "\u201d, below the originals\u2019.")
    },
    if (any(published_value(claims) == "")) paste0(EM_DASH, ": nothing was published.")
  )
  columns <- list(column("Claim", "wrap", weight = 1.5), column("Source", "wrap", weight = 0.7),
                  column("Published", "right"), column("Tolerance", "right"),
                  column("Measured here", "wrap", weight = 1.2), column("Verdict", "wrap", weight = 0.6),
                  column("Remark", "wrap"))
  table <- new_table("claims", "Published claims, tested by what was measured here", columns, cells,
                     notes = notes)
  table$sources[, 5] <- claim_source(claims, evidence)
  table
}

#' The claims of which no part was measured
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where there is none
table_of_untested <- function(evidence) {
  claims <- evidence$claims[evidence$claims$parts == 0, ]
  if (nrow(claims) == 0) {
    return(NULL)
  }
  claims <- claims[order(match(claims$reason, names(untestable_reasons())), claims$publication,
                         method = "radix"), ]
  cells <- cbind(with_percent(claims$statement), source_text(claims, evidence),
                 or_dash(published_value(claims)), claims$reason,
                 trimws(paste(sentence(with_percent(because_text(claims, evidence))),
                              with_percent(claims$note))))
  columns <- list(column("Claim", "wrap", weight = 1.5), column("Source", "wrap", weight = 0.8),
                  column("Published", "right"), column("Reason", "left"), column("Explanation", "wrap"))
  new_table("untested", "Published claims that could not be tested here", columns, cells)
}

#' Where a claim stands
#'
#' @param claims rows of the claims
#' @param evidence as from `read_evidence`
#' @return texts such as "IBM 2014, Table I"
source_text <- function(claims, evidence) {
  labels <- vapply(evidence$publications, `[[`, "", "label")
  paste0(labels[claims$publication], ", ", claims$place)
}

#' The value that was published
#'
#' @param claims rows of the claims
#' @return texts such as "78 %" or "30 \u00b5s"; "" where there is none
published_value <- function(claims) {
  ratio <- claims$unit == "ratio"
  share <- paste0(quantity(100 * claims$published, 3), THIN, "%")
  value <- paste0(quantity(claims$published), NO_BREAK, claims$unit)
  ifelse(is.na(claims$published), "", ifelse(ratio, share, value))
}

#' The tolerance of a claim
#'
#' @param claims rows of the claims
#' @return texts such as "73 to 83 %"
tolerance_text <- function(claims) {
  low <- quantity(100 * claims$tolerance_low, 3)
  high <- quantity(100 * claims$tolerance_high, 3)
  paste0(ifelse(low == "", paste0("\u2264", NO_BREAK, high),
                ifelse(high == "", paste0("\u2265", NO_BREAK, low), paste0(low, EN_DASH, high))), THIN, "%")
}

#' What the measured value of a claim is of
#'
#' @param claim a row of the claims
#' @param evidence as from `read_evidence`
#' @return text such as "Docker to Native, copy (1 of 4)"
measured_name <- function(claim, evidence) {
  labels <- environment_labels(evidence$plan, c(claim$environment, claim$reference))
  title <- if (claim$measured_workload != claim$workload) {
    paste0(evidence$plan$workloads[[claim$measured_workload]]$title, " ")
  }
  paste0(labels[[1]], " to ", lower_first(labels[[2]]), ", ", title, words(claim$metric),
         factor_text(claim$factors),
         if (claim$parts > 1) paste0(" (of ", fixed(claim$parts, 0), " parts)"))
}

#' What is to be said of a claim
#'
#' @param claims rows of the claims
#' @param evidence as from `read_evidence`
#' @return texts: why it is not testable or inconclusive, what would decide it, and its note
sentence_or_dash <- function(claims, evidence) {
  more <- vapply(seq_len(nrow(claims)), function(i) {
    if (is.na(claims$more_sets[[i]])) "" else paste(sets_text(claims[i, ]), "would decide it.")
  }, "")
  text <- paste(sentence(with_percent(because_text(claims, evidence))), more, with_percent(claims$note))
  or_dash(trimws(gsub(" +", " ", text)))
}

#' Why claims were not tested, without what the text tells once
#'
#' @param claims rows of the claims
#' @param evidence as from `read_evidence`
#' @return texts: that acceleration was not proven stands there, and why it was not elsewhere
because_text <- function(claims, evidence) {
  text <- claims$because
  for (entry in evidence$plan$environments) {
    why <- sub("[.]$", "", c(entry[["accelerator_reason"]], "")[[1]])
    if (why != "") {
      text <- sub(paste0(": ", why), "", text, fixed = TRUE)
    }
  }
  text
}

#' What the measured value of a claim rests on
#'
#' @param claims rows of the claims
#' @param evidence as from `read_evidence`
#' @return names as from `source_id`
claim_source <- function(claims, evidence) {
  rows <- evidence$comparisons
  at <- match(paste(claims$measured_workload, claims$environment, claims$metric, claims$factors),
              paste(rows$workload, rows$environment, rows$metric, rows$factors))
  ifelse(is.na(at), "", source_id(rows[at, ]))
}
