"""Which blocks come next: those that were disturbed again, and more where intervals are wide.

Widths of intervals, costs, the budget and the machine's flags decide, and never a difference between environments.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from strata.base.constants import result
from strata.base.errors import UserError
from strata.base.files import write_json
from strata.base.shapes import Fields, Plan
from strata.cell import quiet
from strata.experiment import blocks, claims, plan, precision, sizes
from strata.experiment.blocks import Block, Cell
from strata.experiment.precision import Claim, State
from strata.host import node
from strata.results import headline, tidy

# Environment, metric, factors.
Series = tuple[str, str, str]
# Of a run its value and those of its laps.
Run = tuple[float, str]


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
    print(f"after round {round} it {'ends' if decision['enough'] else 'goes on'}: {decision['reason']}")


class _Measured:
    """What is known once all blocks so far are measured.

    left: seconds of the budget.  again: the blocks that are measured again.  series: of each workload the runs that
    count, by their repetition.  widths: of each workload the half-width and number of pairs of each headline ratio.
    """

    def __init__(self, experiment: Plan, order: blocks.Order) -> None:
        self.experiment, self.order, self.asked = experiment, order, experiment["precision"]
        found = tidy.values()
        self.records = found.records
        self.costs: dict[tuple[str, str], list[float]] = defaultdict(list)
        for cell, cost in _costs(self.records).items():
            self.costs[cell[:2]].append(cost)
        self.spent = sum(map(sum, self.costs.values()))
        self.left = math.inf if self.asked["budget"] is None else self.asked["budget"] - self.spent
        self.causes = disturbed(order, self.records)
        self.again: list[Block] = []
        for block in sorted(set(self.causes) - order.aside, key=lambda one: one[::-1]):
            seconds = self._seconds(block[0])
            if order.tries.get(block, 0) < self.asked["retries"] and seconds <= self.left:
                self.again.append(block)
                self.left -= seconds
        self.series = {load: self._series(load, rows) for load, rows in found.rows.items()}
        self.widths = {load: self._widths(load) for load in self.series}

    def _seconds(self, load: str, names: Iterable[str] | None = None) -> float:
        """What a block of these environments takes, or the next one."""
        among = [name for name in self.order.next_block(load) if names is None or name in names]
        return sum(statistics.fmean(self.costs[name, load]) for name in among if (name, load) in self.costs)

    def _series(self, load: str, rows: Iterable[Iterable[Any]]) -> dict[Series, dict[int, Run]]:
        found: dict[Series, dict[int, Run]] = defaultdict(dict)
        for row in (dict(zip(tidy.COLUMNS, one, strict=True)) for one in rows):
            name, number = row["environment"], row["repetition"]
            if name in self.order.paired and row["counts"] == "yes" and (load, number) not in self.again:
                found[name, row["metric"], row["factors"]][number] = (float(row["value"]), row["laps"])
        return found

    def _widths(self, load: str) -> dict[Series, tuple[float, int]]:
        """Of ratios to native; of levels without such."""
        series, found = self.series[load], {}
        told = headline.of_workload(self.experiment["workloads"][load], {one[1:] for one in series})
        ratios = blocks.REFERENCE in self.order.paired and len(self.order.paired) > 1
        for one, own in series.items():
            if one[1:] in told and not (ratios and one[0] == blocks.REFERENCE):
                base = series.get((blocks.REFERENCE, *one[1:]), {}) if ratios else dict.fromkeys(own, (1.0, ""))
                kept = [math.log(ratio(own[at], base[at])) for at in sorted(own) if at in base]
                found[one] = (precision.half_width(kept), len(kept))
        return found

    def _state(self, load: str) -> State:
        """The state of a workload; blocks of some environments alone, for a claim, do not count."""
        held: dict[str, set[int]] = defaultdict(set)
        for one, own in self.series[load].items():
            held[one[0]] |= set(own)
        counted = len(set.intersection(*held.values())) if held else 0
        again, aside = (sum(one[0] == load for one in those) for those in (self.again, self.order.aside))
        # What could not be measured takes the place of another block; what was set aside does not.
        room = self.asked["max"] - self.order.blocks[load] + aside
        width = max((width for width, _ in self.widths[load].values()), default=math.inf)
        return State(counted, again, room, width, self._seconds(load))

    def _claims(self, states: dict[str, State]) -> dict[str, list[Claim]]:
        """What published claims ask for, by workload; none of a workload of which a size rule does not hold."""
        sockets = [record["observed"]["host"]["static"].get("sockets") for record in self.records.values()]
        here = {
            "processors": self.experiment["machine"].get("cpus"),
            "sockets": max((one for one in sockets if isinstance(one, int)), default=None),
        }
        small = {
            cell[1]
            for cell, record in self.records.items()
            if cell[0] in self.order.paired and sizes.broken(record.get("sizes", []))
        }
        there = {(one[0], load, *one[1:]) for load, own in self.series.items() if load not in small for one in own}
        found: dict[str, list[Claim]] = {load: [] for load in states}
        for name, (low, high, series) in claims.ratios(there, here).items():
            for load in {one[1] for one in series}:
                own = [(one[0], *one[2:]) for one in series if one[1] == load]
                if known := [self.widths[load][one] for one in own if one in self.widths[load]]:
                    state, (width, pairs) = states[load], max(known)
                    names = sorted({blocks.REFERENCE, *(one[0] for one in own)})
                    of_claim = State(pairs, state.again, state.room, width, self._seconds(load, names))
                    found[load].append(Claim(name, precision.deciding(low, high), names, of_claim))
        return found

    def decision(self) -> Fields:
        """The decision, as it stands in results/precision (docs/files.md)."""
        target, budget = self.asked["target"], self.asked["budget"]
        states = {load: self._state(load) for load in self.experiment["workloads"]}
        more, of_claims = dict.fromkeys(states, 0), {}
        if target is not None:
            more = precision.further(states, target, budget, self.left)
            if self.asked.get("claims") and not any(more.values()) and self.experiment["scale"] != blocks.SMALL:
                of_claims = precision.for_claims(self._claims(states), self.left)
                more |= {load: number for load, (number, _) in of_claims.items()}
        told: dict[str, Fields] = {}
        words: dict[str, list[str]] = defaultdict(list)
        for load, state in states.items():
            claim = of_claims[load][1] if load in of_claims else None
            reason = _reason(state, more[load], target, claim, repeated(load, self.again, self.causes))
            words[reason].append(load)
            told[load] = {
                "blocks": self.order.blocks[load],
                "seconds": round(state.seconds, 3),
                "half_width": state.half_width if math.isfinite(state.half_width) else None,
                "again": [number for name, number in self.again if name == load],
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


def disturbed(order: blocks.Order, records: Mapping[Cell, Any]) -> dict[Block, str]:
    """The blocks of these records that something disturbed, and what, in words."""
    found: dict[Block, str] = {}
    for cell, record in records.items():
        if cell[0] in order.paired and (flags := record.get("quiet", {}).get("flags")):
            found.setdefault(cell[1:], quiet.cause(flags))
    return found


def repeated(load: str, again: Iterable[Block], causes: Mapping[Block, str]) -> str:
    """Which blocks of a workload are measured again, and why; nothing where none is."""
    return ", ".join(f"block {one[1]} again: {causes[one]}" for one in again if one[0] == load)


def _reason(state: State, more: int, target: float | None, claim: Claim | None, again: str) -> str:
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
    return f"{width}{wanted}{again and ', '}{again}, {why}"


def ratio(measured: Run, reference: Run) -> float:
    """The ratio of two runs of a block: of laps the median of their pairs."""
    laps = [[float(lap) for lap in one[1].split(";") if lap] for one in (measured, reference)]
    if laps[0] and len(laps[0]) == len(laps[1]):
        return float(statistics.median(one / other for one, other in zip(*laps, strict=True)))
    return measured[0] / reference[0]


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
