"""Say how far a run is: cells done of all, what runs now, and about how long the rest will take."""

import contextlib
import glob
import os
import sys
import time
from collections.abc import Iterator

from strata.util import paths
from strata.util.errors import UserError, legible
from strata.util.files import read_json, write_json

# When the run began, and how many cells it found measured as the plan says.
PATH = "results/tmp/run.json"

# Seconds that this process took so far for what does not recur in the run.
_once = 0.0


def begin(done: int) -> None:
    """Note that a run begins with so many cells done; those that are measured otherwise than the plan says are none."""
    write_json(PATH, {"begun": time.time(), "done": done})


def count() -> tuple[int, int, float | None]:
    """``(done, planned, seconds)``: how many cells are done, how many are planned so far, and about how long the rest
    takes, by the pace since the run began (None where nothing was done since)."""
    known = read_json(PATH) or {"begun": time.time(), "done": 0}
    with open(paths.CELLS, encoding="utf-8") as file:
        planned = len(file.readlines()) - 1
    new = 0
    # Those of this run are pending until its end.
    for log in glob.glob("results/pending/*/*/*.log"):
        with contextlib.suppress(FileNotFoundError):
            new += os.stat(log).st_mtime >= known["begun"]
    done = min(known["done"] + new, planned)
    return done, planned, (time.time() - known["begun"]) / new * (planned - done) if new else None


@contextlib.contextmanager
def once() -> Iterator[None]:
    """What runs within will not recur in this run: a system's time to come up is told without it."""
    global _once
    before, begun = _once, time.monotonic()
    try:
        yield
    finally:
        # What is once within another once counts but once.
        _once = before + time.monotonic() - begun


def seconds_once() -> float:
    """How many seconds this process took so far for what does not recur."""
    return _once


def printed(text: str) -> None:
    """Print what was asked for, a line on standard output."""
    print(legible(text))


def shown(text: str) -> None:
    """Print a line on standard error, if there is one that takes it: nothing fails for that."""
    with contextlib.suppress(OSError, ValueError):
        print(legible(text), file=sys.stderr, flush=True)


def complain(error: Exception) -> None:
    """Print why something ends: one line with our name before it, or several as they are."""
    several = isinstance(error, UserError) and len(error.args) > 1
    for line in error.args if several else [f"strata: {error or type(error).__name__}"]:
        shown(line)


def say(topic: str, text: str) -> None:
    """Tell where something long is that is no cell."""
    shown(f"{topic}: {text}")


@contextlib.contextmanager
def step(topic: str, text: str) -> Iterator[None]:
    """Say what runs that takes long, and in the end how long it took."""
    begun = time.monotonic()
    say(topic, f"{text} …")
    yield
    say(topic, f"{text}: {duration(time.monotonic() - begun)}")


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def announce(name: str) -> None:
    """Say which cell runs now, and how many are done."""
    done, planned, _ = count()
    shown(f"[{done} of {planned} done] {name} …")


def done(name: str, seconds: float, more: bool = False) -> None:
    """Say that a cell is done that took so many seconds, and how long the rest will take; `more`: of what is planned so
    far, after which more may be."""
    number, planned, rest = count()
    words = f"; {planned - number} to go" if number < planned else ""
    words += f", about {duration(rest)}" if rest and words else ""
    words += "; then it is decided whether more are needed" if more else ""
    shown(f"[{number} of {planned} done] {name}: {seconds:.1f} s{words}")
