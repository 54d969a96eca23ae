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
    width: the half-width that is wanted; None: the target of the configuration.
    overrides: values that replace values of config.yaml.  Its `repetitions` give the target, the
    largest number of blocks, and the budget; the smallest loss that this budget would show is
    printed.
    Raises UserError for a wrong width, and if the run holds no values.
    """
    rule = config.read_config(overrides)["repetitions"]
    # A fixed number of blocks has neither target nor budget.
    rule = rule if isinstance(rule, dict) else {}
    width = width or rule.get("target", DEFAULT_WIDTH)
    share = compare.parse_share(width, "--width")
    budget = parse_quantity(rule.get("budget"))
    script = os.path.join(paths.PROJECT, "analysis/outlook.R")
    seconds = repr(budget) if budget else "NA"
    results = compare.open_results(side, needs_tables=False)
    with results as folder, _open_value_tables(folder) as tables:
        text = programs.run_r(script, os.path.abspath(folder), tables, repr(share), seconds)
    # As analysis/forecast.R: {"ratios": [of forecast_ratios], "claims": [of forecast_claims]}
    outlook = json.loads(text)
    max_blocks = rule.get("max", MAX_BLOCKS)
    ratios = [_format_ratio_cells(row, max_blocks) for row in outlook["ratios"]]
    if ratios:
        by_budget = f"{rule['budget']} would show" if budget else ""
        progress.print_table(
            [("ratio to native", "n", "now", f"to ± {width}", "to a verdict", by_budget), *ratios]
        )
    else:
        progress.print_line("there is no ratio to native yet: measure native and another one")
    _print_claims(outlook["claims"], max_blocks)


@contextlib.contextmanager
def _open_value_tables(folder: str) -> Iterator[str]:
    """Yield the absolute path of the folder that holds the tables tidy/ and laps/ of results.

    folder: a folder of results.  If it is the one of the working directory, new tables are made
    from the logs in a temporary folder, since existing tables may be older than the logs.
    Raises UserError if another folder has no tables.
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
    """
    now = "no interval"
    if row["low"] is not None:
        low, high = (f"{100 * row[end]:.1f}" for end in ("low", "high"))
        now = f"{100 * row['ratio']:.1f} % [{low}, {high}]"
    verdict = row["verdict"]
    if verdict not in ("equivalent", "different"):
        verdict = _describe_blocks(row, "verdict_more", max_blocks)
    loss = "" if row["difference"] is None else f"a loss of {100 * row['difference']:.1f} %"
    return (
        f"{row['environment']} · {row['series']}",
        f"{row['n']:.0f}",
        now,
        _describe_blocks(row, "width_more", max_blocks),
        verdict,
        loss,
    )


def _describe_blocks(row: Fields, key: str, max_blocks: int) -> str:
    """Return how many further blocks are needed, and how long these take, as a text.

    row: `n` is the number of measured blocks, and `seconds` the time of one block, or None.
    key: the key of the number of further blocks in the row; the number is None if not known.
    max_blocks: the largest number of blocks of a run.
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

    Claims about workloads that are not in the experiment are only counted.
    rows: the ``claims`` of analysis/outlook.R (forecast_claims).
    max_blocks: the largest number of blocks of a run.
    """
    # Reason → the IDs of the claims that were not tested for this reason.
    untested: dict[str, list[str]] = {}
    foreign = {row["id"] for row in rows if not row["planned"]}
    for row in rows:
        if row["id"] in foreign:
            continue
        if row["verdict"] == "not tested":
            untested.setdefault(row["reason"], []).append(row["id"])
            continue
        state = row["verdict"]
        if state in ("undecided", "tested in part"):
            if row["because"]:
                state += f" ({row['because']})"
            # The seconds of a claim are those of all its further blocks.
            block_seconds = None
            if row["more"] and row["seconds"] is not None:
                block_seconds = row["seconds"] / row["more"]
            claim = {**row, "seconds": block_seconds}
            state += f"; {_describe_blocks(claim, 'more', max_blocks)}"
        progress.print_line(f"{row['id']}: {state}")
    for reason, ids in untested.items():
        progress.print_line(f"not decided here ({reason}): {', '.join(ids)}")
    if foreign:
        progress.print_line(f"published claims about other workloads: {len(foreign)}")
