"""The A/A test: measure one environment twice under two names, in our order and in the naive one.

Makes many small experiments below results/aa, each a project of its own with the real workloads, alternating
the two orders so that what happens to the machine happens to both, and has R say how often the two names were
called different.  Ours are blocks, as many as the rule adds within a budget; the naive order has a fixed number of
runs.  Usage: aa.py [--experiments 12] [--budget 2min] [--repetitions 10]
"""

import argparse
import os
import random
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
# What an experiment has of its own; all else is the project's.
OWN = {"config.yaml", "results", "paper"}
# Two laps of each, so that widths decide something within the budget: it is the comparison that is tested.
WORKLOADS = {name: {"laps": 2} for name in ("stream", "randomaccess", "linpack")}


def make(folder: Path, order: str, seed: int, repetitions: int | dict) -> None:
    """A project with the environments `native` and `native-again`, unless it is there already."""
    if folder.exists():
        return
    folder.mkdir(parents=True)
    for path in ROOT.iterdir():
        if path.name not in OWN and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    names = {"native": "Native", "native-again": "Native again"}
    config = {
        "scale": "tiny",
        "repetitions": repetitions,
        "seed": seed,
        "order": order,
        "environments": {name: {"label": label, "layers": ["chroot"]} for name, label in names.items()},
        "workloads": WORKLOADS,
    }
    (folder / "config.yaml").write_text(yaml.safe_dump(config, sort_keys=False))


def main() -> None:
    """Measure what is missing of all experiments, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=12, help="experiments in each order")
    parser.add_argument("--budget", default="2min", help="time of measurement of an experiment in blocks")
    parser.add_argument("--repetitions", type=int, default=10, help="runs of each name in the naive order")
    options = parser.parse_args()
    base = ROOT / "results/aa"
    targets = [f"results/tidy/{name}.csv" for name in WORKLOADS]
    rule = {"min": 3, "max": 300, "target": "2%", "budget": options.budget}
    ways = {
        "blocks": (f"blocks-{options.budget}", rule),
        "sequential": (f"sequential-{options.repetitions}", options.repetitions),
    }
    projects = []
    for number in range(1, options.experiments + 1):
        orders = ["blocks", "sequential"]
        random.Random(number).shuffle(orders)
        for order in orders:
            name, repetitions = ways[order]
            folder = base / f"{name}-{number}"
            make(folder, order, number, repetitions)
            print(f"A/A: experiment {number} of {options.experiments}, {order}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "snakemake", "--cores", "1", "--directory", str(folder)]
            variables = {**os.environ, "PYTHONPATH": str(ROOT)}
            variables.pop("STRATA_OWNER", None)
            subprocess.run([*command, *targets], cwd=folder, env=variables, check=True)
            projects.append(str(folder))
    subprocess.run(["Rscript", str(ROOT / "studies/aa.R"), str(base), "4000", *projects], check=True)


if __name__ == "__main__":
    main()
