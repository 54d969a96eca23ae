"""Messages to the person who runs Strata: lines, errors, and how many cells are done."""

import contextlib
import glob
import os
import sys
import time
from collections.abc import Iterator, Sequence

from strata.util import paths
from strata.util.errors import UserError, escape_control_characters
from strata.util.files import read_json, write_json

# When the run began, and how many cells of the plan had good results before: ``{begun, done}``.
PATH = "results/tmp/run.json"

# Seconds that this process has spent in blocks of `count_one_off_time`.
_one_off_seconds = 0.0


def record_run_start(done_count: int) -> None:
    """Record that a run begins now, in :data:`PATH`, for :func:`estimate_run_progress`.

    Call it once in a run, after the plan is written.  An earlier run's record is overwritten.
    done_count: the number of cells of the plan that have good results already.
    The file's keys are `begun`, in seconds since the epoch, and `done`.
    """
    write_json(PATH, {"begun": time.time(), "done": done_count})


def estimate_run_progress() -> tuple[int, int, float | None]:
    """Return (number of cells done, number of cells planned so far, seconds until the run's end).

    The seconds are estimated by the mean time of a cell since the run began; they are None if no
    cell was measured since.
    If the run's record is missing, the run counts as just begun.  The plan and its list of cells
    must exist; :func:`record_run_start` must have been called.
    """
    run = read_json(PATH) or {"begun": time.time(), "done": 0}
    with open(paths.CELLS, encoding="utf-8") as file:
        # The first line holds the columns' names.
        planned_count = len(file.readlines()) - 1
    measured_count = 0
    # Logs of this run stay in the folder of pending results until it ends.
    for log in glob.glob("results/pending/*/*/*.log"):
        # A log may be moved meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if os.stat(log).st_mtime >= run["begun"]:
                measured_count += 1
    # Cells may be measured again: they are not counted beyond the plan.
    done_count = min(run["done"] + measured_count, planned_count)
    if measured_count == 0:
        return done_count, planned_count, None
    seconds_per_cell = (time.time() - run["begun"]) / measured_count
    return done_count, planned_count, seconds_per_cell * (planned_count - done_count)


@contextlib.contextmanager
def count_one_off_time() -> Iterator[None]:
    """Count the time of a `with` block as time for one-off work of a run, such as loading an image.

    This time is added to :func:`get_one_off_seconds`, and left out of the time that a system takes
    to come up.  A block within another block is not counted twice.
    """
    global _one_off_seconds
    seconds_before_block = _one_off_seconds
    start = time.monotonic()
    try:
        yield
    finally:
        # This replaces the sum of inner blocks, since this block's time includes theirs.
        _one_off_seconds = seconds_before_block + time.monotonic() - start


def get_one_off_seconds() -> float:
    """Return the seconds that this process has spent in blocks of :func:`count_one_off_time`.

    Callers subtract an earlier value from a later one.
    """
    return _one_off_seconds


def print_line(text: str) -> None:
    """Print a line of a command's result on standard output, with control characters escaped.

    Raises OSError if the output is closed or full, which strata/__main__.py handles.
    """
    print(escape_control_characters(text))


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of strings in columns on standard output, without the columns that are empty.

    rows: at least one row; all must have the same length.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=True) if width]
        print_line("  ".join(cells).rstrip())


def print_message(text: str) -> None:
    """Print a message on standard error, with control characters escaped.

    A closed or full standard error is ignored.
    """
    with contextlib.suppress(OSError, ValueError):
        print(escape_control_characters(text), file=sys.stderr, flush=True)


def write_raw_text(text: str) -> None:
    """Write a text on standard error unchanged and without a line break, for a line that changes.

    The caller must have replaced control characters of foreign text.  A closed or full standard
    error is ignored.
    """
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(text)
        sys.stderr.flush()


def print_error(error: Exception) -> None:
    """Print an error on standard error, with control characters escaped.

    The lines of a UserError with several lines are printed without a prefix; any other error gets
    the prefix "strata: ".  An error without a text is named by its type.
    """
    if isinstance(error, UserError) and len(error.args) > 1:
        for line in error.args:
            print_message(line)
    else:
        print_message(f"strata: {error or type(error).__name__}")


def print_topic_message(topic: str, text: str) -> None:
    """Print a message on standard error, with its topic, such as "image", as the prefix.

    strata/experiment/measuring.py passes on the lines of the topics that it lists.
    """
    print_message(f"{topic}: {text}")


@contextlib.contextmanager
def report_step(topic: str, text: str) -> Iterator[None]:
    """Print that a step begins, and after the block how long the step took.

    If the block raises, nothing is printed at its end: the error's message follows.
    topic: the prefix of both messages.
    text: the name of the step.
    """
    start = time.monotonic()
    print_topic_message(topic, f"{text} …")
    yield
    print_topic_message(topic, f"{text}: {format_duration(time.monotonic() - start)}")


def format_duration(seconds: float) -> str:
    """Format a duration as a text such as ``45 s``, ``12 min`` or ``1.5 h``.

    seconds: the duration, not negative.
    The unit is the largest of which the duration has at least 1.5.  Seconds and minutes are rounded
    to whole numbers, hours to one decimal.
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def print_cell_start(name: str) -> None:
    """Print that a cell begins, and how many cells of the run are done.

    name: the cell's environment, workload and repetition, as a phrase.
    The line is, for example, "[3 of 40 done] stream in docker, repetition 2 …".
    strata/experiment/measuring.py parses it, and the line of :func:`print_cell_end`.
    """
    done_count, planned_count, _ = estimate_run_progress()
    print_message(f"[{done_count} of {planned_count} done] {name} …")


def print_cell_end(name: str, seconds: float, may_grow: bool = False) -> None:
    """Print that a cell has ended, how long the cell took, and how long the remaining cells take.

    name: the cell's environment, workload and repetition, as a phrase.
    seconds: the time that the cell took.
    may_grow: whether more cells may be added after those that are planned so far.
    The line is, for example, "[4 of 40 done] NAME: 61.2 s; 36 to go, about 37 min".
    strata/experiment/measuring.py parses it.
    """
    done_count, planned_count, seconds_to_end = estimate_run_progress()
    outlook = ""
    if done_count < planned_count:
        outlook = f"; {planned_count - done_count} to go"
        if seconds_to_end:
            outlook += f", about {format_duration(seconds_to_end)}"
    if may_grow:
        outlook += "; then it is decided whether more are needed"
    print_message(f"[{done_count} of {planned_count} done] {name}: {seconds:.1f} s{outlook}")
