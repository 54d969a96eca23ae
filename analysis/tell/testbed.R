# The machine as it was observed from the host and from inside of each environment.

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

# Names of hosts that are none, and what is said of what was measured there.
HOSTS <- read_contract("hosts")

#' What every page says where something was measured on an emulated host: such numbers are no results
#'
#' @param evidence as from `read_evidence`
#' @return text, "" where no host was one
host_mark <- function(evidence) {
  seen <- unlist(lapply(evidence$records, field, "observed", "host", "static", "machine"))
  if (any(seen %in% unlist(HOSTS$emulated))) HOSTS$mark else ""
}

#' Whether the host was seen to be a guest itself
#'
#' @param evidence as from `read_evidence`
#' @return what was seen, such as "guest of a hypervisor"; empty where it is none, or where nothing was seen
host_as_guest <- function(evidence) {
  seen <- unique(unlist(lapply(evidence$records, field, "observed", "host", "static", "virtualization")))
  setdiff(seen, c("none", "none seen", "bare metal", NOT_AVAILABLE))
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
                container_row(evidence, split$text),
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
  sandboxes <- "sandboxes" %in% vapply(evidence$plan$environments[groups[[1]]], kind_of, "")
  heads <- c(if (sandboxes) "Inside, beside machines" else "Inside, on the host\u2019s kernel",
             "Inside the virtual machines")
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
