"""A shell that waits in a system under test and runs one command after the other, each begun by a line that it is sent.

What starts a command is then the same in every environment, and next to nothing: to enter a container anew takes as
long as a short run, and keeps the processors busy right before it.
"""

import os
import re
import select
import subprocess
import time
from collections.abc import Sequence

from strata.base import signals
from strata.base.patience import stretched
from strata.base.process import end, reap, wait_for

PROGRAM = "sh"
# Seconds that it may take to end once it is sent nothing more.
SECONDS_TO_END = 5.0
# How it says that a command has ended, behind a line's end of its own; filled with the shell's mark.
ENDED = "\n{} ended with "


class Shell:
    """One such shell.  argv: the host's command that starts it in the system; it reads its standard input."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._mark = ENDED.format(os.urandom(12).hex()).encode()
        with signals.undisturbed():
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin
        assert self._process.stdout
        self._sent, self._printed = self._process.stdin, self._process.stdout

    def run(self, argv: Sequence[str], output: int, timeout: float) -> tuple[int | None, float]:
        """Run a command, what it prints into a descriptor: its exit code and the seconds it took.

        The code is None where it does not end within `timeout` seconds (as stretched).  Then, and where the shell ends
        under it, whose code it is in that case, the shell is gone.
        """
        begun = time.monotonic()
        try:
            self._send(argv)
            code = self._pass_on(output, begun + stretched(timeout))
        except BaseException:
            self._end()
            raise
        seconds = time.monotonic() - begun
        if code is None:
            self._end()
        return code, seconds

    def close(self) -> None:
        """Let it end, which it does once it can be sent nothing more."""
        self._sent.close()
        if wait_for(self._process.pid, SECONDS_TO_END):
            reap(self._process)
        self._end()

    def _end(self) -> None:
        with signals.undisturbed():
            if self._process.returncode is None:
                end(self._process)
            self._sent.close()
            self._printed.close()

    def _send(self, argv: Sequence[str]) -> None:
        # Not where a cell without laps would pay for it.
        import shlex

        said = self._mark.decode().removeprefix("\n")
        lines = f"{shlex.join(argv)} </dev/null 2>&1\nprintf '\\n%s%d\\n' {shlex.quote(said)} $?\n".encode()
        try:
            while lines:
                lines = lines[os.write(self._sent.fileno(), lines) :]
        except BrokenPipeError:
            pass  # That it has ended is seen where it is read.

    def _pass_on(self, output: int, deadline: float) -> int | None:
        """Write what is printed to a descriptor until the command has ended; its exit code, None at the deadline."""
        source = self._printed.fileno()
        poll = select.poll()
        poll.register(source, select.POLLIN)
        held = b""
        while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            piece = os.read(source, 1 << 16)
            held += piece
            if told := re.search(re.escape(self._mark) + rb"([0-9]+)\n", held):
                # Behind it stands what was printed by something that did not end with the command.
                _write(output, held[: told.start()] + held[told.end() :])
                return int(told[1])
            kept = _beginning(held, self._mark) if piece else 0
            _write(output, held[: len(held) - kept])
            held = held[len(held) - kept :]
            if not piece:
                return max(1, self._code())
        _write(output, held)
        return None

    def _code(self) -> int:
        """The exit code of the shell, which has closed its output; of one that a signal ended 128 and its number."""
        if not wait_for(self._process.pid, SECONDS_TO_END):
            self._end()
        code = reap(self._process)
        self._end()
        return 128 - code if code < 0 else code


def _beginning(text: bytes, mark: bytes) -> int:
    """How many bytes at the end of a text may be the beginning of the mark, or all of it."""
    if mark in text:
        return len(text) - text.index(mark)
    return next((size for size in range(min(len(mark), len(text)), 0, -1) if mark.startswith(text[-size:])), 0)


def _write(output: int, text: bytes) -> None:
    while text:
        text = text[os.write(output, text) :]
