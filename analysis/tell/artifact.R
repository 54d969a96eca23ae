# What a reviewer of the artifact asks for: what it needs, what it takes, what to expect, and how to check it.

#' The artifact in a table
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_artifact <- function(evidence) {
  artifact <- evidence$artifact
  host <- function(key) {
    listed(unique(vapply(evidence$records, function(record) {
      observed_text(field(record, "observed", "host", "static")[[key]])
    }, "")), "or")
  }
  seen <- length(evidence$records) > 0
  machine <- unique(vapply(machine_systems(evidence), function(system) {
    versions <- as.list(field(system, "system", "vm")$versions)
    if (length(versions) == 0) NOT_AVAILABLE else paste(names(versions), unlist(versions), collapse = ", ")
  }, ""))
  containers <- container_row(evidence)
  rows <- c(
    list(
      c("Address of the source", if (artifact$address == NOT_AVAILABLE) {
        paste0(NOT_AVAILABLE, ": no public one is recorded; an archive holds all of the source")
      } else {
        artifact$address
      }, ""),
      c("Version, licence", paste0(artifact$version, ", ", artifact$license), ""),
      c("Hardware", paste0(machine_phrase(evidence), "; KVM is needed for claims about it alone"), "records"),
      c("Host", if (seen) paste0(host("os"), ", kernel ", host("kernel")) else NOT_AVAILABLE, "records"),
      c("Installed by make", install_text(artifact$packages), "")
    ),
    if (!is.null(containers)) list(c(containers[[1]], containers[[3]], "records")),
    if (length(machine) > 0) list(c("Virtual machines made by", listed(machine, "or"), "records")),
    list(
      c("Time", time_text(evidence), "records"),
      c("Disk", disk_needs_text(evidence), "records")
    )
  )
  table <- new_table("artifact", "The artifact, as a reviewer asks for it",
                     list(column("Item"), column("Value", "wrap")),
                     unlinked(do.call(rbind, lapply(rows, `[`, 1:2))), wide = FALSE)
  table$sources[, 2] <- ifelse(seen, vapply(rows, `[[`, "", 3), "")
  table
}

#' What has to be installed
#'
#' @param packages lists of names by purpose
#' @return text
install_text <- function(packages) {
  paste0("to run: ", paste(packages$run, collapse = ", "), "; for virtual machines: ",
         paste(packages$vm, collapse = ", "), "; for the paper: ", paste(packages$paper, collapse = ", "),
         "; Python packages as pinned in requirements.txt")
}

#' What the experiment took in time
#'
#' @param evidence as from `read_evidence`
#' @return text
time_text <- function(evidence) {
  period <- measured_period(evidence$records)
  if (length(period) < 2 || anyNA(period)) {
    return(NOT_AVAILABLE)
  }
  minutes <- as.double(difftime(period[[2]], period[[1]], units = "mins"))
  budget <- evidence$plan$precision$budget
  paste0(if (minutes < 1) "less than a minute" else counted(round(minutes), "minute"),
         " from the first run to the end of the last, with what lay between them",
         if (is.numeric(budget)) {
           paste0("; the plan allows ", counted(round(budget / 60), "minute"),
                  " of measurement")
         })
}

#' What the experiment took on disk
#'
#' @param evidence as from `read_evidence`
#' @return text
disk_needs_text <- function(evidence) {
  logs <- field_numbers(evidence$records, "log", "bytes")
  image <- evidence$footprint[evidence$footprint$quantity == "image_disk_bytes" & evidence$footprint$n > 0, ]
  parts <- c(
    if (any(!is.na(logs))) paste("raw logs", bytes(sum(logs, na.rm = TRUE))),
    if (nrow(image) > 0) paste("disk of the virtual machines", bytes(max(image$max)))
  )
  if (length(parts) == 0) NOT_AVAILABLE else paste(parts, collapse = ", ")
}

#' What variation a repetition is to be expected to show
#'
#' @param evidence as from `read_evidence`
#' @return text
variation_text <- function(evidence) {
  rows <- told(evidence)
  apart <- rows$environment %in% emulated_environments(evidence$plan)
  rows <- rows[!apart, ]
  spread <- rows$sd / abs(rows$mean)
  spread <- spread[is.finite(spread)]
  width <- (rows$ratio_high - rows$ratio_low) / 2 / abs(rows$ratio)
  width <- width[is.finite(width)]
  if (length(spread) == 0) {
    return("How much a repetition would vary cannot be told from these runs.")
  }
  told <- function(x) linked(span_text(x), "records")
  paste(c(
    paste0("From run to run a value varies here with a standard deviation of ", told(spread),
           " of its mean (", if (any(apart)) "without emulated machines; ", "in the median of ",
           counted(length(spread), "series", "series"), " ",
           linked(percent(stats::median(spread)), "records"), ")."),
    if (length(width) > 0) {
      paste0("A ratio to native is known to within \u00b1", told(width), "; that of a repetition with as ",
             "many sets should in nineteen of twenty cases differ from it by less than 1.4 times as much.")
    },
    "Levels are those of the machine: on another one only ratios and verdicts can be compared."
  ), collapse = " ")
}
