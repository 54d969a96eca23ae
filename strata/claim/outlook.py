"""Print what would decide the ratios and claims of a run: ``strata plan --decide``."""

import contextlib
import json
import math
import os
from collections.abc import Iterator

from strata.archive import compare
from strata.experiment import config
from strata.results import tidy
from strata.util import paths, programs, progress
from strata.util.constants import get_result_path
from strata.util.data_types import Fields
from strata.util.errors import UserError
from strata.util.progress import format_duration
from strata.util.units import parse_quantity

# The half-width that is wanted unless the command or the configuration names one.
DEFAULT_WIDTH = "2%"
# The largest number of blocks of a run unless the configuration sets one.
MAX_BLOCKS = 10_000


def print_outlook(side: str, width: str | None, overrides: Fields) -> None:
    """Print for each ratio and claim of a run what would decide it; measure nothing.

    side: the path of an archive, a project or a folder of results.
    width: the half-width to reach, such as ``1.5%``; None or "" for the target of config.yaml, or
    DEFAULT_WIDTH.
    overrides: values that replace values of config.yaml.  Its `repetitions` give the target, the
    largest number of blocks, and the budget.
    Raises UserError for a wrong width, and if the run holds no values.
    The last column of the table is the smallest loss that the budget would show.
    """
    repetitions = config.read_config(overrides)["repetitions"]
    if not isinstance(repetitions, dict):
        # A fixed number of blocks has neither target nor budget.
        repetitions = {}
    width = width or repetitions.get("target", DEFAULT_WIDTH)
    share = compare.parse_share(width, "--width")
    budget_seconds = parse_quantity(repetitions.get("budget"))
    script = os.path.join(paths.PROJECT, "analysis/outlook.R")
    budget_argument = repr(budget_seconds) if budget_seconds else "NA"
    open_results = compare.open_results(side, needs_tables=False)
    with open_results as results, _open_value_tables(results) as tables:
        text = programs.run_r(
            script, os.path.abspath(results), tables, repr(share), budget_argument
        )
    # The rows are those that forecast_ratios and forecast_claims of analysis/forecast.R return.
    outlook: dict[str, list[Fields]] = json.loads(text)
    max_blocks = repetitions.get("max", MAX_BLOCKS)
    table = [_format_ratio_cells(row, max_blocks) for row in outlook["ratios"]]
    if table:
        loss_heading = f"{repetitions['budget']} would show" if budget_seconds else ""
        heading = ("ratio to native", "n", "now", f"to ± {width}", "to a verdict", loss_heading)
        progress.print_table([heading, *table])
    else:
        progress.print_line("there is no ratio to native yet: measure native and another one")
    _print_claims(outlook["claims"], max_blocks)


@contextlib.contextmanager
def _open_value_tables(folder: str) -> Iterator[str]:
    """Yield the absolute path of a folder that holds the tables tidy/ and laps/ of results.

    folder: a folder of results.
    Raises UserError if the folder is not ``results`` and has no tables.
    For the folder ``results`` of the working directory, new tables are made from the logs in a
    temporary folder, since existing tables may be older than the logs.
    """
    if os.path.realpath(folder) == os.path.realpath("results"):
        with programs.create_temporary_folder("outlook") as tables:
            tidy.write_value_tables(tidy.parse_cells(partial=True), tables)
            yield tables
        return
    # The folder of tables is the same for every workload.
    tidy_folder = os.path.dirname(
        os.path.relpath(get_result_path("tidy", workload="any"), "results")
    )
    if not os.path.isdir(os.path.join(folder, tidy_folder)):
        raise UserError(
            f"{folder}: holds no tables yet: type `snakemake --cores 1 results/comparisons.csv` "
            "in its project"
        )
    yield os.path.abspath(folder)


def _format_ratio_cells(row: Fields, max_blocks: int) -> tuple[str, ...]:
    """Return the cells of a ratio's row in the table that :func:`print_outlook` prints.

    row: an entry of ``ratios`` of analysis/outlook.R (forecast_ratios); unknown numbers are None.
    max_blocks: the largest number of blocks of a run.
    Returns for example ``("docker · pxz", "8", "98.7 % [97.9, 99.5]", "12 more blocks, 36 s",
    "equivalent", "a loss of 0.8 %")``, in the order of the table's heading.
    """
    interval = "no interval"
    if row["low"] is not None:
        low, high = (f"{100 * row[key]:.1f}" for key in ("low", "high"))
        interval = f"{100 * row['ratio']:.1f} % [{low}, {high}]"
    verdict = row["verdict"]
    if verdict not in ("equivalent", "different"):
        verdict = _describe_blocks(row, "verdict_more", max_blocks)
    loss = "" if row["difference"] is None else f"a loss of {100 * row['difference']:.1f} %"
    return (
        f"{row['environment']} · {row['series']}",
        f"{row['n']:.0f}",
        interval,
        _describe_blocks(row, "width_more", max_blocks),
        verdict,
        loss,
    )


def _describe_blocks(row: Fields, key: str, max_blocks: int) -> str:
    """Return how many further blocks are needed, and how long they take, as a phrase.

    row: a row of a ratio or claim; `n` is the number of measured blocks, and `seconds` the duration
    of one block, or None if it is not known.
    key: the key of the number of further blocks in the row; the number is None if not known.
    max_blocks: the largest number of blocks of a run.
    Returns for example "12 more blocks, 36 s", "reached", "not known yet" or "not here: over 300
    blocks".
    """
    more_blocks = row[key]
    if more_blocks == 0:
        return "reached"
    # If a ratio has an interval, only a width that no number of blocks reaches has no number.
    is_out_of_reach = key == "width_more" and row["low"] is not None
    if more_blocks is None and not is_out_of_reach:
        return "not known yet"
    if more_blocks is None or row["n"] + more_blocks > max_blocks:
        return f"not here: over {max_blocks} blocks"
    blocks = f"{more_blocks:.0f} more block{'s' if more_blocks != 1 else ''}"
    if row["seconds"] is None:
        return blocks
    return f"{blocks}, {format_duration(math.ceil(more_blocks) * row['seconds'])}"


def _print_claims(rows: list[Fields], max_blocks: int) -> None:
    """Print a line for each measured claim, then the other claims, grouped by reason.

    rows: the ``claims`` of analysis/outlook.R (forecast_claims).  A claim may have several rows.
    max_blocks: the largest number of blocks of a run.
    A line is for example "ibm-pxz-docker-similar: undecided; 12 more blocks, 36 s".  Claims about
    workloads that are not in the experiment are only counted.
    """
    # Reason → the IDs of the claims that were not tested for this reason.
    untested_ids: dict[str, list[str]] = {}
    # A claim counts once, also if it has several rows.
    ids_about_other_workloads = {row["id"] for row in rows if not row["planned"]}
    for row in rows:
        if row["id"] in ids_about_other_workloads:
            continue
        if row["verdict"] == "not tested":
            untested_ids.setdefault(row["reason"], []).append(row["id"])
        else:
            progress.print_line(f"{row['id']}: {_describe_claim_state(row, max_blocks)}")
    for reason, ids in untested_ids.items():
        progress.print_line(f"not decided here ({reason}): {', '.join(ids)}")
    if ids_about_other_workloads:
        progress.print_line(
            f"published claims about other workloads: {len(ids_about_other_workloads)}"
        )


def _describe_claim_state(row: Fields, max_blocks: int) -> str:
    """Return the verdict on a claim and, if it is undecided, the blocks that would decide it.

    row: the row of a tested claim, as :func:`_print_claims` takes it.
    max_blocks: the largest number of blocks of a run.
    Returns for example "reproduced", or "undecided (…); 12 more blocks, 36 s".
    """
    state: str = row["verdict"]
    if state not in ("undecided", "tested in part"):
        return state
    if row["because"]:
        state += f" ({row['because']})"
    # The `seconds` of a claim are those of all its further blocks, and not of one block.
    block_seconds = None
    if row["more"] and row["seconds"] is not None:
        block_seconds = row["seconds"] / row["more"]
    row_with_block_seconds = {**row, "seconds": block_seconds}
    return f"{state}; {_describe_blocks(row_with_block_seconds, 'more', max_blocks)}"
