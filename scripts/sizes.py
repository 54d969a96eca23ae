"""What sizes change: level, ratio and scatter of each workload of config.yaml from tiny to four times standard.

Makes a project below results/sizes for each size, with the ordinary cells of native and Docker, and writes
docs/sizes.md.  Usage: PYTHONPATH=. sizes.py
"""

import csv
import json
import math
import os
import sys
import time

from beside import ROOT, measure

from strata.base import pages
from strata.experiment import sizes, workload
from strata.host import capacity, observe

BASE = ROOT / "results/sizes"
ENVIRONMENTS = ("native", "docker")
BLOCKS = 4
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
            forms = [one["bytes"] for one in declared["sizes"] if one.get("value") == key and "bytes" in one]
            in_bytes, with_bytes = sizes.SHAPES[forms[0].split("*", 1)[1] if forms else "n"]
            value = standard[key][0] if isinstance(standard[key], list) else standard[key]
            scaled = math.ceil(with_bytes(factor * in_bytes(value)) / rule["multiple"]) * rule["multiple"]
            found[key] = [scaled] if isinstance(standard[key], list) else scaled
    return found


def page_of(size: str) -> dict:
    """The page of an experiment of this size."""
    page = pages.read("config.yaml")
    return {
        "scale": "tiny" if size == "tiny" else "standard",
        "repetitions": BLOCKS,
        "seed": page["seed"],
        "image": page["image"],
        "environments": {name: page["environments"][name] for name in ENVIRONMENTS},
        "workloads": {name: {} if size == "tiny" else size_of(name, FACTORS[size]) for name in page["workloads"]},
    }


def rows_of(size: str, name: str) -> list[str]:
    """A row for each headline series of a workload: its level in native, the ratio of Docker to it, and its scatter."""
    results = BASE / size.replace(" ", "-") / "results"
    plan = json.loads((results / "plan.json").read_text())
    parameters = plan["workloads"][name]["parameters"]
    rules = "broken" if sizes.broken(sizes.of_cell(plan, name, parameters)) else "kept"
    values = ", ".join(plain(parameters[key]) for key in size_of(name, 1))

    def told(table: str, environment: str) -> list[dict]:
        with open(results / f"{table}.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["headline"] == "yes" and row["workload"] == name]
        return [row for row in rows if row["environment"] == environment]

    levels = {row["series"]: float(row["level"]) for row in told("summary", ENVIRONMENTS[0])}
    found = []
    for row in told("comparisons", ENVIRONMENTS[1]):
        ratio, low, high, scatter = (float(row[key] or "nan") for key in ("ratio", "low", "high", "scatter"))
        found.append(
            f"| {row['title']}, {row['metric_label']} | {size}: {values} | {rules} | "
            f"{levels[row['series']]:.3g} {row['unit']} | {100 * ratio:.1f} ± {50 * (high - low) / ratio:.1f} % | "
            f"{100 * scatter:.1f} % |"
        )
    return found


def plain(value: object) -> str:
    """A parameter's value as it is read."""
    return ", ".join(f"{one:,}" for one in (value if isinstance(value, list) else [value]))


def main() -> None:
    """Measure what is missing of all sizes, and write the page."""
    os.chdir(ROOT)
    names = list(pages.read("config.yaml")["workloads"])
    for size in FACTORS:
        print(f"sizes: {size}", file=sys.stderr, flush=True)
        measure(BASE / size.replace(" ", "-"), page_of(size), names)
    host, machine = observe.understand(observe.read_files(observe.FILES)), capacity.facts()
    lines = [
        PAGE.read_text().split(MARK)[0] + MARK,
        f"Measured on {host.get('cpu_model')} with {machine['cpus']} processors and "
        f"{(machine['cache_bytes'] or 0) / 2**20:.0f} MiB of last-level cache, {time.strftime('%Y-%m-%d')}: "
        "native's level, Docker's ratio to it with the half-width of its interval, and the standard deviation of a "
        "block's ratio.",
        "",
        "| workload | size | its rules | level | ratio | scatter |",
        "|---|---|---|---:|---:|---:|",
        *(row for name in names for size in FACTORS for row in rows_of(size, name)),
    ]
    PAGE.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
