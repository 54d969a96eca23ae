"""The A/A test: measure one environment twice under two names, in our order and in the naive one.

Makes many small experiments below results/aa, each a project of its own with the real workloads, alternating the two
orders so that what happens to the machine happens to both, and has R say how often the two names were called
different.  Beside them a brake takes 2 and 5 % of native's processors: positive controls.  Ours are blocks, as many as
the rule adds within a budget; the naive order has a fixed number of runs.

Usage: aa.py [--experiments 6] [--budget 4min] [--repetitions 10] [--orders blocks sequential]
"""

import argparse
import random
import subprocess
import sys

from side_project import ROOT, measure

# Two laps of each, so that widths decide something within the budget: it is the comparison that is tested.
WORKLOADS = {name: {"laps": 2} for name in ("stream", "randomaccess", "linpack")}
ENVIRONMENTS = {
    "native": {"label": "Native", "layers": ["chroot"]},
    "native-again": {"label": "Native again", "layers": ["chroot"]},
    "braked-2": {
        "label": "Native, braked by 2 %",
        "layers": ["chroot", {"brake": {"share": 0.02}}],
    },
    "braked-5": {
        "label": "Native, braked by 5 %",
        "layers": ["chroot", {"brake": {"share": 0.05}}],
    },
}
ORDERS = ["blocks", "sequential"]


def main() -> None:
    """Measure what is missing of all experiments, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=6, help="experiments in each order")
    parser.add_argument(
        "--budget", default="4min", help="time of measurement of an experiment in blocks"
    )
    parser.add_argument(
        "--repetitions", type=int, default=10, help="runs of each name in the naive order"
    )
    parser.add_argument(
        "--orders", nargs="+", choices=ORDERS, default=ORDERS, help="which of them are measured"
    )
    options = parser.parse_args()
    base = ROOT / "results/aa"
    rule = {"min": 3, "max": 300, "target": "2%", "budget": options.budget}
    ways = {
        "blocks": (f"blocks-{options.budget}", rule),
        "sequential": (f"sequential-{options.repetitions}", options.repetitions),
    }
    projects = []
    for number in range(1, options.experiments + 1):
        orders = [*ORDERS]
        random.Random(number).shuffle(orders)
        for order in [order for order in orders if order in options.orders]:
            name, repetitions = ways[order]
            config = {
                "scale": "standard",
                "repetitions": repetitions,
                "seed": number,
                "order": order,
                "environments": ENVIRONMENTS,
                "workloads": WORKLOADS,
            }
            print(
                f"A/A: experiment {number} of {options.experiments}, {order}",
                file=sys.stderr,
                flush=True,
            )
            measure(base / f"{name}-{number}", config, list(WORKLOADS))
            projects.append(str(base / f"{name}-{number}"))
    subprocess.run(["Rscript", str(ROOT / "studies/aa.R"), str(base), *projects], check=True)


if __name__ == "__main__":
    main()
