"""Run Snakemake in an experiment's folder, and show its progress on one line."""

import contextlib
import ctypes
import glob
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence

from strata.util import locks, paths, progress, run, signals
from strata.util.data_types import Fields
from strata.util.errors import MachineError
from strata.util.files import read_json
from strata.util.process import wait_for_process
from strata.util.signals import Interrupted

# What Snakemake and the cells print, below an experiment's folder.
LOG = "results/logs/measured.log"
# How many of the log's last lines a message repeats.
_SHOWN_LINES = 12
# The lines with which Snakemake begins to execute jobs, and to report a rule that failed.
_START = re.compile(r"(?m)^Execute \d+ jobs\.\.\.$")
_REPORT = "\nRuleException:"
# The lines of a cell that begins or ends (util/progress.py), and of a decision
# (results/decide.py).  The groups of a cell: done, planned, environment, repetition.
_CELL = re.compile(r"\[(\d+) of (\d+) done\] (\S+) · \S+ · repetition (\d+)")
_ROUND = re.compile(r"round (\d+): (?:no )?more blocks")
# Lines that a person should see, for example that an image is built: TOPIC: TEXT.
_TOPIC = re.compile(r"(image|vm|docker|testbed|setup|waiting|machine)\b.*")
# Seconds within which an interrupted Snakemake has ended with all that it started.
SECONDS_TO_END = 60.0


class ProgressLine:
    """Show a line that changes at the end of a terminal, and messages above it.

    Without a terminal only the messages are written.
    """

    def __init__(self) -> None:
        """Find out whether standard error is a terminal."""
        self._is_shown = sys.stderr.isatty()
        self._width = 0
        # The beginnings of the messages that were printed.
        self._printed: set[str] = set()

    def show(self, text: str) -> None:
        """Show a text as the progress line, cut at the terminal's width, in place of the last."""
        if self._is_shown:
            # A terminal may report no columns.
            columns = max(20, os.get_terminal_size(sys.stderr.fileno()).columns)
            # Control characters would move the cursor or change the terminal.
            text = re.sub(r"[^ -~\u00a0-\uffff]", " ", text)[: columns - 1]
            progress.write_raw_text(f"\r{text:{self._width}}")
            self._width = len(text)

    def print_once(self, text: str) -> None:
        """Print a message above the line, unless an equal one was printed before.

        Messages are equal if they agree up to " (": what follows may be a changing detail.
        """
        beginning, _, _ = text.partition(" (")
        if beginning not in self._printed:
            self._printed.add(beginning)
            self.clear()
            progress.print_message(f"strata: {text}")

    def clear(self) -> None:
        """Remove the progress line from the terminal."""
        if self._width:
            progress.write_raw_text(f"\r{'':{self._width}}\r")
            self._width = 0


def run_snakemake(
    folder: str,
    targets: Sequence[str],
    *options: str,
    line: ProgressLine,
    describe_round: Callable[[int], str] = lambda number: "",
) -> bool:
    """Make targets in an experiment's folder with Snakemake, and return whether all were made.

    folder: the path of the experiment's folder.
    targets: the files or rules that Snakemake makes.
    options: further options of Snakemake.
    line: the line that shows the progress; the caller clears it.
    describe_round: a function that takes the number of a round, and returns a description of the
    results after it.
    The output of Snakemake is appended to :data:`LOG`.  If a cell waits for a lock, this is
    printed.
    This process sleeps until Snakemake prints something, so that it does not disturb a lap.
    Raises Interrupted after a signal, once Snakemake has ended with all that it started.
    """
    os.makedirs(os.path.join(folder, os.path.dirname(LOG)), exist_ok=True)
    with open(os.path.join(folder, LOG), "a", encoding="utf-8", errors="replace") as log:
        process = _start_snakemake(folder, [*options, "--", *targets])
        assert process.stdout
        results_so_far = ""
        try:
            for text in process.stdout:
                log.write(text)
                log.flush()
                if match := _ROUND.search(text):
                    results_so_far = describe_round(int(match[1]))
                    line.show(results_so_far)
                elif match := _CELL.search(text):
                    line.show(f"block {match[4]}, {match[3]} … {results_so_far}")
                elif _TOPIC.fullmatch(text.strip()):
                    message = text.strip()
                    # A wait for another process may be long, and nothing else would say why.
                    if message.endswith(locks.WAITING):
                        line.print_once(message)
                    line.show(message)
            return process.wait() == 0
        except Interrupted:
            line.show("ending what runs …")
            _end_snakemake(process)
            raise
        finally:
            if process.poll() is None:
                _end_snakemake(process)
            process.stdout.close()


def make_targets(folder: str, targets: Sequence[str], *options: str) -> None:
    """Make targets in an experiment's folder with Snakemake, or raise an error.

    folder: the path of the experiment's folder.
    targets: the files or rules that Snakemake makes.
    options: further options of Snakemake.
    Raises Interrupted if a signal came, and MachineError with the end of what Snakemake printed if
    a target was not made.
    """
    line = ProgressLine()
    try:
        if run_snakemake(folder, targets, *options, line=line):
            return
    except Interrupted:
        line.clear()
        progress.print_message("strata: ended early; the same command goes on where it ended")
        raise
    finally:
        line.clear()
    log = os.path.join(folder, LOG)
    raise MachineError(f"{log}: the measurement did not end well:", *read_last_log_lines(folder))


def read_last_log_lines(folder: str) -> list[str]:
    """Return the last lines that the cells of an experiment, or Snakemake, printed.

    If a cell failed, these are the lines before Snakemake's report of the failure, which the cell
    printed.
    """
    with open(os.path.join(folder, LOG), encoding="utf-8", errors="replace") as file:
        text = file.read()
    before_report, report, _ = text.rpartition(_REPORT)
    printed = _START.split(before_report if report else text)[-1]
    return printed.strip().splitlines()[-_SHOWN_LINES:]


def list_pairs_of_cells(folder: str, kind: str, since: float = 0.0) -> set[tuple[str, str]]:
    """Return the (environment, workload) pairs of an experiment's measured or failed cells.

    folder: the path of the experiment's folder.
    kind: "raw" for measured cells, "failed" for failed ones; these are folders in results.  A pair
    may have cells of both kinds.
    since: a timestamp in seconds of time.time().  Cells whose records were written before do not
    count.
    """
    pattern = os.path.join(glob.escape(folder), "results", kind, "*/*/*.json")
    pairs = set()
    for path in glob.glob(pattern):
        if os.path.getmtime(path) >= since:
            environment, workload, _ = path.split(os.sep)[-3:]
            pairs.add((environment, workload))
    return pairs


def read_records(results: str) -> list[Fields]:
    """Return the records of all measured cells in a folder of results, sorted by their paths.

    Files that are not valid JSON are skipped without a message.
    """
    pattern = os.path.join(glob.escape(results), "raw/*/*/*.json")
    records = [read_json(path) for path in sorted(glob.glob(pattern))]
    return [record for record in records if record]


def _start_snakemake(folder: str, arguments: Sequence[str]) -> "subprocess.Popen[str]":
    """Start Snakemake in an experiment's folder, as the leader of its own process group.

    folder: the path of the experiment's folder.
    arguments: Snakemake's options and targets.
    Output and errors come through one pipe, `stdout` of the result, which the caller closes.
    If this process is killed, the kernel sends Snakemake SIGTERM.
    """
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    variables = {**os.environ, "PYTHONPATH": paths.PROJECT}
    for name in (run.OWNER, run.COMMAND):
        # The experiment is a separate run; its Snakemake sets these variables (util/run.py).
        variables.pop(name, None)
    # Otherwise a signal could end this function before the caller has the process that it must end.
    with signals.delay_signals():
        return subprocess.Popen(
            command, cwd=folder, env=variables, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            start_new_session=True, preexec_fn=_end_with_parent,
        )  # fmt: skip


def _end_with_parent() -> None:
    """Let the kernel end this process by SIGTERM if its parent is killed."""
    # PR_SET_PDEATHSIG of prctl(2).
    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, int(signal.SIGTERM))


def _end_snakemake(process: "subprocess.Popen[str]") -> None:
    """Ask Snakemake and its cells to end, and wait until they have ended.

    process: as from :func:`_start_snakemake`; it may have ended.
    The process group gets SIGTERM, and SIGKILL after SECONDS_TO_END.  SIGINT would not suffice:
    programs that a shell started in the background ignore it.
    """
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        # The group may have ended, or its only process left may be a program of root.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal_number)
        if wait_for_process(process.pid, SECONDS_TO_END):
            break
    process.wait()
