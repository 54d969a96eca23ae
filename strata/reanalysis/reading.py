"""The values that readers of published files yield, and the blocks of a log."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

Factors = dict[str, int | str]


class Value(NamedTuple):
    """One measured value.

    factors: names and numbers or texts.  line: in the file, from 1.
    selection: ``paper`` for a value that a table or figure of the original shows; ``variant`` for
    another setting; ``superseded`` for a run that was repeated, and the repetition shown.
    environment: where the file's content decides it; else empty.
    """

    metric: str
    unit: str
    factors: Factors
    value: float
    line: int
    selection: str = "paper"
    environment: str = ""


class Refusal(NamedTuple):
    """A part of a file that cannot be used: its first line (0: the whole file), and why."""

    line: int
    reason: str


class Block(NamedTuple):
    """A part of a log: its lines, and the number of the first, from 1."""

    lines: list[str]
    first: int

    def find_number(self, pattern: str) -> float | None:
        """Return the number in group 1 of the first line that matches; None where none does."""
        for line in self.lines:
            if match := re.search(pattern, line):
                return parse_number(match[1])
        return None

    def find_line(self, pattern: str) -> int:
        """Return the number of the first line that matches, or else that of the block."""
        for number, line in enumerate(self.lines, self.first):
            if re.search(pattern, line):
                return number
        return self.first

    def contains(self, pattern: str) -> bool:
        """Whether any line matches."""
        return any(re.search(pattern, line) for line in self.lines)


def parse_number(text: str) -> float | None:
    """Return a finite number; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def cut_lines(lines: Sequence[str], starts: Sequence[int], first: int = 1) -> list[Block]:
    """Return the blocks of lines that begin at some places.

    starts: places in `lines`, from 0.  first: the number of the first of `lines`.
    """
    return [
        Block(list(lines[start:end]), start + first)
        for start, end in itertools.pairwise([*starts, len(lines)])
    ]


def find_blocks(lines: Sequence[str], *patterns: str) -> list[Block]:
    """Return the blocks that begin with lines of one pattern: the first that any line matches."""
    for pattern in patterns:
        starts = [place for place, line in enumerate(lines) if re.search(pattern, line)]
        if starts:
            return cut_lines(lines, starts)
    return []
