"""Store pending results: of cells that were measured before their own Snakemake job ran.

One process measures all cells of a block that are due.  Their logs and records are in
results/pending until the run ends.  The job of each cell copies its results to results/raw.  It
does so again if Snakemake removes the log of an interrupted job, or repeats a job that was killed.

Only files decide which cells are due.  A cell is due if neither results/raw nor results/pending has
a record with the fingerprint of the plan.  In a run that measures a block again (:data:`AGAIN`),
earlier records of this block do not count.
"""

import contextlib
import errno
import os
from collections.abc import Iterable

from strata.experiment import blocks, plan
from strata.host import node
from strata.util import paths
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import flush_to_disk, read_json, write_json

# The variable that names a block to be measured again, and since when its records count, as
# WORKLOAD/REPETITION/TIMESTAMP (results/again.py).
AGAIN = "STRATA_AGAIN"


def is_due(experiment: Plan, cell: blocks.Cell) -> bool:
    """Return whether a cell still has to be measured: it has neither results nor pending ones."""
    return not read_measured_record(experiment, cell)


def is_measured(experiment: Plan, cell: blocks.Cell) -> bool:
    """Return whether results/raw has a cell's log and record, with the plan's fingerprint."""
    return _is_current_record(experiment, cell, _read_record("raw", cell))


def is_pending(experiment: Plan, cell: blocks.Cell) -> bool:
    """Return whether a cell has pending results of this node, with the plan's fingerprint.

    experiment: the plan.
    cell: (environment, workload, repetition).
    The results of an interleaved cell count only if those of the first cell of its block exist,
    whose job started the measurement: a block is measured as a whole, and on one node.
    """
    record = _read_record("pending", cell)
    if not _is_current_record(experiment, cell, record):
        return False
    if node.find_node_name(record) not in (None, node.identify_node()["name"]):
        return False
    together = record.get("together")
    if not together:
        return True
    _, workload, repetition = cell
    first = (together["first"], workload, repetition)
    return any(_read_record(kind, first).get("together") == together for kind in ("raw", "pending"))


def read_measured_record(experiment: Plan, cell: blocks.Cell) -> Fields:
    """Return the record of a measured cell; empty if the cell is due.

    It is the record in results/raw, or else that of the cell's pending results.
    """
    record = _read_record("raw", cell)
    if _is_current_record(experiment, cell, record):
        return record
    return _read_record("pending", cell) if is_pending(experiment, cell) else {}


def _is_current_record(experiment: Plan, cell: blocks.Cell, record: Fields) -> bool:
    """Return whether a cell's record has the plan's fingerprint, and counts in this run.

    record: the cell's record; an empty one is not current.
    In a run that measures a block again (AGAIN), a record of this block counts only if its cell was
    started since the run's beginning.
    """
    environment, workload, repetition = cell
    if record.get("fingerprint") != plan.compute_fingerprint(experiment, environment, workload):
        return False
    # WORKLOAD/REPETITION, and the timestamp from which on its records count; both empty if not set.
    repeated_block, _, first_timestamp = os.environ.get(AGAIN, "").rpartition("/")
    if repeated_block != f"{workload}/{repetition}":
        return True
    # Timestamps are strings of one format and time zone (util/clock.py), which sort by time.
    return bool(record["started"] >= first_timestamp)


def store_results(cell: blocks.Cell, new_log: str, record: Fields) -> None:
    """Store a log and its record as the pending results of a cell.

    new_log: the path of the log, which is moved.
    record: the complete record.
    The record is flushed to disk before the log is moved, so that the presence of the log shows
    that the record is complete; :func:`is_due` relies on this order.  Earlier pending and failed
    results of the cell are removed.
    Raises UserError if a file cannot be written.
    """
    remove_results("pending", cell)
    write_json(paths.get_cell_path("pending", *cell, "json"), record, lasting=True)
    move_file(new_log, paths.get_cell_path("pending", *cell, "log"))
    remove_results("failed", cell)


def copy_results_to_raw(cell: blocks.Cell) -> Fields:
    """Copy the pending results of a cell into results/raw, and return the record.

    Replaces earlier results there.  The pending results stay until the run ends.
    Both files are flushed to disk.  The log is written last, so that its presence shows that the
    record is complete.
    Raises UserError if the pending results are missing or a file cannot be written.
    """
    record = _read_record("pending", cell)
    log = paths.get_cell_path("raw", *cell, "log")
    if not record:
        raise UserError(f"{log}: cannot be written: its pending results were removed; run again")
    write_json(paths.get_cell_path("raw", *cell, "json"), record, lasting=True)
    _copy_file(paths.get_cell_path("pending", *cell, "log"), log)
    return record


def remove_results(kind: str, cell: blocks.Cell) -> None:
    """Remove the log and the record of a cell, if they exist.

    The log goes first: a record without its log does not count.
    kind: the name of the folder in results: "raw", "pending" or "failed".
    """
    for suffix in ("log", "json"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(paths.get_cell_path(kind, *cell, suffix))


def remove_copied_results(experiment: Plan, cells: Iterable[blocks.Cell]) -> None:
    """Remove the pending results of cells whose results are in results/raw.

    Called at the end of a run (strata/workflow.py).  If pending results stayed, a log that a user
    removes from results/raw would be restored instead of measured again.
    """
    for cell in cells:
        if is_measured(experiment, cell):
            remove_results("pending", cell)


def move_file(source: str, target: str) -> None:
    """Move a file, also to another file system, and create the folders of the target.

    An existing target is replaced.
    Raises UserError if the target cannot be written.
    """
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise UserError(f"{target}: cannot be written: {error.strerror}") from None
        _copy_file(source, target)
        os.unlink(source)


def _copy_file(source: str, target: str) -> None:
    """Copy a file atomically and flush the copy to disk.

    source: the path of the file.
    target: the path of the copy, whose folders are created.  An existing file there is replaced
    only once the copy is complete; after an error it is unchanged.
    Raises UserError if the target cannot be written.
    """
    partial_copy = f"{target}.{os.getpid()}.part"
    folder = os.path.dirname(target)
    try:
        os.makedirs(folder, exist_ok=True)
        with open(source, "rb") as file, open(partial_copy, "wb") as copy:
            # A megabyte at a time: a log may be larger than the memory that a cell should take.
            while piece := file.read(1 << 20):
                copy.write(piece)
        flush_to_disk(partial_copy)
        os.replace(partial_copy, target)
        flush_to_disk(folder)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(partial_copy)
        raise UserError(f"{target}: cannot be written: {error.strerror}") from None


def _read_record(kind: str, cell: blocks.Cell) -> Fields:
    """Return the record of a cell; empty if its log or its record is missing or damaged.

    kind: the name of the folder in results: "raw" or "pending".
    """
    if not os.path.exists(paths.get_cell_path(kind, *cell, "log")):
        return {}
    return read_json(paths.get_cell_path(kind, *cell, "json")) or {}
