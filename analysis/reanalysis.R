# What the original printed, beside what its raw logs give: every value, and every claim of its text.

#' @param folder where `python3 -m strata reanalyse` wrote
#' @param published folder of the printed values and of the claims
#' @return list: tidy (values of the runs that were shown), refused, source, differences, claims
read_reanalysis <- function(folder, published) {
  tidy <- read_table(file.path(folder, "tidy.csv"), text = c("factors", "unit"))
  tidy <- tidy[tidy$selection == "paper", ]
  print <- printed_values(published)
  list(tidy = tidy, refused = read_table(file.path(folder, "unreadable.csv")),
       source = jsonlite::read_json(file.path(folder, "source.json")),
       differences = differences_of(print, tidy), claims = own_claims(published, print, tidy))
}

#' The printed values: Table I with its digits, and the figures as they were read off
#'
#' @return data frame: place, workload, environment, metric, unit, factors, statistic (value, mean, sd, min,
#'   max, deviation_percent), n (values behind it), published (text), tolerance (half of the last digit, or
#'   what a figure can be read to), doubted (whether the raw logs contradict the name of its environment)
printed_values <- function(folder) {
  figures <- read_table(file.path(folder, "ibm-figures.csv"), text = c("published", "factors", "unit"))
  figures <- cbind(place = paste("Figure", figures$figure), figures[-1])
  names <- c(native = "native", docker = "docker", kvm = "vm", kvm_tuned = "vm-tuned")
  rows <- lapply(jsonlite::read_json(file.path(folder, "ibm-table1.json"))$rows, function(row) {
    factors <- paste(names(row$conditions), format(unlist(row$conditions), trim = TRUE), sep = "=",
                     collapse = ";", recycle0 = TRUE)
    stack_rows(lapply(names(row$values), function(name) {
      printed <- vapply(row$values[[name]], as.character, "")
      statistic <- names(printed)
      unit <- ifelse(statistic == "deviation_percent", "%", row$unit)
      data.frame(place = "Table I", workload = row$workload, environment = names[[name]], metric = row$metric,
                 unit = unit, factors = factors, statistic = statistic, n = 10, published = printed,
                 tolerance = 0.5 * 10 ^ -nchar(sub("^[^.]*[.]?", "", printed)))
    }))
  })
  values <- rbind(stack_rows(rows), figures)
  configurations <- jsonlite::read_json(file.path(folder, "ibm-tables.json"))$configurations
  doubted <- Filter(function(one) !is.null(one$doubt), configurations)
  values$doubted <- values$environment %in% vapply(doubted, `[[`, "", "drawn")
  rownames(values) <- NULL
  values
}

#' Every printed value beside the one that the raw logs give
#'
#' The standard deviations of STREAM were printed with the divisor n, all others with n - 1.
#'
#' @return data frame: the columns of `print`, with n_read, recomputed, low and high (of a mean, Student's at
#'   95 %), difference (recomputed less printed), verdict, files
differences_of <- function(print, tidy) {
  key <- function(rows, environment) paste(rows$workload, environment, rows$metric, rows$factors)
  groups <- split(seq_len(nrow(tidy)), key(tidy, tidy$environment))
  # The figures show MB/s of 1000 KB/s.
  tidy$value <- tidy$value / ifelse(tidy$metric == "thread_bandwidth", 1000, 1)
  values <- function(environment) lapply(groups[key(print, environment)], function(at) tidy$value[at])
  own <- values(print$environment)
  found <- mapply(recompute, own, values("native"), print$statistic, print$workload)
  half <- vapply(own, function(x) if (length(x) > 1) half_width(x) else NA_real_, 0)
  half[print$statistic != "mean"] <- NA
  print$n_read <- unname(lengths(own))
  print$recomputed <- unname(found)
  print$low <- print$recomputed - unname(half)
  print$high <- print$recomputed + unname(half)
  print$difference <- print$recomputed - as.numeric(print$published)
  # A printed number stands for all that round to it, whichever way a half is rounded.
  agrees <- abs(print$difference) <= print$tolerance * (1 + 1e-9)
  print$verdict <- ifelse(agrees, ifelse(print$doubted, "label contradicted", "agrees"), "differs")
  print$verdict[print$n_read < print$n] <- "incomplete"
  print$verdict[is.na(print$recomputed)] <- "not available"
  print$files <- vapply(groups[key(print, print$environment)],
                        function(at) paste(unique(tidy$file[at]), collapse = ";"), "")
  print
}

half_width <- function(x) stats::qt(1 - ALPHA / 2, length(x) - 1) * stats::sd(x) / sqrt(length(x))

recompute <- function(x, native, statistic, workload) {
  n <- length(x)
  if (n == 0) return(NA_real_)
  switch(statistic, value = , mean = mean(x), min = min(x), max = max(x),
         sd = stats::sd(x) * if (workload == "stream") sqrt((n - 1) / n) else 1,
         deviation_percent = if (length(native) > 0) 100 * (mean(x) / mean(native) - 1) else NA_real_)
}

#' The claims of the originals, judged by what they printed and by their raw logs
#'
#' @return data frame: as of test_claims, one row for each claim; `source` is printed or raw; n of printed
#'   values is empty, since they are taken as they are
own_claims <- function(published, print, tidy) {
  known <- jsonlite::read_json(file.path(published, "claims.json"))
  own <- jsonlite::read_json(file.path(published, "ibm-own-claims.json"))
  ids <- vapply(known$claims, `[[`, "", "id")
  own$publications <- known$publications
  own$claims <- lapply(own$claims, function(claim) {
    told <- if (claim$id %in% ids) known$claims[[match(claim$id, ids)]] else list()
    told[c("untestable", "conditions", "performance", "note")] <- NULL
    told[names(claim)] <- claim
    if (!is.null(claim$label)) told$note <- claim$label
    told
  })
  levels <- print[print$statistic %in% c("mean", "value"), ]
  levels <- levels[!duplicated(levels[c("workload", "environment", "metric", "factors")]), ]
  levels$value <- as.numeric(levels$published)
  judged <- Map(function(rows, source) {
    words <- gsub(";", ", ", gsub("=", " ", rows$factors))
    rows$series <- paste0(rows$metric, ifelse(words == "", "", ", "), words)
    rows$percentile <- rep(FALSE, nrow(rows))
    here <- list(invalid = character(), sockets = 2, processors = 32, emulated = character(), paired = FALSE,
                 exact = source == "printed")
    found <- test_claims(own, rows, here)
    found$source <- source
    if (here$exact) found$n <- NA
    found
  }, list(levels, tidy), c("printed", "raw"))
  claims <- stack_rows(judged)
  labelled <- vapply(Filter(function(claim) !is.null(claim$label), own$claims), `[[`, "", "id")
  claims$verdict[claims$id %in% labelled & claims$verdict != "not tested"] <- "label contradicted"
  claims
}

ORIGINAL_LABELS <- c(native = "Native", docker = "Docker", "docker-hostnet" = "Docker, host network",
                     "docker-hostnet-layered" = "Docker, host network, AUFS",
                     "docker-layered" = "Docker, AUFS", vm = "KVM", "vm-tuned" = "KVM, tuned")

#' Printed values by place and verdict
verdicts_table <- function(differences) {
  verdicts <- c("agrees", "label contradicted", "differs", "incomplete", "not available")
  counts <- table(factor(differences$place, unique(differences$place)), factor(differences$verdict, verdicts))
  table <- rbind(counts, All = colSums(counts))
  data.frame(Place = rownames(table), Values = rowSums(table), table, check.names = FALSE, row.names = NULL)
}

#' Table I: mean (standard deviation) and deviation from native in %, as printed and recomputed
table_one <- function(differences) {
  rows <- differences[differences$place == "Table I", ]
  decimals <- nchar(sub("^[^.]*[.]?", "", rows$published))
  rows$rounded <- ifelse(is.na(rows$recomputed), NA, sprintf("%.*f", decimals, rows$recomputed))
  rows$rounded <- sub("^-(0([.]0*)?)$", "\\1", rows$rounded)
  cell <- function(one, column) {
    of <- function(name) one[[column]][match(name, one$statistic)]
    if (is.na(of("mean"))) return("")
    deviation <- of("deviation_percent")
    paste0(of("mean"), " (", of("sd"), ")", if (!is.na(deviation)) paste0(", ", deviation, SPACE, "%"))
  }
  by_group(rows, c("workload", "metric", "environment"), function(one) {
    order <- c("differs", "label contradicted", "incomplete", "not available", "agrees")
    data.frame(printed = cell(one, "published"), recomputed = cell(one, "rounded"), n = max(one$n_read),
               verdict = order[order %in% one$verdict][[1]])
  })
}

#' Where all the raw results behind a printed value contradict it
contradictions_table <- function(differences) {
  rows <- differences[differences$verdict == "differs", ]
  interval <- ifelse(is.na(rows$low), "", paste0(" [", number(rows$low, rows$high - rows$low), ", ",
                                                 number(rows$high, rows$high - rows$low), "]"))
  data.frame(Place = rows$place, Workload = rows$workload, Environment = ORIGINAL_LABELS[rows$environment],
             Quantity = gsub("_", " ", rows$statistic), Unit = rows$unit, Printed = rows$published,
             "Recomputed [95\u00a0%]" = paste0(number(rows$recomputed), interval), n = rows$n_read,
             Logs = rows$files, check.names = FALSE, row.names = NULL)
}

#' Every claim with the verdict by the print and that by the raw logs
own_claims_table <- function(claims) {
  told <- function(rows) {
    half <- (rows$high - rows$low) / 2
    value <- number(rows$ratio, ifelse(half %in% 0, NA, half))
    low <- number(rows$low, half)
    high <- number(rows$high, half)
    interval <- ifelse(is.na(rows$n) | is.na(rows$low), "", paste0(" [", low, ", ", high, "]"))
    n <- ifelse(is.na(rows$n), "", paste0(", n = ", rows$n))
    ifelse(rows$verdict == "not tested", "\u2014", paste0(value, interval, n, ": ", rows$verdict))
  }
  print <- claims[claims$source == "printed", ]
  raw <- claims[claims$source == "raw", ]
  first <- order(!grepl("contradicted", paste(print$verdict, raw$verdict)))
  data.frame(Claim = print$statement, Place = print$place, "By the print" = told(print),
             "By the raw logs" = told(raw), check.names = FALSE)[first, ]
}

#' A figure of the original: hollow as printed, filled as recomputed
draw_original <- function(differences, number) {
  rows <- differences[differences$place == paste("Figure", number), ]
  rows <- rows[rows$statistic %in% c("mean", "value"), ]
  factors <- sub("=.*", "", unlist(strsplit(rows$factors, ";")))
  along <- intersect(c("connections", "threads", "percentile"), factors)
  words <- gsub(";", "\n", gsub("[a-z_]+=", "", rows$factors))
  x <- if (length(along) > 0) as.numeric(factor_of(rows$factors, along[[1]])) else words
  points <- rbind(data.frame(rows, x = x, value = as.numeric(rows$published), source = "printed"),
                  data.frame(rows, x = x, value = rows$recomputed, source = "recomputed"))
  points$panel <- paste0(gsub("_", " ", points$metric), " (", points$unit, ")")
  points$label <- factor(ORIGINAL_LABELS[points$environment], ORIGINAL_LABELS)
  points <- points[!is.na(points$value), ]
  ggplot(points, aes(x, value, colour = label, shape = source)) +
    geom_point(size = 1.7, position = if (length(along) > 0) "identity" else position_dodge(width = 0.5)) +
    facet_wrap(vars(panel), scales = "free") +
    scale_shape_manual(values = c(printed = 1, recomputed = 4)) +
    scale_colour_manual(values = stats::setNames(COLOURS[seq_along(ORIGINAL_LABELS)], ORIGINAL_LABELS)) +
    scale_y_continuous(labels = scales::label_comma(), limits = function(x) c(min(0, x[1]), x[2])) +
    labs(x = if (length(along) > 0) along[[1]] else NULL, y = NULL) + guides(colour = guide_legend(nrow = 2))
}
