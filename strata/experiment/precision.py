"""How many further sets each workload gets: widths of intervals and costs alone decide, never a difference.

First all get as many as the first stage has (Stein 1945).  Then sets go one by one to where the distance to the target
is largest for its cost, in few large rounds (Hall 1981).
"""

import functools
import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

# Fewer sets end most often where a width is too small by chance, and their intervals cover too little.
FIRST_STAGE = 10
# Whoever is not within the target gets sets until that share of it is foreseen.
AIM = 0.9
# How many times the sets of a workload there are after a round at most.
GROWTH = 2
# A claim gets sets only where its budget would pay for so many times what it is foreseen to take.
TO_SPARE = 1.2
LEVEL = 0.95
# Correlation of neighbouring sets: at least and at most (analysis/statistics.R).
ALIKE = (0.15, 0.8)


class State(NamedTuple):
    """A workload after a round: sets that count, sets measured again, sets that may count at most, widest relative
    half-width (infinite where there is none), and the seconds of one more set."""

    counted: int
    again: int
    most: int
    half_width: float
    seconds: float


class Claim(NamedTuple):
    """A published claim and one workload: its name, its series that is farthest from `target` (pairs that it is of,
    half-width), sets measured again, sets that may count at most, and what its sets hold and take."""

    name: str
    counted: int
    again: int
    most: int
    half_width: float
    target: float
    environments: list[str]
    seconds: float


def student(freedom: float) -> float:
    """The half-width at LEVEL of Student's distribution; between whole degrees of freedom nearly so, linear in 1/f."""
    below, above = math.floor(freedom), math.ceil(freedom)
    if below == above:
        return _student(below)
    share = (1 / freedom - 1 / above) / (1 / below - 1 / above)
    return share * _student(below) + (1 - share) * _student(above)


@functools.cache
def _student(freedom: int) -> float:
    """That of a whole number, by its finite series (Abramowitz and Stegun, 26.7.3 f.)."""

    def within(angle: float) -> float:
        odd = freedom % 2
        term = math.cos(angle) if odd else 1.0
        total = 0.0 if freedom == 1 else term
        for at in range(2 + odd, freedom - 1, 2):
            term *= (at - 1) / at * math.cos(angle) ** 2
            total += term
        return (angle + math.sin(angle) * total) * 2 / math.pi if odd else math.sin(angle) * total

    low, high = 0.0, math.pi / 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle) < LEVEL else (low, middle)
    return math.tan(low) * math.sqrt(freedom)


def half_width(logarithms: Sequence[float]) -> float:
    """Relative half-width of the interval that the paper prints of a geometric mean, from logarithms in the order of
    the sets; infinite for fewer than two.  Neighbours are alike (`error_of_mean` of analysis/statistics.R)."""
    number = len(logarithms)
    if number < 2:
        return math.inf
    mean = statistics.fmean(logarithms)
    apart = [one - mean for one in logarithms]
    squares = math.fsum(one**2 for one in apart)
    if squares == 0:
        return 0.0
    seen = math.fsum(one * other for one, other in pairwise(apart)) / squares
    alike = min(max(ALIKE[0], seen + (1 + 4 * seen) / number), ALIKE[1])
    independent = number * (1 - alike) / (1 + alike)
    return math.sinh(student(max(independent - 1, 2)) * math.sqrt(squares / (number - 1) / independent))


def foreseen(width: float, counted: int, after: int) -> float:
    """The half-width after more sets, at the scatter seen so far; one that is not known counts as 1."""
    independent = [max(sets, 1) * (1 - ALIKE[0]) / (1 + ALIKE[0]) for sets in (counted, after)]
    factor = [student(max(sets - 1, 2)) / math.sqrt(sets) for sets in independent]
    return (width if math.isfinite(width) else 1.0) * factor[1] / factor[0]


def further(states: dict[str, State], target: float, budget: float | None, left: float) -> dict[str, int]:
    """How many more sets each workload gets in the next round.

    target: relative half-width.  budget, left: seconds, of all and still to be spent (infinite without a budget).
    """
    asking: list[tuple[float, str]] = []
    # Of what could not be measured there is nothing more to hope for.
    measured = {load: state for load, state in states.items() if state.counted + state.again > 0}
    for load, state in measured.items():
        kept = state.counted + state.again
        asking += [(sets, load) for sets in range(kept, min(FIRST_STAGE, state.most))]
    seconds = {load: state.seconds for load, state in states.items()}
    if not asking:
        for load, state in measured.items():
            kept = state.counted + state.again
            for sets in range(kept, min(state.most, GROWTH * kept)) if state.half_width > target else ():
                share = foreseen(state.half_width, state.counted, sets) / target
                asking += [(-(share - AIM) / state.seconds, load)] if share > AIM else []
        left = _allowed(asking, seconds, budget, left)
    return _given(asking, seconds, left)


def for_claims(claims: dict[str, list[Claim]], left: float) -> dict[str, tuple[int, Claim]]:
    """How many more sets each workload gets for which of its claims: first where deciding takes the least time.

    A claim that `left` or `most` cannot decide gets none.
    """
    asking: list[tuple[float, str, int, Claim]] = []
    for load, ones in claims.items():
        for one in ones:
            kept = one.counted + one.again
            width = one.half_width if math.isfinite(one.half_width) else 1.0
            # A width shrinks with the square root of the sets.
            needed = math.ceil(one.counted * (width / (AIM * one.target)) ** 2) - kept
            if needed > 0 and width > one.target and kept + needed <= one.most:
                asking.append((needed * one.seconds, load, needed, one))
    chosen: dict[str, tuple[int, Claim]] = {}
    for takes, load, needed, one in sorted(asking, key=lambda each: each[:2]):
        if load not in chosen and TO_SPARE * takes <= left:
            left -= takes
            chosen[load] = (min(needed, (GROWTH - 1) * (one.counted + one.again)), one)
    return chosen


def deciding(low: float, high: float) -> float:
    """The relative half-width at LEVEL with which a claim's interval at 90 % lies within its tolerance in 80 % of
    cases, where the ratio is 1, or in the middle of a tolerance without it (Julious 2004)."""
    quantile = statistics.NormalDist().inv_cdf
    ratio = 1.0 if low < 1 < high else (low + high) / 2
    room = min(high - ratio, ratio - low) / ratio
    return room * quantile((1 + LEVEL) / 2) / (quantile(0.95) + quantile(0.9))


def _allowed(asking: list[tuple[float, str]], seconds: dict[str, float], budget: float | None, left: float) -> float:
    """Half of the seconds that are left; all of them below a tenth of the budget, or two sets of all that ask."""
    round_of_all = sum(seconds[load] for load in {load for _, load in asking})
    return left / 2 if budget is not None and left >= budget / 10 and left / 2 >= round_of_all else left


def _given(asking: list[tuple[float, str]], seconds: dict[str, float], left: float) -> dict[str, int]:
    """Sets in the order in which they are asked for, as far as the seconds last."""
    given, dear = dict.fromkeys(seconds, 0), set()
    for _, load in sorted(asking, key=lambda one: one[0]):
        if load not in dear and seconds[load] <= left:
            given[load] += 1
            left -= seconds[load]
        else:
            # Once a workload's sets are too dear, another's may still be paid.
            dear.add(load)
    return given
