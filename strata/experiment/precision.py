"""How many further blocks each workload gets, only by widths of intervals and costs.

Differences between environments never decide it, unless the configuration names a margin: then
they are tested after planned numbers of blocks (:data:`LOOKS`), which share the error rate.

First every workload gets the blocks that a verdict takes.  By widths, every workload then gets the
blocks of the first stage, whatever its widths are (Stein 1945).  After that those with wide
intervals get more, many in each of few decisions (Hall 1981), first where widths shrink most for
their time.  The rest of the budget goes to published claims, first where deciding one takes least.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from strata.experiment.blocks import Cell
from strata.util.data_types import Fields

# The number of blocks that a verdict takes: VERDICT_BLOCKS of analysis/statistics.R.
VERDICT_BLOCKS = 5
# With fewer blocks a run mostly ends where a width is too small by chance, so that intervals cover
# too little.
FIRST_STAGE = 10
# A workload whose intervals are wider than the target gets blocks until a width of this share of
# the target is expected.
AIM = 0.9
# One decision multiplies the blocks of a workload by at most this factor.
GROWTH = 2
# A claim gets blocks only if the remaining time is at least this many times their expected time.
TO_SPARE = 1.2
# The numbers of blocks after which differences are tested, where a margin decides.
LOOKS = (5, 8, 12, 20, 32, 50, 80, 128)
# The level of the intervals whose widths decide.
LEVEL = 0.95
# The smallest relative difference that counts, MARGIN of analysis/statistics.R: a published value
# without limits tolerates it, one that is nearer to its limit counts as so far from it, and a
# replication shows no smaller change.
SMALLEST_DIFFERENCE = 0.02


class Precision(NamedTuple):
    """How far the measurement of a workload, or of a published claim, has come.

    counted: the number of blocks that count.
    again: the number of disturbed or torn blocks in whose place others are measured.
    room: how many further blocks are allowed.
    half_width: the largest relative half-width of an interval; infinite if there is none yet.
    seconds: the expected duration of one more block.
    ratios: how many ratios the workload measures.
    Only for a claim: `target` (the half-width that decides it), `environments` (of its blocks) and
    `claim` (its name).  If a claim has several ratios, the one farthest from its target counts.
    """

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
        """The number of blocks that count once the disturbed and torn ones are replaced."""
        return self.counted + self.again

    @property
    def width(self) -> float:
        """The half-width, or 1 if it is unknown; it shrinks with the square root of the blocks."""
        return self.half_width if math.isfinite(self.half_width) else 1.0


def compute_median_cell_seconds(records: Mapping[Cell, Fields]) -> dict[tuple[str, str], float]:
    """Return the median duration of a cell, in seconds, for each (environment, workload).

    One cell that took long does not move the median.
    records: the records of measured cells.  The result has no key for a pair without a record.
    """
    seconds: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (environment, workload, _), record in records.items():
        seconds[environment, workload].append(record["seconds"])
    return {pair: statistics.median(values) for pair, values in seconds.items()}


def allot_blocks_after_verdicts(
    states: Mapping[str, Precision],
    missing_blocks: Mapping[str, int],
    verdict_counts: Mapping[str, int],
    target: float,
    budget: float | None,
    seconds_left: float,
) -> dict[str, int]:
    """Return how many further blocks each workload gets: first for its verdict, then by widths.

    states: the state of each workload.
    missing_blocks, verdict_counts: as :func:`allot_blocks_to_verdicts` takes them.
    target, budget, seconds_left: as :func:`allot_blocks` takes them.
    A workload gets no block if the time does not suffice for its verdict.
    """
    seconds = {name: state.seconds for name, state in states.items()}
    first = allot_blocks_to_verdicts(missing_blocks, seconds, verdict_counts, seconds_left)
    allotted = dict.fromkeys(states, 0) | first
    if any(first.values()) and not all(first.values()):
        # The others wait: the next decision has better estimates of the time.
        return allotted
    others = {}
    for name, state in states.items():
        if first.get(name) != 0:
            seconds_left -= allotted[name] * state.seconds
            again, room = state.again + allotted[name], state.room - allotted[name]
            others[name] = state._replace(again=again, room=room)
    for name, number in allot_blocks(others, target, budget, seconds_left).items():
        allotted[name] += number
    return allotted


def allot_blocks_to_verdicts(
    missing_blocks: Mapping[str, int],
    seconds: Mapping[str, float],
    verdict_counts: Mapping[str, int],
    seconds_left: float,
) -> dict[str, int]:
    """Return how many further blocks each workload with too few blocks for a verdict gets.

    missing_blocks: how many blocks each of these workloads still needs for its verdicts.
    seconds: the expected duration of a block of each workload.
    verdict_counts: how many verdicts the blocks of each workload give.
    seconds_left: the seconds that can still be spent.
    A workload gets all of its missing blocks, or none, since fewer give no verdict.  Workloads with
    the most verdicts for their time come first.
    """
    costs = {name: number * seconds[name] for name, number in missing_blocks.items()}
    prices = {
        name: cost / verdict_counts[name] if verdict_counts[name] else math.inf
        for name, cost in costs.items()
    }
    allotted = dict.fromkeys(missing_blocks, 0)
    for name in sorted(missing_blocks, key=lambda name: (prices[name], name)):
        if costs[name] <= seconds_left:
            allotted[name] = missing_blocks[name]
            seconds_left -= costs[name]
    return allotted


def allot_blocks(
    states: Mapping[str, Precision], target: float, budget: float | None, seconds_left: float
) -> dict[str, int]:
    """Return how many further blocks each workload gets, by the widths of its intervals.

    states: the state of each workload.
    target: the relative half-width to reach.
    budget: the seconds of the whole measurement; None means no limit.
    seconds_left: the seconds that can still be spent; infinite without a budget.
    The order of workloads in `states` decides between equal prices.
    """
    # A workload that could not be measured at all gets no further block.
    measured = {workload: state for workload, state in states.items() if state.kept}
    candidates = [
        (price, workload)
        for workload, state in measured.items()
        for price in _list_block_prices(state, target)
    ]
    # After the first stage a decision spends half of what is left, or all of it once that is less
    # than a tenth of the budget, or than two blocks of every candidate.
    in_first_stage = any(state.kept < FIRST_STAGE and state.room for state in measured.values())
    seconds_of_one_each = sum(
        states[workload].seconds for workload in {workload for _, workload in candidates}
    )
    is_long = budget is not None and seconds_left >= max(budget / 10, 2 * seconds_of_one_each)
    if is_long and not in_first_stage:
        seconds_left /= 2
    allotted = dict.fromkeys(states, 0)
    too_expensive = set()
    # Sorting is stable: among equal prices the order of workloads in `states` decides.
    for _, workload in sorted(candidates, key=lambda candidate: candidate[0]):
        if workload not in too_expensive and states[workload].seconds <= seconds_left:
            allotted[workload] += 1
            seconds_left -= states[workload].seconds
        else:
            # A block of another workload may still fit.
            too_expensive.add(workload)
    return allotted


def _list_block_prices(state: Precision, target: float) -> list[float]:
    """Return a price for each further block of a workload: its seconds per width that it removes.

    Prices have a meaning only in comparison: the cheapest blocks of all workloads are measured
    first.  A block of the first stage counts as if it removed a full target.  After the first
    stage, the list ends where the target is expected to be reached.
    target: the relative half-width to reach.
    """
    prices = []
    for number in range(state.kept, state.kept + state.room):
        # The half-width that is expected after this number of blocks, as a multiple of the target.
        expected_width = state.width * math.sqrt(max(state.counted, 1) / number) / target
        if number < FIRST_STAGE:
            expected_width = 1.0
        elif state.half_width <= target or expected_width <= AIM or number >= GROWTH * state.kept:
            break
        # The next block shrinks a half-width by a share of 1/(2 n).
        prices.append(number * state.seconds / (state.ratios * expected_width))
    return prices


def count_blocks_to_next_test(measured: int, seconds: float, seconds_left: float) -> int:
    """Return how many blocks lead to the next test of differences; fewer if time is short.

    measured: the number of blocks so far.
    seconds: the expected duration of one more block.
    seconds_left: the seconds that can still be spent.
    The number is 0 after the last planned test, or if no duration is known yet.
    """
    if seconds <= 0:
        return 0
    needed = next((look - measured for look in LOOKS if look > measured), 0)
    return max(0, min(needed, math.floor(seconds_left / seconds)))


def allot_blocks_to_claims(
    claims: Iterable[tuple[str, Precision]], seconds_left: float
) -> dict[str, tuple[int, Precision]]:
    """Return ``{workload: (blocks, claim)}``: how many further blocks would decide which claim.

    claims: (workload, state) of each undecided claim.
    seconds_left: the seconds that can still be spent.
    Claims that need the least time come first; a workload gets blocks for one claim only.  A claim
    gets none if the remaining time or the allowed number of blocks does not suffice to decide it.
    """
    candidates: list[tuple[float, str, int, Precision]] = []
    for workload, claim in claims:
        # Half-widths shrink with the square root of the number of blocks.
        expected = math.ceil(claim.counted * (claim.width / (AIM * claim.target)) ** 2)
        needed = max(expected, VERDICT_BLOCKS) - claim.kept
        is_open = claim.width > claim.target or claim.kept < VERDICT_BLOCKS
        if 0 < needed <= claim.room and is_open:
            candidates.append((needed * claim.seconds, workload, needed, claim))
    allotted: dict[str, tuple[int, Precision]] = {}
    # By seconds, and by the workload's name if these are equal.
    for seconds, workload, needed, claim in sorted(candidates, key=lambda candidate: candidate[:2]):
        if workload not in allotted and TO_SPARE * seconds <= seconds_left:
            seconds_left -= seconds
            # GROWTH limits a decision: the next one adds what is still missing.
            allotted[workload] = (min(needed, (GROWTH - 1) * claim.kept), claim)
    return allotted


def compute_deciding_half_width(
    low: float | None, high: float | None, published: float | None = None
) -> float:
    """Return the relative half-width at LEVEL that decides a claim with this tolerance.

    With this half-width, the claim's interval at 90 % lies within the tolerance in 80 % of cases
    (Julious 2004).  This assumes a true ratio of 1, or in the middle of a tolerance that excludes
    1.  For a tolerance with one limit (the other is None), it assumes the published ratio, but at
    least the distance SMALLEST_DIFFERENCE from the limit.
    low, high, published: the limits of the tolerance and the published value, as ratios.
    Raises ValueError if the tolerance has no limit.
    """
    find_quantile = statistics.NormalDist().inv_cdf
    width_quantile = find_quantile((1 + LEVEL) / 2)
    # The claim's interval at 90 % leaves 5 % beyond each end.
    claim_quantile = find_quantile(0.95)
    if low is not None and high is not None:
        ratio = 1.0 if low < 1 < high else (low + high) / 2
        margin = min(high - ratio, ratio - low) / ratio
        # The claim is undecided in 20 % of cases; each limit may cause half of them.
        return margin * width_quantile / (claim_quantile + find_quantile(0.9))
    limit = low if high is None else high
    if limit is None:
        raise ValueError("a tolerance without limits")
    distance = abs(published - limit) / limit if published else 0.0
    margin = max(distance, SMALLEST_DIFFERENCE)
    return margin * width_quantile / (claim_quantile + find_quantile(0.8))
