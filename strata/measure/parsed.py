"""Store the values of logs in results/parsed, so that each log is parsed only once.

A file there holds a digest of all inputs of its values.  If one has changed, the log is parsed
again.  This module imports only the standard library and Strata, since cells load it.
"""

import functools
import glob
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from strata.experiment.blocks import Cell
from strata.measure import log_sections, parsing
from strata.util import paths
from strata.util.data_types import Fields, PlannedWorkload, Record
from strata.util.files import read_json, write_json


def store_outcome(cell: Cell, record: Record, planned: PlannedWorkload, outcome: Fields) -> None:
    """Store the outcome of a cell's log in results/parsed, as ``{follows_from, outcome}``.

    record: the record of the cell, with its `log`, `commands` and laps, which the digest includes.
    planned: the workload as planned for the cell's environment.
    outcome: ``{values, program}`` or ``{broken}``, as
    :func:`strata.measure.parsing.parse_cell_logs` yields it.
    """
    content = {"follows_from": _digest_inputs(record, planned, outcome), "outcome": outcome}
    write_json(paths.get_cell_path("parsed", *cell, "json"), content, indent=None)


def read_or_parse_outcomes(
    cells: Sequence[Cell], logged_cells: Iterable[parsing.LoggedCell]
) -> Iterator[Fields]:
    """Yield the outcome of each cell's log, in the order of `cells`.

    logged_cells: the log, the record and the planned workload of each cell, in the same order.
    Stored outcomes are read; a log without a valid one is parsed, and its outcome is stored.  Each
    outcome is as :func:`strata.measure.parsing.parse_cell_logs` yields it.
    Raises UserError if a parser exceeds a limit or cannot be loaded.
    """
    logs = list(logged_cells)
    # None for a log that must be parsed.
    stored_outcomes = []
    for cell, (_, record, planned) in zip(cells, logs, strict=True):
        stored_outcomes.append(_read_outcome(cell, record, planned))
    unparsed_logs = [
        log for log, outcome in zip(logs, stored_outcomes, strict=True) if outcome is None
    ]
    # One process parses all of them, in their order.
    new_outcomes = parsing.parse_cell_logs(unparsed_logs, os.getcwd())
    for cell, (_, record, planned), stored_outcome in zip(
        cells, logs, stored_outcomes, strict=True
    ):
        if stored_outcome is not None:
            yield stored_outcome
            continue
        outcome = next(new_outcomes)
        store_outcome(cell, record, planned, outcome)
        yield outcome


def _read_outcome(cell: Cell, record: Record, planned: PlannedWorkload) -> Fields | None:
    """Return the stored outcome of a cell; None if it is missing or its digest does not match.

    record: the record of the cell.
    planned: the workload as planned for the cell's environment.
    A file that is not JSON counts as missing.
    """
    content = read_json(paths.get_cell_path("parsed", *cell, "json")) or {}
    outcome: Fields | None = content.get("outcome")
    if content.get("follows_from") != _digest_inputs(record, planned, outcome):
        return None
    return outcome


def _digest_inputs(record: Record, planned: PlannedWorkload, outcome: Fields | None) -> str:
    """Return a SHA-256 of the outcome of a log and of everything that the outcome depends on.

    A log whose stored outcome has another digest is parsed again.  A new input of parsers must be
    added here; any change of the digest parses all logs again.
    record: the record of the cell.
    planned: the workload as planned for the cell's environment; its metrics are an input.
    outcome: the stored outcome; None if there is none.
    """
    inputs = [
        record["log"],
        record["workload"],
        record["parameters"],
        record.get("system", {}).get("count"),
        [[command.get("step"), command.get("at")] for command in record["commands"]],
        [[lap["lap"], lap["counts"]] for lap in record.get("laps", ())],
        _digest_code(),
        planned["metrics"],
        # Stored values that somebody edited must not match.
        outcome,
    ]
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@functools.cache
def _digest_code() -> str:
    """Return the SHA-256 of the code that parses logs, in hexadecimal digits.

    The code is the Python files of all workloads in the working directory,
    :mod:`strata.measure.parsing` and :mod:`strata.measure.log_sections`.  The files are read once
    in a process.
    """
    digest = sha256()
    for path in [*sorted(glob.glob("workloads/*/*.py")), parsing.__file__, log_sections.__file__]:
        with open(path, "rb") as file:
            digest.update(sha256(file.read()).digest())
    return digest.hexdigest()
