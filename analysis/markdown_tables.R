# Tables: a data frame for each, and one function that sets it.  pandoc makes LaTeX and HTML of the same
# Markdown.  Texts in them are plain (format.R) unless they are marked as Markdown.

#' Set a table with its caption
#'
#' @param data data frame of texts and numbers, as they are to be read
#' @param caption Markdown
#' @param runs whether the page's table of runs stands behind it
#' @return Markdown, for a chunk with a label
as_table <- function(data, caption, runs = FALSE) {
  numeric <- vapply(data, function(x) all(grepl("^[-\u2212]?[0-9.,]*(\u00a0%.*)?$", x)), NA)
  if (runs && knitr::is_html_output()) caption <- paste(caption, "Logs and records: [Runs](#runs).")
  # Where lines are longer than a page's, pandoc makes columns as wide as these dashes say.
  longest <- column_widths(data)
  dashes <- ifelse(numeric, paste0(strrep("-", longest - 1L), ":"), paste0(":", strrep("-", longest - 1L)))
  cells <- Map(function(x, name, wide) formatC(c(plain(name), plain(x)), width = -wide), data, names(data),
               longest)
  lines <- do.call(paste, c(unname(cells), sep = "|"))
  table <- paste0("|", c(lines[1], paste(dashes, collapse = "|"), lines[-1]), "|")
  caption <- paste0("Table: (\\#tab:", knitr::opts_current$get("label"), ")", caption)
  as_markdown(paste(c("", "::: {.table}", "", caption, "", table, "", ":::", ""), collapse = "\n"))
}

# Letters that columns get, with the gap beside them: what is in them, and where that is more than a line
# holds, less of those for which this makes the fewest lines, as far as their longest word allows.
column_widths <- function(data, line = 116L) {
  data <- lapply(data, as.character)
  letters <- lapply(data, function(x) pmax(nchar(x, "width"), 1L))
  least <- mapply(function(x, name) max(nchar(unlist(strsplit(c(x, name), " ")), "width")), data, names(data))
  wide <- pmax(vapply(letters, max, 1L, 1L), least)
  lines <- Map(`/`, letters, wide) |> lapply(ceiling)
  while (sum(wide + 2L) > line && any(wide > least)) {
    at <- which(wide > least)
    cost <- vapply(at, function(i) {
      sum(do.call(pmax, c(lines[-i], list(ceiling(letters[[i]] / (wide[i] - 1L))))))
    }, 0)
    best <- at[order(cost, -wide[at])[1]]
    wide[best] <- wide[best] - 1L
    lines[[best]] <- ceiling(letters[[best]] / wide[best])
  }
  wide + 2L
}

environments_table <- function(paper) {
  runs <- group_by(paper$runs, environment) |>
    summarise(counting = sum(counts == "yes"), Runs = n(), .groups = "drop")
  what <- function(entry, key) vapply(entry, function(one) one[[key]] %or% "", "")
  entries <- lapply(paper$plan$environments, `[[`, "told")
  tibble(environment = names(entries), isolated = vapply(entries,
    function(e) paste(what(e, "title"), collapse = ", in it a "), ""),
         network = vapply(entries, function(e) tail(c("", what(e, "network")), 1), ""),
         data = vapply(entries, function(e) tail(c("", what(e, "data")), 1), "")) |>
    left_join(paper$environments, by = "environment") |>
    left_join(runs, by = "environment") |>
    transmute(Environment = label, "Isolated by" = isolated, Network = coalesce(network, ""), Data = data,
              Runs = if_else(available,
                             paste0(if_else(counting < Runs, paste0(counting, " of "), "", ""),
                                    coalesce(Runs, 0L), if_else(counting < Runs, " count", "", ""),
                                    if_else(emulated & !beside, " (emulated)", "")),
                             paste("not available:", reason)))
}

workloads_table <- function(paper) {
  words <- function(x) {
    if (is.null(x)) return("none")
    if (!is.null(names(x))) return("all")
    if (length(x) > 3) return(as.character(length(x)))
    if (is.numeric(x) && length(x) == 1) return(format(x, big.mark = ",", scientific = FALSE))
    paste(unlist(x), collapse = "/")
  }
  rows <- lapply(paper$plan$workloads[unique(paper$runs$workload)], function(one) {
    shown <- Filter(function(x) !identical(x, 1L),
                    one$parameters[setdiff(names(one$parameters),
                                           c("corpus", "corpus_sha1", "laps", "systems"))])
    # Ports, sums and times of waiting are for the record.
    shown <- shown[!grepl("port|sha1|timeout|warm", names(shown))]
    tibble(Workload = one$title, Measures = one$about,
           Parameters = paste(gsub("_", " ", names(shown)), vapply(shown, words, ""), collapse = ", "))
  })
  bind_rows(rows)
}

#' The size rules of the workloads, what they ask for, what it was here, and whether they hold
sizes_table <- function(paper) {
  quantity <- function(x) if_else(is.na(x), "\u2014", formatC(x, format = "fg", digits = 4, big.mark = ","))
  source <- paper$sizes$source
  cited <- as_markdown(if_else(grepl("^[a-z0-9]+$", source), paste0("[@", source, "]"), plain(source)))
  titles <- vapply(paper$plan$workloads, function(one) one$title, "")
  mutate(paper$sizes, title = unname(titles[workload]),
         unchecked = if_else(told == "", " ", paste0(" (not checked here: ", told, ") "))) |>
    transmute(Workload = if_else(duplicated(title), "", title),
              Rule = markdown("{rule}{unchecked}{cited}"),
              "At least" = quantity(least), Here = quantity(value),
              Holds = case_when(told != "" ~ "\u2014", is.na(holds) ~ "not known", holds ~ "yes",
                                TRUE ~ "no\u2020"))
}

#' Levels by environment: of native mean and standard deviation, as Table I of the original has them; of the
#' others native's level times the ratio, and what stands behind it
levels_table <- function(paper) {
  filter(paper$summary, headline == "yes") |>
    mutate(series = paste0(series, ", ", unit), half = coalesce((level_high - level_low) / 2, sd),
           cell = if_else(environment == NATIVE & !is.na(sd),
                          paste0(number(mean, sd), SPACE, "(", number(sd, sd), ")"), number(level, half))) |>
    tidyr::pivot_wider(id_cols = series, names_from = label, values_from = cell, values_fill = "\u2014") |>
    rename(Series = series)
}

comparisons_table <- function(rows) {
  transmute(rows, Series = if_else(duplicated(series), "", series), Environment = label, Blocks = n,
            "Of native [95\u00a0%]" = share_interval(ratio, low, high),
            p = if_else(is.na(p_adjusted), "", format.pval(p_adjusted, digits = 2, eps = 0.001)),
            Outcome = as.character(outcome),
            "More blocks" = if_else(is.na(more), "", format(more, big.mark = ",", trim = TRUE)),
            "Slowest tenth" = if_else(is.na(slow), "", percent(slow))) |>
    select(where(function(x) !all(x == "")))
}

#' How many comparisons came out how, by family and part of the machine, beside what is expected
expected_table <- function(told) {
  told |>
    mutate(Environments = FAMILIES[family],
           Part = if_else(question %in% c("processor", "memory"), "processor, memory", "devices and servers"),
           Expected = case_when(family == "containers" & Part == "processor, memory" ~ "equivalent",
                                family == "machines" &
                                  Part == "processor, memory" ~ "slower at random access",
                                TRUE ~ "slower")) |>
    count(Environments, Part, Expected, outcome) |>
    tidyr::pivot_wider(names_from = outcome, values_from = n, values_fill = 0L, names_sort = TRUE)
}

claims_table <- function(claims) {
  filter(claims, verdict != "not tested") |>
    arrange(match(verdict, VERDICTS)) |>
    transmute(Claim = statement, Source = paste0(publication, ", ", place),
              Published = if_else(unit == "ratio", percent(published), "\u2014"),
              Tolerated = paste0(percent(tolerance_low), " to ",
                                 if_else(is.na(tolerance_high) | is.infinite(tolerance_high), "any",
                                         percent(tolerance_high))),
              "Here [interval]" = share_interval(ratio, low, high), n,
              "Within the tolerance" = paste0(verdict, if_else(because == "", "",
                paste0(" (", because, ")"))),
              "Against the value" = against_published, "Stands in" = transferred)|>
    select(where(function(x) !all(is.na(x) | x == "")))
}

# Why claims were not tested, by the codes of claims.csv.
REASONS <- c(statement = "It is no statement about a measured difference between environments.",
             workload = "The workload was not measured.",
             environment = "An environment that it is about was not measured.",
             emulation = "The machines that it is about were emulated.",
             metric = "The metric or its part was not measured.",
             size = "The workload was measured at a size that answers no question.",
             hardware = "It takes other hardware.",
             "other-product" = "It is about a product that cannot be had here.")

untested_table <- function(claims) {
  filter(claims, verdict == "not tested") |>
    count(Publication = publication, reason) |>
    tidyr::pivot_wider(names_from = Publication, values_from = n, values_fill = 0L) |>
    mutate(reason = coalesce(unname(REASONS[reason]), reason)) |>
    rename(Reason = reason)
}

#' Emulated machines and what stands beside them: levels (± standard deviation) and their shares of native's
emulated_table_shown <- function(paper) {
  mutate(paper$emulated, Series = paste0(series, ", ", unit),
         spread = if_else(is.na(sd), "", paste0(SPACE, "\u00b1", SPACE, number(sd, sd))),
         cell = paste0(number(mean, sd), spread,
                       if_else(is.na(ratio) | ratio == 1, "", paste0(SPACE, "(", percent(ratio, 1), ")")))) |>
    tidyr::pivot_wider(id_cols = Series, names_from = label, values_from = cell, values_fill = "\u2014")
}

missing_table <- function(paper) {
  transmute(paper$missing, Workload = vapply(workload, function(w) paper$plan$workloads[[w]]$title, ""),
            Environment = label, Missing = n, Why = why)
}

#' Choices that the workload may notice, and controls that were called different
choices_table <- function(paper) {
  shown_choices(paper) |>
    transmute(Choice = if_else(duplicated(choice), "", choice), Series = series,
              "Of its counterpart [95\u00a0%]" = share_interval(ratio, low, high), Blocks = n,
              Outcome = as.character(outcome), Control = if_else(control == "yes", "control", "")) |>
    select(where(function(x) !all(x == "")))
}

shown_choices <- function(paper) {
  filter(paper$choices, headline == "yes", control != "yes" | verdict == "different")
}

#' What records saw of the host and from inside the environments; several values where runs differ
testbed_table <- function(records) {
  facts <- c(os = "Operating system", kernel = "Kernel", cpu_model = "Processor", cpus = "Processors",
             memory_bytes = "Memory",
             cache_bytes = "Last-level caches together", huge_pages = "Transparent huge pages",
             clocksource = "Clock source",
             virtualization = "Virtualisation", governor = "Frequency governor", turbo = "Turbo",
             microcode = "Microcode")
  seen <- function(key, of) {
    values <- unlist(lapply(records, function(one) {
      x <- of(one$observed)[[key]] %or% "not available"
      if (endsWith(key, "_bytes") && is.numeric(x)) paste0(round(x / 2^20), SPACE, "MiB") else as.character(x)
    }))
    paste(unique(values), collapse = "; ")
  }
  # Inside nobody looks for these.
  inside <- setdiff(names(facts), c("cache_bytes", "governor", "turbo"))
  bind_rows(
    tibble(Observed = unname(facts),
           "On the host" = vapply(names(facts), seen, "", of = function(x) x$host$static),
           "Inside the environments" = if_else(names(facts) %in% inside,
             vapply(names(facts), seen, "", of = function(x) x$inside), "")),
    engines_table(lapply(records, function(one) one$system)))
}

#' What makes containers, keeps their files and leads to their ports, on the host and in machines
engines_table <- function(systems) {
  in_machine <- !vapply(systems, function(one) is.null(one$vm), NA)
  engines <- lapply(systems, function(one) one$docker %or% one$container)
  words <- function(...) {
    parts <- unlist(list(...))
    paste(parts[parts != "not available"], collapse = ", ")
  }
  # By its whole name: Podman has a network_backend too.
  of_network <- function(make) function(x) if (!is.null(x[["network"]])) make(x[["network"]])
  docker <- function(x) is.null(x$program)
  rows <- list(
    Docker = function(x) if (docker(x)) x$engine,
    gVisor = function(x) {
      words(x$sandbox$version, if (!is.null(x$sandbox)) paste("platform", x$sandbox$platform))
    },
    "Other containers" = function(x) if (!docker(x)) paste(c(x$program, x$version), collapse = SPACE),
    "Container programs" = function(x) {
      if (docker(x)) words(paste("containerd", x$containerd), paste("runc", x$runc))
      else words(x$runtime, x$conmon, x$network_backend)
    },
    "Container storage" = function(x) words(x$storage_driver, x$backing_filesystem),
    "Container logs" = function(x) x$log_driver,
    "Container control groups" = function(x) {
      words(x$cgroup_driver, if (!is.null(x$cgroup_version)) paste("version", x$cgroup_version))
    },
    "Users in containers" = function(x) x$users,
    "Confined by" = function(x) x$security,
    "Published ports" = of_network(function(x) {
      beside <- x$docker_proxy == "runs" && x$ports != "docker-proxy alone"
      words(x$ports, if (beside) "docker-proxy beside it", if (!is.null(x$mtu)) paste("MTU", x$mtu))
    }),
    Firewall = of_network(function(x) words(x$firewall, x$firewall_version)),
    "Firewall rules" = of_network(function(x) x$rules),
    "IP forwarding" = of_network(function(x) x$ip_forwarding),
    "Bridges pass the firewall" = of_network(function(x) x$bridge_nf))
  column <- function(own) {
    vapply(rows, function(row) {
      found <- unique(unlist(lapply(Filter(Negate(is.null), engines[own]), row)))
      # Each port adds some.
      if (is.numeric(found)) found <- paste(unique(range(found)), collapse = "\u2013")
      paste(found[found != ""], collapse = "; ")
    }, "")
  }
  tibble(Observed = names(rows), "On the host" = unname(column(!in_machine)),
         "Inside the environments" = unname(column(in_machine))) |>
    filter(.data[["On the host"]] != "" | .data[["Inside the environments"]] != "")
}

# "slices", or "slices (9); alone (1)" where they are not all alike.
counted <- function(texts) {
  counts <- table(factor(texts, unique(texts)))
  if (length(counts) == 1) names(counts) else paste0(names(counts), " (", counts, ")", collapse = "; ")
}

#' A row for each workload and environment, with links to the raw logs and records of its runs
runs_table <- function(paper) {
  link <- function(n, path, flags) {
    paste(markdown("[{n}{if_else(flags == '', '', '*')}](../{path})"), collapse = " ")
  }
  paper$runs |>
    arrange(match(workload, names(paper$plan$workloads)), match(environment, paper$environments$environment),
            repetition) |>
    group_by(Workload = factor(title, unique(title)), Environment = factor(label,
      paper$environments$label)) |>
    summarise(Runs = n(), Disturbed = sum(flags != ""), Taken = counted(how),
              "Raw logs" = link(repetition, log, gsub(".+", "*", flags)),
              Records = link(repetition, record, ""), .groups = "drop") |>
    mutate(across(c("Raw logs", "Records"), as_markdown))
}

#' In what the state of programs that start in an environment differs from native's, and what declares it
#'
#' Environments with the same differences share rows.  NULL where no record holds any.
states_table <- function(paper) {
  rows <- bind_rows(lapply(unname(paper$records), function(one) {
    bind_rows(lapply(one$starting_state$differences, as_tibble)) |> mutate(environment = one$environment)
  }))
  if (nrow(rows) == 0) return(NULL)
  rows |>
    distinct() |>
    left_join(select(paper$environments, environment, label), by = "environment") |>
    group_by(name, native, here, by) |>
    summarise(label = listed(paper$environments$label[paper$environments$label %in% label]),
              .groups = "drop") |>
    arrange(by, name) |>
    transmute(State = name, Native = native, Environments = label, "In them" = here, "Declared by" = by)
}
