# What the originals claim, tested by their own numbers: by what they printed, and by their raw results.

#' Reads how the originals' own numbers test their claims
#'
#' @param root folder of the project
#' @return list: `claims`, as in published/ibm-own-claims.json, each with the statement, place, published
#'   value and tolerance of its claim in claims.json where it is one of those
#' @section Errors: another format; a claim that neither file tells of
read_own_claims <- function(root) {
  path <- file.path(root, "published", "ibm-own-claims.json")
  own <- read_json(path)
  if (!identical(as.double(own$format), 1)) {
    stop_about(path, "not tests of claims of format 1")
  }
  known <- read_claims(file.path(root, "published", "claims.json"))$claims
  names(known) <- vapply(known, `[[`, "", "id")
  lapply(own$claims, function(claim) {
    told <- c(claim, known[[claim$id]][setdiff(names(known[[claim$id]]), names(claim))])
    if (is.null(told$statement)) {
      stop_about(path, claim$id, ": it is none of claims.json, and has no statement")
    }
    told
  })
}

#' Every series that was printed or whose raw results were read
#'
#' @param published as from `read_published_values`
#' @param tidy table of values
#' @return data frame: workload, environment, metric, factors; `printed`, NA where only the raw results have
#'   it; `place`; `planned`, runs behind it; `n`, `mean` and `median` of the raw results; and `rows` of `tidy`
own_values <- function(published, tidy) {
  key <- c("workload", "environment", "metric", "factors")
  joined <- function(table) do.call(paste, c(table[key], sep = "\n"))
  levels <- published[published$statistic %in% c("mean", "value"), ]
  levels <- levels[!duplicated(joined(levels)), ]
  used <- which(tidy$selection == "paper")
  rows <- split(used, factor(joined(tidy[used, ]), unique(joined(tidy[used, ]))))
  only <- tidy[vapply(rows[setdiff(names(rows), joined(levels))], `[[`, 0L, 1), key]
  values <- rbind(
    data.frame(levels[key], printed = as.numeric(levels$published), place = levels$place,
               planned = levels$planned),
    if (nrow(only) > 0) data.frame(only, printed = NA_real_, place = "", planned = 1)
  )
  rownames(values) <- NULL
  values$rows <- unname(rows[joined(values)])
  # The print has fio's rates in MB/s of 1000 KB/s.
  scale <- ifelse(values$workload == "fio" & values$metric == "thread_bandwidth", 1 / 1000, 1)
  of <- function(f) vapply(values$rows, function(at) if (is.null(at)) NA_real_ else f(tidy$value[at]), 0)
  values$n <- lengths(values$rows)
  values$mean <- of(mean) * scale
  values$median <- of(stats::median) * scale
  values
}

#' Whether series have all of some factors
#'
#' @param factors texts "name=value;..."
#' @param wanted named list, or a list of several, of which any will do; NULL for all series
#' @return logical vector
any_factors <- function(factors, wanted) {
  if (is.null(wanted)) {
    return(rep(TRUE, length(factors)))
  }
  alternatives <- if (is.null(names(wanted))) wanted else list(wanted)
  Reduce(`|`, lapply(alternatives, has_factors, factors = factors))
}

#' The rows of one side of a comparison
#'
#' @param values as from `own_values`
#' @param test an entry of the tests of a claim
#' @param environment its name
#' @param factors as of `any_factors`
#' @param column "printed", or that of the raw results
#' @return rows of `values`; where the test is at the peak of another metric, only the one at that setting
side_of <- function(values, test, environment, factors, column) {
  own <- values[values$workload == test$workload & values$environment == environment, ]
  rows <- own[own$metric %in% unlist(test$metrics) & any_factors(own$factors, factors), ]
  if (!is.null(test$peak)) {
    other <- own[own$metric == test$peak & !is.na(own[[column]]), ]
    rows <- rows[rows$factors %in% other$factors[which.max(other[[column]])], ]
  }
  rows
}

#' The parts of a test: what it compares, in each pair of environments and each setting
#'
#' @param values as from `own_values`
#' @param test an entry of the tests of a claim
#' @param column of `values` that is compared: "printed", "mean" or "median"
#' @return data frame: `at`, texts; `value`, NA where a side is missing; `n` and `planned`, of the side with
#'   fewer; `first` and `second`, numbers of the rows of `values`
test_parts <- function(values, test, column) {
  values$row <- seq_len(nrow(values))
  how <- c(test$how, "ratio")[[1]]
  parts <- lapply(test$pairs, function(pair) {
    first <- side_of(values, test, pair[[1]], test$factors, column)
    if (nrow(first) == 0) {
      return(NULL)
    }
    second <- first
    if (how != "level") {
      versus <- if (is.null(test$versus)) test$factors else test$versus
      second <- side_of(values, test, pair[[2]], versus, column)
      matched <- if (is.null(test$versus) && is.null(test$peak)) {
        match(paste(first$metric, first$factors), paste(second$metric, second$factors))
      } else {
        match(first$metric, second$metric)
      }
      second <- second[matched, ]
    }
    a <- first[[column]] * c(test$scale, 1)[[1]]
    b <- second[[column]] * c(test$scale, 1)[[1]]
    short <- pmin(first$n / first$planned, second$n / second$planned, na.rm = TRUE)
    least <- ifelse(first$n / first$planned <= short, first$row, second$row)
    data.frame(
      at = paste0(paste(original_labels(unique(unlist(pair))), collapse = " to "),
                  # Where several metrics are compared, each is named.
                  if (length(test$metrics) > 1) paste0(", ", first$metric),
                  ifelse(first$factors == "", "", ", "), setting_words(first$factors),
                  if (!is.null(test$versus)) paste(" to", unlist(test$versus))),
      value = switch(how, level = a, ratio = a / b, difference = a - b),
      n = values$n[least], planned = values$planned[least], first = first$row, second = second$row
    )
  })
  do.call(rbind, parts)
}

#' One value of several parts, where a test is about their mean or the largest of them
#'
#' @param parts as from `test_parts`
#' @param test an entry of the tests of a claim
#' @return the same with one row, or unchanged where every part has to pass
together_as <- function(parts, test) {
  over <- c(test$over, "each")[[1]]
  if (over == "each" || is.null(parts) || nrow(parts) == 0) {
    return(parts)
  }
  if (anyNA(parts$value)) {
    parts$value[!is.na(parts$value)] <- NA
    return(parts[which.min(parts$n / parts$planned), ])
  }
  fewest <- parts[which.min(parts$n / parts$planned), ]
  shown <- if (over == "max") parts[which.max(parts$value), ] else fewest
  shown$value <- if (over == "max") max(parts$value) else mean(parts$value)
  shown$n <- fewest$n
  shown$planned <- fewest$planned
  if (over == "mean") {
    shown$at <- paste0(sub(", [^,]*$", "", sub(", test [^,]*", "", shown$at)), ", mean of ",
                       counted(nrow(parts), "setting"))
    shown$first <- shown$second <- NA
  }
  shown
}

#' The parts of a claim, with the limits that it sets
#'
#' @param claim as from `read_own_claims`
#' @param values as from `own_values`
#' @param printed TRUE for what was printed, FALSE for the raw results
#' @return rows of `test_parts` with `low`, `high`, `how`, `unit`, `whole`, whether all that is behind the
#'   print is there, and `beyond`, by how much the value is outside (negative within); NULL for none
limited_parts <- function(claim, values, printed) {
  first <- function(x, none) c(unlist(x), none)[[1]]
  parts <- do.call(rbind, lapply(claim$tests, function(test) {
    # A printed mean is no median.
    if (printed && !is.null(test$statistic)) {
      return(NULL)
    }
    column <- if (printed) "printed" else first(test$statistic, "mean")
    found <- together_as(test_parts(values, test, column), test)
    if (!is.null(found) && nrow(found) > 0) {
      cbind(found, low = first(test$low, NA_real_), high = first(test$high, NA_real_),
            how = first(test$how, "ratio"), unit = first(test$unit, "ratio"))
    }
  }))
  if (is.null(parts) || all(is.na(parts$value))) {
    return(NULL)
  }
  parts$whole <- !is.na(parts$value) & (printed | parts$n >= parts$planned)
  parts$beyond <- pmax(ifelse(is.na(parts$low), -Inf, parts$low - parts$value),
                       ifelse(is.na(parts$high), -Inf, parts$value - parts$high))
  parts
}

#' A claim, tested by what was printed or by the raw results
#'
#' @inheritParams limited_parts
#' @return list: `part`, the row of `limited_parts` that decides, or NULL; `verdict`: follows; contradicted;
#'   number contradicted, where the claim's statement holds but its number does not; label contradicted;
#'   incomplete; or not available
test_own_claim <- function(claim, values, printed) {
  parts <- limited_parts(claim, values, printed)
  if (is.null(parts)) {
    return(list(part = NULL, verdict = NOT_AVAILABLE))
  }
  outside <- parts$whole & parts$beyond > 1e-9
  verdict <- if (all(parts$whole)) "follows" else if (printed) NOT_AVAILABLE else "incomplete"
  if (any(outside)) {
    holds <- statement_holds(claim, parts$value[parts$whole])
    verdict <- if (holds) "number contradicted" else "contradicted"
  }
  if (!is.null(claim$label) && !verdict %in% c("incomplete", NOT_AVAILABLE)) {
    verdict <- "label contradicted"
  }
  shown <- list(outside, !parts$whole & !is.na(parts$value), parts$whole)
  shown <- Filter(any, shown)[[1]]
  list(part = parts[shown, ][which.max(parts$beyond[shown] / abs(parts$value[shown])), ], verdict = verdict)
}

#' Whether a claim's statement holds, though its number may not
#'
#' @param claim as from `read_own_claims`
#' @param value ratios
#' @return TRUE where all lie within the tolerance of claims.json; FALSE where the claim has none there
statement_holds <- function(claim, value) {
  limits <- claim$tolerance
  if (is.null(limits)) {
    return(FALSE)
  }
  all(value >= c(limits$low, -Inf)[[1]] & value <= c(limits$high, Inf)[[1]])
}

#' All claims of the originals, tested by their own numbers
#'
#' @param claims as from `read_own_claims`
#' @param published as from `read_published_values`
#' @param tidy table of values
#' @return data frame with the columns of OWN_CLAIM_COLUMNS, a row for each claim
test_own_claims <- function(claims, published, tidy) {
  values <- own_values(published, tidy)
  rows <- lapply(claims, function(claim) {
    print <- test_own_claim(claim, values, TRUE)
    raw <- test_own_claim(claim, values, FALSE)
    shown <- if (is.null(raw$part)) print$part else raw$part
    first <- function(part, name, none) if (is.null(part)) none else part[[name]]
    list(
      id = claim$id, publication = claim$publication, place = claim$place, statement = claim$statement,
      workload = claim$workload, published = as.double(c(claim$published$value, NA)[[1]]),
      unit = c(claim$published$unit, first(shown, "unit", ""))[[1]],
      low = as.double(first(shown, "low", NA)), high = as.double(first(shown, "high", NA)),
      how = first(shown, "how", ""), printed = as.double(first(print$part, "value", NA)),
      printed_at = printed_at(print$part, values), printed_verdict = print$verdict,
      raw = as.double(first(raw$part, "value", NA)), raw_low = raw_limits(raw$part, values, tidy)[[1]],
      raw_high = raw_limits(raw$part, values, tidy)[[2]], raw_at = first(raw$part, "at", ""),
      raw_n = as.double(first(raw$part, "n", NA)), raw_planned = as.double(first(raw$part, "planned", NA)),
      raw_verdict = raw$verdict, note = c(claim$none, claim$label, "")[[1]],
      files = files_of_part(raw$part, values, tidy)
    )
  })
  bound <- lapply(names(OWN_CLAIM_COLUMNS), function(name) vapply(rows, `[[`, rows[[1]][[name]], name))
  as.data.frame(stats::setNames(bound, names(OWN_CLAIM_COLUMNS)))
}

#' Where a value of the print stands
#'
#' @param part as from `test_own_claim`
#' @param values as from `own_values`
#' @return text such as "Figure 9: Docker to Native, connections 4"; "" without a part
printed_at <- function(part, values) {
  if (is.null(part)) {
    return("")
  }
  place <- if (is.na(part$first)) NULL else values$place[[part$first]]
  paste(c(place, part$at), collapse = ": ")
}

#' The 95 % interval of a ratio of two sets of raw results
#'
#' @inheritParams printed_at
#' @param tidy table of values
#' @return two numbers, NA where the part is no ratio of two series, or one of them has a single value
raw_limits <- function(part, values, tidy) {
  if (is.null(part) || part$how != "ratio" || anyNA(c(part$first, part$second))) {
    return(c(NA_real_, NA_real_))
  }
  of <- function(row) tidy$value[values$rows[[row]]]
  found <- independent_ratio(of(part$second), of(part$first))
  c(found$low, found$high)
}

#' The logs that a tested value is from
#'
#' @inheritParams raw_limits
#' @return their paths, separated by ";"; "" where there are none, or too many to be one comparison's
files_of_part <- function(part, values, tidy) {
  rows <- if (!is.null(part) && !anyNA(c(part$first, part$second))) c(part$first, part$second)
  paste(unique(tidy$file[unlist(values$rows[rows])]), collapse = ";")
}
