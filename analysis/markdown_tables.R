# Tables of a paper: a function for the data frame of each, and format_table, which formats them as
# Markdown.  pandoc makes LaTeX and HTML of the same Markdown.  Strings in tables are escaped unless
# mark_as_markdown (format.R) has marked them.

#' Format a table with its caption as Markdown, in a chunk of knitr with a label
#'
#' Columns of numbers and shares are aligned at the right.  References in the text name the table
#' tab:LABEL.
#'
#' @param table data frame of strings and numbers as readers see them, with the headings as names;
#'   strings are escaped unless they are marked
#' @param caption Markdown of this project, which is not escaped
#' @param runs whether the caption links to the table of runs, which only web pages have
#' @return marked Markdown
format_table <- function(table, caption, runs = FALSE) {
  # Numbers have a sign and separators, and may be shares with a note after the per cent sign.
  is_numeric <- vapply(table, function(column) {
    all(grepl("^[-+\u2212]?[0-9.,]*(\u00a0%.*)?$", column))
  }, NA)
  if (runs && knitr::is_html_output()) {
    # The heading of sections/runs.Rmd.
    caption <- paste(caption, "Logs and records: [Runs](#runs).")
  }
  # If lines are longer than those of a page, pandoc gives columns the widths of these dashes.
  widths <- choose_column_widths(table)
  dashes <- strrep("-", widths - 1L)
  dashes <- ifelse(is_numeric, paste0(dashes, ":"), paste0(":", dashes))
  columns <- Map(function(column, name, width) {
    formatC(c(escape_text(name), escape_text(column)), width = -width)
  }, table, names(table), widths)
  lines <- do.call(paste, c(unname(columns), sep = "|"))
  lines <- paste0("|", c(lines[1], paste(dashes, collapse = "|"), lines[-1]), "|")
  caption <- paste0("Table: (\\#tab:", knitr::opts_current$get("label"), ")", caption)
  block <- c("", "::: {.table}", "", caption, "", lines, "", ":::", "")
  mark_as_markdown(paste(block, collapse = "\n"))
}

# The number of letters that fit in a line of a table on paper.
LINE_LETTERS <- 116L

#' Choose the widths of a table's columns in letters, with the gaps between columns
#'
#' Each column is as wide as its longest text.  If the columns do not fit in LINE_LETTERS, letters
#' are taken one by one from the column whose narrowing adds the fewest lines to the table.  No
#' column gets narrower than its longest word.
#'
#' @param table data frame
#' @return integer vector, an element for each column
choose_column_widths <- function(table) {
  texts <- lapply(table, as.character)
  letters <- lapply(texts, function(column) pmax(nchar(column, "width"), 1L))
  min_widths <- mapply(function(column, name) {
    max(nchar(unlist(strsplit(c(column, name), " ")), "width"))
  }, texts, names(texts))
  widths <- pmax(vapply(letters, max, 1L, 1L), min_widths)
  count_lines <- function(letters, width) ceiling(letters / width)
  lines <- Map(count_lines, letters, widths)
  # A column has a gap of two letters.  A table whose longest words do not fit stays too wide.
  while (sum(widths + 2L) > LINE_LETTERS && any(widths > min_widths)) {
    candidates <- which(widths > min_widths)
    table_lines <- vapply(candidates, function(i) {
      lines_of_columns <- c(lines[-i], list(count_lines(letters[[i]], widths[i] - 1L)))
      sum(do.call(pmax, lines_of_columns))
    }, 0)
    best <- candidates[order(table_lines, -widths[candidates])[1]]
    widths[best] <- widths[best] - 1L
    lines[[best]] <- count_lines(letters[[best]], widths[best])
  }
  widths + 2L
}

# Drops the columns of a table whose values are all NA or "".
drop_empty_columns <- function(table) {
  select(table, where(function(column) !all(is.na(column) | column == "")))
}

#' List the environments with their layers and numbers of runs
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each environment of the plan, unavailable ones too
tabulate_environments <- function(paper) {
  # Returns the description under a key for each layer of an environment, from the outermost layer
  # on; "" for a layer without it.
  get_descriptions <- function(layers, key) {
    vapply(layers, function(layer) layer[[key]] %or% "", "")
  }
  # Returns the description of the innermost layer; "" for an environment without layers.
  get_innermost_description <- function(layers, key) {
    utils::tail(c("", get_descriptions(layers, key)), 1)
  }
  layers <- lapply(paper$plan$environments, `[[`, "descriptions")
  descriptions <- tibble(
    environment = names(layers),
    isolated = vapply(layers, function(stack) {
      paste(get_descriptions(stack, "title"), collapse = ", in it a ")
    }, ""),
    network = vapply(layers, get_innermost_description, "", "network"),
    data = vapply(layers, get_innermost_description, "", "data")
  )
  runs <- group_by(paper$runs, environment) |>
    summarise(counting = sum(counts == "yes"), all = n(), .groups = "drop")
  descriptions |>
    left_join(paper$environments, by = "environment") |>
    left_join(runs, by = "environment") |>
    mutate(all = coalesce(all, 0L), counting = coalesce(counting, 0L),
           run_counts = if_else(counting < all, paste(counting, "of", all, "count"), paste(all)),
           run_counts = paste0(run_counts, if_else(emulated & !counterpart, " (emulated)", ""))) |>
    transmute(Environment = label, "Isolated by" = isolated, Network = network, Data = data,
              Runs = if_else(available, run_counts, paste("not available:", reason)))
}

# Parameters of workloads that papers do not show, since they are the same in all papers or concern
# only the harness: their names, and a pattern for parts of their names.
HIDDEN_PARAMETERS <- c("corpus", "laps", "systems")
HIDDEN_PARAMETER_NAMES <- "port|sha1|timeout|warm"

# The names of the ways in which runs are taken, by the words that classify_runs (tables.R) writes
# into the column `how` of runs.csv.
WAYS <- c(alone = "alone", laps = "whole", slices = "in slices",
          "slices and laps" = "in slices and whole")

# Describes how the runs of a workload were taken, for example "4 laps; in slices: Docker; whole:
# KVM".
# paper: list of read_paper.
# name: name of the workload.
describe_ways <- function(paper, name) {
  runs <- paper$runs[paper$runs$workload == name, ]
  # What follows a comma in `how` compares the run with native's.
  ways <- WAYS[sub(",.*", "", runs$how)]
  labels <- vapply(split(runs$label, factor(ways, unique(ways))), function(labels) {
    join_words(intersect(paper$environments$label, labels))
  }, "")
  clauses <- names(labels)
  if (length(labels) > 1) clauses <- paste0(names(labels), ": ", labels)
  workload <- paper$plan$workloads[[name]]
  # `cell.laps` names the parameter that holds the number of laps.
  laps <- if (!is.null(workload$cell$laps)) workload$parameters[[workload$cell$laps]]
  if (!is.null(laps)) laps <- format_count(laps, "lap")
  paste(c(laps, clauses), collapse = "; ")
}

#' List the measured workloads with their main parameters and how their runs were taken
#'
#' @param paper list of read_paper
#' @return data frame for format_table
tabulate_workloads <- function(paper) {
  # Formats the value of a parameter: a mapping as "all", and a list of more than three elements as
  # their number.
  format_parameter <- function(value) {
    if (is.null(value)) return("none")
    if (!is.null(names(value))) return("all")
    if (length(value) > 3) return(as.character(length(value)))
    if (is.numeric(value) && length(value) == 1) {
      return(format(value, big.mark = ",", scientific = FALSE))
    }
    paste(unlist(value), collapse = "/")
  }
  rows <- lapply(unique(paper$runs$workload), function(name) {
    workload <- paper$plan$workloads[[name]]
    parameters <- workload$parameters[setdiff(names(workload$parameters), HIDDEN_PARAMETERS)]
    # A parameter of 1, such as one thread, tells a reader nothing.
    parameters <- Filter(function(value) !identical(value, 1L), parameters)
    parameters <- parameters[!grepl(HIDDEN_PARAMETER_NAMES, names(parameters))]
    values <- vapply(parameters, format_parameter, "")
    tibble(Workload = workload$title, Measures = workload$about,
           Parameters = paste(gsub("_", " ", names(parameters)), values, collapse = ", "),
           "How it ran" = describe_ways(paper, name))
  })
  bind_rows(rows)
}

#' List the size rules of the workloads and whether they held
#'
#' @param paper list of read_paper with `sizes` (not NULL)
#' @return data frame for format_table
tabulate_sizes <- function(paper) {
  format_quantity <- function(values) {
    if_else(is.na(values), NO_VALUE, formatC(values, format = "fg", digits = 4, big.mark = ","))
  }
  # A source that is one lower-case word is a key of references.bib.
  source <- paper$sizes$source
  is_key <- grepl("^[a-z0-9]+$", source)
  citation <- mark_as_markdown(if_else(is_key, paste0("[@", source, "]"), escape_text(source)))
  titles <- vapply(paper$plan$workloads, `[[`, "", "title")
  paper$sizes |>
    mutate(title = unname(titles[workload]),
           note = if_else(unchecked == "", " ", paste0(" (not checked here: ", unchecked, ") "))) |>
    transmute(Workload = if_else(duplicated(title), "", title),
              Rule = fill_markdown("{rule}{note}{citation}"),
              "At least" = format_quantity(least), Here = format_quantity(value),
              Holds = case_when(unchecked != "" ~ NO_VALUE, is.na(holds) ~ "not known",
                                holds ~ "yes", TRUE ~ "no\u2020"))
}

#' List the values of the headline series by environment
#'
#' Native has its mean with the standard deviation, like Table I of the original.  Another
#' environment has native's mean times its ratio (add_levels), rounded by the width of its interval
#' (format_number).
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each series and a column for each environment
tabulate_levels <- function(paper) {
  filter(paper$summary, headline == "yes") |>
    mutate(Series = paste0(series, ", ", unit),
           half_width = coalesce((level_high - level_low) / 2, sd),
           native = paste0(format_number(mean, sd), SPACE, "(", format_number(sd, sd), ")"),
           cell = if_else(environment == NATIVE & !is.na(sd), native,
                          format_number(level, half_width))) |>
    tidyr::pivot_wider(id_cols = Series, names_from = label, values_from = cell,
                       values_fill = NO_VALUE)
}

#' List comparisons with native
#'
#' @param rows rows of the table of comparisons, as read_result_table returns it
#' @return data frame for format_table
tabulate_comparisons <- function(rows) {
  transmute(rows, Series = if_else(duplicated(series), "", series), Environment = label,
            Blocks = n, "Of native [95\u00a0%]" = format_share_interval(ratio, low, high),
            "For all verdicts" = if_else(is.na(low_all), "", format_ends(low_all, high_all)),
            Outcome = as.character(outcome),
            "More blocks" = if_else(is.na(more), "", format(more, big.mark = ",", trim = TRUE))) |>
    drop_empty_columns()
}

#' List the verdicts on each workload in each environment at several margins
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each workload whose sizes are valid and each
#'   environment, and a column for each margin
tabulate_margins <- function(paper) {
  decisions <- filter(paper$decisions, !workload %in% paper$invalid)
  # Formats minutes with two significant digits; "" for NA and infinity.
  format_minutes <- function(minutes) {
    text <- format(signif(minutes, 2), big.mark = ",", scientific = FALSE, trim = TRUE)
    if_else(is.finite(minutes), text, "")
  }
  outcomes <- paper$verdicts |>
    mutate(margin = paste0("\u00b1", SPACE, vapply(margin, format_margin, "")),
           outcome = as.character(outcome)) |>
    tidyr::pivot_wider(id_cols = c(workload, environment), names_from = margin,
                       values_from = outcome)
  left_join(decisions, outcomes, by = c("workload", "environment")) |>
    transmute(Workload = if_else(duplicated(title), "", title), Environment = label,
              Blocks = n, "Decided by" = series,
              "Interval" = format_share_interval(ratio, low, high),
              across(starts_with("\u00b1")), Minutes = format_minutes(minutes)) |>
    drop_empty_columns()
}

#' List the parts of the differences from native, as shares of native's time per unit of work
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each headline series and environment in which it
#'   is slower or faster than native and its costs are known; without rows if there are none
tabulate_costs <- function(paper) {
  differences <- filter(paper$headlines, outcome %in% c("slower", "faster"))
  # Formats the sum of one or two parts for each row, for example "+3.1 %"; "" if a part is NA.
  # parts: numeric vector, or matrix with a column for each part.
  format_change <- function(parts) {
    sums <- rowSums(as.matrix(parts))
    text <- sub("-", "\u2212", sprintf("%+.1f\u00a0%%", 100 * sums), fixed = TRUE)
    if_else(is.na(sums), "", text)
  }
  rows <- semi_join(paper$costs, differences, by = c("series", "environment")) |>
    filter(part %in% c("time", names(CPU_PARTS), "rest", "waiting"))
  if (nrow(rows) == 0) return(tibble())
  tidyr::pivot_wider(rows, id_cols = c(series, label), names_from = part, values_from = share) |>
    transmute(Series = if_else(duplicated(series), "", series), Environment = label,
              Time = format_change(time), Programs = format_change(system_user),
              "Their kernel" = format_change(system_kernel),
              Client = format_change(cbind(client_user, client_kernel)),
              Helpers = format_change(cbind(helpers_user, helpers_kernel)),
              Rest = format_change(rest), Waiting = format_change(waiting)) |>
    drop_empty_columns()
}

#' List the ratios whose robust estimate differs from the ratio of all work over all time
#'
#' @param paper list of read_paper
#' @return data frame for format_table; "Without stalls" is the robust estimate; without rows if no
#'   ratio differs
tabulate_robust_estimates <- function(paper) {
  filter(paper$headlines, robust_differs == "yes") |>
    transmute(Series = if_else(duplicated(series), "", series), Environment = label,
              "Work over time" = format_share_interval(ratio, low, high),
              "Without stalls" = format_share_interval(robust, robust_low, robust_high))
}

#' List how many laps were left out in each environment
#'
#' @param paper list of read_paper
#' @return data frame for format_table; without rows if no lap was left out
tabulate_disturbances <- function(paper) {
  if (sum(paper$disturbances$left_out) == 0) return(tibble())
  transmute(paper$disturbances, Environment = label, Laps = laps, "Left out" = left_out,
            "Whole runs" = runs, Disturbed = disturbed, "By the hypervisor" = steal,
            "By other processes" = busy)
}

#' List how often laps stalled
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each series and environment with a stalled lap, in
#'   the environment or natively; without rows if no lap stalled
tabulate_stalls <- function(paper) {
  filter(paper$stalls, share > 0 | reference_share > 0) |>
    transmute(Series = if_else(duplicated(series), "", series), Environment = label, Laps = laps,
              Stalled = format_share(share, 1), Natively = format_share(reference_share, 1),
              "More often" = if_else(p < ALPHA, "yes", ""), p = signif(p, 2)) |>
    drop_empty_columns()
}

#' Count outcomes by family of environments and part of the machine, beside the expected outcome
#'
#' paper/sections/expected.Rmd gives the reasons for the expectations, and has to follow their
#' changes.
#'
#' @param paper list of read_paper; only workloads that publications report on count
#' @return data frame for format_table, with a column for each outcome
tabulate_expected_outcomes <- function(paper) {
  filter(paper$headlines, workload %in% paper$originals) |>
    mutate(Environments = FAMILIES[family],
           computes = question %in% c("processor", "memory"),
           Part = if_else(computes, "processor, memory", "devices and servers"),
           Expected = case_when(family == "containers" & computes ~ "equivalent",
                                family == "machines" & computes ~ "slower at random access",
                                TRUE ~ "slower")) |>
    count(Environments, Part, Expected, outcome) |>
    tidyr::pivot_wider(names_from = outcome, values_from = n, values_fill = 0L,
                       names_sort = TRUE)
}

#' List the published claims that were tested
#'
#' @param claims table of claims
#' @return data frame for format_table, in the order of VERDICTS
tabulate_claims <- function(claims) {
  filter(claims, verdict != "not tested") |>
    arrange(match(verdict, VERDICTS)) |>
    mutate(has_limit = !is.na(tolerance_high) & is.finite(tolerance_high),
           limit = if_else(has_limit, format_share(tolerance_high), "any")) |>
    transmute(Claim = statement, Source = paste0(publication, ", ", place),
              Published = if_else(unit == "ratio", format_share(published), NO_VALUE),
              Tolerated = paste0(format_share(tolerance_low), " to ", limit),
              "Here [interval]" = format_share_interval(ratio, low, high), n,
              "Within the tolerance" = paste0(verdict, if_else(because == "", "",
                                                               paste0(" (", because, ")"))),
              "Against the value" = against_published, "Stands in" = transferred) |>
    drop_empty_columns()
}

# Sentences why claims were not tested, by the codes in claims.csv: the codes that claims.R gives
# make_untestable_part, and the reasons of `untestable` in published/claims.json.
REASONS <- c(statement = "It is not a statement about a measured difference between environments.",
             workload = "The workload was not measured.",
             environment = "An environment that it is about was not measured.",
             emulation = "The machines that it is about were emulated.",
             metric = "The metric or its part was not measured.",
             size = "The workload was measured at a size that answers no question.",
             hardware = "It takes other hardware.",
             "other-product" = "It is about a product that cannot be had here.")

#' Count the claims that were not tested by reason and publication
#'
#' @param claims table of claims
#' @return data frame for format_table, a row for each reason and a column for each publication
tabulate_untested_claims <- function(claims) {
  filter(claims, verdict == "not tested") |>
    count(Publication = publication, reason) |>
    tidyr::pivot_wider(names_from = Publication, values_from = n, values_fill = 0L) |>
    mutate(reason = coalesce(unname(REASONS[reason]), reason)) |>
    rename(Reason = reason)
}

#' List the levels of emulated machines, with their shares of native's
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each series and a column for each environment
tabulate_emulated_levels <- function(paper) {
  mutate(paper$emulated, Series = paste0(series, ", ", unit),
         spread = if_else(is.na(sd), "", paste0(SPACE, "\u00b1", SPACE, format_number(sd, sd))),
         share = if_else(is.na(ratio) | ratio == 1, "",
                         paste0(SPACE, "(", format_share(ratio, 1), ")")),
         cell = paste0(format_number(mean, sd), spread, share)) |>
    tidyr::pivot_wider(id_cols = Series, names_from = label, values_from = cell,
                       values_fill = NO_VALUE)
}

#' List planned runs that are missing
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each workload, environment and reason
tabulate_missing_runs <- function(paper) {
  titles <- vapply(paper$plan$workloads, `[[`, "", "title")
  transmute(paper$missing, Workload = unname(titles[workload]), Environment = label, Missing = n,
            Why = why)
}

# Selects the comparisons of single choices that a paper shows: headline series of workloads that
# the choice can affect, and controls that were called different.
# paper: list of read_paper.
select_shown_choices <- function(paper) {
  filter(paper$choices, headline == "yes", control != "yes" | verdict == "different")
}

#' List the comparisons of environments that differ in one choice
#'
#' @param paper list of read_paper
#' @return data frame for format_table
tabulate_choices <- function(paper) {
  select_shown_choices(paper) |>
    transmute(Choice = if_else(duplicated(choice), "", choice), Series = series,
              "Of its counterpart [95\u00a0%]" = format_share_interval(ratio, low, high),
              Blocks = n, Outcome = as.character(outcome),
              Control = if_else(control == "yes", "control", "")) |>
    drop_empty_columns()
}

# The names of a testbed's facts, by their keys in records: in `observed.host.static`, and in
# `observed.inside`.
TESTBED_FACTS <- c(os = "Operating system", kernel = "Kernel", cpu_model = "Processor",
                   cpus = "Processors", memory_bytes = "Memory",
                   cache_bytes = "Last-level caches together",
                   huge_pages = "Transparent huge pages", clocksource = "Clock source",
                   virtualization = "Virtualisation", governor = "Frequency governor",
                   turbo = "Turbo", microcode = "Microcode")
# The facts that are observed only on the host.
HOST_FACTS <- c("cache_bytes", "governor", "turbo")

#' List what records observed on the host and inside the environments
#'
#' @param records list of records; if their values differ, all are listed
#' @return data frame for format_table: facts of the machine, then the rows of tabulate_engines
tabulate_testbed <- function(records) {
  # Returns the distinct values of a fact, for example "6.1; 6.8"; bytes are rounded to MiB.
  # key: a name of TESTBED_FACTS.
  # get_side: function of a record's `observed` that returns the facts of the host, or those inside
  # the environment.
  join_values <- function(key, get_side) {
    values <- unlist(lapply(records, function(record) {
      value <- get_side(record$observed)[[key]] %or% "not available"
      if (!endsWith(key, "_bytes") || !is.numeric(value)) return(as.character(value))
      paste0(round(value / 2^20), SPACE, "MiB")
    }))
    paste(unique(values), collapse = "; ")
  }
  keys <- names(TESTBED_FACTS)
  inside <- vapply(keys, join_values, "", function(observed) observed$inside)
  inside[HOST_FACTS] <- ""
  facts <- tibble(
    Observed = unname(TESTBED_FACTS),
    "On the host" = vapply(keys, join_values, "", function(observed) observed$host$static),
    "Inside the environments" = inside
  )
  bind_rows(facts, tabulate_engines(lapply(records, `[[`, "system")))
}

# Joins strings by commas, without NULL and "not available", which records have where a host hides a
# fact; "" if nothing is left.
join_facts_present <- function(...) {
  facts <- unlist(list(...))
  paste(facts[facts != "not available"], collapse = ", ")
}

# The rows of tabulate_engines, by their headings: functions of the engine of one system (a record's
# `docker` or `container`, which strata/environments/ writes) that describe a fact of the engine;
# NULL or "" if the engine lacks it.
# `network` is read by its whole name, since `$` would also match Podman's network_backend.  An
# engine that is not Docker has a `program`.
ENGINE_ROWS <- list(
  Docker = function(engine) if (is.null(engine$program)) engine$engine,
  gVisor = function(engine) {
    sandbox <- engine$sandbox
    join_facts_present(sandbox$version, if (!is.null(sandbox)) paste("platform", sandbox$platform))
  },
  "Other containers" = function(engine) {
    if (!is.null(engine$program)) paste(c(engine$program, engine$version), collapse = SPACE)
  },
  "Container programs" = function(engine) {
    if (!is.null(engine$program)) {
      return(join_facts_present(engine$runtime, engine$conmon, engine$network_backend))
    }
    join_facts_present(paste("containerd", engine$containerd), paste("runc", engine$runc))
  },
  "Container storage" = function(engine) {
    join_facts_present(engine$storage_driver, engine$backing_filesystem)
  },
  "Container logs" = function(engine) engine$log_driver,
  "Container control groups" = function(engine) {
    version <- engine$cgroup_version
    join_facts_present(engine$cgroup_driver, if (!is.null(version)) paste("version", version))
  },
  "Users in containers" = function(engine) engine$users,
  "Confined by" = function(engine) engine$security,
  "Published ports" = function(engine) {
    network <- engine[["network"]]
    if (is.null(network)) return(NULL)
    has_proxy <- network$docker_proxy == "runs" && network$ports != "docker-proxy alone"
    join_facts_present(network$ports, if (has_proxy) "docker-proxy beside it",
               if (!is.null(network$mtu)) paste("MTU", network$mtu))
  },
  Firewall = function(engine) {
    network <- engine[["network"]]
    if (!is.null(network)) join_facts_present(network$firewall, network$firewall_version)
  },
  "Firewall rules" = function(engine) engine[["network"]]$rules,
  "IP forwarding" = function(engine) engine[["network"]]$ip_forwarding,
  "Bridges pass the firewall" = function(engine) engine[["network"]]$bridge_nf
)

#' List the engines of containers, their storage and their network
#'
#' @param systems list of records' `system`, with engines on the host or in machines
#' @return data frame for format_table, with those rows of ENGINE_ROWS that are not empty
tabulate_engines <- function(systems) {
  in_machine <- !vapply(systems, function(system) is.null(system$vm), NA)
  engines <- lapply(systems, function(system) system$docker %or% system$container)
  # Returns for each of ENGINE_ROWS the distinct descriptions of some engines, joined by "; ".
  describe_engines <- function(engines) {
    engines <- Filter(Negate(is.null), engines)
    vapply(ENGINE_ROWS, function(describe) {
      values <- unique(unlist(lapply(engines, describe)))
      # The number of firewall rules grows with each port.
      if (is.numeric(values)) values <- paste(unique(range(values)), collapse = "\u2013")
      paste(values[values != ""], collapse = "; ")
    }, "")
  }
  tibble(Observed = names(ENGINE_ROWS), "On the host" = describe_engines(engines[!in_machine]),
         "Inside the environments" = describe_engines(engines[in_machine])) |>
    filter(.data[["On the host"]] != "" | .data[["Inside the environments"]] != "")
}

# Formats distinct strings, in the order in which they first occur, with their counts: "slices (9);
# alone (1)", or only "slices" if all strings are equal.
format_text_counts <- function(texts) {
  counts <- table(factor(texts, unique(texts)))
  if (length(counts) == 1) return(names(counts))
  paste0(names(counts), " (", counts, ")", collapse = "; ")
}

#' List the runs of each workload and environment with links to their raw logs and records
#'
#' A star marks disturbed runs.  The links are relative to paper/, where the page is.
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each workload and environment
tabulate_runs <- function(paper) {
  # Returns links to files in one text.  It is not marked as Markdown: summarise drops the mark, so
  # that the last step sets it.
  format_links <- function(numbers, paths, marks) {
    paste(fill_markdown("[{numbers}{marks}](../{paths})"), collapse = " ")
  }
  labels <- paper$environments$label
  paper$runs |>
    arrange(match(workload, names(paper$plan$workloads)),
            match(environment, paper$environments$environment), repetition) |>
    group_by(Workload = factor(title, unique(title)), Environment = factor(label, labels)) |>
    summarise(Runs = n(), Disturbed = sum(flags != ""), Taken = format_text_counts(how),
              "Raw logs" = format_links(repetition, log, if_else(flags == "", "", "*")),
              Records = format_links(repetition, record, ""), .groups = "drop") |>
    mutate(across(c("Raw logs", "Records"), mark_as_markdown))
}

#' List how the state in which programs start differs from native's
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each difference, with the environments that have
#'   it and the option that declares it; NULL if there are no differences
tabulate_starting_states <- function(paper) {
  rows <- bind_rows(lapply(unname(paper$records), function(record) {
    bind_rows(lapply(record$starting_state$differences, as_tibble)) |>
      mutate(environment = record$environment)
  }))
  if (nrow(rows) == 0) return(NULL)
  labels <- paper$environments$label
  rows |>
    distinct() |>
    left_join(select(paper$environments, environment, label), by = "environment") |>
    group_by(name, native, here, by) |>
    summarise(label = join_words(labels[labels %in% label]), .groups = "drop") |>
    arrange(by, name) |>
    transmute(State = name, Native = native, Environments = label, "In them" = here,
              "Declared by" = by)
}

#' List the options that were passed on to Docker, and their effects inside the containers
#'
#' @param paper list of read_paper
#' @return data frame for format_table, a row for each environment and option; NULL if there are no
#'   options
tabulate_docker_options <- function(paper) {
  rows <- bind_rows(lapply(unname(paper$records), function(record) {
    settings <- bind_rows(lapply(record$system$docker$settings, as_tibble))
    if (nrow(settings) == 0) return(NULL)
    filter(settings, startsWith(name, "--") | name == "options together") |>
      mutate(environment = record$environment)
  }))
  if (nrow(rows) == 0) return(NULL)
  rows <- distinct(rows) |>
    left_join(select(paper$environments, environment, label), by = "environment")
  tibble(Environment = rows$label, Option = rows$requested, "Seen inside" = rows$observed)
}
