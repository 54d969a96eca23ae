"""The measures of a paper's layout: each finds the fault that it is for, on pages made by hand."""

import layout
import pymupdf
import pytest

LEFT, TOP = (612 - layout.BLOCK[0]) / 2, (792 - layout.BLOCK[1]) / 2
BOLD = "Times-Bold"


def paper(folder, *pages):
    """A PDF whose pages hold these texts: (x, y, size, text) or (x, y, size, text, font)."""
    path = folder / "paper.pdf"
    with pymupdf.open() as document:
        for texts in pages:
            page = document.new_page(width=612, height=792)
            for x, y, size, text, *font in texts:
                page.insert_text((x, y), text, fontsize=size, fontname=font[0] if font else "Times-Roman")
        document.save(path)
    return path


def full(first="As Figure 1 shows."):
    """Both columns of a page, filled."""
    rows = [(x, TOP + 12 + 15 * row, 10, "words of a text") for x in (LEFT, LEFT + 260) for row in range(42)]
    return [(LEFT, TOP + 12, 10, first), *rows[1:]]


def test_a_page_that_keeps_all_has_no_finding(tmp_path):
    caption = (LEFT, TOP + 650, 9, "Figure 1: A caption.", BOLD)
    assert layout.findings(paper(tmp_path, [*full(), caption, (304, 760, 10, "1")])) == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ((LEFT, 300, 6.5, "small"), "page 1: type of 6.50 points"),
        ((LEFT - 12, 300, 10, "out"), "page 1: 12 points outside of the margins: out"),
        ((LEFT, 300, 10, "10U+2079/s"), "page 1: a raw code point"),
        ((LEFT, 300, 10, "Table ??"), "page 1: a raw code point or a lost reference"),
    ],
)
def test_a_fault_is_found_and_named(tmp_path, text, says):
    found = layout.findings(paper(tmp_path, [*full(), text]))
    assert len(found) == 1
    assert found[0].startswith(says)


def test_only_the_last_page_may_be_half_empty(tmp_path):
    half = full()[:18]
    assert layout.findings(paper(tmp_path, full(), half)) == []
    found = layout.findings(paper(tmp_path, half, full()))
    assert len(found) == 1
    assert found[0].startswith("page 1: filled by 4")
