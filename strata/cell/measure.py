"""Measure a cell, and with it the others of its block that are due: one process, after which nothing of them is up.

The cells of a block take turns (:class:`Turns`): what disturbs a machine for a moment meets them all alike, and a
system that is up serves for many runs.  Machines, which have a clock of their own to serve, are measured alone.

What is measured waits in results/spool until it is asked for (:mod:`strata.cell.spool`).  A cell that fails beside the
one that was asked for is given up, and measured by itself once it is asked for.
"""

import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from strata import layers
from strata.base import places, progress, run, signals
from strata.base.errors import CellFailed, Unable, UserError
from strata.base.shapes import Plan
from strata.base.signals import Interrupted
from strata.cell import quiet, record, spool
from strata.cell.cell import Cell
from strata.experiment import blocks, plan
from strata.host import observe
from strata.image import cache
from strata.system import testbed

# How much of the memory stays free beside systems that are up together.
MEMORY_KEPT = 0.1


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell, unless it waits, and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is then in
    results/failed, and results/raw is as it was.
    """
    signals.heed()
    run.end_with_it()
    experiment = plan.read()
    order = blocks.Order(experiment)
    if (environment, workload, repetition) not in order.places:
        raise UserError(f"{places.PLAN}: {order.missing(environment, workload, repetition)}")
    cell = Cell(experiment, environment, workload, repetition, order)
    try:
        with testbed.exclusive():
            if not spool.waiting(experiment, cell.key):
                _provide(experiment, environment)
                _measure(cell)
            record.tell(cell, spool.take(cell.key))
            if run.owner()["pid"] == os.getpid():
                # It belongs to no run, at whose end it would be forgotten.
                spool.forget(cell.key)
    except Interrupted as asked:
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def _provide(experiment: Plan, environment: str) -> None:
    """See that the image is there, and the disk of the environment's machine: in the cache, or built now."""
    forms = layers.forms(name for layer in experiment["environments"][environment]["layers"] for name in layer)
    recipe = experiment["image"]["recipe"]
    missing = bool(forms) and cache.find(recipe) is None
    if "disk" in forms and not missing:
        from strata.vm import disk

        missing = not disk.whole(recipe)
    if missing:
        # With the packages that a cell does without.
        done = subprocess.run([sys.executable, "-m", "strata", "image", "--planned", environment], check=False)
        if done.returncode:
            raise CellFailed(f"the image of {environment} could not be made (see above)")


def _measure(cell: Cell) -> None:
    """Measure a cell, in turns with those of its block that are due.

    Whatever goes wrong, nothing of it stays up and nothing looks complete.
    """
    mates: list[Cell] = []
    if cell.laps > 1 and cell.stands_idle:
        due = [key for key in cell.order.block(*cell.key) if key != cell.key and spool.due(cell.plan, key)]
        mates = [mate for mate in (Cell(cell.plan, *key, cell.order) for key in due) if mate.stands_idle]
    beside = f", in turns with {', '.join(mate.environment for mate in mates)}" if mates else ""
    progress.announce(cell.name + beside)
    try:
        try:
            Turns(cell, mates).measure()
        except Unable:
            if not mates or not cell.entry.get("doubtful"):
                raise
            # What a system cannot do, it is to show alone.
            Turns(cell).measure()
    except BaseException as error:
        raise record.give_up(cell, error) from error


class Turns:
    """Cells that are measured at the same time, mostly one alone: each takes its run once in every lap.

    Within a lap they come one right after the other, in random order.  `spent`: those that still take part, and how
    many seconds each has used for itself.
    """

    def __init__(self, first: Cell, others: Sequence[Cell] = ()) -> None:
        self.first = first
        self.spent = dict.fromkeys([first, *others], 0.0)
        self.lookout = quiet.Lookout(first.plan["quiet"], plan.daemons(first.plan))

    def measure(self) -> None:
        """Measure them, and let them wait.

        Raises what goes wrong with the first.  With which of the others anything goes wrong, that one is given up.
        """
        watch = time.monotonic()
        self.lookout.begin()
        testbed.take_down()
        self._each(record.begin)
        wanted = self.first.client
        link = testbed.Link(wanted, self.first.image) if wanted else None
        for number, cell in enumerate(list(self.spent)):
            self._each(Cell.bring_up, link, number, order=[cell])
        self._prepare()
        self.lookout.ready()
        for lap in range(1, self.first.laps + 1):
            self._each(Cell.run, lap, len(self.spent) > 1, order=self._shuffled(lap))
        self._each(Cell.finish)
        working = [cell.entry["daemons"] for cell in self.spent]
        commands = [cell.known["commands"] for cell in self.spent]
        self.lookout.end({name for daemons in working for name in daemons}, commands)
        self._each(Cell.check)
        try:
            testbed.take_down()
        except (UserError, OSError) as trouble:
            progress.say("testbed", f"{trouble}; whoever measures next tries again")
        self._complete(time.monotonic() - watch)
        # The others count only where the first is.
        for cell in reversed(self.spent):
            record.keep(cell)

    def _prepare(self) -> None:
        """Take the steps before the run; where the memory does not hold all systems, the first goes on alone."""
        aside = len(self.spent) > 1
        before = observe.memory()
        self._each(Cell.prepare, aside, order=[self.first])
        needed = max(0, before - observe.memory()) * (len(self.spent) - 1)
        if aside and needed > observe.memory() - MEMORY_KEPT * before:
            for cell in [cell for cell in self.spent if cell is not self.first]:
                self._give_up(cell, CellFailed(f"the memory does not hold {len(self.spent)} such systems"))
            self.first.known["alone"] = "memory"
        self._each(Cell.prepare, aside, order=[cell for cell in self.spent if cell is not self.first])

    def _shuffled(self, lap: int) -> list[Cell]:
        order = sorted(self.spent, key=lambda cell: cell.environment)
        random.Random(f"{self.first.plan['seed']}/{self.first.workload}/{self.first.repetition}/{lap}").shuffle(order)
        return order

    def _each(self, part: Callable[..., None], *words: object, order: Sequence[Cell] | None = None) -> None:
        """Let each do a part, in this order.  Raises what goes wrong with the first; any other is given up then."""
        for cell in list(self.spent) if order is None else order:
            if "cannot" in cell.known:
                continue
            begun = time.monotonic()
            try:
                part(cell, *words)
            except (CellFailed, UserError, OSError) as trouble:
                if cell is not self.first:
                    self._give_up(cell, trouble)
                    continue
                if len(self.spent) > 1 or not isinstance(trouble, Unable) or not cell.shows_inability(trouble):
                    raise
                cell.note_that_it_cannot(trouble)
            self.spent[cell] += time.monotonic() - begun

    def _give_up(self, cell: Cell, trouble: Exception) -> None:
        del self.spent[cell]
        progress.say("cell", f"{cell.name} no longer takes turns and is measured alone: {trouble}")
        testbed.take_down(cell.environment)

    def _complete(self, seconds: float) -> None:
        """Make the records whole; of so many seconds each has its own, and what was done for all is shared."""
        shared = (seconds - sum(self.spent.values())) / len(self.spent)
        for cell, own in self.spent.items():
            seen = cell.known["observed"]
            cell.known["observed"] = {"inside": seen["inside"], "host": self.lookout.host, "client": seen["client"]}
            cell.known["quiet"] = self.lookout.report
            if len(self.spent) > 1:
                others = sorted(other.environment for other in self.spent if other is not cell)
                first = {"first": self.first.environment, "started": self.first.known["started"]}
                cell.known |= {"interleaved": others, "together": first}
            cell.known |= {"ended": cell.watch.now(), "seconds": round(own + shared, 3)}
