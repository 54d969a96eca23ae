"""Measure a cell, and with it the others of its block that are due: one process, after which nothing of them is up.

The cells of a block take turns (:class:`Block`): what disturbs a machine for a moment meets them all alike, and a
system that is up serves for many runs.  Machines, which have a clock of their own to serve, are measured alone.

Results of the others are pending until Snakemake asks for them (:mod:`strata.measure.pending`).
Among these a cell that fails is given up, and is measured by itself once it is asked for.
"""

import contextlib
import math
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from strata.environments.common import registry
from strata.experiment import blocks, plan
from strata.host import observe, starting_state
from strata.image import cache
from strata.measure import interference, pending
from strata.measure.cell import Cell
from strata.testbed import lifecycle
from strata.util import paths, progress, run, signals
from strata.util.data_types import Fields, Plan
from strata.util.errors import CellFailed, Unable, UserError
from strata.util.files import write_json, write_text
from strata.util.signals import Interrupted
from strata.util.units import numbers

# How much of the memory stays free beside systems that are up together.
MEMORY_KEPT = 0.1
# Bytes of freed memory that a hypervisor takes back at once, so that the next workload need not wait.
SETTLED = 2**30


def measure(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell, unless it waits, and put its log and record into results/raw.

    Raises CellFailed, with the log, the reason and the command that reruns it; the output so far is then in
    results/failed, and results/raw is as it was.
    """
    signals.heed()
    run.end_with_it()
    experiment = plan.read()
    order, key = blocks.Order(experiment), (environment, workload, repetition)
    if key not in order.places:
        raise UserError(f"{paths.PLAN}: {order.missing(*key)}")
    cell = Cell(experiment, key, order)
    # The lowest layer is the host's.
    for kind in cell.layers[:1]:
        if reason := registry.kind(kind).barred():
            raise CellFailed(f"{cell.name} cannot be measured: {reason}")
    starting_state.declare(processors(experiment))
    try:
        with lifecycle.exclusive():
            if not pending.is_pending(experiment, key):
                _provide(cell)
                _measure(cell)
            _tell(cell, pending.put_in_place(key))
            if run.owner()["pid"] == os.getpid():
                # It belongs to no run, at whose end it would be forgotten.
                pending.remove("pending", key)
    except Interrupted as asked:
        raise CellFailed(f"{cell.name} was ended by {asked} before it began") from None


def processors(experiment: Plan) -> set[int]:
    """Those on which a plan's cells are measured: of a node of several the ones that its job has."""
    mask = experiment["machine"]["mask"]
    own = starting_state.online() if mask is None else set(numbers(mask))
    return os.sched_getaffinity(0) if experiment.get("spread") else own


def _provide(cell: Cell) -> None:
    """See that the image is there, and the disk of the environment's machine: in the cache, or built now."""
    forms, recipe = registry.forms(cell.layers), cell.plan["image"]["recipe"]
    missing = bool(forms) and cache.find(recipe) is None
    if "disk" in forms and not missing:
        from strata.vm import vagrant_box

        missing = not vagrant_box.whole(recipe)
    if missing:
        # With the packages that a cell does without.
        done = subprocess.run(
            [sys.executable, "-m", "strata", "image", "--planned", cell.environment], check=False
        )
        if done.returncode:
            raise CellFailed(f"the image of {cell.environment} could not be made (see above)")


def _measure(cell: Cell) -> None:
    """Measure a cell, in turns with those of its block that are due.

    Whatever goes wrong, nothing of it stays up and nothing looks complete.
    """
    mates: list[Cell] = []
    if cell.is_interleaved:
        due = [
            key
            for key in cell.order.block(*cell.key)
            if key != cell.key and pending.due(cell.plan, key)
        ]
        mates = [
            mate
            for mate in (Cell(cell.plan, key, cell.order) for key in due)
            if mate.is_interleaved
        ]
    beside = f", interleaved with {', '.join(mate.environment for mate in mates)}" if mates else ""
    progress.announce(cell.name + beside)
    try:
        try:
            Block(cell, mates).measure()
        except Unable:
            if not mates or not cell.entry.get("doubtful"):
                raise
            # What a system cannot do, it is to show alone.
            Block(cell).measure()
    except BaseException as error:
        raise _give_up(cell, error) from error


def _give_up(cell: Cell, error: BaseException) -> CellFailed:
    """Take what is up down, keep what was printed for the person who looks, and say what to do."""
    signals.ignore()
    _take_down()
    if isinstance(error, Interrupted):
        failure = CellFailed(f"{cell.name} was ended by {error}; nothing of it is kept")
        _note(cell, str(failure))
        return failure
    foreseen = isinstance(error, (UserError, OSError))
    reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
    log = paths.cell_path("failed", *cell.key, "log")
    known = {"ended": cell.watch.now(), "seconds": round(cell.watch.passed(), 3)} | cell.known
    try:
        write_json(paths.cell_path("failed", *cell.key, "json"), {**known, "error": reason})
        # It may have failed before it had a log.
        write_text(log, "")
        if os.path.exists(cell.draft):
            pending.move_file(cell.draft, log)
    except (OSError, UserError) as trouble:
        log = f"could not be kept: {trouble}"
    again = run.again(paths.cell_path("raw", *cell.key, "log"))
    failure = CellFailed(f"cell failed: {cell.name}: {reason}\n  log:   {log}\n  rerun: {again}")
    _note(cell, str(failure), None if foreseen else error)
    return failure


def _take_down() -> None:
    """Take down what is up, as far as that can be done now."""
    try:
        lifecycle.take_down()
    except (UserError, OSError) as trouble:
        progress.say(
            "testbed",
            f"{trouble}; whoever measures next tries again, and so does `python3 -m strata clean`",
        )


def _tell(cell: Cell, known: Fields) -> None:
    """Say that a cell with this record is in its place."""
    told = f"measured in {known['seconds']} s"
    if "cannot" in known:
        told = f"cannot be done there: {known['cannot']['reason']}"
        progress.say("cell", f"{cell.name} {told}")
    _note(cell, told)
    progress.done(cell.name, known["seconds"], not cell.order.decided)


def _note(cell: Cell, text: str, error: BaseException | None = None) -> None:
    """Write down how a cell went; an error that nobody foresaw with its traceback."""
    if error is not None:
        import traceback

        text += "\n" + "".join(traceback.format_exception(error))
    with contextlib.suppress(UserError):
        write_text(
            paths.cell_path("logs/cells", *cell.key, "log"),
            f"{cell.watch.now()} {cell.name}: {text}\n",
        )


def _freed_before(cell: Cell) -> int:
    """How many bytes of memory the cell before this one has freed, where it is of another workload."""
    cells = cell.order.cells()
    environment, name, _ = cells[max(0, cells.index(cell.key) - 1)]
    if name == cell.workload:
        return 0
    freed = plan.of_environment(cell.plan, environment, name)
    return freed.get("memory_bytes", 0) * plan.systems(freed)


class Block:
    """Cells that are measured at the same time, mostly one alone: each takes its run once in every lap.

    Within a lap they come one right after the other, in random order.  `spent`: those that still take part, and how
    many seconds each has used for itself.
    """

    def __init__(self, first: Cell, others: Sequence[Cell] = ()) -> None:
        self.first = first
        self.spent = dict.fromkeys([first, *others], 0.0)

    def measure(self) -> None:
        """Measure them, and let them wait.

        Raises what goes wrong with the first.  With which of the others anything goes wrong, that one is given up.
        """
        begun, first = time.monotonic(), self.first
        if _freed_before(first) > SETTLED:
            interference.settle(first.plan["quiet"]["thresholds"]["steal"])
        lookout = interference.Lookout(first.plan["quiet"])
        lifecycle.take_down()
        self._each(Cell.begin)
        link = (
            lifecycle.Link(first.plan["client"], first.image, first.mask)
            if plan.uses_client(first.work["cell"])
            else None
        )
        for number, cell in enumerate(list(self.spent)):
            self._each(Cell.bring_up, link, number, order=[cell])
        self._prepare()
        lookout.ready(plan.daemons(first.plan))
        for lap in range(1, first.laps + 1):
            if first.slice and len(self.spent) > 1:
                self._run_at_once(lap, first.slice)
            else:
                self._each(Cell.run, lap, order=self._shuffled(lap))
        self._each(Cell.finish)
        daemons = {name for cell in self.spent for name in cell.entry["daemons"]}
        lookout.end(daemons, [cell.known["commands"] for cell in self.spent])
        self._each(Cell.check)
        _take_down()
        self._complete(time.monotonic() - begun, lookout)
        # The others count only where the first is.
        for cell in reversed(self.spent):
            pending.store(cell.key, cell.draft, cell.known)

    def _prepare(self) -> None:
        """Take the steps before the run; where the memory does not hold all systems, the first goes on alone."""
        first, *others = self.spent
        before = observe.memory()
        self._each(Cell.prepare, order=[first])
        left = observe.memory()
        # Where the kernel does not say what is left, they go on together.
        needed, room = 0.0, math.inf
        if before is not None and left is not None:
            needed, room = max(0, before - left) * len(others), left - MEMORY_KEPT * before
        if first.slice:
            # Runs that go on together hold it at the same time.
            needed += first.work.get("memory_bytes", 0) * first.systems * len(self.spent)
        if others and needed > room:
            for cell in others:
                self._dismiss(
                    cell, CellFailed(f"the memory does not hold {len(self.spent)} such systems")
                )
            first.known["alone"] = "memory"
        else:
            self._each(Cell.prepare, order=others)

    def _run_at_once(self, lap: int, seconds: float) -> None:
        """Let the runs of a lap go on together: one of them for so many seconds, while the others are frozen.

        Those that have not ended have a turn each, in an order drawn anew, until all have.
        """
        from concurrent.futures import ThreadPoolExecutor

        threads, number = ThreadPoolExecutor(len(self.spent)), 0
        self._each(Cell.begin_run, lap, threads)
        threads.shutdown(wait=False)
        while left := [cell for cell in self._shuffled(lap, number) if cell.running]:
            self._each(Cell.go_on, seconds, order=left)
            number += 1

    def _shuffled(self, *numbers: int) -> list[Cell]:
        order = sorted(self.spent, key=lambda cell: cell.environment)
        _, workload, repetition = self.first.key
        random.Random(
            "/".join(map(str, [self.first.plan["seed"], workload, repetition, *numbers]))
        ).shuffle(order)
        return order

    def _each(
        self, part: Callable[..., None], *words: object, order: Sequence[Cell] | None = None
    ) -> None:
        """Let each do a part, in this order, and then stand aside where it is for others to use the machine.

        Raises what goes wrong with the first; any other is given up then.
        """
        for cell in list(self.spent) if order is None else order:
            if "cannot" in cell.known:
                continue
            begun = time.monotonic()
            try:
                part(cell, *words)
                if part in (Cell.prepare, Cell.run) and len(self.spent) > 1:
                    cell.stand_aside()
            except (CellFailed, UserError, OSError) as trouble:
                if cell is not self.first:
                    self._dismiss(cell, trouble)
                    continue
                if (
                    len(self.spent) > 1
                    or not isinstance(trouble, Unable)
                    or not cell.shows_inability(trouble)
                ):
                    raise
                cell.note_that_it_cannot(trouble)
            self.spent[cell] += time.monotonic() - begun

    def _dismiss(self, cell: Cell, trouble: Exception) -> None:
        del self.spent[cell]
        progress.say(
            "cell", f"{cell.name} is no longer interleaved and is measured alone: {trouble}"
        )
        lifecycle.take_down(cell.environment)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(cell.draft)

    def _complete(self, seconds: float, lookout: interference.Lookout) -> None:
        """Make the records whole; of so many seconds each has its own, and what was done for all is shared."""
        shared = (seconds - sum(self.spent.values())) / len(self.spent)
        for cell, own in self.spent.items():
            cell.known["observed"]["host"] = lookout.host
            cell.known["quiet"] = lookout.report
            if len(self.spent) > 1:
                others = sorted(other.environment for other in self.spent if other is not cell)
                first = {"first": self.first.environment, "started": self.first.known["started"]}
                cell.known |= {"interleaved": others, "together": first}
            cell.known |= {"ended": cell.watch.now(), "seconds": round(own + shared, 3)}
