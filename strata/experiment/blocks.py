"""Which cells come when: blocks of what is compared, and rounds of blocks.

A block is one workload once in each environment that is compared, one right after the other in random order: a slow
drift of the machine falls on all of them, and runs of one block are paired.  Its number is the repetition of its
cells.  A round holds, in random order, a block of every workload that is still open.  There are first as many rounds
as everything has blocks; then it is decided (results/decide.py) which workloads get how many further ones, and these
are spread evenly over as many rounds as they take.  A decision says which environments further blocks hold: what is
still wide, or what a published claim compares.  A page may leave workloads out of environments.

Emulated machines are compared with nothing that was published: each has all its workloads but those that the page of
the experiment leaves out there, in random order, in the first round alone, at the smallest scale, and so has native
beside them.  An environment that was found unable to do a workload is in no blocks of it after those that everything
has.

Every order follows from the seed and the round.  (``order: sequential`` is the naive alternative, for comparison: all
repetitions of one environment, then of the next.)
"""

import functools
import json
import os
import random
from hashlib import sha256

from strata.util.data_types import Fields, Plan, PlannedEnvironment
from strata.util.errors import UserError
from strata.util.files import read_json

Cell = tuple[str, str, int]
# A workload, and its number.
Block = tuple[str, int]

# What others are compared with, in every block.
REFERENCE = "native"
# What emulated machines are compared with: native at their size, which no block holds.
BESIDE = "native-beside"
SMALL = "tiny"
# How often a block is measured again in which something else used the machine.
RETRIES = 2


def available(plan: Plan) -> list[str]:
    """Names of the environments that can be measured here, in the order of the config."""
    return [name for name, entry in plan["environments"].items() if entry["available"]]


def is_apart(entry: PlannedEnvironment) -> bool:
    """Whether an environment of the plan is an emulated machine or native beside such, which no block holds."""
    return bool(entry.get("emulated") or entry.get("beside"))


def rests_on(plan: Plan) -> str:
    """What of a plan decides how many blocks there are, besides logs: a decision stands as long as it is the same."""
    parts = [plan.get("precision"), sorted(plan["workloads"]), sorted(available(plan))]
    parts += [plan["leave_out"]] if "leave_out" in plan else []
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Order:
    """The order of a plan's cells, as far as it is decided.

    places: position (from 1) and round of every cell, in the planned order.  last: the last round.  asked: the rounds
    after which it is decided what follows.  decided: whether nothing is open.  blocks: how many there are of each
    workload.  aside: those that were disturbed and are measured again.  tries: by block that took the place of such a
    one, how many were measured before it.  paired: the environments of blocks.
    """

    def __init__(self, plan: Plan, results: str = "results") -> None:
        """Read what was decided, and what environments were found unable to do, in the folder of results."""
        self.plan, self.results = plan, results
        self.sequential = plan["order"] == "sequential"
        there = sorted(available(plan))
        self.emulated = [name for name in there if is_apart(plan["environments"][name])]
        self.paired = [name for name in there if name not in self.emulated]
        self.of_machines = [
            name for name in plan["workloads"] if name not in plan.get("not_emulated", [])
        ]
        self._left_out = {
            (name, load) for name, loads in plan.get("leave_out", {}).items() for load in loads
        }
        self.blocks: dict[str, int] = dict.fromkeys(sorted(plan["workloads"]), 0)
        self.places: dict[Cell, tuple[int, int]] = {}
        self.last = 0
        self.asked: list[int] = []
        self.aside: set[Block] = set()
        self.tries: dict[Block, int] = {}
        least = plan["precision"]["min"] if "precision" in plan else plan["repetitions"]
        self._add({load: [self._holding(load)] * least for load in self.blocks})
        self.decided = "precision" not in plan
        while not self.decided:
            self.asked.append(self.last)
            if (decision := self._decision()) is None:
                break
            self._extend(decision["workloads"])
            self.decided = self.last == self.asked[-1]
        if self.sequential:
            cells = [
                (name, load, number)
                for name in available(plan)
                for number in range(1, (1 if name in self.emulated else least) + 1)
                for load in (self.of_machines if name in self.emulated else plan["workloads"])
                if (name, load) not in self._left_out
            ]
            self.places = {cell: (place, cell[2]) for place, cell in enumerate(cells, 1)}

    def _decision(self) -> Fields | None:
        """What was decided after the last round of this experiment; None where it is open."""
        path = os.path.join(self.results, "precision", f"{self.last}.json")
        if not os.path.exists(path):
            return None
        decision: Fields | None = read_json(path)
        if decision is None:
            raise UserError(
                f"{path}: is not a decision on more blocks: remove it, and Strata decides again"
            )
        return decision if decision.get("rests_on") == rests_on(self.plan) else None

    def _extend(self, states: Fields) -> None:
        """Add what a decision asks for: blocks in the place of those that were disturbed, then more."""
        new: dict[str, list[list[str]]] = {load: [] for load in self.blocks}
        for load, state in states.items():
            for place, number in enumerate(state["again"], self.blocks[load] + 1):
                self.aside.add((load, number))
                # A block may have taken the place of one that had taken another's.
                self.tries[load, place] = self.tries.get((load, number), 0) + 1
            whole = self.next_block(load)
            part = [name for name in whole if name in (state.get("environments") or whole)]
            again = [
                [name for name in whole if (name, load, number) in self.places]
                for number in state["again"]
            ]
            new[load] = again + [part] * state["more"]
        self._add(new)

    def _add(self, new: dict[str, list[list[str]]]) -> None:
        """Add blocks of each workload, given by the environments that each holds, spread evenly over rounds."""
        length = max(map(len, new.values()))
        for at in range(1, length + 1):
            self.last += 1
            units: list[list[Cell]] = []
            for load, added in new.items():
                if (number := at * len(added) // length) > (at - 1) * len(added) // length:
                    self.blocks[load] += 1
                    units.append([(name, load, self.blocks[load]) for name in added[number - 1]])
            if self.last == 1:
                loads = sorted(self.of_machines)
                units += [
                    [(name, load, 1) for load in loads if (name, load) not in self._left_out]
                    for name in self.emulated
                ]
            chance = random.Random(f"{self.plan['seed']}/{self.last}")
            chance.shuffle(units)
            for unit in units:
                chance.shuffle(unit)
            for cell in (cell for unit in units for cell in unit):
                self.places[cell] = (len(self.places) + 1, self.last)

    @functools.cached_property
    def _cannot(self) -> set[tuple[str, str]]:
        """(environment, workload) of what was found impossible; the first repetition tells."""
        doubtful = [name for name in self.paired if self.plan["environments"][name].get("doubtful")]
        pairs = [(name, load) for name in doubtful for load in self.blocks]
        paths = {pair: os.path.join(self.results, "raw", *pair, "1.json") for pair in pairs}
        return {pair for pair, path in paths.items() if "cannot" in (read_json(path) or {})}

    def next_block(self, workload: str) -> list[str]:
        """The environments in a further block of a workload."""
        return [name for name in self._holding(workload) if (name, workload) not in self._cannot]

    def _holding(self, workload: str) -> list[str]:
        """The environments in the first blocks of a workload."""
        return [name for name in self.paired if (name, workload) not in self._left_out]

    def cells(self) -> list[Cell]:
        """(environment, workload, repetition) of every cell, in the planned order."""
        return list(self.places)

    def missing(self, environment: str, workload: str, repetition: int) -> str:
        """Why a cell is none of the plan."""
        environments = self.plan["environments"]
        for kind, name, there in (
            ("environment", environment, [*environments]),
            ("workload", workload, [*self.plan["workloads"]]),
        ):
            if name not in there:
                return f"there is no {kind} '{name}'; there are {', '.join(there)}"
        if reason := environments[environment].get("reason"):
            return f"environment '{environment}' is not available here: {reason}"
        so_far = sum(cell[:2] == (environment, workload) for cell in self.places)
        later = "" if self.decided else " so far; more are decided once these are measured"
        return f"there is no repetition {repetition} of {environment} · {workload}: {so_far} are planned{later}"

    def block(self, environment: str, workload: str, repetition: int) -> list[Cell]:
        """The cells of a cell's block in the planned order; what is in no block stands alone."""
        own = (environment, workload, repetition)
        if self.sequential or environment in self.emulated:
            return [own]
        return [one for one in self.places if one[1:] == own[1:] and one[0] in self.paired]

    def as_csv(self) -> str:
        """The text of results/plan.csv."""
        lines = ["position,round,environment,workload,repetition"]
        lines += [",".join(map(str, (*place, *cell))) for cell, place in self.places.items()]
        return "\n".join(lines) + "\n"
