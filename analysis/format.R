# Numbers as a reader expects them, and the few sentences that are made of them.  All
# other text stands in the folder paper.

library(dplyr)
library(glue)

SPACE <- "\u00a0"

#' Make texts legible: without characters that control a device or the direction of writing
#'
#' Each run of them becomes a space.  The joiners of Arabic and Indic scripts and of emoji stay.
#'
#' @param texts character vector; bytes that are no UTF-8 become replacement characters
#' @param keep characters that stay, such as the line ends of a label in a figure
#' @return character vector
make_legible <- function(texts, keep = "") {
  texts <- iconv(as.character(texts), "UTF-8", "UTF-8", sub = "\ufffd")
  controls <- paste0("(?:(?![\u200c\u200d", keep, "])[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}])+")
  gsub(controls, " ", texts, perl = TRUE)
}

# Characters that TeX sets as typographic quotes, as the LaTeX that sets them as they are.
STRAIGHT_QUOTES <- c("'" = "\\textquotesingle{}", "`" = "\\textasciigrave{}", "," = ",{}")

#' Text of others as Markdown that shows it letter by letter, in one line: labels, names, a tool's words
#'
#' @param x texts; what is marked as Markdown stays as it is
plain <- function(x) {
  if (inherits(x, "knit_asis")) return(as.character(x))
  x <- make_legible(x)
  # What marks anywhere, an address, quotes, dashes, dots and commas of several, and what begins a
  # block; as numbers, since to rmarkdown a backslash before a bracket begins mathematics.
  marks <- "[][!#$()*<>@\\\\^_`{|}~&\"']|:(?=\\S)|[-.,](?=[-.,])|(?<!\\S)[-+=%:]"
  escape <- function(mark) {
    number <- sprintf("&#%d;", vapply(mark, utf8ToInt, 1L))
    if (!knitr::is_latex_output()) return(number)
    latex <- STRAIGHT_QUOTES[mark]
    ifelse(is.na(latex), number, paste0("`", latex, "`{=latex}"))
  }
  known <- !is.na(x)
  at <- gregexpr(marks, x[known], perl = TRUE)
  regmatches(x[known], at) <- lapply(regmatches(x[known], at), escape)
  x <- sub("^( *\\w+)[.]", "\\1&#46;", x, perl = TRUE)
  # bookdown looks for its labels and references in what pandoc made.
  gsub("(&#40;|&#64;ref)(?=&#35;|ref(:|&#58;)|&#40;)", "\\1[]{}", x, perl = TRUE)
}

#' Markdown of ours: a template of glue, in which every value is plain unless it is marked itself
markdown <- function(template, .envir = parent.frame()) {
  shown <- function(code, envir) plain(eval(parse(text = code, keep.source = FALSE), envir))
  as_markdown(glue(template, .envir = .envir, .transformer = shown))
}

# Marks texts as Markdown.
as_markdown <- function(texts) structure(as.character(texts), class = "knit_asis")

percent <- function(x, digits = 0) {
  ifelse(is.na(x), "\u2014", paste0(formatC(100 * x, format = "f", digits = digits), SPACE, "%"))
}

#' The smallest difference that matters, with the digits that it was given with
margin_of <- function(margin) paste0(format(100 * margin), SPACE, "%")

#' A number with as many digits as its uncertainty deserves: two of the half-width (Particle Data Group)
#'
#' @param x numbers
#' @param half half-widths in the same unit; NA gives three digits
number <- function(x, half = NA) {
  size <- ifelse(is.na(half) | half < abs(x) / 1e5, abs(x) / 10, half)
  places <- pmin(pmax(0, 1 - floor(log10(size))), 6)
  places[!is.finite(places)] <- 0
  ifelse(is.na(x), "\u2014", mapply(formatC, x, digits = places,
                                    MoreArgs = list(format = "f", big.mark = ",")))
}

#' "95 % [93, 97]", with a decimal where the interval is narrow
share_interval <- function(ratio, low, high) {
  digits <- ifelse(coalesce(high - low, 1) < 0.03, 1, 0)
  share <- function(x) mapply(formatC, 100 * x, digits = digits, MoreArgs = list(format = "f"))
  interval <- ifelse(is.na(low), "", paste0(" [", share(low), ", ", share(high), "]"))
  ifelse(is.na(ratio), "\u2014", paste0(share(ratio), SPACE, "%", interval))
}

listed <- function(x) paste(knitr::combine_words(unique(x), oxford_comma = FALSE))

count_of <- function(n, what, many = paste0(what, "s")) {
  paste0(format(n, big.mark = ","), SPACE, if (n == 1) what else many)
}

in_sentence <- function(x) paste0(tolower(substr(x, 1, 1)), substr(x, 2, nchar(x)))

#' Which workloads took their laps alone, though they would take turns, as a sentence
alone_sentence <- function(paper) {
  of <- unlist(lapply(paper$records, function(one) if (!is.null(one$alone)) one$workload))
  titles <- vapply(unique(of), function(name) paper$plan$workloads[[name]]$title, "")
  if (length(titles) > 0) {
    glue("The memory did not hold all systems of {listed(titles)}: these took their laps one",
         " environment after the other.")
  }
}

#' What became of the runs during or before which something else used the machine, as a part of a sentence
#'
#' @param runs rows of runs.csv, at least one of which was disturbed
fate_of_disturbed <- function(runs) {
  counts <- runs$counts[runs$flags != ""] == "yes"
  fates <- c("set aside, each with its whole block, and measured again", "kept and marked")
  many <- c(sum(!counts), sum(counts))
  subjects <- if (all(many > 0)) paste(many, ifelse(many == 1, "was", "were")) else "all were"
  paste(paste(subjects, fates)[many > 0], collapse = ", ")
}

#' The outcome of a comparison in one word; what has no interval has none
outcome_of <- function(rows) {
  ifelse(is.na(rows$low), "no interval", ifelse(rows$verdict == "different", rows$direction, rows$verdict)) |>
    factor(OUTCOMES)
}
OUTCOMES <- c("slower", "faster", "equivalent", "undecided", "no interval")

VERDICTS <- c("contradicted", "reproduced", "undecided", "tested in part")

FAMILIES <- c(containers = "Containers", sandboxes = "Sandboxed containers", machines = "Virtual machines")

#' What was found in a family of environments, as one sentence
family_finding <- function(rows) {
  counts <- table(rows$outcome)
  said <- c(
    if (counts[["slower"]] > 0) {
      glue("{counts[['slower']]} slower (at worst {percent(min(rows$ratio[rows$outcome == 'slower']))} of ",
           "native\u2019s performance)")
    },
    if (counts[["faster"]] > 0) {
      glue("{counts[['faster']]} faster (at best {percent(max(rows$ratio[rows$outcome == 'faster']))})")
    },
    if (counts[["equivalent"]] > 0) glue("{counts[['equivalent']]} equivalent"),
    if (counts[["undecided"]] > 0) glue("{counts[['undecided']]} undecided"),
    if (counts[["no interval"]] > 0) glue("{counts[['no interval']]} without an interval")
  )
  limit <- suppressWarnings(min(rows$low, na.rm = TRUE))
  bounded <- counts[["slower"]] == 0 && is.finite(limit) && limit < 1
  bound <- if (bounded) glue("; no interval allows a loss above {percent(1 - limit, 1)}") else ""
  compared <- count_of(nrow(rows), "comparison")
  family <- FAMILIES[[rows$family[[1]]]]
  alone <- if (n_distinct(rows$label) == 1 && rows$label[[1]] != family) glue(" ({rows$label[[1]]})") else ""
  glue("{family}{alone}: of {compared} with native, {listed(said)}{bound}.")
}

#' How the environments fare in one workload: "Slower than native: KVM (80 %, 2 of 4 series)."
workload_sentences <- function(rows) {
  heads <- c(slower = "Slower than native", faster = "Faster than native",
             equivalent = "Equivalent to native", undecided = "Undecided",
             "no interval" = "Without an interval")
  series <- n_distinct(rows$series)
  rows |>
    group_by(outcome, label = factor(label, unique(label))) |>
    summarise(range = paste(unique(percent(range(ratio))), collapse = " to "), n = n(), .groups = "drop") |>
    mutate(text = glue("{label} ({range}{if (series > 1) glue(', {n} of {series}') else ''})",
                       .envir = environment()) |> unlist()) |>
    group_by(outcome) |>
    summarise(text = markdown("**{heads[as.character(outcome[1])]}:** {listed(text)}."), .groups = "drop") |>
    pull(text) |>
    paste(collapse = " ") |>
    as_markdown()
}

#' Which environments the page of the experiment leaves a workload out of, as a sentence; nothing where none
left_out <- function(paper, workload) {
  of <- Filter(function(loads) workload %in% unlist(loads), paper$plan$leave_out)
  labels <- paper$environments$label[paper$environments$environment %in% names(of)]
  if (length(labels) > 0) glue("The experiment leaves it out in {listed(labels)}.") else ""
}
