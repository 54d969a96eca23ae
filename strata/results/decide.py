"""Which sets come next after a round: what was disturbed again, and more where intervals are wide.

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
from strata.base.files import read_json, write_json
from strata.base.shapes import Fields, Plan
from strata.cell import quiet
from strata.experiment import claims, plan, precision, sets, sizes
from strata.experiment.precision import Claim, State
from strata.host import node
from strata.results import headline, tidy

# Environment, metric, factors.
Series = tuple[str, str, str]
# What tests no claim whatever its rules say (analysis/read.R).
TINY = "tiny"


def decide(block: int) -> None:
    """Write the decision after a block, and print it in one line.

    Raises UserError where nothing is decided after it, or its cells are not measured.
    """
    experiment = plan.read_checked()
    order = sets.Order(experiment)
    if block not in order.asked:
        after = ", ".join(map(str, order.asked)) or "none, since the config adds no blocks"
        raise UserError(f"no decision is due after block {block}; one is due after {after}")
    decision = _Round(experiment, order, block).decision()
    write_json(result("precision", block=block), decision)
    print(f"after block {block} it {'ends' if decision['enough'] else 'goes on'}: {decision['reason']}")


class _Round:
    """What is known after the last block of a round."""

    def __init__(self, experiment: Plan, order: sets.Order, block: int) -> None:
        self.experiment, self.order, self.block = experiment, order, block
        self.asked, self.loads = experiment["precision"], list(experiment["workloads"])
        self.rounds = [step for step in order.rounds if step.first <= block]
        found = tidy.values(blocks=block)
        self.records = found.records
        self.rows: dict[str, list[Fields]] = {
            load: [dict(zip(tidy.COLUMNS, row, strict=True)) for row in rows] for load, rows in found.rows.items()
        }
        costs = _costs(self.records)
        self.cost: dict[tuple[str, str], list[float]] = defaultdict(list)
        for (name, load, _), seconds in costs.items():
            self.cost[name, load].append(seconds)
        self.spent = sum(costs.values())
        self.left = math.inf if self.asked["budget"] is None else self.asked["budget"] - self.spent
        self.aside, self.again = self._disturbed()
        self.widths = {load: self._widths(load) for load in self.loads}

    def _seconds(self, load: str, names: Iterable[str] | None = None) -> float:
        """What a set of these environments takes, or the next one."""
        among = self.order.of_set(load, self.order.sets(load) + 1)
        costs = (self.cost.get((name, load)) for name in among if names is None or name in names)
        return sum(statistics.fmean(seconds) for seconds in costs if seconds)

    def _disturbed(self) -> tuple[set[tuple[str, int]], list[tuple[str, int]]]:
        """The sets (workload, number) that were set aside before, and those that are measured again now."""
        tries: dict[tuple[str, int], int] = defaultdict(int)
        aside = set(self.order.set_aside(self.block))
        for step in self.rounds[1:]:
            for load, state in (read_json(result("precision", block=step.first - 1)) or {})["workloads"].items():
                for at, number in enumerate(state["again"], 1):
                    # A set may have taken the place of one that had taken another's.
                    tries[load, step.before[load] + at] = tries[load, number] + 1
        flagged = set(disturbed(self.order, self.records))
        again = []
        for load, number in sorted(flagged - aside, key=lambda one: (one[1], self.loads.index(one[0]))):
            if tries[load, number] < self.asked["retries"] and self._seconds(load) <= self.left:
                again.append((load, number))
                self.left -= self._seconds(load)
        return aside, again

    def _counting(self, load: str) -> list[Fields]:
        """The rows that count of environments that are in all sets."""
        among = [row for row in self.rows[load] if row["environment"] in self.order.paired and row["counts"] == "yes"]
        return [row for row in among if (load, row["repetition"]) not in self.again]

    def _widths(self, load: str) -> dict[Series, tuple[float, int]]:
        """Relative half-width and number of pairs of each headline ratio to native; of levels without such ratios."""
        values: dict[Series, dict[int, tuple[float, str]]] = defaultdict(dict)
        for row in self._counting(load):
            own = values[row["environment"], row["metric"], row["factors"]]
            own[row["repetition"]] = (float(row["value"]), row["laps"])
        told = headline.of_workload(self.experiment["workloads"][load], {one[1:] for one in values})
        ratios = sets.REFERENCE in self.order.paired and len(self.order.paired) > 1
        found = {}
        for one, own in values.items():
            if one[1:] in told and not (ratios and one[0] == sets.REFERENCE):
                base = values.get((sets.REFERENCE, *one[1:]), {}) if ratios else dict.fromkeys(own, (1.0, ""))
                kept = [ratio(own[at], base[at]) for at in sorted(own) if at in base]
                found[one] = (precision.half_width([math.log(value) for value in kept if value > 0]), len(kept))
        return found

    def state(self, load: str) -> State:
        """The state of a workload; sets of some environments alone, for a claim, do not count."""
        held: dict[str, set[int]] = defaultdict(set)
        for row in self._counting(load):
            held[row["environment"]].add(row["repetition"])
        counted = len(set.intersection(*held.values())) if held else 0
        again = sum(one[0] == load for one in self.again)
        # A set that could not be measured takes the place of one that could; one that was set aside does not.
        out = again + sum(one[0] == load for one in self.aside)
        most = self.asked["max"] - self.order.sets(load, self.block) + counted + out
        width = max((width for width, _ in self.widths[load].values()), default=math.inf)
        return State(counted, again, most, width, self._seconds(load))

    def claims(self, states: dict[str, State]) -> dict[str, list[Claim]]:
        """What published claims ask for, by workload."""
        told = [record["observed"]["host"]["static"].get("sockets") for record in self.records.values()]
        sockets = max((one for one in told if isinstance(one, int)), default=None)
        here = {"processors": self.experiment["machine"].get("cpus"), "sockets": sockets}
        there: set[tuple[str, str, str, str]] = {
            (row["environment"], load, row["metric"], row["factors"])
            for load in self.loads
            for row in self.rows[load]
            if row["environment"] in self.order.paired
        }
        found: dict[str, list[Claim]] = {load: [] for load in self.loads}
        for name, (low, high, series) in claims.ratios(self._valid(there), here).items():
            for load in {one[1] for one in series}:
                own = [(one[0], *one[2:]) for one in series if one[1] == load]
                known = [self.widths[load][key] for key in own if key in self.widths[load]]
                if known:
                    names = sorted({sets.REFERENCE, *(one[0] for one in own)})
                    state, (width, pairs) = states[load], max(known)
                    most = state.most - state.counted + pairs
                    target, seconds = precision.deciding(low, high), self._seconds(load, names)
                    found[load].append(Claim(name, pairs, state.again, most, width, target, names, seconds))
        return found

    def _valid(self, series: set[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
        """Those of workloads whose size rules hold: the others test no claim."""
        records = [record for cell, record in self.records.items() if cell[0] in self.order.paired]
        small = {record["workload"] for record in records if sizes.broken(record.get("sizes", []))}
        return {one for one in series if one[1] not in small}

    def decision(self) -> Fields:
        """The decision, as it stands in results/precision (docs/files.md)."""
        target, budget = self.asked["target"], self.asked["budget"]
        states = {load: self.state(load) for load in self.loads}
        more, of_claims = dict.fromkeys(self.loads, 0), {}
        if target is not None:
            more = precision.further(states, target, budget, self.left)
            if self.asked.get("claims") and not any(more.values()) and self.experiment["scale"] != TINY:
                of_claims = precision.for_claims(self.claims(states), self.left)
                more |= {load: number for load, (number, _) in of_claims.items()}
        causes = disturbed(self.order, self.records)
        told: dict[str, Fields] = {}
        for load, state in states.items():
            claim = of_claims[load][1] if load in of_claims else None
            narrow = claim.environments if claim and set(claim.environments) != set(self.order.paired) else []
            told[load] = {
                "sets": self.order.sets(load, self.block),
                "seconds": round(state.seconds, 3),
                "half_width": state.half_width if math.isfinite(state.half_width) else None,
                "again": [number for name, number in self.again if name == load],
                "more": more[load],
                "environments": narrow or None,
                "claim": claim.name if claim else None,
                "reason": _reason(state, more[load], target, claim, repeated(load, self.again, causes)),
            }
        words: dict[str, list[str]] = defaultdict(list)
        for load, entry in told.items():
            words[entry["reason"]].append(load)
        spent = f"; {self.spent:.0f} of {budget:.0f} s are used" if budget is not None else ""
        return {
            "block": self.block,
            "enough": not any(entry["again"] or entry["more"] for entry in told.values()),
            "reason": "; ".join(f"{', '.join(loads)}: {reason}" for reason, loads in words.items()) + spent,
            "rests_on": sets.rests_on(self.experiment),
            "target": target,
            "budget_seconds": budget,
            "spent_seconds": round(self.spent, 3),
            "workloads": told,
        }


def disturbed(order: sets.Order, records: Mapping[sets.Cell, Any]) -> dict[tuple[str, int], str]:
    """The sets (workload, number) of these records that something disturbed, and what, in words."""
    found: dict[tuple[str, int], str] = {}
    for cell, record in records.items():
        if cell[0] in order.paired and (flags := record.get("quiet", {}).get("flags")):
            found.setdefault(cell[1:], quiet.cause(flags))
    return found


def repeated(load: str, numbers: Iterable[tuple[str, int]], causes: dict[tuple[str, int], str]) -> str:
    """Which sets of a workload are measured again, and why; nothing where none is."""
    return ", ".join(f"block {one[1]} again: {causes[one]}" for one in numbers if one[0] == load)


def _reason(state: State, more: int, target: float | None, claim: Claim | None, again: str) -> str:
    """How wide a workload's interval is and may be, and how many sets it gets."""
    width = f"± {100 * state.half_width:.1f} %" if math.isfinite(state.half_width) else "no interval"
    wanted = f" (target ± {100 * target:.1f} %)" if target is not None else ""
    again = f", {again}" if again else ""
    of = f" of {', '.join(claim.environments)} for {claim.name} (± {100 * claim.target:.1f} %)" if claim else ""
    if more or target is None:
        why = f"{more} more{of}"
    elif state.half_width <= target:
        why = "within the target"
    else:
        why = "the largest number of blocks" if state.counted >= state.most else "the budget pays for no more"
    return f"{width}{wanted}{again}, {why}"


def ratio(measured: tuple[float, str], reference: tuple[float, str]) -> float:
    """The ratio of two runs of a set: of laps the median of their pairs."""
    laps = [[float(lap) for lap in one[1].split(";") if lap] for one in (measured, reference)]
    if laps[0] and len(laps[0]) == len(laps[1]):
        return float(statistics.median(one / other for one, other in zip(*laps, strict=True)))
    return measured[0] / reference[0]


def _costs(records: dict[sets.Cell, Fields]) -> dict[sets.Cell, float]:
    """Seconds of each cell, and of what lies between two: the median, so that an interruption of the run is none.

    Cells that were measured in turns share what lies behind them.
    """

    def key(cell: sets.Cell) -> tuple[str, int]:
        # Nodes measure at the same time, and each counts for itself.
        return node.of_record(records[cell]) or "", records[cell]["position"]["actual"]

    def moment(cell: sets.Cell, name: str) -> float:
        return datetime.fromisoformat(records[cell][name]).timestamp()

    units: list[list[sets.Cell]] = []
    behind: dict[bool, list[float]] = {True: [], False: []}
    for cell in sorted(records, key=key):
        last = units[-1] if units else []
        if last and records[cell].get("interleaved") and last[0][1:] == cell[1:] and key(last[0])[0] == key(cell)[0]:
            last.append(cell)
            continue
        if last and (key(last[-1])[0], key(last[-1])[1] + 1) == key(cell):
            end = max(moment(one, "ended") for one in last)
            behind[len(last) == 1].append(moment(cell, "started") - end)
        units.append([cell])
    found = {}
    for unit in units:
        alike = behind[len(unit) == 1] or behind[len(unit) != 1]
        for cell in unit:
            found[cell] = records[cell]["seconds"] + (statistics.median(alike) if alike else 0) / len(unit)
    return found
