"""Run Snakemake in an experiment's folder, and show on one line how far it is."""

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from strata.util import paths, progress, run, signals
from strata.util.errors import MachineError
from strata.util.process import wait_for_process
from strata.util.signals import Interrupted

# What Snakemake and the cells print, below an experiment's folder.
LOG = "results/logs/measured.log"
# How many of its last lines a message repeats.
_SHOWN = 12
# Lines of a cell that begins or ends, and of a decision.
_CELL = re.compile(r"\[(\d+) of (\d+) done\] (\S+) · \S+ · repetition (\d+)")
_ROUND = re.compile(r"round (\d+): (?:no )?more blocks")
# Lines that a person should see, such as what is built first: TOPIC: TEXT.
_TOPIC = re.compile(r"(image|vm|docker|testbed|setup|waiting|machine)\b.*")
# Seconds within which an interrupted Snakemake has ended with all that it started.
SECONDS_TO_END = 60.0


class ProgressLine:
    """The last line of a terminal, which is written again and again; silent elsewhere."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._width = 0

    def show(self, text: str) -> None:
        """Replace the line."""
        if self._is_shown:
            columns = max(20, os.get_terminal_size(sys.stderr.fileno()).columns)
            text = re.sub(r"[^ -~\u00a0-\uffff]", " ", text)[: columns - 1]
            progress.write_raw(f"\r{text:{self._width}}")
            self._width = len(text)

    def clear(self) -> None:
        """Remove the line."""
        if self._width:
            progress.write_raw(f"\r{'':{self._width}}\r")
            self._width = 0


def run_snakemake(
    folder: str,
    targets: Sequence[str],
    *options: str,
    line: ProgressLine | None = None,
    at_round: Callable[[int], str] = lambda number: "",
) -> bool:
    """Make targets in an experiment's folder, and return whether all were made.

    options: more words for Snakemake.
    line: shows the progress; None: one that is cleared in the end.
    at_round: a function that describes the results after a round, given its number.
    This process sleeps until something is printed, so that nothing disturbs a lap.
    Raises Interrupted after a signal, once Snakemake has ended with all that it started.
    """
    if line is None:
        line = ProgressLine()
        try:
            return run_snakemake(folder, targets, *options, line=line, at_round=at_round)
        finally:
            line.clear()
    os.makedirs(os.path.join(folder, os.path.dirname(LOG)), exist_ok=True)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *options, "--", *targets]
    variables = {**os.environ, "PYTHONPATH": paths.PROJECT}
    for name in (run.OWNER, run.COMMAND):
        # The experiment is a run of its own.
        variables.pop(name, None)
    with open(os.path.join(folder, LOG), "a", encoding="utf-8", errors="replace") as log:
        with signals.delay_signals():
            process = subprocess.Popen(
                command, cwd=folder, env=variables, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                start_new_session=True, preexec_fn=_end_with_parent,
            )  # fmt: skip
        assert process.stdout
        results_so_far = ""
        try:
            for text in process.stdout:
                log.write(text)
                log.flush()
                if match := _ROUND.search(text):
                    results_so_far = at_round(int(match[1]))
                    line.show(results_so_far)
                elif match := _CELL.search(text):
                    line.show(f"block {match[4]}, {match[3]} … {results_so_far}")
                elif _TOPIC.fullmatch(text.strip()):
                    line.show(text.strip())
            return process.wait() == 0
        except Interrupted:
            line.show("ending what runs …")
            _end(process)
            raise
        finally:
            if process.poll() is None:
                _end(process)
            process.stdout.close()


def make_targets(folder: str, targets: Sequence[str], *options: str) -> None:
    """Make targets in an experiment's folder by Snakemake, or raise an error.

    options: more words for Snakemake.
    Raises Interrupted if a signal came, and MachineError with the end of what Snakemake printed if
    a target was not made.
    """
    if not run_snakemake(folder, targets, *options):
        log = os.path.join(folder, LOG)
        with open(log, encoding="utf-8", errors="replace") as file:
            lines = file.read().strip().splitlines()[-_SHOWN:]
        raise MachineError(f"{log}: the measurement did not end well:", *lines)


def _end_with_parent() -> None:
    """Arrange that the kernel ends this process by SIGTERM once its parent was killed."""
    # PR_SET_PDEATHSIG.
    ctypes.CDLL(None).prctl(1, int(signal.SIGTERM))


def _end(process: "subprocess.Popen[str]") -> None:
    """Ask Snakemake and its cells to end, and wait until they have.

    They may ignore SIGINT, as what a shell starts in the background does.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)
        if wait_for_process(process.pid, SECONDS_TO_END):
            break
    process.wait()
