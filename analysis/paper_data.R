# What the paper is made of: the tables of results as data frames, and the facts of the run that its text
# names.

# The tables of results of which a paper is made.
TABLES_READ <- c("summary", "comparisons", "ratios", "choices", "emulated", "claims", "blocks", "runs",
                 "left_out")

#' @param folder of results: plan, plan.csv, records and all tables
#' @param published folder with claims.json and ibm-table1.json
#' @param emulated path of the file that names emulated hosts and their mark
#' @return list: what read_results gives; the tables summary, comparisons, ratios, choices, claims (rows with
#'   an `outcome` each), emulated, blocks, runs, left_out; `told` (the headline comparisons); `measured`
#'   (environments that stand in the text), `missing`, `published`, `facts` (words and numbers of the testbed)
#'   and `mark` (of an emulated host or tiny sizes)
read_paper <- function(folder, published, emulated) {
  paper <- read_results(folder)
  text <- c("workload", "metric", "environment", "flags", "unit", "why", "direction",
            "against_published", "because", "transferred")
  for (name in TABLES_READ) {
    paper[[name]] <- read_table(file.path(folder, paste0(name, ".csv")), text)
  }
  paper$comparisons$outcome <- outcome_of(paper$comparisons)
  paper$choices$outcome <- outcome_of(paper$choices)
  paper$told <- filter(paper$comparisons, headline == "yes")
  paper$measured <- filter(paper$environments, environment %in% paper$tidy$environment)
  paper$missing <- anti_join(paper$planned, paper$runs, by = "log") |>
    left_join(select(paper$environments, environment, label, reason), by = "environment") |>
    mutate(unable = vapply(paper$records[log], function(one) one$cannot$reason %or% "", ""),
           refused = as.character(paper$left_out$reason)[match(log, paper$left_out$log)],
           why = case_when(unable != "" ~ paste("cannot be done there:", unable), !is.na(refused) ~ refused,
                           reason != "" ~ reason, TRUE ~ "not measured")) |>
    count(workload, label, why)
  for (name in c("tidy", "summary", "comparisons", "ratios", "choices", "told", "blocks")) {
    paper[[name]] <- mark_sizes(paper[[name]], paper)
  }
  paper$published <- if (paper$valid) published_ratios(published, paper$told) else tibble()
  paper$facts <- facts_of(paper)
  hosts <- jsonlite::read_json(emulated)
  emulated_host <- any(paper$facts$hosts %in% unlist(hosts$emulated))
  tiny <- "Tiny sizes: a test of the pipeline, which answers no question"
  paper$mark <- paste(c(if (emulated_host) hosts$mark, if (!paper$valid) tiny), collapse = ". ")
  paper
}

# Series whose sizes break a rule have a dagger; at the scale `tiny` the top of the page says so of all.
mark_sizes <- function(rows, paper) {
  if (!paper$valid) return(rows)
  mutate(rows, series = paste0(series, if_else(workload %in% paper$invalid, "\u2020", "")))
}

#' Ratios to native of Table I of the original, beside what was measured of the environments that stand for
#'   them
published_ratios <- function(folder, told) {
  stands_for <- jsonlite::read_json(file.path(folder, "claims.json"))$environments
  rows <- lapply(jsonlite::read_json(file.path(folder, "ibm-table1.json"))$rows, function(row) {
    lapply(setdiff(names(row$values), NATIVE), function(name) {
      tibble(workload = row$workload, metric = row$metric,
             environment = unlist(stands_for[[name]]$measured_as)[1],
             then = as.numeric(row$values[[name]]$mean) / as.numeric(row$values$native$mean),
             better = row$better) |>
        mutate(then = if_else(better == "higher", then, 1 / then))
    })
  })
  bind_rows(rows) |>
    select(-better) |>
    inner_join(select(told, workload, metric, environment, series, label),
               by = c("workload", "metric", "environment"))
}

facts_of <- function(paper) {
  hosts <- lapply(paper$records, function(one) one$observed$host$static)
  seen <- function(key) setdiff(unlist(lapply(hosts, `[[`, key)), "not available")
  during <- function(key) {
    suppressWarnings(as.numeric(unlist(lapply(paper$records, function(one) one$observed$host$during[[key]]))))
  }
  started <- vapply(paper$records, function(one) one$started %or% "", "")
  machine <- paper$plan$machine
  of_node <- function(key) unique(unlist(lapply(paper$records, function(one) one$node[[key]])))
  processors <- seen("cpu_model")
  if (length(processors) == 0) processors <- "a processor that was not recorded"
  list(
    processor = gsub("\\((R|TM)\\)", "", listed(processors)),
    hosts = seen("machine"), nodes = of_node("name"), boots = length(of_node("boot")),
    cpus = machine$cpus,
    held = if (is.null(machine$mask)) "" else glue(" (the run was held to processors {machine$mask})"),
    memory = round(machine$memory_bytes / 2^30),
    guest = "guest of a hypervisor" %in% seen("virtualization"),
    steal = during("steal_share"),
    days = if (length(started) > 0) unique(substr(range(started), 1, 10)) else "",
    disturbed = sum(paper$runs$flags != ""),
    flags = unlist(lapply(paper$records, function(one) one$quiet$flags), recursive = FALSE)
  )
}

#' Whether the plan was sealed before the first run, and kept
sealed_words <- function(plan) {
  sealed <- plan$sealed
  if (is.null(sealed)) return("Its plan was not sealed before the first run.")
  kept <- if (isTRUE(sealed$kept)) "and was kept" else "and was changed since, so that this is another one"
  glue("Its plan was sealed before the first run ({substr(sealed$at, 1, 10)}, SHA-256 ",
       "{substr(sealed$sha256, 1, 16)}), {kept}.")
}

#' The title, true for this run
title_of <- function(paper) {
  kinds <- unique(paper$measured$family)
  parts <- c("Virtual Machines"[any(kinds == "machines")],
             "Containers"[any(kinds %in% c("containers", "sandboxes"))], "Bare Linux")
  paste0(listed(parts), ", Measured Again")
}

#' One sentence with the finding: each family of environments against native
finding_of <- function(paper) {
  told <- filter(paper$told, !workload %in% paper$invalid)
  if (nrow(paper$told) > 0 && nrow(told) == 0) {
    return("The sizes of these runs answer no question and test no claim.")
  }
  if (nrow(told) == 0) {
    return("Nothing was measured beside native, so this paper reports levels and compares nothing.")
  }
  families <- lapply(split(told, factor(told$family, intersect(names(FAMILIES), told$family))),
                     family_finding)
  paste(unlist(families), collapse = " ")
}

#' One sentence that says what to do next
next_step <- function(paper) {
  undecided <- filter(paper$told, outcome == "undecided", !is.na(more))
  if (!paper$valid) {
    markdown("They check the pipeline; measure at the scale `standard` next.")
  } else if (nrow(paper$told) == 0) {
    markdown("Add an environment to `config.yaml` next.")
  } else if (any(paper$told$outcome == "no interval")) {
    "Measure more blocks next: an interval takes at least three, of percentiles six."
  } else if (nrow(undecided) > 0) {
    glue("About {format(ceiling(median(undecided$more)), big.mark = ',')} more blocks (a run in every ",
         "environment, side by side) would decide half of the undecided comparisons.")
  } else {
    "Nothing remains undecided; repeat the run on another machine next."
  }
}

#' The workloads by the question that they answer, in the order of the plan
questions_of <- function(paper) {
  rows <- distinct(paper$metrics, question, workload) |> filter(workload %in% paper$tidy$workload)
  split(rows$workload, factor(rows$question, unique(rows$question)))
}

#' The figures of a workload: as it declares them, or one of every run; of a sweep of one point the runs
figures_of <- function(paper, name) {
  declared <- paper$plan$workloads[[name]]$figures
  if (length(declared) == 0) declared <- list(list(kind = "runs", name = "runs"))
  figures <- lapply(declared, function(figure) {
    points <- n_distinct(get_factor(rows_of(paper$summary, name, figure), figure$along %or% ""))
    if (points == 1 && figure$kind == "sweep") figure <- modifyList(figure, list(kind = "runs", along = NULL))
    rows <- rows_of(if (figure$kind == "runs") paper$comparisons else paper$summary, name, figure)
    if (nrow(rows) > 0 && (points > 1 || figure$kind != "against")) figure
  })
  Filter(Negate(is.null), figures)
}

#' The rows of a table that a figure shows
rows_of <- function(table, name, figure) {
  rows <- table[table$workload == name, ]
  rows[match_rows(list(metric = c(figure$metrics, figure$metric), where = figure$where), rows) &
       nchar(rows$metric) > 0, ]
}
