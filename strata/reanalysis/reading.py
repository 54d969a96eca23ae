"""The values that readers of published files yield, and the blocks of a log."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

Factors = dict[str, int | str]


class Value(NamedTuple):
    """A measured value of a published file.

    factors: the settings of the measurement, numbers or texts by their names.
    line: number of the value's line or row in the file, from 1.
    selection: ``paper`` for a value that a table or figure of the original shows; ``variant`` for
    another setting; ``superseded`` for a run that was repeated, if the repetition is shown.
    environment: if the file's content tells it; else empty, and the file's name tells it.
    """

    metric: str
    unit: str
    factors: Factors
    value: float
    line: int
    selection: str = "paper"
    environment: str = ""


class Refusal(NamedTuple):
    """A part of a file that cannot be used, and why.

    line: number of its first line, from 1; 0 for the whole file.
    """

    line: int
    reason: str


class Block(NamedTuple):
    """A part of a log: its lines, and the number of its first line in the file, from 1."""

    lines: list[str]
    first: int

    def find_number(self, pattern: str) -> float | None:
        """Return the number in group 1 of a pattern in the first line that it matches.

        Returns None if it matches no line, or if the group is not a finite number.
        """
        for line in self.lines:
            if match := re.search(pattern, line):
                return parse_number(match[1])
        return None

    def find_line(self, pattern: str) -> int:
        """Return the number, in the file, of the first line that a pattern matches.

        Returns the number of the block's first line if it matches none.
        """
        for number, line in enumerate(self.lines, self.first):
            if re.search(pattern, line):
                return number
        return self.first

    def contains(self, pattern: str) -> bool:
        """Return whether a pattern matches any line of the block."""
        return any(re.search(pattern, line) for line in self.lines)


def parse_number(text: str) -> float | None:
    """Return the finite number that a text represents; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def cut_lines(lines: Sequence[str], starts: Sequence[int], first: int = 1) -> list[Block]:
    """Cut lines into blocks, each up to the start of the next; lines before the first are left out.

    starts: index in `lines` of each block's first line, in ascending order.
    first: the number of the first of `lines` in the file.
    """
    return [
        Block(list(lines[start:end]), start + first)
        for start, end in itertools.pairwise([*starts, len(lines)])
    ]


def find_blocks(lines: Sequence[str], *patterns: str) -> list[Block]:
    """Cut lines into blocks that each begin with a line which matches a pattern.

    patterns: alternatives, of which the first that matches any line is used.
    Returns no blocks if none matches.
    """
    for pattern in patterns:
        starts = [place for place, line in enumerate(lines) if re.search(pattern, line)]
        if starts:
            return cut_lines(lines, starts)
    return []
