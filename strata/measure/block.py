"""Measures a cell, and with it the cells of its block that are due, in one process.

Laps of the cells of a block are interleaved (:class:`Block`): a disturbance of the machine meets
them all alike, and one system serves for many runs.  Cells of virtual machines, whose guests use
CPU time between commands, are measured alone.

When the process ends, none of their systems is up.  The results of the other cells are pending
(:mod:`strata.measure.pending`) until their own Snakemake jobs ask for them.  One of them that
fails is dropped here, and is measured alone by its own job.
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
from strata.util import locks, paths, progress, run, signals
from strata.util.data_types import Fields, Plan
from strata.util.errors import CellFailed, CommandFailed, UserError
from strata.util.files import write_json, write_text
from strata.util.signals import Interrupted
from strata.util.units import parse_ranges

# The share of the memory that stays free while several systems are up.
MEMORY_KEPT = 0.1
# Bytes of freed memory that a hypervisor takes back at once: the next workload need not wait.
QUICKLY_FREED = 2**30


def measure_cell(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell, unless its results are pending, and put them into results/raw.

    Raises CellFailed with the reason and the command that reruns the cell.  The output so far is
    then in results/failed, and results/raw is as it was.
    """
    signals.raise_on_signals()
    run.end_with_run()
    experiment = plan.read_plan()
    order, key = blocks.Order(experiment), (environment, workload, repetition)
    if key not in order.places:
        raise UserError(f"{paths.PLAN}: {order.explain_missing(*key)}")
    cell = Cell(experiment, key, order)
    # The host bars its lowest layer alone.
    for kind in cell.layers[:1]:
        if reason := registry.layer_class(kind).permission_reason():
            raise CellFailed(f"{cell.name} cannot be measured: {reason}")
    starting_state.declare_state(processors(experiment))
    try:
        with locks.hold_machine():
            if not pending.is_pending(experiment, key):
                _ensure_image(cell)
                _measure_block(cell)
            _report(cell, pending.put_in_place(key))
            if run.identify_run()["pid"] == os.getpid():
                # No run removes these at its end.
                pending.remove("pending", key)
    except Interrupted as signal:
        raise CellFailed(f"{cell.name} was ended by {signal} before it began") from None


def processors(experiment: Plan) -> set[int]:
    """The processors on which a plan's cells are measured.

    On a node of a cluster (`spread`) they are those of its job.
    """
    if experiment.get("spread"):
        return os.sched_getaffinity(0)
    mask = experiment["machine"]["mask"]
    return starting_state.online_processors() if mask is None else set(parse_ranges(mask))


def _ensure_image(cell: Cell) -> None:
    """Have the image built, and the disk of its machine, where the cache lacks them."""
    forms, recipe = registry.image_forms(cell.layers), cell.plan["image"]["recipe"]
    missing = bool(forms) and cache.find_image(recipe) is None
    if "disk" in forms and not missing:
        from strata.vm import vagrant_box

        missing = not vagrant_box.has_box(recipe)
    if missing:
        # Another process: a build needs Python packages that a cell does not import.
        command = [sys.executable, "-m", "strata", "image", "--planned", cell.environment]
        if subprocess.run(command, check=False).returncode:
            raise CellFailed(f"the image of {cell.environment} could not be made (see above)")


def _measure_block(cell: Cell) -> None:
    """Measure a cell, interleaved with the cells of its block that are due.

    Raises CellFailed for any failure of the cell itself; then none of the systems stays up.
    """
    mates = _mates(cell)
    names = ", ".join(mate.environment for mate in mates)
    progress.announce_cell(f"{cell.name}, interleaved with {names}" if mates else cell.name)
    try:
        try:
            Block(cell, mates).measure()
        except CommandFailed:
            if not mates or not cell.entry.get("doubtful"):
                raise
            # Only a cell that is measured alone shows that its environment cannot do it.
            Block(cell).measure()
    except BaseException as error:
        raise _failure(cell, error) from error


def _mates(cell: Cell) -> list[Cell]:
    """The other cells of a block that are due, and whose laps can be interleaved with a cell's."""
    if not cell.is_interleaved:
        return []
    keys = [key for key in cell.order.cells_of_block(*cell.key) if key != cell.key]
    due = [Cell(cell.plan, key, cell.order) for key in keys if pending.is_due(cell.plan, key)]
    return [mate for mate in due if mate.is_interleaved]


def _failure(cell: Cell, error: BaseException) -> CellFailed:
    """Take all systems down, keep the output in results/failed, and return the error to raise."""
    signals.ignore_signals()
    _try_take_down()
    if isinstance(error, Interrupted):
        failure = CellFailed(f"{cell.name} was ended by {error}; nothing of it is kept")
        _write_outcome(cell, str(failure))
        return failure
    foreseen = isinstance(error, (UserError, OSError))
    reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
    log = paths.cell_path("failed", *cell.key, "log")
    times = {"ended": cell.watch.now(), "seconds": round(cell.watch.elapsed(), 3)}
    try:
        record = {**times, **cell.record, "error": reason}
        write_json(paths.cell_path("failed", *cell.key, "json"), record)
        # It may have failed before it had a log.
        write_text(log, "")
        if os.path.exists(cell.draft):
            pending.move_file(cell.draft, log)
    except (OSError, UserError) as trouble:
        log = f"could not be kept: {trouble}"
    again = run.format_command(paths.cell_path("raw", *cell.key, "log"))
    failure = CellFailed(f"cell failed: {cell.name}: {reason}\n  log:   {log}\n  rerun: {again}")
    _write_outcome(cell, str(failure), None if foreseen else error)
    return failure


def _try_take_down() -> None:
    """Take down all systems, and print which failed: the next cell, or `clean`, tries again."""
    try:
        lifecycle.take_down_systems()
    except (UserError, OSError) as trouble:
        remedy = "the next cell tries again, and so does `python3 -m strata clean`"
        progress.print_topic("testbed", f"{trouble}; {remedy}")


def _report(cell: Cell, record: Fields) -> None:
    """Print that a cell is in its place, and how many are left."""
    outcome = f"measured in {record['seconds']} s"
    if "cannot" in record:
        outcome = f"cannot be done there: {record['cannot']['reason']}"
        progress.print_topic("cell", f"{cell.name} {outcome}")
    _write_outcome(cell, outcome)
    progress.report_cell(cell.name, record["seconds"], not cell.order.decided)


def _write_outcome(cell: Cell, outcome: str, error: BaseException | None = None) -> None:
    """Write how a cell ended into results/logs/cells, with the traceback of an unforeseen error."""
    if error is not None:
        import traceback

        outcome += "\n" + "".join(traceback.format_exception(error))
    line = f"{cell.watch.now()} {cell.name}: {outcome}\n"
    with contextlib.suppress(UserError):
        write_text(paths.cell_path("logs/cells", *cell.key, "log"), line)


def _bytes_freed_before(cell: Cell) -> int:
    """Bytes that the cell before this one in the plan freed; 0 for the same workload."""
    cells = cell.order.cells()
    environment, workload, _ = cells[max(0, cells.index(cell.key) - 1)]
    if workload == cell.workload:
        return 0
    planned = plan.workload_in_environment(cell.plan, environment, workload)
    return planned.get("memory_bytes", 0) * plan.count_systems(planned)


class Block:
    """The cells of a block that are measured at the same time, or one cell alone.

    In each lap every cell takes its run once: one after the other, in random order, or in slices.

    first: the cell whose process this is.
    seconds: of each cell that still takes part, how long its own steps have taken so far.
    """

    def __init__(self, first: Cell, mates: Sequence[Cell] = ()) -> None:
        self.first = first
        self.seconds = dict.fromkeys([first, *mates], 0.0)

    def measure(self) -> None:
        """Measure the cells, and store their pending results.

        Raises the error of the first cell.  Any other cell with an error is dropped.
        """
        begun, first = time.monotonic(), self.first
        if _bytes_freed_before(first) > QUICKLY_FREED:
            interference.wait_for_reclaim(first.plan["quiet"]["thresholds"]["steal"])
        monitor = interference.InterferenceMonitor(first.plan["quiet"])
        lifecycle.take_down_systems()
        self._do(Cell.start_record)
        link = None
        if plan.uses_client(first.planned["cell"]):
            link = lifecycle.Client(first.plan["client"], first.image, first.mask)
        for offset, cell in enumerate(list(self.seconds)):
            self._do(Cell.bring_up, link, offset, order=[cell])
        self._prepare()
        monitor.read_before(plan.list_daemons(first.plan))
        for lap in range(1, first.laps + 1):
            if first.slice and len(self.seconds) > 1:
                self._run_in_slices(lap, first.slice)
            else:
                self._do(Cell.run_lap, lap, order=self._shuffled(lap))
        self._do(Cell.stop)
        daemons = {name for cell in self.seconds for name in cell.entry["daemons"]}
        monitor.read_after(daemons, [cell.record["commands"] for cell in self.seconds])
        self._do(Cell.parse_log)
        _try_take_down()
        self._complete_records(time.monotonic() - begun, monitor)
        # Results of the others count only once those of the first are there.
        for cell in reversed(self.seconds):
            pending.store(cell.key, cell.draft, cell.record)

    def _prepare(self) -> None:
        """Take the steps before the run.

        The first cell goes on alone where the memory does not hold the systems of all: each is
        expected to take as much as the first one's steps did, and its run as much as declared.
        """
        first, *mates = self.seconds
        before = observe.available_memory()
        self._do(Cell.prepare, order=[first])
        after = observe.available_memory()
        needed, available = 0.0, math.inf
        # Where the kernel does not show its memory, all go on.
        if before is not None and after is not None:
            needed = max(0, before - after) * len(mates)
            available = after - MEMORY_KEPT * before
        if first.slice:
            # The runs of all cells hold it at the same time.
            bytes_of_run = first.planned.get("memory_bytes", 0) * first.systems
            needed += bytes_of_run * len(self.seconds)
        if not mates or needed <= available:
            self._do(Cell.prepare, order=mates)
            return
        reason = f"the memory does not hold {len(self.seconds)} such systems"
        for cell in mates:
            self._drop(cell, CellFailed(reason))
        first.record["alone"] = "memory"

    def _run_in_slices(self, lap: int, seconds: float) -> None:
        """Take the runs of a lap in slices of so many seconds.

        While one run goes on the others are frozen.  Each run that has not ended has one slice in
        each round, in an order drawn anew.
        """
        from concurrent.futures import ThreadPoolExecutor

        threads, round_number = ThreadPoolExecutor(len(self.seconds)), 0
        self._do(Cell.start_lap, lap, threads)
        threads.shutdown(wait=False)
        while running := [cell for cell in self._shuffled(lap, round_number) if cell.running]:
            self._do(Cell.run_slice, seconds, order=running)
            round_number += 1

    def _shuffled(self, *numbers: int) -> list[Cell]:
        """The cells in a random order that follows from the plan's seed and these numbers."""
        cells = sorted(self.seconds, key=lambda cell: cell.environment)
        first = self.first
        seed = [first.plan["seed"], first.workload, first.repetition, *numbers]
        random.Random("/".join(map(str, seed))).shuffle(cells)
        return cells

    def _do(
        self, step: Callable[..., None], *arguments: object, order: Sequence[Cell] | None = None
    ) -> None:
        """Take a step of each cell in turn, and freeze its system where others use the machine.

        order: the cells, all of them unless given.  Cells whose inability is known take none.
        Raises the error of the first cell.  Any other cell with an error is dropped.
        """
        for cell in list(self.seconds) if order is None else order:
            if "cannot" in cell.record:
                continue
            begun = time.monotonic()
            try:
                step(cell, *arguments)
                if step in (Cell.prepare, Cell.run_lap) and len(self.seconds) > 1:
                    cell.freeze()
            except (CellFailed, UserError, OSError) as error:
                if cell is not self.first:
                    self._drop(cell, error)
                    continue
                if len(self.seconds) > 1 or not isinstance(error, CommandFailed):
                    raise
                if not cell.shows_inability(error):
                    raise
                cell.record_inability(error)
            self.seconds[cell] += time.monotonic() - begun

    def _drop(self, cell: Cell, error: Exception) -> None:
        """Go on without a cell, which stays due: its own job measures it alone."""
        del self.seconds[cell]
        progress.print_topic(
            "cell", f"{cell.name} is no longer interleaved and is measured alone: {error}"
        )
        lifecycle.take_down_systems(cell.environment)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(cell.draft)

    def _complete_records(self, seconds: float, monitor: interference.InterferenceMonitor) -> None:
        """Add to the records the facts that are known at the end.

        seconds: for all cells; each has its own ones, and an equal share of the others.
        """
        shared = (seconds - sum(self.seconds.values())) / len(self.seconds)
        for cell, own_seconds in self.seconds.items():
            cell.record["observed"]["host"] = monitor.host
            cell.record["quiet"] = monitor.report
            if len(self.seconds) > 1:
                mates = [mate.environment for mate in self.seconds if mate is not cell]
                cell.record["interleaved"] = sorted(mates)
                started = self.first.record["started"]
                cell.record["together"] = {"first": self.first.environment, "started": started}
            cell.record |= {"ended": cell.watch.now(), "seconds": round(own_seconds + shared, 3)}
