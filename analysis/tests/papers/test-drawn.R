# Figures and tables as the scripts write them; what they hold is tested without drawing them.

redis <- sweep_input("redis", few = TRUE)
nothing <- NULL
# Where figures are, once they are drawn.
folder <- tempfile()

test_that("every kind of figure is drawn, as PDF, PNG and what it draws", {
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

test_that("the script draws what was measured, and without a warning", {
  plan <- read_plan(make_results(c("native", "docker", "podman"), c("stream", "linpack"), 2,
                                 labels = c("Native", "Docker \u2212 bridge", "Podman")))
  unlink(file.path(plan$results, "raw", "podman"), recursive = TRUE)
  analyse(plan$path, draw = FALSE)
  expect_equal(run_r("figures.R", "--plan", plan$path), list(status = 0L, output = character()))
  drawn <- function(stem) utils::read.csv(result_path(plan, "figure", stem = stem, ending = "csv"))
  expect_equal(names(drawn("linpack")), names(FIGURE_COLUMNS))
  expect_equal(sort(unique(drawn("linpack")$environment)), c("docker", "native"))
  expect_equal(sum(drawn("linpack")$what == "run"), 4)
  expect_equal(nrow(drawn("order")), 4 * 4 + 4)
})
