# The figures of a workload, each by its kind.

#' Draws and writes a figure of a workload, of the sets that count
#'
#' @param summary,tidy,plan as from `read_summary`, `read_tidy` and `read_plan`
#' @param root folder of the project, for what was published
#' @param out path without extension
#' @param figure its declaration, as from `figures_of`
#' @section Errors: summary and tidy table are not of the same runs
draw_workload <- function(summary, tidy, plan, root, out, figure = FIGURES$undeclared) {
  tidy <- counted_rows(tidy)
  count <- function(table) sort(paste(table$environment, table$metric, table$factors))
  if (!identical(unique(count(tidy)), count(summary)) || sum(summary$n) != nrow(tidy)) {
    stop("the summary and the tidy table are not of the same runs", call. = FALSE)
  }
  published <- read_published_ratios(root)
  summary <- summary[drawn_in(figure, summary), ]
  if (nrow(summary) == 0) {
    columns <- if (figure$kind == "runs") FIGURE_COLUMNS else CURVE_COLUMNS
    text <- if (nrow(tidy) == 0) "Nothing was measured." else "Nothing of this was measured."
    return(write_figure(empty_figure(text), empty_table(columns), out, c(COLUMN_WIDTH, 0.6)))
  }
  switch(figure$kind,
         runs = draw_runs(summary, tidy[drawn_in(figure, tidy), ], plan, published, figure, out),
         sweep = draw_sweep(summary, plan, published, figure, out),
         against = draw_against(summary, plan, published, figure, out),
         cdf = draw_cdf(summary, plan, published, figure, out),
         stop(figure$kind, " is no kind of figure", call. = FALSE))
}
