# Where the results come from, and how to get them again.

#' What was measured, of what, when, and by what it was analysed
#'
#' @param evidence as from `read_evidence`
#' @return a table
table_of_provenance <- function(evidence) {
  image <- evidence$image
  text <- function(value, number = quantity) observed_text(value, number)
  rows <- list(
    c("Image", text(image$id), "image"),
    c("Recipe of the image", text(evidence$plan$image$recipe), "plan"),
    c("Manifest of its files", text(image$manifest_sha256), "image"),
    c("Distribution", distribution_text(evidence), "image"),
    c("Built", text(image$built), "image"),
    c("Holds", contents_text(evidence), "image"),
    c("Among them", package_text(evidence), if (length(evidence$records) > 0) "records" else "image"),
    c("Source revision", revision_text(evidence), "plan"),
    c("Experiment", paste0("scale ", evidence$plan$scale, ", ", sets_planned(evidence$plan),
                           ", seed ", format(evidence$plan$seed, scientific = FALSE)), "plan"),
    c("Measured", period_text(measured_period(evidence$records)), "records"),
    c("Analysed with", analysis_text(), "")
  )
  table <- new_table(
    "provenance", "Provenance of the results",
    list(column("Item"), column("Value", "wrap")), do.call(rbind, lapply(rows, `[`, 1:2)),
    wide = FALSE
  )
  table$sources[, 2] <- vapply(rows, `[[`, "", 3)
  table
}

#' The distribution of the image
#'
#' @param evidence as from `read_evidence`
#' @return text
distribution_text <- function(evidence) {
  image <- evidence$image
  known <- Filter(is.character, list(image$distribution, image$release, image$architecture))
  if (length(known) == 0) {
    return(NOT_AVAILABLE)
  }
  paste(c(upper_first(known[[1]]), unlist(known[-1])), collapse = " ")
}

#' How much the image holds
#'
#' @param evidence as from `read_evidence`
#' @return text
contents_text <- function(evidence) {
  image <- evidence$image
  counts <- c(if (is.numeric(image$package_count)) counted(image$package_count, "package"),
              if (is.numeric(image$file_count)) counted(image$file_count, "file"))
  if (length(counts) == 0) NOT_AVAILABLE else listed(counts)
}

#' The packages of the image that were asked for
#'
#' Their versions are those that the first run saw from inside.
#'
#' @param evidence as from `read_evidence`
#' @return text: versions, or where those of all packages stand
package_text <- function(evidence) {
  seen <- observed_versions(utils::head(evidence$records, 1), "inside")
  if (ncol(seen) == 0) {
    return(if (length(evidence$packages) == 0) NOT_AVAILABLE else "as in results/image-manifest.json")
  }
  paste(colnames(seen), seen[1, ], collapse = ", ")
}

#' The revision of the sources
#'
#' @param evidence as from `read_evidence`
#' @return text
revision_text <- function(evidence) {
  found <- unlist(c(evidence$plan$source$revision,
                    lapply(evidence$records, function(record) record$source$revision)))
  observed_text(if (length(found) > 0) listed(unique(as.character(found))))
}

#' A time span
#'
#' @param period as from `measured_period`
#' @return text such as "2025-11-20 21:01 to 22:20 UTC"
period_text <- function(period) {
  if (length(period) < 2 || anyNA(period)) {
    return(NOT_AVAILABLE)
  }
  day <- format(period, "%Y-%m-%d", tz = "UTC")
  time <- format(period, "%H:%M", tz = "UTC")
  paste0(day[[1]], " ", time[[1]], " to ", if (day[[1]] == day[[2]]) "" else paste0(day[[2]], " "), time[[2]],
         " UTC")
}

#' By what the results were analysed
#'
#' @return text
analysis_text <- function() {
  paste0("R ", getRversion(), ", knitr ", utils::packageVersion("knitr"), ", pandoc ",
         rmarkdown::pandoc_version())
}

#' The image in one sentence
#'
#' @param evidence as from `read_evidence`
#' @return text
image_text <- function(evidence) {
  contents <- contents_text(evidence)
  paste0(linked(distribution_text(evidence), "image"),
         if (contents != NOT_AVAILABLE) paste(" with", linked(contents, "image")), ".")
}
