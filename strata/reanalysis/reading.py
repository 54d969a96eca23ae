"""What every reader of a published file gives, and how a log falls into blocks."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

# Of what a value is: names and numbers or texts.
Factors = dict[str, int | str]


class Value(NamedTuple):
    """One value, and the line that holds it.

    selection: ``paper`` where a table or figure of the original shows it; ``variant`` for another setting;
    ``superseded`` for a run that gave way to one that is shown.  environment: where the file's content tells it.
    """

    metric: str
    unit: str
    factors: Factors
    value: float
    line: int
    selection: str = "paper"
    environment: str = ""


class Refusal(NamedTuple):
    """What cannot be used, and the line where it begins."""

    line: int
    reason: str


class Block(NamedTuple):
    """A part of a log: its lines, and the number of the first."""

    lines: list[str]
    first: int

    def number(self, pattern: str) -> float | None:
        """The number that the first line of that form holds; None where no line does."""
        for line in self.lines:
            if found := re.search(pattern, line):
                return as_number(found[1])
        return None

    def place(self, pattern: str) -> int:
        """The number of the first line of that form, or else that of the block."""
        return self.first + next(
            (at for at, line in enumerate(self.lines) if re.search(pattern, line)), 0
        )

    def holds(self, pattern: str) -> bool:
        """Whether any line is of that form."""
        return any(re.search(pattern, line) for line in self.lines)


def as_number(text: str) -> float | None:
    """A finite number; None for any other text."""
    try:
        found = float(text)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def cut(lines: Sequence[str], starts: Sequence[int], first: int = 1) -> list[Block]:
    """The parts of lines that begin at these places, which count from 0; `first` is the number of the first line."""
    return [
        Block(list(lines[at:end]), at + first)
        for at, end in itertools.pairwise([*starts, len(lines)])
    ]


def blocks(lines: Sequence[str], *patterns: str) -> list[Block]:
    """The parts of a log, each from a line of the first of these forms that any line has."""
    for pattern in patterns:
        if starts := [at for at, line in enumerate(lines) if re.search(pattern, line)]:
            return cut(lines, starts)
    return []
