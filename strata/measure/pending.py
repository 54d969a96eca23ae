"""Cells that are measured: they wait in results/pending until they are asked for, and stay there until the run ends.

Which cells are due is told by files alone: one that has no log in its place and none that waits, or whose record has
another fingerprint than the plan.  One process measures several cells; and of a job that a signal meets Snakemake
removes the output, or runs it again after a kill.  Then it finds its log here.  So after a run that failed it stays,
set aside as `R.log.taken`, until the next run has seen whether somebody removed the log in its place.
"""

import contextlib
import glob
import os
from collections.abc import Iterable

from strata.experiment import blocks, plan
from strata.host import node
from strata.util import paths
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import read_json, sync, write_json

ASIDE = ".taken"


def due(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell is still to be measured."""
    return not (is_measured(experiment, cell) or waiting(experiment, cell))


def is_measured(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell has a log in its place, of what the plan says."""
    return _record("raw", cell).get("fingerprint") == plan.fingerprint(experiment, *cell[:2])


def waiting(experiment: Plan, cell: blocks.Cell) -> bool:
    """Whether a cell's log waits, of this node.  What took turns with others waits no longer than the log of whoever
    measured them is there: a block is measured as a whole, and on one node."""
    found = _record("pending", cell)
    together = found.get("together")
    first = (together["first"], *cell[1:]) if together else cell
    there = any(_record(kind, first).get("together") == together for kind in ("raw", "pending"))
    fits = found.get("fingerprint") == plan.fingerprint(experiment, *cell[:2])
    return there and fits and node.of_record(found) in (None, node.facts()["name"])


def put(cell: blocks.Cell, log: str, record: Fields) -> None:
    """Let a cell wait: the record first and the log last, so that where the log is, all is.  What failed is gone."""
    forget(cell)
    write_json(paths.cell_path("pending", *cell, "json"), record, lasting=True)
    os.replace(log, paths.cell_path("pending", *cell, "log"))
    forget(cell, "failed")


def take(cell: blocks.Cell) -> Fields:
    """Put a cell that waits in its place, the log last; its record.  Raises UserError."""
    for suffix in ("json", "log"):
        source, target = (paths.cell_path(kind, *cell, suffix) for kind in ("pending", "raw"))
        # Another name for the same file, to be put in place of the old one.
        sibling = f"{source}.part"
        try:
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with contextlib.suppress(FileNotFoundError):
                os.unlink(sibling)
            os.link(source, sibling)
            os.replace(sibling, target)
            # Where the target was that file already, nothing was replaced.
            with contextlib.suppress(FileNotFoundError):
                os.unlink(sibling)
            sync(os.path.dirname(target))
        except OSError as error:
            raise UserError(f"{target}: cannot be written: {error.strerror}") from None
    return _record("raw", cell)


def forget(cell: blocks.Cell, kind: str = "pending") -> None:
    """Remove what was taken, or of another kind (:func:`strata.util.paths.cell_path`)."""
    for suffix in ("log", f"log{ASIDE}", "json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(paths.cell_path(kind, *cell, suffix))


def end(experiment: Plan, cells: Iterable[blocks.Cell], good: bool) -> None:
    """Forget what is in its place: whoever removes it there from now on wants it measured again.

    After a run that failed Snakemake may regard some of it as unfinished, and remove it in the next run.
    """
    for cell in cells:
        if _record("pending", cell) and is_measured(experiment, cell):
            log = paths.cell_path("pending", *cell, "log")
            forget(cell) if good else os.replace(log, log + ASIDE)


def begin() -> None:
    """Let what the last run set aside wait again; forget that of which the log was removed since."""
    for aside in glob.glob(f"results/pending/*/*/*{ASIDE}"):
        log = aside.removesuffix(ASIDE)
        if os.path.exists(log.replace("/pending/", "/raw/", 1)):
            os.replace(aside, log)
        else:
            os.unlink(aside)


def _record(kind: str, cell: blocks.Cell) -> Fields:
    """The record of a cell whose log is there; else nothing."""
    there = os.path.exists(paths.cell_path(kind, *cell, "log"))
    return (read_json(paths.cell_path(kind, *cell, "json")) if there else None) or {}
