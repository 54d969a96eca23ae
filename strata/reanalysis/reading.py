"""Define the values that readers of published files yield, and split logs into blocks."""

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

Factors = dict[str, int | str]


class Value(NamedTuple):
    """A measured value of a published file.

    factors: the settings of the measurement, name → number or text.
    line: number of the value's line or row in the file, from 1.
    selection: ``paper`` for a value that a table or figure of the original shows; ``variant`` for
    another setting; ``superseded`` for a run that was repeated, if the repetition is shown.
    environment: as the file's content names it; empty if only the file's name does.
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


Readings = Iterator[Value | Refusal]


class Block(NamedTuple):
    """A part of a log: its lines, and the number of its first line in the file, from 1."""

    lines: list[str]
    first: int

    def find_number(self, pattern: str) -> float | None:
        """Return the number in group 1 of a regular expression, from the first line that matches.

        pattern: the regular expression; it may match anywhere in a line.
        Returns None if no line matches, or if the group is not a finite number.
        """
        for line in self.lines:
            if match := re.search(pattern, line):
                return parse_number(match[1])
        return None

    def find_line_number(self, pattern: str) -> int:
        """Return the line number, in the file, of the first line that matches a regular expression.

        Returns the number of the block's first line if no line matches.
        """
        for number, line in enumerate(self.lines, self.first):
            if re.search(pattern, line):
                return number
        return self.first

    def has_match(self, pattern: str) -> bool:
        """Return whether a regular expression matches anywhere in any line of the block."""
        return any(re.search(pattern, line) for line in self.lines)


def parse_number(text: str) -> float | None:
    """Return the finite number that a text spells; None for any other text."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def split_at_starts(lines: Sequence[str], starts: Sequence[int], first: int = 1) -> list[Block]:
    """Return lines as blocks, each of which ends before the start of the next.

    Lines before the first start are left out.
    starts: the index in `lines` of each block's first line, in ascending order.
    first: the line number, in the file, of the first of `lines`.
    """
    return [
        Block(list(lines[start:end]), start + first)
        for start, end in itertools.pairwise([*starts, len(lines)])
    ]


def split_at_pattern(lines: Sequence[str], *patterns: str) -> list[Block]:
    """Return lines as blocks, each of which begins with a line that matches a regular expression.

    lines: the lines of a whole file.
    patterns: regular expressions, of which only the first one that matches any line is used.
    Returns an empty list if no line matches.  Lines before the first block are left out.
    """
    for pattern in patterns:
        starts = [index for index, line in enumerate(lines) if re.search(pattern, line)]
        if starts:
            return split_at_starts(lines, starts)
    return []
