# Texts, numbers and short sentences as a reader expects them.  All other prose is in the folder
# paper.

library(dplyr)
library(glue)

# A space at which no line breaks, and the sign of a value that does not exist.
SPACE <- "\u00a0"
NO_VALUE <- "\u2014"

#' Format a time with two digits, for example "22 s", "12 min" or "3.4 h"
#'
#' @param seconds number; NA if it is not known
#' @return character
format_time <- function(seconds) {
  if (is.na(seconds)) return("an unknown time")
  unit <- if (seconds < 90) "s" else if (seconds < 5400) "min" else "h"
  number <- signif(seconds / c(s = 1, min = 60, h = 3600)[[unit]], 2)
  paste0(format(number, big.mark = ",", scientific = FALSE), SPACE, unit)
}

#' Make texts legible: without characters that control a device or the direction of writing
#'
#' A run of these characters becomes a space.  The joiners of Arabic and Indic scripts and of emoji
#' stay.
#'
#' @param texts character vector; bytes that are no UTF-8 become replacement characters
#' @param keep characters that stay, for example the line ends of a label in a figure
#' @return character vector
make_legible <- function(texts, keep = "") {
  texts <- iconv(as.character(texts), "UTF-8", "UTF-8", sub = "\ufffd")
  controls <- paste0("(?:(?![\u200c\u200d", keep, "])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}])+")
  gsub(controls, " ", texts, perl = TRUE)
}

# Characters that TeX would set as typographic quotes, with the LaTeX that sets them straight.  Two
# commas would become a low quote.
STRAIGHT_QUOTES <- c("'" = "\\textquotesingle{}", "`" = "\\textasciigrave{}", "," = ",{}")

#' Escape texts of others (labels, names, a tool's output) for Markdown
#'
#' The paper shows them letter by letter, in one line.  Every text from outside passes here, so that
#' none acts as Markdown, LaTeX or a reference of bookdown.
#'
#' @param texts vector; texts that mark_as_markdown has marked stay as they are
#' @return character vector of Markdown, without the mark, so that it must not be escaped again; NA
#'   stays NA
escape_text <- function(texts) {
  if (inherits(texts, "knit_asis")) return(as.character(texts))
  texts <- make_legible(texts)
  # The marks of Markdown: brackets and other signs, the colon of an address, a dot, comma or dash
  # before another, and the signs that begin a block.  Each becomes the number of its character,
  # since to rmarkdown a backslash before a bracket begins mathematics.
  marks <- "[][!#$()*<>@\\\\^_`{|}~&\"']|:(?=\\S)|[-.,](?=[-.,])|(?<!\\S)[-+=%:]"
  escape_mark <- function(mark) {
    number <- sprintf("&#%d;", vapply(mark, utf8ToInt, 1L))
    if (!knitr::is_latex_output()) return(number)
    latex <- STRAIGHT_QUOTES[mark]
    ifelse(is.na(latex), number, paste0("`", latex, "`{=latex}"))
  }
  known <- !is.na(texts)
  at <- gregexpr(marks, texts[known], perl = TRUE)
  regmatches(texts[known], at) <- lapply(regmatches(texts[known], at), escape_mark)
  # A number or letter and a dot at the start would begin a list.
  texts <- sub("^( *\\w+)[.]", "\\1&#46;", texts, perl = TRUE)
  # bookdown looks for "(#", "(ref:" and "@ref(" in the output of pandoc, where no escape is left.
  # An empty span keeps the characters apart.
  gsub("(&#40;|&#64;ref)(?=&#35;|ref(:|&#58;)|&#40;)", "\\1[]{}", texts, perl = TRUE)
}

#' Convert prose of others to Markdown, of which only a few marks count
#'
#' The marks are empty lines between paragraphs, "- " or "1. " before an item of a list, *emphasis*,
#' **strong emphasis** and [links](https://example.org).  All else is shown letter by letter.
#'
#' @param text one text with its lines
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
  # A block whose first line is blank holds nothing.
  is_shown <- !is_blank[is_first]
  texts <- paste0(marks, restore_marks(escape_text(trimws(texts))))[is_shown]
  marks <- marks[is_shown]
  continues_list <- marks != "" & marks == c("", marks)[seq_along(marks)]
  mark_as_markdown(paste0(ifelse(continues_list, "\n", "\n\n"), texts, collapse = ""))
}

# Turns the escaped marks of links and of emphasis in texts of escape_text back into marks.  Text
# within the marks stays escaped.  The numbers in the patterns are those that escape_text writes.
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

#' Fill a Markdown template of glue with values, which are escaped unless they are marked
#'
#' @param template text of this project with {expressions}, never a text of others
#' @param .envir environment of the expressions; by default the caller's
#' @return marked Markdown, an element for each element of the values
fill_markdown <- function(template, .envir = parent.frame()) {
  escape_value <- function(code, envir) {
    escape_text(eval(parse(text = code, keep.source = FALSE), envir))
  }
  mark_as_markdown(glue(template, .envir = .envir, .transformer = escape_value))
}

# Marks texts as Markdown (class knit_asis), so that escape_text and knitr leave them as they are.
# Functions such as paste and if_else drop the mark.
mark_as_markdown <- function(texts) structure(as.character(texts), class = "knit_asis")

# Formats shares in per cent with a number of digits behind the point, for example 0.12 as "12 %";
# NO_VALUE of NA.
format_share <- function(shares, digits = 0) {
  texts <- paste0(formatC(100 * shares, format = "f", digits = digits), SPACE, "%")
  ifelse(is.na(shares), NO_VALUE, texts)
}

# Formats a smallest difference that matters, a share, with all its digits: "2 %", "0.5 %".
format_margin <- function(margin) paste0(format(100 * margin), SPACE, "%")

#' Format numbers with two digits of their uncertainty (Particle Data Group)
#'
#' @param numbers numeric vector
#' @param half_width half-widths of their intervals in the same unit; NA gives three digits, and so
#'   does a half-width below 1/100,000 of the number
#' @return character vector; NO_VALUE of NA
format_number <- function(numbers, half_width = NA) {
  unknown <- is.na(half_width) | half_width < abs(numbers) / 1e5
  # Two digits of `size` are shown: two of a tenth of a number are three of the number.
  size <- ifelse(unknown, abs(numbers) / 10, half_width)
  # At most six digits behind the point.
  digits <- pmin(pmax(0, 1 - floor(log10(size))), 6)
  digits[!is.finite(digits)] <- 0
  texts <- mapply(formatC, numbers, digits = digits,
                  MoreArgs = list(format = "f", big.mark = ","))
  ifelse(is.na(numbers), NO_VALUE, texts)
}

# Formats ratios in per cent without a unit, with one decimal if their interval from low to high is
# narrower than 0.03; NA is an unknown end.
format_in_percent <- function(ratios, low, high) {
  digits <- ifelse(coalesce(high - low, 1) < 0.03, 1, 0)
  mapply(formatC, 100 * ratios, digits = digits, MoreArgs = list(format = "f"))
}

# Formats intervals of ratios in per cent, for example "[93, 97]"; "" where low is NA.
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

# Joins the distinct ones of some words into an enumeration: "a, b and c".
join_words <- function(words) paste(knitr::combine_words(unique(words), oxford_comma = FALSE))

#' List the distinct values of a fact in records as one text; join_words() drops repetitions
#'
#' @param records list of records
#' @param get_fact function that returns a record's fact, or NULL if the record lacks it; for
#'   example one that make_host_getter makes
#' @return text; "not recorded" if no record has the fact
join_distinct_facts <- function(records, get_fact) {
  join_words(as.character(unlist(lapply(records, get_fact)) %or% "not recorded"))
}

#' Join sentences that a paper may have
#'
#' @param ... texts, of which NULL and "" are left out; each is escaped unless it is marked
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
#' @return sentence; NULL if there are none
describe_unshared_laps <- function(paper) {
  # The key `alone` of a record holds the reason.
  is_unshared <- function(record) !is.null(record$alone)
  workloads <- vapply(Filter(is_unshared, paper$records), `[[`, "", "workload")
  titles <- vapply(unique(workloads), function(name) paper$plan$workloads[[name]]$title, "")
  if (length(titles) == 0) return(NULL)
  glue("The memory did not hold all systems of {join_words(titles)}: here one environment took ",
       "all its laps after the other.")
}

#' Tell where the files of all environments come from
#'
#' @param image the plan's `image`
#' @return marked Markdown, which continues "the files of one image, " of report.Rmd
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
  # One by one: format gives all numbers of a vector the same digits.
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
  differing <- count_verdicts("same direction", "other size")
  size_clause <- ""
  if (differing > 0) size_clause <- glue(", {differing} of another size than published")
  untested <- count_verdicts("not tested")
  untested_clause <- ""
  if (untested > 0) untested_clause <- glue("; {untested} could not be tested")
  glue("Of {nrow(paper$claims)} published claims, {count_verdicts('reproduced')} could be ",
       "reproduced, {count_verdicts('contradicted')} contradicted{size_clause} ",
       "and {undecided} not decided{untested_clause}.")
}

#' Say which workloads broke a rule of their size, or that the scale `tiny` breaks all of them
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

#' Count the kinds of disturbances, for example "busy during a run (3 times)"
#'
#' @param flags list of records' flags, each a list of what (for example "busy") and when
#'   ("before" or "during")
#' @return enumeration
describe_flags <- function(flags) {
  kinds <- table(vapply(flags, function(flag) paste(flag$what, flag$when), ""))
  join_words(glue("{names(kinds)} a run ({kinds} times)"))
}

#' Say how many disturbed runs were measured again, and how many were kept
#'
#' @param runs rows of runs.csv, at least one of which was disturbed
#' @return clause
describe_disturbed_runs <- function(runs) {
  kept <- runs$counts[runs$flags != ""] == "yes"
  # A run that does not count was set aside by the plan, which added a block.
  fates <- c("set aside, each with its whole block, and measured again", "kept and marked")
  counts <- c(sum(!kept), sum(kept))
  subjects <- if (all(counts > 0)) paste(counts, ifelse(counts == 1, "was", "were")) else "all were"
  paste(paste(subjects, fates)[counts > 0], collapse = ", ")
}

#' Say within which scope the intervals of a table or figure hold, for its caption
#'
#' @param rows data frame: low, holds, sessions, machines, see compare_sessions
#' @return sentence; "" if no row has an interval
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

# The scopes of intervals, from the narrowest on: the values of `holds` that compare_sessions sets.
SCOPES <- c("session", "sessions", "machine", "machines")

# The outcomes of a comparison, in the order of legends and counts.  outcome.json has a count under
# each of these keys.
OUTCOMES <- c("slower", "faster", "equivalent", "undecided", "no interval")

#' Classify comparisons by one word of OUTCOMES each
#'
#' @param rows data frame: low (NA if there is no interval), verdict, direction ("slower" or
#' "faster")
#' @return factor with the levels of OUTCOMES
classify_outcomes <- function(rows) {
  outcomes <- ifelse(rows$verdict == "different", rows$direction, rows$verdict)
  outcomes[is.na(rows$low)] <- "no interval"
  factor(outcomes, OUTCOMES)
}

# The verdicts on tested claims, decided ones first.
VERDICTS <- c("contradicted", "other size", "same direction", "reproduced", "undecided",
              "tested in part")

# The names of the families of environments, by the families that describe_environment gives.
FAMILIES <- c(containers = "Containers", sandboxes = "Sandboxed containers",
              machines = "Virtual machines")

# Leaves out the rows whose `question` is start-up, unless all rows have the same question: their
# ratios are of another order of size.
omit_start_up <- function(rows) {
  filter(rows, question != "start-up" | n_distinct(question) == 1)
}

# Names the environments of one family: by the label if `rows` have one environment, else by the
# family's name in `families`.  rows: data frame of family and label.
name_family <- function(rows, families = FAMILIES) {
  labels <- unique(rows$label)
  if (length(labels) == 1) labels else families[[rows$family[[1]]]]
}

#' Say how much a family of environments costs: from the lowest to the highest of all its series
#'
#' The lowest true cost of all series is at least the lowest end of their intervals, and the highest
#' is at most the highest end; each of these bounds has the error rate of one interval.
#'
#' @param rows headline comparisons of the family; low_all and high_all are the intervals that
#'   decide
#' @param verdicts rows of `decisions` of the family, one for each workload and environment
#' @param share_of phrase with a space before it that says of what the shares are, or ""
#' @return clause
describe_cost <- function(rows, verdicts, share_of = "") {
  name <- name_family(rows, vapply(FAMILIES, lower_first_letter, ""))
  is_plural <- n_distinct(rows$label) > 1
  known <- !is.na(rows$low_all)
  if (!any(known)) return(glue("what {name} {if (is_plural) 'cost' else 'costs'} is not known"))
  end <- paste0(share_of, if (!all(known)) " where an interval is known")
  # A cost is 1 - ratio, so that the highest ratio gives the lowest cost.
  lowest <- 1 - max(rows$high_all[known])
  highest <- 1 - min(rows$low_all[known])
  if (highest <= 0) {
    verb <- if (is_plural) "are" else "is"
    return(glue("{name} {verb} faster by at least {round_share(-highest, floor)}{end}"))
  }
  upper <- round_share(highest, ceiling)
  lower <- sub(paste0(SPACE, "%"), "", round_share(lowest, floor))
  between <- glue("between {lower} and {upper}")
  if (all(verdicts$outcome %in% c("undecided", "no interval"))) {
    range <- if (lowest > 0) between else glue("nothing or up to {upper}")
    return(glue("{name} may cost {range}{end}"))
  }
  range <- if (lowest > 0) between else glue("at most {upper}")
  glue("{name} {if (is_plural) 'cost' else 'costs'} {range}{end}")
}

# Formats a share in per cent, rounded by `round_units` (floor or ceiling) to a whole per cent, or
# below 10 % to a tenth.
round_share <- function(share, round_units) {
  digits <- if (abs(share) < 0.1) 1 else 0
  units_of_one <- 10 ^ (digits + 2)
  # Without the error of binary fractions, which would move a round number to the next.
  units <- round(share * units_of_one, 6)
  format_share(round_units(units) / units_of_one, digits)
}

#' Describe the verdicts of one family of environments
#'
#' @param rows verdicts of the family, one for each workload and environment
#' @return sentence
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
  compared <- format_count(nrow(rows), "workload and environment", "workloads and environments")
  glue("{name_family(rows)}: of {compared}, {outcomes}.")
}

#' Say how many runs form no ratio, since they were not measured together with native's run
#'
#' @param paper list of read_paper
#' @return sentence; "" if there are none
describe_unpaired_runs <- function(paper) {
  lost <- sum(paper$runs$paired %in% "no")
  if (lost == 0) return("")
  glue("That concerns {format_count(lost, 'run')} here.")
}

#' Say how many sessions a paper rests on, and what they allow
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

#' Say whether robust estimates differ from those of all work over all time
#'
#' @param paper list of read_paper
#' @return sentence, marked as Markdown; "" without laps
describe_robust_estimates <- function(paper) {
  with_laps <- sum(lengths(paper$tidy$laps) > 1)
  if (with_laps == 0 || nrow(paper$headlines) == 0) return("")
  differing <- sum(paper$headlines$robust_differs == "yes")
  if (differing == 0) {
    return("No ratio differs from its robust estimate, the pseudomedian of the ratios of laps.")
  }
  fill_markdown(paste("{differing} of {format_count(nrow(paper$headlines), 'ratio')}",
                      "differ from their robust estimate (Table \\@ref(tab:robust)): rare slow",
                      "laps move them."))
}

#' Say in which environments the machine was disturbed more or less often than natively
#'
#' @param rows table `disturbances`, with a row of native; p is NA if nothing can be compared
#' @return sentences; those that name environments are marked as Markdown
describe_disturbances <- function(rows) {
  compared <- filter(rows, !is.na(p))
  native <- filter(rows, environment == NATIVE)
  # The environments share the error rate (Bonferroni).
  differing <- filter(compared, p < ALPHA / nrow(compared))
  if (nrow(differing) == 0) {
    return(paste("No environment\u2019s whole runs were seen to be disturbed in another share than",
                 "native\u2019s."))
  }
  environments <- join_words(with(differing, glue("{label} ({disturbed} of {runs})")))
  fill_markdown(paste("Whole runs of {environments} were disturbed in another share than",
                      "native\u2019s ({native$disturbed} of {native$runs}): an environment may",
                      "itself make the machine do what laps are left out for."))
}

#' Describe the outcomes of one workload, for example "Slower than native: KVM (80 %, 2 of 4)."
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

#' List the environments where the configuration leaves a workload out
#'
#' @param paper list of read_paper
#' @param workload its name
#' @return sentence; "" if no environment leaves it out
describe_omitting_environments <- function(paper, workload) {
  without <- Filter(function(workloads) workload %in% unlist(workloads), paper$plan$leave_out)
  labels <- paper$environments$label[paper$environments$environment %in% names(without)]
  if (length(labels) == 0) return("")
  glue("The experiment leaves it out in {join_words(labels)}.")
}
