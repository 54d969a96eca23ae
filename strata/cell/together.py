"""Cells of one set that are measured in turns: each takes its run once in every lap, one right after the other.

What disturbs a machine for a moment so meets them all alike, and a system that is up serves for many runs.  The systems
of all of them are up meanwhile, and all but one stand idle: those that use nothing of the host then.  Machines, which
have a clock of their own to serve, are measured alone.

The first cell of a set that is asked for measures those that are due, and leaves their logs and records in
results/spool (:mod:`strata.cell.spool`).  One that fails is given up, and measured by itself once it is asked for.
"""

import random
import time
from collections.abc import Callable, Sequence
from functools import partial

from strata.base import progress
from strata.base.errors import CellFailed, UserError
from strata.cell.cell import Cell, stands_idle
from strata.cell.surroundings import Surroundings
from strata.experiment import sets
from strata.system import testbed


def words(mates: Sequence[Cell]) -> str:
    """With whom a cell takes turns, behind its name."""
    return f", in turns with {', '.join(mate.environment for mate in mates)}" if mates else ""


def mates(cell: Cell, others: Sequence[sets.Cell]) -> list[Cell]:
    """Those of the other cells of its set that can be measured in turns with it."""
    if cell.laps == 1 or not stands_idle(cell.plan, cell.environment):
        return []
    return [Cell(cell.plan, *key, cell.order) for key in others if stands_idle(cell.plan, key[0])]


def measure(first: Cell, others: Sequence[Cell]) -> testbed.System:
    """Measure cells in turns; the system of the `first`, which alone is up in the end.

    Raises what goes wrong with the first, and CellFailed where one of them was at work beside the others.  With which
    of the others anything else goes wrong, that one is given up.
    """
    # Not where a cell that is measured alone would pay for it.
    import copy

    watch = time.monotonic()
    around = Surroundings(first.plan)
    around.begin()
    turns = _Turns(first)
    for cell in (first, *others):
        turns.take(cell, partial(_begin, cell, around, cell is not first))
    around.ready()
    for lap in range(1, first.laps + 1):
        order = sorted(turns.spent, key=lambda cell: cell.environment)
        random.Random(f"{first.plan['seed']}/{first.workload}/{first.repetition}/{lap}").shuffle(order)
        for cell in order:
            turns.take(cell, partial(_lap, cell, lap))
    for cell in list(turns.spent):
        turns.take(cell, cell.check)
    host = around.end([cell.environment for cell in turns.spent], [cell.steps.commands for cell in turns.spent])
    for cell in turns.spent:
        _see_that_it_ended(cell)
    for cell in list(turns.spent):
        if cell is not first:
            turns.take(cell, partial(testbed.take_down, cell.environment))
    shared = (time.monotonic() - watch - sum(turns.spent.values())) / len(turns.spent)
    for cell, seconds in turns.spent.items():
        cell.take_number()
        cell.observe(copy.deepcopy(host), around)
        cell.known["interleaved"] = sorted(other.environment for other in turns.spent if other is not cell)
        cell.known["together"] = {"first": first.environment, "started": first.known["started"]}
        cell.end(seconds + shared)
        if cell is not first:
            cell.put_in_place("spool")
    return first.steps.system


class _Turns:
    """The cells that take turns, and how many seconds each has used for itself."""

    def __init__(self, first: Cell) -> None:
        self.first = first
        self.spent: dict[Cell, float] = {}

    def take(self, cell: Cell, part: Callable[[], object]) -> None:
        """Let a cell do a part.  Raises what goes wrong with the first; any other is given up then."""
        begun = time.monotonic()
        try:
            part()
        except (CellFailed, UserError, OSError) as trouble:
            if cell is self.first:
                raise
            self.spent.pop(cell, None)
            progress.say("cell", f"{cell.name} no longer takes turns and is measured alone: {trouble}")
            testbed.take_down(cell.environment)
            return
        self.spent[cell] = self.spent.get(cell, 0.0) + time.monotonic() - begun


def _begin(cell: Cell, around: Surroundings, beside: bool) -> None:
    cell.start()
    cell.begin(around, beside)
    with cell.at_work():
        cell.steps.begin()


def _lap(cell: Cell, lap: int) -> None:
    with cell.at_work():
        cell.steps.lap(lap)


def _see_that_it_ended(cell: Cell) -> None:
    """Raise CellFailed where a lap left something running: it was at work while the others were measured."""
    if left := cell.steps.system.left():
        lines = ", ".join(sorted(set(left)))
        raise CellFailed(
            f"{cell.name} left running while others of its block were measured: {lines}; set laps to 1 for a workload "
            "that does not end by itself"
        )
