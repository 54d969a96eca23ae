# What the tests of the paper share: its functions, and evidence made by hand.

#' Text with plain spaces and signs, as it is read
read_aloud <- function(text) {
  gsub(NO_BREAK, " ", gsub(THIN, " ", gsub(MINUS, "-", unlinked(text))))
}

#' A row of a summary
summary_row <- function(environment, mean = 10, ratio = NA, low = NA, high = NA, n = 5, sd = 0.1,
                        workload = "stream", metric = "copy", factors = "", better = "higher", flags = "",
                        ratio_n = if (is.na(ratio)) NA else n,
                        p_value = if (is.na(low)) NA else if (low > 1 || high < 1) 0.001 else 0.5,
                        equal_p = if (is.na(low)) NA else if (low >= 0.98 && high <= 1.02) 0.01 else 0.5) {
  row <- as.data.frame(lapply(SUMMARY_COLUMNS, function(class) if (class == "character") "" else NA_real_))
  half <- if (n > 1) 0.2 else NA_real_
  updated(row, environment = environment, workload = workload, metric = metric, unit = "GB/s",
          better = better, factors = factors, n = n, mean = mean, sd = if (n > 1) sd else NA_real_,
          mean_low = mean - half, mean_high = mean + half, median = mean, ratio = ratio, ratio_low = low,
          ratio_high = high, ratio_n = ratio_n, p_value = p_value, equal_p = equal_p,
          scatter = (high - low) / 2 * sqrt(n) / quantile_t(0.975, n), flags = flags)
}

#' A plan for made-up evidence
small_plan <- function(environments = c(native = "Native", docker = "Docker"), unavailable = character(),
                       better = "higher", scale = "smoke") {
  entries <- Map(function(name, label) {
    layer <- list(docker = list(network = "bridge", data = "volume"))
    layers <- list(if (name == "native") list(chroot = list()) else layer)
    list(label = label, layers = layers, told = planned_told(layers),
         available = !name %in% unavailable, reason = if (name %in% unavailable) "no such device & 100 %")
  }, names(environments), environments)
  metric <- function(label) list(label = label, unit = "GB/s", better = better)
  list(
    format = 3, scale = scale, seed = 7, repetitions = 5, image = list(recipe = strrep("ab", 32)),
    machine = list(cpus = 2, memory_bytes = 4e9, cache_bytes = 32e6), environments = entries,
    workloads = list(
      stream = list(title = "STREAM", about = "Bandwidth.", warmup = "none", notes = list(),
                    metrics = list(copy = metric("Copy"), scale = metric("Scale")),
                    parameters = list(threads = list(rule = "cpus"), elements = 20000000)),
      `new-load` = list(title = "A new load", about = "Anything_at all.", warmup = "one pass", notes = list(),
                        metrics = list(rate = metric("Rate")), parameters = list())
    ),
    results = "nowhere"
  )
}

#' A record for made-up evidence
small_record <- function(environment, repetition = 1, inside = list(), workload = "stream", steal = 0.01,
                         program = list(), threads = 2) {
  list(environment = environment, workload = workload, repetition = repetition, block = repetition,
       position = list(planned = repetition, actual = repetition),
       started = "2026-01-02T03:04:05.000Z", ended = "2026-01-02T03:05:05.500Z",
       parameters = list(threads = threads), checks = list(list(name = "result verified", passed = TRUE)),
       observed = list(inside = utils::modifyList(list(kernel = "6.1", cpus = 2), inside), host = list(
         static = list(kernel = "6.1", governor = "not available"),
         before = list(load1 = 0.5), during = list(steal_share = steal), after = list(load1 = 0.7)
       )), program = program, path = "nowhere.json")
}

#' Evidence made of rows of summaries and of records
small_evidence <- function(rows = list(), plan = small_plan(), records = list(), missing = 0) {
  summary <- do.call(rbind, c(list(empty_table(SUMMARY_COLUMNS)), rows))
  if (length(records) == 0) {
    records <- lapply(unique(summary$environment), small_record)
  }
  cells <- data.frame(position = seq_along(records), block = rep(1, length(records)),
                      environment = vapply(records, `[[`, "", "environment"),
                      workload = vapply(records, `[[`, "", "workload"),
                      repetition = vapply(records, `[[`, 0, "repetition"),
                      counts = rep("yes", length(records)), measured = rep(TRUE, length(records)),
                      left_out = rep(FALSE, length(records)))
  if (missing > 0) {
    cells <- rbind(cells, data.frame(position = length(records) + seq_len(missing), block = seq_len(missing),
                                     environment = "docker", workload = "stream",
                                     repetition = 10 + seq_len(missing), counts = "yes",
                                     measured = FALSE, left_out = FALSE))
  }
  list(plan = plan, cells = cells, records = records, image = list(), packages = list(),
       environments = environment_table(plan, cells), comparisons = compare(summary, plan),
       published = read_published(file.path(project, "published", "ibm-table1.json")),
       originals = read_originals(project), own = read_own_verdicts(project),
       artifact = read_artifact(project),
       claims = empty_table(CLAIM_COLUMNS), transferred = empty_table(CLAIM_COLUMNS), publications = list(),
       known = read_claims(file.path(project, "published", "claims.json"))$environments,
       footprint = footprint_table(records, plan), sets = empty_table(SET_COLUMNS),
       choices = empty_table(CHOICE_COLUMNS),
       failed = rep("", missing), partial = missing > 0)
}

#' A results folder with all that the paper needs
#'
#' @param draw whether its figures are there too
make_paper_results <- function(..., draw = TRUE) {
  plan_path <- make_results(..., workloads = c("stream", "linpack"))
  results <- dirname(plan_path)
  plan <- read_plan(plan_path)
  write_json(list(format = 1, id = "sha256:f00", distribution = "debian", release = "trixie",
                  architecture = "x86_64", package_count = 2, file_count = 3, manifest_sha256 = strrep("0a",
                                                                                                       32)),
             file.path(results, "image.json"))
  write_json(list(packages = list(gcc = "14")), file.path(results, "image-manifest.json"))
  analyse(plan_path, draw)
  plan_path
}

#' Runs code in which each figure is written with its data and empty pictures, which take no time
with_blank_figures <- function(code) {
  rooms <- environment(write_figure)
  true <- rooms$write_figure
  on.exit(rooms$write_figure <- true)
  rooms$write_figure <- function(figure, data, out, size, heights = 1) {
    true(ggplot(), data, out, size)
  }
  code
}

#' Makes the tables anew, and figures where they matter
analyse <- function(plan_path, draw = TRUE) {
  plan <- read_plan(plan_path)
  for (workload in names(plan$workloads)) {
    write_csv(tidied(plan, workload), result_path(plan, "tidy", workload = workload))
  }
  write_tables(plan, project)
  if (draw) {
    draw_all(plan, project)
  }
}

#' Skips a test where a program that the paper needs is missing
skip_without_latex <- function() {
  skip_if(any(Sys.which(c("pdflatex", "bibtex", "pandoc", "pdftotext")) == ""), "LaTeX or pandoc is missing")
}

#' Whether a text is well-formed XML but for the tags that HTML leaves open
tags_of <- function(html, open) {
  tags <- regmatches(html, gregexpr("</?[a-z0-9]+", html))[[1]]
  tags[!sub("</?", "", tags) %in% open]
}

#' Expects that every tag is closed where it was opened, but for those whose ends a whole page leaves out
expect_balanced <- function(html, without = character()) {
  html <- gsub("<(script|style)>.*?</\\1>", "",
               gsub("<!--.*?-->|<!DOCTYPE html>|<[a-z]+ [^<>]*/>", "", html), perl = TRUE)
  open <- character()
  for (tag in tags_of(html, c("img", "meta", "br", "link", "hr", without))) {
    if (startsWith(tag, "</")) {
      if (!identical(sub("</", "", tag), utils::tail(open, 1))) {
        break
      }
      open <- open[-length(open)]
    } else {
      open <- c(open, sub("<", "", tag))
    }
  }
  expect_equal(open, character())
}
