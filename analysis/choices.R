# Pairs of environments that differ in exactly one choice, found from their layers.  What a workload cannot
# notice is a control: whatever differs there is called falsely.

#' The pairs
#'
#' @return data frame: base, environment, choice ("docker network", or "docker" for a layer more), touches
#'   ("network", "data" or "")
choice_pairs <- function(plan) {
  entries <- Filter(function(one) isTRUE(one$available) && !isTRUE(one$emulated), plan$environments)
  if (length(entries) < 2) return(NULL)
  stack_rows(lapply(utils::combn(names(entries), 2, simplify = FALSE), function(pair) {
    choice <- single_choice(entries[[pair[[1]]]], entries[[pair[[2]]]])
    if (is.null(choice)) return(NULL)
    if (choice$reversed) pair <- rev(pair)
    data.frame(base = pair[[1]], environment = pair[[2]], choice = choice$choice, touches = choice$touches)
  }))
}

single_choice <- function(first, second) {
  stacks <- lapply(list(first$layers, second$layers), lapply, function(layer) {
    lapply(layer, function(options) options[sort(as.character(names(options)))])
  })
  sizes <- lengths(stacks)
  if (diff(sizes) != 0) {
    longer <- stacks[[which.max(sizes)]]
    added <- Filter(function(i) identical(longer[-i], stacks[[which.min(sizes)]]), seq_along(longer))
    if (length(added) == 0) return(NULL)
    return(list(choice = names(longer[[added[[1]]]]), touches = "", reversed = sizes[[1]] > sizes[[2]]))
  }
  at <- which(!mapply(identical, stacks[[1]], stacks[[2]]))
  if (length(at) != 1 || names(stacks[[1]][[at]]) != names(stacks[[2]][[at]])) return(NULL)
  options <- lapply(stacks, function(stack) stack[[at]][[1]])
  differing <- function(options) {
    keys <- unique(unlist(lapply(options, names)))
    Filter(function(key) !identical(options[[1]][[key]], options[[2]][[key]]), keys)
  }
  # What holds several settings follows from the option that names them.
  several <- function(key) any(vapply(options, function(one) is.list(one[[key]]), NA))
  named <- Filter(Negate(several), differing(options))
  only <- differing(options)
  if (length(named) == 0 && length(only) == 1) named <- differing(lapply(options, `[[`, only))
  if (length(named) != 1) return(NULL)
  told <- lapply(list(first, second), function(entry) entry$told[[at]])
  touches <- differing(told)
  list(choice = paste(names(stacks[[1]][[at]]), named), reversed = FALSE,
       touches = if (length(touches) == 1 && touches %in% c("network", "data")) touches else "")
}

#' Whether a workload can notice a choice of the network or of where data lie
notices <- function(touches, entry) {
  any_step <- function(steps, is) any(vapply(steps, function(one) is(one) || any_step(one$steps, is), NA))
  client <- function(one) identical(one$at, "client")
  if (any_step(entry$cell$steps, function(one) !is.null(one$fresh))) return(TRUE)
  switch(touches, data = !identical(entry$storage, FALSE),
         network = length(entry$cell$ports) > 0 || any_step(entry$cell$steps, client),
         TRUE)
}

#' What each choice costs; choices and controls are a family each
compare_choices <- function(results) {
  pairs <- choice_pairs(results$plan)
  tidy <- results$tidy[results$tidy$headline, ]
  rows <- stack_rows(lapply(seq_len(NROW(pairs)), function(i) {
    own <- tidy[tidy$environment == pairs$environment[[i]], ]
    base <- tidy[tidy$environment == pairs$base[[i]], ]
    found <- if (nrow(own) > 0) compare_environments(pairs_of(own, base))
    if (is.null(found)) return(NULL)
    loads <- results$plan$workloads[found$workload]
    seen <- vapply(loads, function(one) notices(pairs$touches[[i]], one), NA)
    cbind(found, choice = pairs$choice[[i]], control = ifelse(seen, "no", "yes"),
          family = ifelse(seen, "choices", "controls"))
  }))
  if (is.null(rows)) NULL else decide(rows)
}
