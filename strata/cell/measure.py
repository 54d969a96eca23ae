"""Measure a cell, and with it the others of its block or of its machine's round that are due: one process, after which
nothing of them is up.

The cells of a block take turns (:class:`Turns`): what disturbs a machine for a moment meets them all alike, and a
system that is up serves for many runs.  Machines, which have a clock of their own to serve, are measured alone.

The cell that was asked for goes to results/raw, the others wait in results/spool until they are asked for
(:mod:`strata.cell.spool`).  One that fails is given up, and measured by itself once it is asked for.
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
from strata.base.files import read_json, write_json
from strata.base.process import alive
from strata.base.shapes import Plan
from strata.base.signals import Interrupted
from strata.cell import quiet, record, spool
from strata.cell.cell import Cell
from strata.experiment import plan
from strata.host import observe
from strata.image import cache
from strata.system import testbed

# How much of the memory stays free beside systems that are up together.
MEMORY_KEPT = 0.1


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is then in
    results/failed, and results/raw is as it was.
    """
    signals.heed()
    run.end_with_it()
    experiment = plan.read()
    _check_name(experiment, environment, workload)
    cell = Cell(experiment, environment, workload, repetition)
    if cell.key not in cell.order.places:
        raise UserError(f"{places.PLAN}: {cell.order.missing(*cell.key)}")
    try:
        with testbed.exclusive():
            if not _was_measured(cell) and not _was_waiting(cell):
                _provide(experiment, environment)
                _measure(cell)
            owner = run.owner()
            if owner["pid"] == os.getpid():
                spool.forget(cell.key)
            else:
                write_json(places.LAST, {"cell": list(cell.key), "owner": owner})
    except Interrupted as asked:
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def _check_name(experiment: Plan, environment: str, workload: str) -> None:
    for kind, name, there in (
        ("environment", environment, [*experiment["environments"]]),
        ("workload", workload, [*experiment["workloads"]]),
    ):
        if name not in there:
            raise UserError(f"{places.PLAN}: there is no {kind} '{name}'; there are {', '.join(there)}")
    entry = experiment["environments"][environment]
    if not entry["available"]:
        raise UserError(f"environment '{environment}' is not available here: {entry['reason']}")


def _was_measured(cell: Cell) -> bool:
    """Whether the cell was the last of a run that was ended, of which Snakemake may not have noted that it is good."""
    last = read_json(places.LAST) or {}
    killed = last.get("cell") == list(cell.key) and isinstance(last.get("owner"), dict) and not alive(last["owner"])
    if last and not killed:
        spool.forget(last["cell"])
    if not killed or not spool.is_measured(cell.plan, cell.key):
        return False
    record.note(cell, "measured as the run before this one was ended")
    progress.say("cell", f"{cell.name} was being measured when the previous run was killed")
    return True


def _was_waiting(cell: Cell) -> bool:
    """Put the cell in its place if it was measured before with another one; whether it was."""
    waited = spool.take(cell.plan, cell.key)
    if waited is not None:
        # How it went was noted then.
        spool.take_note(cell.key)
        progress.done(cell.name, waited["seconds"], not cell.order.decided)
    return waited is not None


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
    """Measure it, and those of its unit that are due."""
    due = [key for key in cell.order.unit(*cell.key) if key != cell.key and spool.due(cell.plan, key)]
    others = [Cell(cell.plan, *key, cell.order) for key in due]
    if cell.sharing != [cell.workload]:
        _in_one_system([cell, *others])
    elif cell.laps > 1 and cell.stands_idle:
        _run(cell, [other for other in others if other.stands_idle])
    else:
        _run(cell)


def _in_one_system(cells: Sequence[Cell]) -> None:
    """Measure cells one after the other in one system, which goes with the last; each is kept as it ends."""
    first, system = cells[0], None
    for cell in cells:
        try:
            system = _run(cell, kind="spool", system=system, last=cell is cells[-1])
        except CellFailed as failure:
            if cell is first:
                raise
            if isinstance(failure.__cause__, Interrupted):
                break
            # Its own job measures it again, and says what is wrong if that stays so; those after it get a fresh system.
            progress.say("cell", f"{cell.name} failed beside {first.name} and is measured again alone: {failure}")
            system = None
    spool.take(first.plan, first.key)


def _run(
    cell: Cell,
    mates: Sequence[Cell] = (),
    kind: str = "raw",
    system: testbed.System | None = None,
    last: bool = True,
) -> testbed.System | None:
    """Measure, in turns with `mates`; whatever goes wrong, nothing of it stays up and nothing looks complete.

    kind: where log and record go.  system: in which it is measured, if not in a fresh one, and returned where another
    cell may use it, unless this is the `last`.
    """
    beside = f", in turns with {', '.join(mate.environment for mate in mates)}" if mates else ""
    progress.announce(cell.name + beside)
    try:
        try:
            left = Turns(cell, mates).measure(kind, system)
        except Unable:
            if not mates or not cell.entry.get("doubtful"):
                raise
            # What a system cannot do, it is to show alone.
            left = Turns(cell).measure(kind)
    except BaseException as error:
        raise record.give_up(cell, error) from error
    record.tell(cell, left)
    progress.done(cell.name, cell.known["seconds"], not cell.order.decided)
    if left or last or "cannot" in cell.known:
        try:
            testbed.take_down()
        except (UserError, OSError) as trouble:
            progress.say("testbed", f"{trouble}; whoever measures next tries again")
        return None
    cell.system.cells += 1
    return cell.system


class Turns:
    """Cells that are measured at the same time, mostly one alone: each takes its run once in every lap.

    Within a lap they come one right after the other, in random order.  `spent`: those that still take part, and how
    many seconds each has used for itself.
    """

    def __init__(self, first: Cell, others: Sequence[Cell] = ()) -> None:
        self.first = first
        self.spent = dict.fromkeys([first, *others], 0.0)
        self.lookout = quiet.Lookout(first.plan["quiet"], plan.daemons(first.plan))

    def measure(self, kind: str = "raw", system: testbed.System | None = None) -> list[str]:
        """Measure them, and put them in their places: the first, whose system alone stays up, into `kind`.

        system: that of the first, where it is up.  Returns the command lines of what the first left running.

        Raises what goes wrong with the first, and CellFailed where one of them was at work beside the others.  With
        which of the others anything else goes wrong, that one is given up.
        """
        watch = time.monotonic()
        self.lookout.begin()
        if system is None or len(system.tops) != self.first.systems:
            system = None
            testbed.take_down()
        self._each(record.begin)
        wanted = self.first.client
        link = system.link if system else testbed.Link(wanted, self.first.image) if wanted else None
        for number, cell in enumerate(list(self.spent)):
            self._each(Cell.bring_up, link, system, number, order=[cell])
        self._prepare()
        self.lookout.ready()
        for lap in range(1, self.first.laps + 1):
            self._each(Cell.run, lap, len(self.spent) > 1, order=self._shuffled(lap))
        self._each(Cell.finish)
        working = [cell.entry["daemons"] for cell in self.spent]
        commands = [cell.known["commands"] for cell in self.spent]
        self.lookout.end({name for daemons in working for name in daemons}, commands)
        left = self._left()
        self._each(Cell.check)
        for cell in list(self.spent):
            if cell is not self.first:
                self._each(Cell.take_down, order=[cell])
        self._complete(time.monotonic() - watch)
        for cell in self.spent:
            if cell is not self.first:
                record.put_in_place(cell, "spool")
        record.put_in_place(self.first, kind)
        return left

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
        cell.take_down()

    def _left(self) -> list[str]:
        """What the first left running.  Raises CellFailed where one did so beside others: it disturbed their laps."""
        for cell in self.spent:
            left = [] if "cannot" in cell.known else cell.system.left()
            if left and len(self.spent) > 1:
                raise CellFailed(
                    f"{cell.name} left running while others of its block were measured: {', '.join(left)}; set laps to "
                    "1 for a workload that does not end by itself"
                )
        return left

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
            record.end(cell, own + shared)
