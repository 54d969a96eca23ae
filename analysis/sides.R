# Several testbeds, or one at several dates: every side against the first, and against the one before it.

#' One side of a comparison
#'
#' @param told name, results (its folder), source, sha256
#' @return list: what read_results gives, with these, image (facts and packages) and ratios (its own
#'   comparisons with native, or NULL)
read_side <- function(told) {
  side <- read_results(told$results)
  read <- function(name) {
    path <- file.path(told$results, name)
    if (file.exists(path)) jsonlite::read_json(path)
  }
  side$image <- c(read("image.json"), packages = list(read("image-manifest.json")$packages))
  ratios <- file.path(told$results, "comparisons.csv")
  if (file.exists(ratios)) side$ratios <- read_table(ratios, text = c("factors", "direction", "why"))
  c(side, told)
}

#' The comparisons: one family of tests
#'
#' Sides are independent samples, since no block holds runs of both.  An emulated machine is compared with
#' emulated ones alone.
#'
#' @return data frame: from, to, emulated, workload, series, metric, factors, unit, better, environment,
#'   label, question, headline, n_from, mean_from, n_to, mean_to, ratio (of performance), low, high, p,
#'   p_adjusted, p_equivalent, outcome, why, differs (parameters and layers that are not the same)
#' @section Errors: sides of different scales
compare_sides <- function(sides, effect = MARGIN) {
  scales <- vapply(sides, function(side) side$plan$scale, "")
  other <- which(scales != scales[[1]])
  if (length(other) > 0) {
    stop(sides[[1]]$name, " is at scale ", scales[[1]], " and ", sides[[other[[1]]]]$name, " at scale ",
         scales[[other[[1]]]], "; only runs of one scale can be compared", call. = FALSE)
  }
  later <- seq_along(sides)[-1]
  pairs <- unique(rbind(data.frame(from = 1, to = later), data.frame(from = later - 1, to = later)))
  rows <- stack_rows(Map(function(from, to) {
    compare_two(sides[[from]], sides[[to]], -log(1 - effect))
  }, pairs$from, pairs$to))
  rows$p_adjusted <- stats::p.adjust(rows$p, "BH")
  verdict <- verdict_of(rows$p_adjusted, rows$p_equivalent)
  rows$outcome <- ifelse(verdict != "different", verdict, ifelse(rows$ratio < 1, "slower", "faster"))
  rows$outcome[is.na(rows$low)] <- "no interval"
  rows
}

KEY <- c("emulated", "environment", "workload", "metric", "unit", "better", "factors")

compare_two <- function(first, second, edge) {
  sides <- lapply(list(first, second), function(side) {
    apart <- cbind(side$emulated, emulated = rep(TRUE, nrow(side$emulated)))
    rbind(cbind(side$tidy, emulated = rep(FALSE, nrow(side$tidy))), apart)
  })
  keyed <- lapply(sides, function(rows) do.call(paste, c(rows[KEY], sep = "\r")))
  both <- rbind(sides[[1]], sides[[2]])
  series <- both[!duplicated(unlist(keyed)), ]
  differs <- differing(first, second)
  stack_rows(lapply(seq_len(nrow(series)), function(i) {
    one <- series[i, ]
    key <- do.call(paste, c(one[KEY], sep = "\r"))
    values <- Map(function(rows, keys) rows$value[keys == key], sides, keyed)
    x <- if (one$better == "lower") values else rev(values)
    if (all(lengths(values) > 0)) {
      found <- compare_samples(x[[1]], x[[2]], percentile = one$percentile, edge = edge)
    } else {
      side <- if (length(values[[1]]) > 0) first$name else second$name
      found <- data.frame(ratio = NA_real_, low = NA_real_, high = NA_real_, p = NA_real_,
                          p_equivalent = NA_real_, why = paste("measured on", side, "alone"))
    }
    average <- function(v) if (length(v) > 0) mean(v) else NA_real_
    shown <- c(KEY, "series", "label", "question", "headline")
    found <- found[c("ratio", "low", "high", "p", "p_equivalent", "why")]
    cbind(data.frame(from = first$name, to = second$name), one[shown], n_from = length(values[[1]]),
          mean_from = average(values[[1]]), n_to = length(values[[2]]), mean_to = average(values[[2]]), found,
          differs = differs(one$environment, one$workload), row.names = NULL)
  }))
}

# A function of environment and workload: which parameters, and whether the layers, are not the same.
differing <- function(first, second) {
  about <- function(side) vapply(side$records, function(one) paste(one$environment, one$workload), "")
  at <- lapply(list(first, second), about)
  function(environment, workload) {
    found <- Map(function(side, at) side$records[at == paste(environment, workload)], list(first, second), at)
    if (any(lengths(found) == 0)) return("")
    cells <- lapply(found, `[[`, 1)
    names <- sort(unique(unlist(lapply(cells, function(one) names(one$parameters)))), method = "radix")
    same <- vapply(names, function(name) {
      identical(cells[[1]]$parameters[[name]], cells[[2]]$parameters[[name]])
    }, NA)
    layers <- identical(cells[[1]]$system$layers, cells[[2]]$system$layers)
    paste(c(names[!same], if (!layers) "layers"), collapse = ";")
  }
}

#' Whatever was observed to differ in the origin of the sides
#'
#' @return data frame: item, and a column for each side (all values that were seen, parted by " | ")
origins_apart <- function(sides) {
  facts <- lapply(sides, facts_of_side)
  items <- sort(unique(unlist(lapply(facts, names))), method = "radix")
  values <- lapply(facts, function(known) {
    found <- unname(known[items])
    ifelse(is.na(found), "not available", found)
  })
  names(values) <- vapply(sides, `[[`, "", "name")
  table <- data.frame(item = items, values, check.names = FALSE)
  apart <- lengths(apply(table[-1], 1, unique, simplify = FALSE)) > 1
  table[apart, ]
}

facts_of_side <- function(side) {
  of_record <- function(one) {
    inside <- one$observed$inside
    # Named after the system, which is another one in every block.
    inside$cgroup <- NULL
    told <- list(one$observed$host$static, one$observed$client, inside, list(layers = one$system$layers),
                 one$parameters, list(revision = one$source$revision))
    stats::setNames(told, c("host", "client", one$environment, one$environment, one$workload, "source"))
  }
  told <- unlist(lapply(unname(side$records), of_record), recursive = FALSE)
  planned <- side$plan[intersect(c("machine", "seed", "order", "repetitions", "image"), names(side$plan))]
  flat <- unlist(c(planned, list(built = side$image), told))
  tapply(as.character(flat), names(flat), function(x) paste(sort(unique(x)), collapse = " | ")) |> unlist()
}

#' The outcome, in words and counts
#'
#' @return list: outcome ("difference"; "no difference", where something is decided; "undecided", where
#'   nothing is; "nothing to compare", where nothing has an interval), text, compared (rows with an interval),
#'   and how many rows came out how
outcome_of_sides <- function(rows, sides, effect) {
  counts <- as.list(table(factor(rows$outcome, OUTCOMES)))
  compared <- sum(rows$outcome != "no interval")
  outcome <- if (compared == 0) "nothing to compare"
  else if (counts$slower + counts$faster > 0) "difference"
  else if (counts$equivalent > 0) "no difference"
  else "undecided"
  without <- counts[["no interval"]]
  text <- switch(outcome,
    "nothing to compare" = paste("Of", without, "comparisons none has an interval: nothing can be said."),
    undecided = paste0(counts$undecided, " of ", compared, " comparisons undecided: nothing can be said of ",
                       "differences of more than ", format(100 * effect), " %",
                       if (without > 0) paste0("; ", without, " more have no interval"), "."),
    sides_in_words(rows, sides, effect))
  c(list(outcome = outcome, text = text, compared = compared), counts)
}

# Every side beside the one before it and beside the first, each with how many series that rests on.
sides_in_words <- function(rows, sides, effect) {
  names <- vapply(sides, `[[`, "", "name")
  before <- match(rows$from, names) == match(rows$to, names) - 1
  said <- function(rows) {
    vapply(unique(rows$to), function(name) {
      own <- factor(rows$outcome[rows$to == name], OUTCOMES)
      counts <- table(own)[c("slower", "faster", "equivalent", "undecided")]
      if (sum(counts) == 0) return(paste(name, "has no series that can be compared"))
      found <- counts[c("slower", "faster")]
      found <- found[found > 0]
      shown <- counts[c("equivalent", "undecided")]
      shown <- paste(shown[shown > 0], names(shown)[shown > 0], collapse = ", ")
      of <- paste(sum(counts), "series", if (shown != "") paste0("(", shown, ")"))
      if (length(found) > 0) paste(name, "is", paste(names(found), "in", found, collapse = " and "), "of", of)
      else if (counts[["equivalent"]] > 0) paste(name, "is not found to differ in any of", of)
      else paste(name, "is undecided in all", sum(counts), "series")
    }, "") |> trimws() |> paste(collapse = "; ")
  }
  text <- paste0("By more than ", format(100 * effect), " %, each compared with the one before it: ",
                 said(rows[before, ]), ".")
  if (all(before)) text else paste0(text, " Compared with ", names[[1]], ": ", said(rows[!before, ]), ".")
}
