# What of the report of 2014 its own numbers contradict, and what becomes of its conclusions.

#' The row of one claim, with what decides it
#'
#' @param results as from `read_reanalysis`
#' @param id of the claim
#' @return one row of the claims, with the columns of `deciding_numbers`; `wrong`, whether it is contradicted
claim_row <- function(results, id) {
  row <- results$claims[results$claims$id == id, ]
  row <- cbind(row, deciding_numbers(row))
  row$wrong <- grepl("contradicted", row$verdict)
  row
}

#' A loss in per cent, told from a ratio
#'
#' @param ratio numbers
#' @return texts such as "55 %"
loss <- function(ratio) {
  percent(1 - ratio, ifelse(abs(1 - ratio) < 0.1, 1, 0))
}

#' The number of Table I or a figure: as printed and as recomputed
#'
#' @param results as from `read_reanalysis`
#' @param ... columns of the differences and their values, which name one row
#' @return that row
difference_row <- function(results, ...) {
  wanted <- list(...)
  rows <- results$differences
  rows[Reduce(`&`, Map(function(name, value) rows[[name]] == value, names(wanted), wanted)), ][1, ]
}

#' What does not hold, each with what it means
#'
#' @param results as from `read_reanalysis`
#' @return list of lists: `head`, `short` (for the abstract), `found` and `means`, texts
contradicted_findings <- function(results) {
  Filter(Negate(is.null), list(
    linpack_finding(results), redis_finding(results), mysql_finding(results), docker_finding(results),
    negligible_finding(results)
  ))
}

#' @rdname contradicted_findings
linpack_finding <- function(results) {
  row <- claim_row(results, "ibm-linpack-kvm-untuned-worse")
  if (!row$wrong) {
    return(NULL)
  }
  of <- function(statistic) {
    difference_row(results, place = "Table I", workload = "linpack", environment = "vm",
                   statistic = statistic)
  }
  mean <- of("mean")
  deviation <- of("deviation_percent")
  logged <- deviation$recomputed / 100
  list(
    head = "Linpack on untuned KVM",
    short = paste0("untuned KVM loses ", percent(-logged, 0),
                   " of native\u2019s Linpack and not the printed ", percent(-deviation$printed / 100, 0)),
    found = paste0(
      "Table I prints ", mean$published, " GFLOPS (", minus(deviation$published), THIN,
      "%); the mean of the one complete raw log is ", mean$rounded, " ",
      interval(mean$low, mean$high, 1), " GFLOPS (", minus(deviation$rounded), THIN, "%, ", n_is(mean$n), ")."
    ),
    means = paste0(
      "A virtual machine that hides the processors\u2019 topology costs ", percent(-logged, 0),
      " of the rate. ", if (row$verdict == "number contradicted") {
        paste0("That tuning is worth it ", if (deviation$difference < 0) "holds all the more" else "holds",
               "; how much it is worth does not.")
      } else {
        "That tuning is worth it does not follow."
      }
    )
  )
}

#' @rdname contradicted_findings
redis_finding <- function(results) {
  few <- claim_row(results, "ibm-redis-nat-4conn")
  level <- claim_row(results, "ibm-redis-nat-4conn-51us")
  many <- claim_row(results, "ibm-redis-nat-100conn")
  if (!few$wrong) {
    return(NULL)
  }
  falls <- !is.na(many$value) && few$value > many$value
  list(
    head = "Redis behind NAT",
    short = paste0("with 4 connections NAT adds ", percent(few$value - 1, 0),
                   " to the latency of Redis and not ", percent(few$published - 1, 0)),
    found = paste0(
      "The text has NAT cost next to nothing with 4 connections: ", fixed(level$published, 0),
      " \u00b5s a request, ", fixed(few$published, 2), " times native, and more as they grow in number. By ",
      few$from, " it is ", quantity(level$value, 3), " \u00b5s, ", fixed(few$value, 2), " times native",
      if (!is.na(many$value)) paste0(", and ", fixed(many$value, 2), " times with 100 connections"), "."
    ),
    means = paste0("NAT\u2019s share of a request is ", if (falls) {
      "largest where little is going on, and falls with load: the conclusion is the wrong way round."
    } else {
      "larger than the report says from the first connections on."
    })
  )
}

#' @rdname contradicted_findings
mysql_finding <- function(results) {
  layers <- claim_row(results, "ibm-mysql-aufs-overhead")
  nat <- claim_row(results, "ibm-mysql-nat-little")
  if (layers$verdict != "label contradicted") {
    return(NULL)
  }
  disputed <- results$differences$disputed
  list(
    head = "MySQL in Docker",
    short = paste("what is printed as the cost of layered storage to MySQL", "is that of NAT"),
    found = paste0(
      "The ", fixed(sum(disputed), 0), " values printed as Docker with NAT and a volume are of a container ",
      "on the host\u2019s network with its own files, as its folder is called and as its packets per ",
      "transaction tell. No run with NAT and a volume was published."
    ),
    means = paste0(
      "The step to layered storage, which is to cost ", loss(layers$value), ", is the step to NAT; and that ",
      "to NAT, which is to cost ", loss(nat$value), ", is the one to layered storage. ",
      if (layers$value < nat$value) {
        "So \u201clayered storage costs, NAT hardly\u201d turns into its opposite."
      }
    )
  )
}

#' @rdname contradicted_findings
docker_finding <- function(results) {
  row <- claim_row(results, "ibm-docker-geq-kvm")
  if (!row$wrong) {
    return(NULL)
  }
  redis <- results$differences[results$differences$place == "Figure 8" &
                                 results$differences$statistic == "mean", ]
  of <- function(environment) {
    own <- redis[redis$environment == environment, ]
    level_of(own)[match(unique(redis$factors), own$factors)]
  }
  behind <- sum(of("vm") > of("docker"), na.rm = TRUE)
  host <- all(of("vm") <= 1.02 * of("docker-hostnet"), na.rm = TRUE)
  trips <- results$differences[results$differences$place == "Figure 3", ]
  trip <- function(environment) level_of(trips[trips$environment == environment, ])
  slower <- c(if (all(trip("docker") > trip("vm"))) "netperf", if (behind > 0) "Redis")
  list(
    head = "Docker against KVM",
    short = if (length(slower) > 0) paste("Docker behind NAT is slower than KVM in", listed(slower)),
    found = paste0(
      "Docker is to be as fast as KVM or faster in everything. By ", row$from, " KVM is ahead by up to ",
      percent(row$value - 1, 0), " (", sub("^[^:]*: ", "", if (startsWith(row$from, "raw")) {
        row$raw_at
      } else {
        row$printed_at
      }), "). Of Redis\u2019 ", counted(length(unique(redis$factors)), "number"),
      " of connections, KVM answers more requests than Docker behind NAT at ", fixed(behind, 0), "."
    ),
    means = paste0("The conclusion is not one about containers but about how they are connected",
                   if (host) "; on the host\u2019s network Redis bears it out", ".")
  )
}

#' @rdname contradicted_findings
negligible_finding <- function(results) {
  row <- claim_row(results, "ibm-cpu-mem-negligible")
  if (!row$wrong) {
    return(NULL)
  }
  table <- results$differences[results$differences$place == "Table I", ]
  table <- table[table$statistic == "mean", ]
  ratio <- function(environment, native = "native") {
    of <- function(name) table[table$environment == name, ]
    own <- of(environment)
    base <- of(native)
    level_of(own) / level_of(base)[match(paste(own$workload, own$metric), paste(base$workload, base$metric))]
  }
  least <- lapply(c(docker = "docker", tuned = "vm-tuned"), function(name) min(ratio(name)))
  pxz <- table$workload == "pxz"
  pxz <- table$printed[pxz & table$environment == "vm"] / table$printed[pxz & table$environment == "native"]
  list(
    head = "Processor and memory",
    short = NULL,
    found = paste0(
      "Containers and machines alike are to cost almost nothing there. Table I itself has KVM lose ",
      loss(pxz), " in compression; the most that anything of it loses is ", loss(row$value), " (by ",
      row$from, ")."
    ),
    means = paste0("It ", if (least$docker >= 0.95) "holds" else "does not hold",
                   " for containers, which lose ", loss(least$docker), " at the most, and ",
                   if (least$tuned >= 0.95) "also" else "not",
                   " for tuned machines, which lose up to ", loss(least$tuned), ".")
  )
}

#' What does not hold, on the page
#'
#' @param results as from `read_reanalysis`
#' @return Markdown for knitr
show_findings <- function(results) {
  found <- contradicted_findings(results)
  if (length(found) == 0) {
    return(prose("No claim of the report is contradicted by the numbers that were read."))
  }
  of <- function(name) as_markdown(vapply(found, `[[`, "", name))
  knitr::asis_output(paste0(seq_along(found), ". **", of("head"), ".** ", of("found"), " *", of("means"), "*",
                            collapse = "\n"))
}

#' What the reanalysis found, in a few sentences: first what does not hold
#'
#' @param results as from `read_reanalysis`
#' @return one text
abstract_of_reanalysis <- function(results) {
  rows <- results$differences
  count <- function(...) fixed(sum(rows$verdict %in% c(...)), 0)
  found <- contradicted_findings(results)
  short <- unlist(lapply(found, `[[`, "short"))
  wrong <- length(found)
  paste0(
    "The comparison of virtual machines and containers of 2014 is still quoted. ",
    if (wrong > 0) {
      paste0("Its own numbers contradict ", counted(wrong, "conclusion"), " of it",
             if (length(short) > 0) paste0(": ", paste(short, collapse = "; ")), ". ")
    } else {
      "Its own numbers contradict none of its conclusions. "
    },
    "Of ", fixed(nrow(rows), 0), " values in its Table I and Figures 2, 3 and 5 to 13, ", count("agrees"),
    " follow from the raw results that were read, ", count("differs"), " are contradicted, ",
    if (any(rows$verdict == "label contradicted")) {
      paste0(count("label contradicted"), " follow under a label that is contradicted, ")
    },
    "and ", count("incomplete", NOT_AVAILABLE), " can\u2019t be tested by what was read. ",
    joined_text(results$claims, results$measured)
  )
}

#' What the text says of the experiments and their outputs do not
#'
#' @param results as from `read_reanalysis`
#' @return texts, a sentence or more each, with what they are about in their names
setup_findings <- function(results) {
  used <- results$series[results$series$selection == "paper", ]
  runs <- function(workload) used$n[used$workload == workload]
  mixed <- grepl("not read-only", results$unreadable$reason)
  network <- results$differences[results$differences$place == "Figure 3", ]
  empty <- network$environment == "docker" & network$n == 0
  unlike_ten <- runs("redis")[runs("redis") != 10]
  c(
    "MySQL\u2019s statements" = if (length(runs("mysql")) > 0 && !any(mixed)) {
      "Every output is of a read-only test; the text describes reads and writes."
    },
    "Redis\u2019 repetitions" = if (length(unlike_ten) > 0) {
      paste0("The points are means of ", redis_runs(results), " runs, and not of 10 throughout.")
    },
    "fio" = if (length(runs("fio")) > 0 && all(runs("fio") == 1)) {
      paste("Each value is of a single run. The sequential jobs ran for about 21 s, not 60 s; the mixed job",
            "kept 256 requests in flight, not 128. The published log of KVM is not that of the figures,",
            "which an older revision holds.")
    },
    "netperf" = if (any(empty) && any(network$n > 0)) {
      "The workbook\u2019s cells of Docker with NAT are empty, so that its latencies can\u2019t be followed."
    },
    "Not published at all" = "Parallel xz, the cycles per byte of Figure 2, and Linpack on one socket."
  )
}

#' What the text says otherwise, on the page
#'
#' @param results as from `read_reanalysis`
#' @return Markdown for knitr
show_setup <- function(results) {
  found <- setup_findings(results)
  knitr::asis_output(paste0("- **", as_markdown(names(found)), ".** ", as_markdown(found), collapse = "\n"))
}
