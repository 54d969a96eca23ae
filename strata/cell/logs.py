"""Whose the lines of a log are: of which of several equal systems that ran at the same time, and of which lap.

The outputs of systems stand one after the other, untouched, each after a line ``{"system": K}``; what is of none of
them (the client's, what was observed) stands at the beginning or after ``{"system": null}``.  A log of one system has
no such lines.  Where a cell's run is taken several times, each lap's output stands after a line ``{"lap": K}``, from 1,
and what came before all of them at the beginning.
"""

import json
import re

# The largest log, in bytes: far beyond what any tool prints, and small enough to be read at once.
LARGEST = 64 * 2**20
# The lines before what a system printed, or what is of none of them, and before what was printed in a lap.
MARK = re.compile(r'\{"system": (null|[0-9]+)\}')
LAP = re.compile(r'\{"lap": ([0-9]+)\}')
_LAP_LINE = re.compile(rf"(?m)^{LAP.pattern}\n")


def mark(system: int | None) -> str:
    """The line before what a system printed, or before what is of none of them."""
    return json.dumps({"system": system})


def lap_mark(lap: int) -> str:
    """The line before what was printed in a lap."""
    return json.dumps({"lap": lap})


def laps(log: str) -> list[str]:
    """What each lap printed, behind what was printed before all of them; the whole log where there is but one."""
    first, *rest = _LAP_LINE.split(log)
    return [first + lap for lap in rest[1::2]] or [first]


def split(log: str, systems: int) -> dict[int | None, str]:
    """The lines of each system (from 0), and at None those of none of them; of one system all are its own."""
    if systems == 1:
        return {None: "", 0: log}
    found: dict[int | None, list[str]] = {None: [], **{number: [] for number in range(systems)}}
    current: int | None = None
    for line in log.split("\n"):
        match = MARK.fullmatch(line)
        if match:
            current = None if match[1] == "null" else int(match[1])
        else:
            found.setdefault(current, []).append(line)
    return {number: "\n".join(lines) for number, lines in found.items()}
