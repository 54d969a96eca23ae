"""What sizes change: level, ratio and scatter of each workload of config.yaml from tiny to four times standard.

Makes a project below results/sizes for each size, with the ordinary cells of native and Docker, and writes
docs/sizes.md.  A block of every size is measured before the next block of any, so that sizes are compared as
environments are.  Usage: PYTHONPATH=. sizes.py
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

from side_project import ROOT, measure

from strata.experiment import sizes, workload
from strata.host import capacity, observe
from strata.util import yaml_files

BASE = ROOT / "results/sizes"
ENVIRONMENTS = ("native", "docker")
BLOCKS = 4
# By the number of blocks: how many standard errors to either side hold a mean in 95 of 100 (Student's t).
STUDENT = {2: 12.706, 3: 4.303, 4: 3.182}
# Times the bytes of the standard size.
FACTORS = {"tiny": 0.0, "half": 0.5, "standard": 1.0, "double": 2.0, "four times": 4.0}
PAGE = ROOT / "docs/sizes.md"
MARK = "<!-- measured -->\n"


def size_of(name: str, factor: float) -> dict:
    """The parameters of a workload at so many times the bytes of its standard size."""
    standard, _ = workload.resolve(name, {}, "standard", capacity.facts())
    declared, found = workload.load(name), {}
    for key, entry in declared["parameters"].items():
        rule = entry.get("standard")
        if isinstance(rule, dict) and rule["rule"] == "smallest":
            forms = [
                one["bytes"]
                for one in declared["sizes"]
                if one.get("value") == key and "bytes" in one
            ]
            in_bytes, with_bytes = sizes.SHAPES[forms[0].split("*", 1)[1] if forms else "n"]
            value = standard[key][0] if isinstance(standard[key], list) else standard[key]
            scaled = (
                math.ceil(with_bytes(factor * in_bytes(value)) / rule["multiple"])
                * rule["multiple"]
            )
            found[key] = [scaled] if isinstance(standard[key], list) else scaled
    return found


def page_of(size: str, blocks: int) -> dict:
    """The page of an experiment of this size, of so many blocks."""
    page = yaml_files.read("config.yaml")
    return {
        "scale": "tiny" if size == "tiny" else "standard",
        "repetitions": blocks,
        "seed": page["seed"],
        "image": page["image"],
        "environments": {name: page["environments"][name] for name in ENVIRONMENTS},
        "workloads": {
            name: {} if size == "tiny" else size_of(name, FACTORS[size])
            for name in page["workloads"]
        },
    }


def folder_of(size: str) -> Path:
    """Where a size is measured."""
    return BASE / size.replace(" ", "-")


def read(path: Path) -> list[dict]:
    """A table's rows."""
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def told(size: str, name: str, table: str, environment: str) -> list[dict]:
    """The rows of a workload's headline series in a table."""
    rows = [
        row for row in read(folder_of(size) / f"results/{table}.csv") if row["headline"] == "yes"
    ]
    return [row for row in rows if (row["workload"], row["environment"]) == (name, environment)]


def by_block(size: str, name: str, metric: str) -> dict[str, float]:
    """Native's value of a headline series in each block."""
    (series,) = (
        row for row in told(size, name, "summary", ENVIRONMENTS[0]) if row["metric"] == metric
    )
    rows = read(folder_of(size) / f"results/tidy/{name}.csv")
    keys = ["environment", "metric", *(name for name in rows[0] if name.startswith("factor_"))]
    same = {key: series[key] for key in keys} | {"counts": "yes"}
    return {
        row["repetition"]: float(row["value"])
        for row in rows
        if {key: row[key] for key in same} == same
    }


def of_standard(size: str, name: str, metric: str) -> str:
    """Native's level as a share of that at the standard size: the mean of the blocks' logarithms, in per cent."""
    if FACTORS[size] == 1:
        return "100 %"
    here, standard = by_block(size, name, metric), by_block("standard", name, metric)
    shares = [
        math.log(here[block] / standard[block]) for block in sorted(here.keys() & standard.keys())
    ]
    if len(shares) < min(STUDENT):
        return f"not available{of_blocks(len(shares))}"
    mean, half = (
        statistics.mean(shares),
        STUDENT[len(shares)] * statistics.stdev(shares) / math.sqrt(len(shares)),
    )
    return f"{100 * math.exp(mean):.1f} ± {100 * math.exp(mean) * math.sinh(half):.1f} %{of_blocks(len(shares))}"


def of_blocks(number: int) -> str:
    """The number of blocks, where some did not count."""
    return "" if number == BLOCKS else f" (n = {number})"


def rows_of(size: str, name: str) -> list[str]:
    """A row for each headline series of a workload: its level in native, the ratio of Docker to it, and its scatter."""
    plan = json.loads((folder_of(size) / "results/plan.json").read_text())
    parameters = plan["workloads"][name]["parameters"]
    rules = "broken" if sizes.broken(sizes.of_cell(plan, name, parameters)) else "kept"
    values = ", ".join(plain(parameters[key]) for key in size_of(name, 1))

    levels = {
        row["series"]: float(row["level"]) for row in told(size, name, "summary", ENVIRONMENTS[0])
    }
    found = []
    for row in told(size, name, "comparisons", ENVIRONMENTS[1]):
        ratio, low, high, scatter = (
            float(row[key] or "nan") for key in ("ratio", "low", "high", "scatter")
        )
        found.append(
            f"| {row['title']}, {row['metric_label']} | {size}: {values} | {rules} | "
            f"{levels[row['series']]:.3g} {row['unit']} | {of_standard(size, name, row['metric'])} | "
            f"{100 * ratio:.1f} ± {50 * (high - low) / ratio:.1f} %{of_blocks(int(row['n']))} | "
            f"{100 * scatter:.1f} % |"
        )
    return found


def plain(value: object) -> str:
    """A parameter's value as it is read."""
    return ", ".join(f"{one:,}" for one in (value if isinstance(value, list) else [value]))


def main() -> None:
    """Measure what is missing of all sizes, and write the page."""
    os.chdir(ROOT)
    names = list(yaml_files.read("config.yaml")["workloads"])
    for blocks in range(1, BLOCKS + 1):
        for size in random.Random(blocks).sample([*FACTORS], len(FACTORS)):
            print(f"sizes: block {blocks} of {BLOCKS}, {size}", file=sys.stderr, flush=True)
            measure(folder_of(size), page_of(size, blocks), names)
    host, machine = observe.understand(observe.read_files(observe.FILES)), capacity.facts()
    lines = [
        PAGE.read_text().split(MARK)[0] + MARK,
        f"Measured on {host.get('cpu_model')} with {machine['cpus']} processors and "
        f"{(machine['cache_bytes'] or 0) / 2**20:.0f} MiB of last-level caches, {time.strftime('%Y-%m-%d')}: "
        "native's level, its share of that at the standard size in the same block, Docker's ratio to it "
        f"(n = {BLOCKS}, with half-widths of 95 % intervals), and the standard deviation of a block's ratio.",
        "",
        "| workload | size | its rules | level | of standard | ratio | scatter |",
        "|---|---|---|---:|---:|---:|---:|",
        *(row for name in names for size in FACTORS for row in rows_of(size, name)),
    ]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
