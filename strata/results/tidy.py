"""Write all measured values into tables, where the analysis in R starts.

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
from strata.measure.parsing import format_value
from strata.results import validate
from strata.util import paths, progress
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import write_csv

CELL_COLUMNS = ("environment", "workload", "repetition")
VALUE_COLUMNS = ("metric", "unit", "value")
# The prefix of a factor's column, so that no factor has the name of another column.
FACTOR = "factor_"


class CellValues(NamedTuple):
    """The values from the parsed logs of a plan's cells.

    cells: all planned cells.
    values: workload → the rows of its table of values, each column → value; an empty list without
    values.
    laps: workload → the rows of its table of laps, in the same form.
    records: measured cell → its record.
    left_out: (log, reason) for each log that its parser refuses.
    """

    cells: list[blocks.Cell]
    values: dict[str, list[Fields]]
    laps: dict[str, list[Fields]]
    records: dict[blocks.Cell, Fields]
    left_out: list[Sequence[object]]


def write_tidy_tables(partial: bool = False, to: str = "results") -> None:
    """Write the tables of all measured values, and of the refused logs, into a folder.

    partial: whether cells may be missing.
    to: the path of the folder, where analysis/read.R reads the tables.
    Prints which logs are left out, and writes results/plan.csv.
    Raises UserError if a cell is missing and may not be, or if a record or log contradicts the
    plan.
    """
    values = parse_cells(partial)
    write_value_tables(values, to)
    write_csv(
        _build_path_in_folder(to, get_result_path("left_out")), ("log", "reason"), values.left_out
    )
    _print_unplanned_logs(values.cells)


def write_value_tables(cell_values: CellValues, folder: str) -> None:
    """Write two CSV tables for each workload into a folder: the values of cells, and of laps.

    cell_values: as from :func:`parse_cells`.
    folder: the path of the folder.
    analysis/read.R and archives rely on the columns and their order (docs/files.md).
    """
    for workload, rows in cell_values.values.items():
        factors = merge_name_lists(
            [name for name in row if name.startswith(FACTOR)] for row in rows
        )
        cell_columns = (*CELL_COLUMNS, "round", "order", "how")
        value_columns = (*cell_columns, *VALUE_COLUMNS, *factors, "counts", "log")
        lap_columns = (*CELL_COLUMNS, "how", "metric", *factors, "lap", "value")
        _write_table(folder, "tidy", workload, value_columns, rows)
        _write_table(folder, "laps", workload, lap_columns, cell_values.laps[workload])


def _write_table(
    folder: str, name: str, workload: str, columns: Sequence[str], rows: list[Fields]
) -> None:
    """Write one table of a workload; a missing value of a row is an empty field.

    name: the table's key in schemas/constants/results.json.
    columns: the table's columns, in their order.
    rows: column → value; other keys are ignored.
    """
    lines = [[row.get(column, "") for column in columns] for row in rows]
    write_csv(
        _build_path_in_folder(folder, get_result_path(name, workload=workload)), columns, lines
    )


def _build_path_in_folder(folder: str, name: str) -> str:
    """Return the path of a file of results with the leading results/ replaced by another folder.

    name: the file's path in the project, which begins with results/.
    """
    return os.path.join(folder, os.path.relpath(name, "results"))


def merge_name_lists(orders: Iterable[Sequence[str]]) -> list[str]:
    """Return lists of names merged into one list without repetitions.

    orders: the lists, each without repetitions.
    A new name is inserted right after the name before it in its list, or first if there is none.
    Inserted names do not move: if lists contradict each other, the order of the earlier one stays.
    For example, [["a", "c"], ["a", "b", "c"]] gives ["a", "b", "c"].
    """
    merged: list[str] = []
    # Most rows have equal lists, of which each is merged once.
    for names in dict.fromkeys(map(tuple, orders)):
        position = 0
        for name in names:
            if name not in merged:
                merged.insert(position, name)
            position = merged.index(name) + 1
    return merged


def parse_cells(partial: bool = False) -> CellValues:
    """Return the values of all measured cells; logs without stored values are parsed.

    partial: whether cells may be missing.
    Prints which logs a parser refuses, stores the values of parsed logs in results/parsed, and
    writes results/plan.csv.
    Raises UserError, which names the file and the remedy, if a cell is missing and may not be, or
    if a record or log contradicts the plan.
    """
    experiment = plan.read_checked_plan()
    order = blocks.Order(experiment)
    plan.write_cell_order(experiment)
    cells = order.list_cells()
    records = _read_records(experiment, cells, partial)
    cell_values = CellValues(
        cells=cells,
        values={name: [] for name in experiment["workloads"]},
        laps={name: [] for name in experiment["workloads"]},
        records=records,
        left_out=[],
    )
    shared_columns = _build_shared_columns(order, records)
    # A record with this key says why the environment cannot run the workload: it has no values.
    runnable_cells = [cell for cell, record in records.items() if "cannot" not in record]
    logged_cells: list[parsing.LoggedCell] = []
    for cell in runnable_cells:
        workload = plan.select_workload(experiment, *cell[:2])
        logged_cells.append((paths.get_cell_path("raw", *cell, "log"), records[cell], workload))
    outcomes = parsed.read_or_parse_outcomes(runnable_cells, logged_cells)
    for cell, outcome in zip(runnable_cells, outcomes, strict=True):
        columns = shared_columns[cell]
        if "broken" in outcome:
            cell_values.left_out.append((columns["log"], outcome["broken"]))
            remedy = "remove it, and it is measured again"
            progress.print_message(
                f"tidy: left out: {columns['log']}: {outcome['broken']}; {remedy}"
            )
            continue
        counted_laps = [lap["lap"] for lap in records[cell].get("laps", ()) if lap["counts"]]
        _add_rows(cell_values, columns, outcome["values"], counted_laps)
    return cell_values


def _build_shared_columns(
    order: blocks.Order, records: dict[blocks.Cell, Any]
) -> dict[blocks.Cell, Fields]:
    """Return ``{cell: columns}``: the columns that all rows of a measured cell share.

    order: the plan's order of cells.
    records: the records of the measured cells.
    `order` numbers the cells, from 1, by their starts, which are almost equal within a block.
    `counts` is "no" for a cell whose block was disturbed, or was measured on several nodes.
    """
    paired_records = {cell: record for cell, record in records.items() if cell[0] in order.paired}
    excluded_blocks = order.disturbed | _find_blocks_on_several_nodes(paired_records)
    cells_by_start = sorted(records, key=lambda cell: records[cell]["started"])
    columns: dict[blocks.Cell, Fields] = {}
    for number, cell in enumerate(cells_by_start, 1):
        is_excluded = cell in paired_records and cell[1:] in excluded_blocks
        columns[cell] = {
            **dict(zip(CELL_COLUMNS, cell, strict=True)),
            "round": records[cell]["round"],
            "order": number,
            "counts": "no" if is_excluded else "yes",
            "log": paths.get_cell_path("raw", *cell, "log"),
        }
    return columns


def _read_records(
    experiment: Plan, cells: list[blocks.Cell], partial: bool
) -> dict[blocks.Cell, Any]:
    """Return ``{cell: record}`` of the measured cells, in the order of `cells`, after checks.

    cells: all planned cells.
    partial: whether cells may be missing.
    Raises UserError if a cell is missing and may not be, or if a record or log contradicts the
    plan.
    """
    measured_cells = validate.list_measured_cells(cells)
    missing_logs = [
        paths.get_cell_path("raw", *cell, "log")
        for cell in sorted(set(cells) - set(measured_cells))
    ]
    if missing_logs and not partial:
        names = validate.join_names(missing_logs)
        raise UserError(f"{len(missing_logs)} of {len(cells)} cells are not measured: {names}")
    if faults := validate.find_record_faults(experiment, measured_cells):
        sentences = [sentence for cell_faults in faults.values() for sentence in cell_faults]
        logs = validate.join_names([paths.get_cell_path("raw", *cell, "log") for cell in faults])
        remedy = "remove what is not as it was measured, and snakemake measures it again"
        raise UserError(*sentences, f"{remedy}: {logs}")
    return {
        cell: validate.load_object(".", paths.get_cell_path("raw", *cell, "json"))
        for cell in measured_cells
    }


def _add_rows(
    cell_values: CellValues,
    shared_columns: Fields,
    values: Sequence[tuple[Sequence[Any], str, list[float]]],
    counted_laps: Sequence[int],
) -> None:
    """Add the rows of a cell to the tables of its workload in `cell_values`.

    shared_columns: the columns that all rows of the cell share.
    values: for each value ``((metric, unit, value, factors), how, lap_values)``, as
    :func:`strata.measure.parsing.parse_log` returns it; `how` is SLICES or WHOLE of
    experiment/plan.py.
    counted_laps: the numbers of the laps that count; empty if all do.
    """
    workload = shared_columns["workload"]
    for (metric, unit, number, factors), how, lap_values in values:
        factor_columns = {
            f"{FACTOR}{name}": format_value(factor) for name, factor in factors.items()
        }
        row = {**shared_columns, **factor_columns, "how": how, "metric": metric}
        cell_values.values[workload].append({**row, "unit": unit, "value": format_value(number)})
        laps = counted_laps or range(1, len(lap_values) + 1)
        # Not strict: a cell that ran in slices and whole has fewer values of each way than laps.
        for lap, value in zip(laps, lap_values, strict=False):
            cell_values.laps[workload].append({**row, "lap": lap, "value": format_value(value)})


def _find_blocks_on_several_nodes(records: dict[blocks.Cell, Fields]) -> set[blocks.Block]:
    """Return the blocks that were measured on several nodes, whose runs form no ratios.

    records: cell → record, of the cells that are in blocks.
    """
    nodes: dict[blocks.Block, set[str | None]] = {}
    for cell, record in records.items():
        nodes.setdefault(cell[1:], set()).add(node.find_node_name(record))
    return {block for block, names in nodes.items() if len(names) > 1}


def list_unplanned_logs(cells: Iterable[blocks.Cell]) -> list[str]:
    """Return the logs in results/raw whose cells are not in the plan; tables leave them out.

    cells: all planned cells.
    The paths are sorted, and relative to the working directory.
    """
    planned_logs = {paths.get_cell_path("raw", *cell, "log") for cell in cells}
    return sorted(set(glob.glob("results/raw/**/*.log", recursive=True)) - planned_logs)


def _print_unplanned_logs(cells: Iterable[blocks.Cell]) -> None:
    """Print which logs in results/raw are left out because their cells are not in the plan."""
    if unplanned := list_unplanned_logs(cells):
        names = validate.join_names(unplanned)
        progress.print_message(f"tidy: left out, since they are not in the plan: {names}")
