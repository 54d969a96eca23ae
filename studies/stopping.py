#!/usr/bin/env python3
"""Simulate how often intervals contain the true ratio if their widths decide the number of blocks.

Usage: studies/stopping.py [EXPERIMENTS] [claims]
It prints a Markdown table of experiments, or with `claims` of the verdicts of `strata claim`.

It calls the functions that decide in a real run.  All environments are equal.  The runs of the
three workloads vary by 8, 7 and 3 %, and take as long as on a machine with two processors.  The
width that decides is that of the interval in the paper.
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

# Workload → standard deviation of a run's logarithm, and its seconds.
WORKLOADS = {"short": (0.08, 0.6), "long": (0.07, 3.4), "even": (0.03, 1.5)}
# Rule → environments besides native, workloads, target, budget in seconds, first stage.
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
# Machine → drift and random walk in 25 minutes, correlation of neighbouring runs of an
# environment, share of runs whose noise is ten times as wide.
MACHINES = {
    "steady": (0.0, 0.0, 0.0, 0.0),
    "drift of 25 %": (0.25, 0.0, 0.0, 0.0),
    "random walk of 25 %": (0.0, 0.25, 0.0, 0.0),
    "neighbouring blocks alike (0.3)": (0.0, 0.0, 0.3, 0.0),
    "contaminated (one run in ten)": (0.0, 0.0, 0.0, 0.1),
    "alike and contaminated": (0.0, 0.0, 0.3, 0.1),
}
# The smallest and the largest number of blocks of a workload.
MIN_BLOCKS, MAX_BLOCKS = 3, 300
# The seconds in which drift and random walk of MACHINES are reached: 25 minutes.
PERIOD_SECONDS = 1500.0
# For claims: the number of first blocks (strata/claim/command.py), the seconds of a block, and the
# budget in seconds.
MIN_CLAIM_BLOCKS, CLAIM_SECONDS, CLAIM_BUDGET = 5, 3.0, 600.0
# Student's two-sided 95 % quantile as a series in 1/freedom (Abramowitz and Stegun, 26.7.5; the
# last term is fitted): from two degrees of freedom on its error is below 0.02 %.
STUDENT = (1.959963985, 2.372271231, 2.822498617, 2.555849681, 1.589534054, 1.0272)
# Limits of the correlation of neighbouring blocks, equal to those of analysis/statistics.R.
MIN_CORRELATION, MAX_CORRELATION = 0.15, 0.8


def compute_student_quantile(freedom: float) -> float:
    """Return the two-sided 95 % quantile of Student's distribution.

    freedom: the degrees of freedom, at least 2.
    """
    return sum(term / freedom**power for power, term in enumerate(STUDENT))


def compute_half_width(logarithms: Sequence[float]) -> float:
    """Return the relative half-width of the paper's 95 % interval of a geometric mean.

    logarithms: the logarithms of the ratios in the order of their blocks; at least two must differ.
    The function must follow estimate_standard_error of analysis/statistics.R.
    """
    effective_n = compute_effective_n(logarithms)
    # The series of the quantile is good from two degrees of freedom on.
    quantile = compute_student_quantile(max(effective_n - 1, 2))
    return math.sinh(quantile * statistics.stdev(logarithms) / math.sqrt(effective_n))


def compute_effective_n(logarithms: Sequence[float]) -> float:
    """Return how many independent blocks would have a mean with the error of these blocks' mean.

    logarithms: the logarithms of the ratios in the order of their blocks; at least two must differ.
    The result is smaller than the number of blocks, since neighbouring blocks may be correlated.
    """
    n = len(logarithms)
    mean = statistics.fmean(logarithms)
    deviations = [value - mean for value in logarithms]
    sum_of_squares = math.fsum(deviation**2 for deviation in deviations)
    sum_of_products = math.fsum(first * second for first, second in pairwise(deviations))
    lag1 = sum_of_products / sum_of_squares
    # The added term corrects the bias of an estimate from few blocks.
    lag1_corrected = lag1 + (1 + 4 * lag1) / n
    correlation = min(max(MIN_CORRELATION, lag1_corrected), MAX_CORRELATION)
    return n * (1 - correlation) / (1 + correlation)


class Ratios:
    """Simulated logarithms of a workload's ratios to native, block by block.

    generator: the generator of random numbers.
    environment_count: the number of environments besides native.
    noise: the standard deviation of a run's logarithm.
    seconds: the duration of a run; drift and random walk grow with it.
    machine: a value of MACHINES: drift, random walk, correlation of neighbours, share of
    contaminated runs.
    logarithms: for each environment besides native, the logarithms of its ratios, block by block.
    """

    def __init__(
        self,
        generator: random.Random,
        environment_count: int,
        noise: float,
        seconds: float,
        machine: tuple,
    ) -> None:
        """Draw the noise before the first run; no block is measured yet."""
        self.generator = generator
        self.noise = noise
        self.seconds = seconds
        self.machine = machine
        # The noise of the preceding run of each environment as a multiple of `noise`; native first.
        self.preceding_noises = [generator.gauss(0, 1) for _ in range(environment_count + 1)]
        self.logarithms: list[list[float]] = [[] for _ in range(environment_count)]

    def simulate_blocks(self, block_count: int) -> None:
        """Simulate further blocks, and append the logarithms of their ratios to `logarithms`.

        The sequence of random draws must stay: the numbers in docs/statistics.md follow from it.
        """
        drift, random_walk, correlation, contaminated_share = self.machine
        run_period = self.seconds / PERIOD_SECONDS
        # The share of new noise, by which the noise keeps its standard deviation of 1.
        innovation = math.sqrt(1 - correlation**2)
        system_count = len(self.preceding_noises)
        for _ in range(block_count):
            # The deviation of the machine, which all runs after it share; ratios do not depend on
            # its value at the start of a block.
            machine_deviation = 0.0
            values = [0.0] * system_count
            # The environments run in random order.
            for index in self.generator.sample(range(system_count), system_count):
                machine_deviation += drift * run_period
                machine_deviation += (
                    random_walk * math.sqrt(run_period) * self.generator.gauss(0, 1)
                )
                noise = correlation * self.preceding_noises[index]
                noise += innovation * self.generator.gauss(0, 1)
                self.preceding_noises[index] = noise
                scale = 10 if self.generator.random() < contaminated_share else 1
                values[index] = machine_deviation + self.noise * noise * scale
            for logarithms, value in zip(self.logarithms, values[1:], strict=True):
                logarithms.append(value - values[0])

    def compute_half_width(self) -> float:
        """Return the largest relative half-width of the environments' ratios."""
        return max(map(compute_half_width, self.logarithms))

    def check_intervals(self) -> list[bool]:
        """Return for each environment whether its interval contains the true ratio, which is 1."""
        return [
            abs(statistics.fmean(logarithms)) <= math.asinh(compute_half_width(logarithms))
            for logarithms in self.logarithms
        ]


def simulate_experiment(
    generator: random.Random, rule: tuple, machine: tuple
) -> tuple[float, float, float]:
    """Simulate an experiment until no workload gets further blocks.

    generator: the generator of random numbers.
    rule: a value of RULES.
    machine: a value of MACHINES.
    Returns the share of intervals that contain the true ratio, the share of workloads that reach
    the target, and the mean number of blocks of a workload.
    Sets FIRST_STAGE of :mod:`strata.experiment.precision` to the value of the rule.
    """
    environment_count, names, target, budget_seconds, first_stage = rule
    precision.FIRST_STAGE = first_stage
    workloads = {
        name: Ratios(generator, environment_count, *WORKLOADS[name], machine) for name in names
    }
    # The seconds of a block: one run in native and in each of the environments.
    block_seconds = {name: WORKLOADS[name][1] * (environment_count + 1) for name in names}
    new_blocks = dict.fromkeys(names, MIN_BLOCKS)
    while any(new_blocks.values()):
        for name, workload in workloads.items():
            workload.simulate_blocks(new_blocks[name])
        block_counts = {name: len(workload.logarithms[0]) for name, workload in workloads.items()}
        seconds_left = math.inf
        if budget_seconds is not None:
            seconds_spent = sum(block_counts[name] * block_seconds[name] for name in names)
            seconds_left = budget_seconds - seconds_spent
        states = {}
        missing_blocks = {}
        for name, workload in workloads.items():
            block_count = block_counts[name]
            half_width = workload.compute_half_width()
            # No block is disturbed, so that none is measured again: the second number is 0.
            states[name] = precision.Precision(
                block_count,
                0,
                MAX_BLOCKS - block_count,
                half_width,
                block_seconds[name],
                environment_count,
            )
            if block_count < precision.VERDICT_BLOCKS:
                missing_blocks[name] = precision.VERDICT_BLOCKS - block_count
        answers = dict.fromkeys(names, environment_count)
        new_blocks = precision.allot_blocks_after_verdicts(
            states, missing_blocks, answers, target, budget_seconds, seconds_left
        )
    is_true: list[bool] = []
    for workload in workloads.values():
        is_true += workload.check_intervals()
    is_reached = [workload.compute_half_width() <= target for workload in workloads.values()]
    mean_block_count = statistics.fmean(block_counts.values())
    return statistics.fmean(is_true), statistics.fmean(is_reached), mean_block_count


def compute_interval(logarithms: Sequence[float], tail: float) -> tuple[float, float]:
    """Return the paper's interval of a geometric mean, as ratios (low, high).

    logarithms: the logarithms of the ratios in the order of their blocks; at least two must differ.
    tail: the probability beyond each end of the interval.
    Student's quantile is computed from the normal one by a series (Abramowitz and Stegun, 26.7.5),
    which is close enough from six degrees of freedom on.
    """
    freedom = compute_effective_n(logarithms) - 1
    z = statistics.NormalDist().inv_cdf(1 - tail)
    quantile = z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    error = statistics.stdev(logarithms) / math.sqrt(freedom + 1)
    mean = statistics.fmean(logarithms)
    return math.exp(mean - quantile * error), math.exp(mean + quantile * error)


def simulate_claim(
    generator: random.Random, true_ratio: float, noise: float, machine: tuple
) -> tuple[bool, bool, int]:
    """Simulate `strata claim` for a tolerance from 0.95 to 1.05 and a budget of 10 minutes.

    generator: the generator of random numbers.
    true_ratio: the true ratio.
    noise: the standard deviation of a run's logarithm.
    machine: a value of MACHINES.
    Returns whether the claim is reproduced, whether it is contradicted, and the number of blocks.
    """
    low, high = 0.95, 1.05
    ratios = Ratios(generator, 1, noise, CLAIM_SECONDS / 2, machine)
    logarithms = ratios.logarithms[0]
    name = "workload"
    new_blocks = MIN_CLAIM_BLOCKS
    while new_blocks:
        ratios.simulate_blocks(new_blocks)
        block_count = len(logarithms)
        seconds_left = CLAIM_BUDGET - block_count * CLAIM_SECONDS
        # No block is measured again: the second number is 0.
        state = precision.Precision(
            block_count, 0, MAX_BLOCKS - block_count, ratios.compute_half_width(), CLAIM_SECONDS
        )
        states = {name: state}
        new_blocks = precision.allot_blocks(states, math.inf, CLAIM_BUDGET, seconds_left)[name]
        if not new_blocks:
            state = state._replace(target=precision.compute_deciding_half_width(low, high))
            allotted = precision.allot_blocks_to_claims([(name, state)], seconds_left)
            new_blocks = allotted.get(name, (0,))[0]
    # The ratios were simulated around 1.
    shifted_logarithms = [logarithm + math.log(true_ratio) for logarithm in logarithms]
    # Two one-sided tests at 5 % reproduce a claim, and a two-sided one at 5 % contradicts it.
    low_90, high_90 = compute_interval(shifted_logarithms, 0.05)
    low_95, high_95 = compute_interval(shifted_logarithms, 0.025)
    is_reproduced = low <= low_90 and high_90 <= high
    is_contradicted = high_95 < low or low_95 > high
    return is_reproduced, is_contradicted, len(logarithms)


def print_claims(experiments: int) -> None:
    """Print a Markdown table of verdicts of `strata claim`, with a row for each truth and machine.

    experiments: the number of simulations for each row.
    """
    print("| true ratio | noise of a run | machine | reproduced, % | contradicted, % | blocks |")
    print("|---|---|---|---:|---:|---:|")
    for true_ratio in (1.0, 0.95, 0.9):
        for noise in (0.01, 0.03, 0.08):
            for name in ("steady", "neighbouring blocks alike (0.3)"):
                generator = random.Random(f"claim/{true_ratio}/{noise}/{name}")
                outcomes = [
                    simulate_claim(generator, true_ratio, noise, MACHINES[name])
                    for _ in range(experiments)
                ]
                reproduced, contradicted, block_counts = map(list, zip(*outcomes, strict=True))
                row = [
                    f"{100 * true_ratio:.0f} %",
                    f"{100 * noise:.0f} %",
                    name,
                    f"{100 * statistics.fmean(reproduced):.1f}",
                    f"{100 * statistics.fmean(contradicted):.1f}",
                    f"{statistics.fmean(block_counts):.0f}",
                ]
                print(f"| {' | '.join(row)} |", flush=True)


def print_rules(experiments: int) -> None:
    """Print a Markdown table of how often intervals are true, with a row for each rule and machine.

    Each row has its own random generator, so that rows do not depend on each other.
    experiments: the number of simulated experiments for each row; at least 2.
    """
    print("| rule | machine | the interval holds the truth, % | within the target | blocks |")
    print("|---|---|---:|---:|---:|")
    for rule_name, rule in RULES.items():
        for machine_name, machine in MACHINES.items():
            generator = random.Random(f"{rule_name}/{machine_name}")
            outcomes = [simulate_experiment(generator, rule, machine) for _ in range(experiments)]
            true_shares, reached_shares, block_counts = map(list, zip(*outcomes, strict=True))
            standard_error = 100 * statistics.stdev(true_shares) / math.sqrt(experiments)
            row = [
                rule_name,
                machine_name,
                f"{100 * statistics.fmean(true_shares):.1f} ± {standard_error:.1f}",
                f"{100 * statistics.fmean(reached_shares):.0f} %",
                f"{statistics.fmean(block_counts):.0f}",
            ]
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    arguments = sys.argv[1:]
    print_table = print_claims if "claims" in arguments else print_rules
    numbers = [int(argument) for argument in arguments if argument.isdecimal()]
    print_table(numbers[0] if numbers else 4000)
