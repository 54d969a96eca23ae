"""Which sets come next after a round: what was disturbed again, and more where intervals are wide.

Widths of intervals, costs, the budget and the machine's flags decide, and never a difference between environments.
"""

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import groupby, pairwise

from strata.base.constants import result
from strata.base.errors import UserError
from strata.base.files import read_json, write_json
from strata.cell import quiet
from strata.experiment import claims, plan, precision, sets, sizes
from strata.experiment.precision import FIRST_STAGE, Claim, State
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

    def __init__(self, experiment: dict, order: sets.Order, block: int) -> None:
        self.experiment, self.order, self.block = experiment, order, block
        self.found = tidy.values(blocks=block)
        self.rounds = [step for step in order.rounds if step.first <= block]
        self.loads = list(experiment["workloads"])
        costs = _costs(self.found.records)
        self.spent = sum(costs.values())
        of_cells = defaultdict(list)
        for (name, load, _), seconds in costs.items():
            of_cells[name, load].append(seconds)
        self.cost = {pair: statistics.fmean(seconds) for pair, seconds in of_cells.items()}
        self.asked = experiment["precision"]
        self.left = math.inf if self.asked["budget"] is None else self.asked["budget"] - self.spent
        self.aside, self.again = self._disturbed()
        self.widths = {load: self._widths(load) for load in self.loads}

    def _seconds(self, load: str, names: Iterable[str]) -> float:
        """What a set of environments takes."""
        able = [name for name in names if load not in self.order.cannot.get(name, ())]
        return sum(self.cost.get((name, load), 0) for name in able)

    def _disturbed(self) -> tuple[set[tuple[str, int]], list[tuple[str, int]]]:
        """The sets (workload, number) that were set aside before, and those that are measured again now."""
        aside: set[tuple[str, int]] = set()
        tries: dict[tuple[str, int], int] = defaultdict(int)
        for step in self.rounds[1:]:
            told = read_json(result("precision", block=step.first - 1)) or {}
            for load, state in told["workloads"].items():
                for at, number in enumerate(state["again"], 1):
                    aside.add((load, number))
                    # A set may have taken the place of one that had taken another's.
                    tries[load, step.before[load] + at] = tries[load, number] + 1
        flagged = disturbed(self.order, self.found.records)
        again = []
        for load, number in sorted(set(flagged) - aside, key=lambda one: (one[1], self.loads.index(one[0]))):
            seconds = self._seconds(load, self.order.paired)
            if tries[load, number] < self.asked["retries"] and seconds <= self.left:
                again.append((load, number))
                self.left -= seconds
        return aside, again

    def _widths(self, load: str) -> dict[Series, tuple[float, int]]:
        """Relative half-width and number of pairs of each headline ratio to native; of levels without such ratios."""
        values: dict[Series, dict[int, tuple[float, str]]] = defaultdict(dict)
        for row in self._rows(load):
            if row["environment"] in self.order.paired:
                own = values[row["environment"], row["metric"], row["factors"]]
                if self._counts(row):
                    own[row["repetition"]] = (float(row["value"]), row["laps"])
        told = headline.of_workload(self.experiment["workloads"][load], {one[1:] for one in values})
        ratios = sets.REFERENCE in self.order.paired and len(self.order.paired) > 1
        found = {}
        for one, own in values.items():
            if one[1:] in told and not (ratios and one[0] == sets.REFERENCE):
                base = values.get((sets.REFERENCE, *one[1:]), {})
                kept = (
                    [_ratio(own[at], base[at]) for at in own if at in base]
                    if ratios
                    else [one[0] for one in own.values()]
                )
                found[one] = (precision.half_width([math.log(value) for value in kept if value > 0]), len(kept))
        return found

    def _rows(self, load: str) -> list[dict]:
        return [dict(zip(tidy.COLUMNS, row, strict=True)) for row in self.found.rows[load]]

    def _counts(self, row: dict) -> bool:
        return row["counts"] == "yes" and (row["workload"], row["repetition"]) not in self.again

    def state(self, load: str) -> tuple[State, int]:
        """The state of a workload, and how many of its sets count at most where they are for claims."""
        counted = {
            row["repetition"]
            for row in self._rows(load)
            if row["environment"] in self.order.paired and self._counts(row)
        }
        narrow = {
            number
            for step in self.rounds
            if load in step.narrow
            for number in range(step.narrow[load][0], step.before[load] + step.new[load] + 1)
        }
        out = [one for one in {*self.aside, *self.again} if one[0] == load]
        # A set that could not be measured takes the place of one that could.
        lost = self.order.sets(load, self.block) - len(counted) - len(out)
        most = self.asked["max"] - lost
        width = max((width for width, _ in self.widths[load].values()), default=math.inf)
        again = sum(one[0] == load for one in self.again)
        seconds = self._seconds(load, self.order.paired)
        return State(len(counted - narrow), again, most - len(counted & narrow), width, seconds), most

    def claims(self, states: dict[str, tuple[State, int]]) -> dict[str, list[Claim]]:
        """What published claims ask for, by workload."""
        here = {"processors": self.experiment["machine"].get("cpus"), "sockets": self._sockets()}
        there = {
            (row["environment"], load, row["metric"], row["factors"])
            for load in self.loads
            for row in self._rows(load)
            if row["environment"] in self.order.paired
        }
        found: dict[str, list[Claim]] = {load: [] for load in self.loads}
        for name, (low, high, series) in claims.ratios(self._valid(there), here).items():
            for load in {one[1] for one in series}:
                own = [one for one in series if one[1] == load]
                keys = [(environment, metric, factors) for environment, _, metric, factors in own]
                known = [self.widths[load][key] for key in keys if key in self.widths[load]]
                if known:
                    names = sorted({sets.REFERENCE, *(one[0] for one in own)})
                    state, most = states[load]
                    width, pairs = max(known)
                    target = precision.deciding(low, high)
                    seconds = self._seconds(load, names)
                    found[load].append(Claim(name, pairs, state.again, most, width, target, names, seconds))
        return found

    def _valid(self, series: set[tuple[str, str, str, str]]) -> set[tuple[str, str, str, str]]:
        """Those of workloads whose size rules hold: the others test no claim."""
        records = [record for cell, record in self.found.records.items() if cell[0] in self.order.paired]
        small = {record["workload"] for record in records if sizes.broken(record.get("sizes", []))}
        return {one for one in series if one[1] not in small}

    def _sockets(self) -> int | None:
        told = [record["observed"]["host"]["static"].get("sockets") for record in self.found.records.values()]
        return max((one for one in told if isinstance(one, int)), default=None)

    def decision(self) -> dict:
        """The decision, as it stands in results/precision (docs/files.md)."""
        target, budget = self.asked["target"], self.asked["budget"]
        states = {load: self.state(load) for load in self.loads}
        more, of_claims = dict.fromkeys(self.loads, 0), {}
        if target is not None:
            more = precision.further({load: state for load, (state, _) in states.items()}, target, budget, self.left)
            if self.asked.get("claims") and not any(more.values()) and self.experiment["scale"] != TINY:
                of_claims = precision.for_claims(self.claims(states), budget, self.left)
                more |= {load: number for load, (number, _) in of_claims.items()}
        causes = disturbed(self.order, self.found.records)
        told: dict[str, dict] = {}
        for load, (state, _) in states.items():
            claim = of_claims[load][1] if load in of_claims else None
            narrow = claim is not None and set(claim.environments) != set(self.order.paired)
            told[load] = {
                "sets": self.order.sets(load, self.block),
                "seconds": round(state.seconds, 3),
                "half_width": state.half_width if math.isfinite(state.half_width) else None,
                "again": [number for name, number in self.again if name == load],
                "more": more[load],
                "environments": claim.environments if claim and narrow else None,
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


def disturbed(order: sets.Order, records: dict[sets.Cell, dict]) -> dict[tuple[str, int], str]:
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
    """Why a workload gets so many sets; again: which of them take the place of disturbed ones, and why."""
    kept = state.counted + state.again
    width = f"± {100 * state.half_width:.1f} %" if math.isfinite(state.half_width) else "no interval"
    if more and claim:
        why = f"{more} more of {', '.join(claim.environments)} for {claim.name}, to be ± {100 * claim.target:.1f} %"
    elif more and kept < FIRST_STAGE:
        why = f"{more} more, since widths decide from {FIRST_STAGE} blocks on"
    elif more:
        after = precision.foreseen(state.half_width, state.counted, kept + more)
        why = f"{more} more ({width}, then about ± {100 * after:.1f} %)"
    elif again:
        why = ""
    elif not state.counted:
        why = "nothing could be measured"
    elif target is None:
        why = "the number of blocks is fixed"
    elif state.half_width <= target and state.counted >= FIRST_STAGE:
        why = f"{width} is within the target of ± {100 * target:.1f} %"
    elif state.counted >= state.most:
        why = f"the largest number of blocks ({width})"
    else:
        why = f"one more exceeds the budget ({width})"
    return ", ".join(part for part in (again, why) if part)


def _ratio(measured: tuple[float, str], reference: tuple[float, str]) -> float:
    """The ratio of two runs of a set: of laps the median of their pairs."""
    laps = [[float(lap) for lap in one[1].split(";") if lap] for one in (measured, reference)]
    if laps[0] and len(laps[0]) == len(laps[1]):
        return statistics.median(one / other for one, other in zip(*laps, strict=True))
    return measured[0] / reference[0]


def _costs(records: dict[sets.Cell, dict]) -> dict[sets.Cell, float]:
    """Seconds of each cell, and of what lies between two: the median, so that an interruption of the run is none.

    Cells that were measured in turns are one in this, and share what lies behind them.
    """

    def node(cell: sets.Cell) -> str:
        return (records[cell].get("node") or {}).get("name") or ""

    def place(cell: sets.Cell) -> int:
        return records[cell]["position"]["actual"]

    def unit(cell: sets.Cell) -> tuple:
        return (node(cell), cell[1:] if records[cell].get("interleaved") else place(cell))

    def moment(cell: sets.Cell, key: str) -> float:
        return datetime.fromisoformat(records[cell][key]).timestamp()

    # Nodes measure at the same time, and each counts for itself.
    units = [list(cells) for _, cells in groupby(sorted(records, key=lambda cell: (node(cell), place(cell))), unit)]
    behind: dict[bool, list[float]] = {True: [], False: []}
    for before, after in pairwise(units):
        if node(before[0]) == node(after[0]) and place(after[0]) == place(before[-1]) + 1:
            start = min(moment(cell, "started") for cell in after)
            behind[len(before) == 1].append(start - max(moment(cell, "ended") for cell in before))
    found = {}
    for cells in units:
        alike = behind[len(cells) == 1] or behind[len(cells) != 1]
        for cell in cells:
            found[cell] = records[cell]["seconds"] + (statistics.median(alike) if alike else 0) / len(cells)
    return found
