"""A shell that waits in a system under test and runs one command after the other, each begun by a line that it is sent.

What starts a command is then the same in every environment, and next to nothing: to enter a container anew takes as
long as a short run, and keeps the processors busy right before it.
"""

import contextlib
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Sequence

from strata.util import signals
from strata.util.process import end, wait_for
from strata.util.timeouts import stretched

PROGRAM = "sh"
# Seconds that it may take to end once it is sent nothing more.
SECONDS_TO_END = 5.0
# Bytes that are longer than what it says of a command that has ended.
MOST = 64
# Seconds between two looks at a command whose time is nearly over.
LEAST = 0.05


class Stopwatch:
    """Counts the seconds for which commands go on: none while they are frozen.  It goes at first.

    One thread stops it while another reads it.
    """

    def __init__(self) -> None:
        # The seconds until it last began to go, and when that was; None where it stands.
        self._told: tuple[float, float | None] = (0.0, time.monotonic())

    def seconds(self) -> float:
        """Seconds for which it has gone."""
        passed, since = self._told
        return passed if since is None else passed + time.monotonic() - since

    def stop(self) -> None:
        """Stand still."""
        self._told = (self.seconds(), None)

    def go_on(self) -> None:
        """Go, again or still."""
        self._told = (self.seconds(), time.monotonic())


class Shell:
    """One such shell.  argv: the host's command that starts it in the system; it reads its standard input.

    `clock` counts the time of its commands: whoever freezes them stops it.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.clock = Stopwatch()
        # What stands, behind a line's end of its own, before the exit code of a command that has ended.
        self._mark = os.urandom(12).hex()
        pipe = subprocess.PIPE
        with signals.undisturbed():
            self._process = subprocess.Popen(
                argv,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                bufsize=0,
            )
        assert self._process.stdin
        assert self._process.stdout
        self._sent, self._printed = self._process.stdin, self._process.stdout

    def run(
        self, argv: Sequence[str], output: Callable[[bytes], None], timeout: float
    ) -> tuple[int | None, float]:
        """Run a command: its exit code and the seconds it went on; `output` is called with what it prints.

        The code is None where it does not end within `timeout` such seconds (as stretched).  Then,
        where an output raises, and where the shell ends under it, whose code it is in that case, the
        shell is gone.
        """
        # Not where a cell without laps would pay for it.
        import shlex

        begun, code = self.clock.seconds(), None
        try:
            # That it has ended is seen where it is read.
            with contextlib.suppress(BrokenPipeError):
                line = f"{shlex.join(argv)} </dev/null 2>&1\nprintf '\\n%s %d\\n' {self._mark} $?\n"
                self._sent.write(line.encode())
            code = self._pass_on(output, begun + stretched(timeout))
        finally:
            if code is None:
                end(self._process)
        return code, self.clock.seconds() - begun

    def close(self) -> None:
        """Let it end, which it does once it can be sent nothing more."""
        self._sent.close()
        wait_for(self._process.pid, SECONDS_TO_END)
        end(self._process)
        self._printed.close()

    def _pass_on(self, output: Callable[[bytes], None], deadline: float) -> int | None:
        """Hand on what is printed until the command has ended; its exit code.

        The code is None at the deadline, which is one of the clock.
        """
        source, ended = (
            self._printed.fileno(),
            re.compile(rb"\n%s ([0-9]+)\n" % self._mark.encode()),
        )
        poll = select.poll()
        poll.register(source, select.POLLIN)
        held = b""
        while (left := deadline - self.clock.seconds()) > 0:
            if not poll.poll(max(LEAST, left) * 1000):
                continue
            piece = os.read(source, 1 << 16)
            held += piece
            if told := ended.search(held):
                # Behind it stands what was printed by something that did not end with the command.
                output(held[: told.start()] + held[told.end() :])
                return int(told[1])
            if not piece:
                output(held)
                self.close()
                # Of a signal 128 and its number, as shells tell it.
                code: int = self._process.returncode
                return 128 - code if code < 0 else max(1, code)
            # The beginning of the mark may stand at the end.
            output(held[:-MOST])
            held = held[-MOST:]
        output(held)
        return None
