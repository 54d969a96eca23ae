"""What the layout of a paper must keep, measured on its PDF; `python tests/layout.py PDF` tells what it does not."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pymupdf

# In the PDF's points, of which an inch has 72; TeX's seven points are a little less than seven of these.
LEAST_TYPE = 6.95
# The block of text of all papers (paper/template.tex), and how far a rule or a hanging sign may stand out.
BLOCK = (7 * 72, 9.1 * 72)
OUT = 3.0
# Where the number of a page stands, below the block.
FOOT = 40
# A page counts as filled where content stands; a gap up to this belongs to it.
GAP = 26
LEAST_FILLED = 2 / 3
NEAR = 2
_CAPTION = re.compile(r"(Figure|Table)\s(\d+)[:.]")
_CITATION = re.compile(r"(Figures?|Tables?)\s((?:\d+(?:\s*(?:,|and|to|–)\s*(?=\d))?)+)")
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
    """How much of a page is filled, between 0 and 1: the mean of its two columns."""
    left, top, right, bottom = page.block
    middle = (left + right) / 2
    shares = []
    for start, end in ((left, middle - 4), (middle + 4, right)):
        boxes = [line.box for line in page.lines if not _is_page_number(line.text.strip(), line.box, page)]
        spans = sorted(
            (max(box[1], top), min(box[3], bottom)) for box in (*boxes, *page.marks) if box[0] < end and box[2] > start
        )
        covered, reached = 0.0, top
        for begun, ended in spans:
            begun = begun if begun - reached > GAP else reached
            if ended > reached:
                covered += ended - max(begun, reached)
                reached = ended
        shares.append(covered / (bottom - top))
    return sum(shares) / 2


def begins_part(page: Page) -> bool:
    """Whether a part begins on a page: its first line is the heading of an appendix."""
    first = min(page.lines, key=lambda line: (line.box[0] > sum(page.block[::2]) / 2, line.box[1]), default=None)
    if first is None or not first.bold:
        return False
    # The number of a heading may be a line of its own.
    beside = sorted((line.box[0], line.text.strip()) for line in page.lines if abs(line.box[1] - first.box[1]) < 4)
    return bool(re.match(r"((\d+|[A-Z])\s+)?Appendi(x|ces)\b", " ".join(text for _, text in beside)))


def half_empty(pages: list[Page]) -> Iterator[str]:
    for page, following in pairwise(pages):
        share = filled(page)
        if share < LEAST_FILLED and not begins_part(following):
            yield f"page {page.number}: filled by {100 * share:.0f} %"


def places(pages: list[Page]) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """On which pages each figure and table stands, and on which each is cited."""
    stands: dict[str, set[int]] = {}
    cited: dict[str, set[int]] = {}
    for page in pages:
        flow = []
        for line in page.lines:
            caption = _CAPTION.match(line.text.strip())
            if caption and line.bold:
                stands.setdefault(f"{caption[1]} {caption[2]}", set()).add(page.number)
                flow.append(line.text.strip()[caption.end() :])
            else:
                flow.append(line.text.strip())
        for kind, numbers in _CITATION.findall(" ".join(flow)):
            for one in _numbers(numbers):
                cited.setdefault(f"{kind.rstrip('s')} {one}", set()).add(page.number)
    return stands, cited


def _numbers(text: str) -> set[int]:
    found = [int(number) for number in re.findall(r"\d+", text)]
    between = range(found[0], found[-1] + 1) if re.search("to|–", text) else []
    return {*found, *between}


def far(pages: list[Page]) -> Iterator[str]:
    stands, cited = places(pages)
    for name, where in stands.items():
        if name not in cited:
            yield f"{name} on page {min(where)} is not cited"
        elif min(abs(one - other) for one in where for other in cited[name]) > NEAR:
            yield f"{name} on page {min(where)} is cited on no page near, but on {sorted(cited[name])}"


def raw(pages: list[Page]) -> Iterator[str]:
    for page in pages:
        for line in page.lines:
            if _RAW.search(line.text):
                yield f"page {page.number}: a raw code point or a lost reference: {line.text.strip()[:60]}"


def findings(path: str | Path) -> list[str]:
    """All that is wrong with the layout of a paper, in sentences."""
    pages = read(path)
    return [found for check in (small_type, outside, half_empty, far, raw) for found in check(pages)]


if __name__ == "__main__":
    wrong = [f"{path}: {found}" for path in sys.argv[1:] for found in findings(path)]
    print("\n".join(wrong))
    sys.exit(bool(wrong))
