"""What becomes of a cell: its record, made once of what is known of it, and log and record in their place.

Standard library only, for it is loaded by every cell; :mod:`strata.results.judge` says whether a record is good.
"""

from __future__ import annotations

import contextlib
import os
import sys

from strata.base import patience, places, progress, run, signals
from strata.base.clock import Watch
from strata.base.errors import CellFailed, UserError
from strata.base.files import move, read_json, write_json
from strata.base.signals import Interrupted
from strata.cell import spool
from strata.experiment import plan
from strata.host import node
from strata.layers.common.layer import TYPE_CHECKING
from strata.system import testbed

if TYPE_CHECKING:
    from strata.cell.cell import Cell

FORMAT = 4
COUNTER = "results/raw/.measured"


def begin(cell: Cell) -> None:
    """Begin a cell's record, and to count its time."""
    cell.watch = Watch()
    cell.known = {
        "format": FORMAT,
        "environment": cell.environment,
        "workload": cell.workload,
        "repetition": cell.repetition,
        "round": cell.order.places[cell.key][1],
        "fingerprint": plan.fingerprint(cell.plan, cell.environment, cell.workload),
        "node": node.facts(),
        "started": cell.watch.begun(),
        "scale": plan.scale(cell.plan, cell.environment),
        **({"patience": patience.factor()} if patience.factor() > 1 else {}),
        "source": cell.plan["source"],
    }


def end(cell: Cell, seconds: float) -> None:
    """Note when it ended, how long it took, and its place in the order of measurement."""
    own = cell.known["node"]["name"] if cell.plan.get("spread") else None
    cell.known |= {"ended": cell.watch.now(), "seconds": round(seconds, 3)}
    cell.known["position"] = {"planned": cell.order.places[cell.key][0], "actual": take_number(own)}


def put_in_place(cell: Cell, kind: str) -> None:
    """The record first and the log last: where the log is, all is.  kind: raw, or spool until it is asked for."""
    write_json(places.cell_path(kind, *cell.key, "json"), cell.known)
    move(cell.draft, places.cell_path(kind, *cell.key, "log"))
    for suffix in ("log", "json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(places.cell_path("failed", *cell.key, suffix))


def tell(cell: Cell, left: list[str]) -> None:
    """Say that a cell is in its place; `left`: command lines of what it left running."""
    if "cannot" in cell.known:
        told = f"cannot be done there: {cell.known['cannot']['reason']}"
    else:
        told = f"measured in {cell.known['seconds']} s" + (f"; it left running: {', '.join(left)}" if left else "")
    note(cell, told)
    if left or "cannot" in cell.known:
        progress.say("cell", f"{cell.name} {told}")


def give_up(cell: Cell, error: BaseException) -> CellFailed:
    """Take what is up down, keep what was printed for the person who looks, and say what to do."""
    signals.ignore()
    try:
        testbed.take_down()
    except (UserError, OSError) as trouble:
        print(f"strata: {trouble}; `python3 -m strata clean` tries again", file=sys.stderr)
    if isinstance(error, Interrupted):
        failure = CellFailed(f"{cell.name} was ended by {error}; nothing of it is kept")
    else:
        reason = str(error) if isinstance(error, (UserError, OSError)) else f"{type(error).__name__}: {error}"
        log = places.cell_path("failed", *cell.key, "log")
        try:
            _keep_traces(cell, log, reason)
        except (OSError, UserError) as trouble:
            log = f"could not be kept: {trouble}"
        again = run.again(places.cell_path("raw", *cell.key, "log"))
        failure = CellFailed(f"cell failed: {cell.name}: {reason}\n  log:   {log}\n  rerun: {again}")
    note(cell, str(failure), error)
    return failure


def _keep_traces(cell: Cell, log: str, reason: str) -> None:
    os.makedirs(os.path.dirname(log), exist_ok=True)
    if os.path.exists(cell.draft):
        move(cell.draft, log)
    else:
        open(log, "w", encoding="utf-8").close()
    known = {"ended": cell.watch.now(), "seconds": round(cell.watch.passed(), 3)} | cell.known
    write_json(places.cell_path("failed", *cell.key, "json"), {**known, "error": reason})


def note(cell: Cell, text: str, error: BaseException | None = None) -> None:
    """Write down how a cell went; an error that nobody foresaw with its traceback."""
    path = places.cell_path("logs/cells", *cell.key, "log")
    if error is not None and not isinstance(error, (UserError, OSError, Interrupted)):
        import traceback

        text += "\n" + "".join(traceback.format_exception(error))
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{cell.watch.now()} {cell.name}: {text}\n")
        spool.keep_note(cell.key)


def take_number(node: str | None = None) -> int:
    """The running number of a measurement in this results folder, or on this `node` of several that measure at once.

    It is counted in a file beside the records; where that is gone or no count, it goes on behind those of all records.
    """
    path = COUNTER if node is None else f"{COUNTER}-{node}"
    counted = (read_json(path) or {}).get("cells")
    number: int = (counted if isinstance(counted, int) else _last_number()) + 1
    write_json(path, {"cells": number})
    return number


def _last_number() -> int:
    """The largest such number in a record."""
    numbers = [0]
    for kind in ("raw", "spool"):
        for folder, _, names in os.walk(f"results/{kind}"):
            records = [read_json(os.path.join(folder, name)) or {} for name in names if name.endswith(".json")]
            numbers += [record["position"]["actual"] for record in records if "position" in record]
    return max(numbers)
