# The answers that stand on the first page: for each question what every family of environments costs.

#' The answers, as they stand in the box on the first page
#'
#' @param evidence as from `read_evidence`
#' @return list: `lines`, a list by the titles of the questions, each of texts; `notes`, texts
answers_of <- function(evidence) {
  asked <- questions_of(evidence$plan)
  asked <- asked[!duplicated(asked$question), ]
  lines <- lapply(asked$question, answer_lines, evidence = evidence, brief = many_answers(evidence))
  names(lines) <- asked$title
  start <- QUESTIONS[["start-up"]]$title
  if (is.null(lines[[start]])) {
    lines[[start]] <- answer_lines("start-up", evidence, brief = many_answers(evidence))
  }
  lines <- Filter(length, lines)
  claims <- claims_answer(evidence)
  list(lines = c(lines, if (!is.null(claims)) list("Published claims" = claims)),
       notes = c(answers_note(evidence), unasked_sentence(evidence, names(lines))))
}

#' Whether there are so many questions that a page has room for their answers in short words alone
#'
#' @param evidence as from `read_evidence`
#' @return TRUE or FALSE
many_answers <- function(evidence) {
  asked <- questions_of(evidence$plan)
  length(unique(asked$question[asked$workload %in% evidence$comparisons$workload])) > 4
}

#' The answers to one question
#'
#' @param question its name
#' @param evidence as from `read_evidence`
#' @param brief whether in short words
#' @return texts, one for each family of environments that was measured; none where nothing was
answer_lines <- function(question, evidence, brief = FALSE) {
  if (question == "start-up") {
    lines <- start_lines(evidence, brief)
    return(if (brief && length(lines) > 0) paste(lines, collapse = " ") else lines)
  }
  asked <- questions_of(evidence$plan)
  workloads <- asked$workload[asked$question == question]
  rows <- ratios(evidence)
  rows <- rows[rows$workload %in% workloads, ]
  if (nrow(rows) == 0) {
    measured <- evidence$comparisons$workload %in% workloads
    return(if (any(measured)) "Measured, but in no set together with native: there is no ratio to it.")
  }
  answers <- family_answers(rows, evidence$plan, if (brief) brief_answer else family_answer)
  paste0(names(answers), ": ", answers, ".")
}

#' What every family of environments costs
#'
#' @param rows of the comparisons that have a ratio
#' @param plan as from `read_plan`
#' @param answer function of the rows of one family that tells of them
#' @return texts without a full stop, one for each family among the rows, named by it and by how many
#'   environments it has
family_answers <- function(rows, plan, answer = family_answer) {
  families <- families_of(plan)
  of <- families$family[match(rows$environment, families$environment)]
  present <- intersect(unique(families$family), of)
  answers <- vapply(present, function(family) answer(rows[of == family, ]), "")
  names(answers) <- vapply(present, function(family) {
    paste0(family, " (", environments_counted(rows[of == family, ]), ")")
  }, "")
  answers
}

#' Environments of which rows tell, by their number, or by its label where it is one
#'
#' @param rows of the comparisons
#' @return text
environments_counted <- function(rows) {
  count <- length(unique(rows$environment))
  if (count == 1) rows$environment_label[[1]] else counted(count, "environment")
}

#' What the environments of one family cost, over all rows
#'
#' Nothing is pooled: told are how often each finding is met, the least and the greatest ratio, and what all
#' intervals lie within.
#'
#' @param rows of the comparisons that have a ratio
#' @return text
family_answer <- function(rows) {
  told <- if (nrow(rows) == 1) performance_text(rows) else performance_range(rows)
  sets <- paste(n_is(n_text(rows$ratio_n)), if (all(rows$ratio_n == 1)) "set" else "sets",
                if (nrow(rows) > 1) "each")
  paste0(verdicts_text(rows$verdict), " (", told, ", ", linked(trimws(sets), shared_source(rows)), ")",
         seen_text(rows))
}

#' The same in short words
#'
#' @param rows of the comparisons that have a ratio
#' @return text such as "90 % to 116 % [41, 149], n = 3; of 6 ratios 1 faster and 5 open (from 235 %)",
#'   which `brief_note` explains
brief_answer <- function(rows) {
  known <- performance_of(rows)
  decimals <- mapply(percent_decimals, known$low, known$high)
  ends <- c(which.min(known$ratio), which.max(known$ratio))
  told <- span_told(100 * known$ratio, decimals, source_id(rows), paste0(THIN, "%"))
  counts <- table(factor(rows$verdict, VERDICTS))
  counts <- counts[counts > 0]
  words <- c(slower = "slower", faster = "faster", equal = paste("within", percent(MINIMUM_EFFECT, 0)),
             open = "open", unknown = "no interval")[names(counts)]
  open <- rows$smallest_called[rows$verdict == "open"]
  seen <- if (any(!is.na(open))) {
    paste0(" (from ", seen_percent(max(open, na.rm = TRUE), ">"), ")")
  }
  words[names(counts) == "open"] <- paste0("open", seen)
  # What is open comes last, since more is said of it.
  last <- order(names(counts) == "open")
  paste0(told, brief_bounds(known, min(decimals[ends])), ", ",
         linked(n_is(n_text(rows$ratio_n)), shared_source(rows)), "; of ", counted(nrow(rows), "ratio"), " ",
         listed(paste(fixed(as.vector(counts), 0), words)[last]))
}

#' The same over so many ratios that their counts alone are told, in words that need no note
#'
#' @param rows of the comparisons that have a ratio
#' @return text such as "90 % to 116 % of native's performance, 95 % intervals within [41, 149]; of 6 ratios 1
#'   is faster and 5 are not told apart from native"
counted_answer <- function(rows) {
  counts <- table(factor(rows$verdict, VERDICTS))
  counts <- counts[counts > 0]
  be <- ifelse(counts == 1, "is", "are")
  words <- c(slower = "slower", faster = "faster", equal = paste("within", percent(MINIMUM_EFFECT, 0)),
             open = "not told apart from native", unknown = "without an interval")[names(counts)]
  paste0(if (nrow(rows) == 1) performance_text(rows) else performance_range(rows), "; of ",
         counted(nrow(rows), "ratio"), " ", listed(paste(fixed(as.vector(counts), 0), be, words)))
}

#' What the short words mean
#'
#' @return one sentence
brief_note <- function() {
  paste0("Told are the least and the greatest performance as a share of native\u2019s, in brackets what all ",
         "95", THIN, "% intervals lie within, the sets, and how many ratios are slower, faster, or open: ",
         "not told apart from native, as they would be from the difference in parentheses on.")
}

#' What all intervals lie within, in brackets
#'
#' @param known as from `performance_of`
#' @param decimals of the limits in per cent, which are rounded outward
#' @return text that begins with a space; "" where there is no interval
brief_bounds <- function(known, decimals) {
  bounded <- !is.na(known$low) & !is.na(known$high)
  if (!any(bounded)) {
    return("")
  }
  scale <- 100 * 10^decimals
  low <- max(0, floor(min(known$low[bounded]) * scale + 1e-9) / scale)
  high <- ceiling(max(known$high[bounded]) * scale - 1e-9) / scale
  if (is.finite(high)) {
    return(paste0(" ", ratio_interval(low, high, decimals)))
  }
  paste0(" [", fixed(100 * low, decimals), ", no limit]")
}

#' Findings and how often each is met
#'
#' @param verdicts some of VERDICTS
#' @return text such as "slower than native in 3 of 8 ratios, not told apart from it in 5"
verdicts_text <- function(verdicts) {
  minimum <- percent(MINIMUM_EFFECT, 0)
  alone <- c(slower = "slower than native", faster = "faster than native",
             equal = paste("within", minimum, "of native"), open = "no difference from native is shown",
             unknown = "compared with native without an interval")
  counts <- table(factor(verdicts, VERDICTS))
  counts <- counts[counts > 0]
  all <- length(verdicts)
  if (length(counts) == 1) {
    return(paste0(alone[[names(counts)]], if (all > 1) {
      paste0(" in ", if (names(counts) == "open") "any of " else "all ", fixed(all, 0), " ratios")
    }))
  }
  among <- c(alone[c("slower", "faster", "equal")], open = "not told apart from native",
             unknown = "without an interval")
  named <- among[names(counts)]
  named[-1] <- sub("native", "it", named[-1], fixed = TRUE)
  parts <- paste(named, "in", fixed(as.vector(counts), 0))
  parts[[1]] <- paste(parts[[1]], "of", fixed(all, 0), "ratios")
  listed(parts)
}

#' The performance of one row
#'
#' @param rows one row of the comparisons
#' @return text
performance_text <- function(rows) {
  known <- performance_of(rows)
  limits <- if (is.finite(known$high)) known$high else NA_real_
  paste(linked(percent_interval(known$ratio, known$low, limits), source_id(rows)),
        "of native\u2019s performance")
}

#' The range of performance of several rows, and what their intervals lie within
#'
#' @param rows of the comparisons
#' @return text
performance_range <- function(rows) {
  known <- performance_of(rows)
  decimals <- mapply(percent_decimals, known$low, known$high)
  ends <- c(which.min(known$ratio), which.max(known$ratio))
  paste0(span_told(100 * known$ratio, decimals, source_id(rows), paste0(THIN, "%")),
         " of native\u2019s performance", bounds_text(rows, known, min(decimals[ends])))
}

#' What all intervals lie within
#'
#' @param rows of the comparisons
#' @param known as from `performance_of`
#' @param decimals of the limits in per cent, which are rounded outward
#' @return text that begins with a comma
bounds_text <- function(rows, known, decimals) {
  bounded <- !is.na(known$low) & !is.na(known$high)
  name <- paste0("95", THIN, "% intervals")
  if (!any(bounded)) {
    return(paste(", without", name))
  }
  scale <- 100 * 10^decimals
  low <- floor(min(known$low[bounded]) * scale + 1e-9) / scale
  high <- ceiling(max(known$high[bounded]) * scale - 1e-9) / scale
  to <- shared_source(rows)
  some <- if (all(bounded)) name else paste(name, "where there are any")
  if (low <= 0 && is.finite(high)) {
    return(paste0(", no 95", THIN, "% interval above ", linked(percent(high, decimals), to)))
  }
  if (!is.finite(high)) {
    return(paste0(", ", some, if (low > 0) paste(" from", linked(percent(low, decimals), to)),
                  " without an upper limit"))
  }
  paste0(", ", some, " within ", linked(ratio_interval(low, high, decimals), to))
}

#' What could have been seen where nothing was
#'
#' @param rows of the comparisons
#' @return text that begins with a semicolon; "" where nothing is open
seen_text <- function(rows) {
  open <- rows[rows$verdict == "open" & !is.na(rows$smallest_called), ]
  if (nrow(open) == 0) {
    return("")
  }
  worst <- open[which.max(open$smallest_called), ]
  paste0("; a difference of ", linked(seen_percent(worst$smallest_called), source_id(worst)),
         " would have been called", if (nrow(open) < nrow(rows)) " where it is open" else
           if (nrow(rows) > 1) " in each")
}

#' How long it takes until environments are up
#'
#' @param evidence as from `read_evidence`
#' @param brief whether without what a workload measured of it
#' @return texts, one for each family; none where no record tells
start_lines <- function(evidence, brief = FALSE) {
  rows <- evidence$footprint
  up <- rows[rows$quantity == "up_seconds" & rows$n > 0, ]
  boot <- rows[rows$quantity == "boot_seconds" & rows$n > 0, ]
  families <- families_of(evidence$plan)
  family <- function(of) families$family[match(of$environment, families$environment)]
  up_lines <- vapply(intersect(unique(families$family), family(up)), function(name) {
    own <- up[family(up) == name, ]
    # What `boot_seconds` tells of a machine that is restored is how long the boot took that was saved.
    cold <- boot[family(boot) == name, ]
    way <- start_way(own$environment, evidence)
    labels <- environment_labels(evidence$plan, own$environment)
    # Several are told of by their family.
    paste0(if (name == "Native") {
      "Native is"
    } else {
      paste0(name, " (", if (nrow(own) == 1) labels else counted(nrow(own), "environment"), ") are")
    }, " up in ", seconds_text(own), way, if (grepl("restored", way) && nrow(cold) > 0) {
      paste0("; to boot anew took ", seconds_text(cold), " until the first command")
    }, ".")
  }, "", USE.NAMES = FALSE)
  c(up_lines, if (!brief) command_lines(evidence))
}

#' How the virtual machines of environments began whose time is told
#'
#' @param environments names
#' @param evidence as from `read_evidence`
#' @return text such as ", restored from a snapshot"; "" where none of them has a virtual machine
start_way <- function(environments, evidence) {
  systems <- Filter(function(one) {
    one$environment %in% environments && is.list(field(one, "system", "vm"))
  }, single_systems(evidence$records))
  systems <- systems[!saved_first(systems)]
  restored <- !is.na(field_numbers(systems, "system", "vm", "restore_seconds"))
  ways <- c(if (any(restored)) "restored from a snapshot", if (any(!restored)) "booted")
  if (length(ways) > 0) paste0(", ", listed(ways, "or")) else ""
}

#' Times of environments
#'
#' @param rows of the footprints
#' @return text such as "0.14 s to 0.26 s (95 % intervals within [0.14, 0.27], n = 118)"
seconds_text <- function(rows) {
  half <- (rows$mean_high - rows$mean_low) / 2
  decimals <- mapply(decimals_for, half, rows$mean)
  span <- span_told(rows$mean, decimals, environment_list(rows$environment), paste0(NO_BREAK, "s"))
  known <- !is.na(half)
  n <- linked(paste0(n_is(n_text(rows$n)), if (nrow(rows) > 1) " each",
                     if (any(rows$n < rows$systems)) paste(" of", n_text(rows$systems))), "records")
  if (!any(known)) {
    return(paste0(span, " (", n, ")"))
  }
  places <- min(decimals[known])
  low <- floor(min(rows$mean_low[known]) * 10^places + 1e-9) / 10^places
  high <- ceiling(max(rows$mean_high[known]) * 10^places - 1e-9) / 10^places
  within <- if (nrow(rows) == 1) {
    interval(rows$mean_low, rows$mean_high, decimals)
  } else if (low <= 0) {
    paste0("no 95", THIN, "% interval above ", fixed(high, places), NO_BREAK, "s")
  } else {
    paste0("95", THIN, "% intervals within ", interval(low, high, places))
  }
  paste0(span, " (", linked(within, "records"), ", ", n, ")")
}

#' How long it takes until a first command has ended, where a workload measured that
#'
#' @param evidence as from `read_evidence`
#' @return texts, one for each metric that is a time; none where there is no such workload
command_lines <- function(evidence) {
  asked <- questions_of(evidence$plan)
  rows <- told(evidence)
  rows <- rows[rows$workload %in% asked$workload[asked$question == "start-up"] & rows$unit == "s", ]
  vapply(unique(rows$series), function(series) {
    own <- rows[rows$series == series, ]
    known <- levels_of(own)
    decimals <- mapply(decimals_for, (known$high - known$low) / 2, known$value)
    values <- trimws(paste0(fixed(known$value, decimals), NO_BREAK, "s ",
                            interval(known$low, known$high, decimals)))
    paste0(own$metric_label[[1]], ": ",
           listed(paste(in_sentence(own$environment_label), linked(values, source_id(own)))), " (",
           linked(n_is(n_text(own$n)), shared_source(own)), ").")
  }, "")
}

#' How the published claims fared, on the first page
#'
#' @param evidence as from `read_evidence`
#' @return text, or NULL without claims
claims_answer <- function(evidence) {
  if (nrow(evidence$claims) > 0) {
    paste(c(claims_text(evidence, reasons = !many_answers(evidence)), transferred_text(evidence)),
          collapse = " ")
  }
}

#' What the words of the answers mean
#'
#' @param evidence as from `read_evidence`
#' @return texts
answers_note <- function(evidence) {
  rows <- ratios(evidence)
  emulated <- any(evidence$comparisons$environment %in% emulated_environments(evidence$plan))
  c(
    if (nrow(rows) > 0) {
      paste0("Performance: a rate, or the inverse of a time or a cost; ratios are of means paired by set, ",
             "and a difference is called where it is significant among all comparisons and above ",
             percent(MINIMUM_EFFECT, 0), ".")
    },
    if (many_answers(evidence)) brief_note(),
    if (emulated) {
      # Where there is little room, what they run on is said above, in the abstract.
      paste0("Emulated machines", if (!many_answers(evidence)) {
        " run on QEMU\u2019s translator, since hardware acceleration was not proven here: they"
      }, " say nothing about KVM",
             if (length(left_out(evidence, rows$workload)) > 0) ", and were not asked for every workload",
             ".")
    }
  )
}

#' Which questions have no answer here
#'
#' @param evidence as from `read_evidence`
#' @param answered titles
#' @return one sentence, or NULL where all have
unasked_sentence <- function(evidence, answered) {
  titles <- vapply(QUESTIONS, `[[`, "", "title")
  open <- lower_first(setdiff(titles, answered))
  asked <- questions_of(evidence$plan)
  measured <- asked$question[asked$workload %in% evidence$comparisons$workload]
  # A workload that names no question may answer any.
  if (length(open) > 0 && all(measured %in% names(QUESTIONS))) {
    paste0("Of ", listed(open), " there is no data here.")
  }
}
