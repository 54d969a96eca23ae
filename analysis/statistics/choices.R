# What a single choice costs: pairs of environments that differ in exactly one, found from their layers, and
# the ratio of each.  What a workload cannot notice is a control.

#' The pairs of environments that differ in exactly one choice
#'
#' Two stacks of layers differ in one choice where they are equal but for one option of one layer, or where
#' one of them has one layer more.  An option that holds several settings follows from the one that names them
#' (a profile), and is none of its own.
#'
#' @param plan as from `read_plan`
#' @return data frame, a row for each pair that can be measured: base, environment (the one that comes later
#'   in the plan, or has the layer more), layer, option ("" for a layer more), from and to (values of the
#'   option; for a layer more "" and where it lies, "below" another or on "top"), and touches: "network" or
#'   "data" where the files of the layers tell of no other difference, else ""
choice_pairs <- function(plan) {
  entries <- Filter(function(entry) isTRUE(entry$available), plan$environments)
  none <- data.frame(base = character(), environment = character(), layer = character(), option = character(),
                     from = character(), to = character(), touches = character())
  pairs <- if (length(entries) > 1) utils::combn(names(entries), 2, simplify = FALSE)
  found <- lapply(pairs, function(pair) {
    choice <- single_choice(entries[[pair[[1]]]], entries[[pair[[2]]]])
    if (!is.null(choice)) {
      pair <- if (choice$reversed) rev(pair) else pair
      data.frame(base = pair[[1]], environment = pair[[2]],
                 choice[c("layer", "option", "from", "to", "touches")])
    }
  })
  do.call(rbind, c(list(none), found))
}

#' The one choice in which two environments differ
#'
#' @param first,second entries of the plan's environments
#' @return list: layer, option, from, to and touches, as of `choice_pairs`, and `reversed`, whether the first
#'   has the layer more; NULL where they differ in none or in more
single_choice <- function(first, second) {
  stacks <- lapply(list(first$layers, second$layers), lapply, function(layer) {
    # The order in which the config names options says nothing.
    lapply(layer, function(options) options[sort(as.character(names(options)))])
  })
  sizes <- lengths(stacks)
  if (diff(sizes) != 0) {
    near <- abs(diff(sizes)) == 1
    return(if (near) added_layer(stacks[[which.min(sizes)]], stacks[[which.max(sizes)]], diff(sizes) < 0))
  }
  at <- which(!mapply(identical, stacks[[1]], stacks[[2]]))
  if (length(at) != 1 || names(stacks[[1]][[at]]) != names(stacks[[2]][[at]])) {
    return(NULL)
  }
  options <- lapply(stacks, function(stack) stack[[at]][[1]])
  keys <- unique(unlist(lapply(options, names)))
  differing <- Filter(function(key) !identical(options[[1]][[key]], options[[2]][[key]]), keys)
  named <- Filter(function(key) !any(vapply(options, function(one) is.list(one[[key]]), NA)), differing)
  if (length(named) == 0 && length(differing) == 1) {
    # Of one and the same profile: then what it holds may be chosen apart from its name.
    options <- lapply(options, function(one) as.list(one[[differing]]))
    keys <- unique(unlist(lapply(options, names)))
    named <- Filter(function(key) !identical(options[[1]][[key]], options[[2]][[key]]), keys)
  }
  if (length(named) != 1) {
    return(NULL)
  }
  told <- lapply(list(first, second), function(entry) entry$told[[at]])
  heads <- unique(unlist(lapply(told, names)))
  touches <- Filter(function(head) !identical(told[[1]][[head]], told[[2]][[head]]), heads)
  list(layer = names(stacks[[1]][[at]]), option = named, from = as_word(options[[1]][[named]]),
       to = as_word(options[[2]][[named]]),
       touches = if (length(touches) == 1 && touches %in% c("network", "data")) touches else "",
       reversed = FALSE)
}

#' The one layer that a stack has more than another
#'
#' @param shorter,longer stacks of layers
#' @param reversed as of `single_choice`
#' @return as from `single_choice`
added_layer <- function(shorter, longer, reversed) {
  added <- Filter(function(i) identical(longer[-i], shorter), seq_along(longer))
  if (length(added) > 0) {
    list(layer = names(longer[[added[[1]]]]), option = "", from = "",
         to = if (added[[1]] < length(longer)) "below" else "top", touches = "", reversed = reversed)
  }
}

#' The value of an option as a word
#'
#' @param value a scalar, or NULL
#' @return text
as_word <- function(value) {
  if (is.null(value)) "none" else if (is.logical(value)) c("no", "yes")[[value + 1]] else as.character(value)
}

#' Whether a workload can notice a choice
#'
#' A workload notices the network where it listens, serves or has a part at the client, and where its data lie
#' unless it declares that what is measured touches no file (`storage: false`).  One that has systems brought
#' up while it is measured notices everything.
#'
#' @param touches as of `choice_pairs`
#' @param entry of the plan's workloads
#' @return TRUE or FALSE
notices <- function(touches, entry) {
  cell <- entry$cell
  any_step <- function(steps, is) {
    any(vapply(steps, function(step) is(step) || any_step(step$steps, is), NA))
  }
  if (any_step(cell$steps, function(step) !is.null(step$fresh))) {
    return(TRUE)
  }
  switch(
    touches,
    network = length(cell$ports) > 0 || length(cell$servers) > 0 ||
      any_step(cell$steps, function(step) identical(step$at, "client")),
    data = !identical(entry$storage, FALSE),
    TRUE
  )
}

#' What every single choice costs
#'
#' Choices that can be noticed, and controls, are families of their own, and so is what holds an emulated
#' machine.
#'
#' @param tidy rows of the tidy tables of all workloads
#' @param plan as from `read_plan`
#' @return data frame with the columns of CHOICE_COLUMNS: a row for each pair of `choice_pairs` and series
#'   that is told of, of which both have runs
choices_table <- function(tidy, plan) {
  runs <- tidy[is_headline(tidy, plan), ]
  series <- told_series(runs, plan)
  pairs <- choice_pairs(plan)
  rows <- lapply(seq_len(nrow(pairs)), function(i) {
    pair <- pairs[i, ]
    sides <- c(pair$environment, pair$base)
    emulated <- !all(sides %in% paired_environments(plan))
    lapply(series, function(one) {
      own <- runs[runs$workload == one$workload & runs$metric == one$metric & runs$factors == one$factors &
                    runs$environment %in% sides, ]
      # Emulated machines are in no set, and so in none that is set aside.
      own <- if (emulated) own else counted_rows(own)
      if (!all(sides %in% own$environment)) {
        return(NULL)
      }
      found <- paired_runs(own[own$environment == pair$environment, ], own[own$environment == pair$base, ])
      found <- compare_runs(found$measured, found$reference, one$statistic)
      data.frame(
        pair, workload = one$workload, metric = one$metric, unit = own$unit[[1]], better = one$better,
        factors = one$factors, control = !notices(pair$touches, plan$workloads[[one$workload]]),
        emulated = emulated, ratio = found$ratio, ratio_low = found$low, ratio_high = found$high,
        ratio_n = found$n, p_value = found$p_value, equal_p = found$equal_p
      )
    })
  })
  found <- do.call(rbind, as.list(unlist(rows, recursive = FALSE)))
  if (is.null(found)) {
    return(empty_table(CHOICE_COLUMNS))
  }
  family <- paste(found$control, found$emulated)
  found$p_adjusted <- stats::ave(found$p_value, family, FUN = adjusted_p_values)
  found$reading <- verdict(found$ratio, found$ratio_low, found$ratio_high, found$better, found$p_adjusted,
                           found$equal_p)
  for (name in c("control", "emulated")) {
    found[[name]] <- ifelse(found[[name]], "yes", "no")
  }
  rownames(found) <- NULL
  found[names(CHOICE_COLUMNS)]
}

#' How often controls are called different, where nothing can be
#'
#' @param choices rows of choices.csv
#' @param level of confidence
#' @return list of `tested` (controls with a p value), `called` (slower or faster by the paper's rule) and
#'   `below` (p below 5 % before it is adjusted), numbers; and for the latter two the limits of their rates as
#'   `called_limits` and `below_limits`
#' @source C. J. Clopper, E. S. Pearson, The use of confidence or fiducial limits illustrated in the case of
#'   the binomial, Biometrika 26, 1934
false_calls <- function(choices, level = LEVEL) {
  tested <- choices[choices$control == "yes" & !is.na(choices$p_value), ]
  limits <- function(count) {
    if (nrow(tested) > 0) as.vector(stats::binom.test(count, nrow(tested), conf.level = level)$conf.int)
  }
  called <- sum(tested$reading %in% c("slower", "faster"))
  below <- sum(tested$p_value < SIGNIFICANCE)
  list(tested = nrow(tested), called = called, called_limits = limits(called), below = below,
       below_limits = limits(below))
}
