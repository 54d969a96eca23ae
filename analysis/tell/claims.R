# The tables and sentences about published claims.

#' How the claims fared, in sentences
#'
#' @param evidence as from `read_evidence`
#' @param reasons whether it is told why claims could not be tested
#' @return one text
claims_text <- function(evidence, reasons = TRUE) {
  claims <- evidence$claims
  counts <- table(factor(claims$verdict, CLAIM_VERDICTS))
  why <- table(factor(claims$reason[claims$verdict == "not testable here"], names(untestable_reasons())))
  why <- if (reasons) why[why > 0]
  phrases <- c(statement = "no statement about a difference between environments",
               workload = "the workload was not measured", environment = "an environment was not measured",
               emulation = "no hardware acceleration was proven", metric = "the metric was not measured",
               size = "the size or load was not measured", hardware = "it holds for other hardware only",
               transferred = "it was published for another product")
  paste0(
    "Of ", counted(nrow(claims), "published claim"), " in ",
    counted(length(unique(claims$publication)), "publication"), ", ",
    listed(paste(linked(fixed(counts[1:3], 0), if (sum(counts[1:3]) > 0) "records" else "plan"),
                 c("were reproduced", "contradicted", "left inconclusive"))), "; ",
    linked(fixed(counts[[4]], 0), if (counts[[4]] > 0) "table-untested" else "plan"),
    " could not be tested here",
    if (length(why) > 0) {
      paste0(" (", paste0(phrases[names(why)], ": ", linked(fixed(why, 0), "table-untested"),
                          collapse = "; "), ")")
    }, "."
  )
}

#' How the claims fared that were published for one product and tested on another
#'
#' @param evidence as from `read_evidence`
#' @return one text, NULL where there is none
transferred_text <- function(evidence) {
  claims <- evidence$transferred
  if (nrow(claims) == 0) {
    return(NULL)
  }
  counts <- table(factor(claims$verdict, TRANSFERRED_VERDICTS))
  one <- c("carries over", "does not carry over", "stays open", "was tested in part")
  more <- c("carry over", "do not carry over", "stay open", "were tested in part")
  carried <- ifelse(counts == 1, one, more)
  shown <- counts > 0
  paste0(
    "Transferred claims are counted by themselves: of ",
    linked(counted(nrow(claims), "claim"), "records"), " ", transferred_between(claims, evidence), ", ",
    listed(paste(linked(fixed(counts[shown], 0), "records"), carried[shown])), "."
  )
}

#' From which product to which claims were transferred
#'
#' @param claims rows of the transferred claims
#' @param evidence as from `read_evidence`
#' @return text such as "published for vSphere and tested here on KVM"
transferred_between <- function(claims, evidence) {
  used <- unique(c(claims$environment, claims$reference))
  machines <- Filter(has_machine, evidence$plan$environments[used])
  kinds <- toupper(unique(vapply(machines, function(one) c(one[["accelerator"]], "")[[1]], "")))
  on <- if (all(kinds %in% c("", NA))) {
    environment_labels(evidence$plan, unique(claims$environment))
  } else {
    kinds
  }
  paste("published for", listed(sort(unique(claims$published_for))), "and tested here on", listed(on))
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
  notes <- c(
    paste0("Measured: the ratio of the two environments, paired by set, with Fieller\u2019s interval. ",
           "Reproduced: each interval at 90", THIN, "% lies within the tolerance (two one-sided tests at ",
           "5", THIN, "%); contradicted: one interval, of those that hold together at 95", THIN, "%, lies ",
           "outside of it; inconclusive: neither. The part that decides is shown, with the interval that ",
           "does."),
    more_sets_note(claims),
    if (evidence$plan$scale != "paper") {
      paste0("The sizes are those of the scale \u201c", evidence$plan$scale,
             "\u201d, below the originals\u2019.")
    },
    if (any(published_value(claims) == "")) paste0(EM_DASH, ": nothing was published.")
  )
  claims_table("claims", "Published claims, tested by what was measured here", claims, CLAIM_VERDICTS, notes,
               evidence)
}

#' The claims that were published for one product and tested on another
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where there is none
table_of_transferred <- function(evidence) {
  claims <- evidence$transferred
  if (nrow(claims) == 0) {
    return(NULL)
  }
  notes <- c(
    paste0("Each was ", transferred_between(claims, evidence), ": another product, of which it says ",
           "nothing. It carries over where it would be reproduced, and does not where it would be ",
           "contradicted, had it been published for what was measured; of a claim about several ",
           "environments these are the parts about the product. None is counted among the other claims."),
    more_sets_note(claims)
  )
  claims_table("transferred", upper_first(paste0("claims ", transferred_between(claims, evidence))), claims,
               TRANSFERRED_VERDICTS, notes, evidence)
}

#' What is said below a table of how many more sets would decide a claim
#'
#' @param claims rows of the claims
#' @return text, NULL where none says so
more_sets_note <- function(claims) {
  if (any(!is.na(claims$more_sets))) {
    paste0("More sets: with ", percent(POWER, 0), " probability, if ratio and scatter stay as seen; in ",
           "parentheses the same at the limits of the variance\u2019s interval.")
  }
}

#' A table of claims and what was measured of each
#'
#' @param id,title,notes of the table
#' @param claims its rows
#' @param verdicts in the order in which they stand
#' @param evidence as from `read_evidence`
#' @return a table
claims_table <- function(id, title, claims, verdicts, notes, evidence) {
  claims <- claims[order(match(claims$verdict, verdicts)), ]
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
  columns <- list(column("Claim", "wrap", weight = 1.5), column("Source", "wrap", weight = 0.7),
                  column("Published", "right"), column("Tolerance", "right"),
                  column("Measured here", "wrap", weight = 1.2), column("Verdict", "wrap", weight = 0.6),
                  column("Remark", "wrap"))
  table <- new_table(id, title, columns, cells, notes = notes)
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
