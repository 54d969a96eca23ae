# Whole experiments with a known truth: plan, tables of values and records as Python writes them.

root <- normalizePath(file.path(testthat::test_path(), "..", "..", ".."))

make_environment <- function(label, layers, kinds, emulated = FALSE, available = TRUE,
                             reason = NULL) {
  descriptions <- lapply(kinds, function(kind) {
    list(kind = kind, title = kind, network = "bridge", data = "volume")
  })
  list(label = label, available = available, reason = reason, layers = layers,
       descriptions = descriptions,
       emulated = emulated)
}
make_docker <- function(...) list(list(docker = list(...)))
make_machine <- function(label) {
  make_environment(label, list(list(vm = list(profile = "default"))), "machine")
}
ENVIRONMENTS <- list(
  native = make_environment("Native", list(list(chroot = list())), "bare"),
  docker = make_environment("Docker", make_docker(network = "bridge", data = "volume"),
                            "container"),
  "docker-hostnet" = make_environment("Docker (host network)",
                                      make_docker(network = "host", data = "volume"),
                                      "container"),
  "docker-gvisor" = make_environment("Docker with gVisor",
                                     make_docker(network = "bridge", runtime = "runsc",
                                                 sandbox = list(stack = "own")), "sandbox"),
  vm = make_machine("KVM"), "vm-tuned" = make_machine("KVM, tuned")
)
# The performance of each environment as a share of native's.
TRUTH <- c(native = 1, docker = 1, "docker-hostnet" = 1, "docker-gvisor" = 0.7, vm = 0.9,
           "vm-tuned" = 0.97)

# What Python's observers record of a captured host, bare and as a guest.
OBSERVED <- withr::with_envvar(c(PYTHONPATH = root), {
  script <- file.path(root, "tests/helpers/seen.py")
  jsonlite::fromJSON(system2("python3", script, stdout = TRUE), simplifyVector = FALSE)
})

make_metric <- function(label, unit, better = "higher") {
  list(label = label, unit = unit, better = better)
}
WORKLOADS <- list(
  stream = list(title = "STREAM", about = "Memory bandwidth.", question = "memory",
                factors = data.frame(row.names = 1), figures = list(),
                metrics = list(copy = make_metric("Copy", "GB/s"),
                               triad = make_metric("Triad", "GB/s"))),
  redis = list(title = "Redis", about = "Requests to a server.", question = "databases",
               factors = data.frame(factor_test = rep(c("GET", "SET"), each = 3),
                                    factor_connections = c(1, 4, 100)),
               figures = list(list(name = "throughput", kind = "sweep", metric = "throughput",
                                   along = "connections", scale = "log"),
                              list(name = "tradeoff", kind = "against", metric = "latency",
                                   against = "throughput", along = "connections")),
               metrics = list(throughput = make_metric("Throughput", "requests/s"),
                              latency = make_metric("Mean latency", "ms", "lower"))),
  fio = list(title = "Block I/O", about = "Reads and writes of a file.", question = "storage",
             factors = data.frame(factor_job = "read_16",
                                  factor_percentile = c(1, 50, 90, 99, 99.9)),
             figures = list(list(name = "distribution", kind = "cdf",
                                 metric = "latency_percentile", along = "percentile")),
             metrics = list(latency_percentile = c(make_metric("Completion latency", "us", "lower"),
                                                   statistic = "percentile"))),
  startup = list(title = "Start-up", about = "Time to the first command.", question = "start-up",
                 factors = data.frame(row.names = 1), figures = list(),
                 metrics = list(first_command = make_metric("Until the first command's end", "s",
                                                            "lower"))),
  shop = list(title = "Web shop", about = "Orders of a shop.",
              question = "How many orders does our shop take?",
              factors = data.frame(row.names = 1), figures = list(),
              metrics = list(orders = make_metric("Orders", "1/s")))
)

#' Make a folder of results with all its tables
#'
#' @param environments,workloads names of ENVIRONMENTS and WORKLOADS
#' @param blocks number of blocks
#' @param change function of the plan that returns another one
#' @param lost logs that are missing, such as "docker/stream/2"
#' @param flags list of flags in the record of every other run of the blocks `disturbed`
#' @param disturbed,aside numbers of blocks that were disturbed, and that were set aside
#' @param kind of host in OBSERVED: "bare" or "guest"
#' @param host list of observations of the host that replace those of OBSERVED
#' @param engine function of a cell's number that returns the record's entry about Docker
#' @param choose_day function of a block's number that returns the day of its runs
#' @param sizes named by workloads: whether each kept the rule of its size
#' @return path of the folder
make_experiment <- function(environments, workloads, blocks = 6, change = identity,
                            lost = character(), flags = list(), disturbed = seq_len(blocks),
                            aside = integer(), kind = "bare", host = list(), sizes = c(),
                            engine = function(i) NULL,
                            choose_day = function(block) "2026-01-02") {
  set.seed(1)
  folder <- file.path(tempfile("made"), "results")
  for (name in c("tidy", "laps")) dir.create(file.path(folder, name), recursive = TRUE)
  plan <- change(make_plan(environments, workloads))
  writeLines(jsonlite::toJSON(plan, auto_unbox = TRUE, null = "null"),
             file.path(folder, "plan.json"))
  cells <- expand.grid(environment = environments, workload = workloads,
                       repetition = seq_len(blocks), stringsAsFactors = FALSE)
  cells <- cells[vapply(plan$environments[cells$environment], `[[`, NA, "available"), ]
  cells$position <- seq_len(nrow(cells))
  planned <- data.frame(position = cells$position, round = cells$repetition,
                        cells[c("environment", "workload", "repetition")])
  write_rows(planned, folder, "plan.csv")
  write_rows(data.frame(log = character(), reason = character()), folder, "left_out.csv")
  name <- paste(cells$environment, cells$workload, cells$repetition, sep = "/")
  cells$log <- paste0("results/raw/", name, ".log")
  cells <- cells[!name %in% lost, ]
  observed <- OBSERVED[[kind]]
  observed$host$static <- utils::modifyList(observed$host$static, host)
  for (i in seq_len(nrow(cells))) {
    cell <- cells[i, ]
    is_flagged <- i %% 2 == 0 && cell$repetition %in% disturbed
    record <- list(environment = cell$environment, workload = cell$workload,
                   started = paste0(choose_day(cell$repetition), "T03:04:05.000Z"),
                   ended = paste0(choose_day(cell$repetition), "T03:04:07.000Z"), seconds = 2,
                   node = list(name = "node-1", machine = strrep("a", 12)),
                   system = list(up_seconds = i / 10),
                   interference = list(flags = if (is_flagged) flags else list()),
                   observed = observed)
    if (cell$environment == "docker") record$system$docker <- engine(i)
    if (cell$workload %in% names(sizes)) {
      record$sizes <- list(list(rule = "It is large enough", source = "mccalpin1995", value = 5,
                                least = 4, holds = sizes[[cell$workload]]))
    }
    log <- file.path(dirname(folder), cell$log)
    dir.create(dirname(log), recursive = TRUE, showWarnings = FALSE)
    writeLines(jsonlite::toJSON(record, auto_unbox = TRUE), sub("log$", "json", log))
    file.create(log)
  }
  for (name in intersect(workloads, cells$workload)) {
    write_values(cells[cells$workload == name, ], WORKLOADS[[name]], aside, folder)
  }
  run_script("tables.R", folder)
  folder
}

make_plan <- function(environments, workloads) {
  declared <- lapply(WORKLOADS[workloads], function(workload) {
    c(workload[names(workload) != "factors"],
      list(parameters = list(threads = 2), cell = list(steps = list(list(step = "run")))))
  })
  list(scale = "paper", seed = 2014, image = list(recipe = strrep("a", 64)),
       source = list(revision = strrep("b", 40), changed = FALSE),
       machine = list(cpus = 8, memory_bytes = 2^34),
       environments = ENVIRONMENTS[environments], workloads = declared)
}

# Writes the tables of values of a workload: each cell's performance is its environment's TRUTH with
# noise, and grows from block to block.
write_values <- function(cells, workload, aside, folder) {
  factors <- workload$factors
  series <- merge(data.frame(metric = names(workload$metrics)),
                  cbind(level = 10 * seq_len(nrow(factors)), factors))
  rows <- merge(cells, series)
  metrics <- workload$metrics[rows$metric]
  is_cost <- vapply(metrics, `[[`, "", "better") == "lower"
  noise <- exp(stats::rnorm(nrow(rows), 0, 0.003))
  share <- TRUTH[rows$environment] * noise * (1 + rows$repetition / 50)
  value <- rows$level * ifelse(is_cost, 1 / share, share)
  name <- paste0(rows$workload[[1]], ".csv")
  values <- data.frame(rows[c("environment", "workload", "repetition")], round = rows$repetition,
                       order = rows$position, how = "whole", metric = rows$metric,
                       unit = vapply(metrics, `[[`, "", "unit"), value = value,
                       rows[names(factors)],
                       counts = ifelse(rows$repetition %in% aside, "no", "yes"), log = rows$log)
  write_rows(values, folder, file.path("tidy", name))
  keys <- c("environment", "workload", "repetition", "metric", names(factors))
  laps <- data.frame(rows[keys], how = "whole", lap = 1, value = value)
  write_rows(laps[0, ], folder, file.path("laps", name))
}

write_rows <- function(rows, folder, name) {
  utils::write.csv(rows, file.path(folder, name), row.names = FALSE, na = "", quote = FALSE)
}

run_script <- function(name, ...) {
  output <- suppressWarnings(system2("Rscript", c(file.path(root, "analysis", name), ...),
                                     stdout = TRUE, stderr = TRUE))
  if (!is.null(attr(output, "status"))) stop(name, ": ", paste(output, collapse = "\n"))
}

read_csv <- function(folder, name) {
  utils::read.csv(file.path(folder, paste0(name, ".csv")), na.strings = "")
}

#' Make both papers of an experiment
#'
#' @param folder of results
#' @return list: files; text (of the PDF), page (parsed HTML), html (its source), first (text of the
#'   PDF's first page), pages (number)
make_papers <- function(folder) {
  files <- file.path(dirname(folder), paste0("report.", c("pdf", "html")))
  outcomes <- parallel::mclapply(files, function(file) run_script("report.R", file, folder),
                                 mc.cores = 2)
  for (outcome in outcomes) if (inherits(outcome, "try-error")) stop(outcome)
  read_pdf <- function(...) {
    lines <- system2("pdftotext", c("-layout", ..., files[1], "-"), stdout = TRUE)
    squish(paste(lines, collapse = " "))
  }
  info <- system2("pdfinfo", files[1], stdout = TRUE)
  list(files = files, text = read_pdf(), first = read_pdf("-l", "1"),
       pages = as.integer(sub("Pages: *", "", grep("^Pages:", info, value = TRUE))),
       html = paste(readLines(files[2]), collapse = "\n"), page = xml2::read_html(files[2]))
}

squish <- function(text) gsub("\\s+", " ", text)

# Expects that a text matches a pattern, or does not; a failure does not print the whole text.
expect_says <- function(text, pattern, not = FALSE) {
  matches <- grepl(pattern, text, perl = TRUE)
  around <- ""
  if (matches && not) {
    place <- regexpr(paste0(".{0,60}(", pattern, ").{0,60}"), text, perl = TRUE)
    around <- paste(":", regmatches(text, place))
  }
  testthat::expect(matches != not, paste0(if (not) "says \"" else "does not say \"", pattern, "\"",
                                          around))
}

# Expects nothing that a failed chunk or reference leaves behind, and the same figures and tables in
# both formats.
expect_whole <- function(papers) {
  page <- squish(xml2::xml_text(xml2::xml_find_all(papers$page, "//main")))
  for (text in c(papers$text, page)) {
    for (wrong in c("\\?\\?", "character\\(0\\)", "\\bNaN\\b", "\\bInf\\b", "\\bNULL\\b",
                    "\\bNA\\b", "@ref", "\\[@[a-z]", "\\\\begin", "Error in")) {
      expect_says(text, wrong, not = TRUE)
    }
  }
  list_titles <- function(text) {
    unique(unlist(regmatches(text, gregexpr("(Figure|Table)\\s[0-9]+:", text))))
  }
  testthat::expect_setequal(list_titles(papers$text),
                            setdiff(list_titles(page), get_runs_title(papers)))
  testthat::expect_length(xml2::xml_find_all(papers$page, "//h1"), 1)
}

# The title of the table of runs, which the page alone has, as its last.
get_runs_title <- function(papers) {
  captions <- xml2::xml_text(xml2::xml_find_all(papers$page, "//caption"))
  sub("(Table\\s[0-9]+:).*", "\\1", squish(trimws(utils::tail(captions, 1))))
}

# The cells of the page's table with a caption: a character vector for each row.
read_cells <- function(papers, caption) {
  table <- xml2::xml_find_first(papers$page, sprintf("//table[contains(caption, '%s')]", caption))
  lapply(xml2::xml_find_all(table, ".//tbody/tr"), function(row) {
    trimws(xml2::xml_text(xml2::xml_find_all(row, "td")))
  })
}

# The i-th cells of such rows.
get_column <- function(rows, i) vapply(rows, `[[`, "", i)
