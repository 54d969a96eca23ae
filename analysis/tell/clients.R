# Where load came from, as the plan says and the records tell.

#' Where the load of the workloads with a server came from
#'
#' @param evidence as from `read_evidence`
#' @return text; "" where no run had a part outside of its system
client_text <- function(evidence) {
  with_client <- Filter(function(record) is.list(field(record, "observed", "client")), evidence$records)
  if (length(with_client) == 0) {
    return("")
  }
  names <- unique(vapply(with_client, `[[`, "", "workload"))
  titles <- vapply(intersect(names(evidence$plan$workloads), names),
                   function(name) evidence$plan$workloads[[name]]$title, "")
  remote <- identical(field(evidence$plan, "client", "kind"), "ssh")
  seen <- function(key) {
    values <- lapply(with_client, function(record) field(record, "observed", "client", "link", key))
    listed(unique(vapply(Filter(Negate(is.null), values), value_text, "")))
  }
  where <- if (remote) {
    "a second machine, reached over the network"
  } else {
    paste("a network namespace of the same host, joined to it by a pair of virtual Ethernet devices, so that",
          "client and server share its processors")
  }
  paste0(
    "The load of ", listed(titles), " comes from outside of the system under test: from ", where,
    ", running the image\u2019s own files. The link has an MTU of ", linked(seen("mtu"), "records"),
    if (seen("rate") == "not limited") " bytes and its rate is not limited. " else
      paste0(" bytes and a rate of ", linked(seen("rate"), "records"), " by a token bucket on both ends. "),
    "Systems on the host\u2019s network are reached directly, containers with a bridge by the kernel\u2019s ",
    "translation of their published ports, virtual machines over the bridge of their network device. "
  )
}

# Metrics by which a workload tells what the load generators, and what stands between them and the servers,
# took of the processors' time at the client; and the share up to which that leaves the servers what they
# need.
LOAD_SHARES <- c("driver_share", "proxy_share")
LOAD_MOST <- 50

#' What making the load took of the processors' time, and what half of the load did
#'
#' A workload tells of it by the metrics of LOAD_SHARES, and of half of the load by a series that is another's
#' but for one factor, whose value is `half` instead of `scale-out`, or by a sweep of the throughput along it.
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @return text; NULL where it does not tell
driver_text <- function(evidence, workload) {
  rows <- evidence$comparisons[evidence$comparisons$workload == workload, ]
  shares <- rows[rows$metric %in% LOAD_SHARES & !is.na(rows$mean), ]
  if (!"driver_share" %in% shares$metric) {
    return(NULL)
  }
  labels <- in_sentence(environment_labels(evidence$plan, shares$environment))
  together <- stats::ave(shares$mean, shares$environment, shares$factors, FUN = sum)
  above <- together > LOAD_MOST
  most <- which.max(together)
  driver <- shares$environment == shares$environment[[most]] & shares$factors == shares$factors[[most]] &
    shares$metric == "driver_share"
  said <- function(value, row) linked(paste0(quantity(value, 3), THIN, "%"), source_id(row))
  paste(c(
    paste0("Making the load took at most ", said(together[[most]], shares[most, ]), " of the ",
           "processors\u2019 time at the client (", labels[[most]], factor_text(shares$factors[[most]]), ")",
           if (any(shares$metric == "proxy_share") && any(driver)) {
             paste0(", of which the load generators had ", said(shares$mean[driver], shares[driver, ]))
           },
           if (any(above)) {
             paste0(": more than half, so that in ", listed(unique(labels[above])), " what is measured may ",
                    "be the load and not the servers.")
           } else {
             ", not more than half."
           }),
    half_text(evidence, workload, rows)
  ), collapse = " ")
}

#' What half of the load did
#'
#' @param evidence as from `read_evidence`
#' @param workload its name
#' @param rows of the comparisons, those of the workload
#' @return text; NULL where it was not measured
half_text <- function(evidence, workload, rows) {
  rows <- rows[rows$metric == "throughput" & !is.na(rows$mean), ]
  found <- half_by_name(rows)
  if (is.null(found)) {
    found <- half_of_sweep(planned_workload(evidence$plan, workload)$figures, rows)
  }
  if (is.null(found)) {
    return(NULL)
  }
  reached <- unique(quantity(100 * range(found$kept), 3))
  reached <- linked(paste0(paste(reached, collapse = " to "), THIN, "%"), "records")
  paste0("With half of the ", found$load, " it reached ", reached, " of the throughput: near to 50", THIN,
         "% the load would be what limits, near to 100", THIN, "% what is under it.")
}

#' The throughput of series called `half`, as a share of that of `scale-out`
#'
#' @param rows of the comparisons, those of the throughput
#' @return list: load, what there is half of; kept, a share for each environment and series; NULL for none
half_by_name <- function(rows) {
  half <- rows[grepl("(^|;)[a-z_]+=half(;|$)", rows$factors), ]
  rest <- function(factors) sub("(^|;)[a-z_]+=(half|scale-out)(;|$)", "\\1\\3", factors)
  full <- rows[grepl("=scale-out(;|$)", rows$factors), ]
  share_kept(half, full, rest, "connections")
}

#' The throughput with half of the most load in a sweep, as a share of that with the most
#'
#' @param figures of the workload's declaration, one of which says along which factor the throughput is swept
#' @param rows of the comparisons, those of the throughput
#' @return as from `half_by_name`
half_of_sweep <- function(figures, rows) {
  swept <- Filter(function(figure) identical(figure$metric, "throughput") && !is.null(figure$along), figures)
  if (length(swept) == 0 || nrow(rows) == 0) {
    return(NULL)
  }
  along <- swept[[1]]$along
  load <- factor_numbers(rows$factors, along)
  most <- max(load)
  share_kept(rows[load == most / 2, ], rows[load == most, ], function(factors) without_factor(factors, along),
             paste0(words(along), " (", quantity(most / 2), " instead of ", quantity(most), ")"))
}

#' Means as shares of those in other rows of the same environment and series
#'
#' @param half,full rows of the comparisons
#' @param rest function of factors: those by which the rows belong together
#' @param load what there is half of
#' @return as from `half_by_name`
share_kept <- function(half, full, rest, load) {
  at <- match(paste(half$environment, rest(half$factors)), paste(full$environment, rest(full$factors)))
  kept <- half$mean / full$mean[at]
  kept <- kept[!is.na(kept)]
  if (length(kept) > 0) list(load = load, kept = kept)
}
