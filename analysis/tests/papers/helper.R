# Whole experiments with a known truth: plan, tidy tables and records in the shape that the harness gives
# them.
root <- normalizePath(file.path(testthat::test_path(), "..", "..", ".."))

environment_of <- function(label, layers, kinds, emulated = FALSE, available = TRUE, reason = NULL) {
  told <- lapply(kinds, function(kind) list(kind = kind, title = kind, network = "bridge", data = "volume"))
  list(label = label, available = available, reason = reason, layers = layers, told = told,
       emulated = emulated)
}
machine <- function(label) environment_of(label, list(list(vm = list(profile = "default"))), "machine")
ENVIRONMENTS <- list(
  native = environment_of("Native", list(list(chroot = list())), "bare"),
  docker = environment_of("Docker", list(list(docker = list(network = "bridge", data = "volume"))),
                          "container"),
  "docker-hostnet" = environment_of("Docker (host network)",
                                    list(list(docker = list(network = "host", data = "volume"))),
                                    "container"),
  "docker-gvisor" = environment_of("Docker with gVisor",
                                   list(list(docker = list(network = "bridge", runtime = "runsc",
                                     sandbox = list(stack = "own")))), "sandbox"),
  vm = machine("KVM"), "vm-tuned" = machine("KVM, tuned")
)
# How much of native's performance each has.
TRUTH <- c(native = 1, docker = 1, "docker-hostnet" = 1, "docker-gvisor" = 0.7, vm = 0.9, "vm-tuned" = 0.97)

# What Python's observers make of a captured host, bare and as a guest.
SEEN <- withr::with_envvar(c(PYTHONPATH = root), jsonlite::fromJSON(simplifyVector = FALSE,
  system2("python3", file.path(root, "tests/helpers/seen.py"), stdout = TRUE)))

metric_of <- function(label, unit, better = "higher") list(label = label, unit = unit, better = better)
WORKLOADS <- list(
  stream = list(title = "STREAM", about = "Memory bandwidth.", question = "memory",
                factors = data.frame(row.names = 1),
                figures = list(),
                metrics = list(copy = metric_of("Copy", "GB/s"), triad = metric_of("Triad", "GB/s"))),
  redis = list(title = "Redis", about = "Requests to a server.", question = "databases",
               factors = data.frame(factor_test = rep(c("GET", "SET"), each = 3),
                                    factor_connections = c(1, 4, 100)),
               figures = list(list(name = "throughput", kind = "sweep", metric = "throughput",
                                   along = "connections", scale = "log"),
                              list(name = "tradeoff", kind = "against", metric = "latency",
                                   against = "throughput", along = "connections")),
               metrics = list(throughput = metric_of("Throughput", "requests/s"),
                              latency = metric_of("Mean latency", "ms", "lower"))),
  fio = list(title = "Block I/O", about = "Reads and writes of a file.", question = "storage",
             factors = data.frame(factor_job = "read_16", factor_percentile = c(1, 50, 90, 99, 99.9)),
             figures = list(list(name = "distribution", kind = "cdf", metric = "latency_percentile",
                                 along = "percentile")),
             metrics = list(latency_percentile = c(metric_of("Completion latency", "us", "lower"),
               statistic = "percentile"))),
  startup = list(title = "Start-up", about = "Time to the first command.", question = "start-up",
                 factors = data.frame(row.names = 1), figures = list(),
                 metrics = list(first_command = metric_of("Until the first command's end", "s", "lower")))
)

#' A folder of results with all its tables
#'
#' @param environments,workloads names of the above
#' @param blocks how many
#' @param change a function of the plan, for what is not as usual
#' @param lost logs that are missing, such as "docker/stream/2"
#' @param flags of the quiet record, of every other run of the blocks `disturbed`
#' @param aside blocks that were set aside
#' @param kind of host: bare or guest
#' @param host what records saw of it otherwise
#' @param engine a function of a cell's number: what its record says of Docker
#' @param sizes whether a workload kept the rule of its size, by its name
#' @return path
made_experiment <- function(environments, workloads, blocks = 6, change = identity, lost = character(),
                            flags = list(), disturbed = seq_len(blocks), aside = integer(),
                            kind = "bare", host = list(), sizes = c(), engine = function(i) NULL) {
  set.seed(1)
  folder <- file.path(tempfile("made"), "results")
  for (name in c("tidy", "laps")) dir.create(file.path(folder, name), recursive = TRUE)
  declared <- lapply(WORKLOADS[workloads], function(one) {
    c(one[names(one) != "factors"], list(parameters = list(threads = 2),
                                         cell = list(steps = list(list(step = "run")))))
  })
  plan <- change(list(scale = "paper", seed = 2014, image = list(recipe = strrep("a", 64)),
                      source = list(revision = strrep("b", 40), changed = FALSE),
                      machine = list(cpus = 8, memory_bytes = 2^34),
                      environments = ENVIRONMENTS[environments], workloads = declared))
  writeLines(jsonlite::toJSON(plan, auto_unbox = TRUE, null = "null"), file.path(folder, "plan.json"))
  cells <- expand.grid(environment = environments, workload = workloads, repetition = seq_len(blocks),
                       stringsAsFactors = FALSE)
  cells <- cells[vapply(plan$environments[cells$environment], `[[`, NA, "available"), ]
  cells$position <- seq_len(nrow(cells))
  write_table <- function(rows, name) {
    utils::write.csv(rows, file.path(folder, name), row.names = FALSE, na = "", quote = FALSE)
  }
  write_table(data.frame(position = cells$position, round = cells$repetition,
                         cells[c("environment", "workload", "repetition")]), "plan.csv")
  write_table(data.frame(log = character(), reason = character()), "left_out.csv")
  cells <- cells[!paste(cells$environment, cells$workload, cells$repetition, sep = "/") %in% lost, ]
  cells$log <- paste0("results/raw/", cells$environment, "/", cells$workload, "/", cells$repetition, ".log")
  seen <- SEEN[[kind]]
  seen$host$static <- utils::modifyList(seen$host$static, host)
  for (i in seq_len(nrow(cells))) {
    path <- file.path(dirname(folder), sub("log$", "json", cells$log[i]))
    dir.create(dirname(path), recursive = TRUE, showWarnings = FALSE)
    record <- list(environment = cells$environment[i], workload = cells$workload[i],
                   started = "2026-01-02T03:04:05Z", seconds = 2,
                   system = c(list(up_seconds = i / 10),
                              if (cells$environment[i] == "docker") list(docker = engine(i))),
                   quiet = list(flags = if (i %% 2 == 0 && cells$repetition[i] %in% disturbed) flags
                                else list()),
                   observed = seen)
    if (cells$workload[i] %in% names(sizes)) {
      record$sizes <- list(list(rule = "It is large enough", source = "mccalpin1995", value = 5, least = 4,
                                holds = sizes[[cells$workload[i]]]))
    }
    writeLines(jsonlite::toJSON(record, auto_unbox = TRUE), path)
    file.create(file.path(dirname(folder), cells$log[i]))
  }
  for (name in intersect(workloads, cells$workload)) {
    factors <- WORKLOADS[[name]]$factors
    series <- merge(data.frame(metric = names(WORKLOADS[[name]]$metrics)),
                    cbind(level = 10 * seq_len(nrow(factors)), factors))
    rows <- merge(cells[cells$workload == name, ], series)
    cost <- vapply(WORKLOADS[[name]]$metrics[rows$metric], `[[`, "", "better") == "lower"
    share <- TRUTH[rows$environment] * exp(stats::rnorm(nrow(rows), 0, 0.003)) * (1 + rows$repetition / 50)
    value <- rows$level * ifelse(cost, 1 / share, share)
    write_table(data.frame(rows[c("environment", "workload", "repetition")], round = rows$repetition,
                           order = rows$position, metric = rows$metric,
                           unit = vapply(WORKLOADS[[name]]$metrics[rows$metric], `[[`, "", "unit"),
                           value = value, rows[names(factors)],
                           check = "passed", counts = ifelse(rows$repetition %in% aside, "no", "yes"),
                           log = rows$log),
                           file.path("tidy", paste0(name, ".csv")))
    write_table(data.frame(rows[c("environment", "workload", "repetition", "metric", names(factors))],
                           lap = 1, value = value)[0, ],
                file.path("laps", paste0(name, ".csv")))
  }
  run_script("tables.R", folder)
  folder
}

run_script <- function(name, ...) {
  done <- suppressWarnings(system2("Rscript", c(file.path(root, "analysis", name), ...), stdout = TRUE,
                                   stderr = TRUE))
  if (!is.null(attr(done, "status"))) stop(name, ": ", paste(done, collapse = "\n"))
}

table_of <- function(folder, name) utils::read.csv(file.path(folder, paste0(name, ".csv")), na.strings = "")

#' Both papers of an experiment
#'
#' @return list: files; text (of the PDF), page (parsed HTML), html (its source), first (the PDF's first
#'   page), pages (how many)
papers_of <- function(folder) {
  out <- file.path(dirname(folder), paste0("report.", c("pdf", "html")))
  done <- parallel::mclapply(out, function(one) run_script("report.R", one, folder), mc.cores = 2)
  for (one in done) if (inherits(one, "try-error")) stop(one)
  text <- function(...) {
    squish(paste(system2("pdftotext", c("-layout", ..., out[1], "-"), stdout = TRUE), collapse = " "))
  }
  info <- system2("pdfinfo", out[1], stdout = TRUE)
  list(files = out, text = text(), first = text("-l", "1"),
       pages = as.integer(sub("Pages: *", "", grep("^Pages:", info, value = TRUE))),
       html = paste(readLines(out[2]), collapse = "\n"), page = xml2::read_html(out[2]))
}

squish <- function(text) gsub("\\s+", " ", text)

# Whether a text holds words, without printing the text where it does not.
expect_says <- function(text, words, not = FALSE) {
  found <- grepl(words, text, perl = TRUE)
  around <- if (found && not) paste(":", regmatches(text,
    regexpr(paste0(".{0,60}(", words, ").{0,60}"), text, perl = TRUE)))
  testthat::expect(found != not, paste0(if (not) "says \"" else "does not say \"", words, "\"", around))
}

# Nothing of what a chunk or a reference that failed leaves behind; the same figures and tables in both
# formats.
expect_whole <- function(papers) {
  page <- squish(xml2::xml_text(xml2::xml_find_all(papers$page, "//main")))
  for (text in c(papers$text, page)) {
    for (wrong in c("\\?\\?", "character\\(0\\)", "\\bNaN\\b", "\\bInf\\b", "\\bNULL\\b", "\\bNA\\b", "@ref",
                    "\\\\begin", "Error in")) {
      expect_says(text, wrong, not = TRUE)
    }
  }
  titles <- function(text) unique(unlist(regmatches(text, gregexpr("(Figure|Table)\\s[0-9]+:", text))))
  testthat::expect_setequal(titles(papers$text), setdiff(titles(page), runs_title(papers)))
  testthat::expect_length(xml2::xml_find_all(papers$page, "//h1"), 1)
}

# The page alone has the table of runs, which is its last.
runs_title <- function(papers) {
  captions <- xml2::xml_text(xml2::xml_find_all(papers$page, "//caption"))
  sub("(Table\\s[0-9]+:).*", "\\1", squish(trimws(tail(captions, 1))))
}

cells_of <- function(papers, caption) {
  table <- xml2::xml_find_first(papers$page, sprintf("//table[contains(caption, '%s')]", caption))
  lapply(xml2::xml_find_all(table, ".//tbody/tr"),
         function(row) trimws(xml2::xml_text(xml2::xml_find_all(row, "td"))))
}
