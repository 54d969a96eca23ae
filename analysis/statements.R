# Compares statements of today with this machine: published claims that stand under questions.

# The outcomes of statements, and their colours in the figure; the last two have no value here.
STATEMENT_OUTCOMES <- c(reproduced = "#009E73", contradicted = "#D55E00", undecided = "grey40",
                        "not measured" = "grey70", "not testable" = "grey70")

#' Count the statements that were reproduced, contradicted, left undecided, and not measured
#'
#' @param paper list of read_paper with `statements`
#' @return one sentence
describe_statements <- function(paper) {
  if (!paper$valid) return("No statement is tested at these sizes.")
  counts <- table(factor(paper$statements$outcome, names(STATEMENT_OUTCOMES)))
  publications <- n_distinct(paper$statements$source)
  glue("Of {sum(counts)} statements of {publications} sources, this machine reproduces ",
       "{counts[['reproduced']]}, contradicts {counts[['contradicted']]} and leaves ",
       "{counts[['undecided']]} undecided; not measured: {counts[['not measured']]}; not testable ",
       "here: {counts[['not testable']]}.")
}

#' Draw all statements as multiples of their published values
#'
#' Each line has the tolerance (grey), the interval of this machine and, at 1, the published value
#' (a diamond).  Without a published value the multiples are those of an end of the tolerance.
#'
#' @param statements data frame of join_statements
#' @return ggplot
draw_statements <- function(statements) {
  # The limits of the axis; values beyond them are drawn at its ends.
  limits <- c(1 / 16, 16)
  clip <- function(values) pmin(pmax(values, limits[[1]]), limits[[2]])
  rows <- mutate(statements, base = coalesce(published, tolerance_low, tolerance_high),
                 here = paste(" \u2192", format_claim_value(ratio, unit, low, high)),
                 here = if_else(is.na(ratio), paste0(" (", outcome, ")"), here),
                 label = paste0(id, ": ", format_claim_value(published, unit), here),
                 label = factor(label, rev(label)),
                 outcome = factor(outcome, names(STATEMENT_OUTCOMES)),
                 question = make_text_wrapper(18)(as.character(question)),
                 question = factor(question, unique(question)))
  ggplot(rows, aes(clip(ratio / base), label, colour = outcome)) +
    geom_vline(xintercept = 1, linewidth = 0.3, colour = "grey50") +
    geom_linerange(aes(xmin = clip(coalesce(tolerance_low / base, 0)),
                       xmax = clip(coalesce(tolerance_high / base, Inf))),
                   \(rows) filter(rows, outcome != "not testable"), linewidth = 1.6,
                   colour = "grey85") +
    geom_linerange(aes(xmin = clip(low / base), xmax = clip(high / base)),
                   \(rows) filter(rows, !is.na(low)), linewidth = 0.5) +
    geom_point(size = 1, na.rm = TRUE) +
    geom_point(aes(1), \(rows) filter(rows, !is.na(published)), shape = 5, size = 0.9,
               colour = "black") +
    facet_grid(rows = vars(question), scales = "free_y", space = "free_y") +
    scale_x_log10(breaks = 2^seq(-4, 4, 2), labels = c("1/16", "1/4", "1", "4", "16")) +
    scale_y_discrete(limits = function(labels) intersect(levels(rows$label), labels)) +
    scale_colour_manual(values = STATEMENT_OUTCOMES, breaks = names(STATEMENT_OUTCOMES),
                        guide = guide_legend(nrow = 1)) +
    coord_cartesian(xlim = limits) +
    theme(axis.text.y = element_text(size = if (knitr::is_html_output()) 7 else 4.6),
          strip.text.y = element_text(angle = 0, hjust = 0, vjust = 1, size = 5),
          panel.spacing.y = grid::unit(1.5, "pt")) +
    labs(x = "What was measured here, as a multiple of what was published (logarithmic)", y = NULL)
}

#' Tabulate the statements under one question
#'
#' @param statements rows of add_decision_forecasts with this question
#' @return data frame for format_table, one row for each statement: Statement, Published, Here
#'   [interval], Verdict
tabulate_statements <- function(statements) {
  # A statement that is not undecided has no forecast, but may have a reason why it was not tested.
  reasons <- if_else(statements$forecast == "", statements$because, statements$forecast)
  clauses <- if_else(reasons == "", "", paste0(": ", reasons))
  transmute(statements, Statement = paste0(statement, " (", publication, ") ", remarks),
            Published = format_claim_value(published, unit),
            "Here [interval]" = format_claim_value(ratio, unit, low, high),
            Verdict = paste0(if_else(verdict == "not tested", outcome, verdict), clauses))
}

#' Format the sources of statements as a Markdown list with links
#'
#' @param publications the entry `publications` of published/today.json
#' @return marked Markdown
list_statement_sources <- function(publications) {
  items <- vapply(publications, function(source) {
    glue("- [{source$title}]({source$address}), {source$version} ({source$label})")
  }, "")
  convert_prose(paste(items, collapse = "\n"))
}
