"""A shell that waits in a system under test, and runs one command for each line that it is sent.

So a command starts in the same way in every environment, at next to no cost: to enter a container
anew takes as long as a short run, and keeps the processors busy right before it.
"""

import contextlib
import os
import re
import select
import subprocess
import time
from collections.abc import Callable, Sequence

from strata.util import signals
from strata.util.process import end_processes, wait_for_process
from strata.util.timeouts import stretch

PROGRAM = "sh"
# Seconds that the shell may take to end once its standard input is closed.
SECONDS_TO_END = 5.0
# A number of bytes that is larger than the mark printed after each command.
MARK_BYTES = 64
# The shortest wait, in seconds, for output of a command whose time is nearly over.
SHORTEST_WAIT = 0.05


class Stopwatch:
    """Measure the seconds for which a command is executed, without the time in which it is frozen.

    The stopwatch runs from its creation.  One thread may stop it while another reads it.
    """

    def __init__(self) -> None:
        # The seconds until it was last started, and that moment; None while it is stopped.
        self._state: tuple[float, float | None] = (0.0, time.monotonic())

    def seconds(self) -> float:
        """Return the elapsed seconds, without those in which the stopwatch was stopped."""
        passed, since = self._state
        return passed if since is None else passed + time.monotonic() - since

    def stop(self) -> None:
        """Stop the stopwatch, whose elapsed seconds are kept."""
        self._state = (self.seconds(), None)

    def go_on(self) -> None:
        """Start the stopwatch again; one that is running keeps running."""
        self._state = (self.seconds(), time.monotonic())


class Shell:
    """Hold a waiting shell, which executes one command after another in a system.

    argv: the host's command that starts the shell in the system and connects its standard input.
    clock: measures the time of the shell's commands; the caller stops it while they are frozen.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self.clock = Stopwatch()
        # Printed on a line of its own, before the exit code, once a command has ended.
        self._mark = os.urandom(12).hex()
        pipe = subprocess.PIPE
        with signals.delay_signals():
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
        self._input, self._output = self._process.stdin, self._process.stdout

    def run(
        self, argv: Sequence[str], output: Callable[[bytes], None], timeout: float
    ) -> tuple[int | None, float]:
        """Execute a command, and return its exit code and the seconds that it took.

        output: called with each piece of text that the command prints.
        timeout: the limit in seconds of ``clock``, before it is stretched for slow machines.
        The exit code is None where the command does not end in time, and that of the shell where
        the shell itself ended.  In both cases, and if `output` raises, the shell is ended.
        """
        # Cells without laps, which have no shell, do not pay for this import.
        import shlex

        begun, code = self.clock.seconds(), None
        try:
            # A shell that has ended is seen where its output is read.
            with contextlib.suppress(BrokenPipeError):
                line = f"{shlex.join(argv)} </dev/null 2>&1\nprintf '\\n%s %d\\n' {self._mark} $?\n"
                self._input.write(line.encode())
            code = self._pass_on(output, begun + stretch(timeout))
        finally:
            if code is None:
                end_processes(self._process)
        return code, self.clock.seconds() - begun

    def close(self) -> None:
        """Close the shell's standard input and wait for its end; after the limit, kill it."""
        self._input.close()
        wait_for_process(self._process.pid, SECONDS_TO_END)
        end_processes(self._process)
        self._output.close()

    def _pass_on(self, output: Callable[[bytes], None], deadline: float) -> int | None:
        """Pass the output on until the command has ended, and return its exit code.

        deadline: the reading of ``clock`` at which the result is None.
        """
        source = self._output.fileno()
        mark = re.compile(rb"\n%s ([0-9]+)\n" % self._mark.encode())
        poll = select.poll()
        poll.register(source, select.POLLIN)
        held = b""
        while (left := deadline - self.clock.seconds()) > 0:
            if not poll.poll(max(SHORTEST_WAIT, left) * 1000):
                continue
            piece = os.read(source, 1 << 16)
            held += piece
            if match := mark.search(held):
                # A process that the command left behind may have printed behind the mark.
                output(held[: match.start()] + held[match.end() :])
                return int(match[1])
            if not piece:
                output(held)
                self.close()
                # A signal counts as 128 and its number, as in shells.
                code: int = self._process.returncode
                return 128 - code if code < 0 else max(1, code)
            # The last bytes may be the beginning of the mark.
            output(held[:-MARK_BYTES])
            held = held[-MARK_BYTES:]
        output(held)
        return None
