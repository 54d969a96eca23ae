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
from collections.abc import Callable, Iterator, Sequence

from strata.util.units import size

# The lines before what a system printed, or what is of none of them, and before what was printed in a lap.
MARK = re.compile(r'\{"system": (null|[0-9]{1,9})\}')
LAP = re.compile(r'\{"lap": ([0-9]{1,9})\}')
# How a line begins that tells what was observed of the host.
OBSERVED = '{"observed":'
Parts = list[tuple[int | None, list[str]]]
# What the programs of a cell may print unless its workload says otherwise.  The largest log of ours has
# 7 kB at the smallest scale, and some MB at that of the paper.
LIMIT = "64MiB"


class LongLogError(Exception):
    """The programs of a cell print more than its log may hold."""


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
    return [
        line
        for mark, inner in found
        if mark in kept
        for line in inner
        if line.startswith(kept[mark])
    ]


def last_words(text: str) -> str:
    """The last three lines of an output that are not empty, in one, of each the first 200 characters."""
    return " / ".join([line.strip()[:200] for line in text.splitlines() if line.strip()][-3:])


class Log:
    """The log of a cell of so many systems while it grows; limit: how much its programs may print."""

    def __init__(self, path: str, systems: int = 1, limit: str = LIMIT) -> None:
        self._systems, self._left = systems, size(limit)
        self._marked: int | None = None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def write(self, line: str) -> None:
        """Write a line of ours."""
        _write(self._descriptor, line.encode() + b"\n")

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
    def outputs(self, systems: Sequence[int | None]) -> Iterator[list[Callable[[bytes], None]]]:
        """To be called with what each of some systems (None: none of them) prints at the same time.

        Each raises LongLogError once the log is full.  Of several the outputs are put into the log one
        after the other, once all have ended.
        """
        if self._systems == 1:
            yield [self._taker(self._descriptor)]
            return
        import tempfile

        files = [tempfile.TemporaryFile() for _ in systems]
        try:
            yield [self._taker(file.fileno()) for file in files]
        finally:
            for system, file in zip(systems, files, strict=True):
                self.mark(system)
                with file:
                    file.seek(0)
                    text = file.read()
                # What follows begins a line of its own.
                _write(self._descriptor, text if text[-1:] in (b"", b"\n") else text + b"\n")

    def _taker(self, descriptor: int) -> Callable[[bytes], None]:
        def take(text: bytes) -> None:
            kept, rest = text[: self._left], text[self._left :]
            self._left -= len(kept)
            _write(descriptor, kept)
            if rest:
                raise LongLogError

        return take

    def whole(self) -> bytes:
        """All of it, which lasts from now on."""
        os.fsync(self._descriptor)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()


def _write(descriptor: int, text: bytes) -> None:
    while text:
        text = text[os.write(descriptor, text) :]
