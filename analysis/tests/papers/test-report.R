#' The text of a PDF
text_of <- function(pdf) {
  paste(system2("pdftotext", c("-layout", shQuote(pdf), "-"), stdout = TRUE), collapse = "\n")
}

test_that("the paper is written, the same bytes from any folder and locale", {
  skip_without_latex()
  plan <- make_paper_results(labels = c("Native", "Docker & 100%_#$", "VM, \u4e2d~^\\"))
  out <- file.path(tempfile(), "report.pdf")
  done <- run_r("report.R", "--plan", plan, "--out", out)
  expect_equal(done$status, 0)
  expect_no_match(done$output, "LaTeX notes")
  expect_no_match(done$output, "arning")
  text <- text_of(out)
  expect_match(text, "Docker & 100%_#$", fixed = TRUE)
  expect_match(text, "Measured Again", fixed = TRUE)
  expect_no_match(text, "??", fixed = TRUE)
  expect_no_match(text, "partial", fixed = TRUE)
  expect_no_match(text, HOSTS$mark, fixed = TRUE)
  for (number in 1:19) {
    expect_match(text, paste0("[", number, "] "), fixed = TRUE)
  }
  again <- file.path(tempfile(), "again.pdf")
  in_folder(dirname(dirname(plan)), {
    suppressWarnings(system2(file.path(R.home("bin"), "Rscript"), shQuote(c(
      file.path(project, "analysis", "report.R"), "--plan", "results/plan.json", "--out", again
    )), env = c("LC_ALL=C", "TZ=Asia/Tokyo"), stdout = FALSE, stderr = FALSE))
  })
  expect_equal(unname(tools::md5sum(again)), unname(tools::md5sum(out)))
})

test_that("a missing cell is an error, or a paper that says so", {
  skip_without_latex()
  plan <- with_blank_figures(make_paper_results())
  unlink(file.path(dirname(plan), "raw", "docker", "linpack", c("2.log", "2.json")))
  failed <- file.path(dirname(plan), "failed", "docker", "linpack")
  dir.create(failed, recursive = TRUE)
  write_json(list(error = "killed by signal 9"), file.path(failed, "2.json"))
  analyse(plan, draw = FALSE)
  out <- tempfile(fileext = ".pdf")
  done <- run_r("report.R", "--plan", plan, "--out", out)
  expect_equal(done$status, 1)
  expect_match(done$output[length(done$output)], "1 of 18 cells were not measured.*docker/linpack/2")
  expect_false(file.exists(out))
  # One of the cells was measured on an emulated host, which every page tells.
  path <- file.path(dirname(plan), "raw", "native", "linpack", "1.json")
  record <- read_json(path)
  record$observed$host$static$machine <- HOSTS$emulated[[1]]
  write_json(record, path)
  analyse(plan, draw = FALSE)
  expect_equal(run_r("report.R", "--plan", plan, "--out", out, "--partial")$status, 0)
  text <- text_of(out)
  pages <- strsplit(text, "\f", fixed = TRUE)[[1]]
  expect_gt(length(pages), 5)
  expect_equal(grep(HOSTS$mark, pages, fixed = TRUE, invert = TRUE), integer())
  expect_match(text, "(Partial Results)", fixed = TRUE)
  expect_match(text, "killed by signal 9", fixed = TRUE)
})

test_that("nothing measured is a paper too", {
  skip_without_latex()
  plan <- make_results(repetitions = 1)
  unlink(file.path(dirname(plan), "raw"), recursive = TRUE)
  with_blank_figures(analyse(plan))
  out <- tempfile(fileext = ".pdf")
  done <- run_r("report.R", "--plan", plan, "--out", out, "--partial")
  expect_equal(done$status, 0)
  expect_match(text_of(out), "Nothing was measured", fixed = TRUE)
})

test_that("workloads of which every set was left out or set aside are named in a paper", {
  skip_without_latex()
  plan <- read_plan(make_results(c("native", "docker"), c("stream", "linpack", "pxz"), 2))
  tidy_of <- function(workload) result_path(plan, "tidy", workload = workload)
  refused <- read_tidy(tidy_of("linpack"), plan)
  write_csv(data.frame(log = refused$log, reason = "no rate"),
            result_path(plan, "left_out"))
  write_csv(refused[0, ], tidy_of("linpack"))
  write_csv(updated(read_tidy(tidy_of("pxz"), plan), counts = "no"), tidy_of("pxz"))
  for (script in c("tables.R", "figures.R")) {
    expect_equal(run_r(script, "--plan", plan$path), list(status = 0L, output = character()))
  }
  for (kind in c("pdf", "html")) {
    out <- tempfile(fileext = paste0(".", kind))
    done <- run_r("report.R", "--plan", plan$path, "--out", out)
    expect_equal(done$status, 0, info = done$output)
    expect_no_match(done$output, "LaTeX notes")
    text <- if (kind == "pdf") text_of(out) else xml2::xml_text(xml2::read_html(out))
    expect_match(read_aloud(gsub("[ \n]+", " ", text)), "(no rate)", fixed = TRUE)
  }
})

test_that("virtual machines are in the paper by their true name, whole or in part", {
  skip_without_latex()
  plan <- make_machine_results("tcg", workloads = c("stream", "pxz"), repetitions = 2)
  with_blank_figures(analyse(plan))
  out <- tempfile(fileext = ".pdf")
  done <- run_r("report.R", "--plan", plan, "--out", out)
  expect_equal(done$status, 0)
  expect_no_match(done$output, "LaTeX notes")
  text <- gsub("[ \n]+", " ", text_of(out))
  for (shown in c("Emulated Virtual Machines", "VM (TCG emulation)", "Emulation.",
                  "tried and could not be proven", "What it took to bring an environment up",
                  "no: emulation knows no host-passthrough")) {
    expect_match(text, shown, fixed = TRUE)
  }
  # A part of the runs of one environment, and none of another.
  raw <- file.path(dirname(plan), "raw")
  unlink(file.path(raw, "vm", "pxz", "2.log"))
  unlink(file.path(raw, c("vm-tuned", "vm-docker-hostnet")), recursive = TRUE)
  analyse(plan, draw = FALSE)
  page <- file.path(dirname(plan), "report.html")
  expect_equal(run_r("report.R", "--plan", plan, "--out", page, "--partial")$status, 0)
  html <- read_text(page)
  expect_match(html, "id=\"table-footprint\"", fixed = TRUE)
  expect_match(html, "id=\"table-settings\"", fixed = TRUE)
  expect_match(html, "KVM, tuned was not measured", fixed = TRUE)
})

test_that("environments that are not available are rows with their reason, and no more is told of them", {
  plan_path <- make_machine_results("tcg", c("native", "docker"), workloads = "pxz", repetitions = 2,
                                    change = function(plan) {
    entry <- planned_environment("vm", "VM (TCG emulation)", "tcg")
    plan$environments$vm <- updated(entry, available = FALSE, reason = "vagrant is not installed")
    plan$environments$vm["accelerator"] <- list(NULL)
    plan
  })
  with_blank_figures(analyse(plan_path))
  page <- file.path(dirname(plan_path), "report.html")
  expect_equal(run_r("report.R", "--plan", plan_path, "--out", page)$status, 0)
  html <- read_text(page)
  expect_match(html, "Not available: vagrant is not installed", fixed = TRUE)
  expect_no_match(html, "table-settings", fixed = TRUE)
  expect_no_match(html, "<strong>Emulation", fixed = TRUE)
  expect_match(html, "KVM is not available here: vagrant is not installed", fixed = TRUE)
})

test_that("a missing figure, a failed LaTeX and bad options leave the earlier paper as it was", {
  skip_without_latex()
  plan <- with_blank_figures(make_paper_results(repetitions = 2))
  out <- tempfile(fileext = ".pdf")
  writeLines("the earlier paper", out)
  evidence <- read_evidence(plan, project)
  root <- tempfile("root-")
  dir.create(root)
  file.copy(file.path(project, "paper"), root, recursive = TRUE)
  template <- file.path(root, "paper", "template.tex")
  broken <- sub("\\begin{document}", "\\begin{document}\\nonsense", readLines(template), fixed = TRUE)
  writeLines(broken, template)
  expect_error(capture.output(write_report(evidence, root, out)),
               "LaTeX failed:\n! Undefined control sequence")
  figure <- file.path(dirname(plan), "figures", "order.pdf")
  unlink(figure)
  done <- run_r("report.R", "--plan", plan, "--out", out)
  expect_equal(done$status, 1)
  expect_equal(done$output[length(done$output)], paste0("report.R: ", figure, ": no such figure"))
  expect_match(run_r("report.R", "--plan", plan)$output, "missing: --out", all = FALSE)
  expect_match(run_r("report.R", "--plan", "none.json", "--out", out)$output, "none.json: no such file",
               all = FALSE)
  expect_equal(readLines(out), "the earlier paper")
})
