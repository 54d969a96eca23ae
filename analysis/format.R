# Texts, numbers and short sentences as a reader expects them.  All other prose is in the folder
# paper.

library(dplyr)
library(glue)

# A space at which no line breaks, and the sign of a value that does not exist.
SPACE <- "\u00a0"
NO_VALUE <- "\u2014"

#' Format a time with two significant digits, for example "22 s", "12 min" or "3.4 h"
#'
#' @param seconds one number, or NA
#' @return string; "an unknown time" for NA
format_time <- function(seconds) {
  if (is.na(seconds)) return("an unknown time")
  # Up to 90 s and 90 min the smaller unit is used, so that two digits are precise enough.
  unit <- if (seconds < 90) "s" else if (seconds < 5400) "min" else "h"
  number <- signif(seconds / c(s = 1, min = 60, h = 3600)[[unit]], 2)
  paste0(format(number, big.mark = ",", scientific = FALSE), SPACE, unit)
}

#' Replace characters that control a device or the direction of writing, so that texts are legible
#'
#' A run of these characters becomes a space.  The joiners of Arabic and Indic scripts and of emoji
#' are kept.
#'
#' @param texts character vector; bytes that are not UTF-8 become replacement characters
#' @param keep characters that are kept, for example the line ends of a label in a figure
#' @return character vector
replace_control_characters <- function(texts, keep = "") {
  texts <- iconv(as.character(texts), "UTF-8", "UTF-8", sub = "\ufffd")
  controls <- paste0("(?:(?![\u200c\u200d", keep, "])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}])+")
  gsub(controls, " ", texts, perl = TRUE)
}

# Characters that TeX would set as typographic quotes, with the LaTeX that sets them straight.  Two
# commas would become a low quote.
STRAIGHT_QUOTES <- c("'" = "\\textquotesingle{}", "`" = "\\textasciigrave{}", "," = ",{}")

#' Escape texts from outside (labels, names, a tool's output) for Markdown
#'
#' The paper then shows each text letter by letter in one line.  Every text from outside has to be
#' escaped, so that none acts as Markdown, LaTeX or a reference of bookdown.
#'
#' @param texts vector; texts that mark_as_markdown has marked stay as they are
#' @return character vector of Markdown, without the mark, so that it must not be escaped again; NA
#'   stays NA
escape_text <- function(texts) {
  if (inherits(texts, "knit_asis")) return(as.character(texts))
  texts <- replace_control_characters(texts)
  # The marks of Markdown: brackets and other signs, the colon of an address, a dot, comma or dash
  # before another, and the signs that begin a block.  Each becomes a numeric character reference,
  # since rmarkdown would take a backslash before a bracket for the beginning of mathematics.
  marks <- "[][!#$()*<>@\\\\^_`{|}~&\"']|:(?=\\S)|[-.,](?=[-.,])|(?<!\\S)[-+=%:]"
  escape_mark <- function(mark) {
    number <- sprintf("&#%d;", vapply(mark, utf8ToInt, 1L))
    if (!knitr::is_latex_output()) return(number)
    latex <- STRAIGHT_QUOTES[mark]
    ifelse(is.na(latex), number, paste0("`", latex, "`{=latex}"))
  }
  has_text <- !is.na(texts)
  matches <- gregexpr(marks, texts[has_text], perl = TRUE)
  regmatches(texts[has_text], matches) <- lapply(regmatches(texts[has_text], matches), escape_mark)
  # A number or letter and a dot at the start would begin a list.
  texts <- sub("^( *\\w+)[.]", "\\1&#46;", texts, perl = TRUE)
  # bookdown looks for "(#", "(ref:" and "@ref(" in the output of pandoc, where no escape is left.
  # An empty span keeps the characters apart.
  gsub("(&#40;|&#64;ref)(?=&#35;|ref(:|&#58;)|&#40;)", "\\1[]{}", texts, perl = TRUE)
}

#' Convert prose from outside to Markdown in which only a few marks have an effect
#'
#' The marks are empty lines between paragraphs, "- " or "1. " before an item of a list, *emphasis*,
#' **strong emphasis** and [links](https://example.org).  Everything else is shown letter by letter.
#'
#' @param text one text, which may have several lines
#' @return marked Markdown
convert_prose <- function(text) {
  lines <- strsplit(text, "\r\n?|\n")[[1]]
  item_mark <- "^ {0,3}([-*]|[0-9]{1,3}[.])\\s+(?=\\S)"
  is_item <- grepl(item_mark, lines, perl = TRUE)
  is_blank <- !grepl("\\S", lines)
  # A block begins with the text, with an item, and after a blank line.
  follows_blank <- c(TRUE, is_blank)[seq_along(lines)]
  block <- cumsum(is_item | follows_blank)
  is_first <- !duplicated(block)
  marks <- ifelse(!is_item, "", ifelse(grepl("^ *[-*]", lines), "- ", "1. "))[is_first]
  texts <- tapply(sub(item_mark, "", lines, perl = TRUE), block, paste, collapse = " ")
  # A block whose first line is blank is empty.
  is_shown <- !is_blank[is_first]
  texts <- paste0(marks, restore_marks(escape_text(trimws(texts))))[is_shown]
  marks <- marks[is_shown]
  continues_list <- marks != "" & marks == c("", marks)[seq_along(marks)]
  mark_as_markdown(paste0(ifelse(continues_list, "\n", "\n\n"), texts, collapse = ""))
}

# Turns the escaped marks of links and of emphasis back into marks.  Text within the marks stays
# escaped.
# texts: strings of escape_text; the patterns rely on the character references that it writes.
restore_marks <- function(texts) {
  label <- "&#91;((?:(?!&#9[13];).)+)&#93;"
  # Letters and signs of an address, some of them escaped.
  sign <- "(?:[[:alnum:]/.?=%+-]|&#(?:35|37|38|43|45|46|58|61|64|95|126);)"
  address <- paste0("&#40;(https?)&#58;(//", sign, "+)&#41;")
  texts <- gsub(paste0(label, address), "[\\1](\\2:\\3)", texts, perl = TRUE)
  for (mark in c("**", "*")) {
    escaped <- gsub("*", "&#42;", mark, fixed = TRUE)
    emphasis <- paste0(escaped, "(?=\\S)((?:(?!", escaped, ").)+)(?<=\\S)", escaped)
    texts <- gsub(emphasis, paste0(mark, "\\1", mark), texts, perl = TRUE)
  }
  texts
}

#' Fill a Markdown template with values, which are escaped unless they are marked
#'
#' @param template text for glue with {expressions}, which are evaluated: never a text from outside
#' @param .envir environment of the expressions; by default the caller's
#' @return marked Markdown, an element for each element of the values
fill_markdown <- function(template, .envir = parent.frame()) {
  # Returns the escaped value of the code of an expression; glue calls it.
  escape_value <- function(code, envir) {
    escape_text(eval(parse(text = code, keep.source = FALSE), envir))
  }
  mark_as_markdown(glue(template, .envir = .envir, .transformer = escape_value))
}

# Marks texts as Markdown (class knit_asis), so that escape_text and knitr leave them as they are.
# Functions such as paste and if_else drop the mark.
mark_as_markdown <- function(texts) structure(as.character(texts), class = "knit_asis")

# Formats shares in per cent, for example 0.12 as "12 %"; NA gives NO_VALUE.
# digits: number of digits after the decimal point.
format_share <- function(shares, digits = 0) {
  texts <- paste0(formatC(100 * shares, format = "f", digits = digits), SPACE, "%")
  ifelse(is.na(shares), NO_VALUE, texts)
}

# Formats a margin, a share, in per cent with all its digits: "2 %", "0.5 %".
format_margin <- function(margin) paste0(format(100 * margin), SPACE, "%")

#' Format numbers with two digits of their uncertainty (Particle Data Group)
#'
#' @param numbers numeric vector
#' @param half_width half-widths of their intervals in the same unit; NA gives three digits, and so
#'   does a half-width below 1/100,000 of the number
#' @return character vector; NA gives NO_VALUE
format_number <- function(numbers, half_width = NA) {
  lacks_uncertainty <- is.na(half_width) | half_width < abs(numbers) / 1e5
  # A number is shown up to the second digit of its uncertainty.  Without one, a tenth of the number
  # is taken, which gives three digits.
  uncertainty <- ifelse(lacks_uncertainty, abs(numbers) / 10, half_width)
  # At most six digits after the decimal point.
  digits <- pmin(pmax(0, 1 - floor(log10(uncertainty))), 6)
  digits[!is.finite(digits)] <- 0
  texts <- mapply(formatC, numbers, digits = digits,
                  MoreArgs = list(format = "f", big.mark = ","))
  ifelse(is.na(numbers), NO_VALUE, texts)
}

# Formats ratios in per cent without the sign, with one decimal if the interval from low to high is
# narrower than 0.03, else without one.
# ratios, low, high: numeric vectors; low and high are NA if there is no interval.
# Returns strings, for example "95" or "95.3".
format_in_percent <- function(ratios, low, high) {
  digits <- ifelse(coalesce(high - low, 1) < 0.03, 1, 0)
  mapply(formatC, 100 * ratios, digits = digits, MoreArgs = list(format = "f"))
}

# Formats intervals of ratios in per cent, for example "[93, 97]"; "" if low is NA.
format_ends <- function(low, high) {
  ends <- paste0("[", format_in_percent(low, low, high), ", ", format_in_percent(high, low, high),
                 "]")
  ifelse(is.na(low), "", ends)
}

#' Format ratios with their intervals, for example "95 % [93, 97]"
#'
#' @param ratio,low,high numeric vectors; low and high are NA if there is no interval
#' @return character vector; NO_VALUE where the ratio is NA
format_share_interval <- function(ratio, low, high) {
  texts <- paste0(format_in_percent(ratio, low, high), SPACE, "% ", format_ends(low, high))
  ifelse(is.na(ratio), NO_VALUE, trimws(texts))
}

# Joins the distinct strings of a vector into an enumeration: "a, b and c".
join_words <- function(texts) paste(knitr::combine_words(unique(texts), oxford_comma = FALSE))

#' Join the distinct values of a fact in records into an enumeration
#'
#' @param records list of records
#' @param get_fact function that returns a record's fact, or NULL if the record lacks it; for
#'   example a function of make_host_getter
#' @return text; "not recorded" if no record has the fact
join_distinct_facts <- function(records, get_fact) {
  join_words(as.character(unlist(lapply(records, get_fact)) %or% "not recorded"))
}

#' Join sentences into one text, without those that are missing
#'
#' @param ... texts; NULL and "" are left out; each text is escaped unless it is marked
#' @return marked Markdown
join_sentences <- function(...) {
  sentences <- vapply(Filter(Negate(is.null), list(...)), escape_text, "")
  mark_as_markdown(paste(sentences[sentences != ""], collapse = " "))
}

# Formats a number with its noun: "1 run", "2 runs".
format_count <- function(count, noun, plural = paste0(noun, "s")) {
  paste0(format(count, big.mark = ",", scientific = FALSE), SPACE, if (count == 1) noun else plural)
}

# Returns a text with its first letter in lower case, for the middle of a sentence.
lower_first_letter <- function(text) {
  paste0(tolower(substr(text, 1, 1)), substr(text, 2, nchar(text)))
}

#' Name the workloads whose laps did not alternate because memory was short
#'
#' @param paper list of read_paper
#' @return sentence; NULL if there are no such workloads
describe_laps_in_sequence <- function(paper) {
  # The key `alone` of a record holds the reason.
  is_in_sequence <- function(record) !is.null(record$alone)
  workloads <- vapply(Filter(is_in_sequence, paper$records), `[[`, "", "workload")
  titles <- vapply(unique(workloads), function(name) paper$plan$workloads[[name]]$title, "")
  if (length(titles) == 0) return(NULL)
  glue("The memory did not hold all systems of {join_words(titles)}: here one environment took ",
       "all its laps after the other.")
}

#' Describe where the files of all environments come from
#'
#' @param image the plan's `image`
#' @return marked Markdown, a clause that continues "the files of one image, " in paper/report.Rmd
describe_image <- function(image) {
  if (!identical(image$distribution, "docker")) {
    return(fill_markdown("which Packer [@packer] provisions once"))
  }
  fill_markdown(paste("those of the Docker image {image$release}, exported once, with its",
                      "variables, user, folder and volumes"))
}

#' Name the workloads of a paper, or their number if they are six or more
#'
#' @param paper list of read_paper
#' @return enumeration of titles, or for example "8 workloads"
name_workloads <- function(paper) {
  titles <- unique(paper$runs$title)
  if (length(titles) < 6) join_words(titles) else format_count(length(titles), "workload")
}

#' Format values that claims are about, with three digits, their intervals and units
#'
#' @param value,low,high numbers in `unit`; low and high are NA if there is no interval
#' @param unit texts; "ratio" and "" are not shown
#' @return texts; "" if the value is NA
format_claim_value <- function(value, unit, low = NA_real_, high = NA_real_) {
  # Each number is formatted alone, since format gives all numbers of a vector the same digits.
  format_numbers <- function(numbers) {
    vapply(numbers, function(number) format(signif(number, 3), trim = TRUE), "")
  }
  interval <- paste0(" [", format_numbers(low), ", ", format_numbers(high), "]")
  interval <- if_else(is.na(low), "", interval)
  unit <- if_else(unit %in% c("ratio", ""), "", paste0(SPACE, unit))
  if_else(is.na(value), "", paste0(format_numbers(value), interval, unit))
}

#' Say how many published claims were reproduced, contradicted and left undecided
#'
#' @param paper list of read_paper
#' @return sentence
describe_tested_claims <- function(paper) {
  if (!paper$valid) return("No published claim is tested at these sizes.")
  count_verdicts <- function(...) sum(paper$claims$verdict %in% c(...))
  undecided <- count_verdicts("undecided", "tested in part")
  other_sizes <- count_verdicts("same direction", "other size")
  size_clause <- ""
  if (other_sizes > 0) size_clause <- glue(", {other_sizes} of another size than published")
  not_tested <- count_verdicts("not tested")
  not_tested_clause <- ""
  if (not_tested > 0) not_tested_clause <- glue("; {not_tested} could not be tested")
  glue("Of {nrow(paper$claims)} published claims, {count_verdicts('reproduced')} could be ",
       "reproduced, {count_verdicts('contradicted')} contradicted{size_clause} ",
       "and {undecided} not decided{not_tested_clause}.")
}

#' Say which workloads broke a rule of their size, or that the scale is `tiny`, which breaks rules
#'
#' @param paper list of read_paper with at least one workload in `invalid`
#' @return sentences, marked as Markdown
describe_broken_sizes <- function(paper) {
  if (!paper$valid) {
    return(fill_markdown(paste(
      "The workloads ran at the scale *tiny*, which is made for tests. These sizes fit caches and",
      "end quickly: the runs validate the pipeline and are no performance results."
    )))
  }
  titles <- vapply(paper$plan$workloads[paper$invalid], `[[`, "", "title")
  fill_markdown(paste("{join_words(titles)} broke a rule of its size (\u2020, Table",
                      "\\@ref(tab:sizes)): its results answer no question and test no claim."))
}

#' Describe how often each kind of disturbance occurred, for example "busy during a run (3 times)"
#'
#' @param flags list of records' flags, each a list of what (for example "busy") and when
#'   ("before" or "during")
#' @return enumeration
describe_disturbance_kinds <- function(flags) {
  kinds <- table(vapply(flags, function(flag) paste(flag$what, flag$when), ""))
  join_words(glue("{names(kinds)} a run ({kinds} times)"))
}

#' Say how many disturbed runs were measured again, and how many were kept
#'
#' @param runs rows of runs.csv, at least one of which was disturbed
#' @return clause, for example "all were kept and marked"
describe_disturbed_runs <- function(runs) {
  is_kept <- runs$counts[runs$flags != ""] == "yes"
  # A run that does not count was set aside by the plan, which added a block.
  fates <- c("set aside, each with its whole block, and measured again", "kept and marked")
  counts <- c(sum(!is_kept), sum(is_kept))
  subjects <- if (all(counts > 0)) paste(counts, ifelse(counts == 1, "was", "were")) else "all were"
  paste(paste(subjects, fates)[counts > 0], collapse = ", ")
}

#' Say for which scope the intervals of a table or figure hold, for its caption
#'
#' @param rows data frame with columns of compare_sessions: low, holds, sessions, machines
#' @return sentence, for example "Intervals hold within this session."; "" if no row has an interval
describe_scope <- function(rows) {
  rows <- rows[!is.na(rows$low), ]
  if (nrow(rows) == 0) return("")
  name_scope <- function(scope) {
    rows <- rows[rows$holds == scope, ]
    sessions <- join_words(sort(unique(rows$sessions)))
    count <- paste(sessions, if (sessions == "1") "session" else "sessions")
    switch(scope,
           session = "within this session",
           sessions = paste("within these", count),
           machine = paste0("for this machine (", count, ")"),
           machines = paste("for machines like these", join_words(sort(unique(rows$machines)))))
  }
  scopes <- intersect(SCOPES, rows$holds)
  clauses <- vapply(scopes, name_scope, "")
  counts <- vapply(scopes, function(scope) sum(rows$holds == scope), 0L)
  if (length(scopes) > 1) clauses <- paste0(counts, " ", clauses)
  paste0("Intervals hold ", join_words(clauses), ".")
}

# The scopes of intervals, from the narrowest to the widest: the values of `holds` that
# compare_sessions sets.
SCOPES <- c("session", "sessions", "machine", "machines")

# The outcomes of a comparison, in the order of legends and counts.  outcome.json has a count under
# each of these keys.
OUTCOMES <- c("slower", "faster", "equivalent", "undecided", "no interval")

#' Classify each comparison as one of OUTCOMES
#'
#' @param rows data frame: low (NA if there is no interval), verdict, direction ("slower" or
#'   "faster" if the verdict is "different")
#' @return factor with the levels OUTCOMES, an element for each row
classify_outcomes <- function(rows) {
  outcomes <- ifelse(rows$verdict == "different", rows$direction, rows$verdict)
  outcomes[is.na(rows$low)] <- "no interval"
  factor(outcomes, OUTCOMES)
}

# The verdicts on tested claims, in the order of tables and figures.
VERDICTS <- c("contradicted", "other size", "same direction", "reproduced", "undecided",
              "tested in part")

# The names of the families of environments, by the families that describe_environment gives.
FAMILIES <- c(containers = "Containers", sandboxes = "Sandboxed containers",
              machines = "Virtual machines")

# Leaves out the rows whose `question` is start-up, since their ratios are of another order of
# magnitude.  If all rows have the same question, they all stay.
omit_start_up <- function(rows) {
  filter(rows, question != "start-up" | n_distinct(question) == 1)
}

# Names the environments of one family: by their label if there is only one, else by the name of the
# family.
# rows: data frame of family and label, all of one family.
# families: the names of families, named by family.
name_family <- function(rows, families = FAMILIES) {
  labels <- unique(rows$label)
  if (length(labels) == 1) labels else families[[rows$family[[1]]]]
}

#' Say how much a family of environments costs, from the lowest to the highest of all its series
#'
#' The bounds are the lowest and the highest end of the intervals of all series.  Each of the two
#' bounds has the error rate of one interval.
#'
#' @param rows headline comparisons of the family: label, family, low_all and high_all (the ends of
#'   the interval that decides; NA if there is none)
#' @param verdicts rows of `decisions` of the family, one for each workload and environment
#' @param share_of phrase that says what the shares are shares of, with a space before it; or ""
#' @return clause, for example "containers cost at most 3 % of native's performance"
describe_cost_range <- function(rows, verdicts, share_of = "") {
  name <- name_family(rows, vapply(FAMILIES, lower_first_letter, ""))
  is_plural <- n_distinct(rows$label) > 1
  has_interval <- !is.na(rows$low_all)
  if (!any(has_interval)) {
    return(glue("what {name} {if (is_plural) 'cost' else 'costs'} is not known"))
  }
  end <- paste0(share_of, if (!all(has_interval)) " where an interval is known")
  # A cost is 1 - ratio, so that the highest ratio gives the lowest cost.
  min_cost <- 1 - max(rows$high_all[has_interval])
  max_cost <- 1 - min(rows$low_all[has_interval])
  if (max_cost <= 0) {
    verb <- if (is_plural) "are" else "is"
    return(glue("{name} {verb} faster by at least {format_rounded_share(-max_cost, floor)}{end}"))
  }
  # Costs are rounded outward, so that the range stays true.
  upper <- format_rounded_share(max_cost, ceiling)
  lower <- sub(paste0(SPACE, "%"), "", format_rounded_share(min_cost, floor))
  between <- glue("between {lower} and {upper}")
  if (all(verdicts$outcome %in% c("undecided", "no interval"))) {
    range <- if (min_cost > 0) between else glue("nothing or up to {upper}")
    return(glue("{name} may cost {range}{end}"))
  }
  range <- if (min_cost > 0) between else glue("at most {upper}")
  glue("{name} {if (is_plural) 'cost' else 'costs'} {range}{end}")
}

# Formats a share in per cent, rounded to a whole per cent, or below 10 % to a tenth: 0.0312 gives
# "3.1 %" with floor and "3.2 %" with ceiling.
# share: one number.
# round_units: floor or ceiling.
format_rounded_share <- function(share, round_units) {
  digits <- if (abs(share) < 0.1) 1 else 0
  units_of_one <- 10 ^ (digits + 2)
  # Rounding removes the error of binary fractions, by which floor or ceiling would change a number
  # that is already round.
  units <- round(share * units_of_one, 6)
  format_share(round_units(units) / units_of_one, digits)
}

#' Describe the verdicts of one family of environments
#'
#' @param rows verdicts of the family, one for each workload and environment
#' @return sentence, for example "Docker: of 4 workloads and environments, 1 slower (at worst 93 %
#'   of native's performance) and 3 equivalent."
describe_family_verdicts <- function(rows) {
  counts <- table(rows$outcome)
  # min and max warn if no row is slower or faster; the clause is then not shown.
  worst <- format_share(suppressWarnings(min(rows$ratio[rows$outcome == "slower"])))
  best <- format_share(suppressWarnings(max(rows$ratio[rows$outcome == "faster"])))
  clauses <- c(
    slower = glue("{counts[['slower']]} slower (at worst {worst} of native\u2019s performance)"),
    faster = glue("{counts[['faster']]} faster (at best {best})"),
    equivalent = glue("{counts[['equivalent']]} equivalent"),
    undecided = glue("{counts[['undecided']]} undecided"),
    "no interval" = glue("{counts[['no interval']]} without an interval")
  )
  outcomes <- join_words(clauses[counts[names(clauses)] > 0])
  total <- format_count(nrow(rows), "workload and environment", "workloads and environments")
  glue("{name_family(rows)}: of {total}, {outcomes}.")
}

#' Say how many runs form no ratio, since they were not measured together with native's run
#'
#' @param paper list of read_paper
#' @return sentence, which follows the explanation in paper/report.Rmd; "" if there are no such runs
describe_unpaired_runs <- function(paper) {
  unpaired_runs <- sum(paper$runs$paired %in% "no")
  if (unpaired_runs == 0) return("")
  glue("That concerns {format_count(unpaired_runs, 'run')} here.")
}

#' Say how many sessions a paper has, and for what its intervals hold
#'
#' @param paper list of read_paper
#' @return sentences
describe_session_count <- function(paper) {
  count <- nrow(paper$sessions)
  machines <- n_distinct(paper$sessions$machine)
  if (count == 1) {
    return(glue("These runs are of one session: measure the same again on {MACHINE_SESSIONS - 1} ",
                "other days for intervals that hold for this machine, and on ",
                "{POOLED_MACHINES} machines for some that hold for machines."))
  }
  glue("These runs are of {count} sessions on {format_count(machines, 'machine')}. ",
       "{describe_scope(paper$comparisons)}")
}

#' Say whether robust estimates differ from the ratios of all work over all time
#'
#' @param paper list of read_paper
#' @return sentence, marked as Markdown; "" without laps
describe_robust_estimates <- function(paper) {
  has_laps <- any(lengths(paper$tidy$laps) > 1)
  if (!has_laps || nrow(paper$headlines) == 0) return("")
  difference_count <- sum(paper$headlines$robust_differs == "yes")
  if (difference_count == 0) {
    return("No ratio differs from its robust estimate, the pseudomedian of the ratios of laps.")
  }
  fill_markdown(paste("{difference_count} of {format_count(nrow(paper$headlines), 'ratio')}",
                      "differ from their robust estimate (Table \\@ref(tab:robust)): rare slow",
                      "laps move them."))
}

#' Say in which environments the machine was disturbed more or less often than natively
#'
#' @param rows table `disturbances`, with a row of native; p is NA if nothing can be compared
#' @return sentences; those that name environments are marked as Markdown
describe_disturbances <- function(rows) {
  tests <- filter(rows, !is.na(p))
  native <- filter(rows, environment == NATIVE)
  # The environments share the error rate (Bonferroni).
  differences <- filter(tests, p < ALPHA / nrow(tests))
  if (nrow(differences) == 0) {
    return(paste("No environment\u2019s whole runs were seen to be disturbed in another share than",
                 "native\u2019s."))
  }
  environments <- join_words(with(differences, glue("{label} ({disturbed} of {runs})")))
  fill_markdown(paste("Whole runs of {environments} were disturbed in another share than",
                      "native\u2019s ({native$disturbed} of {native$runs}): an environment may",
                      "itself make the machine do what laps are left out for."))
}

#' Describe the outcomes of one workload, for example "Slower than native: KVM (80 %, 2 of 4)."
#'
#' "2 of 4" means that two of the four series have this outcome.
#'
#' @param rows headline comparisons of the workload
#' @return marked Markdown; NULL if there are no rows
describe_workload_outcomes <- function(rows) {
  if (nrow(rows) == 0) return(NULL)
  headings <- c(slower = "Slower than native", faster = "Faster than native",
                equivalent = "Equivalent to native", undecided = "Undecided",
                "no interval" = "Without an interval")
  series <- n_distinct(rows$series)
  sentences <- rows |>
    group_by(outcome, label = factor(label, unique(label))) |>
    summarise(range = paste(unique(format_share(range(ratio))), collapse = " to "), n = n(),
              .groups = "drop") |>
    mutate(share = if (series > 1) paste0(", ", n, " of ", series) else "",
           text = paste0(label, " (", range, share, ")")) |>
    group_by(outcome) |>
    summarise(heading = headings[as.character(outcome[1])],
              text = fill_markdown("**{heading}:** {join_words(text)}."), .groups = "drop")
  mark_as_markdown(paste(sentences$text, collapse = " "))
}

#' Name the environments in which the configuration leaves a workload out
#'
#' @param paper list of read_paper
#' @param workload the workload's name
#' @return sentence; "" if no environment leaves it out
describe_omitted_environments <- function(paper, workload) {
  # `leave_out` has a list of workloads for each environment, by its name.
  omits_workload <- function(workloads) workload %in% unlist(workloads)
  environments <- names(Filter(omits_workload, paper$plan$leave_out))
  labels <- paper$environments$label[paper$environments$environment %in% environments]
  if (length(labels) == 0) return("")
  glue("The experiment leaves it out in {join_words(labels)}.")
}
