"""How many further sets each workload gets: widths of intervals and costs alone decide, never a difference.

First all get as many as the first stage has (Stein 1945).  Then sets go one by one to where the distance to the target
is largest for its cost, in few large rounds (Hall 1981).
"""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

# Fewer sets end most often where a width is too small by chance, and their intervals cover too little.
FIRST_STAGE = 20
# Whoever is not within the target gets sets until that share of it is foreseen.
AIM = 0.9
# How many times the sets of a workload there are after a round at most.
GROWTH = 2
LEVEL = 0.95


class State(NamedTuple):
    """A workload after a round: sets that count, sets measured again, sets that may count at most, widest relative
    half-width (infinite where there is none), and the seconds of one more set."""

    counted: int
    again: int
    most: int
    half_width: float
    seconds: float


def student(freedom: int) -> float:
    """The half-width at LEVEL of Student's distribution, by its finite series (Abramowitz and Stegun, 26.7.3 f.)."""

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
    """Relative half-width of the interval of a geometric mean, from logarithms; infinite for fewer than two."""
    if len(logarithms) < 2:
        return math.inf
    error = statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    return math.sinh(student(len(logarithms) - 1) * error)


def foreseen(width: float, counted: int, after: int) -> float:
    """The half-width after more sets, at the scatter seen so far; one that is not known counts as 1."""
    factor = [student(max(sets - 1, 1)) / math.sqrt(max(sets, 1)) for sets in (counted, after)]
    return (width if math.isfinite(width) else 1.0) * factor[1] / factor[0]


def further(states: dict[str, State], target: float | None, budget: float | None, left: float) -> dict[str, int]:
    """How many more sets each workload gets in the next round.

    target: relative half-width; None where the number of sets is fixed.  budget, left: seconds, of all and still to be
    spent (infinite without a budget).
    """
    asking: list[tuple[float, str]] = []
    measured = {load: state for load, state in states.items() if state.counted + state.again > 0}
    for load, state in measured.items() if target is not None else ():
        kept = state.counted + state.again
        asking += [(sets, load) for sets in range(kept, min(FIRST_STAGE, state.most))]
    if not asking and target is not None:
        for load, state in measured.items():
            kept = state.counted + state.again
            for sets in range(kept, min(state.most, GROWTH * kept)) if state.half_width > target else ():
                share = foreseen(state.half_width, state.counted, sets) / target
                asking += [(-(share - AIM) / state.seconds, load)] if share > AIM else []
        round_of_all = sum(states[load].seconds for load in {load for _, load in asking})
        if budget is not None and left >= budget / 10 and left / 2 >= round_of_all:
            left /= 2
    given, dear = dict.fromkeys(states, 0), set()
    for _, load in sorted(asking, key=lambda one: one[0]):
        if load not in dear and states[load].seconds <= left:
            given[load] += 1
            left -= states[load].seconds
        else:
            # Once a workload's sets are too dear, another's may still be paid.
            dear.add(load)
    return given
