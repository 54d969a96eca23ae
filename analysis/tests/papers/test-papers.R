# Whole papers, each rendered in both formats and read against its tables.

#' Load the files of analysis/ into the caller's environment
load_analysis <- function(names, envir = parent.frame()) {
  for (name in names) {
    path <- file.path(root, "analysis", paste0(name, ".R"))
    suppressMessages(sys.source(path, envir, chdir = FALSE))
  }
}
HOSTS <- file.path(root, "schemas/constants/hosts.json")

# What a paper says of most runs, what it says of others instead, and what it says where virtual
# machines were measured.
USUAL <- c("side by side and in random order", "made of one image", "All environments run the same",
           "through a change of root", "close in time and in random order",
           "A reproduction of the comparison of Felter", "published claims", "Related work")
OTHERWISE <- c("All repetitions in one environment were measured before",
               "In Native the host.s own files run", "runs on a second machine")
OF_MACHINES <- c("under KVM", "two page tables", "A virtual machine boots")

test_that("a small run: the first page says what was found, and every number is its table's", {
  describe_engine <- function(i) {
    list(engine = "28.3.2", containerd = "1.7", runc = "1.2", storage_driver = "overlay2",
         backing_filesystem = "ext_fs", log_driver = "json-file", cgroup_driver = "systemd",
         network = list(ports = "destination NAT", docker_proxy = "runs", mtu = "1450",
                        firewall = "nf_tables", firewall_version = "iptables 1.8.9",
                        rules = 20 + i, ip_forwarding = "on", bridge_nf = "not available"))
  }
  folder <- make_experiment(c("native", "docker"), "stream", engine = describe_engine,
                            host = list(cpu_model = "A (R) processor_9"))
  papers <- make_papers(folder)
  expect_whole(papers)
  facts <- read_cells(papers, "The testbed")
  on_host <- setNames(get_column(facts, 2), get_column(facts, 1))
  expect_equal(unname(on_host[c("Docker", "Container storage", "Published ports", "Firewall",
                                "IP forwarding")]),
               c("28.3.2", "overlay2, ext_fs", "destination NAT, docker-proxy beside it, MTU 1450",
                 "nf_tables, iptables 1.8.9", "on"))
  expect_match(on_host[["Firewall rules"]], "^[0-9]+\u2013[0-9]+$")
  rows <- read_csv(folder, "comparisons")
  expect_equal(rows$verdict, rep("equivalent", 2))
  cost <- ceiling(1000 * (1 - min(rows$low_all))) / 10
  expect_says(papers$first, paste0("Linux, Measured Again .{0,200}Docker costs at most ", cost,
                                   ".%.{0,40} Docker: of 1.workload and environment, 1 equivalent"))
  expect_says(papers$first, "within this session")
  expect_says(papers$first, "Figure 1")
  # Two series that say the same have one row.
  expect_says(papers$first, "STREAM \\(2 series\\)")
  expect_says(papers$first, "STREAM Copy|STREAM Triad", not = TRUE)
  for (usual in USUAL) expect_says(papers$text, usual)
  for (other in c(OTHERWISE, OF_MACHINES)) expect_says(papers$text, other, not = TRUE)
  # The processor of this host has no flag of a hypervisor.
  for (text in c(papers$text, papers$html)) {
    expect_says(text, "itself a virtual machine|host is a guest|not bare metal", not = TRUE)
    expect_says(text, "none seen")
  }
  expect_lte(lengths(strsplit(papers$first, "\\s+")), 500)
  shown <- read_cells(papers, "Comparisons with native")
  expect_equal(get_column(shown, 3), as.character(rows$n))
  ratios <- as.numeric(sub("\u00a0.*", "", get_column(shown, 4)))
  expect_equal(ratios, 100 * rows$ratio, tolerance = 0.01)
  # A row of runs for each series, and a link to each log and record.
  anchors <- xml2::xml_find_all(papers$page, "//table[contains(caption, 'raw logs')]//a")
  links <- xml2::xml_attr(anchors, "href")
  runs <- read_csv(folder, "runs")
  expect_setequal(links, file.path("..", c(runs$log, runs$record)))
  # The same bytes in any locale.
  before <- tools::md5sum(papers$files)
  withr::with_envvar(c(LC_ALL = "POSIX", TZ = "Asia/Tokyo"), make_papers(folder))
  expect_equal(tools::md5sum(papers$files), before)
})

test_that("all environments and kinds of figures, of three sessions on one machine", {
  add_machine <- function(plan) {
    plan$environments[["vm-docker"]] <- make_environment("Docker in a VM",
      list(list(vm = list()), list(docker = list())), "machine", available = FALSE,
      reason = "no room for the_machine")
    plan
  }
  folder <- make_experiment(names(ENVIRONMENTS), names(WORKLOADS), blocks = 9,
                            change = add_machine,
                            choose_day = function(block) paste0("2026-01-0", 1 + block %% 3))
  papers <- make_papers(folder)
  expect_whole(papers)
  expect_says(papers$first, "Virtual Machines, Containers and Bare Linux")
  # A family of one environment has its name.
  for (family in c("Containers cost", "Docker with gVisor costs", "Virtual machines cost")) {
    expect_says(papers$first, sub(" costs?$", ": of", family))
    expect_says(papers$first, paste0("(?i)", family))
  }
  rows <- subset(read_csv(folder, "verdicts"), margin == 0.02)
  for (family in unique(rows$family)) {
    slower <- sum(rows$family == family & rows$direction %in% "slower")
    if (slower > 0) expect_says(papers$first, paste(slower, "slower"))
  }
  expect_says(papers$text, "not available: no room for the_machine")
  for (name in names(WORKLOADS)) expect_says(papers$html, paste0("fig:", name, "-1"))
  for (sentence in OF_MACHINES) expect_says(papers$text, sentence)
  expect_says(papers$first, "start-up apart")
  expect_says(papers$text, "Hardware acceleration|hardware acceleration")
  claims <- read_csv(folder, "claims")
  expect_says(papers$first, paste("Of", nrow(claims), "published claims,",
                                  sum(claims$verdict == "reproduced"), "could be reproduced"))
  expect_equal(read_csv(folder, "sessions")$cells, rep(nrow(read_csv(folder, "runs")) / 3, 3))
  expect_equal(unique(rows$holds), "machine")
  expect_says(papers$first, "this machine .3 sessions")
  for (text in c(papers$text, papers$html)) expect_says(text, "within this session", not = TRUE)
})

test_that("a paper of one's own question has its words, and nothing of the originals", {
  about <- paste("We run *our* **shop** in [containers](https://shop.example/a_b?c=1&d=~e#f).", "",
                 "- one", "  more", "- two", "1. third", "", "Last.", sep = "\n")
  folder <- make_experiment(c("native", "docker"), "shop", change = function(plan) {
    plan$title <- "Should our shop move?"
    plan$question <- "What would a container cost us?"
    plan$about <- about
    plan$order <- "sequential"
    plan$client <- list(kind = "ssh")
    plan$environments$native$layers <- list(list(host = list()))
    plan$workloads$shop$cell$steps <- list(list(step = "run", at = "client"))
    plan
  })
  papers <- make_papers(folder)
  expect_whole(papers)
  expect_says(papers$first, "^ ?Should our shop move\\? What would a container cost us\\?")
  for (other in OTHERWISE) expect_says(papers$text, other)
  for (usual in c(USUAL, OF_MACHINES, "VMware", "Table I ", "eproduc", "Expected")) {
    expect_says(papers$text, usual, not = TRUE)
  }
  expect_says(papers$text, "is that of Felter et al. \\(2014\\)")
  read_all <- function(path) squish(xml2::xml_text(xml2::xml_find_all(papers$page, path)))
  headings <- sub("^[0-9.A-Z]* ", "", read_all("//main//h2 | //main//h3"))
  expect_true("How many orders does our shop take?" %in% headings)
  expect_false(any(grepl("laims", headings)))
  expect_says(papers$html, "<em>our</em> <strong>shop</strong>")
  link <- xml2::xml_find_first(papers$page, "//main//p/a")
  expect_equal(xml2::xml_attr(link, "href"), "https://shop.example/a_b?c=1&d=~e#f")
  expect_equal(read_all("//main//li[not(ancestor::nav)]")[1:3], c("one more", "two", "third"))
  # Without words of its own it is named by what was measured.
  load_analysis(c("read", "statistics", "format", "paper_data", "markdown_tables", "figures"))
  paper <- read_paper(folder, root)
  paper$plan$title <- NULL
  expect_equal(as.character(make_paper_title(paper)),
               "What Does It Cost to Run Web shop in Containers?")
})

test_that("a paper of today's statements answers, draws all and has a section for each question", {
  folder <- make_experiment(c("native", "docker", "docker-gvisor"), c("stream", "startup"),
                            change = function(plan) {
    plan$title <- "Is it true?"
    plan$claims <- "published/today.json"
    plan
  })
  papers <- make_papers(folder)
  expect_whole(papers)
  catalogue <- jsonlite::read_json(file.path(root, "published/today.json"))
  claims <- read_csv(folder, "claims")
  count_verdicts <- function(...) sum(claims$verdict %in% c(...))
  untestable <- sum(lengths(lapply(catalogue$claims, `[[`, "untestable")) > 0)
  expect_says(papers$first, paste0(
    "Is it true\\? .*Of ", nrow(claims), " statements of [0-9]+ sources, this machine reproduces ",
    count_verdicts("reproduced", "same direction", "other size"), ", contradicts ",
    count_verdicts("contradicted"), " and leaves ", count_verdicts("undecided"),
    " undecided; not measured: ",
    count_verdicts("not tested") - untestable, "; not testable here: ", untestable))
  for (usual in c("Felter", "VMware", "laims")) expect_says(papers$first, usual, not = TRUE)
  headings <- xml2::xml_text(xml2::xml_find_all(papers$page, "//main//h3"))
  for (question in unlist(catalogue$questions)) expect_true(any(endsWith(headings, question)))
  # An apostrophe cannot stand in a path.
  captions <- sub(".*'", "", unlist(catalogue$questions))
  rows <- lapply(captions, read_cells, papers = papers)
  expect_length(unlist(rows, recursive = FALSE), nrow(claims))
  load_analysis(c("read", "statistics", "claims", "forecast", "format", "paper_data",
                  "markdown_tables", "figures", "statements"))
  paper <- read_paper(folder, root)
  expect_equal(paper$statements$forecast != "", paper$statements$outcome == "undecided")
  measured <- paper$statements[!is.na(paper$statements$n), ]
  for (n in c(1, 5)) {
    open <- transform(measured, n = n, outcome = "undecided")
    expect_true(all(nzchar(add_decision_forecasts(open, read_results(folder), catalogue)$forecast)))
  }
  at <- match(c("database-stream", "gvisor-memory-free"), paper$statements$id)
  expect_equal(paper$statements$outcome[at], c("reproduced", "contradicted"))
  expect_equal(draw_statements(paper$statements)$data$id,
               vapply(catalogue$claims, `[[`, "", "id"))
})

test_that("the first sentence says what is known of the cost, and no more", {
  load_analysis(c("read", "statistics", "format", "paper_data"))
  describe <- function(low, high, outcome, label = "Docker") {
    rows <- data.frame(workload = seq_along(low), environment = label, label = label,
                       question = "memory", family = "containers", low_all = low, high_all = high)
    describe_family_costs(list(headlines = rows, decisions = mutate(rows, outcome = outcome)))
  }
  expect_says(describe(0.9784, 1.01, "equivalent"),
              "^Docker costs at most 2.2.% of native.s performance[.]$")
  expect_says(describe(c(0.82, 0.957), c(0.85, 0.9701), "slower"),
              "^Docker costs between 2.9 and 18.% ")
  expect_says(describe(0.7, 1.1, "undecided"), "^Docker may cost nothing or up to 30.% ")
  expect_says(describe(1.05, 1.1, "faster"), "^Docker is faster by at least 5.0.% ")
  expect_says(describe(NA_real_, NA_real_, "no interval"), "^What Docker costs is not known[.]$")
  expect_says(describe(c(0.97, NA), c(1, NA), c("equivalent", "no interval")),
              "at most 3.0.% of native.s performance where an interval is known")
  expect_says(describe(c(0.97, 0.9), c(1.1, 1), "undecided", c("A", "B")), "^Containers may cost")
  # There may be no claim that could not be tested.
  all_tested <- list(valid = TRUE, claims = data.frame(verdict = c("reproduced", "undecided")))
  expect_says(describe_tested_claims(all_tested), "and 1 not decided[.]$")
})

test_that("emulated machines stand in one table of the appendix and nowhere else", {
  folder <- make_experiment(c("native", "docker", "vm"), "stream", change = function(plan) {
    plan$environments$vm$emulated <- TRUE
    plan$environments$vm$label <- "VM (TCG emulation)"
    plan
  })
  papers <- make_papers(folder)
  expect_whole(papers)
  expect_says(papers$first, "say nothing about KVM")
  expect_says(papers$first, "Virtual Machines, Containers", not = TRUE)
  expect_length(read_cells(papers, "Emulated machines"), 2)
  for (caption in c("Comparisons with native", "Levels")) {
    expect_no_match(unlist(read_cells(papers, caption)), "TCG")
  }
})

test_that("a partial run names what is missing, and an emulated host itself", {
  folder <- make_experiment(c("native", "docker"), c("stream", "startup"),
                            lost = c("docker/stream/2", "docker/startup/1", "docker/startup/2"),
                            host = list(machine = "Strata rig"))
  papers <- make_papers(folder)
  expect_whole(papers)
  expect_says(papers$first, "3 planned runs are missing")
  mark <- jsonlite::read_json(HOSTS)$mark
  for (text in c(papers$first, papers$html)) expect_says(text, mark)
  expect_equal(get_column(read_cells(papers, "Planned runs that are missing"), 3), c("2", "1"))
})

test_that("native alone, on a guest, compares nothing and says both", {
  papers <- make_papers(make_experiment("native", c("stream", "redis"), kind = "guest"))
  expect_whole(papers)
  expect_says(papers$first, "a host that is itself a virtual machine")
  for (text in c(papers$text, papers$html)) {
    expect_says(text, "The host is a guest")
    expect_says(text, "other guests took at most 1(\\.0)?.{1,8}% of its processor time")
  }
  expect_says(papers$first, "Bare Linux, Measured Again")
  expect_says(papers$first, "No run can be compared with native")
  expect_says(papers$text, "Comparisons with native", not = TRUE)
})

test_that("tiny sizes say on every page that they answer no question", {
  papers <- make_papers(make_experiment("native", "stream", blocks = 2, change = function(plan) {
    c(scale = "tiny", plan[names(plan) != "scale"])
  }))
  expect_whole(papers)
  expect_equal(lengths(regmatches(papers$text, gregexpr("Tiny sizes", papers$text))), papers$pages)
  expect_says(papers$html, "Tiny sizes")
})

test_that("a disturbed run of which a size breaks a rule says so, and why there is no interval", {
  flag <- list(list(what = "busy", when = "during", value = 0.4, threshold = 0.05))
  folder <- make_experiment(c("native", "docker"), c("stream", "startup"), blocks = 2, flags = flag,
                            sizes = c(stream = FALSE, startup = TRUE))
  papers <- make_papers(folder)
  expect_whole(papers)
  disturbed <- sum(read_csv(folder, "runs")$flags != "", na.rm = TRUE)
  expect_says(papers$first, paste("before", disturbed, "of 8"))
  expect_says(papers$first, "1.workload and environment, 1 without an interval")
  expect_says(papers$text, "STREAM broke a rule of its size")
  expect_says(papers$text, "STREAM Triad\u2020")
  expect_says(papers$text, "command\u2019s end\u2020|command's end\u2020", not = TRUE)
  expect_equal(get_column(read_cells(papers, "Size rules"), 5), c("no\u2020", "yes"))
  expect_says(papers$text, "busy during a run")
  for (text in c(papers$first, papers$text)) {
    expect_says(text, "all were kept and marked")
    expect_says(text, "set aside", not = TRUE)
  }
  # On a real host no page is marked as an emulated one.
  mark <- jsonlite::read_json(HOSTS)$mark
  expect_says(papers$text, mark, not = TRUE)
})

test_that("runs that were set aside are named, counted and drawn, and those that were kept too", {
  flag <- list(list(what = "busy", when = "during", value = 0.4, threshold = 0.05))
  folder <- make_experiment(c("native", "docker"), "stream", flags = flag, disturbed = 1:3,
                            aside = 1:2)
  papers <- make_papers(folder)
  expect_whole(papers)
  runs <- read_csv(folder, "runs")
  expect_equal(as.vector(table(runs$counts)), c(4, 8))
  for (text in c(papers$first, papers$text)) {
    expect_says(text, "3 of 12.runs")
    expect_says(text, "2 were set aside, each with its whole block, and measured again")
    expect_says(text, "1 was kept and marked")
  }
  shown <- read_cells(papers, "The environments")
  expect_equal(unique(get_column(shown, 5)), "4 of 6 count")
  # All values are drawn, and a circle for each that was disturbed.
  expect_says(papers$text, "Pale: set aside")
  load_analysis(c("read", "statistics", "format", "paper_data", "markdown_tables", "figures"))
  paper <- read_paper(folder, root)
  figure <- draw_measurement_order(paper)
  count_points <- function(layer) nrow(ggplot2::layer_data(figure, layer))
  is_points <- vapply(figure$layers, function(layer) inherits(layer$geom, "GeomPoint"), NA)
  series <- 2
  expect_equal(vapply(which(is_points), count_points, 1L), c(3, 12) * series)
})

# Markup of every kind that the dialect of the papers has, each with its own word.
MARKUP <- c(
  "![w01](FILE)", "<img src=FILE alt=w02>", "[w03](javascript:alert)", "<script>w04</script>",
  "`r w05`",
  "$w06^2$ \\(w07\\) \\[w08\\]", "**w09** _w10_ ~~w11~~ ^w12^", "a | w13 |", "[^1] w14 ^[w15]",
  "[@felter2014] @w16",
  "\\input{FILE} w17", "<http://w18.example> https://w19.example", "(\\#tab:w20) (#fig:w20)",
  "@ref(tab:levels) \\@ref(tab:levels) w21", "(ref:w22) x", "w\n\nw23: \"!r stop()\"\n---\n# w24",
  "\u001b[31mw25\u202e", "`w26`{=html}", "w27 -- ...", "&lt;w28&gt;", "<!-- w29", "{{w30}} %w31",
  "w32\\",
  "\"w33\" it's 'w34' ``w35'' --- w36,, \u2066w37\ufeff\u061c w38"
)

test_that("texts of others are shown letter by letter in both papers, and read no file", {
  file <- withr::local_tempfile(lines = "What the file holds")
  text <- gsub("FILE", file, paste(MARKUP, collapse = "; "), fixed = TRUE)
  add_text <- function(label) paste(label, text)
  papers <- make_papers(make_experiment(
    c("native", "docker"), "stream", change = function(plan) {
      plan$environments <- lapply(plan$environments, function(entry) {
        changed <- list(label = add_text(entry$label),
                        descriptions = list(list(title = text, network = text)))
        utils::modifyList(entry, changed)
      })
      plan$workloads$stream[c("title", "about")] <- add_text(plan$workloads$stream$title)
      plan$workloads$stream$metrics$copy$label <- text
      plan$machine$mask <- text
      plan$source$revision <- text
      plan[c("title", "question")] <- text
      # In an introduction asterisks mark emphasis.
      plan$about <- gsub("**", "", text, fixed = TRUE)
      plan$workloads$stream$question <- text
      plan
    },
    host = list(cpu_model = text, kernel = text), engine = function(i) list(engine = text),
    sizes = c(stream = FALSE)
  ))
  find_all <- function(path) xml2::xml_find_all(papers$page, path)
  keep_words <- function(text) gsub("[^[:alnum:]]+", " ", squish(text))
  elements <- find_all("//main//*[self::p or self::td or self::th or self::span]")
  whole <- grepl(keep_words(text), keep_words(xml2::xml_text(elements)), fixed = TRUE)
  expect_gt(sum(whole), 20)
  for (made in c(papers$text, papers$html)) expect_says(made, "What the file holds", not = TRUE)
  expect_says(keep_words(papers$text), "w31 w32")
  load_analysis("format")
  metadata <- paste(system2("pdfinfo", c("-meta", papers$files[1]), stdout = TRUE), collapse = " ")
  named <- xml2::xml_text(xml2::xml_find_first(xml2::read_xml(metadata), "//dc:title"))
  expect_equal(squish(trimws(named)), squish(replace_control_characters(text)))
  # Straight quotes and dashes stay, and nothing turns the direction of writing, nor in figures.
  for (made in c(papers$text, squish(xml2::xml_text(papers$page)))) {
    expect_says(made, "w27 -- [.]{3};")
    expect_says(made, "\"w33\" it's 'w34' ``w35'' --- w36,,")
  }
  sources <- xml2::xml_attr(find_all("//*[@src]"), "src")
  expect_true(all(startsWith(sources, "data:image/svg")))
  drawn <- vapply(unique(sources), function(source) {
    rawToChar(jsonlite::base64_dec(sub("^[^,]*,", "", source)))
  }, "")
  Encoding(drawn) <- "UTF-8"
  expect_gt(sum(grepl("w37", drawn)), 2)
  for (made in c(papers$text, xml2::xml_text(papers$page), drawn)) {
    expect_says(made, "[\u202a-\u202e\u2060-\u2069\ufeff\u061c]", not = TRUE)
  }
  expect_length(find_all("//script"), 1)
  links <- xml2::xml_attr(find_all("//a"), "href")
  expect_no_match(links, "w[0-3][0-9]|javascript")
  for (kind in c("strong", "em", "del", "sup", "math", "h2")) {
    marked <- xml2::xml_text(find_all(paste0("//main//", kind)))
    expect_false(any(grepl("^w[0-3][0-9]", marked)), info = kind)
  }
})

test_that("the band of a figure of ratios is the margin that was given, and is always in sight", {
  load_analysis(c("read", "statistics", "format", "figures"))
  rows <- data.frame(workload = "stream", series = "Triad", label = "Docker", ratio = 1.01, low = 1,
                     high = 1.02, outcome = "equivalent")
  for (margin in c(0.005, 0.02, 0.25)) {
    figure <- draw_forest(rows, margin = margin)
    band <- 10 ^ unlist(ggplot2::layer_data(figure, 1)[c("xmin", "xmax")])
    expect_equal(unname(band), c(1 - margin, 1 / (1 - margin)))
    expect_lte(figure$coordinates$limits$x[1], 1 - margin)
    expect_gte(figure$coordinates$limits$x[2], 1 / (1 - margin))
  }
})
