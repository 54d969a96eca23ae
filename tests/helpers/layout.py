"""Find faults of a paper's layout by measuring its PDF.

`python tests/helpers/layout.py PDF` lists them.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pymupdf

# In points of which an inch has 72.
LEAST_TYPE = 8
# The block of text of all papers (paper/report.Rmd), and how far a rule or a hanging sign may stand
# out of it.
BLOCK = (6.5 * 72, 9.2 * 72)
OUT = 3.0
# Above and below it: a line of text is higher than its signs.
MORE = 4
# Where the number of a page stands, below the block.
FOOT = 40
# A page counts as filled where content stands; a gap up to this belongs to it.
GAP = 26
LEAST_FILLED = 1 / 2
_RAW = re.compile(r"U\+[0-9A-F]{4}|\[\?\]|\?\?|\ufffd")

Box = tuple[float, float, float, float]


def lines_of(page: pymupdf.Page) -> Iterator[tuple[str, Box, float]]:
    """Each line of text, its box, and its glyphs' smallest size, but for the number of the page."""
    foot = (page.rect.height + BLOCK[1]) / 2
    for block in page.get_text("dict", flags=pymupdf.TEXT_PRESERVE_WHITESPACE)["blocks"]:
        for line in block.get("lines", []):
            spans = [span for span in line["spans"] if span["text"].strip()]
            text = "".join(span["text"] for span in line["spans"]).strip()
            if spans and not (text.isdigit() and foot < line["bbox"][1] < foot + FOOT):
                yield text, tuple(line["bbox"]), min(span["size"] for span in spans)


def marks_of(page: pymupdf.Page) -> Iterator[Box]:
    """What is drawn but not text; a shape that the page cuts is as large as it would be without."""
    for kind, box in page.get_bboxlog():
        if kind in ("stroke-path", "fill-path", "fill-image") and not pymupdf.Rect(box).is_infinite:
            yield tuple(pymupdf.Rect(box) & page.rect)


def of_page(page: pymupdf.Page, last: bool) -> Iterator[str]:
    """All that is wrong with a page."""
    left, top = (page.rect.width - BLOCK[0]) / 2, (page.rect.height - BLOCK[1]) / 2
    right, bottom = left + BLOCK[0], top + BLOCK[1]
    lines, marks = list(lines_of(page)), list(marks_of(page))
    for text, _, size in lines:
        if size < LEAST_TYPE:
            yield f"type of {size:.2f} points: {text[:60]}"
        if _RAW.search(text):
            yield f"a raw code point or a lost reference: {text[:60]}"
    boxes = [(text, box, MORE) for text, box, _ in lines] + [("a mark", box, 0) for box in marks]
    for what, box, more in boxes:
        over = max(left - box[0], box[2] - right, top - box[1] - more, box[3] - bottom - more)
        if over > OUT:
            yield f"{over:.0f} points outside of the margins: {what[:60]}"
    covered, reached = 0.0, top
    for begun, ended in sorted((max(box[1], top), min(box[3], bottom)) for _, box, _ in boxes):
        if ended > reached:
            covered += ended - (max(begun, reached) if begun - reached > GAP else reached)
            reached = ended
    if not last and covered < LEAST_FILLED * BLOCK[1]:
        yield f"filled by {100 * covered / BLOCK[1]:.0f} %"


def findings(path: str | Path) -> list[str]:
    """All that is wrong with the layout of a paper, in sentences."""
    with pymupdf.open(path) as pages:
        return [
            f"page {number}: {found}"
            for number, page in enumerate(pages, 1)
            for found in of_page(page, number == len(pages))
        ]


if __name__ == "__main__":
    wrong = [f"{path}: {found}" for path in sys.argv[1:] for found in findings(path)]
    print("\n".join(wrong))
    sys.exit(bool(wrong))
