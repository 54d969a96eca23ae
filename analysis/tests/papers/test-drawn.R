# Figures and tables as the scripts write them; what they hold is tested without drawing them.

redis <- sweep_input("redis", few = TRUE)
nothing <- NULL
# Where figures are, once they are drawn.
folder <- tempfile()

test_that("every kind of figure is drawn, as PDF, PNG and what it draws, by the script as by the function", {
  dir.create(folder)
  mysql <- sweep_input("mysql", c("native", "docker-hostnet", "docker", "vm"), accelerator = "kvm",
                       few = TRUE)
  fio <- sweep_input("fio", c("native", "docker", "vm"))
  for (input in list(redis, mysql, fio)) {
    figures <- figures_of(input$plan, input$workload)
    for (stem in names(figures)) {
      out <- file.path(folder, stem)
      expect_silent(draw_workload(input$summary, input$tidy, input$plan, project, out, figures[[stem]]))
      expect_true(all(file.size(paste0(out, c(".pdf", ".png"))) > 5000), label = stem)
      columns <- if (figures[[stem]]$kind == "runs") FIGURE_COLUMNS else CURVE_COLUMNS
      table <- read_csv(paste0(out, ".csv"), columns)
      expect_gte(sum(table$what %in% c("run", "measured")), 8)
    }
  }
  expect_setequal(vapply(c(figures_of(redis$plan, "redis"), figures_of(fio$plan, "fio")), `[[`, "", "kind"),
                  c("runs", "sweep", "against", "cdf"))
  path <- function(kind, ending) file.path(folder, paste0(kind, ending))
  plan <- redis$plan
  plan[c("path", "results")] <- NULL
  write_json(plan, path("plan", ".json"))
  write_csv(redis$tidy, path("tidy", ".csv"))
  write_csv(redis$summary, path("summary", ".csv"))
  draw <- function(figure) {
    run_r("figure.R", "--plan", path("plan", ".json"), "--tidy", path("tidy", ".csv"), "--summary",
          path("summary", ".csv"), "--workload", "redis", "--figure", figure, "--out", path("again", ""))
  }
  expect_equal(draw("redis-p99"), list(status = 0L, output = character()))
  table_of <- function(stem) read_csv(path(stem, ".csv"), CURVE_COLUMNS)
  expect_equal(table_of("again"), table_of("redis-p99"))
  expect_equal(draw("redis-none")$status, 1L)
})

test_that("a figure of which nothing was measured says so", {
  out <- tempfile()
  figure <- list(name = "x", kind = "sweep", metric = "throughput", along = "threads")
  draw_workload(redis$summary, redis$tidy, redis$plan, project, out, figure)
  expect_equal(readLines(paste0(out, ".csv")), paste(names(CURVE_COLUMNS), collapse = ","))
  expect_gt(file.size(paste0(out, ".png")), 300)
})

test_that("a figure of many panels fits on a page", {
  figures <- figures_of(redis$plan, "redis")
  sizes <- vapply(names(figures), function(stem) {
    png <- readBin(file.path(folder, paste0(stem, ".png")), "raw", 24)
    sum(as.integer(png[21:24]) * 256^(3:0)) / 200
  }, 0)
  expect_true(all(sizes <= MOST_HEIGHT + 0.01))
  whole <- sweep_data(redis$summary, redis$plan, nothing,
                      list(kind = "sweep", metric = "throughput", along = "connections", loss = TRUE))
  expect_equal(nlevels(whole$points$panel), 8)
})

test_that("the scripts draw what there is, again the same, and without a warning", {
  plan <- read_plan(make_results(c("native", "docker", "podman"), c("stream", "linpack"), 2,
                                 labels = c("Native", "Docker \u2212 bridge", "Podman")))
  unlink(file.path(plan$results, "raw", "podman"), recursive = TRUE)
  csv <- function(kind, name) file.path(plan$results, kind, paste0(name, ".csv"))
  for (name in c("stream", "linpack")) {
    tidy <- tidy_workload(plan, name, parser_of(name), partial = TRUE)
    write_csv(tidy, csv("tidy", name))
    write_csv(summarise_workload(tidy, plan, read_cells(plan)), csv("summary", name))
  }
  out <- function(name) file.path(plan$results, "figures", name)
  draw <- function(name) {
    run_r("figure.R", "--plan", plan$path, "--summary", csv("summary", name), "--tidy", csv("tidy", name),
          "--out", out(name))
  }
  files <- function(name) paste0(out(name), c(".csv", ".pdf", ".png"))
  for (name in c("stream", "linpack")) {
    expect_equal(draw(name), list(status = 0L, output = character()))
    expect_true(all(file.size(files(name)) > 300))
  }
  drawn <- utils::read.csv(paste0(out("linpack"), ".csv"))
  expect_equal(names(drawn), names(FIGURE_COLUMNS))
  expect_equal(sort(unique(drawn$environment)), c("docker", "native"))
  expect_equal(sum(drawn$what == "run"), 4)
  run <- run_r("figure.R", "--order", "--plan", plan$path, "--out", out("order"), csv("tidy", "stream"),
               csv("tidy", "linpack"))
  expect_equal(run, list(status = 0L, output = character()))
  expect_equal(nrow(utils::read.csv(paste0(out("order"), ".csv"))), 4 * 4 + 4)
  before <- sha256(files("linpack")[c(1, 3)])
  expect_equal(draw("linpack")$status, 0L)
  expect_equal(sha256(files("linpack")[c(1, 3)]), before)
})
