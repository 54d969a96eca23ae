"""Write all measured values into tables, from which the analysis in R starts.

results/tidy/{workload}.csv has a row for each value of each cell, with a column for each factor; a
cell that took its run in slices and whole has a row for each way (`how`).
results/laps/{workload}.csv has a row for each value of each lap, of cells that took laps.
results/left_out.csv names the logs that a parser refuses.
"""

import glob
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from strata.experiment import blocks, plan
from strata.host import node
from strata.measure import parsed, parsing
from strata.measure.parsing import plain
from strata.results import validate
from strata.util import paths, progress
from strata.util.constants import result_path
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.files import write_csv

CELL_COLUMNS = ("environment", "workload", "repetition")
VALUE_COLUMNS = ("metric", "unit", "value")
# Before the name of a factor in the name of its column, so that no factor takes another's column.
FACTOR = "factor_"


class CellValues(NamedTuple):
    """The values from the parsed logs of a plan's cells.

    cells: all planned cells.  values, laps: workload → the rows of its table.
    records: measured cell → its record.  left_out: (log, reason) for each refused log.
    """

    cells: list[blocks.Cell]
    values: dict[str, list[Fields]]
    laps: dict[str, list[Fields]]
    records: dict[blocks.Cell, Fields]
    left_out: list[Sequence[object]]


def make(partial: bool = False, to: str = "results") -> None:
    """Write the tables of all measured values, and of the refused logs, into a folder.

    partial: whether cells may be missing.  to: the folder.
    Prints which logs are left out, and writes the plan's order of cells.
    Raises UserError as :func:`parse_cells`.
    """
    values = parse_cells(partial)
    write_value_tables(values, to)
    write_csv(_locate(to, result_path("left_out")), ("log", "reason"), values.left_out)
    _print_unplanned(values.cells)


def write_value_tables(cell_values: CellValues, folder: str) -> None:
    """Write two CSV tables for each workload into a folder: its values, and the laps of each.

    Readers of the tables rely on these columns and their order (docs/files.md).
    """
    for workload, rows in cell_values.values.items():
        factors = merge_orders([name for name in row if name.startswith(FACTOR)] for row in rows)
        cell_columns = (*CELL_COLUMNS, "round", "order", "how")
        value_columns = (*cell_columns, *VALUE_COLUMNS, *factors, "counts", "log")
        lap_columns = (*CELL_COLUMNS, "how", "metric", *factors, "lap", "value")
        _write_table(folder, "tidy", workload, value_columns, rows)
        _write_table(folder, "laps", workload, lap_columns, cell_values.laps[workload])


def _write_table(
    folder: str, name: str, workload: str, columns: Sequence[str], rows: list[Fields]
) -> None:
    """Write one table of a workload; where a row lacks a column, the table's cell stays empty.

    name: the table's key in schemas/constants/results.json.
    """
    lines = [[row.get(column, "") for column in columns] for row in rows]
    write_csv(_locate(folder, result_path(name, workload=workload)), columns, lines)


def _locate(folder: str, name: str) -> str:
    """Return the path that a file of results/ has in another folder."""
    return os.path.join(folder, os.path.relpath(name, "results"))


def merge_orders(orders: Iterable[Sequence[str]]) -> list[str]:
    """Merge lists of names into one list, without repetitions, that keeps the order of each.

    Where the orders contradict each other, the result keeps only some of them.
    """
    merged: list[str] = []
    for names in dict.fromkeys(map(tuple, orders)):
        place = 0
        for name in names:
            if name not in merged:
                merged.insert(place, name)
            place = merged.index(name) + 1
    return merged


def parse_cells(partial: bool = False) -> CellValues:
    """Parse the logs of all measured cells, and return their values.

    partial: whether cells may be missing.
    Prints which logs a parser refuses, and writes the plan's order of cells.
    Raises UserError, which names the file and the remedy, where a cell is missing and may not be,
    and where a record or log contradicts the plan.
    """
    experiment = plan.read_checked_plan()
    order = blocks.Order(experiment)
    plan.write_cell_order(experiment)
    cells = order.cells()
    measured = validate.measured_cells(cells)
    missing = [paths.cell_path("raw", *cell, "log") for cell in sorted(set(cells) - set(measured))]
    if missing and not partial:
        raise UserError(
            f"{len(missing)} of {len(cells)} cells are not measured: {validate.shortened(missing)}"
        )
    if wrong := validate.find_faults(experiment, measured):
        raise UserError(*validate.complaint(wrong))
    records = {
        cell: validate.load_object(".", paths.cell_path("raw", *cell, "json")) for cell in measured
    }
    paired = {cell: record for cell, record in records.items() if cell[0] in order.paired}
    aside = order.disturbed.union(_list_torn_blocks(paired))
    # Cells of a block begin at about the same moment.
    by_start = sorted(records, key=lambda cell: records[cell]["started"])
    place = {cell: number for number, cell in enumerate(by_start, 1)}
    values = CellValues(
        cells,
        {name: [] for name in experiment["workloads"]},
        {name: [] for name in experiment["workloads"]},
        records,
        [],
    )
    able = [cell for cell in measured if "cannot" not in records[cell]]
    logs: list[parsing.LoggedCell] = [
        (
            paths.cell_path("raw", *cell, "log"),
            records[cell],
            plan.workload_in_environment(experiment, *cell[:2]),
        )
        for cell in able
    ]
    outcomes = parsed.read(able, logs)
    for cell, (path, record, _), outcome in zip(able, logs, outcomes, strict=True):
        if "broken" in outcome:
            values.left_out.append((path, outcome["broken"]))
            remedy = "remove it, and it is measured again"
            progress.print_message(f"tidy: left out: {path}: {outcome['broken']}; {remedy}")
            continue
        run = {
            **dict(zip(CELL_COLUMNS, cell, strict=True)),
            "round": record["round"],
            "order": place[cell],
            "counts": "no" if cell in paired and cell[1:] in aside else "yes",
            "log": path,
        }
        counting = [lap["lap"] for lap in record.get("laps", ()) if lap["counts"]]
        _add_rows(values, cell[1], run, outcome["values"], counting)
    return values


def _add_rows(
    values: CellValues,
    workload: str,
    run: Fields,
    outcome: Sequence[tuple[Sequence[Any], str, list[float]]],
    counting: Sequence[int],
) -> None:
    """Add the rows of a cell to the tables of its workload.

    values: the tables, which are changed.  run: the columns that all rows of the cell share.
    outcome: for each value, (metric, unit, value, factors), how it ran, and the values of its laps.
    counting: the numbers of the laps that count; empty if all do.
    """
    for (metric, unit, number, factors), how, laps in outcome:
        columns = {f"{FACTOR}{name}": plain(factor) for name, factor in factors.items()}
        row = {**run, **columns, "how": how, "metric": metric}
        values.values[workload].append({**row, "unit": unit, "value": plain(number)})
        values.laps[workload] += [
            {**row, "lap": lap, "value": plain(value)}
            for lap, value in zip(counting or range(1, len(laps) + 1), laps, strict=False)
        ]


def _list_torn_blocks(records: dict[blocks.Cell, Fields]) -> list[tuple[str, int]]:
    """Return the blocks (workload, repetition) that were measured on several nodes.

    Their runs do not count in comparisons.
    """
    nodes: dict[tuple[str, int], set[str | None]] = {}
    for cell, record in records.items():
        nodes.setdefault(cell[1:], set()).add(node.node_of_record(record))
    return [key for key, names in nodes.items() if len(names) > 1]


def _print_unplanned(cells: Iterable[blocks.Cell]) -> None:
    """Print which logs in results/raw are left out because their cells are not in the plan."""
    planned = {paths.cell_path("raw", *cell, "log") for cell in cells}
    if unplanned := sorted(set(glob.glob("results/raw/**/*.log", recursive=True)) - planned):
        progress.print_message(
            f"tidy: left out, since they are not in the plan: {validate.shortened(unplanned)}"
        )
