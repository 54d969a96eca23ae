# Made-up tidy tables of workloads that measure sweeps, as their parsers would give them.

#' How much slower an environment is than native
SWEEP_SLOWER <- c(native = 1, docker = 1.2, "docker-hostnet" = 1.02, "docker-layered" = 1.22, vm = 1.5,
                  "vm-tuned" = 1.35, "vm-docker" = 1.7, "vm-docker-hostnet" = 1.55)

#' What the workloads declare, as it is in a plan
sweep_workloads <- function(workloads) {
  declared <- lapply(workloads, function(name) {
    entry <- yaml::read_yaml(file.path(project, "workloads", name, "workload.yaml"),
                             handlers = list(int = as.numeric))
    c(entry[intersect(names(entry), c("title", "about", "question", "metrics", "figures", "headline"))],
      list(warmup = "none", notes = list(), parameters = list(seconds = 2)))
  })
  stats::setNames(declared, workloads)
}

#' The series of a workload with their values in native
sweep_series <- function(workload, few = FALSE) {
  rows <- function(metric, factors, value) data.frame(metric = metric, factors = factors, value = value)
  saturating <- function(most, half, at) most * at / (half + at)
  connections <- if (few) c(1, 10) else c(1, 2, 3, 4, 5, seq(10, 120, 10))
  threads <- if (few) c(10, 50) else seq(10, 290, 20)
  percentiles <- c(1, 5, seq(10, 90, 10), 95, 99, 99.5, 99.9, 99.95, 99.99)
  switch(workload, nuttcp = do.call(rbind, lapply(c("transmit", "receive"), function(direction) {
    rows(c("throughput", "cpu_seconds_per_gb", "stream"), paste0("direction=", direction), c(11, 0.8, 12))
  })), netperf = do.call(rbind, lapply(c("TCP_RR", "UDP_RR"), function(test) {
    rows(c("latency", "p50", "p99", "latency_together"), paste0("test=", test), c(17.6, 17.1, 34, 7.6))
  })), fio = rbind(
    rows("bandwidth", paste0("job=", c("sequential-fill", "seq-read-1", "seq-read-2"), ";direction=",
                             c("write", "read", "read")), c(600, 700, 800)),
    rows("iops", "job=mixed-random-rw-32x8;direction=both", 104000),
    do.call(rbind, Map(function(job, direction, iops, latency) {
      factors <- paste0("job=", job, ";direction=", direction)
      tail <- latency * stats::qlnorm(percentiles / 100, 0, 0.35)
      rbind(if (!startsWith(job, "mixed")) rows("iops", factors, iops), rows("latency", factors, latency),
            rows("latency_percentile", paste0(factors, ";percentile=", sprintf("%.2f", percentiles)), tail))
    }, c("random-read-16", "random-read-16x8", "random-write-16", "random-write-16x8",
         rep("mixed-random-rw-32x8", 2)),
    c("read", "read", "write", "write", "read", "write"), c(61000, 84000, 58000, 112000, NA, NA),
    c(260, 1500, 270, 1140, 2400, 2500)))
  ), redis = do.call(rbind, lapply(c("SET", "GET"), function(test) {
    do.call(rbind, lapply(c("", ";pipeline=10"), function(pipeline) {
      faster <- if (pipeline == "") 1 else 6
      rate <- faster * saturating(125000, 4, connections)
      factors <- paste0("test=", test, ";connections=", connections, pipeline)
      rbind(rows("throughput", factors, rate), rows("latency", factors, 1000 * faster * connections / rate),
            rows("p99", factors, 2500 * faster * connections / rate))
    }))
  })), mysql = do.call(rbind, lapply(c("", "test=read-write;"), function(test) {
    rate <- saturating(14500, 40, threads) / if (test == "") 1 else 3
    factors <- paste0(test, "threads=", threads)
    rbind(rows("throughput", factors, rate), rows("latency", factors, 1000 * threads / rate),
          rows("p95", factors, 1700 * threads / rate),
          rows("cpu", factors, saturating(99, 30, threads)))
  })))
}

#' A plan with workloads that measure sweeps
#'
#' @param accelerator of the virtual machines
sweep_plan <- function(workloads, environments = names(SWEEP_SLOWER), accelerator = "tcg", repetitions = 6) {
  entries <- Map(planned_environment, environments, all_labels(accelerator)[environments], accelerator)
  list(format = 3, scale = "smoke", seed = 7, repetitions = repetitions,
       image = list(recipe = strrep("ab", 32)),
       machine = list(cpus = 2, memory_bytes = 4e9, cache_bytes = 3e7),
       environments = entries, workloads = sweep_workloads(workloads),
       path = "nowhere/plan.json", results = "nowhere")
}

#' The tidy table of a workload that measures a sweep
sweep_tidy <- function(plan, workload, few = FALSE, emulation = 12, spread = 0.04) {
  set.seed(11)
  series <- sweep_series(workload, few)
  metrics <- metrics_of(plan, workload)
  better <- metrics$better[match(series$metric, metrics$metric)]
  cells <- expand.grid(environment = names(plan$environments), repetition = seq_len(plan$repetitions),
                       stringsAsFactors = FALSE)
  tables <- lapply(seq_len(nrow(cells)), function(i) {
    environment <- cells$environment[[i]]
    slower <- SWEEP_SLOWER[[environment]] * if (environment %in% emulated_environments(plan)) emulation else 1
    slower <- slower * exp(stats::rnorm(nrow(series), 0, spread))
    value <- series$value * ifelse(better == "higher", 1 / slower, slower)
    # How busy the host is does not depend on how slow its system is.
    value[series$metric == "cpu"] <- (series$value / slower^0.2)[series$metric == "cpu"]
    data.frame(
      environment = environment, workload = workload, repetition = cells$repetition[[i]],
      block = cells$repetition[[i]], position = i, order = i, metric = series$metric,
      unit = metrics$unit[match(series$metric, metrics$metric)], value = value, factors = series$factors,
      check = "passed", counts = "yes",
      log = sprintf("results/raw/%s/%s/%d.log", environment, workload, cells$repetition[[i]])
    )
  })
  do.call(rbind, tables)
}

#' Plan, tidy table and summary of a workload that measures a sweep
sweep_input <- function(workload, ..., few = FALSE, emulation = 12) {
  plan <- sweep_plan(workload, ...)
  tidy <- sweep_tidy(plan, workload, few, emulation)
  cells <- unique(tidy[c("environment", "workload", "repetition", "counts")])
  list(plan = plan, workload = workload, tidy = tidy, summary = summarise_workload(tidy, plan, cells))
}

#' A results folder of workloads that measure sweeps, with all that the paper needs
#'
#' Logs are made up too: they hold what an archive or a link needs, and no values.
#'
#' @return path of its plan.json
make_sweep_results <- function(workloads, ..., few = TRUE, results = file.path(tempfile("run-"), "results")) {
  plan <- sweep_plan(workloads, ...)
  plan[c("path", "results")] <- NULL
  path <- file.path(results, "plan.json")
  dir.create(results, recursive = TRUE)
  write_json(plan, path)
  plan <- read_plan(path)
  tidy <- stats::setNames(lapply(workloads, function(name) sweep_tidy(plan, name, few)), workloads)
  cells <- unique(do.call(rbind, tidy)[c("block", "environment", "workload", "repetition")])
  write_csv(cbind(position = seq_len(nrow(cells)), cells), file.path(results, "plan.csv"))
  cells <- read_cells(plan)
  for (i in seq_len(nrow(cells))) {
    cell <- cells[i, ]
    base <- file.path(results, "raw", cell$environment, cell$workload, cell$repetition)
    dir.create(dirname(base), recursive = TRUE, showWarnings = FALSE)
    writeLines("{\"done\": true}", paste0(base, ".log"))
    record <- small_record(cell$environment, cell$repetition, workload = cell$workload)
    machine <- startsWith(cell$environment, "vm")
    record$system <- list(id = paste0("s", cell$environment, cell$repetition), cells_before = 0,
                          vm = if (machine) machine_facts(cell$environment, "tcg"))
    write_json(c(record, list(scale = "smoke")), paste0(base, ".json"))
  }
  for (name in workloads) {
    write_csv(tidy[[name]], file.path(results, "tidy", paste0(name, ".csv")))
  }
  write_tables(plan, project)
  draw_all(plan, project)
  path
}
