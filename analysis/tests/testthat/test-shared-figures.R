# Figures of all workloads, and what the points of a figure tell when they are pointed at.

#' A tested claim
claim_row <- function(id, verdict = "reproduced", ...) {
  row <- as.data.frame(lapply(CLAIM_COLUMNS, function(class) if (class == "character") "" else NA_real_))
  row <- updated(row, id = id, publication = "ibm2014", place = "Table I",
                 statement = paste0("About ", id, "."),
                 published = 1, unit = "ratio", tolerance_low = 0.95, tolerance_high = 1.05, ratio = 1,
                 ratio_low = 0.99, ratio_high = 1.01, ratio_n = 5, level = 0.95, parts = 1, verdict = verdict)
  updated(row, ...)
}

test_that("the figure of the claims holds all that was measured, by verdict, and what the raw logs say", {
  published <- read_claims(file.path(project, "published", "claims.json"))
  own <- data.frame(id = c("ibm-linpack-kvm-untuned-worse", "ibm-redis-nat-4conn", "ibm-mysql-nat-little"),
                    how = c("ratio", "ratio", "level"), raw = c(0.448, 1.31, 30), raw_low = c(0.43, NA, NA),
                    raw_high = c(0.47, NA, NA))
  claims <- rbind(
    claim_row("ibm-pxz-docker-similar", "inconclusive", ratio_low = NA, ratio_high = NA, ratio_n = 1),
    claim_row("ibm-linpack-kvm-untuned-worse", ratio = 0.45, tolerance_low = NA, tolerance_high = 0.9),
    claim_row("ibm-redis-nat-4conn", "contradicted", ratio = 4, ratio_low = 2, ratio_high = 60),
    claim_row("ibm-redis-nat-below-peak", parts = 0), claim_row("ibm-mysql-nat-little", unit = "ms")
  )
  data <- claim_figure_data(claims, own, published$publications)
  expect_equal(data$verdict, c("reproduced", "reproduced", "contradicted", "inconclusive"))
  expect_equal(data$raw_logs, c(0.448, NA, 1.31, NA))
  expect_equal(is.na(data$published), c(FALSE, TRUE, FALSE, FALSE))
  expect_equal(names(data), names(CLAIM_FIGURE_COLUMNS))
  built <- ggplot2::ggplot_build(claim_figure(data))
  range <- 10^built$layout$panel_params[[1]]$x.range
  expect_true(range[[1]] < 0.448 && range[[2]] > 4 && range[[2]] < 60)
  out <- tempfile()
  expect_silent(draw_claims(claims, project, out))
  expect_match(read_text(paste0(out, ".svg")), "Contradicted: 4 [2, 60], n = 5", fixed = TRUE)
  moved <- claim_row("vmw-stream-vm-2-3pct", TRANSFERRED_VERDICTS[[2]], published_for = "vSphere")
  moved <- rbind(claims, moved)
  data <- claim_figure_data(moved, own, published$publications)
  expect_equal(data$verdict[[nrow(data)]], "does not carry over")
  expect_silent(draw_claims(moved, project, out))
  expect_match(read_text(paste0(out, ".svg")), "Transferred: does not carry over", fixed = TRUE)
  draw_claims(claims[claims$parts == 0, ], project, out)
  expect_equal(nrow(utils::read.csv(paste0(out, ".csv"))), 0)
})

test_that("the figure of the footprint tells what is restored from what is booted", {
  plan <- small_plan(c(native = "Native", docker = "Docker", vm = "VM"))
  row <- function(environment, quantity, mean, n = 3) {
    data.frame(environment = environment, quantity = quantity, unit = "s", systems = n, n = n, mean = mean,
               sd = 0.1,
               mean_low = if (n > 1) mean * 0.9 else NA, mean_high = if (n > 1) mean * 1.1 else NA,
               min = mean * 0.8, max = mean * 1.2, records = "1.json")
  }
  rows <- rbind(row("vm", "up_seconds", 4), row("vm", "boot_seconds", 70, 1),
                row("native", "up_seconds", 0.03),
                row("vm", "host_memory_bytes", 1e9), row("docker", "up_seconds", NA, 0))
  data <- footprint_data(rows, plan)
  expect_equal(paste(data$environment, data$quantity),
               c("native up_seconds", "vm up_seconds", "vm boot_seconds"))
  out <- tempfile()
  expect_silent(draw_footprint(rows, plan, out))
  expect_match(read_text(paste0(out, ".svg")), "VM, boot of its machine: mean 70 s", fixed = TRUE)
  # Less than is told has no place on a logarithmic axis.
  none <- row("docker", "up_seconds", 0)
  expect_equal(footprint_data(rbind(rows, none), plan), data)
  rows$min[rows$environment == "native"] <- 0
  plan$results <- tempfile()
  drawn <- result_path(plan, "figure", stem = "footprint", ending = "pdf")
  dir.create(dirname(drawn), recursive = TRUE)
  expect_silent(draw_footprint(rbind(rows, none), plan, sub("[.]pdf$", "", drawn)))
  caption <- function(rows) footprint_caption(list(plan = plan, footprint = rows, records = list()))
  expect_match(caption(rbind(rows, none)), "a thousandth of a second")
  expect_no_match(caption(rows), "a thousandth")
  draw_footprint(none, plan, out)
  draw_footprint(empty_table(FOOTPRINT_COLUMNS), plan, out)
  expect_equal(nrow(utils::read.csv(paste0(out, ".csv"))), 0)
})

test_that("many blocks are parted by few lines, and the axis says which", {
  data <- function(blocks) data.frame(order = seq_len(4 * blocks), block = rep(seq_len(blocks), each = 4))
  expect_equal(block_lines(data(3)), list(at = c(4.5, 8.5), says = "vertical lines part the blocks"))
  expect_equal(block_lines(data(1)), list(at = numeric(), says = NULL))
  many <- block_lines(data(118))
  expect_equal(many$says, "a vertical line after every 10 blocks")
  expect_equal(many$at[[1]], 40.5)
  for (blocks in c(13, 14, 100, 1000)) {
    expect_true(length(block_lines(data(blocks))$at) %in% 1:MOST_LINES)
  }
})

test_that("a point that is told of can be pointed at where it is drawn, in every panel and part", {
  data <- data.frame(x = c(1, 3, 2, 9), y = c(5, 1, 2, 7), panel = c("b", "a", "b", "a"))
  one <- function(words) {
    ggplot2::ggplot(data, ggplot2::aes(.data$x, .data$y)) +
      told_layer(ggplot2::geom_point(shape = 16, size = 1), words) +
      ggplot2::facet_wrap(ggplot2::vars(.data$panel), scales = "free")
  }
  out <- tempfile()
  write_figure(list(one(c("b <1>", "a & 3", "b 2", "a 9")), one(letters[1:4])), data, out, c(5, 4), c(1, 2))
  circles <- xml2::xml_find_all(xml2::xml_ns_strip(xml2::read_xml(paste0(out, ".svg"))), "//circle")
  told <- vapply(circles, function(circle) xml2::xml_text(circle), "")
  place <- function(own) {
    at <- function(name) sort(as.numeric(xml2::xml_attr(circles[own], name)))
    c(at("cx"), at("cy"))
  }
  expect_setequal(told[told != ""], c("b <1>", "a & 3", "b 2", "a 9", letters[1:4]))
  expect_lt(max(abs(place(told != "") - place(told == ""))), 0.11)
  # The words are those of the point: of the first panel, "a", the one with the larger x is farther right.
  at <- function(words) as.numeric(xml2::xml_attr(circles[told == words], "cx"))
  expect_gt(at("a 9"), at("a & 3"))
  expect_gt(at("b 2"), at("a 9"))
})

test_that("every colour of a mark has a contrast of 3:1 to white, as solid as it is drawn", {
  light <- function(colour) {
    rgb <- (grDevices::col2rgb(colour)[, 1] * SOLID + 255 * (1 - SOLID)) / 255
    sum(c(0.2126, 0.7152, 0.0722) * ifelse(rgb <= 0.03928, rgb / 12.92, ((rgb + 0.055) / 1.055)^2.4))
  }
  for (colour in c(known_environments()$colour, SPARE_COLOURS, VERDICT_MARKS$colour, INK, PALE)) {
    expect_gte(1.05 / (light(colour) + 0.05), 3)
  }
})
