# The one table of both papers: what was claimed, what the authors' own numbers say of it, and what was
# measured.

#' What the authors' own numbers say of a claim: by their raw results, or else by their print
#'
#' @param own as from `read_own_verdicts`, its `claims`
#' @return data frame: `verdict`, "" where neither decides; `value`, `low`, `high`, `n`; and `from`, texts
deciding_numbers <- function(own) {
  open <- c("incomplete", NOT_AVAILABLE)
  raw <- !own$raw_verdict %in% open
  print <- !raw & !own$printed_verdict %in% open
  some <- raw & !is.na(own$raw)
  data.frame(
    verdict = ifelse(raw, own$raw_verdict, ifelse(print, own$printed_verdict, "")),
    value = ifelse(raw, own$raw, ifelse(print, own$printed, NA)),
    low = ifelse(raw, own$raw_low, NA), high = ifelse(raw, own$raw_high, NA),
    from = ifelse(some, paste0("raw logs, ", n_is(fixed(own$raw_n, 0))),
                  ifelse(print, ifelse(grepl("^(Table|Figure) ", own$printed_at),
                                       paste0("its ", sub(":.*", "", own$printed_at)), "its figures"), ""))
  )
}

#' A claimed or recomputed value
#'
#' @param value numbers
#' @param how "ratio", which is told in per cent, or another
#' @param unit of the others
#' @param low,high limits of an interval, NA for none
#' @return texts, "" for none
claimed_value <- function(value, how, unit, low = NA_real_, high = NA_real_) {
  count <- length(value)
  low <- rep_len(low, count)
  high <- rep_len(high, count)
  ifelse(is.na(value), "", ifelse(how == "ratio", percent_interval(value, low, high),
                                  paste0(quantity(value), NO_BREAK, unit)))
}

#' The claims of which either the authors' own numbers or those measured here tell something
#'
#' @param own as from `read_own_verdicts`, its `claims`
#' @param measured tested claims, with the columns of CLAIM_COLUMNS; without rows where nothing was measured
#' @return data frame, a row for each, those that the authors' own numbers contradict first: `id`,
#'   `place`, `statement`, `published` (text), `own` (verdict), `value` and `from`, texts; `here` (verdict)
#'   and `ratio`, texts, "" where nothing was measured
joined_claims <- function(own, measured) {
  measured <- measured[measured$parts > 0, ]
  numbers <- deciding_numbers(own)
  what <- c("id", "publication", "place", "statement", "published", "unit")
  rest <- measured[!measured$id %in% own$id, ]
  none <- rep("", nrow(rest))
  rows <- rbind(own[what], rest[what])
  here <- measured[match(rows$id, measured$id), ]
  ratio <- paste0(percent_interval(here$ratio, here$ratio_low, here$ratio_high), ", ",
                  n_is(fixed(here$ratio_n, 0)))
  joined <- data.frame(
    rows[c("id", "publication", "place", "statement")],
    published = claimed_value(rows$published, ifelse(rows$unit == "ratio", "ratio", "level"), rows$unit),
    own = c(numbers$verdict, none),
    value = c(claimed_value(numbers$value, own$how, own$unit, numbers$low, numbers$high), none),
    from = c(numbers$from, none),
    here = ifelse(is.na(here$id), "", here$verdict), ratio = ifelse(is.na(here$ratio), "", ratio)
  )
  joined <- joined[joined$own != "" | joined$here != "", ]
  first <- c("contradicted", "number contradicted", "label contradicted")
  joined <- joined[order(match(joined$own, first, length(first) + 1)), ]
  rownames(joined) <- NULL
  joined
}

#' The table of claims, with what the authors' own numbers say of them and what was measured
#'
#' @param own as from `read_own_verdicts`, its `claims`
#' @param measured as of `joined_claims`
#' @param labels of the publications, by their names
#' @return a table, or NULL where there is nothing to tell
table_of_joined <- function(own, measured, labels) {
  rows <- joined_claims(own, measured)
  if (nrow(rows) == 0) {
    return(NULL)
  }
  here <- any(rows$here != "")
  others <- rows$publication != own$publication[[1]]
  breaking <- function(text) or_dash(sub(paste0(NO_BREAK, "["), " [", text, fixed = TRUE))
  cells <- cbind(
    with_percent(rows$statement),
    paste0(ifelse(others, paste0(labels[rows$publication], ", "), ""), rows$place),
    or_dash(rows$published), breaking(rows$value),
    or_dash(paste0(rows$own, ifelse(rows$from == "", "", paste0(" (", sub("^its ", "", rows$from), ")")))),
    if (here) cbind(breaking(rows$ratio), or_dash(rows$here))
  )
  theirs <- "By the authors\u2019 own numbers"
  columns <- c(
    list(column("Claim", "wrap", weight = 1.9), column("Source", "wrap", weight = 0.75),
         column("Published", "right"), column("Value", "wrap", theirs, 1),
         column("Verdict", "wrap", theirs, 1.15)),
    if (here) list(column("Ratio", "wrap", "By the machine at hand", 0.85),
                   column("Verdict", "wrap", "By the machine at hand", 0.95))
  )
  left <- sum(!own$id %in% rows$id)
  notes <- c(
    paste0("Own numbers: the raw results where all that is behind the print was read, else the printed ",
           "table or figure; ratios of raw results with Fieller\u2019s 95", THIN, "% interval for unpaired ",
           "runs. Follows: within what the words and digits of the claim allow; number contradicted: the ",
           "statement holds, with another number; label contradicted: the number is of another environment ",
           "than it is printed for."),
    if (here) {
      paste0("Machine at hand: the part that decides, with its interval, against a tolerance that allows ",
             "for other hardware.")
    },
    if (any(rows$own == "")) {
      paste0(EM_DASH, ": nothing that would test it was published",
             if (here) ", or it was not measured", ".")
    },
    if (left > 0) {
      paste0("Left out: ", counted(left, "claim"), " that ", if (left == 1) "is" else "are",
             " tested by neither.")
    }
  )
  new_table("joined", if (here) {
    "What was claimed in print, by the authors\u2019 own numbers and by the machine at hand"
  } else {
    "What was claimed in print, by the authors\u2019 own numbers"
  }, columns, cells, notes = notes)
}

#' How the claims fared by both, in sentences
#'
#' @inheritParams table_of_joined
#' @param measured_count function that gives counts of what was measured a link, or none
#' @return one text
joined_text <- function(own, measured, measured_count = identity) {
  rows <- joined_claims(own, measured)
  wrong <- grepl("contradicted", rows$own)
  fits <- rows$own == "follows"
  decided <- rows$here %in% c("reproduced", "contradicted")
  count <- function(which) fixed(sum(which), 0)
  here <- function(of, verdict) measured_count(count(of & rows$here == verdict))
  paste0(
    "By the authors\u2019 own numbers, ", count(fits), " of ", counted(nrow(own), "claim"),
    " of the report of 2014 ", if (sum(fits) == 1) "follows" else "follow", " and ", count(wrong),
    if (sum(wrong) == 1) " does not" else " do not",
    if (any(rows$own == "label contradicted")) {
      paste0(", ", count(rows$own == "label contradicted"), " of them for their labels")
    }, ".",
    if (any(decided & rows$own != "")) {
      paste0(" The machine at hand reproduced ", here(fits, "reproduced"), " and contradicted ",
             here(fits, "contradicted"), " of those that follow, and ", here(wrong, "reproduced"), " and ",
             here(wrong, "contradicted"), " of those that do not.")
    }
  )
}
