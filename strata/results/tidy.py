"""The tidy tables: every measured value, parsed from the raw logs, one row each; results/tidy/{workload}.csv.

The column `laps` holds the values that a value is the mean of, in their order, with a semicolon between them; it is
empty where the cell had one lap.
What a parser refuses is left out and named in results/left_out.csv.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from strata.experiment import blocks, plan
from strata.host import node
from strata.measure import parsed, parsing
from strata.results import validate
from strata.util import paths, progress
from strata.util.constants import result
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import write_csv

COLUMNS = (
    "environment", "workload", "repetition", "round", "order", "metric", "unit", "value", "laps",
    "factors", "counts", "log",
)  # fmt: skip


class Values(NamedTuple):
    """Parsed logs: the cells of the plan, rows of the tables by workload, records, and (log, reason) of what is left
    out."""

    cells: list[blocks.Cell]
    rows: dict[str, list[Sequence[object]]]
    records: dict[blocks.Cell, Fields]
    left_out: list[Sequence[object]]


def make(partial: bool = False, to: str = "results") -> None:
    """Write the tidy tables of all cells into a folder.

    partial: whether cells may be missing.  Raises UserError as `values` does.
    """
    found = values(partial)

    def write(name: str, columns: Sequence[str], rows: list[Sequence[object]]) -> None:
        write_csv(os.path.join(to, os.path.relpath(name, "results")), columns, rows)

    for load, rows in found.rows.items():
        write(result("tidy", workload=load), COLUMNS, rows)
    write(result("left_out"), ("log", "reason"), found.left_out)
    _note_unplanned(found.cells)


def values(partial: bool = False) -> Values:
    """The values of all cells.

    Raises UserError where a cell is missing and may not, and where a record or a log is not what was measured:
    sentences that name the file and what would mend it.
    """
    experiment = plan.read_checked()
    order = blocks.Order(experiment)
    plan.write_cells(experiment)
    cells = order.cells()
    measured = validate.measured(cells)
    missing = [paths.cell_path("raw", *cell, "log") for cell in sorted(set(cells) - set(measured))]
    if missing and not partial:
        raise UserError(
            f"{len(missing)} of {len(cells)} cells are not measured: {validate.shortened(missing)}"
        )
    if wrong := validate.faults(experiment, measured):
        raise UserError(*validate.complaint(wrong))
    records = {cell: validate.load(".", paths.cell_path("raw", *cell, "json")) for cell in measured}
    paired = {cell: record for cell, record in records.items() if cell[0] in order.paired}
    aside = order.aside.union(_torn(paired))
    # Those of a block begin at about the same moment.
    order_of = {
        cell: at
        for at, cell in enumerate(sorted(records, key=lambda one: records[one]["started"]), 1)
    }
    rows: dict[str, list[Sequence[object]]] = {load: [] for load in experiment["workloads"]}
    left_out: list[Sequence[object]] = []
    able = [cell for cell in measured if "cannot" not in records[cell]]
    given: list[parsing.Given] = [
        (
            paths.cell_path("raw", *cell, "log"),
            records[cell],
            plan.of_environment(experiment, *cell[:2]),
        )
        for cell in able
    ]
    for cell, (path, record, _), found in zip(able, given, parsed.read(able, given), strict=True):
        if "broken" in found:
            left_out.append((path, found["broken"]))
            again = "remove it, and it is measured again"
            progress.shown(f"tidy: left out: {path}: {found['broken']}; {again}")
            continue
        counts = "no" if cell in paired and cell[1:] in aside else "yes"
        at = (*cell, record["round"], order_of[cell])
        rows[cell[1]] += [
            (*at, metric, unit, _number(value), laps, _factors(factors), counts, path)
            for (metric, unit, value, factors), each in found["values"]
            for laps in [";".join(map(_number, each))]
        ]
    return Values(cells, rows, records, left_out)


def _factors(factors: Fields) -> str:
    return ";".join(f"{name}={parsing.plain(factor)}" for name, factor in factors.items())


def _number(value: float) -> str:
    return f"{value:.15g}"


def _torn(records: dict[blocks.Cell, Fields]) -> list[tuple[str, int]]:
    """The blocks (workload, repetition) that were not measured on one node: their runs are not compared."""
    nodes: dict[tuple[str, int], set[str | None]] = {}
    for cell, record in records.items():
        nodes.setdefault(cell[1:], set()).add(node.of_record(record))
    return [key for key, names in nodes.items() if len(names) > 1]


def _note_unplanned(cells: Iterable[blocks.Cell]) -> None:
    """Say which logs are left out because the plan does not hold their cells."""
    planned = {paths.cell_path("raw", *cell, "log") for cell in cells}
    if others := sorted(set(glob.glob("results/raw/**/*.log", recursive=True)) - planned):
        progress.shown(
            f"tidy: left out, since they are not in the plan: {validate.shortened(others)}"
        )
