"""What sizes change: level, ratio and scatter of each workload of config.yaml from tiny to four times standard.

Makes a project below results/sizes for each size, with the ordinary cells of native and Docker, and writes
docs/sizes.md.  Usage: PYTHONPATH=. sizes.py [--repetitions 4] [--minutes 30]; no size is begun after so many minutes.
"""

import argparse
import csv
import json
import math
import os
import sys
import time
from pathlib import Path

from beside import ROOT, measure

from strata.base import pages
from strata.experiment import sizes, workload
from strata.host import capacity, observe

BASE = ROOT / "results/sizes"
ENVIRONMENTS = ("native", "docker")
# Times the bytes of the standard size, in the order of measurement.
FACTORS = {"standard": 1.0, "tiny": 0.0, "half": 0.5, "double": 2.0, "four times": 4.0}
SHOWN = ("tiny", "half", "standard", "double", "four times")
PAGE = ROOT / "docs/sizes.md"
MARK = "<!-- measured -->\n"


def size_of(name: str, factor: float) -> dict:
    """The parameters of a workload at so many times the bytes of its standard size."""
    machine, found = capacity.facts(), {}
    standard, _ = workload.resolve(name, {}, "standard", machine)
    declared = workload.load(name)
    for key, entry in declared["parameters"].items():
        rule = entry.get("standard")
        if isinstance(rule, dict) and rule["rule"] == "smallest":
            forms = [one["bytes"] for one in declared["sizes"] if one.get("value") == key and "bytes" in one]
            times, shape = (forms or ["1*n"])[0].split("*", 1)
            value = standard[key][0] if isinstance(standard[key], list) else standard[key]
            held = factor * sizes.in_bytes(f"{times}*{shape}", value)
            scaled = math.ceil(sizes.SHAPES[shape][1](held / int(times)) / rule["multiple"]) * rule["multiple"]
            found[key] = [scaled] if isinstance(standard[key], list) else scaled
    return found


def page_of(size: str, repetitions: int) -> dict:
    """The page of an experiment of this size."""
    page = pages.read(str(ROOT / "config.yaml"))
    return {
        "scale": "tiny" if size == "tiny" else "standard",
        "repetitions": repetitions,
        "seed": page["seed"],
        "image": page["image"],
        "environments": {name: page["environments"][name] for name in ENVIRONMENTS},
        "workloads": {name: {} if size == "tiny" else size_of(name, FACTORS[size]) for name in page["workloads"]},
    }


def rows_of(folder: Path, name: str) -> list[dict]:
    """A row for each headline series of a workload: its level in native, the ratio of Docker to it, and its scatter."""
    plan = json.loads((folder / "results/plan.json").read_text())
    entry = plan["workloads"][name]

    def told(table: str, environment: str) -> list[dict]:
        with open(folder / f"results/{table}.csv", newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["headline"] == "yes" and row["workload"] == name]
        return [row for row in rows if row["environment"] == environment]

    levels = {row["series"]: float(row["level"]) for row in told("summary", ENVIRONMENTS[0])}
    return [
        {
            "title": entry["title"],
            "metric": row["metric_label"],
            "unit": row["unit"],
            "size": [entry["parameters"][one] for one in size_of(name, 1)],
            "holds": not sizes.broken(sizes.of_cell(plan, name, entry["parameters"])),
            "level": levels[row["series"]],
            "ratio": float(row["ratio"]),
            "half": (float(row["high"] or "nan") - float(row["low"] or "nan")) / 2 / float(row["ratio"]),
            "scatter": float(row["scatter"] or "nan"),
        }
        for row in told("comparisons", ENVIRONMENTS[1])
    ]


def report(measured: dict[str, Path], names: list[str]) -> str:
    """The table of what was measured, and what it says."""
    host = observe.understand(observe.read_files(observe.FILES))
    lines = [
        f"Measured on {host.get('cpu_model')} with {capacity.facts()['cpus']} processors and "
        f"{(capacity.facts()['cache_bytes'] or 0) / 2**20:.0f} MiB of last-level cache, {time.strftime('%Y-%m-%d')}: "
        "native's level, Docker's ratio to it with the half-width of its interval, and the standard deviation of a "
        "block's ratio.",
        "",
        "| workload | size | its rules | level | ratio | scatter |",
        "|---|---|---|---:|---:|---:|",
    ]
    said = []
    for name in names:
        series: dict[str, dict[str, dict]] = {}
        for size in SHOWN:
            for row in rows_of(measured[size], name) if size in measured else []:
                series.setdefault(row["metric"], {})[size] = row
                lines.append(
                    f"| {row['title']}, {row['metric']} | {size}: {', '.join(map(plain, row['size']))} | "
                    f"{'kept' if row['holds'] else 'broken'} | {row['level']:.3g} {row['unit']} | "
                    f"{100 * row['ratio']:.1f} ± {100 * row['half']:.1f} % | {100 * row['scatter']:.1f} % |"
                )
        for metric, found in series.items():
            if "standard" in found:
                base = found["standard"]["level"]
                apart = [f"{100 * (row['level'] / base - 1):+.0f} % ({size})" for size, row in found.items()]
                apart = [one for size, one in zip(found, apart, strict=True) if size != "standard"]
                said.append(f"- {found['standard']['title']}, {metric}: the level differs by {', '.join(apart)}.")
    return "\n".join([*lines, "", "Beside the standard size:", "", *said, ""])


def plain(value: object) -> str:
    """A parameter's value as it is read."""
    return ", ".join(f"{one:,}" for one in (value if isinstance(value, list) else [value]))


def main() -> None:
    """Measure what is missing of all sizes, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=4, help="blocks of each size")
    parser.add_argument("--minutes", type=float, default=30, help="no size is begun after these")
    options = parser.parse_args()
    os.chdir(ROOT)
    names = list(pages.read("config.yaml")["workloads"])
    begun, measured = time.monotonic(), {}
    for size in FACTORS:
        folder = BASE / size.replace(" ", "-")
        if time.monotonic() - begun > 60 * options.minutes:
            print(f"sizes: {size} is left out: the time is over", file=sys.stderr)
            continue
        print(f"sizes: {size}", file=sys.stderr, flush=True)
        measure(folder, page_of(size, options.repetitions), names)
        measured[size] = folder
    head = PAGE.read_text().split(MARK)[0]
    PAGE.write_text(f"{head}{MARK}\n{report(measured, names)}")


if __name__ == "__main__":
    main()
