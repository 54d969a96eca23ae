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
from strata.base.files import write_json
from strata.base.shapes import TYPE_CHECKING, Fields
from strata.base.signals import Interrupted
from strata.cell import spool
from strata.experiment import plan
from strata.host import node
from strata.system import testbed

if TYPE_CHECKING:
    from strata.cell.cell import Cell

FORMAT = 5


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
        "started": cell.watch.now(),
        "scale": plan.scale(cell.plan, cell.environment),
        **({"patience": patience.factor()} if patience.factor() > 1 else {}),
        "source": cell.plan["source"],
    }


def keep(cell: Cell) -> None:
    """Let a cell wait until it is asked for: the record first and the log last, so that where the log is, all is."""
    spool.forget(cell.key)
    write_json(places.cell_path("spool", *cell.key, "json"), cell.known)
    os.replace(cell.draft, places.cell_path("spool", *cell.key, "log"))
    for suffix in ("log", "json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(places.cell_path("failed", *cell.key, suffix))


def tell(cell: Cell, known: Fields) -> None:
    """Say that a cell with this record is in its place."""
    told = f"measured in {known['seconds']} s"
    if "cannot" in known:
        told = f"cannot be done there: {known['cannot']['reason']}"
        progress.say("cell", f"{cell.name} {told}")
    note(cell, told)
    progress.done(cell.name, known["seconds"], not cell.order.decided)


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
        os.replace(cell.draft, log)
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
