# Tables that are stored beside this file: the same runs must give them again, to the byte.
# Who changes them on purpose makes them anew: STRATA_STORE=1 scripts/test-r.sh THIS-FILE, and says why.

#' Makes every table of a results folder of single runs
make_tables <- function(plan_path) {
  plan <- read_plan(plan_path)
  cells <- read_cells(plan)
  at <- function(...) file.path(plan$results, ...)
  workloads <- names(plan$workloads)
  tables <- stats::setNames(lapply(workloads, function(name) tidied(plan, name)),
                            workloads)
  summaries <- lapply(tables, summarise_workload, plan = plan, cells = cells)
  for (name in workloads) {
    write_csv(tables[[name]], at("tidy", paste0(name, ".csv")))
    write_csv(summaries[[name]], at("summary", paste0(name, ".csv")), digits = 10)
  }
  all <- do.call(rbind, unname(tables))
  claims <- read_claims(file.path(project, "published", "claims.json"))
  write_csv(comparison_table(do.call(rbind, unname(summaries)), plan), at("comparisons.csv"), digits = 10)
  write_csv(test_claims(claims, all, plan, host_sockets(plan, all)), at("claims.csv"), digits = 10)
  write_csv(footprint_table(records_of(plan, all), plan), at("footprint.csv"), digits = 10)
  write_csv(sets_table(all, records_of(plan, all), plan), at("sets.csv"), digits = 10)
  write_csv(choices_table(all, plan), at("choices.csv"), digits = 10)
  published <- read_published_ratios(project)
  runs <- workload_data(summaries$stream, tables$stream, plan, published)
  ratios <- ratio_data(do.call(rbind, unname(summaries)), plan, published$ratios, published$known)
  # What the figures draw: they themselves take long.
  write_csv(drawn(runs), at("figures", "stream.csv"))
  write_csv(order_data(tables, plan), at("figures", "order.csv"))
  write_csv(drift_data(tables, plan), at("figures", "drift.csv"))
  write_csv(ratios[names(RATIO_COLUMNS)], at("figures", "ratios.csv"))
  plan$results
}

#' Expects that a folder holds the tables of a stored set, or stores them
expect_stored <- function(results, set) {
  tables <- setdiff(list.files(results, "[.]csv$", recursive = TRUE), c("plan.csv", "left_out.csv"))
  stored <- testthat::test_path("stored", set)
  if (Sys.getenv("STRATA_STORE") != "") {
    unlink(stored, recursive = TRUE)
    for (folder in unique(dirname(file.path(stored, tables)))) dir.create(folder, recursive = TRUE)
    file.copy(file.path(results, tables), file.path(stored, tables))
  }
  expect_setequal(tables, list.files(stored, recursive = TRUE))
  for (table in tables) {
    expect_equal(readLines(file.path(results, table)), readLines(file.path(stored, table)), label = table)
    expect_equal(unname(tools::md5sum(file.path(results, table))),
                 unname(tools::md5sum(file.path(stored, table))), label = paste("the bytes of", table))
  }
}

test_that("single runs give the stored tables", {
  plan <- make_machine_results("kvm", c("native", "docker", "vm"), repetitions = 6, seed = 2014)
  expect_stored(make_tables(plan), "runs")
})

test_that("values of a sweep give the stored tables", {
  sweep <- sweep_input("redis", environments = c("native", "docker", "vm"), few = TRUE)
  results <- tempfile("results-")
  write_csv(sweep$tidy, file.path(results, "tidy", "redis.csv"))
  write_csv(sweep$summary, file.path(results, "summary", "redis.csv"), digits = 10)
  rows <- comparison_table(sweep$summary, sweep$plan)
  write_csv(rows, file.path(results, "comparisons.csv"), digits = 10)
  expect_stored(results, "sweep")
})
