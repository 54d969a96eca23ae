secret <- "-----BEGIN RSA PRIVATE KEY-----"

test_that("private keys are told by their names and never opened, in folders and in git", {
  private <- c("common/id_rsa", "mysql/KVM/common/key", "mysql/results/common/records-20140101000000-0",
               "mysql/results/performance-governor/bml/id_dsa", "redis/results/server.pem",
               "mysql/results/bml/records.key", "Stream/results/.ssh/vm.log")
  files <- c(stats::setNames(rep(list(secret), length(private)), private),
             list("Stream/results/vm.log" = stream_log(1:4)))
  folder <- do.call(published_folder, files)
  skip_if(Sys.which("git") == "", "git is not installed")
  repository <- as_repository(do.call(published_folder, files))
  bare <- paste0(repository, ".git")
  git_in(repository, "clone", "-q", "--bare", repository, bare)
  for (path in c(folder, bare)) {
    source <- open_source(path)
    all <- collect(source)
    expect_equal(ls(source$opened), "Stream/results/vm.log")
    expect_false(any(private %in% source$files))
    expect_equal(nrow(all$unreadable), 0)
    expect_error(fetch(source, "mysql/results/common/records-20140101000000-0"), "is private and is not read")
  }
  expect_setequal(source$private, private)
  expect_equal(sum(all$sources$use == "not opened"), length(private))
})

test_that("a pipe in place of a private key is not waited for", {
  folder <- published_folder("Stream/results/vm.log" = stream_log(1:4))
  dir.create(file.path(folder, "mysql/results/common"), recursive = TRUE)
  expect_equal(system2("mkfifo", file.path(folder, "mysql/results/common/records-20140101000000-0")), 0)
  setTimeLimit(elapsed = 20, transient = TRUE)
  on.exit(setTimeLimit())
  expect_equal(nrow(collect(open_source(folder))$tidy), 4)
})

test_that("links that lead out of the results, or to a key, are not followed", {
  folder <- published_folder("Stream/results/vm.log" = stream_log(1:4), "common/id_rsa" = secret)
  outside <- tempfile()
  writeLines(stream_log(5:8), outside)
  file.symlink(outside, file.path(folder, "Stream/results/linux.log"))
  file.symlink("../../common/id_rsa", file.path(folder, "Stream/results/docker.log"))
  source <- open_source(folder)
  expect_equal(source$files, "Stream/results/vm.log")
})

test_that("a folder that holds no results is refused with its name", {
  expect_error(open_source("/no/such/folder"), "/no/such/folder: no such folder")
  file <- tempfile()
  writeLines("x", file)
  expect_error(open_source(file), "not a folder")
  expect_error(open_source(published_folder("notes.txt" = "x")), "holds none of the published results")
  skip_if(Sys.which("git") == "", "git is not installed")
  empty <- tempfile()
  dir.create(empty)
  git_in(empty, "init", "-q", "--bare")
  expect_error(open_source(empty), "no commit")
})

test_that("a checkout without its files is read from its commits", {
  skip_if(Sys.which("git") == "", "git is not installed")
  folder <- as_repository(published_folder("Stream/results/vm.log" = stream_log(1:4),
                                           "fio/fio results.xlsx" = "x"))
  unlink(file.path(folder, c("Stream", "fio")), recursive = TRUE)
  source <- open_source(folder)
  expect_true(source$git)
  expect_match(source$revision, "^[0-9a-f]{40}$")
  expect_equal(nrow(collect(source)$tidy), 4)
})
