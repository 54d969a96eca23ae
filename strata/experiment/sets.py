"""Which cells come when: sets of what is compared, blocks of sets, and rounds of blocks.

A set is one workload once in each environment that is compared, one right after the other in random order: a slow
drift of the machine falls on all of them, and runs of one set are paired.  Its number is the repetition of its
cells.  A block holds, in random order, a set of every workload that is still open.  The first round has as many
blocks as there are sets of everything; after each round it is decided (results/precision) which workloads get how
many further sets, and these are spread evenly over the blocks of the next.  Sets that are added for a published claim
hold the environments that it compares alone.

Emulated machines are compared with nothing that was published, and restoring one takes longer than most cells: each
has all its workloads but those that the page of the experiment leaves out there, in random order, in the first block
alone, at the smallest scale, and so has native beside them.  An environment that was found unable to do a workload is
in no sets of it after the first round.

Every order follows from the seed and the block alone, so that a cell's place is known without making the whole plan.
(``order: sequential`` is the naive alternative, for comparison: all repetitions of one environment, then of the next.)
"""

import json
import os
import random
from collections.abc import Iterator, Sequence
from hashlib import sha256

from strata.base.errors import UserError
from strata.base.files import read_json
from strata.base.shapes import Fields, Plan, PlannedEnvironment

Cell = tuple[str, str, int]
Counts = dict[str, int]
Narrow = dict[str, tuple[int, frozenset[str]]]

# What others are compared with, in every set.
REFERENCE = "native"
# What emulated machines are compared with: native at their size, which no set holds.
BESIDE = "native-beside"
SMALL = "tiny"
# Sets of a workload at most, whatever is asked for.
MOST = 10000
# How often a set is measured again in which something else used the machine.
RETRIES = 2


class Round:
    """Blocks whose sets were decided together.

    first: number of the first block.  length: how many there are.  before, new: by workload, how many sets there
    were before it, and how many it adds.  narrow: by workload, where only some environments are in the last of those:
    the number of the first such set, and the environments.
    """

    def __init__(self, first: int, length: int, before: Counts, new: Counts, narrow: Narrow) -> None:
        self.first, self.length, self.before, self.new, self.narrow = first, length, before, new, narrow

    def until(self, workload: str, block: int) -> int:
        """How many of its sets of a workload are in its blocks up to a number."""
        return min(max(0, block - self.first + 1), self.length) * self.new.get(workload, 0) // self.length

    def without(self, environment: str, workload: str) -> range:
        """The numbers of its sets of a workload that are without an environment."""
        start, names = self.narrow.get(workload, (0, ()))
        return range(start, self.before[workload] + self.new[workload] + 1 if start and environment not in names else 0)


def available(plan: Plan) -> list[str]:
    """Names of the environments that can be measured here, in the order of the config."""
    return [name for name, entry in plan["environments"].items() if entry["available"]]


def is_apart(entry: PlannedEnvironment) -> bool:
    """Whether an environment of the plan is an emulated machine or native beside such, which no set holds."""
    return bool(entry.get("emulated") or entry.get("beside"))


def emulated(plan: Plan) -> list[str]:
    """Those of them whose machine is emulated, and native beside them."""
    return [name for name in available(plan) if is_apart(plan["environments"][name])]


def paired(plan: Plan) -> list[str]:
    """Those of them that every set holds."""
    return [name for name in available(plan) if not is_apart(plan["environments"][name])]


def cannot(plan: Plan, results: str) -> dict[str, set[str]]:
    """The workloads that an environment was found unable to do, by its name; it is asked no more after the first round.

    results: the folder of what was measured; the first repetition tells.
    """
    doubtful = [name for name in available(plan) if plan["environments"][name].get("doubtful")]
    found: dict[str, set[str]] = {name: set() for name in doubtful}
    for name in doubtful:
        for workload in plan["workloads"]:
            record = read_json(os.path.join(results, "raw", name, workload, "1.json"))
            if record is not None and "cannot" in record:
                found[name].add(workload)
    return found


def rests_on(plan: Plan) -> str:
    """What of a plan decides how many sets there are, besides logs: a decision stands as long as it is the same."""
    parts = [plan.get("precision"), sorted(plan["workloads"]), sorted(available(plan))]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:16]


class Order:
    """The order of a plan's cells, as far as it is decided.

    results: the folder of results that holds the decisions, and what was found that environments cannot do; None:
    without the decisions.
    """

    def __init__(self, plan: Plan, results: str | None = "results") -> None:
        self.plan = plan
        self.sequential = plan["order"] == "sequential"
        self.paired, self.emulated = sorted(paired(plan)), sorted(emulated(plan))
        self.workloads = sorted(plan["workloads"])
        left_out = plan.get("not_emulated", [])
        self.of_machines = [name for name in self.workloads if name not in left_out]
        self.cannot = cannot(plan, results or "results")
        least = plan["precision"]["min"] if "precision" in plan else plan["repetitions"]
        self.rounds = [Round(1, least, {}, dict.fromkeys(self.workloads, least), {})]
        self.decided = "precision" not in plan
        self._aside: list[tuple[int, str, int]] = []
        while results is not None and not self.decided and (decision := self._decision(results)):
            self.decided = not self._extend(decision)

    def _decision(self, results: str) -> Fields | None:
        """What was decided after the last block of this experiment; None where it is open.

        Raises UserError for what is no decision.
        """
        path = os.path.join(results, "precision", f"{self.last}.json")
        if not os.path.exists(path):
            return None
        decision = read_json(path) or {}
        if decision and decision.get("rests_on") != rests_on(self.plan):
            return None
        states = decision.get("workloads")
        if not isinstance(states, dict) or not all(isinstance(state.get("again"), list) for state in states.values()):
            raise UserError(f"{path}: is not a decision on more blocks: remove it, and Strata decides again")
        return decision

    def _extend(self, decision: Fields) -> bool:
        """Add the round that a decision asks for; whether it asks for one."""
        before = {load: self.sets(load) for load in self.workloads}
        new: Counts = {}
        narrow: Narrow = {}
        for load, state in decision["workloads"].items():
            self._aside += [(self.last, load, number) for number in state["again"]]
            if again_and_more := len(state["again"]) + state["more"]:
                new[load] = again_and_more
                if state.get("environments"):
                    narrow[load] = (before[load] + len(state["again"]) + 1, frozenset(state["environments"]))
        if new and not decision["enough"]:
            self.rounds.append(Round(self.last + 1, max(new.values()), before, new, narrow))
        return bool(new) and not decision["enough"]

    def set_aside(self, blocks: int | None = None) -> list[tuple[str, int]]:
        """The sets (workload, repetition) that were disturbed and are measured again, by the decisions before the last
        of the first blocks."""
        return [(load, number) for block, load, number in self._aside if blocks is None or block < blocks]

    @property
    def last(self) -> int:
        """The last block that is known."""
        return self.rounds[-1].first + self.rounds[-1].length - 1

    @property
    def asked(self) -> list[int]:
        """Blocks after which it is decided what follows, as far as they are known."""
        return [step.first + step.length - 1 for step in self.rounds] if "precision" in self.plan else []

    def sets(self, workload: str, blocks: int | None = None) -> int:
        """How many sets of a workload are in the first blocks; in all that are known, unless it is said."""
        last = self.last if blocks is None else blocks
        return sum(step.until(workload, last) for step in self.rounds)

    def repetitions(self, environment: str, workload: str, blocks: int | None = None) -> Sequence[int]:
        """The repetitions of a workload in an environment in the first blocks."""
        if environment in self.emulated and workload not in self.of_machines:
            return range(0)
        if environment in self.emulated:
            number = min(self.last if blocks is None else blocks, 1)
        else:
            number = self.sets(workload, blocks)
        found = range(1, min(number, self._most(environment, workload)) + 1)
        without = self._without(environment, workload)
        return [number for number in found if number not in without] if without else found

    def _most(self, environment: str, workload: str) -> int:
        """How many repetitions of a workload there are in an environment at most."""
        unable = workload in self.cannot.get(environment, ())
        return self.rounds[0].length if unable else MOST

    def block(self, environment: str, workload: str, repetition: int) -> int | None:
        """The block of a cell; None where no such cell is planned, or not yet."""
        if repetition not in self.repetitions(environment, workload):
            return None
        if environment in self.emulated or self.sequential:
            return repetition
        for step in reversed(self.rounds):
            own = repetition - step.before.get(workload, 0)
            if own > 0:
                return step.first - 1 - (-own * step.length // step.new[workload])
        return None

    def missing(self, environment: str, workload: str, repetition: int) -> str:
        """Why a cell is none of the plan."""
        so_far = len(self.repetitions(environment, workload))
        later = "" if self.decided else " so far; more are decided once these are measured"
        return f"there is no repetition {repetition} of {environment} · {workload}: {so_far} are planned{later}"

    def _shares(self, environment: str) -> bool:
        """Whether all cells of an environment in one block use one system, one after the other."""
        return environment in self.emulated or self.sequential

    def unit(self, environment: str, workload: str, repetition: int) -> list[Cell]:
        """The cells that one process measures with a cell, where they are due: the others of its set, or in an
        environment that shares a system all of its block.  In the planned order; the cell is among them."""
        block = self.block(environment, workload, repetition)
        if block is None:
            return []
        if self.sequential:
            return [(environment, load, repetition) for load in self._loads(environment)]
        cells = self.in_block(block)
        if environment in self.emulated:
            # Nodes share nothing while a block is measured.
            alone = [(environment, workload, repetition)]
            return alone if self.plan.get("spread") else [cell for cell in cells if cell[0] == environment]
        return [cell for cell in cells if cell[1:] == (workload, repetition) and cell[0] in self.paired]

    def sharing(self, environment: str, workload: str) -> list[str]:
        """The workloads whose cells may use one system with that of a workload, which is among them."""
        return self._loads(environment) if self._shares(environment) else [workload]

    def of_set(self, workload: str, number: int) -> list[str]:
        """The environments in the set of a workload with a number."""
        held = [name for name in self.paired if number <= self._most(name, workload)]
        return [name for name in held if number not in self._without(name, workload)]

    def _without(self, environment: str, workload: str) -> set[int]:
        """The numbers of the sets of a workload that are without an environment, since only others were asked for."""
        if environment in self.emulated:
            return set()
        return {number for step in self.rounds if step.narrow for number in step.without(environment, workload)}

    def _loads(self, environment: str) -> list[str]:
        """The workloads that are planned in an environment, in the order of the config."""
        planned = self.of_machines if environment in self.emulated else self.workloads
        return [name for name in self.plan["workloads"] if name in planned]

    def in_block(self, block: int) -> list[Cell]:
        """The cells of a block in their order."""
        step = next(step for step in reversed(self.rounds) if step.first <= block)
        chance = random.Random(f"{self.plan['seed']}/{block}")
        found = {load: step.before.get(load, 0) + step.until(load, block) for load in self.workloads}
        new = [load for load in self.workloads if step.until(load, block) > step.until(load, block - 1)]
        sets = [[(name, load, found[load]) for name in self.of_set(load, found[load])] for load in new]
        units = sets + self._machines(block)
        chance.shuffle(units)
        for unit in units:
            chance.shuffle(unit)
        return [cell for unit in units for cell in unit]

    def _machines(self, block: int) -> list[list[Cell]]:
        """The cells of a block in each of the emulated machines, and in native beside them."""
        return [[(name, load, block) for load in self.of_machines] for name in self.emulated] if block == 1 else []

    def position(self, environment: str, workload: str, repetition: int) -> int | None:
        """The place of a cell in the plan, from 1; None where no such cell is planned, or not yet."""
        block = self.block(environment, workload, repetition)
        if block is None:
            return None
        if self.sequential:
            return self.cells().index((environment, workload, repetition)) + 1
        before = sum(len(self.repetitions(name, load, block - 1)) for load in self.workloads for name in self.paired)
        machines = len(self.emulated) * len(self.of_machines) if block > 1 else 0
        return before + machines + self.in_block(block).index((environment, workload, repetition)) + 1

    def rows(self) -> Iterator[tuple[int, int, str, str, int]]:
        """(position, block, environment, workload, repetition) of every cell, in the planned order."""
        if self.sequential:
            cells = [
                (number, name, load, number)
                for name in available(self.plan)
                for number in range(1, (1 if name in self.emulated else self.plan["repetitions"]) + 1)
                for load in self._loads(name)
            ]
        else:
            cells = [(block, *cell) for block in range(1, self.last + 1) for cell in self.in_block(block)]
        return ((place, *cell) for place, cell in enumerate(cells, 1))

    def cells(self, blocks: int | None = None) -> list[Cell]:
        """(environment, workload, repetition) of every cell in the first blocks, in the planned order."""
        return [
            (name, load, number) for _, block, name, load, number in self.rows() if blocks is None or block <= blocks
        ]

    def as_csv(self) -> str:
        """The text of results/plan.csv."""
        lines = ["position,block,environment,workload,repetition"]
        lines += [",".join(str(field) for field in row) for row in self.rows()]
        return "\n".join(lines) + "\n"
