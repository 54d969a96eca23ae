# Numbers and lists as a reader of a paper expects them: plain text with Unicode's minus sign and spaces that
# do not break.  What is text here becomes LaTeX or HTML elsewhere.

MINUS <- "\u2212"
EN_DASH <- "\u2013"
EM_DASH <- "\u2014"
NO_BREAK <- "\u00a0"
THIN <- "\u202f"
NOT_AVAILABLE <- read_contract("logs")[["not_available"]]

#' Whether the paper is being written as a web page
#'
#' @return TRUE or FALSE
in_html <- function() {
  identical(knitr::opts_knit$get("rmarkdown.pandoc.to"), "html")
}

#' A number with a fixed count of decimals
#'
#' @param x numbers
#' @param decimals decimals, one for all or one for each; negative counts round before the point
#' @return text with thousands separated by commas; a zero has no sign; a missing number is ""
fixed <- function(x, decimals) {
  rounded <- round(x, decimals)
  one <- function(value, places) formatC(abs(value), format = "f", digits = max(places, 0), big.mark = ",")
  text <- mapply(one, rounded, rep_len(decimals, length(x)), USE.NAMES = FALSE)
  text <- paste0(ifelse(!is.na(rounded) & rounded < 0, MINUS, ""), text)
  ifelse(is.na(x), "", text)
}

#' A number of a count or a size
#'
#' @param x numbers
#' @param digits significant digits of numbers that have a fraction
#' @return text with thousands separated by commas, and no zeros at the end of a fraction
quantity <- function(x, digits = 4) {
  text <- fixed(x, ifelse(is.na(x) | x == round(x), 0, pmax(0, digits - 1 - magnitude(x))))
  ifelse(grepl(".", text, fixed = TRUE), sub("\\.?0+$", "", text), text)
}

#' The decimal exponent of numbers
#'
#' @param x numbers
#' @return the place of the first significant digit: 0 for 1 to 9.99, -1 for 0.1 to 0.99; 0 for zero
magnitude <- function(x) {
  ifelse(is.finite(x) & x != 0, floor(log10(abs(x)) + 1e-12), 0)
}

#' How many decimals a number deserves
#'
#' As many as its uncertainty allows, by the rule of the Particle Data Group: the uncertainty has two
#' significant digits where they are at most 35, and else one.  Without any uncertainty the number is shown
#' with four significant digits; it never has more than six.
#'
#' @param uncertainty standard deviations or half widths of intervals; missing and zero ones do not count, and
#'   the smallest decides
#' @param value numbers, of which the largest counts
#' @return number of decimals; negative where what stands before the point is rounded too
decimals_for <- function(uncertainty, value) {
  uncertainty <- uncertainty[is.finite(uncertainty) & uncertainty > 0]
  largest <- magnitude(max(abs(value[is.finite(value)]), 0))
  if (length(uncertainty) == 0) {
    return(max(0, 3 - largest))
  }
  least <- min(uncertainty)
  two <- signif(least, 3) / 10^magnitude(least) < 3.55
  min(two - magnitude(least), 5 - largest)
}

#' An interval
#'
#' @param low,high numbers
#' @param decimals of both
#' @return text such as "[98.2, 100.0]"; "" where a limit is missing
interval <- function(low, high, decimals) {
  text <- paste0("[", fixed(low, decimals), ",", NO_BREAK, fixed(high, decimals), "]")
  ifelse(is.na(low) | is.na(high), "", text)
}

#' A share in per cent
#'
#' @param x shares, 1 for all
#' @param decimals decimals; where they round before the point, what is not 0 keeps a digit that is not
#' @return text such as "99.1 %"
percent <- function(x, decimals = 1) {
  decimals <- rep_len(decimals, length(x))
  vanishes <- decimals < 0 & !is.na(x) & x != 0 & round(100 * x, decimals) == 0
  decimals[vanishes] <- -magnitude(100 * x[vanishes])
  ifelse(is.na(x), "", paste0(fixed(100 * x, decimals), THIN, "%"))
}

#' A ratio in per cent with its interval
#'
#' @param ratio,low,high ratios, 1 for equal; the limits may be missing
#' @return text such as "99.1 % [98.3, 99.9]", with the decimals that the interval allows
percent_interval <- function(ratio, low, high) {
  decimals <- mapply(percent_decimals, low, high)
  within <- ratio_interval(low, high, decimals)
  paste0(percent(ratio, decimals), ifelse(within == "", "", paste0(NO_BREAK, within)))
}

#' The interval of a ratio in per cent
#'
#' @param low,high limits, 1 for equal
#' @param decimals of both
#' @return as from `interval`; a limit that excludes equality, and would read as if it did not, says on which
#'   side of it it lies: "[>100.0, 102.1]"
ratio_interval <- function(low, high, decimals) {
  limit <- function(x, excludes, sign) {
    paste0(ifelse(!is.na(excludes) & excludes & round(100 * x, decimals) == 100, sign, ""),
           fixed(100 * x, decimals))
  }
  text <- paste0("[", limit(low, low > 1, ">"), ",", NO_BREAK, limit(high, high < 1, "<"), "]")
  ifelse(is.na(low) | is.na(high), "", text)
}

#' Decimals of a ratio in per cent
#'
#' @param low,high limits of its interval, 1 for equal
#' @return as of `decimals_for`, and one more where an interval that excludes equality reads so by that; 1
#'   without an interval
percent_decimals <- function(low, high) {
  if (!is.finite(low) || !is.finite(high) || low >= high) {
    return(1)
  }
  limits <- 100 * c(low, high)
  decimals <- decimals_for(diff(limits) / 2, limits)
  rounded <- function(decimals) any(round(limits, decimals) == 100)
  excludes <- limits[[1]] > 100 || limits[[2]] < 100
  decimals + (decimals < 3 && excludes && rounded(decimals) && !rounded(decimals + 1))
}

#' A share in per cent with two significant digits
#'
#' @param x shares, 1 for all
#' @return text such as "9.2 %" or "13 %"
rough_percent <- function(x) {
  percent(x, pmax(0, 1 - magnitude(signif(100 * x, 2))))
}

#' A difference that would have been seen, as far as its size says anything
#'
#' Of very few sets it comes out at many times the value itself.
#'
#' @param x shares of the value, 1 for all of it
#' @param above what is said before 100 % where it is more
#' @return text such as "9.2 %" or "more than 100 %"
seen_percent <- function(x, above = "more than ") {
  ifelse(!is.na(x) & x > 1, paste0(above, percent(1, 0)), rough_percent(x))
}

#' A number of bytes
#'
#' @param x bytes
#' @return text such as "25.3 GB", with decimal prefixes, four significant digits
bytes <- function(x) {
  prefix <- c("B", "kB", "MB", "GB", "TB", "PB")
  place <- pmin(pmax(magnitude(x) %/% 3, 0), length(prefix) - 1)
  scaled <- signif(x / 1000^place, 4)
  paste0(quantity(scaled), NO_BREAK, prefix[place + 1])
}

#' Things in a sentence
#'
#' @param items texts
#' @param last what stands before the last one
#' @return one text such as "a, b and c"; things that hold commas themselves are parted by semicolons
listed <- function(items, last = "and") {
  count <- length(items)
  if (count < 2) {
    return(paste(items, collapse = ""))
  }
  if (count > 2 && any(grepl(", ", gsub("\\[[^]]*\\]", "", items), fixed = TRUE))) {
    return(paste0(paste(items[-count], collapse = "; "), "; ", last, " ", items[[count]]))
  }
  paste(paste(items[-count], collapse = ", "), last, items[[count]])
}

#' A label within a sentence
#'
#' @param label texts such as "Docker, host network"
#' @return texts in which what follows a comma stands in parentheses: "Docker (host network)", and with what
#'   stands there already: "VM (TCG emulation; tuned)"
in_sentence <- function(label) {
  ifelse(grepl("\\), ", label), sub("\\), (.+)$", "; \\1)", label), sub(", (.+)$", " (\\1)", label))
}

#' Labels in at most two lines
#'
#' @param text texts
#' @param most letters of a label that stays on one line
#' @return texts; longer ones are broken where the longer of the two lines is shortest
in_two_lines <- function(text, most = 24) {
  vapply(text, function(one) {
    spaces <- gregexpr(" ", one, fixed = TRUE)[[1]]
    if (nchar(one) <= most || spaces[[1]] < 0) {
      return(one)
    }
    at <- spaces[which.min(pmax(spaces - 1, nchar(one) - spaces))]
    paste0(substr(one, 1, at - 1), "\n", substring(one, at + 1))
  }, "", USE.NAMES = FALSE)
}

#' A count of runs or pairs
#'
#' @param n text or number
#' @return text such as "n = 5"
n_is <- function(n) {
  paste0("n", NO_BREAK, "=", NO_BREAK, n)
}

#' Text in which a number and its per-cent sign stay together
#'
#' @param text texts
#' @return texts
with_percent <- function(text) {
  gsub("([0-9]) %", paste0("\\1", THIN, "%"), text)
}

#' A count of things
#'
#' @param n count
#' @param one,many what one and what several are called
#' @return text such as "1 run" or "5 runs"
counted <- function(n, one, many = paste0(one, "s")) {
  paste0(fixed(n, 0), NO_BREAK, ifelse(n == 1, one, many))
}

#' How a sentence begins that tells how many there are
#'
#' @param n count, or the largest of several
#' @return "There is" or "There are"
there <- function(n) {
  if (n == 1) "There is" else "There are"
}

#' Numbers with runs of successive ones drawn together
#'
#' @param x whole numbers
#' @return text such as "1, 3-5"
ranges <- function(x) {
  x <- sort(unique(x))
  first <- x[!(x - 1) %in% x]
  last <- x[!(x + 1) %in% x]
  paste(ifelse(first == last, first, paste0(first, ifelse(last == first + 1, ", ", EN_DASH), last)),
        collapse = ", ")
}

#' The name of a parameter or a field as words
#'
#' @param name such as "updates_per_word"
#' @return such as "updates per word"
words <- function(name) {
  gsub("[_.]+", " ", name)
}

#' A text with a small first letter, unless it begins with an abbreviation
#'
#' @param text texts
#' @return texts
lower_first <- function(text) {
  plain_word <- grepl("^[A-Z]([a-z]|$| )", text)
  ifelse(plain_word, paste0(tolower(substr(text, 1, 1)), substring(text, 2)), text)
}

#' A text with a capital first letter
#'
#' @param text texts
#' @return texts
upper_first <- function(text) {
  paste0(toupper(substr(text, 1, 1)), substring(text, 2))
}

#' A text that ends as a sentence does
#'
#' @param text texts
#' @return texts with a capital first letter and a full stop at the end
sentence <- function(text) {
  text <- upper_first(trimws(text))
  ifelse(grepl("[.!?]$", text) | text == "", text, paste0(text, "."))
}

#' Text for Markdown, in which nothing is markup but the links of a web page
#'
#' @param text texts, which may hold some from `linked`
#' @return texts
as_markdown <- function(text) {
  write_links(text, markdown_escape, function(shown, to) {
    if (in_html()) sprintf("[%s](#%s){.value}", shown, to) else shown
  })
}

#' Text for Markdown, in which nothing is markup
#'
#' @param text texts
#' @return texts
markdown_escape <- function(text) {
  text <- gsub("[[:cntrl:]]+", " ", text)
  gsub("([][\\\\`*_{}<>#+~^$@|\"'&!-])", "\\\\\\1", text)
}
