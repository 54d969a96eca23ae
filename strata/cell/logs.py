"""Whose the lines of a log are, where several equal systems ran at the same time.

Their outputs stand one after the other, untouched, each after a line ``{"system": K}``; what is of none of them
(the client's, what was observed) stands at the beginning or after ``{"system": null}``.  A log of one system has
no such lines.
"""

import json
import re

# The largest log, in bytes: far beyond what any tool prints, and small enough to be read at once.
LARGEST = 64 * 2**20
_MARK = re.compile(r'\{"system": (null|[0-9]+)\}')


def mark(system: int | None) -> str:
    """The line before what a system printed, or before what is of none of them."""
    return json.dumps({"system": system})


def split(log: str, systems: int) -> dict[int | None, str]:
    """The lines of each system (from 0), and at None those of none of them; of one system all are its own."""
    if systems == 1:
        return {None: "", 0: log}
    found: dict[int | None, list[str]] = {None: [], **{number: [] for number in range(systems)}}
    current: int | None = None
    for line in log.split("\n"):
        match = _MARK.fullmatch(line)
        if match:
            current = None if match[1] == "null" else int(match[1])
        else:
            found.setdefault(current, []).append(line)
    return {number: "\n".join(lines) for number, lines in found.items()}
