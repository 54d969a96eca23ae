"""Allot further blocks to workloads, only by the widths of intervals and costs.

Differences between environments never decide it, unless the configuration names a margin: then
they are tested in planned interim analyses (:data:`LOOKS`), which share the error rate.

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
# With fewer blocks, measuring mostly ends where a width is too small by chance, and intervals then
# cover the true ratio too rarely.
FIRST_STAGE = 10
# A workload whose intervals are wider than the target gets blocks until a width of this share of
# the target is expected.
TARGET_SHARE = 0.9
# One decision multiplies the blocks of a workload by at most this factor.
MAX_GROWTH = 2
# A claim gets blocks only if the remaining time is at least this many times their expected time.
TIME_RESERVE = 1.2
# The numbers of blocks of the planned interim analyses, after which differences are tested if the
# plan names a margin.  studies/looks.R has the same numbers, and simulates their error rate.
LOOKS = (5, 8, 12, 20, 32, 50, 80, 128)
# The confidence level of the intervals whose widths decide.
LEVEL = 0.95
# The smallest relative difference that matters; MARGIN of analysis/statistics.R has the same value.
# It is the tolerance of a published value without limits, the smallest assumed distance of a
# published value from its limit, and the smallest change that a replication shows.
SMALLEST_DIFFERENCE = 0.02


class Precision(NamedTuple):
    """How far the measurement of a workload, or of a published claim, has come.

    counted: the number of blocks that count.
    again: the number of disturbed or torn blocks that are replaced.
    room: how many further blocks the plan allows.
    half_width: the largest relative half-width of an interval; infinite if there is none yet.
    seconds: the expected duration of one more block.
    ratios: how many ratios the workload measures.
    target: only for a claim: the half-width that decides it.  If a claim has several ratios, the
    ratio farthest from its target counts.
    environments: the environments that further blocks hold.
    claim: only for a claim: its ID.
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

    states: workload → its state.
    missing_blocks: workload → how many blocks it still needs for its verdicts; others are missing.
    verdict_counts: workload → how many verdicts its blocks give.
    target: the relative half-width to reach.
    budget: the seconds of the whole measurement; None means no limit.
    seconds_left: the remaining seconds of the budget; infinite without a budget.
    A workload gets no block if the time is too short for its verdicts.
    """
    seconds = {name: state.seconds for name, state in states.items()}
    verdict_blocks = allot_blocks_to_verdicts(missing_blocks, seconds, verdict_counts, seconds_left)
    block_counts = dict.fromkeys(states, 0) | verdict_blocks
    if any(verdict_blocks.values()) and not all(verdict_blocks.values()):
        # The time is too short for some workloads.  The next decision has better estimates of it.
        return block_counts
    # The states as they will be once the blocks for verdicts are measured.
    later_states = {}
    for name, state in states.items():
        if name in verdict_blocks and verdict_blocks[name] == 0:
            # The time is too short for its verdicts.
            continue
        seconds_left -= block_counts[name] * state.seconds
        later_states[name] = state._replace(
            again=state.again + block_counts[name], room=state.room - block_counts[name]
        )
    for name, count in allot_blocks(later_states, target, budget, seconds_left).items():
        block_counts[name] += count
    return block_counts


def allot_blocks_to_verdicts(
    missing_blocks: Mapping[str, int],
    seconds: Mapping[str, float],
    verdict_counts: Mapping[str, int],
    seconds_left: float,
) -> dict[str, int]:
    """Return how many further blocks each workload with too few blocks for a verdict gets.

    missing_blocks: workload → how many blocks it still needs for its verdicts, above 0.
    seconds: workload → the expected duration of one of its blocks.
    verdict_counts: workload → how many verdicts its blocks give.
    seconds_left: the remaining seconds of the budget; infinite without a budget.
    A workload gets all of its missing blocks, or none, since fewer give no verdict.  Workloads with
    the most verdicts for their time come first, and those without a verdict last.
    """
    costs = {name: count * seconds[name] for name, count in missing_blocks.items()}
    # The seconds that each verdict of a workload costs.
    prices = {}
    for name, cost in costs.items():
        prices[name] = cost / verdict_counts[name] if verdict_counts[name] else math.inf
    block_counts = dict.fromkeys(missing_blocks, 0)
    # By price, and by name if prices are equal.
    for name in sorted(missing_blocks, key=lambda name: (prices[name], name)):
        if costs[name] <= seconds_left:
            block_counts[name] = missing_blocks[name]
            seconds_left -= costs[name]
    return block_counts


def allot_blocks(
    states: Mapping[str, Precision], target: float, budget: float | None, seconds_left: float
) -> dict[str, int]:
    """Return how many further blocks each workload gets, by the widths of its intervals.

    states: workload → its state.
    target: the relative half-width to reach.
    budget: the seconds of the whole measurement; None means no limit.
    seconds_left: the remaining seconds of the budget; infinite without a budget.
    Blocks with the lowest price come first; see :func:`_list_block_prices`.  A workload that could
    not be measured at all gets no block.  The order of workloads in `states` decides between equal
    prices.
    """
    measured_states = {workload: state for workload, state in states.items() if state.kept}
    candidates = []
    for workload, state in measured_states.items():
        for price in _list_block_prices(state, target):
            candidates.append((price, workload))
    is_first_stage = any(
        state.kept < FIRST_STAGE and state.room for state in measured_states.values()
    )
    if budget is not None and not is_first_stage:
        # After the first stage a decision spends half of the remaining time, since later decisions
        # know the widths better.  It spends all of it once that is less than a tenth of the budget,
        # or than two blocks of every candidate.
        candidate_workloads = {workload for _, workload in candidates}
        seconds_of_one_each = sum(states[workload].seconds for workload in candidate_workloads)
        if seconds_left >= max(budget / 10, 2 * seconds_of_one_each):
            seconds_left /= 2
    block_counts = dict.fromkeys(states, 0)
    too_expensive = set()
    # Sorting is stable: among equal prices the order of workloads in `states` decides.
    for _, workload in sorted(candidates, key=lambda candidate: candidate[0]):
        if workload not in too_expensive and states[workload].seconds <= seconds_left:
            block_counts[workload] += 1
            seconds_left -= states[workload].seconds
        else:
            # A block of another workload may still fit.
            too_expensive.add(workload)
    return block_counts


def _list_block_prices(state: Precision, target: float) -> list[float]:
    """Return a price for each further block of a workload: its seconds per width that it removes.

    Prices have a meaning only in comparison: the cheapest blocks of all workloads are measured
    first.  A block of the first stage counts as if it removed a full target.  After the first
    stage, the list ends where the target is expected to be reached.
    state: the state of the workload.
    target: the relative half-width to reach, above 0.
    """
    prices = []
    for number in range(state.kept, state.kept + state.room):
        # The half-width that is expected after this number of blocks, as a multiple of the target.
        expected_width = state.width * math.sqrt(max(state.counted, 1) / number) / target
        if number < FIRST_STAGE:
            expected_width = 1.0
        else:
            is_reached = state.half_width <= target or expected_width <= TARGET_SHARE
            if is_reached or number >= MAX_GROWTH * state.kept:
                break
        # The next block shrinks a half-width by a share of 1/(2 n).
        prices.append(number * state.seconds / (state.ratios * expected_width))
    return prices


def count_blocks_to_next_test(measured: int, seconds: float, seconds_left: float) -> int:
    """Return how many blocks lead to the next test of differences; fewer if time is short.

    measured: the number of blocks so far.
    seconds: the expected duration of one more block; 0 if it is not known yet.
    seconds_left: the remaining seconds of the budget; negative if the time is up, and infinite
    without a budget.
    The number is 0 after the last planned test, if no duration is known, or if the time is up.
    """
    if seconds <= 0:
        return 0
    needed = next((look - measured for look in LOOKS if look > measured), 0)
    # The smaller one is rounded: infinity has no whole number.
    return max(0, math.floor(min(needed, seconds_left / seconds)))


def allot_blocks_to_claims(
    claims: Iterable[tuple[str, Precision]], seconds_left: float
) -> dict[str, tuple[int, Precision]]:
    """Return ``{workload: (blocks, claim)}``: how many further blocks would decide which claim.

    claims: (workload, state) of each undecided claim; `target` of a state is above 0.
    seconds_left: the remaining seconds of the budget; infinite without a budget.
    Claims that need the least time come first; a workload gets blocks for one claim only.  A claim
    gets no blocks if the remaining time, or the allowed number of blocks, is too small to decide
    it.
    """
    candidates: list[tuple[float, str, int, Precision]] = []
    for workload, claim in claims:
        # Half-widths shrink with the square root of the number of blocks.
        width_ratio = claim.width / (TARGET_SHARE * claim.target)
        deciding_count = math.ceil(claim.counted * width_ratio**2)
        missing_count = max(deciding_count, VERDICT_BLOCKS) - claim.kept
        is_open = claim.width > claim.target or claim.kept < VERDICT_BLOCKS
        if 0 < missing_count <= claim.room and is_open:
            candidates.append((missing_count * claim.seconds, workload, missing_count, claim))
    allotments: dict[str, tuple[int, Precision]] = {}
    # By seconds, and by the workload's name if these are equal.
    candidates.sort(key=lambda candidate: candidate[:2])
    for seconds, workload, missing_count, claim in candidates:
        if workload not in allotments and TIME_RESERVE * seconds <= seconds_left:
            # The time of all missing blocks is reserved, although MAX_GROWTH limits how many of
            # them this decision adds; the next decision adds the rest.
            seconds_left -= seconds
            added_count = min(missing_count, (MAX_GROWTH - 1) * claim.kept)
            allotments[workload] = (added_count, claim)
    return allotments


def compute_deciding_half_width(
    low: float | None, high: float | None, published: float | None = None
) -> float:
    """Return the relative half-width at LEVEL that decides a claim with this tolerance.

    With this half-width, the claim's interval at 90 % lies within the tolerance in 80 % of cases
    (Julious 2004).  This assumes a true ratio of 1, or in the middle of a tolerance that excludes
    1.  For a tolerance with one limit (the other is None), it assumes the published ratio, but at
    least the distance SMALLEST_DIFFERENCE from the limit.
    low: the lower limit of the tolerance, a positive ratio; None means no limit.
    high: the upper limit, in the same form.
    published: the published ratio; None, or 0, if it is unknown, which counts as the limit itself.
    Raises ValueError if the tolerance has no limit.
    """
    # The standard normal quantile of a probability.
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
