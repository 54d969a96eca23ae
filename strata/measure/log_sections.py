"""Write and split a cell's log, whose section markers name the system and the lap of lines.

Where several equal systems run at the same time, their outputs come one after the other, each
after a line ``{"system": K}``.  Output of no system (the client's, or observations of the host)
comes at the beginning or after ``{"system": null}``.  A log of one system has no such lines.
Where a run is taken several times or may be taken in slices, the output of lap K comes after a line
``{"lap": K, "how": "whole"}`` or ``{"lap": K, "how": "slices"}``, from 1, and the output before all
laps at the beginning.  Native may have both in each lap.
"""

import contextlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence

from strata.util.units import parse_size

# The markers of systems and of laps: part of the format of logs, which must stay, since logs of
# earlier versions are parsed, too.
SYSTEM_MARKER = re.compile(r'\{"system": (null|[0-9]{1,9})\}')
LAP_MARKER = re.compile(r'\{"lap": ([0-9]{1,9}), "how": "(whole|slices)"\}')
# How a line with the times of slices begins.
SLICES = '{"slices":'
# How a line with an observation of the host begins.
OBSERVED = '{"observed":'
# (number in the marker, or None; the lines after it) of each section.
Sections = list[tuple[int | None, list[str]]]
# How much the programs of a cell may print, unless the workload sets another limit.  The largest
# log of Strata's workloads has 7 kB at the smallest scale, and some MB at the scale `paper`.
DEFAULT_LIMIT = "64MiB"


class LongLogError(Exception):
    """Raised where the programs of a cell print more than its log may hold."""


def split_sections(lines: list[str], marker: re.Pattern[str]) -> Sections:
    """Return the sections of lines between markers, in the order of the lines.

    marker: the pattern of a whole marker line; its first group is the number of the section or
    ``null``.
    The number of a section is None before the first marker, and after a marker with ``null``.
    A number may occur several times, and a section may be empty; the markers are left out.
    """
    sections: Sections = [(None, [])]
    for line in lines:
        if match := marker.fullmatch(line):
            sections.append((None if match[1] == "null" else int(match[1]), []))
        else:
            sections[-1][1].append(line)
    return sections


def split_laps(lines: list[str]) -> list[tuple[int | None, str, list[str]]]:
    """Return (lap number, way, lines) of each run in a log.

    lines: the lines of the whole log, or of one system's sections.
    The lines of each run begin with the lines before all laps, which a parser needs for each lap.
    The way is `whole` or `slices`.  A log without markers of laps is one whole run with the lap
    number None.
    """
    lines_before_laps: list[str] = []
    laps: list[tuple[int | None, str, list[str]]] = []
    section = lines_before_laps
    for line in lines:
        if match := LAP_MARKER.fullmatch(line):
            # `lines_before_laps` is complete once the first marker was read.
            section = [*lines_before_laps]
            laps.append((int(match[1]), match[2], section))
        else:
            section.append(line)
    if not laps:
        return [(None, "whole", lines_before_laps)]
    return laps


def select_system_lines(sections: Sections, system: int | None) -> list[str]:
    """Return the lines of one system, with the observations of the host, in the log's order.

    sections: as from :func:`split_sections` with SYSTEM_MARKER.
    system: the number of the system, from 0; None selects the lines of no system.
    """
    system_lines = []
    for number, lines in sections:
        if number == system:
            system_lines += lines
        elif number is None:
            system_lines += [line for line in lines if line.startswith(OBSERVED)]
    return system_lines


def summarize_output(text: str) -> str:
    """Return the last three non-empty lines of an output in one line, for an error message.

    The lines are joined by " / ", and each is cut to 200 characters, so that a message stays short.
    The result is empty if the output has no such line.
    """
    lines = [line.strip()[:200] for line in text.splitlines() if line.strip()]
    return " / ".join(lines[-3:])


class Log:
    """Write the log of a cell while it is measured.

    path: the file, which is emptied, or created with its folders.
    systems: the number of systems that run at the same time.
    limit: the size that the output of all programs together may have, for example ``64MiB``.
    """

    def __init__(self, path: str, systems: int = 1, limit: str = DEFAULT_LIMIT) -> None:
        """Create or empty the file.  Raises OSError if that fails."""
        self._systems, self._bytes_left = systems, parse_size(limit)
        # The system that the last marker named; None if it named no system, or without a marker.
        self._last_marked_system: int | None = None
        os.makedirs(os.path.dirname(path), exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = os.open(path, flags, 0o644)

    def write_line(self, line: str) -> None:
        """Write a line of Strata itself, with a line feed; it does not count for the limit."""
        _write_all(self._descriptor, line.encode() + b"\n")

    def write_lap_marker(self, number: int, way: str) -> None:
        """Write the marker of a lap.

        number: the number of the lap, from 1.
        way: how its run is taken, `whole` or `slices`.
        :func:`split_laps` finds the marker by the pattern LAP_MARKER.
        """
        self.write_line(json.dumps({"lap": number, "how": way}))
        self._last_marked_system = None

    def write_system_marker(self, system: int | None) -> None:
        """Write the marker of the system whose output follows; None for output of no system.

        The marker of no system is written only if the last marker named a system.  Nothing is
        written in the log of a single system.
        :func:`split_sections` finds the marker by the pattern SYSTEM_MARKER.
        """
        if self._systems > 1 and (system is not None or self._last_marked_system is not None):
            self.write_line(json.dumps({"system": system}))
        self._last_marked_system = system

    @contextlib.contextmanager
    def open_outputs(
        self, systems: Sequence[int | None]
    ) -> Iterator[list[Callable[[bytes], None]]]:
        """Yield a list of functions, one for each system, that write output of its command.

        systems: the numbers of the systems, from 0, in the order that the log is to have; None
        stands for output of no system.
        The functions raise LongLogError once the limit of the log is reached.  The outputs of
        several systems are written to the log one after the other, after all commands have ended.
        """
        if self._systems == 1:
            # Output goes to the log at once, in the order in which it is printed.
            yield [self._create_writer(self._descriptor)]
            return
        import tempfile

        files = [tempfile.TemporaryFile() for _ in systems]
        try:
            yield [self._create_writer(file.fileno()) for file in files]
        finally:
            for system, file in zip(systems, files, strict=True):
                self.write_system_marker(system)
                with file:
                    file.seek(0)
                    text = file.read()
                # A marker must begin a line: a missing line feed is added to output that has text.
                if text and not text.endswith(b"\n"):
                    text += b"\n"
                _write_all(self._descriptor, text)

    def _create_writer(self, descriptor: int) -> Callable[[bytes], None]:
        """Return a function that writes bytes to a file until the log's limit is reached.

        descriptor: the descriptor of the file.
        All functions that this method returns share the limit, `_bytes_left`.
        """

        def write_limited(text: bytes) -> None:
            """Write as many bytes as the limit allows; raise LongLogError if some do not fit."""
            fitting_text = text[: self._bytes_left]
            self._bytes_left -= len(fitting_text)
            _write_all(descriptor, fitting_text)
            if len(fitting_text) < len(text):
                raise LongLogError

        return write_limited

    def read_all(self) -> bytes:
        """Flush the log to disk, and return its content; further lines are still appended."""
        os.fsync(self._descriptor)
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with open(self._descriptor, "rb", closefd=False) as file:
            return file.read()


def _write_all(descriptor: int, text: bytes) -> None:
    """Write all bytes of a text to a file descriptor, in several writes if necessary."""
    while text:
        text = text[os.write(descriptor, text) :]
