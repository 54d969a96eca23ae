# The nodes on which sets were measured: how they differ, and what that means for the ratios.

#' The nodes of the runs, where the plan's cells were measured on several
#'
#' @param evidence as from `read_evidence`
#' @return labels, in their order; none where all is of one machine
measured_nodes <- function(evidence) {
  if (is_spread(evidence$plan)) sort(unique(node_labels(nodes_of(evidence$records))), method = "radix")
}

#' How many machines there were
#'
#' @param evidence as from `read_evidence`
#' @return text such as "one machine" or "3 machines"; nodes with one start of the kernel are one
measured_machines_text <- function(evidence) {
  nodes <- measured_nodes(evidence)
  if (length(nodes) < 2) {
    return("one machine")
  }
  label <- factor(node_labels(nodes_of(evidence$records)), nodes)
  boots <- lapply(split(lapply(evidence$records, field, "node", "boot"), label), unlist)
  same <- vapply(seq_along(nodes), function(i) {
    any(vapply(boots[seq_len(i - 1)], function(other) any(other %in% boots[[i]]), NA))
  }, NA)
  machines <- sum(!same)
  if (machines == 1) {
    paste0("one machine under ", linked(counted(length(nodes), "name"), "records"))
  } else {
    linked(counted(machines, "machine"), "records")
  }
}

#' What of the hosts is another on another node
#'
#' @param evidence as from `read_evidence`
#' @return texts such as "the processor (A on node 1; B on node 2)"
node_differences <- function(evidence) {
  label <- node_labels(nodes_of(evidence$records))
  facts <- Filter(function(fact) {
    fact$label %in% c("Machine", "Operating system", "Kernel", "Processor", "CPUs", "Last-level cache",
                      "Microcode")
  }, testbed_facts())
  unlist(lapply(facts, function(fact) {
    seen <- vapply(evidence$records, function(record) {
      fact$text(field(record, "observed", "host", "static"))
    }, "")
    each <- vapply(split(seen, label), function(own) listed(unique(own), "or"), "")
    if (length(unique(each)) > 1) {
      of <- vapply(unique(each), function(value) paste(value, "on", listed(names(each)[each == value])), "")
      paste0("the ", lower_first(fact$label), " (", paste(of, collapse = "; "), ")")
    }
  }))
}

#' The rows of the nodes' table that stand for one comparison, each once
#'
#' @param evidence as from `read_evidence`
#' @param quantity "level" or "ratio"
#' @return list of data frames, each the rows of one comparison
node_comparisons <- function(evidence, quantity) {
  rows <- evidence$nodes[evidence$nodes$quantity == quantity, ]
  key <- paste(rows$workload, rows$metric, rows$factors, rows$environment, sep = "\r")
  unname(split(rows, factor(key, unique(key))))
}

#' Whether the nodes are told apart in a comparison
#'
#' @param rows as of `node_comparisons`
#' @return TRUE or FALSE
nodes_differ <- function(rows) {
  isTRUE(rows$p_adjusted[[1]] < SIGNIFICANCE)
}

#' A value of a node
#'
#' @param row of the nodes' table
#' @return text such as "97.1 % [96.0, 98.2] on node 1"
on_node <- function(row) {
  paste0(linked(percent_interval(row$value, row$low, row$high), workload_list(row$workload)),
         " on ", row$node)
}

#' The rows that are farthest apart
#'
#' @param rows as of `node_comparisons`
#' @return its lowest and its highest row
farthest <- function(rows) {
  rows[c(which.min(rows$value), which.max(rows$value)), ]
}

#' What sets were measured where, and what the nodes differ by
#'
#' @param evidence as from `read_evidence`
#' @return text; NULL where all is of one machine
nodes_text <- function(evidence) {
  nodes <- measured_nodes(evidence)
  if (length(nodes) < 2) {
    return(NULL)
  }
  differences <- node_differences(evidence)
  paste(c(
    sets_of_nodes_text(evidence, nodes),
    if (grepl("^one machine", measured_machines_text(evidence))) {
      "All these names are of one machine, so that no difference between them is one of hardware."
    },
    if (length(differences) > 0) {
      paste0("They differ in ", listed(differences), ".")
    } else {
      paste("They were seen to be of one kind: machine, operating system, kernel, processor, caches and",
            "microcode are the same.")
    },
    levels_text(evidence), node_ratios_text(evidence)
  ), collapse = " ")
}

#' How many sets each node measured
#'
#' @param evidence as from `read_evidence`
#' @param nodes as from `measured_nodes`
#' @return sentences
sets_of_nodes_text <- function(evidence, nodes) {
  key <- vapply(evidence$records, set_key, "")
  label <- node_labels(nodes_of(evidence$records))
  torn <- torn_sets(evidence$records)
  count <- vapply(nodes, function(node) length(setdiff(unique(key[label == node]), torn)), 0L)
  of_all <- function(text) linked(text, "records")
  each <- if (length(nodes) <= 6) {
    paste0(" (", paste0(count, " on ", nodes, collapse = ", "), ")")
  } else {
    paste0(" (", min(count), " to ", max(count), " on each)")
  }
  paste(c(
    paste0("The sets were shared out among ", of_all(counted(length(nodes), "node")), each,
           "; each set lies on one of them, so that every ratio is of runs on the same node."),
    if (length(torn) > 0) {
      paste0(of_all(counted(length(torn), "set")), if (length(torn) == 1) " has" else " have",
             " runs on more than one node, being completed later, and ",
             if (length(torn) == 1) "does" else "do", " not count.")
    }
  ), collapse = " ")
}

#' How far apart the nodes' levels are
#'
#' @param evidence as from `read_evidence`
#' @return sentences; NULL where there is none to tell
levels_text <- function(evidence) {
  found <- node_comparisons(evidence, "level")
  if (length(found) == 0) {
    return(NULL)
  }
  rows <- do.call(rbind, found)
  most <- rows[which.max(abs(log(rows$value))), ]
  told <- sum(vapply(found, nodes_differ, NA))
  paste0(
    "The level of a node is that of its sets, over all environments, relative to the mean of the nodes. ",
    "The farthest from it is ", on_node(most), " (", series_names(most, evidence$plan),
    "). The F test tells the nodes apart in ", linked(fixed(told, 0), "records"), " of ",
    linked(counted(length(found), "metric"), "records"), " (adjusted p below ", SIGNIFICANCE, "). ",
    "A level that differs falls out of a ratio, both runs of which have it."
  )
}

#' Whether the ratios to native differ between nodes
#'
#' @param evidence as from `read_evidence`
#' @return sentences; NULL where there is none to tell
node_ratios_text <- function(evidence) {
  found <- node_comparisons(evidence, "ratio")
  if (length(found) == 0) {
    return(NULL)
  }
  apart <- Filter(nodes_differ, found)
  of_all <- linked(counted(length(found), "ratio"), "records")
  if (length(apart) == 0) {
    tested <- sum(!is.na(vapply(found, function(rows) rows$p_value[[1]], 0)))
    return(if (tested == 0) {
      paste0("Too few sets of each node are there to tell whether any of ", of_all,
             " to native differs between nodes.")
    } else {
      paste0("In none of ", of_all, " to native does the F test tell the nodes apart (adjusted p below ",
             SIGNIFICANCE, "), which is no proof that they are alike.")
    })
  }
  widest <- apart[[which.max(vapply(apart, function(rows) diff(log(farthest(rows)$value)), 0))]]
  ends <- farthest(widest)
  paste0(
    "The ratios to native differ between nodes in ", linked(fixed(length(apart), 0), "records"), " of ",
    of_all, ": most in ", series_names(ends[1, ], evidence$plan), " for ",
    in_sentence(environment_labels(evidence$plan, ends$environment[[1]])), ", which is ", on_node(ends[1, ]),
    " and ", on_node(ends[2, ]), ". There the interval of all sets speaks of these nodes and of no others; ",
    "were they a sample of their kind, the ratio would be ",
    linked(percent_interval(ends$of_nodes[[1]], ends$of_nodes_low[[1]], ends$of_nodes_high[[1]]),
           workload_list(ends$workload[[1]])), "."
  )
}

#' That nodes are not one machine
#'
#' @param evidence as from `read_evidence`
#' @return text
node_threat <- function(evidence) {
  apart <- Filter(nodes_differ, node_comparisons(evidence, "ratio"))
  paste(
    "Which node a set lies on follows from which was free, and not from a drawing of lots.",
    if (length(apart) > 0) {
      paste0("What isolation costs is another on another node in ",
             linked(counted(length(apart), "comparison"), "records"),
             ": the ratios of all sets mix the nodes by the number of their sets.")
    } else {
      "The ratios of all sets mix the nodes by the number of their sets."
    }
  )
}

#' The levels of nodes and the ratios on them
#'
#' @param evidence as from `read_evidence`
#' @return a table, or NULL where there are not two nodes
table_of_nodes <- function(evidence) {
  if (length(measured_nodes(evidence)) < 2 || nrow(evidence$nodes) == 0) {
    return(NULL)
  }
  found <- c(node_comparisons(evidence, "level"), node_comparisons(evidence, "ratio"))
  rows <- do.call(rbind, lapply(found, function(own) own[1, ]))
  name <- series_names(rows, evidence$plan)
  turn <- order(match(name, unique(name)))
  shown <- function(row) {
    decimals <- percent_decimals(row$low, row$high)
    c(or_dash(fixed(100 * row$value, decimals)), or_dash(ratio_interval(row$low, row$high, decimals)),
      row$node)
  }
  cells <- t(vapply(found, function(own) {
    ends <- farthest(own)
    c(shown(ends[1, ]), shown(ends[2, ]), or_dash(p_text(own$p_adjusted[[1]])))
  }, character(7)))
  of <- ifelse(rows$quantity == "level", "level", environment_labels(evidence$plan, rows$environment))
  cells <- cbind(name, of, cells)[turn, , drop = FALSE]
  group <- function(spanner) {
    list(column("%", "right", spanner), column(paste0("95", THIN, "% interval"), "right", spanner),
         column("on", "left", spanner))
  }
  starts <- !duplicated(name[turn])
  cells[, 1] <- blank_repeats(cells[, 1], starts)
  table <- new_table(
    "nodes", "The nodes that are farthest apart: their levels, and the ratios to native on them",
    c(list(column("Workload and metric"), column("What")), group("Lowest"), group("Highest"),
      list(column("p", "right"))),
    cells, group_starts = starts,
    notes = c(
      paste("Level: of the node\u2019s sets over all environments, relative to the mean of the nodes. Ratio:",
            "of the pairs on that node. p: of equal nodes (F test of the logarithms, for percentiles that of",
            "Kruskal and Wallis), adjusted among the levels or the ratios."),
      if (any(cells == EM_DASH)) paste0(EM_DASH, ": can\u2019t be estimated from these runs.")
    )
  )
  table$sources[, -(1:2)] <- workload_list(rows$workload[turn])
  table
}
