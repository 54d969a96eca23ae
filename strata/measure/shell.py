"""Run commands in a system by a shell that waits in it, one command for each line that it gets.

A command thereby starts in the same way in every environment, at almost no cost.  Entering a
container for each command would take as long as a short run, and would keep the CPUs busy right
before it.
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
from strata.util.timeouts import scale_timeout

SHELL_PROGRAM = "sh"
# Seconds that the shell may take to end once its standard input is closed.
SECONDS_TO_END = 5.0
# More bytes than the line has that is printed after each command: 24 digits of the mark, a code of
# up to three digits, a space and two line feeds.
MARK_BYTES = 64
# The shortest wait, in seconds, for output of a command whose time is nearly up: without it, the
# loop would use CPU time at the end.
MIN_WAIT_SECONDS = 0.05


class Stopwatch:
    """Measure the seconds that a command runs, without the time that it is frozen.

    The stopwatch runs from its creation.  One thread may stop it while another reads it.
    """

    def __init__(self) -> None:
        """Start the stopwatch."""
        # (Elapsed seconds until the last start, timestamp of that start); the timestamp is None
        # while the stopwatch is stopped.  The pair is replaced as a whole, so that another thread
        # never sees one value without the other.
        self._state: tuple[float, float | None] = (0.0, time.monotonic())

    def get_elapsed_seconds(self) -> float:
        """Return the elapsed seconds, without those in which the stopwatch was stopped."""
        seconds, started = self._state
        return seconds if started is None else seconds + time.monotonic() - started

    def stop(self) -> None:
        """Stop the stopwatch; its elapsed seconds stay."""
        self._state = (self.get_elapsed_seconds(), None)

    def resume(self) -> None:
        """Let the stopwatch run again; if it is running, it keeps running."""
        self._state = (self.get_elapsed_seconds(), time.monotonic())


class Shell:
    """Hold a waiting shell, which executes one command after another in a system.

    argv: the host's command that starts the shell in the system and connects its standard input.
    clock: measures the time of the shell's commands; the caller stops it while they are frozen.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        """Start the shell; :meth:`close` ends it.  Raises OSError if that fails."""
        self.clock = Stopwatch()
        # Printed on its own line, before the exit code, once a command has ended.
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

        argv: the program, as the system finds it, and its arguments; its standard input is empty.
        output: called with the bytes that the command prints on either stream, in pieces.
        timeout: the limit in seconds of ``clock``, before it is scaled for slow machines.
        The exit code is None if the command does not end in time.  If the shell itself ends, its
        exit code is returned.  In both cases, and if `output` raises, the shell cannot be used any
        more: it is ended.
        """
        # Cells without laps, which have no shell, do not pay for this import.
        import shlex

        started = self.clock.get_elapsed_seconds()
        code = None
        try:
            # If the shell has ended, the end of its output shows that.
            with contextlib.suppress(BrokenPipeError):
                line = f"{shlex.join(argv)} </dev/null 2>&1\nprintf '\\n%s %d\\n' {self._mark} $?\n"
                self._input.write(line.encode())
            code = self._forward_output(output, started + scale_timeout(timeout))
        finally:
            if code is None:
                end_processes(self._process)
        return code, self.clock.get_elapsed_seconds() - started

    def close(self) -> None:
        """Close the shell's standard input and wait for its end; after SECONDS_TO_END, kill it.

        This may be called again: nothing happens if the shell has ended.
        """
        self._input.close()
        wait_for_process(self._process.pid, SECONDS_TO_END)
        end_processes(self._process)
        self._output.close()

    def _forward_output(self, output: Callable[[bytes], None], deadline: float) -> int | None:
        """Forward the shell's output until the command has ended, and return its exit code.

        output: called with the bytes of the output in pieces, without the mark that follows it.
        deadline: the elapsed seconds of ``clock`` after which None is returned.
        If the shell itself has ended, closes it, and returns its exit code, which is never 0 here:
        an exit code of 0 becomes 1.
        """
        descriptor = self._output.fileno()
        mark = re.compile(rb"\n%s ([0-9]+)\n" % self._mark.encode())
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        unsent = b""
        while (seconds_left := deadline - self.clock.get_elapsed_seconds()) > 0:
            if not poll.poll(max(MIN_WAIT_SECONDS, seconds_left) * 1000):
                continue
            # 64 KiB, the capacity of a pipe.
            piece = os.read(descriptor, 1 << 16)
            unsent += piece
            if match := mark.search(unsent):
                # A process that the command left behind may have printed after the mark.
                output(unsent[: match.start()] + unsent[match.end() :])
                return int(match[1])
            if not piece:
                output(unsent)
                self.close()
                # Popen gives -N for an end by signal N, which shells report as 128 + N.  A shell
                # that ends before its command's mark is printed has failed, even with code 0.
                code: int = self._process.returncode
                return 128 - code if code < 0 else max(1, code)
            # The last bytes may be the beginning of the mark.
            output(unsent[:-MARK_BYTES])
            unsent = unsent[-MARK_BYTES:]
        output(unsent)
        return None
