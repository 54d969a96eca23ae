"""Run the A/A test: measure one environment under two names, in blocks and in the naive order.

It makes many small experiments below results/aa, each a side project with the real workloads.  The
two orders alternate, so that changes of the machine affect both.  As positive controls, a brake
takes 2 and 5 % of native's processors.  In blocks, the rule of the paper adds blocks within a
budget; the naive order has a fixed number of runs.  studies/aa.R then counts how often the two
names are called different.

Usage: aa_test.py [--experiments 6] [--budget 4min] [--repetitions 10] [--orders blocks sequential]
"""

import argparse
import random
import subprocess
import sys

from side_project import ROOT, measure_side_project

# Two laps of each keep blocks short, so that the budget pays for enough of them.
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


def build_config(number: int, order: str, repetitions: object) -> dict:
    """Return the content of an experiment's config.yaml.

    number: the number of the experiment, which is also its seed.
    order: one of ORDERS.
    repetitions: a number of runs, or a rule that adds blocks, ``{min, max, target, budget}``.
    """
    return {
        "scale": "standard",
        "repetitions": repetitions,
        "seed": number,
        "order": order,
        "environments": ENVIRONMENTS,
        "workloads": WORKLOADS,
    }


def main() -> None:
    """Measure the missing cells of all experiments, and compare their results by studies/aa.R.

    The folder of an experiment in results/aa is named after its order, its budget or repetitions,
    and its number, so that a repeated call continues where the last one ended.  studies/aa.R reads
    the brake's per cent from the names of ENVIRONMENTS, and `order` from the plan.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=6, help="experiments in each order")
    parser.add_argument(
        "--budget", default="4min", help="time of measurement of each experiment in blocks"
    )
    parser.add_argument(
        "--repetitions", type=int, default=10, help="runs of each environment in the naive order"
    )
    parser.add_argument(
        "--orders", nargs="+", choices=ORDERS, default=ORDERS, help="the orders to measure"
    )
    options = parser.parse_args()
    base = ROOT / "results/aa"
    repetitions_in_blocks = {"min": 3, "max": 300, "target": "2%", "budget": options.budget}
    # Order → name of its folders, and `repetitions` of its config.yaml.
    experiments = {
        "blocks": (f"blocks-{options.budget}", repetitions_in_blocks),
        "sequential": (f"sequential-{options.repetitions}", options.repetitions),
    }
    projects = []
    for number in range(1, options.experiments + 1):
        # The two orders alternate at random, but in the same way for each number, also if only one
        # of them is measured.
        orders = [*ORDERS]
        random.Random(number).shuffle(orders)
        for order in orders:
            if order not in options.orders:
                continue
            name, repetitions = experiments[order]
            message = f"A/A: experiment {number} of {options.experiments}, {order}"
            print(message, file=sys.stderr, flush=True)
            project = base / f"{name}-{number}"
            settings = build_config(number, order, repetitions)
            measure_side_project(project, settings, list(WORKLOADS))
            projects.append(str(project))
    subprocess.run(["Rscript", "studies/aa.R", str(base), *projects], cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
