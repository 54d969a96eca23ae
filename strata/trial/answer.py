"""The answer of an experiment: its tables as lines for a terminal, as JSON and as CSV."""

import csv
import json
import os
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from strata.environments.common import engine
from strata.experiment import blocks
from strata.trial.request import REFERENCE, WORK_FOLDER, WORKLOAD, Request
from strata.util import paths
from strata.util.constants import result_path
from strata.util.data_types import Fields, Plan
from strata.util.files import read_json, write_csv, write_text
from strata.util.progress import format_duration

# The columns of the answer's rows, and of its CSV.
COLUMNS = (
    "metric", "unit", "environment", "label", "n", "level", "level_low", "level_high", "ratio",
    "low", "high", "verdict", "direction", "more", "reason",
)  # fmt: skip


def read_table(folder: str, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of an experiment; none if the table is not there."""
    path = os.path.join(folder, result_path(name))
    if not os.path.exists(path):
        return []
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def collect_rows(folder: str, experiment: Plan) -> list[Fields]:
    """Return the answer: a row for each metric and environment, the deciding metrics first.

    Numbers are those of summary.csv and comparisons.csv; an unknown one is None.
    `reason` says why an environment has no value; `more` is how many blocks would decide.
    """
    compared = {
        (row["metric"], row["environment"]): row for row in read_table(folder, "comparisons")
    }
    measured = read_table(folder, "summary")
    rows: list[Fields] = []
    for row in sorted(measured, key=lambda row: row["headline"] != "yes"):
        comparison = compared.get((row["metric"], row["environment"]), {})
        numbers = {key: _number(row[key]) for key in ("level", "level_low", "level_high")}
        numbers |= {key: _number(comparison.get(key, "")) for key in ("ratio", "low", "high")}
        rows.append(
            {
                **{key: row[key] for key in ("metric", "unit", "environment", "label")},
                "n": int(comparison.get("n") or row["n"]),
                **numbers,
                "verdict": comparison.get("verdict", ""),
                "direction": comparison.get("direction", ""),
                "more": _number(comparison.get("more", "")),
                "reason": comparison.get("why", ""),
                "headline": row["headline"] == "yes",
            }
        )
    return rows


def explain_missing(folder: str, experiment: Plan, rows: Sequence[Fields]) -> dict[str, str]:
    """Return the reason, by its name, for each environment of the plan that has no value."""
    present = {row["environment"] for row in rows}
    reasons = {}
    for name, entry in experiment["environments"].items():
        if name in present:
            continue
        if not entry["available"]:
            reasons[name] = f"not available: {entry['reason']}"
            continue
        reasons[name] = "not measured"
        for kind in ("failed", "raw"):
            path = os.path.join(folder, f"results/{kind}/{name}/{WORKLOAD}")
            for record in sorted(os.listdir(path)) if os.path.isdir(path) else ():
                facts = read_json(os.path.join(path, record)) or {}
                if "error" in facts:
                    reasons[name] = shorten_error(facts["error"])
                elif "cannot" in facts:
                    reasons[name] = f"cannot run it: {shorten_error(facts['cannot']['reason'])}"
    return reasons


def shorten_error(error: str) -> str:
    """Return a cell's error without the words that a command's author need not know."""
    text = " ".join(error.split()).removeprefix("its parser refuses the log: ")
    for step in ("run", "warmup", "prepare"):
        text = text.removeprefix(f"its {step} step ended with exit code 3; it printed last: ")
    # The log holds lines of the harness, too.
    return " / ".join(part for part in text.split(" / ") if not part.startswith("{"))


def _number(text: str) -> float | None:
    return float(text) if text else None


def format_level(value: float, unit: str) -> str:
    """Return a value with three digits and its unit; seconds and bytes with the fitting prefix."""
    scales = {
        "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")),
        "MB": ((1e3, "GB"), (1.0, "MB"), (1e-3, "kB")),
    }
    factor, shown = next(
        (pair for pair in scales.get(unit, ((1.0, unit),)) if value >= pair[0]),
        scales.get(unit, ((1.0, unit),))[-1],
    )
    scaled = value / factor
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:,.{digits}f} {shown}"


def format_verdict(row: Fields, margin: float, seconds: float) -> str:
    """Return what is known of a ratio, in plain words.

    margin: the smallest difference that matters.  seconds: that one more block takes.
    """
    share = f"{100 * margin:g} %"
    if row["verdict"] == "different":
        return f"{row['direction']} by more than {share}"
    if row["verdict"] == "equivalent":
        return f"no difference of {share} or more"
    if row["low"] is None:
        return row["reason"] or "not decided"
    if row["more"] is None:
        return f"undecided at {share}"
    if row["more"] > 5000:
        return f"undecided at {share}: too close to it"
    needed = format_duration(row["more"] * seconds)
    return f"undecided at {share}: about {row['more']:.0f} more blocks ({needed}) would decide"


def format_lines(
    rows: Sequence[Fields], missing: dict[str, str], margin: float, seconds: float
) -> list[str]:
    """Return the answer as lines of a terminal.

    rows: as of :func:`collect_rows`.  missing: reasons by the names of environments.
    margin: the smallest difference that matters.  seconds: that one more block takes.
    """
    lines = []
    width = max(map(len, [*(row["environment"] for row in rows), *missing]), default=0)
    metrics = list(dict.fromkeys(row["metric"] for row in rows if row["headline"]))
    for metric in metrics:
        of_metric = [row for row in rows if row["metric"] == metric]
        if len(metrics) > 1 or metric != "time":
            lines.append(f"{metric}:")
        for row in of_metric:
            name = f"  {row['environment']:{width}}  "
            level = format_level(row["level"], row["unit"])
            if row["environment"] == REFERENCE or row["ratio"] is None:
                reason = "" if row["environment"] == REFERENCE else "  not compared with native"
                lines.append(f"{name}{level}{reason}")
                continue
            interval = ""
            if row["low"] is not None:
                interval = f" [{100 * row['low']:.1f}, {100 * row['high']:.1f}]"
            ratio = f"{100 * row['ratio']:.1f} % of native's speed{interval}"
            count = f"(n = {row['n']})"
            lines.append(f"{name}{ratio:43}  {format_verdict(row, margin, seconds)} {count}")
    for name, reason in missing.items():
        lines.append(f"  {name:{width}}  {reason}")
    return lines + _format_resources(rows, width)


def _format_resources(rows: Sequence[Fields], width: int) -> list[str]:
    """Return a line for each environment with its CPU time and peak memory."""
    values: dict[str, dict[str, str]] = {}
    for row in rows:
        if row["metric"] in ("cpu", "user", "system", "memory"):
            level = format_level(row["level"], row["unit"])
            values.setdefault(row["environment"], {})[row["metric"]] = level
    lines = []
    for name, shown in values.items():
        if len(shown) == 4:
            lines.append(
                f"  {name:{width}}  CPU {shown['cpu']} (user {shown['user']}, system "
                f"{shown['system']}), peak memory {shown['memory']}"
            )
    return lines


def block_seconds(folder: str, experiment: Plan) -> float:
    """Return the mean seconds that a block of an experiment took."""
    order = blocks.Order(experiment, os.path.join(folder, "results"))
    seconds: dict[int, float] = {}
    for cell in order.cells():
        record = read_json(os.path.join(folder, paths.cell_path("raw", *cell, "json"))) or {}
        seconds[cell[2]] = seconds.get(cell[2], 0.0) + record.get("seconds", 0.0)
    known = list(filter(None, seconds.values()))
    return sum(known) / len(known) if known else 0.0


def describe_disturbed(folder: str) -> str:
    """Return a sentence on runs that other programs disturbed; empty if there were none."""
    runs = read_table(folder, "runs")
    disturbed = {row["repetition"] for row in runs if row["flags"]}
    if not disturbed:
        return ""
    count = len({row["repetition"] for row in runs})
    return (
        f"  {len(disturbed)} of {count} blocks were disturbed by other programs: a quieter machine "
        "gives narrower intervals"
    )


def write_files(
    rows: Sequence[Fields], facts: Fields, json_path: str | None, csv_path: str | None
) -> None:
    """Write the answer as JSON and CSV where paths are given; ``-`` is standard output."""
    shown = [{key: row[key] for key in COLUMNS} for row in rows]
    if json_path:
        text = json.dumps({**facts, "rows": shown}, indent=1) + "\n"
        if json_path == "-":
            sys.stdout.write(text)
        else:
            write_text(json_path, text)
    if csv_path:
        cells = [["" if row[key] is None else row[key] for key in COLUMNS] for row in shown]
        write_csv(csv_path, COLUMNS, cells)


def format_by_hand(request: Request, experiment: Plan, name: str) -> str:
    """Return the command by which a person runs the command in an environment.

    name: of the environment.  It is empty for machines, which are up for a measurement alone.
    """
    layers = experiment["environments"][name]["layers"]
    kinds = [kind for layer in layers for kind in layer]
    image: Any = {"recipe": experiment["image"]["recipe"]}
    copy = ""
    if request.files:
        copy = f"mkdir -p /tmp/try && cp -r {shlex.join(request.files)} /tmp/try && "
    if kinds == ["docker"]:
        options: Fields = layers[0]["docker"]
        argv = ["docker", "run", "--rm", "-it", "--network", options["network"]]
        if "runtime" in options:
            argv += ["--runtime", options["runtime"]]
        argv += options.get("options", [])
        if request.files:
            argv += ["--volume", f"/tmp/try:{WORK_FOLDER}", "--workdir", WORK_FOLDER]
        tag = request.image or engine.tag(image)
        return f"{copy}{shlex.join([*argv, tag])} {request.shown}"
    if kinds == ["chroot"]:
        tree = os.path.join(paths.home_folder(), "images", image["recipe"], "tree")
        if not request.files:
            return f"sudo chroot {tree} {request.shown}"
        inner = shlex.quote(f"cd /data && {request.shown}")
        return (
            f"{copy}sudo mount --bind /tmp/try {tree}/data && sudo chroot {tree} sh -c {inner}; "
            f"sudo umount {tree}/data"
        )
    return ""
