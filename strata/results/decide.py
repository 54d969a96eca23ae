"""Which blocks come next: those that were disturbed again, and more where intervals are wide.

Widths of intervals (analysis/widths.R), costs, the budget and the machine's flags decide, and never a difference
between environments.
"""

import json
import math
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from strata.base.constants import result
from strata.base.errors import UserError
from strata.base.files import write_csv, write_json
from strata.base.process import capture
from strata.base.shapes import Fields, Plan
from strata.cell import quiet
from strata.experiment import blocks, plan, precision
from strata.experiment.blocks import Block, Cell
from strata.experiment.precision import Claim, State
from strata.host import node
from strata.results import tidy


def decide(round: int) -> None:
    """Write the decision after a round, and print it in one line.

    Raises UserError where nothing is decided after it, or its cells are not measured.
    """
    experiment = plan.read_checked()
    order = blocks.Order(experiment)
    if order.asked[-1:] != [round]:
        due = f"one is due after {order.last}" if order.asked else "the config adds no blocks"
        raise UserError(f"no decision is due after round {round}; {due}")
    decision = _Measured(experiment, order).decision()
    write_json(result("precision", round=round), decision)
    # So that the next cell says of how many it is one.
    plan.write_cells(experiment)
    print(f"after round {round} it {'ends' if decision['enough'] else 'goes on'}: {decision['reason']}")


class _Measured:
    """What is known once all blocks so far are measured.

    left: seconds of the budget.  again: the blocks that are measured again, and what disturbed each, in words.
    widths: of the ratios that count, as from :func:`widths`.
    """

    def __init__(self, experiment: Plan, order: blocks.Order) -> None:
        self.experiment, self.order, self.asked = experiment, order, experiment["precision"]
        found = tidy.values()
        self.costs: dict[tuple[str, str], list[float]] = defaultdict(list)
        for cell, cost in _costs(found.records).items():
            self.costs[cell[:2]].append(cost)
        self.spent = sum(map(sum, self.costs.values()))
        self.left = math.inf if self.asked["budget"] is None else self.asked["budget"] - self.spent
        disturbed = {
            cell[1:]: quiet.cause(flags)
            for cell, record in found.records.items()
            if cell[0] in order.paired and (flags := record.get("quiet", {}).get("flags"))
        }
        self.again: dict[Block, str] = {}
        for block in sorted(set(disturbed) - order.aside, key=lambda one: one[::-1]):
            seconds = self._seconds(block[0])
            if order.tries.get(block, 0) < self.asked["retries"] and seconds <= self.left:
                self.again[block] = disturbed[block]
                self.left -= seconds
        self.widths = widths(found.rows, self.again)

    def _seconds(self, load: str, names: Iterable[str] | None = None) -> float:
        """What a block of these environments takes, or the next one."""
        among = [name for name in self.order.next_block(load) if names is None or name in names]
        return sum(statistics.fmean(self.costs[name, load]) for name in among if (name, load) in self.costs)

    def _state(self, load: str) -> State:
        """The state of a workload; blocks of some environments alone, for a claim, do not count."""
        own = [row for row in self.widths if row["workload"] == load and not row["id"]]
        counted = min((row["n"] for row in own), default=0)
        again, aside = (sum(one[0] == load for one in those) for those in (self.again, self.order.aside))
        # What could not be measured takes the place of another block; what was set aside does not.
        room = self.asked["max"] - self.order.blocks[load] + aside
        width = max((row["half_width"] for row in own), default=math.inf)
        return State(counted, again, room, width, self._seconds(load))

    def _claims(self, states: dict[str, State]) -> list[Claim]:
        """What published claims ask for: the widest of the ratios that each is about decides."""
        parts: dict[tuple[str, str], list[Fields]] = defaultdict(list)
        for row in self.widths:
            if row["id"]:
                parts[row["workload"], row["id"]].append(row)
        found = []
        for (load, name), rows in parts.items():
            names = sorted({blocks.REFERENCE, *(row["environment"] for row in rows)})
            widest = max(rows, key=lambda row: row["half_width"])
            target = precision.deciding(widest["low"], widest["high"])
            counted, width, seconds = widest["n"], widest["half_width"], self._seconds(load, names)
            own = states[load]._replace(counted=counted, half_width=width, seconds=seconds)
            found.append(Claim(load, name, target, names, own))
        return found

    def decision(self) -> Fields:
        """The decision, as it stands in results/precision (docs/files.md)."""
        target, budget = self.asked["target"], self.asked["budget"]
        states = {load: self._state(load) for load in self.experiment["workloads"]}
        more, of_claims = dict.fromkeys(states, 0), {}
        if target is not None:
            more = precision.further(states, target, budget, self.left)
            if self.asked.get("claims") and not any(more.values()):
                of_claims = precision.for_claims(self._claims(states), self.left)
                more |= {load: number for load, (number, _) in of_claims.items()}
        told: dict[str, Fields] = {}
        words: dict[str, list[str]] = defaultdict(list)
        for load, state in states.items():
            claim = of_claims[load][1] if load in of_claims else None
            again = {number: why for (name, number), why in self.again.items() if name == load}
            reason = _reason(state, more[load], target, claim, again)
            words[reason].append(load)
            told[load] = {
                "blocks": self.order.blocks[load],
                "seconds": round(state.seconds, 3),
                "half_width": state.half_width if math.isfinite(state.half_width) else None,
                "again": [*again],
                "more": more[load],
                "environments": claim.environments if claim and claim.environments != self.order.paired else None,
                "claim": claim.name if claim else None,
                "reason": reason,
            }
        spent = f"; {self.spent:.0f} of {budget:.0f} s are used" if budget is not None else ""
        return {
            "round": self.order.last,
            "enough": not any(entry["again"] or entry["more"] for entry in told.values()),
            "reason": "; ".join(f"{', '.join(loads)}: {reason}" for reason, loads in words.items()) + spent,
            "rests_on": blocks.rests_on(self.experiment),
            "spent_seconds": round(self.spent, 3),
            "workloads": told,
        }


def widths(rows: Mapping[str, Iterable[Sequence[object]]], aside: Iterable[Block]) -> list[Fields]:
    """``{id, workload, environment, n, half_width, low, high}`` of each ratio to native by which it is decided.

    rows: tidy ones by workload; those of blocks that are set aside do not count.  id: of the claim that it is part of,
    with the limits of its tolerance; or empty.
    """
    apart: set[object] = {*aside}
    left = {load: [row for row in own if (load, row[2]) not in apart] for load, own in rows.items()}
    if not any(left.values()):
        return []
    with tempfile.TemporaryDirectory() as folder:
        for load, own in left.items():
            write_csv(os.path.join(folder, f"{load}.csv"), tidy.COLUMNS, own)
        told = capture(["Rscript", "analysis/widths.R", "results", folder], timeout=3600).stdout
    found: list[Fields] = json.loads(told)
    return [{**row, "half_width": math.inf if row["half_width"] is None else row["half_width"]} for row in found]


def _reason(state: State, more: int, target: float | None, claim: Claim | None, again: dict[int, str]) -> str:
    """How wide a workload's interval is and may be, and how many blocks it gets."""
    width = f"± {100 * state.half_width:.1f} %" if math.isfinite(state.half_width) else "no interval"
    wanted = f" (target ± {100 * target:.1f} %)" if target is not None else ""
    if more or target is None:
        of = f" of {', '.join(claim.environments)} for {claim.name} (± {100 * claim.target:.1f} %)" if claim else ""
        why = f"{more} more{of}"
    elif state.half_width <= target:
        why = "within the target"
    else:
        why = "the largest number of blocks" if state.room <= 0 else "the budget pays for no more"
    repeated = "".join(f", block {number} again: {cause}" for number, cause in again.items())
    return f"{width}{wanted}{repeated}, {why}"


def _costs(records: Mapping[Cell, Any]) -> dict[Cell, float]:
    """Seconds of each cell, with its share of what lies between cells: their median, since an interruption of the run
    costs nothing."""
    ended: dict[str | None, float] = {}
    between = []
    for record in sorted(records.values(), key=lambda one: one["position"]["actual"]):
        # Nodes measure at the same time, and each counts for itself.
        where = node.of_record(record)
        start, end = (datetime.fromisoformat(record[key]).timestamp() for key in ("started", "ended"))
        # Cells that took turns overlap.
        between += [start - ended[where]] if start > ended.get(where, math.inf) else []
        ended[where] = max(end, ended.get(where, end))
    share = statistics.median(between) * len(between) / len(records) if between else 0
    return {cell: record["seconds"] + share for cell, record in records.items()}
