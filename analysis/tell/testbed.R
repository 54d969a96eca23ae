# The machine as it was observed from the host and from inside of each environment, and its state during the
# runs.

#' Values with the environments in which they were seen
#'
#' @param values texts, one for each run
#' @param environments of the runs
#' @param evidence as from `read_evidence`
#' @param most different values of one environment that are listed; more are counted
#' @return one text: the value alone where all environments agree, otherwise such as "2 (Native, Docker); 4
#'   (KVM)"; the last group, where it is large, as "all others"
grouped_text <- function(values, environments, evidence, most = 3) {
  names <- intersect(names(evidence$plan$environments), environments)
  if (length(names) == 0) {
    return(NOT_AVAILABLE)
  }
  of_environment <- vapply(names, function(name) {
    seen <- unique(values[environments == name])
    if (length(seen) > most) paste(length(seen), "different values") else listed(seen, "or")
  }, "")
  if (length(unique(of_environment)) == 1) {
    return(of_environment[[1]])
  }
  values <- unique(of_environment)
  count <- vapply(values, function(value) sum(of_environment == value), 0L)
  values <- values[order(count >= 3 & count == max(count))]
  labels <- in_sentence(environment_labels(evidence$plan, names))
  paste(vapply(seq_along(values), function(i) {
    members <- of_environment == values[[i]]
    rest <- i == length(values) && sum(members) >= 3
    paste0(values[[i]], " (", if (rest) "all others" else paste(labels[members], collapse = ", "), ")")
  }, ""), collapse = "; ")
}

#' The facts about a system that are shown, and how
#'
#' @return list of facts: `label` and `text`, a function from what was observed to text
testbed_facts <- function() {
  plain_field <- function(name) function(seen) observed_text(seen[[name]])
  size_field <- function(name) function(seen) observed_text(seen[[name]], bytes)
  list(
    list(label = "Machine", text = plain_field("machine")),
    list(label = "Operating system", text = plain_field("os")),
    list(label = "Kernel", text = plain_field("kernel")),
    list(label = "Processor", text = plain_field("cpu_model")),
    list(label = "CPUs", text = cpus_text),
    list(label = "Last-level cache", text = size_field("cache_bytes")),
    list(label = "Memory", text = size_field("memory_bytes")),
    list(label = "Transparent huge pages", text = function(seen) {
      sub(".*\\[([^]]+)\\].*", "\\1", observed_text(seen$huge_pages))
    }),
    list(label = "Clock source", text = plain_field("clocksource")),
    list(label = "Virtualisation seen", text = plain_field("virtualization")),
    list(label = "Control group", text = function(seen) {
      gsub("[0-9a-f]{8,}", "\u2026", observed_text(seen$cgroup))
    }),
    list(label = "Microcode", text = plain_field("microcode"))
  )
}

#' An observation as text
#'
#' @param value number, text, list of these, or NULL
#' @param number function from a number to text
#' @return text; "not available" where nothing was observed
observed_text <- function(value, number = quantity) {
  if (is.null(value) || length(value) == 0 || identical(value, "")) {
    NOT_AVAILABLE
  } else if (is.numeric(value)) {
    number(value)
  } else if (is.logical(value)) {
    if (isTRUE(value)) "yes" else "no"
  } else if (is.list(value)) {
    paste(c(names(value), unlist(value))[order(c(seq_along(names(value)), seq_along(value)))], collapse = " ")
  } else {
    as.character(value)
  }
}

#' The processors that a system sees
#'
#' @param seen what was observed
#' @return text such as "2 (1 socket, 2 cores each, 1 thread each)"
cpus_text <- function(seen) {
  if (!is.numeric(seen$cpus)) {
    return(NOT_AVAILABLE)
  }
  shape <- c(sockets = "socket", cores_per_socket = "core", threads_per_core = "thread")
  known <- Filter(is.numeric, seen[names(shape)])
  if (length(known) < length(shape)) {
    return(quantity(seen$cpus))
  }
  paste0(quantity(seen$cpus), " (",
         paste0(counted(unlist(known), shape), c("", " each", " each"), collapse = ", "), ")")
}

#' Which processors' flaws the host's kernel knows of
#'
#' @param value named list: flaw to state, text, or NULL
#' @return text that counts the states
vulnerabilities_text <- function(value) {
  if (!is.list(value) || length(value) == 0) {
    return(observed_text(value))
  }
  state <- vapply(value, function(one) paste(unlist(one), collapse = " "), "")
  count <- c("not affected" = sum(grepl("^Not affected", state)),
             "mitigated" = sum(grepl("^Mitigation", state)),
             "vulnerable" = sum(grepl("^(KVM: )?Vulnerable", state)))
  count <- c(count, "other" = length(state) - sum(count))
  paste0(paste(paste(count, names(count))[count > 0], collapse = ", "), "; of ", length(state),
         " that the kernel knows")
}

#' The testbed as the host and the environments saw it
#'
#' What virtual machines saw stands in a column of its own.
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_of_testbed <- function(evidence) {
  records <- evidence$records
  if (length(records) == 0) {
    return(NULL)
  }
  environments <- vapply(records, `[[`, "", "environment")
  split <- inside_columns(environments, evidence)
  of_host <- function(text) {
    listed(unique(vapply(records, function(record) text(field(record, "observed", "host", "static")), "")),
           "or")
  }
  of_inside <- function(text) {
    split$text(vapply(records, function(record) text(field(record, "observed", "inside")), ""), environments)
  }
  rows <- do.call(rbind, lapply(testbed_facts(), function(fact) {
    c(fact$label, of_host(fact$text), of_inside(fact$text))
  }))
  single <- function(label, name, text = observed_text) {
    c(label, of_host(function(seen) text(seen[[name]])), rep("", length(split$heads)))
  }
  systems <- vapply(machine_systems(evidence), `[[`, "", "environment")
  machines <- lapply(machine_rows(evidence), function(row) {
    inside <- if (any(row$values != "")) split$text(row$values, systems) else rep("", length(split$heads))
    c(row$label, row$host, inside)
  })
  rows <- rbind(rows, single("Frequency governor", "governor"), single("Turbo", "turbo"),
                single("Processor flaws", "vulnerabilities", vulnerabilities_text),
                do.call(rbind, machines),
                version_rows(records, environments, evidence, split$text),
                program_rows(evidence, environments, split$text))
  table <- new_table(
    "testbed", paste("The testbed as observed from the host and from inside of the environments, in each of",
                     linked(counted(length(records), "run"), "records")),
    c(list(column("Observation"), column("Host", "wrap", weight = 0.9)),
      lapply(split$heads, column, align = "wrap", weight = 1.1)),
    unname(rows),
    notes = paste("One value inside stands for all environments of its column; values that differ are",
                  "followed by the environments that saw them.")
  )
  table$sources[, -1] <- "records"
  table
}

#' The columns in which the testbed's table shows what was seen inside
#'
#' @param environments of the records
#' @param evidence as from `read_evidence`
#' @return list: `heads`, of one column, or of two where there are virtual machines beside others; and `text`,
#'   a function of values and their environments that gives a text for each column, "" where it has no value
inside_columns <- function(environments, evidence) {
  machines <- machine_environments(evidence$plan)
  groups <- list(setdiff(environments, machines), intersect(environments, machines))
  heads <- c("Inside, on the host\u2019s kernel", "Inside the virtual machines")
  there <- lengths(groups) > 0
  if (!there[[2]]) {
    heads[[1]] <- "Inside the environments"
  }
  list(heads = heads[there], text = function(values, of) {
    vapply(groups[there], function(group) {
      own <- of %in% group
      if (any(own)) grouped_text(values[own], of[own], evidence) else ""
    }, "")
  })
}

#' The versions of packages, on the host and inside
#'
#' @param records list of records
#' @param environments of the records
#' @param evidence as from `read_evidence`
#' @param text function of values and their environments, as of `inside_columns`
#' @return matrix of texts, in columns label, host, and those of `text`: a row that says in how many packages
#'   all runs agree, and a row for each in which they do not; or NULL
version_rows <- function(records, environments, evidence, text) {
  host <- observed_versions(records, "host", "static")
  inside <- observed_versions(records, "inside")
  names <- colnames(inside)
  differs <- apply(inside, 2, function(x) length(unique(x)) > 1)
  of_host <- vapply(colnames(host), function(name) paste(name, listed(unique(host[, name]), "or")), "")
  first <- if (length(of_host) > 0 || any(!differs)) {
    same <- if (any(!differs)) paste("the same versions of", counted(sum(!differs), "package")) else ""
    c("Packages", paste(of_host, collapse = ", "), text(rep(same, length(records)), environments))
  }
  rows <- lapply(names[differs], function(name) {
    c(paste("Package", name), "", text(inside[, name], environments))
  })
  do.call(rbind, c(list(first), rows))
}

#' The versions of packages that were observed
#'
#' @param records list of records
#' @param ... names that lead to the observations
#' @return matrix of texts, a row for each record and a column for each package
observed_versions <- function(records, ...) {
  found <- lapply(records, function(record) as.list(field(record, "observed", ...)$versions))
  names <- sort(unique(as.character(unlist(lapply(found, names)))), method = "radix")
  texts <- vapply(names, function(name) {
    vapply(found, function(of_run) observed_text(of_run[[name]]), "")
  }, character(length(records)))
  matrix(texts, length(records), length(names), dimnames = list(NULL, names))
}

#' What the measured programs said of themselves in their logs
#'
#' The object of a log that has the key "tool" names the program; its texts are shown, and how much of its
#' memory was in huge pages.
#'
#' @param evidence as from `read_evidence`
#' @param environments of the records
#' @param text function of values and their environments, as of `inside_columns`; all in one column unless
#'   given
#' @return matrix of texts, in columns label, host, and those of `text`; or NULL
program_rows <- function(evidence, environments,
                         text = function(values, of) grouped_text(values, of, evidence)) {
  heads <- lapply(evidence$records, `[[`, "head")
  workload <- vapply(evidence$records, `[[`, "", "workload")
  rows <- lapply(names(evidence$plan$workloads), function(name) {
    here <- workload == name
    texts <- unique(unlist(lapply(heads[here], function(head) names(Filter(is.character, head)))))
    title <- evidence$plan$workloads[[name]]$title
    said <- lapply(texts, function(key) {
      values <- vapply(heads[here], function(head) observed_text(head[[key]]), "")
      c(paste0(title, ": ", program_key(key)), "", text(values, environments[here]))
    })
    pages <- vapply(heads[here], function(head) as.double(c(head$huge_page_bytes, NA)[[1]]), 0)
    if (any(!is.na(pages))) {
      sizes <- ifelse(is.na(pages), NOT_AVAILABLE, bytes(signif(pages, 2)))
      said <- c(said, list(c(paste0(title, ": memory in huge pages"), "", text(sizes, environments[here]))))
    }
    do.call(rbind, said)
  })
  do.call(rbind, rows)
}

#' A key of a program's own description as words
#'
#' @param key such as "blas"
#' @return such as "BLAS"
program_key <- function(key) {
  known <- c(tool = "program", blas = "BLAS", core = "BLAS core type")
  if (key %in% names(known)) known[[key]] else words(key)
}

#' The first description of itself that a program printed
#'
#' @param path of the log
#' @return named list; with `huge_page_bytes`, the largest in the log, where it is printed; empty where there
#'   is none
read_head <- function(path) {
  lines <- log_lines(path)
  lines <- lines[startsWith(lines, "{")]
  named <- grep("\"tool\"", lines, fixed = TRUE, value = TRUE)
  head <- if (length(named) == 0) {
    list()
  } else {
    tryCatch(jsonlite::parse_json(named[[1]]), error = function(e) list())
  }
  pages <- regmatches(lines, regexpr("(?<=\"huge_page_bytes\": )[0-9]+", lines, perl = TRUE))
  if (length(pages) > 0) {
    head$huge_page_bytes <- max(as.double(pages))
  }
  head
}

#' The state of the host before, during and after the runs
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where nothing was measured
table_of_conditions <- function(evidence) {
  records <- evidence$records
  if (length(records) == 0) {
    return(NULL)
  }
  share <- function(x) 100 * x
  gigabytes <- function(x) x / 1e9
  quantities <- list(
    list("Load (1 min)", "load1", identity), list("CPU steal (%)", "steal_share", share),
    list("CPU busy (%)", "busy_share", share), list("Other processes (% of a CPU)", "others_share", share),
    list("Swap used (GB)", "swap_used_bytes", gigabytes),
    list("Swapped in or out (MB)", "swapped_bytes", function(x) x / 1e6),
    list("Temperature (\u00b0C)", "temperature_c", identity),
    list("Throttled (times)", "throttled", identity), list("Frequency (MHz)", "frequency_mhz", identity)
  )
  phases <- c("before", "during", "after")
  rows <- t(vapply(quantities, function(one) {
    c(one[[1]], vapply(phases, function(phase) {
      observed <- lapply(records, field, "observed", "host", phase, one[[2]])
      if (all(vapply(observed, is.null, NA))) {
        return("")
      }
      range_text(one[[3]](field_numbers(records, "observed", "host", phase, one[[2]])))
    }, ""))
  }, character(4)))
  rows <- rows[rowSums(rows[, -1, drop = FALSE] != "") > 0, , drop = FALSE]
  table <- new_table(
    "conditions", paste0("The host before, during and after the runs (",
                         linked(n_is(fixed(length(records), 0)), "records"), ")"),
    list(column("Quantity"), column("Before", "right"), column("During", "right"),
         column("After", "right")), rows,
    notes = paste("Median [least, most] over the runs; steal is time that a hypervisor gave to others, and",
                  "other processes are those that belong neither to a run nor to its system."),
    wide = FALSE
  )
  table$sources[, 2:4] <- "records"
  table
}

#' Median and range of observations
#'
#' @param x numbers; missing ones are not counted
#' @return text such as "1.5 [0.2, 3.1]", with the count where some are missing
range_text <- function(x) {
  known <- x[!is.na(x)]
  if (length(known) == 0) {
    return(NOT_AVAILABLE)
  }
  decimals <- if (max(abs(known)) >= 100) 0 else if (max(abs(known)) >= 10) 1 else 2
  text <- fixed(stats::median(known), decimals)
  if (min(known) < max(known)) {
    text <- paste(text, interval(min(known), max(known), decimals))
  }
  if (length(known) < length(x)) paste0(text, " (", n_is(length(known)), ")") else text
}

#' How the processor's frequency was governed
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
frequency_text <- function(evidence) {
  values <- function(key) {
    unique(vapply(evidence$records, function(record) {
      observed_text(field(record, "observed", "host", "static", key))
    }, ""))
  }
  governor <- values("governor")
  turbo <- values("turbo")
  if (all(c(governor, turbo) == NOT_AVAILABLE)) {
    return("Neither the frequency governor nor the state of turbo frequencies could be read on this host.")
  }
  paste0("The frequency governor was ", listed(governor, "or"), "; turbo frequencies: ", listed(turbo, "or"),
         ".")
}

#' How much processor time a hypervisor under the host took
#'
#' @param evidence as from `read_evidence`
#' @return one sentence
steal_text <- function(evidence) {
  steal <- field_numbers(evidence$records, "observed", "host", "during", "steal_share")
  if (all(is.na(steal))) {
    return("Steal time during the runs is not available.")
  }
  worst <- evidence$records[[which.max(steal)]]
  if (max(steal, na.rm = TRUE) == 0) {
    return(paste0("No processor time was stolen during the runs (",
                  linked(n_is(sum(!is.na(steal))), "records"), ")."))
  }
  paste0("During the runs a hypervisor under the host took a median of ",
         linked(percent(stats::median(steal, na.rm = TRUE)), "records"),
         " of the processor time, and at most ",
         linked(percent(max(steal, na.rm = TRUE)), run_id(worst)), " (",
         evidence$plan$workloads[[worst$workload]]$title, " in ",
         in_sentence(environment_labels(evidence$plan, worst$environment)),
         ", repetition ", linked(fixed(worst$repetition, 0), run_id(worst)), "; ",
         linked(n_is(sum(!is.na(steal))), "records"), ").")
}
