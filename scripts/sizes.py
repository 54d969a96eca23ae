"""Measure how sizes change the level, ratio and scatter of each workload of config.yaml.

The sizes are from tiny to four times standard.  Each is measured in a side project below
results/sizes, with the ordinary cells of native and Docker.  The table is written to docs/sizes.md.
A block of every size is measured before the next block of any size, so that all sizes meet the same
changes of the machine.

Usage: PYTHONPATH=. sizes.py
"""

import csv
import json
import math
import os
import random
import statistics
import sys
import time
from pathlib import Path

from side_project import ROOT, measure_side_project

from strata.experiment import sizes, workload
from strata.host import capacity, observe
from strata.util import yaml_files

BASE = ROOT / "results/sizes"
ENVIRONMENTS = ("native", "docker")
BLOCKS = 4
# Number of blocks → Student's t for a 95 % interval of their mean.
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
# Size → its bytes as a multiple of the standard size's; tiny is a separate scale.
FACTORS = {"tiny": 0.0, "half": 0.5, "standard": 1.0, "double": 2.0, "four times": 4.0}
DOCUMENT = ROOT / "docs/sizes.md"
MARK = "<!-- measured -->\n"


def scale_sizes(name: str, factor: float) -> dict:
    """Return the size parameters of a workload at a multiple of the bytes of its standard size.

    name: the name of the workload.
    factor: the multiple, above 0, of this host's standard size.
    The result is parameter → value, as in `workloads` of config.yaml.  It has only the parameters
    with the rule `smallest`.  A list becomes a list of its first value, scaled.  Values are rounded
    up to the multiple that the rule demands.
    """
    standard, _ = workload.resolve_parameters(name, {}, "standard", capacity.read_host_facts())
    declaration = workload.read_declaration(name)
    parameters = {}
    for key, parameter in declaration["parameters"].items():
        rule = parameter.get("standard")
        if not isinstance(rule, dict) or rule["rule"] != "smallest":
            continue
        # How the bytes depend on the value, for example "n^2" if a size rule has "8*n^2".
        shape = "n"
        for size_rule in declaration["sizes"]:
            if size_rule.get("value") == key and "bytes" in size_rule:
                shape = size_rule["bytes"].split("*", 1)[1]
                break
        # Both ignore the constant factor of the size rule, which cancels out here.
        compute_size, find_smallest_value = sizes.SHAPES[shape]
        is_list = isinstance(standard[key], list)
        value = standard[key][0] if is_list else standard[key]
        scaled_value = find_smallest_value(factor * compute_size(value))
        scaled = math.ceil(scaled_value / rule["multiple"]) * rule["multiple"]
        parameters[key] = [scaled] if is_list else scaled
    return parameters


def build_config(size: str, blocks: int) -> dict:
    """Return the content of config.yaml for the experiment with one size.

    The current folder must be the project's: seed, image and workloads come from its config.yaml.
    size: a key of FACTORS.
    blocks: the number of blocks.
    """
    config = yaml_files.read_yaml_mapping("config.yaml")
    return {
        "scale": "tiny" if size == "tiny" else "standard",
        "repetitions": blocks,
        "seed": config["seed"],
        "image": config["image"],
        "environments": {name: config["environments"][name] for name in ENVIRONMENTS},
        "workloads": {
            name: {} if size == "tiny" else scale_sizes(name, FACTORS[size])
            for name in config["workloads"]
        },
    }


def get_project_folder(size: str) -> Path:
    """Return the path of the side project that measures one size; it may not exist yet.

    size: a key of FACTORS.
    """
    return BASE / size.replace(" ", "-")


def read_table(path: Path) -> list[dict]:
    """Return the rows of a CSV table, each as a mapping of column names to texts."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def read_headline_rows(size: str, name: str, table: str, environment: str) -> list[dict]:
    """Return the rows of a workload's headline metrics in a table of results, as texts.

    analysis/tables.R has written the table; docs/files.md describes its columns.
    size: a key of FACTORS.
    name: the name of the workload.
    table: the name of the table, such as "summary".
    environment: the environment of the rows.
    """
    rows = read_table(get_project_folder(size) / f"results/{table}.csv")
    expected = {"headline": "yes", "workload": name, "environment": environment}
    return [row for row in rows if expected.items() <= row.items()]


def read_values_by_block(size: str, name: str, metric: str) -> dict[str, float]:
    """Return native's value of a headline metric in each block that counts, by the block's number.

    The number of a block is its repetition, as text.
    size: a key of FACTORS.
    name: the name of the workload.
    metric: the name of the metric, which must have one series.
    """
    summary = read_headline_rows(size, name, "summary", ENVIRONMENTS[0])
    [series] = [row for row in summary if row["metric"] == metric]
    rows = read_table(get_project_folder(size) / f"results/tidy/{name}.csv")
    factors = [key for key in rows[0] if key.startswith("factor_")]
    expected = {key: series[key] for key in ("environment", "metric", *factors)}
    expected["counts"] = "yes"
    matching = [row for row in rows if expected.items() <= row.items()]
    return {row["repetition"]: float(row["value"]) for row in matching}


def format_share_of_standard(size: str, name: str, metric: str) -> str:
    """Return native's value in per cent of its value at the standard size, with a 95 % interval.

    size: a key of FACTORS.
    name: the name of the workload.
    metric: the name of a headline metric.
    Returns for example "98.7 ± 1.2 % (n = 3)", or "not available" if fewer than two blocks have
    values of both sizes.
    The share is the geometric mean over the blocks that both sizes have.
    """
    if FACTORS[size] == 1:
        return "100 %"
    values = read_values_by_block(size, name, metric)
    standard_values = read_values_by_block("standard", name, metric)
    common_blocks = sorted(values.keys() & standard_values.keys())
    logarithms = [math.log(values[block] / standard_values[block]) for block in common_blocks]
    count = len(logarithms)
    # STUDENT begins with two blocks.
    if count < min(STUDENT):
        return f"not available{format_missing_blocks(count)}"
    mean = math.exp(statistics.mean(logarithms))
    half_width = STUDENT[count] * statistics.stdev(logarithms) / math.sqrt(count)
    # Half of the interval's width on the scale of the ratios, not of their logarithms.
    half_width_of_ratio = mean * math.sinh(half_width)
    blocks = format_missing_blocks(count)
    return f"{100 * mean:.1f} ± {100 * half_width_of_ratio:.1f} %{blocks}"


def format_missing_blocks(count: int) -> str:
    """Return a note on the number of blocks if some blocks did not count, else an empty text."""
    return "" if count == BLOCKS else f" (n = {count})"


def format_rows(size: str, name: str) -> list[str]:
    """Return a Markdown row for each headline metric of a workload at one size.

    size: a key of FACTORS; its side project must have its tables.
    name: the name of the workload.
    The columns must have the order of the header in :func:`main`: workload and metric, size,
    whether the size rules hold, native's value, its share of the one at the standard size, Docker's
    ratio and its scatter.
    """
    plan = json.loads((get_project_folder(size) / "results/plan.json").read_text())
    parameters = plan["workloads"][name]["parameters"]
    is_broken = sizes.has_broken_rule(sizes.evaluate_planned_size_rules(plan, name, parameters))
    values = ", ".join(format_value(parameters[key]) for key in scale_sizes(name, 1))
    summary = read_headline_rows(size, name, "summary", ENVIRONMENTS[0])
    levels = {row["series"]: float(row["level"]) for row in summary}
    lines = []
    for row in read_headline_rows(size, name, "comparisons", ENVIRONMENTS[1]):
        # A field of the table is empty if there is no such number.
        numbers = {key: float(row[key] or "nan") for key in ("ratio", "low", "high", "scatter")}
        half_width = (numbers["high"] - numbers["low"]) / 2 / numbers["ratio"]
        share = format_share_of_standard(size, name, row["metric"])
        lines.append(
            f"| {row['title']}, {row['metric_label']} | {size}: {values} | "
            f"{'broken' if is_broken else 'kept'} | "
            f"{levels[row['series']]:.3g} {row['unit']} | {share} | "
            f"{100 * numbers['ratio']:.1f} ± {100 * half_width:.1f} %"
            f"{format_missing_blocks(int(row['n']))} | {100 * numbers['scatter']:.1f} % |"
        )
    return lines


def format_value(value: object) -> str:
    """Return the number of a parameter, or its list of numbers, with thousands separators."""
    numbers = value if isinstance(value, list) else [value]
    return ", ".join(f"{number:,}" for number in numbers)


def main() -> None:
    """Measure the missing cells of all sizes, and replace the table in docs/sizes.md.

    The text of the document before MARK is kept.  A repeated call measures only missing cells.
    """
    os.chdir(ROOT)
    names = list(yaml_files.read_yaml_mapping("config.yaml")["workloads"])
    for blocks in range(1, BLOCKS + 1):
        for size in random.Random(blocks).sample([*FACTORS], len(FACTORS)):
            print(f"sizes: block {blocks} of {BLOCKS}, {size}", file=sys.stderr, flush=True)
            measure_side_project(get_project_folder(size), build_config(size, blocks), names)
    host = observe.parse_system_facts(observe.read_files(observe.FILES))
    machine = capacity.read_host_facts()
    lines = [
        DOCUMENT.read_text().split(MARK)[0] + MARK,
        f"Measured on {host.get('cpu_model')} with {machine['cpus']} processors and "
        f"{(machine['cache_bytes'] or 0) / 2**20:.0f} MiB of last-level caches, "
        f"{time.strftime('%Y-%m-%d')}: native's level, its share of the level at the standard size "
        "in the same block, Docker's ratio to it "
        f"(n = {BLOCKS}, with half-widths of 95 % intervals), and the standard deviation of a "
        "block's ratio.",
        "",
        "| workload | size | its rules | level | of standard | ratio | scatter |",
        "|---|---|---|---:|---:|---:|---:|",
    ]
    for name in names:
        for size in FACTORS:
            lines += format_rows(size, name)
    DOCUMENT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
