"""Which blocks come next: those that were disturbed again, and more where intervals are wide.

Widths of intervals (analysis/widths.R), costs, the budget and the machine's flags decide, and never a difference
between environments.
"""

import json
import math
from collections import defaultdict
from collections.abc import Container, Sequence

from strata.experiment import blocks, plan, precision
from strata.experiment.precision import State
from strata.measure import interference
from strata.results import tidy
from strata.util import programs, progress
from strata.util.constants import result
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import write_json


def decide(round: int) -> None:
    """Write the decision after a round, and print it in one line.

    Raises UserError where nothing is decided after it, or its cells are not measured.
    """
    experiment = plan.read_checked()
    order = blocks.Order(experiment)
    if order.asked[-1:] != [round]:
        due = f"one is due after {order.last}" if order.asked else "the config adds no blocks"
        raise UserError(f"no decision is due after round {round}; {due}")
    decision = _decision(experiment, order, tidy.values())
    write_json(result("precision", round=round), decision, lasting=True)
    # So that the next cell says of how many it is one.
    plan.write_cells(experiment)
    progress.printed(
        f"after round {round} it {'ends' if decision['enough'] else 'goes on'}: {decision['reason']}"
    )


def _decision(experiment: Plan, order: blocks.Order, found: tidy.Values) -> Fields:
    """The decision, as it stands in results/precision (docs/files.md)."""
    asked, costs = experiment["precision"], precision.costs(found.records)
    target, budget = asked["target"], asked["budget"]
    spent = sum(record["seconds"] for record in found.records.values())
    left = math.inf if budget is None else budget - spent

    def takes(load: str, names: Container[str]) -> float:
        """Seconds of the next block of a workload, of some environments alone."""
        return sum(costs.get((name, load), 0.0) for name in order.next_block(load) if name in names)

    disturbed = {
        cell[1:]: interference.cause(flags)
        for cell, record in found.records.items()
        if cell[0] in order.paired
        and cell[1:] not in order.aside
        and (flags := record.get("quiet", {}).get("flags"))
    }
    again: dict[blocks.Block, str] = {}
    for block in sorted(disturbed, key=lambda one: one[::-1]):
        seconds = takes(block[0], {cell[0] for cell in order.places if cell[1:] == block})
        if order.tries.get(block, 0) < asked["retries"] and seconds <= left:
            again[block] = disturbed[block]
            left -= seconds
    ratios: dict[tuple[str, str], list[Fields]] = defaultdict(list)
    for row in _widths(found, again):
        ratios[row["workload"], row["id"]].append(row)

    def state(load: str, claim: str = "") -> State:
        rows = ratios[load, claim]
        repeated, aside = (sum(one[0] == load for one in those) for those in (again, order.aside))
        # What could not be measured takes the place of another block; what was set aside does not.
        room = asked["max"] - order.blocks[load] + aside
        wide = [row for row in rows if target is not None and row["half_width"] > target]
        if wide and not claim and min(row["n"] for row in rows) >= precision.FIRST_STAGE:
            # What is within the target already is in no further block.
            rows = wide
        among = {blocks.REFERENCE, *(row["environment"] for row in rows)}
        names = [name for name in order.paired if name in among or not (claim or rows is wide)]
        counted = min((row["n"] for row in rows), default=0)
        width = max((row["half_width"] for row in rows), default=math.inf)
        decides = precision.deciding(rows[0]["low"], rows[0]["high"]) if claim else 0.0
        return State(
            counted,
            repeated,
            room,
            width,
            takes(load, names),
            max(len(rows), 1),
            decides,
            names,
            claim,
        )

    states = {load: state(load) for load in experiment["workloads"]}
    more, of_claims = dict.fromkeys(states, 0), {}
    if target is not None:
        more = precision.further(states, target, budget, left)
        if asked.get("claims") and not any(more.values()):
            of_claims = precision.for_claims(
                [(key[0], state(*key)) for key in [*ratios] if key[1]], left
            )
            more |= {load: number for load, (number, _) in of_claims.items()}
    told: dict[str, Fields] = {}
    words: dict[str, list[str]] = defaultdict(list)
    for load, own in states.items():
        claim = of_claims[load][1] if load in of_claims else None
        names = (claim or own).environments
        among = names if more[load] and names != order.paired else None
        repeated = {number: cause for (name, number), cause in again.items() if name == load}
        reason = _reason(own, more[load], among, target, claim, repeated)
        words[reason].append(load)
        told[load] = {
            "blocks": order.blocks[load],
            "seconds": round(own.seconds, 3),
            "half_width": own.half_width if math.isfinite(own.half_width) else None,
            "again": [*repeated],
            "more": more[load],
            "environments": among,
            "claim": claim.claim if claim else None,
            "reason": reason,
        }
    used = f"; {spent:.0f} of {budget:.0f} s are used" if budget is not None else ""
    return {
        "round": order.last,
        "enough": not any(entry["again"] or entry["more"] for entry in told.values()),
        "reason": "; ".join(f"{', '.join(loads)}: {reason}" for reason, loads in words.items())
        + used,
        "rests_on": blocks.rests_on(experiment),
        "spent_seconds": round(spent, 3),
        "workloads": told,
    }


def _widths(found: tidy.Values, aside: Container[blocks.Block]) -> list[Fields]:
    """``{id, workload, environment, n, half_width, low, high}`` of each ratio to native by which it is decided.

    aside: blocks that do not count.  id: of the claim that it is part of, with the limits of its tolerance; or empty.
    """
    counting = {
        load: [row for row in rows if (load, row["repetition"]) not in aside]
        for load, rows in found.values.items()
    }
    if not any(counting.values()):
        return []
    with programs.scratch("widths") as folder:
        tidy.write_values(found._replace(values=counting), folder)
        told = programs.r("analysis/widths.R", "results", folder)
    ratios: list[Fields] = json.loads(told)
    return [
        {**row, "half_width": math.inf if row["half_width"] is None else row["half_width"]}
        for row in ratios
    ]


def _reason(
    state: State,
    more: int,
    among: Sequence[str] | None,
    target: float | None,
    claim: State | None,
    again: dict[int, str],
) -> str:
    """How wide a workload's interval is and may be, and how many blocks it gets of which environments."""
    width = (
        f"± {100 * state.half_width:.1f} %" if math.isfinite(state.half_width) else "no interval"
    )
    wanted = f" (target ± {100 * target:.1f} %)" if target is not None else ""
    if more or target is None:
        of = f" of {', '.join(among)}" if among else ""
        why = f"{more} more{of}{f' for {claim.claim} (± {100 * claim.target:.1f} %)' if claim else ''}"
    elif state.half_width <= target:
        why = "within the target"
    else:
        why = "the largest number of blocks" if state.room <= 0 else "the budget pays for no more"
    repeated = "".join(f", block {number} again: {cause}" for number, cause in again.items())
    return f"{width}{wanted}{repeated}, {why}"
