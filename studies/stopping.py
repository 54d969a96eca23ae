#!/usr/bin/env python3
"""Usage: studies/stopping.py [EXPERIMENTS]: how often intervals hold the truth when widths decide how many blocks there
are, by simulation with the functions that decide; a Markdown table.

Environments are equal.  Workloads vary by 8, 7 and 3 %, and cost as on a machine of two processors.  The width that
decides is that of the interval that the paper prints; Student's, which takes blocks for independent, is beside it.
"""

import math
import random
import statistics
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from strata.experiment import precision

# Noise of a run, and its seconds.
WORKLOADS = {"short": (0.08, 0.6), "long": (0.07, 3.4), "even": (0.03, 1.5)}
# Environments beside native, workloads, target, budget, first stage.
RULES = {
    "target 2 %, budget 25 min": (3, ["short", "long", "even"], 0.02, 1500.0, 10),
    "target 2 %, budget 12 min": (3, ["short", "long", "even"], 0.02, 720.0, 10),
    "target 2 %, budget 2 min, which ends the first stage": (
        3,
        ["short", "long", "even"],
        0.02,
        120.0,
        10,
    ),
    "target 2 %, no budget": (3, ["short", "long", "even"], 0.02, None, 10),
    "one ratio, target 1.4 %": (1, ["even"], 0.014, None, 10),
    "one ratio, target 2 %, first stage of 20": (1, ["even"], 0.02, None, 20),
}
# Drift and random walk over 25 minutes, correlation of neighbours, share of runs whose noise is ten times as wide.
MACHINES = {
    "steady": (0.0, 0.0, 0.0, 0.0),
    "drift of 25 %": (0.25, 0.0, 0.0, 0.0),
    "random walk of 25 %": (0.0, 0.25, 0.0, 0.0),
    "neighbouring blocks alike (0.3)": (0.0, 0.0, 0.3, 0.0),
    "contaminated (one run in ten)": (0.0, 0.0, 0.0, 0.1),
    "alike and contaminated": (0.0, 0.0, 0.3, 0.1),
}
LEAST, MOST, PERIOD = 3, 300, 1500.0
# Student's quantile at 0.95 by powers of 1/freedom (Abramowitz and Stegun, 26.7.5; the last one fitted): from two
# degrees of freedom on right to 0.02 %.
STUDENT = (1.959963985, 2.372271231, 2.822498617, 2.555849681, 1.589534054, 1.0272)
# Correlation of neighbouring blocks: at least and at most.
ALIKE = (0.15, 0.8)


def student(freedom: float) -> float:
    """The half-width at 95 % of Student's distribution."""
    return sum(term / freedom**power for power, term in enumerate(STUDENT))


def half_width(logarithms: Sequence[float]) -> float:
    """Relative half-width of the interval that the paper prints of a geometric mean, from logarithms in the order of
    the blocks; neighbours are alike (`estimate_standard_error` of analysis/statistics.R)."""
    number, mean = len(logarithms), statistics.fmean(logarithms)
    apart = [one - mean for one in logarithms]
    squares = math.fsum(one**2 for one in apart)
    seen = math.fsum(one * other for one, other in pairwise(apart)) / squares
    alike = min(max(ALIKE[0], seen + (1 + 4 * seen) / number), ALIKE[1])
    independent = number * (1 - alike) / (1 + alike)
    return math.sinh(
        student(max(independent - 1, 2)) * math.sqrt(squares / (number - 1) / independent)
    )


class Ratios:
    """The logarithms of the ratios to native of a workload, block by block."""

    def __init__(
        self, chance: random.Random, others: int, noise: float, seconds: float, machine: tuple
    ) -> None:
        self.chance, self.noise, self.seconds, self.machine = chance, noise, seconds, machine
        self.last = [chance.gauss(0, 1) for _ in range(others + 1)]
        self.found: list[list[float]] = [[] for _ in range(others)]

    def measure(self, blocks: int) -> None:
        """Add so many blocks."""
        drift, walk, alike, wild = self.machine
        for _ in range(blocks):
            level, values = 0.0, [0.0] * len(self.last)
            for name in self.chance.sample(range(len(self.last)), len(self.last)):
                level += drift * self.seconds / PERIOD + walk * math.sqrt(
                    self.seconds / PERIOD
                ) * self.chance.gauss(0, 1)
                self.last[name] = alike * self.last[name] + math.sqrt(
                    1 - alike**2
                ) * self.chance.gauss(0, 1)
                values[name] = level + self.noise * self.last[name] * (
                    10 if self.chance.random() < wild else 1
                )
            for ratios, value in zip(self.found, values[1:], strict=True):
                ratios.append(value - values[0])

    def width(self) -> float:
        """The widest half-width."""
        return max(map(half_width, self.found))

    def holds(self) -> list[bool]:
        """Whether each ratio's interval holds 1."""
        return [abs(statistics.fmean(own)) <= math.asinh(half_width(own)) for own in self.found]


def experiment(chance: random.Random, rule: tuple, machine: tuple) -> tuple[float, float, float]:
    """Shares of intervals that hold the truth, and of workloads within the target; blocks of a workload."""
    others, names, target, budget, precision.FIRST_STAGE = rule
    loads = {name: Ratios(chance, others, *WORKLOADS[name], machine) for name in names}
    cost = {name: WORKLOADS[name][1] * (others + 1) for name in names}
    new = dict.fromkeys(names, LEAST)
    while any(new.values()):
        for name, load in loads.items():
            load.measure(new[name])
        counts = {name: len(load.found[0]) for name, load in loads.items()}
        left = (
            math.inf
            if budget is None
            else budget - sum(counts[name] * cost[name] for name in names)
        )
        states = {
            name: precision.State(
                counts[name], 0, MOST - counts[name], load.width(), cost[name], others
            )
            for name, load in loads.items()
        }
        new = precision.further(states, target, budget, left)
    held = [hit for load in loads.values() for hit in load.holds()]
    reached = [load.width() <= target for load in loads.values()]
    return statistics.fmean(held), statistics.fmean(reached), statistics.fmean(counts.values())


def main(experiments: int) -> None:
    """Print a row for each rule and machine; each has random numbers of its own."""
    print("| rule | machine | the interval holds the truth, % | within the target | blocks |")
    print("|---|---|---:|---:|---:|")
    for rule, asked in RULES.items():
        for machine, changes in MACHINES.items():
            chance = random.Random(f"{rule}/{machine}")
            held, reached, blocks = zip(
                *(experiment(chance, asked, changes) for _ in range(experiments)), strict=True
            )
            error = 100 * statistics.stdev(held) / math.sqrt(experiments)
            shares = f"{100 * statistics.fmean(held):.1f} ± {error:.1f} | {100 * statistics.fmean(reached):.0f} %"
            print(f"| {rule} | {machine} | {shares} | {statistics.fmean(blocks):.0f} |", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 4000)
