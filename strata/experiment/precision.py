"""How many further blocks each workload gets: widths of intervals and costs alone decide, never a difference.

All get as many as the first stage has, whatever their widths are (Stein 1945); then the wide ones get more, many in
each of few decisions (Hall 1981).  Those come first that make widths shrink most for their time.  Then published claims
get those that decide them.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from strata.experiment.blocks import Cell
from strata.util.data_types import Fields

# Fewer blocks end most often where a width is too small by chance, and their intervals cover too little.
FIRST_STAGE = 10
# Whoever is not within the target gets blocks until that share of it is foreseen.
AIM = 0.9
# How many times the blocks of a workload there are after a decision at most.
GROWTH = 2
# A claim gets blocks only where its budget would pay for so many times what it is foreseen to take.
TO_SPARE = 1.2
LEVEL = 0.95


class State(NamedTuple):
    """What is known of a workload, or of a published claim on it: blocks that count, blocks measured again, room for
    more blocks, widest relative half-width (infinite where there is none), the seconds of one more block, and how many
    ratios it tells; of a claim also the half-width that decides it, the environments of its blocks, and its name."""

    counted: int
    again: int
    room: int
    half_width: float
    seconds: float
    ratios: int = 1
    target: float = 0.0
    environments: Sequence[str] = ()
    claim: str = ""

    @property
    def kept(self) -> int:
        """The blocks that count once those that are measured again do."""
        return self.counted + self.again

    @property
    def width(self) -> float:
        """The half-width, which shrinks with the square root of the blocks; 1 where it is not known."""
        return self.half_width if math.isfinite(self.half_width) else 1.0


def costs(records: Mapping[Cell, Fields]) -> dict[tuple[str, str], float]:
    """The mean time of a cell, in seconds, of each environment and workload."""
    took: dict[tuple[str, str], list[float]] = defaultdict(list)
    for cell, record in records.items():
        took[cell[:2]].append(record["seconds"])
    return {pair: statistics.fmean(own) for pair, own in took.items()}


def further(
    states: dict[str, State], target: float, budget: float | None, left: float
) -> dict[str, int]:
    """How many more blocks each workload gets.

    target: relative half-width.  budget, left: seconds, of all and still to be spent (infinite without a budget).
    """
    # Of what could not be measured there is nothing more to hope for.
    measured = {load: one for load, one in states.items() if one.kept}
    asking: list[tuple[float, str]] = []
    for load, one in measured.items():
        for number in range(one.kept, one.kept + one.room):
            foreseen = one.width * math.sqrt(max(one.counted, 1) / number) / target
            if number < FIRST_STAGE:
                foreseen = 1.0
            elif one.half_width <= target or foreseen <= AIM or number >= GROWTH * one.kept:
                break
            # A half-width shrinks by a share of 1/(2 n) with the next block.
            asking.append((number * one.seconds / (one.ratios * foreseen), load))
    # Once all have the first stage, half of what is left; all of it below a tenth of the budget, or two blocks of all
    # that ask.
    first = any(one.kept < FIRST_STAGE and one.room for one in measured.values())
    of_each = sum(states[load].seconds for load in {load for _, load in asking})
    if budget is not None and not first and left >= max(budget / 10, 2 * of_each):
        left /= 2
    given, dear = dict.fromkeys(states, 0), set()
    for _, load in sorted(asking, key=lambda each: each[0]):
        if load not in dear and states[load].seconds <= left:
            given[load] += 1
            left -= states[load].seconds
        else:
            # Once a workload's blocks are too dear, another's may still be paid.
            dear.add(load)
    return given


def for_claims(claims: Iterable[tuple[str, State]], left: float) -> dict[str, tuple[int, State]]:
    """How many more blocks each workload gets for which of its claims: first where deciding takes the least time.

    A claim that `left` or the largest number of blocks cannot decide gets none.
    """
    asking: list[tuple[float, str, int, State]] = []
    for load, claim in claims:
        needed = math.ceil(claim.counted * (claim.width / (AIM * claim.target)) ** 2) - claim.kept
        if 0 < needed <= claim.room and claim.width > claim.target:
            asking.append((needed * claim.seconds, load, needed, claim))
    chosen: dict[str, tuple[int, State]] = {}
    for takes, load, needed, claim in sorted(asking, key=lambda each: each[:2]):
        if load not in chosen and TO_SPARE * takes <= left:
            left -= takes
            chosen[load] = (min(needed, (GROWTH - 1) * claim.kept), claim)
    return chosen


def deciding(low: float, high: float) -> float:
    """The relative half-width at LEVEL with which a claim's interval at 90 % lies within its tolerance in 80 % of
    cases, where the ratio is 1, or in the middle of a tolerance without it (Julious 2004)."""
    quantile = statistics.NormalDist().inv_cdf
    ratio = 1.0 if low < 1 < high else (low + high) / 2
    room = min(high - ratio, ratio - low) / ratio
    return room * quantile((1 + LEVEL) / 2) / (quantile(0.95) + quantile(0.9))
