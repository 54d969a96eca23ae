"""Whose the lines of a log are: of which of several equal systems that ran at the same time, and of which lap.

The outputs of systems stand one after the other, untouched, each after a line ``{"system": K}``; what is of none of
them (the client's, what was observed) stands at the beginning or after ``{"system": null}``.  A log of one system has
no such lines.  Where a cell's run is taken several times, each lap's output stands after a line ``{"lap": K}``, from 1,
and what came before all of them at the beginning.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator, Sequence

from strata.base.shapes import Fields

# The lines before what a system printed, or what is of none of them, and before what was printed in a lap.
MARK = re.compile(r'\{"system": (null|[0-9]{1,9})\}')
LAP = re.compile(r'\{"lap": ([0-9]{1,9})\}')
# How a line begins that tells what was observed of the host.
OBSERVED = '{"observed":'
Parts = list[tuple[int | None, list[str]]]


def parts(lines: list[str], mark: re.Pattern[str]) -> Parts:
    """The lines before the first mark, and those after each one with the number in it; None: none is in it."""
    found: Parts = [(None, [])]
    for line in lines:
        if match := mark.fullmatch(line):
            found.append((None if match[1] == "null" else int(match[1]), []))
        else:
            found[-1][1].append(line)
    return found


def laps(lines: list[str]) -> Parts:
    """The lines of each lap, behind those before all of them; without laps all of them, at None."""
    (_, before), *found = parts(lines, LAP)
    return [(lap, [*before, *inner]) for lap, inner in found] or [(None, before)]


def of_system(found: Parts, system: int | None) -> list[str]:
    """The lines of a system (from 0) among :func:`parts`, and what was observed of the host, which belongs to each.

    At None those that are of none of them.
    """
    kept = {None: OBSERVED, system: ""}
    return [line for mark, inner in found if mark in kept for line in inner if line.startswith(kept[mark])]


def last_words(text: str) -> str:
    """The last three lines of an output that are not empty, in one, of each the first 200 characters."""
    return " / ".join([line.strip()[:200] for line in text.splitlines() if line.strip()][-3:])


def checks(declared: list[Fields], log: str, systems: int = 1) -> list[Fields]:
    """``[{name, passed}, …]``: whether a line of the log matches each declared pattern.

    Of several systems each must have such a line, unless it is among those that are of none of them; and so must each
    lap, unless it was printed before all of them.
    """
    each = [parts(lines, MARK) for _, lines in laps(log.split("\n"))]
    texts = [["\n".join(of_system(found, system)) for system in (None, *range(systems))] for found in each]

    def passed(pattern: str) -> bool:
        find = re.compile(pattern, re.MULTILINE).search
        return all(find(shared) or all(map(find, own)) for shared, *own in texts)

    return [{"name": check["name"], "passed": passed(check["pattern"])} for check in declared]


class Log:
    """The log of a cell of so many systems while it grows, by way of its `descriptor`."""

    def __init__(self, path: str, systems: int = 1) -> None:
        self._systems = systems
        self._marked: int | None = None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o644)

    def write(self, line: str) -> None:
        """Write a line of ours."""
        os.write(self.descriptor, line.encode() + b"\n")

    def begin_lap(self, number: int) -> None:
        """Say that a lap begins."""
        self.write(json.dumps({"lap": number}))
        self._marked = None

    def mark(self, system: int | None) -> None:
        """Say whose the next lines are: those of one of several systems, or of none (the client's, say)."""
        if self._systems > 1 and (system is not None or self._marked is not None):
            self.write(json.dumps({"system": system}))
        self._marked = system

    @contextlib.contextmanager
    def outputs(self, systems: Sequence[int | None]) -> Iterator[list[int]]:
        """Descriptors for what systems (None: none of them) print at the same time.

        Of several the outputs are put into the log one after the other, once all have ended.
        """
        if self._systems == 1:
            yield [self.descriptor]
            return
        import tempfile

        outputs = [tempfile.TemporaryFile() for _ in systems]
        try:
            yield [output.fileno() for output in outputs]
        finally:
            for system, output in zip(systems, outputs, strict=True):
                self.mark(system)
                with output:
                    output.seek(0)
                    text = output.read()
                # What follows begins a line of its own.
                os.write(self.descriptor, text if text[-1:] in (b"", b"\n") else text + b"\n")

    def whole(self) -> bytes:
        """All of it, which lasts from now on."""
        os.fsync(self.descriptor)
        os.lseek(self.descriptor, 0, os.SEEK_SET)
        with open(self.descriptor, "rb", closefd=False) as file:
            return file.read()
