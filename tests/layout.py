"""What the layout of a paper must keep, measured on its PDF; `python tests/layout.py PDF` tells what it does not."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymupdf

# In points of which an inch has 72.
LEAST_TYPE = 8
# The block of text of all papers (paper/report.Rmd), and how far a rule or a hanging sign may stand out.
BLOCK = (6.5 * 72, 9.2 * 72)
OUT = 3.0
# Where the number of a page stands, below the block.
FOOT = 40
# A page counts as filled where content stands; a gap up to this belongs to it.
GAP = 26
LEAST_FILLED = 1 / 2
_RAW = re.compile(r"U\+[0-9A-F]{4}|\[\?\]|\?\?|\ufffd")


@dataclass(frozen=True)
class Line:
    """A line of text: its page, its box, and its glyphs' smallest size."""

    page: int
    box: tuple[float, float, float, float]
    text: str
    size: float
    bold: bool


@dataclass(frozen=True)
class Page:
    """A page: what stands on it, and the block that all of it should lie in (left, top, right, bottom)."""

    number: int
    lines: list[Line]
    marks: list[tuple[float, float, float, float]]
    block: tuple[float, float, float, float]


def read(path: str | Path) -> list[Page]:
    """The pages of a PDF."""
    pages = []
    with pymupdf.open(path) as document:
        for number, page in enumerate(document, 1):
            width, height = page.rect.width, page.rect.height
            left, top = (width - BLOCK[0]) / 2, (height - BLOCK[1]) / 2
            lines = []
            for block in page.get_text("dict", flags=pymupdf.TEXT_PRESERVE_WHITESPACE)["blocks"]:
                for line in block.get("lines", []):
                    spans = [span for span in line["spans"] if span["text"].strip()]
                    if spans:
                        text = "".join(span["text"] for span in line["spans"])
                        size = min(span["size"] for span in spans)
                        bold = "Bold" in spans[0]["font"] or "Medi" in spans[0]["font"]
                        lines.append(Line(number, tuple(line["bbox"]), text, size, bold))
            # What is drawn but not text; a shape that a frame cuts is as large as it would be without.
            frame = page.rect
            marks = [
                tuple(pymupdf.Rect(box) & frame)
                for kind, box in page.get_bboxlog()
                if kind in ("stroke-path", "fill-path", "fill-image") and not pymupdf.Rect(box).is_infinite
            ]
            pages.append(Page(number, lines, marks, (left, top, left + BLOCK[0], top + BLOCK[1])))
    return pages


def small_type(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        small = [line for line in page.lines if line.size < LEAST_TYPE]
        if small:
            least = min(small, key=lambda line: line.size)
            text = least.text.strip()[:60]
            yield f"page {page.number}: type of {least.size:.2f} points, as in: {text} ({len(small)} lines)"


def outside(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        left, top, right, bottom = page.block
        for what, box in [(line.text.strip()[:60], line.box) for line in page.lines] + [
            ("a mark", mark) for mark in page.marks
        ]:
            if _is_page_number(what, box, page):
                continue
            over = max(left - box[0], top - box[1], box[2] - right, box[3] - bottom)
            if over > OUT + (4 if what != "a mark" else 0) * (box[1] < top or box[3] > bottom):
                yield f"page {page.number}: {over:.0f} points outside of the margins: {what}"


def _is_page_number(text: str, box: tuple[float, float, float, float], page: Page) -> bool:
    return text.isdigit() and page.block[3] < box[1] < page.block[3] + FOOT


def filled(page: Page) -> float:
    """How much of a page's height is filled, between 0 and 1."""
    _, top, _, bottom = page.block
    boxes = [line.box for line in page.lines if not _is_page_number(line.text.strip(), line.box, page)]
    covered, reached = 0.0, top
    for begun, ended in sorted((max(box[1], top), min(box[3], bottom)) for box in (*boxes, *page.marks)):
        begun = begun if begun - reached > GAP else reached
        if ended > reached:
            covered += ended - max(begun, reached)
            reached = ended
    return covered / (bottom - top)


def half_empty(pages: list[Page]) -> Iterator[str]:
    for page in pages[:-1]:
        if filled(page) < LEAST_FILLED:
            yield f"page {page.number}: filled by {100 * filled(page):.0f} %"


def raw(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        for line in page.lines:
            if _RAW.search(line.text):
                yield f"page {page.number}: a raw code point or a lost reference: {line.text.strip()[:60]}"


def findings(path: str | Path) -> list[str]:
    """All that is wrong with the layout of a paper, in sentences."""
    pages = read(path)
    return [found for check in (small_type, outside, half_empty, raw) for found in check(pages)]


if __name__ == "__main__":
    wrong = [f"{path}: {found}" for path in sys.argv[1:] for found in findings(path)]
    print("\n".join(wrong))
    sys.exit(bool(wrong))
