"""Measure a cell, and with it the cells of its block that are due, in one process.

Laps of the cells of a block are interleaved (:class:`Block`): a disturbance of the machine meets
them all alike, and one system serves for many runs.  Cells of virtual machines, whose guests use
CPU time between commands, are measured without others.

When the process ends, none of their systems is up.  The results of the other cells are pending
(:mod:`strata.measure.pending`) until their own Snakemake jobs ask for them.  One of them that
fails is dropped here, and its own job measures it without others.
"""

import contextlib
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
from strata.measure.laps import LapMonitor, flag_disturbed_laps
from strata.testbed import lifecycle
from strata.util import locks, paths, progress, run, signals
from strata.util.data_types import Fields, Plan
from strata.util.errors import CellFailed, CommandFailed, UserError
from strata.util.files import write_json, write_text
from strata.util.signals import Interrupted
from strata.util.units import parse_ranges

# The share of the available memory that stays free while several systems are up: a reserve for the
# page cache and for needs that workloads do not declare.
RESERVED_MEMORY_SHARE = 0.1
# A hypervisor takes back as many bytes of freed memory at once: the next workload need not wait.
MAX_BYTES_WITHOUT_WAIT = 2**30


def measure_cell(environment: str, workload: str, repetition: int) -> None:
    """Measure a cell, unless its results are pending, and copy its results into results/raw.

    environment: the name of the cell's environment in the plan.
    workload: the name of its workload.
    repetition: the number of its repetition, from 1.
    Called once in a process, by the rule that measures a cell.  Holds the lock of the machine
    meanwhile, and builds the image if it is not in the cache.  Changes the state in which this
    process starts programs, and its handling of signals.
    Raises UserError for a cell that is not planned, and CellFailed with the reason and the command
    that measures the cell again.  After a failed measurement the output so far is in
    results/failed, and results/raw is unchanged.
    """
    signals.raise_on_signals()
    run.watch_for_run_end()
    experiment = plan.read_plan()
    order = blocks.Order(experiment)
    key = (environment, workload, repetition)
    if key not in order.places:
        raise UserError(f"{paths.PLAN}: {order.explain_missing_cell(*key)}")
    cell = Cell(experiment, key, order)
    # Only the lowest layer, which is the first, needs rights on this host.
    for layer in cell.layers[:1]:
        if reason := registry.load_layer_class(layer).explain_missing_permission():
            raise CellFailed(f"{cell.name} cannot be measured: {reason}")
    starting_state.apply_declared_state(list_measured_cpus(experiment))
    try:
        with locks.hold_machine_lock():
            if not pending.is_pending(experiment, key):
                _ensure_image(cell)
                _measure_block(cell)
            _report_result(cell, pending.copy_results_to_raw(key))
            if run.identify_run_process()["pid"] == os.getpid():
                # Without a Snakemake run, nothing else removes these pending results.
                pending.remove_results("pending", key)
    except Interrupted as signal:
        raise CellFailed(f"{cell.name} was ended by {signal} before it began") from None


def list_measured_cpus(experiment: Plan) -> set[int]:
    """Return the numbers of the CPUs of this machine that a plan's cells are measured on.

    On a node of a cluster (`spread`) these are the CPUs that the node's job may use; elsewhere the
    plan's CPU mask, or all online CPUs without a mask.
    """
    if experiment.get("spread"):
        return os.sched_getaffinity(0)
    mask = experiment["machine"]["mask"]
    return starting_state.list_online_cpus() if mask is None else set(parse_ranges(mask))


def _ensure_image(cell: Cell) -> None:
    """Build the cell's image, and the disk of its virtual machine, if they are not in the cache.

    Nothing is built for a cell whose layers use no image.
    Raises CellFailed if the build fails.
    """
    forms = registry.collect_image_forms(cell.layers)
    recipe = cell.plan["image"]["recipe"]
    is_missing = bool(forms) and cache.find_image(recipe) is None
    if "disk" in forms and not is_missing:
        from strata.vm import vagrant_box

        is_missing = not vagrant_box.has_box(recipe)
    if is_missing:
        # Another process: a build needs Python packages that a cell does not import.
        command = [sys.executable, "-m", "strata", "image", "--planned", cell.environment]
        if subprocess.run(command, check=False).returncode:
            raise CellFailed(f"the image of {cell.environment} could not be made (see above)")


def _measure_block(cell: Cell) -> None:
    """Measure a cell, interleaved with the cells of its block that are due.

    The logs and records of all of them are stored as pending results.  If the cell's environment is
    doubtful, and a command of the cell fails, the cell is measured again without the others.
    Raises CellFailed for any failure of the cell itself, and then leaves none of the systems up.
    """
    partners = _list_interleaved_cells(cell)
    announcement = cell.name
    if partners:
        names = ", ".join(partner.environment for partner in partners)
        announcement += f", interleaved with {names}"
    progress.print_cell_start(announcement)
    try:
        try:
            Block(cell, partners).measure_cells()
        except CommandFailed:
            if not partners or not cell.entry.get("doubtful"):
                raise
            # Only a cell that is measured without others shows that its environment cannot run it.
            Block(cell).measure_cells()
    except BaseException as error:
        raise _clean_up_failure(cell, error) from error


def _list_interleaved_cells(cell: Cell) -> list[Cell]:
    """Return the other due cells of a cell's block whose laps can be interleaved with its laps.

    The list is empty if the cell itself cannot be interleaved.
    """
    if not cell.is_interleaved:
        return []
    due_cells = []
    for key in cell.order.list_cells_of_block(*cell.key):
        if key != cell.key and pending.is_due(cell.plan, key):
            due_cells.append(Cell(cell.plan, key, cell.order))
    return [due_cell for due_cell in due_cells if due_cell.is_interleaved]


def _clean_up_failure(cell: Cell, error: BaseException) -> CellFailed:
    """Clean up after a failed cell, and return the error to raise for it.

    error: the reason of the failure.  UserError, with its subclass CellFailed, and OSError are
    expected; another error is logged with its traceback.
    Takes all systems down, ignores signals from now on, moves the output so far to results/failed,
    and writes the reason into results/logs/cells.  The output of an interrupted cell is not kept.
    """
    signals.ignore_signals()
    _try_take_down_systems()
    if isinstance(error, Interrupted):
        failure = CellFailed(f"{cell.name} was ended by {error}; nothing of it is kept")
        _write_outcome(cell, str(failure))
        return failure
    is_expected = isinstance(error, (UserError, OSError))
    reason = str(error) if is_expected else f"{type(error).__name__}: {error}"
    log = _keep_failed_output(cell, reason)
    rerun = run.format_target_command(paths.get_cell_path("raw", *cell.key, "log"))
    failure = CellFailed(f"cell failed: {cell.name}: {reason}\n  log:   {log}\n  rerun: {rerun}")
    _write_outcome(cell, str(failure), None if is_expected else error)
    return failure


def _keep_failed_output(cell: Cell, reason: str) -> str:
    """Write a failed cell's record, with `error`, and its log so far into results/failed.

    reason: the value of `error`, which the end of a run (strata/workflow.py), `try` and `reproduce`
    read from the record.
    Returns the path of the log; if the files cannot be written, a clause that says so instead.
    """
    log = paths.get_cell_path("failed", *cell.key, "log")
    times = {
        "ended": cell.watch.format_now(),
        "seconds": round(cell.watch.get_elapsed_seconds(), 3),
    }
    try:
        # The record of a cell that failed after its measurement has its times already.
        record = {**times, **cell.record, "error": reason}
        write_json(paths.get_cell_path("failed", *cell.key, "json"), record)
        # The cell may have failed before it had a log.
        write_text(log, "")
        if os.path.exists(cell.unfinished_log):
            pending.move_file(cell.unfinished_log, log)
    except (OSError, UserError) as error:
        # The failure of the cell is more important, and is still reported.
        return f"could not be kept: {error}"
    return log


def _try_take_down_systems() -> None:
    """Take down all systems; print an error, if there is one, instead of raising it.

    The next cell and the command `clean` try again to take down what is left.
    """
    try:
        lifecycle.take_down_systems()
    except (UserError, OSError) as error:
        remedy = "the next cell tries again, and so does `python3 -m strata clean`"
        progress.print_topic_message("testbed", f"{error}; {remedy}")


def _report_result(cell: Cell, record: Fields) -> None:
    """Print how a cell ended and how many cells are left, and write it into results/logs/cells.

    record: the cell's complete record.
    """
    outcome = f"measured in {record['seconds']} s"
    if "cannot" in record:
        outcome = f"cannot be done there: {record['cannot']['reason']}"
        progress.print_topic_message("cell", f"{cell.name} {outcome}")
    _write_outcome(cell, outcome)
    progress.print_cell_end(cell.name, record["seconds"], not cell.order.decided)


def _write_outcome(cell: Cell, outcome: str, error: BaseException | None = None) -> None:
    """Write how a cell ended into its file in results/logs/cells, which is replaced.

    The file is for people, and is the `log` of the cell's Snakemake rule.
    outcome: the end of the sentence that begins with the cell's name, such as "measured in 3.2 s".
    error: an unexpected error, whose traceback is added; None if there was none.
    Errors in writing the file are ignored: the same outcome is printed or raised.
    """
    if error is not None:
        import traceback

        outcome += "\n" + "".join(traceback.format_exception(error))
    line = f"{cell.watch.format_now()} {cell.name}: {outcome}\n"
    with contextlib.suppress(UserError):
        write_text(paths.get_cell_path("logs/cells", *cell.key, "log"), line)


def _count_freed_bytes(cell: Cell) -> int:
    """Return how many bytes of memory the previous cell of the plan freed when it ended.

    The number is the memory that its workload declares, times the number of its systems.  It is 0
    for the plan's first cell, and if the previous cell has the same workload.
    """
    cells = cell.order.list_cells()
    index = cells.index(cell.key)
    # The first cell counts as its own previous one, so its workload is the same.
    environment, workload, _ = cells[max(0, index - 1)]
    if workload == cell.workload:
        return 0
    planned = plan.select_workload(cell.plan, environment, workload)
    return planned.get("memory_bytes", 0) * plan.count_systems(planned)


class Block:
    """Measure the cells of a block together, or only one cell.

    In each lap some cells take their runs together, in slices; others, or the same cells again,
    take whole runs one after the other, in random order.  Which of the two comes first is random,
    too.

    first: the cell that this process was started for; its errors are raised.
    cells: cell → the seconds that its steps have taken so far, in the order of the cells' start.  A
    cell that fails is removed, unless it is the first.
    """

    def __init__(self, first: Cell, partners: Sequence[Cell] = ()) -> None:
        """Keep the cells; nothing is up yet.

        partners: the further cells; all are interleaved with the first.
        """
        self.first = first
        self.cells = dict.fromkeys([first, *partners], 0.0)

    def measure_cells(self) -> None:
        """Measure the cells, and store their pending results.

        Brings the systems up, and takes them down at the end; after an error, the caller takes
        them down.  The caller holds the machine's lock.
        Raises the error of the first cell.  Any other cell that fails is dropped, and stays due.
        """
        started = time.monotonic()
        first = self.first
        if _count_freed_bytes(first) > MAX_BYTES_WITHOUT_WAIT:
            interference.wait_for_memory_reclaim(first.plan["interference"]["thresholds"]["steal"])
        # The monitor takes its first reading now: the time before the run begins.
        monitor = interference.InterferenceMonitor(first.plan["interference"])
        lifecycle.take_down_systems()
        self._call_for_each_cell(Cell.start_record)
        link = None
        if plan.has_client_commands(first.planned["cell"]):
            link = lifecycle.Client(first.plan["client"], first.image, first.mask)
        for offset, cell in enumerate(list(self.cells)):
            self._call_for_each_cell(Cell.bring_up, link, offset, order=[cell])
        self._prepare_cells()
        monitor.take_reading_before_run(plan.list_daemons(first.plan))
        ways = self._choose_ways()
        daemons = {name for cell in self.cells for name in cell.entry["daemons"]}
        lap_monitor = self._create_lap_monitor(daemons)
        for lap in range(1, first.laps + 1):
            self._run_lap(lap, ways, lap_monitor)
        self._judge_laps(lap_monitor, monitor)
        self._call_for_each_cell(Cell.stop_programs)
        monitor.take_reading_after_run(daemons, lap_monitor.judged)
        self._call_for_each_cell(Cell.parse_log)
        _try_take_down_systems()
        self._complete_records(time.monotonic() - started, monitor)
        # Results of the other cells count only once the first cell's are stored, so it goes last.
        for cell in reversed(self.cells):
            pending.store_results(cell.key, cell.unfinished_log, cell.record)

    def _prepare_cells(self) -> None:
        """Execute the steps before the run in each cell.

        If the memory cannot hold the systems of all cells, only the first cell is measured, and the
        others are dropped.  The first cell's record then gets `alone`, which analysis/format.R
        reads.
        """
        first, *partners = self.cells
        bytes_before = observe.read_available_memory()
        self._call_for_each_cell(Cell.prepare_run, order=[first])
        bytes_after = observe.read_available_memory()
        if not partners or self._has_memory_for_partners(len(partners), bytes_before, bytes_after):
            self._call_for_each_cell(Cell.prepare_run, order=partners)
            return
        reason = f"the memory does not hold {len(self.cells)} such systems"
        for cell in partners:
            self._drop_cell(cell, CellFailed(reason))
        first.record["alone"] = "memory"

    def _has_memory_for_partners(
        self, partner_count: int, bytes_before: int | None, bytes_after: int | None
    ) -> bool:
        """Return whether the memory can hold the systems of all cells and their runs.

        partner_count: the number of cells besides the first.
        bytes_before: the available memory before the steps of the first cell.
        bytes_after: the available memory after them.
        Each partner is expected to need as much memory as the steps of the first cell took, and
        each run as much as the workload declares.
        Returns True if the kernel does not show its memory (None).
        """
        if bytes_before is None or bytes_after is None:
            return True
        needed_bytes = max(0, bytes_before - bytes_after) * partner_count
        # Runs in slices hold their memory at the same time; whole runs follow one another.
        slice_cell_count = sum(plan.SLICES in cell.ways for cell in self.cells)
        run_bytes = self.first.planned.get("memory_bytes", 0) * self.first.systems
        needed_bytes += run_bytes * slice_cell_count
        return needed_bytes <= bytes_after - RESERVED_MEMORY_SHARE * bytes_before

    def _choose_ways(self) -> dict[Cell, list[str]]:
        """Choose whether each cell takes its run in slices, whole, or both: ``{cell: ways}``.

        A cell takes its run in slices only if another cell does so, too.  The ways are the strings
        plan.SLICES and plan.WHOLE; each cell's record gets them as `ways`.
        """
        has_slices = sum(plan.SLICES in cell.ways for cell in self.cells) > 1
        ways = {cell: cell.ways if has_slices else [plan.WHOLE] for cell in self.cells}
        for cell in ways:
            cell.record["ways"] = ways[cell]
        return ways

    def _create_lap_monitor(self, daemons: set[str]) -> LapMonitor:
        """Return a monitor of the laps of all cells that their environments can run.

        daemons: the names of the daemons that serve the environments of the cells.
        Laps are not judged if the cells have only one lap, or if no shell waits in the system.
        Without a shell, a native command is a child of this process.  Its CPU time would then be
        counted twice: for its system, and for the children of this process.
        """
        # The class Steps (measure/steps.py) starts a waiting shell under the last two of these
        # conditions; `_waits` there must agree.
        judges = self.first.laps > 1 and self.first.is_interleaved and self.first.systems == 1
        cells = [cell for cell in self.cells if "cannot" not in cell.record]
        spenders = {cell.environment: cell.steps.describe_spender() for cell in cells}
        return LapMonitor(self.first.plan["interference"]["thresholds"], spenders, daemons, judges)

    def _judge_laps(
        self, lap_monitor: LapMonitor, monitor: interference.InterferenceMonitor
    ) -> None:
        """Add to each record the costs of its runs (`costs`) and which laps count (`laps`).

        lap_monitor: observed all laps; it is closed.
        monitor: gets flags in its report if too few laps were undisturbed.
        If laps are not judged, records have no `laps`, and all laps count.
        strata/measure/parsing.py and analysis/costs.R read these keys.
        """
        laps = lap_monitor.close_and_judge_laps()
        for cell in self.cells:
            if "cannot" not in cell.record:
                cell.record["costs"] = lap_monitor.costs[cell.environment]
            if not lap_monitor.judges:
                continue
            cell.record["laps"] = []
            for lap in laps:
                runs = [run for run in lap["runs"] if cell.environment in run["environments"]]
                cell.record["laps"].append({**lap, "runs": runs})
        monitor.report["flags"] += flag_disturbed_laps(laps, monitor.report["thresholds"])

    def _run_lap(self, lap: int, ways: dict[Cell, list[str]], lap_monitor: LapMonitor) -> None:
        """Execute the runs of all cells in one lap, each in its ways.

        lap: the number of the lap, from 1.
        ways: as from :meth:`_choose_ways`.
        lap_monitor: takes a reading after each run, while nothing is measured.
        The random draws and their sequence must stay: with others, a repeated measurement would
        have another order of runs.
        """

        def end_run(cells: list[Cell], way: str) -> None:
            """Let `lap_monitor` take its reading after a run of this lap.

            cells: the cells that took the run; those that cannot run the workload do not count.
            way: how they took it, plan.SLICES or plan.WHOLE.
            """
            able_cells = [cell for cell in cells if "cannot" not in cell.record]
            lap_monitor.end_run(lap, [cell.environment for cell in able_cells], way)

        phases = [plan.SLICES, plan.WHOLE]
        self._create_random_generator(lap, "phases").shuffle(phases)
        for way in phases:
            cells = [cell for cell in self._shuffle_cells(lap) if way in ways[cell]]
            if way == plan.WHOLE:
                for cell in cells:
                    self._call_for_each_cell(Cell.run_lap, lap, order=[cell])
                    end_run([cell], way)
            elif cells:
                self._run_in_slices(lap, cells)
                end_run(cells, way)

    def _run_in_slices(self, lap: int, cells: list[Cell]) -> None:
        """Execute the runs of some cells in one lap together, each in slices of time.

        While one run goes on, all other cells are frozen.  In each round, every run that has not
        ended has one slice, in a new random order.
        lap: the number of the lap, from 1.
        cells: the cells; each is left frozen when its run has ended.
        """
        from concurrent.futures import ThreadPoolExecutor

        threads = ThreadPoolExecutor(len(cells))
        self._call_for_each_cell(Cell.start_lap, lap, threads, order=cells)
        threads.shutdown(wait=False)
        round_number = 0
        while running := [cell for cell in self._shuffle_cells(lap, round_number) if cell.running]:
            self._call_for_each_cell(Cell.run_slice, self.first.slice, order=running)
            round_number += 1

    def _create_random_generator(self, *topics: object) -> random.Random:
        """Return a random generator, seeded by the plan's seed, the first cell and the topics.

        A repeated measurement of a block therefore has the same order of runs.
        topics: strings or numbers that distinguish the generators of a block; another value changes
        the order of runs.
        """
        first = self.first
        seed = [first.plan["seed"], first.workload, first.repetition, *topics]
        return random.Random("/".join(map(str, seed)))

    def _shuffle_cells(self, *numbers: int) -> list[Cell]:
        """Return the remaining cells in a random order that follows from these numbers.

        numbers: the lap and, within its slices, the round.
        """
        cells = sorted(self.cells, key=lambda cell: cell.environment)
        self._create_random_generator(*numbers).shuffle(cells)
        return cells

    def _call_for_each_cell(
        self, method: Callable[..., None], *arguments: object, order: Sequence[Cell] | None = None
    ) -> None:
        """Call a method of each cell in turn, and freeze its system while others are measured.

        method: a method of the class Cell.
        arguments: passed to the method after the cell.
        order: the cells; None for all.  Cells whose environment cannot run the workload are
        skipped.
        Adds the time of the calls to `cells`.  Systems are frozen after the steps before the run
        and after each whole run, if the block has several cells.
        Raises the error of the first cell, unless it shows that its environment cannot run the
        workload: then its record says so.  Any other cell that fails is dropped.
        """
        for cell in list(self.cells) if order is None else order:
            if "cannot" in cell.record:
                continue
            started = time.monotonic()
            try:
                method(cell, *arguments)
                if method in (Cell.prepare_run, Cell.run_lap) and len(self.cells) > 1:
                    cell.freeze_system()
            except (CellFailed, UserError, OSError) as error:
                if cell is not self.first:
                    self._drop_cell(cell, error)
                    continue
                # Only a cell that is measured without others shows an inability.
                if len(self.cells) > 1 or not isinstance(error, CommandFailed):
                    raise
                if not cell.is_inability(error):
                    raise
                cell.record_inability(error)
            self.cells[cell] += time.monotonic() - started

    def _drop_cell(self, cell: Cell, error: Exception) -> None:
        """Remove a cell from the block: take its systems down and remove its log.

        error: the reason, which is printed.
        The cell stays due, and its own job measures it without others.
        """
        del self.cells[cell]
        progress.print_topic_message(
            "cell", f"{cell.name} is no longer interleaved and is measured alone: {error}"
        )
        lifecycle.take_down_systems(cell.environment)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(cell.unfinished_log)

    def _complete_records(self, seconds: float, monitor: interference.InterferenceMonitor) -> None:
        """Add to the record of each cell the facts that are known only at the end.

        seconds: the duration of the whole measurement.  A record's `seconds` are the time of the
        cell's own steps and an equal share of the rest.
        monitor: the observations of the host; complete.
        Cells with equal `together` were measured together.  strata/results/pairs.py and
        analysis/statistics.R form pairs by this key, and
        :func:`strata.measure.pending.is_pending` finds the first cell by it.
        """
        shared_seconds = (seconds - sum(self.cells.values())) / len(self.cells)
        for cell, own_seconds in self.cells.items():
            cell.record["observed"]["host"] = monitor.host
            cell.record["interference"] = monitor.report
            if len(self.cells) > 1:
                partners = [partner.environment for partner in self.cells if partner is not cell]
                cell.record["interleaved"] = sorted(partners)
                started = self.first.record["started"]
                cell.record["together"] = {"first": self.first.environment, "started": started}
            cell_seconds = round(own_seconds + shared_seconds, 3)
            cell.record |= {"ended": cell.watch.format_now(), "seconds": cell_seconds}
