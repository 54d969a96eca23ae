"""Say how far a run is: cells done of all, what runs now, and about how long the rest will take."""

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator

from strata.base.files import note_json, read_json
from strata.base.process import alive, identity

PATH = "results/tmp/run.json"
# The cells that the run is going to measure, and those of them that it has ended with since, a line each.
COMING, ENDED = "results/tmp/coming.json", "results/tmp/ended"

Cell = tuple[str, str, int]


# Seconds that this process took so far for what does not recur in the run.
_once = 0.0


def begin(
    owner: int,
    cells: Iterable[Cell],
    turns: Iterable[tuple[str, str]],
    more: bool = False,
    budget: float | None = None,
) -> None:
    """Note that the workflow of process `owner` is going to measure these cells, or `more` than those.

    A cell is (environment, workload, repetition).  turns: for each cell its environment and what it shares with those
    that may use the same system.  budget: seconds after which no more are added.
    """
    cells = list(cells)
    mark = identity(owner)
    run = {"owner": mark, "more": more, "done": 0, "since": None, "took": {}, "up": {}}
    ends = None if budget is None else time.time() + budget
    note_json(PATH, {**run, **_planned(cells, turns), "ends": ends})
    _note_coming(mark, cells)


def _note_coming(owner: dict, cells: Iterable[Cell]) -> None:
    note_json(COMING, {"owner": owner, "cells": list(cells)})
    with contextlib.suppress(FileNotFoundError):
        os.unlink(ENDED)


def coming() -> set[Cell]:
    """The cells that the run is going to measure; none where no run is at work."""
    run, noted = _current(), read_json(COMING) or {}
    if run is None or noted.get("owner") != run["owner"]:
        return set()
    ended = ""
    with contextlib.suppress(FileNotFoundError), open(ENDED) as file:
        ended = file.read()
    over = set(ended.splitlines())
    return {(one, load, number) for one, load, number in noted["cells"] if _line((one, load, number)) not in over}


def _line(cell: Cell) -> str:
    return "/".join(map(str, cell))


def _planned(cells: Iterable[Cell], turns: Iterable[tuple[str, str]]) -> dict:
    """How many cells and systems are to come."""
    coming = list(cells)
    left: dict[str, int] = {}
    ups: dict[str, int] = {}
    for environment, workload, _ in coming:
        key = _key(environment, workload)
        left[key] = left.get(key, 0) + 1
    for environment, _ in set(turns):
        ups[environment] = ups.get(environment, 0) + 1
    return {"cells": len(coming), "left": left, "ups": ups}


def go_on(cells: Iterable[Cell], turns: Iterable[tuple[str, str]], more: bool) -> None:
    """Note which cells are still to come, once more were added, or none."""
    run = _current()
    if run:
        cells = list(cells)
        planned = _planned(cells, turns)
        note_json(PATH, {**run, **planned, "cells": run["done"] + planned["cells"], "more": more})
        _note_coming(run["owner"], cells)


def _key(environment: str, workload: str) -> str:
    return f"{environment}/{workload}"


@contextlib.contextmanager
def once() -> Iterator[None]:
    """What runs within will not recur in this run: the time left is told without it."""
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
    """The run that is noted; None where there is none, it has ended, or what is noted is damaged."""
    run = read_json(PATH)
    return run if run and _is_run(run) and run["cells"] and alive(run["owner"]) else None


def _is_run(run: dict) -> bool:
    """Whether a note has what :func:`begin` writes."""
    owner, since = run.get("owner"), run.get("since", "")
    tables = [run.get(name) for name in ("left", "ups", "took", "up")]
    if not (isinstance(owner, dict) and _is_number(owner.get("pid"), int) and isinstance(owner.get("start"), str)):
        return False
    if not all(isinstance(table, dict) for table in tables) or not (since is None or _is_number(since)):
        return False
    left, ups, took, up = (list(table.values()) for table in tables if table is not None)
    counts = [run.get("cells"), run.get("done"), *left, *ups]
    return all(_is_number(count, int) for count in counts) and all(
        isinstance(pair, list) and len(pair) == 2 and _is_number(pair[0], int) and pair[0] > 0 and _is_number(pair[1])
        for pair in (*took, *up)
    )


def _is_number(value: object, kind: type | tuple[type, ...] = (int, float)) -> bool:
    """Whether a value is a number from 0 up to where whole ones are exact; infinity and what is none are not."""
    return isinstance(value, kind) and not isinstance(value, bool) and 0 <= value < 2**53  # type: ignore[operator]


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
    if run and run["since"] is None:
        note_json(PATH, {**run, "since": time.time()})
    print(f"{_count(run, 1)}{name} …", file=sys.stderr, flush=True)


def _end(run: dict, cell: Cell) -> float:
    """Take a cell from those that are left; the seconds since the one before it ended."""
    now, key = time.time(), _key(*cell[:2])
    with open(ENDED, "a") as file:
        file.write(_line(cell) + "\n")
    passed, run["since"] = now - (run["since"] or now), now
    run["done"] += 1
    run["left"][key] = max(0, run["left"].get(key, 0) - 1)
    return passed


def _learn(known: dict[str, list], name: str, seconds: float) -> None:
    count, total = known.get(name, (0, 0.0))
    known[name] = [count + 1, round(total + max(0.0, seconds), 3)]


def _typical(known: dict[str, list], name: str) -> float:
    """The mean of what is known by this name, else by names of the same workload, else by any."""
    workload = name.partition("/")[2]
    means = {other: total / count for other, (count, total) in known.items()}
    alike = [mean for other, mean in means.items() if other.partition("/")[2] == workload] or list(means.values())
    return means.get(name, sum(alike) / max(1, len(alike)))


def remaining(run: dict) -> float:
    """About how many seconds the rest takes: its cells, and bringing their systems up."""
    return sum(
        count * _typical(run[known], name)
        for planned, known in (("left", "took"), ("ups", "up"))
        for name, count in run[planned].items()
        if count
    )


def done(cell: Cell, name: str, seconds: float, up: float | None = None) -> None:
    """Say that a cell (shown as `name`) is done that took so many seconds, and how long the rest will take.

    `up`: how many of them its system took to come up, where it did not stand already.
    """
    run = _current()
    if run is None:
        print(f"{name}: {seconds:.1f} s", file=sys.stderr, flush=True)
        return
    environment, workload, _ = cell
    passed = _end(run, cell)
    _learn(run["took"], _key(environment, workload), passed - _once - (up or 0.0))
    if up is not None:
        _learn(run["up"], environment, up)
        run["ups"][environment] = max(0, run["ups"].get(environment, 0) - 1)
    note_json(PATH, run)
    left = run["cells"] - run["done"]
    words = f"; {left} to go, about {duration(remaining(run))}" if left > 0 else "; that was the last cell"
    if run.get("more"):
        open_end = _is_number(run.get("ends")) and run["ends"] - time.time() > remaining(run)
        until = f", {duration(run['ends'] - time.time())} at most" if open_end else ""
        words = (words if left > 0 else "; those were all so far") + f", and what is added then{until}"
    print(f"{_count(run, 0)}{name}: {seconds:.1f} s{words}", file=sys.stderr, flush=True)


def failed(cell: Cell) -> None:
    """Count a failed cell, so that the time left stays true."""
    run = _current()
    if run:
        _end(run, cell)
        note_json(PATH, run)
