"""Say how far a run is: cells done of all, what runs now, and about how long the rest will take."""

import contextlib
import sys
import time
from collections.abc import Iterator

from strata.base.files import note_json, read_json
from strata.base.process import alive, identity

PATH = "results/tmp/run.json"


def begin(owner: int, cells: int, more: bool = False) -> None:
    """Note that the workflow of process `owner` is going to measure so many cells, or `more` than those."""
    note_json(PATH, {"owner": identity(owner), "cells": cells, "more": more, "done": 0, "started": None})


def say(topic: str, text: str) -> None:
    """Tell where something long is that is no cell."""
    print(f"{topic}: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def step(topic: str, text: str, every: float = 30.0) -> Iterator[None]:
    """Say what runs that takes long, now and then that it still does, and in the end how long it took."""
    import threading

    begun = time.monotonic()
    over = threading.Event()

    def tell() -> None:
        while not over.wait(every):
            say(topic, f"{text}: {duration(time.monotonic() - begun)} so far …")

    say(topic, f"{text} …")
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
    say(topic, f"{text}: {duration(time.monotonic() - begun)}")


def _current() -> dict | None:
    run = read_json(PATH)
    return run if run and run["cells"] and alive(run["owner"]) else None


def interrupt() -> None:
    """Note that a person ended the cell that runs now: the run is to end with it."""
    run = _current()
    if run:
        note_json(PATH, {**run, "interrupted": True})


def interrupted() -> bool:
    """Whether a cell of the run was ended by a person."""
    run = _current()
    return bool(run and run.get("interrupted"))


def last() -> bool:
    """Whether no other cell of the run comes after the one that runs now."""
    run = _current()
    return bool(run and not run.get("more") and run["done"] + 1 >= run["cells"])


def duration(seconds: float) -> str:
    """Seconds as a person says them."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _count(run: dict | None, ahead: int) -> str:
    """Which cell of how many; repetitions up to a precision may add some that were not foreseen."""
    if run is None:
        return ""
    number = run["done"] + ahead
    return f"[{number}/{max(number, run['cells'])}] "


def announce(name: str) -> None:
    """Say which cell runs now."""
    run = _current()
    if run and run["started"] is None:
        note_json(PATH, {**run, "started": time.time()})
    print(f"{_count(run, 1)}{name} …", file=sys.stderr, flush=True)


def done(name: str, seconds: float) -> None:
    """Say that a cell is done, and how long the rest will take at the pace so far."""
    run = _current()
    if run is None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
        return
    run["done"] += 1
    note_json(PATH, run)
    left = run["cells"] - run["done"]
    rest = (time.time() - run["started"]) / run["done"] * left
    words = f"; {left} to go, about {duration(rest)}" if left > 0 else "; that was the last cell"
    print(f"{_count(run, 0)}{name}: {seconds:.1f} s{words}", file=sys.stderr, flush=True)


def failed() -> None:
    """Count a failed cell, so that the time left stays true."""
    run = _current()
    if run:
        note_json(PATH, {**run, "done": run["done"] + 1})
