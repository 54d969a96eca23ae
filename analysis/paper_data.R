# Gathers the data of a paper: the tables of results, and facts about the run for its text.

# The tables of results of which a paper is made.
PAPER_TABLES <- c("summary", "comparisons", "ratios", "verdicts", "costs", "stalls",
                  "disturbances", "choices", "emulated", "claims", "blocks", "runs", "sessions",
                  "left_out")

# Columns of these tables that hold strings, even if all their values look like numbers.
PAPER_TEXT_COLUMNS <- c("workload", "metric", "question", "environment", "series", "label", "title",
                        "flags", "unit", "why", "direction", "against_published", "because",
                        "transferred", "session", "machine", "holds", "kernel",
                        "docker", "gvisor", "part")

#' Read a table of results that analysis/tables.R wrote
#'
#' @param name one of PAPER_TABLES
#' @param folder path of results
#' @return data frame; the tables comparisons, verdicts and choices get the column `outcome`
read_result_table <- function(name, folder) {
  rows <- read_table(file.path(folder, paste0(name, ".csv")), PAPER_TEXT_COLUMNS)
  if (name %in% c("comparisons", "verdicts", "choices")) rows$outcome <- classify_outcomes(rows)
  rows
}

#' Read the data of a paper
#'
#' paper/report.Rmd and its sections use the entries by their names.  The tables that show series
#' are changed by mark_broken_sizes, except `verdicts` and `claims`.
#'
#' @param folder path of results: plan.json, plan.csv, records and all tables
#' @param root folder of the project, with published data and the constants of emulated hosts
#' @return list of read_results with
#'   the tables of PAPER_TABLES, as read_result_table returns them;
#'   decisions (the verdicts at MARGIN, with `minutes`: the time of the blocks that would decide);
#'   headlines (the headline comparisons);
#'   measured (environments whose values count and are not emulated);
#'   missing (data frame of count_missing_runs);
#'   originals (names of the measured workloads that published claims are about);
#'   publications (titles of these claims' publications, named by their keys);
#'   catalogue (list of read_published);
#'   statements (data frame of join_statements; NULL if the claims are not statements of today);
#'   published (table of read_published_ratios), facts (list of collect_run_facts);
#'   mark (sentence for every page if the host was emulated or the sizes are tiny; else "")
read_paper <- function(folder, root) {
  results <- read_results(folder)
  paper <- results
  paper[PAPER_TABLES] <- lapply(PAPER_TABLES, read_result_table, folder)
  paper$decisions <- filter(paper$verdicts, margin == MARGIN) |> add_minutes_needed(paper)
  paper$headlines <- filter(paper$comparisons, headline == "yes")
  paper$measured <- filter(paper$environments, environment %in% paper$tidy$environment)
  paper$missing <- count_missing_runs(paper)
  tables_with_series <- c("tidy", "summary", "comparisons", "ratios", "choices", "headlines",
                          "decisions", "costs", "blocks")
  paper[tables_with_series] <- lapply(paper[tables_with_series], mark_broken_sizes, paper)
  paper$catalogue <- read_published(folder, root)
  paper$statements <- join_statements(paper$claims, paper$catalogue) |>
    add_decision_forecasts(results, paper$catalogue)
  # Statements of today reproduce no original.
  candidates <- if (is.null(paper$statements)) unique(paper$runs$workload)
  paper[c("originals", "publications")] <- find_original_workloads(paper$catalogue, candidates)
  paper$published <- tibble()
  if (paper$valid && length(paper$originals) > 0) {
    paper$published <- read_published_ratios(file.path(root, "published"), paper$catalogue,
                                             paper$headlines)
  }
  paper$facts <- collect_run_facts(paper)
  hosts <- jsonlite::read_json(file.path(root, "schemas/constants/hosts.json"))
  is_emulated <- any(paper$facts$hosts %in% unlist(hosts$emulated))
  tiny <- "Tiny sizes: a test of the pipeline, which answers no question"
  paper$mark <- paste(c(if (is_emulated) hosts$mark, if (!paper$valid) tiny), collapse = ". ")
  paper
}

# Adds the column `minutes` to decisions: the time of the further blocks that a verdict would take
# (column `more`), each with a run in the environment and one in its reference.  A run is assumed to
# take the median time of its workload's runs in the environment.  `minutes` is NA if `more` is, or
# if an environment has no runs.
# decisions: rows of verdicts.csv.
# paper: list with `runs`, the rows of runs.csv.
add_minutes_needed <- function(decisions, paper) {
  seconds <- tapply(paper$runs$seconds, paste(paper$runs$environment, paper$runs$workload),
                    stats::median)
  get_seconds <- function(environment) {
    as.numeric(seconds[paste(environment, decisions$workload)])
  }
  pair_seconds <- get_seconds(decisions$environment) + get_seconds(decisions$reference)
  mutate(decisions, minutes = more * pair_seconds / 60)
}

# Counts the planned runs that gave no values.
# paper: list of read_paper with `planned`, `runs`, `records`, `environments` and `left_out`.
# Returns a data frame of workload, label (of the environment), why (the reason) and n.  If a run
# has several reasons, the record's comes first, then the parser's, then the environment's.
count_missing_runs <- function(paper) {
  # Returns for each log why the record beside it has no values; "" without such a reason.
  get_record_reasons <- function(logs) {
    vapply(paper$records[logs], function(record) record$cannot$reason %or% "", "")
  }
  anti_join(paper$planned, paper$runs, by = "log") |>
    left_join(select(paper$environments, environment, label, reason), by = "environment") |>
    mutate(record_reason = get_record_reasons(log),
           parser_reason = as.character(paper$left_out$reason)[match(log, paper$left_out$log)],
           why = case_when(record_reason != "" ~ paste("cannot be done there:", record_reason),
                           !is.na(parser_reason) ~ parser_reason, reason != "" ~ reason,
                           TRUE ~ "not measured")) |>
    count(workload, label, why)
}

# Adds a dagger to `series` in the rows whose workload broke a rule of its size, which
# describe_broken_sizes explains.  At the scale `tiny` the rows do not change, since every page has
# paper$mark.
# rows: data frame of workload and series.
# paper: list of read_paper.
mark_broken_sizes <- function(rows, paper) {
  if (!paper$valid) return(rows)
  mutate(rows, series = paste0(series, if_else(workload %in% paper$invalid, "\u2020", "")))
}

#' Find the workloads that publications report on
#'
#' @param catalogue list as in published/claims.json
#' @param workloads names of measured workloads
#' @return list of two elements, which read_paper assigns in this order: the names of the workloads
#'   that a claim is about, and the titles of these claims' publications, named by their keys
find_original_workloads <- function(catalogue, workloads) {
  # A claim names a workload or a group of them.
  list_measured_workloads <- function(claim) {
    intersect(unlist(catalogue$workload_groups[[claim$workload]] %or% claim$workload), workloads)
  }
  workloads_of_claims <- lapply(catalogue$claims, list_measured_workloads)
  claims <- catalogue$claims[lengths(workloads_of_claims) > 0]
  keys <- unique(vapply(claims, `[[`, "", "publication"))
  list(intersect(workloads, unlist(workloads_of_claims)),
       vapply(catalogue$publications[keys], `[[`, "", "title"))
}

#' Join the table of claims with the entries of published/today.json, by their IDs
#'
#' @param claims table of claims
#' @param catalogue list as in published/today.json
#' @return data frame of claims in the order of the file, with `question` and `source` (factors of
#'   texts), `remarks` (on the conditions of the source, and differences here) and `outcome` (a name
#'   of STATEMENT_OUTCOMES); NULL if the file has no questions, as a file of an original's claims
join_statements <- function(claims, catalogue) {
  if (length(catalogue$questions) == 0) return(NULL)
  entries <- catalogue$claims
  get_text <- function(key) vapply(entries, function(claim) claim[[key]] %or% "", "")
  seen <- get_text("seen")
  texts <- tibble(
    id = get_text("id"),
    question = factor(unlist(catalogue$questions)[get_text("question")],
                      unlist(catalogue$questions)),
    source = factor(get_text("publication"), names(catalogue$publications)),
    remarks = trimws(paste(get_text("conditions"), get_text("note"),
                           if_else(seen == "", "", paste0("Read ", seen, ".")))),
    untestable = vapply(entries, function(claim) !is.null(claim$untestable), NA)
  )
  # `remarks` contains the notes, so that the column `note` is dropped.
  inner_join(texts, select(claims, !"note"), by = "id") |>
    mutate(outcome = case_when(
      verdict %in% c("reproduced", "same direction", "other size") ~ "reproduced",
      verdict == "contradicted" ~ verdict, verdict != "not tested" ~ "undecided",
      untestable ~ "not testable", TRUE ~ "not measured"
    ))
}

#' Add to each undecided statement how many further blocks would decide it, and in how much time
#'
#' @param statements data frame of join_statements, or NULL
#' @param results list of read_results
#' @param catalogue list as in published/today.json
#' @return the data frame with `forecast` (a clause; "" for statements that are not undecided); NULL
#'   if `statements` is
add_decision_forecasts <- function(statements, results, catalogue) {
  if (is.null(statements)) return(NULL)
  # A claim has a second row if another product stands in for its own: `transferred` names it.
  forecasts <- forecast_claims(results, catalogue)[c("id", "transferred", "more", "seconds")]
  forecast_block_seconds <- make_block_time_forecaster(results)
  # Describes the forecast for one statement, for example "about 40 more blocks, in 3.4 h, would
  # decide it".  The arguments are columns of its row.
  describe_forecast <- function(n, more, seconds, environment, reference, workload) {
    missing_blocks <- VERDICT_BLOCKS - n
    if (missing_blocks > 0) {
      block_seconds <- forecast_block_seconds(setdiff(c(environment, reference), ""), workload)
      return(glue("{n} of the {VERDICT_BLOCKS} blocks that a verdict takes; the others take ",
                  "{format_time(missing_blocks * block_seconds)}"))
    }
    if (is.na(more)) return("no number of blocks is known to decide it")
    glue("about {format_count(signif(more, 2), 'more block')}, in {format_time(seconds)}, would ",
         "decide it")
  }
  rows <- left_join(statements, forecasts, by = c("id", "transferred"))
  is_undecided <- rows$outcome == "undecided"
  columns <- c("n", "more", "seconds", "environment", "reference", "workload")
  values <- unname(as.list(rows[is_undecided, columns]))
  clauses <- as.character(unlist(do.call(Map, c(list(describe_forecast), values))))
  statements$forecast <- ""
  statements$forecast[is_undecided] <- clauses
  statements
}

#' Read the ratios to native in the original's Table I (ibm-table1.json)
#'
#' @param folder path of the published data
#' @param catalogue list as in published/claims.json
#' @param headlines headline rows of the table of comparisons
#' @return data frame, one row for each headline series and environment that the table has too:
#'   workload, metric, environment, published_ratio (performance as a share of native's), series,
#'   label
read_published_ratios <- function(folder, catalogue, headlines) {
  environments <- catalogue$environments
  # Reads the ratio of one environment in a row of the file.
  # row: an entry of `rows`.
  # name: the environment's name in the file.
  read_ratio <- function(row, name) {
    ratio <- as.numeric(row$values[[name]]$mean) / as.numeric(row$values$native$mean)
    # The first of the environments that an original one is measured as stands for it.
    tibble(workload = row$workload, metric = row$metric,
           environment = unlist(environments[[name]]$measured_as)[1],
           published_ratio = if (row$better == "higher") ratio else 1 / ratio)
  }
  rows <- lapply(jsonlite::read_json(file.path(folder, "ibm-table1.json"))$rows, function(row) {
    lapply(setdiff(names(row$values), NATIVE), read_ratio, row = row)
  })
  inner_join(bind_rows(rows), select(headlines, workload, metric, environment, series, label),
             by = c("workload", "metric", "environment"))
}

#' Collect facts about the run and its machine, which the text of the paper names
#'
#' @param paper list of read_paper with `records`, `plan`, `runs` and `measured`
#' @return list: processor (text), hosts (machines' models), nodes (names), boots (number of boots),
#'   cpus (number), mask (clause about a processor mask, or ""), memory (GiB), guest (whether the
#'   host is a virtual machine), steal (shares of processor time, one for each record), days (the
#'   first and the last, or ""), disturbed (number of disturbed runs), flags (all flags of the
#'   records);
#'   client (where the load comes from: "namespace", or "ssh" for a second machine; "" if no
#'   workload has a client);
#'   own_files (labels of environments that run the host's files instead of the image's);
#'   in_chroot (whether native runs the image's files through a change of root)
collect_run_facts <- function(paper) {
  records <- paper$records
  hosts <- lapply(records, function(record) record$observed$host)
  # Lists the distinct values of a fact of the hosts; records have "not available" where it is
  # hidden.
  list_host_facts <- function(key) {
    setdiff(unlist(lapply(hosts, function(host) host$static[[key]])), "not available")
  }
  steal <- unlist(lapply(hosts, function(host) host$during$steal_share))
  started <- vapply(records, function(record) record$started %or% "", "")
  list_node_facts <- function(key) {
    unique(unlist(lapply(records, function(record) record$node[[key]])))
  }
  machine <- paper$plan$machine
  mask <- ""
  if (!is.null(machine$mask)) mask <- glue(" (the run was held to processors {machine$mask})")
  processors <- list_host_facts("cpu_model")
  if (length(processors) == 0) processors <- "a processor that was not recorded"
  list(
    processor = gsub("\\((R|TM)\\)", "", join_words(processors)),
    hosts = list_host_facts("machine"), nodes = list_node_facts("name"),
    boots = length(list_node_facts("boot")),
    cpus = machine$cpus, mask = mask, memory = round(machine$memory_bytes / 2^30),
    guest = "guest of a hypervisor" %in% list_host_facts("virtualization"),
    # A share that the kernel did not give is "not available", which becomes NA.
    steal = suppressWarnings(as.numeric(steal)),
    days = if (length(started) > 0) unique(substr(range(started), 1, 10)) else "",
    disturbed = sum(paper$runs$flags != ""),
    flags = unlist(lapply(records, function(record) record$interference$flags), recursive = FALSE),
    client = if (any(vapply(paper$plan$workloads, has_client, NA))) paper$plan$client$kind else "",
    own_files = paper$measured$label[vapply(paper$measured$environment, function(name) {
      identical(list_layers(paper$plan, name), "host")
    }, NA)],
    in_chroot = NATIVE %in% paper$measured$environment &&
      identical(list_layers(paper$plan, NATIVE), "chroot")
  )
}

# Lists the names of an environment's layers, from the outermost to the innermost.
# plan: contents of plan.json.
# environment: name of the environment.
list_layers <- function(plan, environment) {
  as.character(unlist(lapply(plan$environments[[environment]]$layers, names)))
}

# Returns whether any step of a workload runs at a client: whether a key `at` in its `cell` has the
# value "client".
# workload: an entry of the plan's `workloads`.
has_client <- function(workload) {
  # Returns whether a list, or any list in it, has the key `at` with the value "client".
  is_at_client <- function(entry) {
    if (!is.list(entry)) return(FALSE)
    identical(entry[["at"]], "client") || any(vapply(entry, is_at_client, NA))
  }
  is_at_client(workload$cell)
}

#' Say whether the plan was sealed before the first run, and whether it was kept
#'
#' @param plan contents of plan.json
#' @return sentence
describe_seal <- function(plan) {
  seal <- plan$sealed
  if (is.null(seal)) return("Its plan was not sealed before the first run.")
  clause <- "was changed since, so that this is another one"
  if (isTRUE(seal$kept)) clause <- "was kept"
  # The date of the seal, and enough of the digest to recognise it.
  glue("Its plan was sealed before the first run ({substr(seal$at, 1, 10)}, SHA-256 ",
       "{substr(seal$sha256, 1, 16)}), and {clause}.")
}

#' Make the title of a paper
#'
#' It is the title of the configuration, if there is one.  Otherwise it consists of the names of the
#' workloads and of the kinds of environments that were measured.
#'
#' @param paper list of read_paper
#' @return string, for example "What Does It Cost to Run STREAM in Containers?"
make_paper_title <- function(paper) {
  if (!is.null(paper$plan$title)) return(paper$plan$title)
  families <- unique(paper$measured$family)
  kinds <- c(if ("machines" %in% families) "Virtual Machines",
             if (any(families %in% c("containers", "sandboxes"))) "Containers")
  bare <- if (NATIVE %in% paper$measured$environment) "Bare Linux"
  if (length(paper$originals) > 0) return(paste0(join_words(c(kinds, bare)), ", Measured Again"))
  workloads <- name_workloads(paper)
  if (length(kinds) == 0) return(glue("{workloads} on {join_words(bare)}"))
  glue("What Does It Cost to Run {workloads} in {join_words(kinds)}?")
}

#' Say what each family of environments costs, for the beginning of the abstract
#'
#' @param paper list of read_paper
#' @return one sentence; if no cost is known, it says so
describe_family_costs <- function(paper) {
  if (nrow(paper$headlines) == 0) {
    return("No run can be compared with native\u2019s, so this paper reports levels.")
  }
  rows <- filter(paper$headlines, !workload %in% paper$invalid)
  if (nrow(rows) == 0) return("The sizes of these runs answer no question and test no claim.")
  running <- omit_start_up(rows)
  families <- split_families(running)
  has_interval <- vapply(families, function(family) !all(is.na(family$low_all)), NA)
  # Only the first share in the sentence says what it is a share of.
  is_first <- seq_along(families) == match(TRUE, has_interval, 0)
  clauses <- mapply(function(family, is_first) {
    pairs <- distinct(family, workload, environment)
    verdicts <- semi_join(paper$decisions, pairs, by = c("workload", "environment"))
    describe_cost_range(family, verdicts, if (is_first) " of native\u2019s performance" else "")
  }, families, is_first)
  sentence <- paste(clauses, collapse = "; ")
  scope <- if (nrow(running) < nrow(rows)) ", start-up apart"
  paste0(toupper(substr(sentence, 1, 1)), substring(sentence, 2), scope, ".")
}

#' Describe the verdicts on each family of environments, for the abstract
#'
#' @param paper list of read_paper
#' @return sentences; NULL if there are no verdicts on workloads of valid sizes
describe_verdicts <- function(paper) {
  verdicts <- filter(paper$decisions, !workload %in% paper$invalid)
  if (nrow(verdicts) == 0) return(NULL)
  paste(vapply(split_families(verdicts), describe_family_verdicts, ""), collapse = " ")
}

# Splits rows by their column `family` into a list of data frames, named by family, in the order of
# FAMILIES.  Families without rows are left out, and so are rows of other families.
split_families <- function(rows) {
  split(rows, factor(rows$family, intersect(names(FAMILIES), rows$family)))
}

#' Suggest what to measure next, for the abstract
#'
#' The first of several conditions that is true decides.
#'
#' @param paper list of read_paper
#' @return sentence, marked if it is Markdown
suggest_next_step <- function(paper) {
  undecided <- filter(paper$decisions, outcome == "undecided", is.finite(more))
  if (!paper$valid) {
    fill_markdown("They check the pipeline; measure at the scale `standard` next.")
  } else if (nrow(paper$headlines) == 0) {
    if (!NATIVE %in% paper$measured$environment) return("Measure native next.")
    if (nrow(paper$measured) > 1) return("Measure whole blocks next.")
    fill_markdown("Add an environment to `config.yaml` next.")
  } else if (any(paper$headlines$outcome == "no interval")) {
    glue("Measure more blocks next: an interval takes at least {INTERVAL_BLOCKS}, and a verdict ",
         "{VERDICT_BLOCKS}.")
  } else if (nrow(undecided) > 0) {
    blocks <- format(ceiling(median(undecided$more)), big.mark = ",")
    minutes <- format(signif(median(undecided$minutes), 2), big.mark = ",", scientific = FALSE)
    glue("Half of what is undecided takes at most about {blocks} more blocks each, and at most ",
         "some {minutes} minutes each.")
  } else if (any(paper$decisions$outcome == "undecided")) {
    "What is undecided takes more sessions; more blocks would not narrow it."
  } else {
    "Nothing remains undecided; repeat the run on another machine next."
  }
}

#' Group the measured workloads by their question, in the order of the plan
#'
#' @param paper list of read_paper
#' @return list of vectors of workloads' names, named by question
group_workloads_by_question <- function(paper) {
  rows <- distinct(paper$metrics, question, workload) |>
    filter(workload %in% paper$tidy$workload)
  split(rows$workload, factor(rows$question, unique(rows$question)))
}

#' Choose the figures of a workload: those that it declares, or else one of the kind "runs"
#'
#' A declared "sweep" with one point becomes a figure of the kind "runs".  A figure "against"
#' another metric with one point is left out.
#'
#' @param paper list of read_paper
#' @param name name of the workload
#' @return list of figures in the form of the plan's `figures`; figures without rows are left out
choose_figures <- function(paper, name) {
  declared <- paper$plan$workloads[[name]]$figures
  if (length(declared) == 0) declared <- list(list(kind = "runs", name = "runs"))
  figures <- lapply(declared, function(figure) {
    points <- get_factor(select_figure_rows(paper$summary, name, figure), figure$along %or% "")
    point_count <- n_distinct(points)
    if (figure$kind == "sweep" && point_count == 1) {
      figure <- utils::modifyList(figure, list(kind = "runs", along = NULL))
    }
    if (figure$kind == "against" && point_count < 2) return(NULL)
    rows <- if (figure$kind == "runs") paper$comparisons else paper$summary
    if (nrow(select_figure_rows(rows, name, figure)) > 0) figure
  })
  Filter(Negate(is.null), figures)
}

#' Select the rows of a table that a figure shows
#'
#' @param table data frame of summary or comparisons, of any workloads
#' @param name name of the workload
#' @param figure entry of the workload's `figures` in the plan, which selects rows by its metrics
#'   and its `where` (is_selected)
#' @return rows of the table
select_figure_rows <- function(table, name, figure) {
  rows <- table[table$workload == name, ]
  selection <- list(metric = c(figure$metrics, figure$metric), where = figure$where)
  rows[is_selected(selection, rows), ]
}
