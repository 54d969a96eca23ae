test_that("the drawings of a page are packed in their order, and nothing else of it is lost", {
  drawings <- c("<svg class=\"svglite\">\n<text>\u2212 1</text>\n<svg class='within'></svg></svg>",
                "<svg class=\"svglite wide\">b</svg>")
  marked <- paste0(DRAWING_MARKS[[1]], drawings, DRAWING_MARKS[[2]])
  # Only what stands between the marks is a drawing, whatever else looks like one.
  other <- "<p>\u00e4</p><code><svg class=\"x\">c</svg></code>"
  page <- paste0(other, marked[[1]], "<i>x</i>\n", marked[[2]], "<b>y</b><!--drawings-->/<svg /.")
  packed <- pack_drawings(page)
  form <- "<script type=\"text/plain\" id=\"drawings\">([^<]*)</script>"
  expect_equal(sub(form, "", packed), paste0(other, "<i>x</i>\n<b>y</b>/<svg /."))
  text <- memDecompress(jsonlite::base64_dec(sub(paste0("(?s).*", form, ".*"), "\\1", packed, perl = TRUE)),
                        "gzip", asChar = TRUE)
  Encoding(text) <- "UTF-8"
  expect_equal(strsplit(text, BETWEEN_DRAWINGS, fixed = TRUE)[[1]], drawings)
  expect_match(pack_drawings("<p><!--drawings-->"), "<p><script [^>]*></script>")
  expect_error(pack_drawings(paste0("<p>", DRAWING_MARKS[[1]], "<svg>")))
})

test_that("shapes of one style become one path, and others stay", {
  svg <- c("<g>", "<polygon points='1.0,2.0 3.5,2.0 3.5,4.0 ' style='a'/>",
           "<polygon points='11.0,2.0 10.5,1.5 ' style='a'/>", "<polygon points='1,1 2,2 ' style='b'/>",
           "<text>x</text>", "<polygon points='1,1 2,2 ' style='b'/>", "</g>")
  lines <- strsplit(shapes_together(paste(svg, collapse = "\n")), "\n")[[1]]
  expect_equal(lines, c("<g>", "<path d='M1 2l2.5 0 0 2zM11 2l-.5-.5z' style='a'/>",
                        "<path d='M1 1l1 1z' style='b'/>", "<text>x</text>",
                        "<path d='M1 1l1 1z' style='b'/>", "</g>"))
})

test_that("lines of one style become one path, which stays open", {
  svg <- c("<line x1='81.2' y1='43.0' x2='216.4' y2='43.0' style='a'/>",
           "<polyline points='1,1 2,2 ' style='a'/>",
           "<polygon points='1,1 2,2 ' style='a'/>")
  expect_equal(strsplit(shapes_together(paste(svg, collapse = "\n")), "\n")[[1]],
               c("<path d='M81.2 43l135.2 0M1 1l1 1' style='a'/>", "<path d='M1 1l1 1z' style='a'/>"))
})

test_that("frames of nothing are left out, and others stay", {
  frame <- function(name) {
    sprintf("<defs>\n<clipPath id='%s'>\n<rect x='0'/>\n</clipPath>\n</defs>\n", name)
  }
  full <- "<g clip-path='url(#b)'>\n<rect/>\n</g>"
  expect_equal(without_empty_frames(paste0(frame("a"), "<g clip-path='url(#a)'>\n</g>\n", frame("b"), full)),
               paste0(frame("b"), full))
})

test_that("texts keep their length where they are long, and share where they are anchored", {
  text <- function(words) {
    sprintf(paste("<text x='1' text-anchor='end' style='s' textLength='24.67px'",
                  "lengthAdjust='spacingAndGlyphs'>%s</text>"), words)
  }
  expect_equal(short_texts(text("Storage")),
               "<text x='1' style='text-anchor: end;s' textLength='24.6'>Storage</text>")
  expect_equal(short_texts(text("12")), "<text x='1' style='text-anchor: end;s'>12</text>")
})
