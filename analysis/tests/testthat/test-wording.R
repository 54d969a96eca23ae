test_that("numbers have their decimals, separators and signs", {
  expect_equal(fixed(c(1234.5, -0.25, -0.001, NA), 1), c("1,234.5", "\u22120.2", "0.0", ""))
  expect_equal(fixed(1234567, 0), "1,234,567")
  expect_equal(quantity(c(20000000, 2.5, 0.125, 0)), c("20,000,000", "2.5", "0.125", "0"))
})

test_that("decimals follow from the uncertainty", {
  expect_equal(decimals_for(0.84, 42.5), 1)
  expect_equal(decimals_for(0.24, 42.5), 2)
  expect_equal(decimals_for(0.354, 42.5), 2)
  expect_equal(decimals_for(0.356, 42.5), 1)
  expect_equal(decimals_for(8.4, 42.5), 0)
  expect_equal(decimals_for(1.4, 42.5), 1)
  expect_equal(decimals_for(84, 4250), -1)
  expect_equal(decimals_for(1234, 110342), -2)
  expect_equal(decimals_for(c(0.0021, NA, 0), 0.3389), 4)
  expect_equal(decimals_for(NA, 42.5), 2)
  expect_equal(decimals_for(1e-9, 42.5), 4)
  expect_equal(decimals_for(numeric(), 0), 3)
})

test_that("ratios are shown in per cent with as many decimals as their interval allows", {
  expect_equal(read_aloud(percent_interval(0.9912, 0.9821, 1.0004)), "99.1 % [98.2, 100.0]")
  expect_equal(read_aloud(percent_interval(0.9912, 0.9907, 0.9917)), "99.12 % [99.07, 99.17]")
  expect_equal(read_aloud(percent_interval(0.9912, NA, NA)), "99.1 %")
  expect_equal(read_aloud(percent_interval(0.9439, 0.8724, 1.021)), "94 % [87, 102]")
  expect_equal(read_aloud(percent_interval(0.00548, 0.0037, 0.0091)), "0.55 % [0.37, 0.91]")
  # What excludes equality reads so.
  expect_equal(read_aloud(percent_interval(0.95, 0.901, 0.9993)), "95.0 % [90.1, 99.9]")
  expect_equal(read_aloud(percent_interval(0.95, 0.901, 1.0007)), "95 % [90, 100]")
  expect_equal(read_aloud(percent_interval(0.95, 0.901, 0.99999)), "95 % [90, <100]")
  expect_equal(read_aloud(percent_interval(1.01058, 1.00001, 1.02118)), "101.1 % [>100.0, 102.1]")
  expect_equal(read_aloud(percent_interval(1, 1, 1.02118)), "100.0 % [100.0, 102.1]")
  # However wide an interval is, no share of something reads as nothing.
  expect_equal(read_aloud(percent_interval(1.8903, -1.681, 101.4)), "200 % [0, 10,000]")
  expect_equal(read_aloud(percent(c(0, 1.8903, 40, NA), -3)), c("0 %", "200 %", "4,000 %", ""))
  expect_equal(read_aloud(rough_percent(c(0.0921, 0.1354, 0.02, NA))), c("9.2 %", "14 %", "2.0 %", ""))
  expect_equal(read_aloud(seen_percent(c(0.0921, 29.09, NA))), c("9.2 %", "more than 100 %", ""))
  expect_equal(read_aloud(seen_percent(c(1, 1.2), ">")), c("100 %", ">100 %"))
})

test_that("bytes have decimal prefixes", {
  expect_equal(read_aloud(bytes(c(512, 25276510208, 272629760, 999, 1e6))),
               c("512 B", "25.28 GB", "272.6 MB", "999 B", "1 MB"))
})

test_that("things are listed", {
  expect_equal(listed(character()), "")
  expect_equal(listed("a"), "a")
  expect_equal(listed(c("a", "b")), "a and b")
  expect_equal(listed(c("a", "b", "c"), "or"), "a, b or c")
  expect_equal(listed(c("a, x", "b", "c")), "a, x; b; and c")
  expect_equal(listed(c("a [1, 2]", "b [3, 4]", "c")), "a [1, 2], b [3, 4] and c")
  expect_equal(in_sentence(c("Docker, host network", "Native")), c("Docker (host network)", "Native"))
  expect_equal(in_sentence("VM (TCG emulation), tuned"), "VM (TCG emulation; tuned)")
})

test_that("successive numbers are drawn together", {
  expect_equal(ranges(c(5, 1, 3, 4, 9, 8)), "1, 3\u20135, 8, 9")
  expect_equal(ranges(7), "7")
})

test_that("sentences begin and end as sentences", {
  expect_equal(sentence(c("a thing", "Done!", "")), c("A thing.", "Done!", ""))
  expect_equal(lower_first(c("Copy", "GUPS", "99th percentile", "A b")),
               c("copy", "GUPS", "99th percentile", "a b"))
})

test_that("nothing is markup in what becomes Markdown", {
  expect_equal(as_markdown("a_b*c [x](y) <z> $1$ `r 1` # \\"),
               "a\\_b\\*c \\[x\\](y) \\<z\\> \\$1\\$ \\`r 1\\` \\# \\\\")
  expect_equal(as_markdown("two\n\nlines\033[0m"), "two lines \\[0m")
})
