"""Kept values of logs (results/parsed): each log is parsed once, when its cell ends.

A file there holds a digest of all that its values follow from.  Where that has changed, the log is
parsed again.  It needs the standard library alone, since cells load it.
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


def keep(cell: Cell, record: Record, planned: PlannedWorkload, outcome: Fields) -> None:
    """Store the outcome of a cell's log in results/parsed.

    outcome: as :func:`strata.measure.parsing.read` yields it.
    """
    content = {"follows_from": _digest(record, planned, outcome), "outcome": outcome}
    write_json(paths.cell_path("parsed", *cell, "json"), content, indent=None)


def read(cells: Sequence[Cell], given: Iterable[parsing.LoggedCell]) -> Iterator[Fields]:
    """Yield the outcome of each cell, in the order of `cells`, from kept values or from its log.

    given: the log, the record and the planned workload of each cell, in the same order.
    A log without valid kept values is parsed, and its values are stored.
    Raises as :func:`strata.measure.parsing.read`.
    """
    logs = list(given)
    kept = []
    for cell, (_, record, planned) in zip(cells, logs, strict=True):
        kept.append(_kept(cell, record, planned))
    unparsed = [log for log, outcome in zip(logs, kept, strict=True) if outcome is None]
    parsed = parsing.read(unparsed, os.getcwd())
    for cell, (_, record, planned), outcome in zip(cells, logs, kept, strict=True):
        if outcome is None:
            outcome = next(parsed)
            keep(cell, record, planned, outcome)
        yield outcome


def _kept(cell: Cell, record: Record, planned: PlannedWorkload) -> Fields | None:
    """Return the kept outcome of a cell; None where there is none, or its digest does not match."""
    content = read_json(paths.cell_path("parsed", *cell, "json")) or {}
    outcome: Fields | None = content.get("outcome")
    if content.get("follows_from") != _digest(record, planned, outcome):
        return None
    return outcome


def _digest(record: Record, planned: PlannedWorkload, outcome: Fields | None) -> str:
    """Return the SHA-256 of all that the values follow from: log, code and the parser's inputs.

    It decides whether a log is parsed again: any change of this computation parses all logs again.
    """
    inputs = [
        record["log"],
        record["workload"],
        record["parameters"],
        record.get("system", {}).get("count"),
        [[command.get("step"), command.get("at")] for command in record["commands"]],
        [[lap["lap"], lap["counts"]] for lap in record.get("laps", ())],
        _code_digest(),
        planned["metrics"],
        # Values that somebody edited are parsed again.
        outcome,
    ]
    return sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


@functools.cache
def _code_digest() -> str:
    """Return the SHA-256 of the code that parses logs, in the project of the working directory."""
    digest = sha256()
    for path in [*sorted(glob.glob("workloads/*/*.py")), parsing.__file__, log_sections.__file__]:
        with open(path, "rb") as file:
            digest.update(sha256(file.read()).digest())
    return digest.hexdigest()
