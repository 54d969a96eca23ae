# What the nodes differ by on which sets were measured: how fast they are, and what isolation costs there.

#' Groups against one another, in one way
#'
#' The effect of a group is its mean less the mean of the groups' means, in which each counts alike, however
#' often it was measured; its interval is Student's, with the variance within the groups.
#'
#' @param y numbers
#' @param group texts, one for each
#' @param level of confidence
#' @return list: `groups`, data frame with a row for each group in the order of their names: group, n, effect,
#'   low, high; `p_value`, the F test of equal groups.  NA where nothing varies within the groups, or where no
#'   group has two values
#' @source R. A. Fisher, Statistical Methods for Research Workers, 1925
one_way <- function(y, group, level = LEVEL) {
  group <- factor(group, sort(unique(group), method = "radix"))
  n <- as.vector(table(group))
  means <- as.vector(tapply(y, group, mean))
  count <- length(n)
  freedom <- c(count - 1, length(y) - count)
  squares <- sum((y - means[group])^2)
  groups <- data.frame(group = levels(group), n = n, effect = means - mean(means), low = NA_real_,
                       high = NA_real_)
  if (count < 2 || freedom[[2]] < 1 || squares <= 1e-24) {
    return(list(groups = groups, p_value = NA_real_))
  }
  within <- squares / freedom[[2]]
  between <- sum(n * (means - mean(y))^2) / freedom[[1]]
  variance <- within * ((1 - 2 / count) / n + sum(1 / n) / count^2)
  half <- stats::qt((1 + level) / 2, freedom[[2]]) * sqrt(variance)
  groups$low <- groups$effect - half
  groups$high <- groups$effect + half
  list(groups = groups,
       p_value = stats::pf(between / within, freedom[[1]], freedom[[2]], lower.tail = FALSE))
}

#' The ratio as of a sample of nodes
#'
#' All sets together speak of the nodes that they were measured on.  Where the ratio is another one on each,
#' what it would be on a further one of the kind follows from the nodes alone, each of them one value.
#'
#' @param logs the mean logarithm of the ratio on each node
#' @param level of confidence
#' @return list: ratio, low, high (no limits from one node)
ratio_of_nodes <- function(logs, level = LEVEL) {
  limits <- if (length(logs) > 1) interval_of_mean(logs, level) else c(low = NA_real_, high = NA_real_)
  list(ratio = exp(mean(logs)), low = exp(limits[["low"]]), high = exp(limits[["high"]]))
}

#' What the nodes say of every ratio to native that is told of
#'
#' Of the sets that count.  A level is that of a node's sets, over all environments and relative to the mean
#' of the nodes; a ratio is of the pairs of one node.
#'
#' @param tidy rows of the tidy tables of all workloads
#' @param records list of the records beside their logs
#' @param plan as from `read_plan`
#' @return data frame with the columns of NODE_COLUMNS: for each series a row for the level of each node, then
#'   for each environment a row for its ratio on each node; none where there are not two nodes
nodes_table <- function(tidy, records, plan) {
  of_set <- stats::setNames(node_labels(nodes_of(records)), vapply(records, set_key, ""))
  runs <- tidy[tidy$environment %in% paired_environments(plan), ]
  runs <- counted_rows(runs[is_headline(runs, plan), ])
  runs$node <- unname(of_set[set_key(runs)])
  rows <- if (length(unique(of_set)) > 1) {
    lapply(told_series(runs, plan), function(series) {
      own <- runs[runs$workload == series$workload & runs$metric == series$metric &
                    runs$factors == series$factors, ]
      others <- setdiff(intersect(names(plan$environments), own$environment), REFERENCE)
      of_series <- c(list(node_level_rows(own)), if (REFERENCE %in% own$environment) {
        lapply(others, function(environment) node_ratio_rows(own, environment, series$statistic))
      })
      found <- do.call(rbind, of_series)
      if (!is.null(found)) {
        cbind(workload = series$workload, metric = series$metric, unit = own$unit[[1]],
              factors = series$factors, found)
      }
    })
  }
  found <- do.call(rbind, c(list(empty_table(NODE_COLUMNS)[names(NODE_COLUMNS) != "p_adjusted"]), rows))
  # Those of one kind are one family, each comparison in it once.
  first <- !duplicated(found[c("quantity", "environment", "workload", "metric", "factors")])
  adjusted <- rep(NA_real_, nrow(found))
  for (quantity in unique(found$quantity)) {
    own <- first & found$quantity == quantity
    adjusted[own] <- stats::p.adjust(found$p_value[own], "BH")
  }
  found$p_adjusted <- adjusted[first][cumsum(first)]
  found[names(NODE_COLUMNS)]
}

#' The levels of nodes
#'
#' @param own rows of one series, with the column `node`
#' @return data frame with the columns of NODE_COLUMNS from `node` on, without `p_adjusted`, and quantity and
#'   environment; NULL where there are not two nodes
node_level_rows <- function(own) {
  values <- values_of_sets(own)
  node <- own$node[match(rownames(values), own$repetition)]
  if (length(unique(node)) < 2) {
    return(NULL)
  }
  found <- one_way(rowMeans(log(values)), node)
  groups <- found$groups
  data.frame(
    quantity = "level", environment = "", node = groups$group, sets = groups$n, value = exp(groups$effect),
    low = exp(groups$low), high = exp(groups$high), p_value = found$p_value, of_nodes = NA_real_,
    of_nodes_low = NA_real_, of_nodes_high = NA_real_
  )
}

#' The ratios of an environment to native on nodes
#'
#' @inheritParams node_level_rows
#' @param environment its name
#' @param statistic one of STATISTICS
#' @return as from `node_level_rows`
node_ratio_rows <- function(own, environment, statistic) {
  native <- own[own$environment == REFERENCE, ]
  measured <- own[own$environment == environment & own$repetition %in% native$repetition, ]
  if (length(unique(measured$node)) < 2) {
    return(NULL)
  }
  pairs <- paired_runs(measured, native)
  logs <- log(pairs$measured / pairs$reference)
  nodes <- sort(unique(measured$node), method = "radix")
  each <- lapply(nodes, function(node) {
    here <- measured$node == node
    compare_runs(pairs$measured[here], pairs$reference[here], statistic)
  })
  p_value <- if (statistic == "percentile") {
    if (all_equal(logs)) NA_real_ else stats::kruskal.test(logs, factor(measured$node))$p.value
  } else {
    one_way(logs, measured$node)$p_value
  }
  overall <- ratio_of_nodes(as.vector(tapply(logs, factor(measured$node, nodes), mean)))
  of <- function(name) vapply(each, function(one) as.double(one[[name]]), 0)
  data.frame(
    quantity = "ratio", environment = environment, node = nodes,
    sets = as.vector(table(factor(measured$node, nodes))), value = of("ratio"), low = of("low"),
    high = of("high"), p_value = p_value, of_nodes = overall$ratio, of_nodes_low = overall$low,
    of_nodes_high = overall$high
  )
}
