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
from strata.measure.laps import LapMonitor, flags_of_laps
from strata.testbed import lifecycle
from strata.util import locks, paths, progress, run, signals
from strata.util.data_types import Fields, Plan
from strata.util.errors import CellFailed, CommandFailed, UserError
from strata.util.files import write_json, write_text
from strata.util.signals import Interrupted
from strata.util.units import parse_ranges

# The share of the available memory that stays free while several systems are up.
MEMORY_KEPT = 0.1
# Bytes of freed memory that a hypervisor takes back at once: the next workload need not wait.
QUICKLY_FREED = 2**30


def measure_cell(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell, unless its results are pending, and copy them into results/raw.

    Holds the lock of the machine meanwhile, and builds the image if the cache lacks it.
    Raises UserError for a cell that is not planned, and CellFailed with the reason and the command
    that measures the cell again.  After a failed measurement the output so far is in
    results/failed, and results/raw is unchanged.
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
    """Return the numbers of the CPUs on which a plan's cells are measured.

    On a node of a cluster (`spread`) these are the CPUs that the node's job may use.
    """
    if experiment.get("spread"):
        return os.sched_getaffinity(0)
    mask = experiment["machine"]["mask"]
    return starting_state.online_processors() if mask is None else set(parse_ranges(mask))


def _ensure_image(cell: Cell) -> None:
    """Build the image and the disk of its virtual machine where the cache lacks them.

    Raises CellFailed if the build fails.
    """
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

    The logs and records of all of them are stored as pending results.
    Raises CellFailed for any failure of the cell itself, and then leaves none of the systems up.
    """
    others = _other_cells(cell)
    names = ", ".join(other.environment for other in others)
    progress.announce_cell(f"{cell.name}, interleaved with {names}" if others else cell.name)
    try:
        try:
            Block(cell, others).measure()
        except CommandFailed:
            if not others or not cell.entry.get("doubtful"):
                raise
            # Only a cell that is measured alone shows that its environment cannot do it.
            Block(cell).measure()
    except BaseException as error:
        raise _failure(cell, error) from error


def _other_cells(cell: Cell) -> list[Cell]:
    """Return the other cells of a cell's block that are due and can be interleaved with it."""
    if not cell.is_interleaved:
        return []
    keys = [key for key in cell.order.cells_of_block(*cell.key) if key != cell.key]
    due = [Cell(cell.plan, key, cell.order) for key in keys if pending.is_due(cell.plan, key)]
    return [mate for mate in due if mate.is_interleaved]


def _failure(cell: Cell, error: BaseException) -> CellFailed:
    """Return the error to raise for a failed cell, after cleaning up.

    Takes all systems down, ignores signals from now on, moves the output so far to results/failed,
    and writes the reason into results/logs/cells.  The output of an interrupted cell is not kept.
    """
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
    """Take down all systems, and print an error instead of raising it.

    The next cell and the command `clean` try again.
    """
    try:
        lifecycle.take_down_systems()
    except (UserError, OSError) as trouble:
        remedy = "the next cell tries again, and so does `python3 -m strata clean`"
        progress.print_topic("testbed", f"{trouble}; {remedy}")


def _report(cell: Cell, record: Fields) -> None:
    """Print how a cell ended and how many cells are left, and write it into results/logs/cells."""
    outcome = f"measured in {record['seconds']} s"
    if "cannot" in record:
        outcome = f"cannot be done there: {record['cannot']['reason']}"
        progress.print_topic("cell", f"{cell.name} {outcome}")
    _write_outcome(cell, outcome)
    progress.report_cell(cell.name, record["seconds"], not cell.order.decided)


def _write_outcome(cell: Cell, outcome: str, error: BaseException | None = None) -> None:
    """Write how a cell ended into results/logs/cells.

    error: an unexpected error, whose traceback is added; None if there was none.
    Errors in writing the file are ignored.
    """
    if error is not None:
        import traceback

        outcome += "\n" + "".join(traceback.format_exception(error))
    line = f"{cell.watch.now()} {cell.name}: {outcome}\n"
    with contextlib.suppress(UserError):
        write_text(paths.cell_path("logs/cells", *cell.key, "log"), line)


def _bytes_freed_before(cell: Cell) -> int:
    """Return how many bytes of memory the previous cell of the plan freed when it ended.

    It is 0 where that cell measured the same workload.
    """
    cells = cell.order.cells()
    environment, workload, _ = cells[max(0, cells.index(cell.key) - 1)]
    if workload == cell.workload:
        return 0
    planned = plan.workload_in_environment(cell.plan, environment, workload)
    return planned.get("memory_bytes", 0) * plan.count_systems(planned)


class Block:
    """Measure the cells of a block together, or one cell alone.

    In each lap some cells take their runs together, in slices; and others, or the same, take whole
    runs one after the other, in random order.  Which of the two comes first is random, too.

    first: the cell that this process was started for; its errors are raised.
    seconds: the time that the steps of each remaining cell have taken so far.  A cell that is
    dropped is removed from this mapping.
    """

    def __init__(self, first: Cell, others: Sequence[Cell] = ()) -> None:
        self.first = first
        self.seconds = dict.fromkeys([first, *others], 0.0)

    def measure(self) -> None:
        """Measure the cells, and store their pending results.

        Brings the systems up, and takes them down at the end.
        Raises the error of the first cell.  Any other cell that fails is dropped, and stays due.
        """
        begun, first = time.monotonic(), self.first
        if _bytes_freed_before(first) > QUICKLY_FREED:
            interference.wait_for_reclaim(first.plan["interference"]["thresholds"]["steal"])
        monitor = interference.InterferenceMonitor(first.plan["interference"])
        lifecycle.take_down_systems()
        self._do(Cell.start_record)
        link = None
        if plan.uses_client(first.planned["cell"]):
            link = lifecycle.Client(first.plan["client"], first.image, first.mask)
        for offset, cell in enumerate(list(self.seconds)):
            self._do(Cell.bring_up, link, offset, order=[cell])
        self._prepare()
        monitor.read_before(plan.list_daemons(first.plan))
        ways = self._ways()
        daemons = {name for cell in self.seconds for name in cell.entry["daemons"]}
        lap_monitor = self._monitor_laps(daemons)
        for lap in range(1, first.laps + 1):
            self._run_lap(lap, ways, lap_monitor)
        self._judge_laps(lap_monitor, monitor)
        self._do(Cell.stop)
        monitor.read_after(daemons, lap_monitor.judged)
        self._do(Cell.parse_log)
        _try_take_down()
        self._complete_records(time.monotonic() - begun, monitor)
        # Results of the others count only once those of the first are there.
        for cell in reversed(self.seconds):
            pending.store(cell.key, cell.draft, cell.record)

    def _prepare(self) -> None:
        """Execute the steps before the run in each cell.

        If the memory cannot hold the systems of all cells, the other cells are dropped and the
        first one is measured alone, which its record says (`alone`).  Each system is expected to
        need as much memory as the first one's steps took, and its run as much as the workload
        declares.
        """
        first, *others = self.seconds
        before = observe.available_memory()
        self._do(Cell.prepare, order=[first])
        after = observe.available_memory()
        needed, available = 0.0, math.inf
        # Where the kernel does not show its memory, all go on.
        if before is not None and after is not None:
            needed = max(0, before - after) * len(others)
            available = after - MEMORY_KEPT * before
        # The runs in slices hold it at the same time.
        in_slices = sum(plan.SLICES in cell.ways for cell in self.seconds)
        needed += first.planned.get("memory_bytes", 0) * first.systems * in_slices
        if not others or needed <= available:
            self._do(Cell.prepare, order=others)
            return
        reason = f"the memory does not hold {len(self.seconds)} such systems"
        for cell in others:
            self._drop(cell, CellFailed(reason))
        first.record["alone"] = "memory"

    def _ways(self) -> dict[Cell, list[str]]:
        """Return the ways in which each cell takes its run, and add them to its record.

        A cell whose run could alternate with no other one takes it whole.
        """
        has_slices = sum(plan.SLICES in cell.ways for cell in self.seconds) > 1
        ways = {cell: cell.ways if has_slices else [plan.WHOLE] for cell in self.seconds}
        for cell in ways:
            cell.record["ways"] = ways[cell]
        return ways

    def _monitor_laps(self, daemons: set[str]) -> LapMonitor:
        """Return the monitor of the laps.

        It judges no laps where the cells have one lap, or where commands enter a system anew in
        each lap: their CPU time is counted twice, in the system and as that of this process's
        children.
        """
        judges = self.first.laps > 1 and self.first.is_interleaved and self.first.systems == 1
        cells = [cell for cell in self.seconds if "cannot" not in cell.record]
        spenders = {cell.environment: cell.steps.describe_spender() for cell in cells}
        return LapMonitor(self.first.plan["interference"]["thresholds"], spenders, daemons, judges)

    def _judge_laps(
        self, lap_monitor: LapMonitor, monitor: interference.InterferenceMonitor
    ) -> None:
        """Add to each record what its runs cost and which laps count.

        Flags a block with too few laps that count.
        """
        laps = lap_monitor.close()
        for cell in self.seconds:
            if "cannot" not in cell.record:
                cell.record["costs"] = lap_monitor.costs[cell.environment]
            if not lap_monitor.judges:
                continue
            cell.record["laps"] = []
            for lap in laps:
                runs = [run for run in lap["runs"] if cell.environment in run["environments"]]
                cell.record["laps"].append({**lap, "runs": runs})
        monitor.report["flags"] += flags_of_laps(laps, monitor.report["thresholds"])

    def _run_lap(self, lap: int, ways: dict[Cell, list[str]], lap_monitor: LapMonitor) -> None:
        """Execute the runs of all cells in one lap, each in its ways.

        lap: the number of the lap, from 1.
        ways: as from :meth:`_ways`.
        lap_monitor: takes a reading after each run, while nothing is measured.
        """
        phases = [plan.SLICES, plan.WHOLE]
        self._chance(lap, "phases").shuffle(phases)
        for way in phases:
            cells = [cell for cell in self._shuffled(lap) if way in ways[cell]]
            runs = [[cell] for cell in cells]
            if way == plan.SLICES:
                runs = [cells] if cells else []
            for run_cells in runs:
                if way == plan.SLICES:
                    self._run_in_slices(lap, run_cells)
                else:
                    self._do(Cell.run_lap, lap, order=run_cells)
                ended = [cell for cell in run_cells if "cannot" not in cell.record]
                lap_monitor.end_run(lap, [cell.environment for cell in ended], way)

    def _run_in_slices(self, lap: int, cells: list[Cell]) -> None:
        """Execute the runs of some cells in one lap together, each in slices of time.

        While one run goes on, all other cells are frozen.  In each round, every run that has not
        ended has one slice, in a new random order.
        lap: the number of the lap, from 1.
        """
        from concurrent.futures import ThreadPoolExecutor

        threads, round_number = ThreadPoolExecutor(len(cells)), 0
        self._do(Cell.start_lap, lap, threads, order=cells)
        threads.shutdown(wait=False)
        while running := [cell for cell in self._shuffled(lap, round_number) if cell.running]:
            self._do(Cell.run_slice, self.first.slice, order=running)
            round_number += 1

    def _chance(self, *topics: object) -> random.Random:
        """Return random numbers that follow from the plan's seed, the first cell and the topics.

        So a repeated measurement has the same order.
        """
        first = self.first
        seed = [first.plan["seed"], first.workload, first.repetition, *topics]
        return random.Random("/".join(map(str, seed)))

    def _shuffled(self, *numbers: int) -> list[Cell]:
        """Return the cells in a random order, which follows from these numbers."""
        cells = sorted(self.seconds, key=lambda cell: cell.environment)
        self._chance(*numbers).shuffle(cells)
        return cells

    def _do(
        self, step: Callable[..., None], *arguments: object, order: Sequence[Cell] | None = None
    ) -> None:
        """Execute a step of each cell in turn, and freeze its system while others are measured.

        step: a method of Cell; `arguments` are passed to it.
        order: the cells; None for all.  Cells whose environment cannot run the workload are
        skipped.
        Raises the error of the first cell, unless it shows that its environment cannot run the
        workload: then its record says so.  Any other cell that fails is dropped.
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
        """Continue without a cell: take its systems down and remove its log.

        The cell stays due, and its own job measures it alone.
        """
        del self.seconds[cell]
        progress.print_topic(
            "cell", f"{cell.name} is no longer interleaved and is measured alone: {error}"
        )
        lifecycle.take_down_systems(cell.environment)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(cell.draft)

    def _complete_records(self, seconds: float, monitor: interference.InterferenceMonitor) -> None:
        """Add to the record of each cell the facts that are known only at the end.

        seconds: the duration of the whole measurement.  Each cell is charged with the time of its
        own steps and an equal share of the rest.
        """
        shared = (seconds - sum(self.seconds.values())) / len(self.seconds)
        for cell, own_seconds in self.seconds.items():
            cell.record["observed"]["host"] = monitor.host
            cell.record["interference"] = monitor.report
            if len(self.seconds) > 1:
                others = [other.environment for other in self.seconds if other is not cell]
                cell.record["interleaved"] = sorted(others)
                started = self.first.record["started"]
                cell.record["together"] = {"first": self.first.environment, "started": started}
            cell.record |= {"ended": cell.watch.now(), "seconds": round(own_seconds + shared, 3)}
