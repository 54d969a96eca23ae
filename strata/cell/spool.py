"""Cells that were measured together with another one: they wait in results/spool until they are asked for.

Which cells are due is told by files alone: one that has no log in its place and none that waits, or whose record has
another fingerprint than the plan.  What was asked for stays until the next cell begins or the run ends: Snakemake
removes the output of a job that a signal meets, and the next run finds it here again.
"""

import contextlib
import os

from strata.base import places
from strata.base.files import move, read_json
from strata.base.shapes import Fields, Plan
from strata.experiment import blocks, plan


def due(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell is still to be measured."""
    return not (is_measured(experiment, cell) or waiting(experiment, cell))


def is_measured(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell has a log in its place, of what the plan says."""
    return os.path.exists(places.cell_path("raw", *cell, "log")) and _fits(experiment, cell, _record("raw", cell))


def waiting(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell's log waits.  What took turns with others waits no longer than the log of whoever measured them
    is in its place: a block is measured as a whole."""
    found = _record("spool", cell)
    if not os.path.exists(places.cell_path("spool", *cell, "log")) or not _fits(experiment, cell, found):
        return False
    together = found.get("together")
    if together is None:
        return True
    first = (together["first"], *cell[1:])
    return os.path.exists(places.cell_path("raw", *first, "log")) and _record("raw", first).get("together") == together


def take(experiment: Plan, cell: blocks.Cell) -> Fields | None:
    """Put a cell that waits in its place, the log last; its record, None where none waits."""
    if not waiting(experiment, cell):
        return None
    record = _record("spool", cell)
    for suffix in ("json", "log"):
        target = places.cell_path("raw", *cell, suffix)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        # Another name for the same file, put in place of the old one.
        sibling = f"{target}.{os.getpid()}.part"
        os.link(places.cell_path("spool", *cell, suffix), sibling)
        move(sibling, target)
    return record


def forget(cell: blocks.Cell) -> None:
    """Remove what waited, once its job is known to have ended well."""
    for suffix in ("log", "json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(places.cell_path("spool", *cell, suffix))


def keep_note(cell: blocks.Cell) -> None:
    """Keep how a cell went that waits: Snakemake removes the note where the cell is asked for."""
    if os.path.exists(places.cell_path("spool", *cell, "log")):
        import shutil

        shutil.copyfile(places.cell_path("logs/cells", *cell, "log"), places.cell_path("spool", *cell, "note"))


def take_note(cell: blocks.Cell) -> None:
    """Put the note of a cell that waited in its place."""
    with contextlib.suppress(FileNotFoundError):
        move(places.cell_path("spool", *cell, "note"), places.cell_path("logs/cells", *cell, "log"))


def _record(kind: str, cell: blocks.Cell) -> Fields:
    return read_json(places.cell_path(kind, *cell, "json")) or {}


def _fits(experiment: Plan, cell: blocks.Cell, record: Fields) -> bool:
    return record.get("fingerprint") == plan.fingerprint(experiment, *cell[:2])
