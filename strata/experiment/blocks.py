"""The order of cells: blocks of compared environments, and rounds of blocks.

A block is one workload, once in each environment that is compared, one right after the other in
random order: a slow drift of the machine affects all of them, and runs of one block are paired.
The number of a block is the repetition of its cells.

A round holds, in random order, one block of every workload that is still open.  First there are as
many rounds as every workload has blocks; then a decision (results/decide.py) gives each workload
its further blocks, spread evenly over as many rounds as the largest number needs.  A decision also
says which environments further blocks hold: those with wide intervals, or those that a published
claim compares.  The configuration may leave workloads out of environments.

A decision also adds a whole block in place of one that was disturbed, which is set aside, and of
one that is torn: some of its runs were not measured together with native's (results/pairs.py), and
form no ratio to it.  The other pairs of a torn block, and the levels of its runs, still count.

Emulated machines are compared with no published number.  They measure each of their workloads
once, in the first round, at the smallest scale, and so does native beside them.  An environment
that cannot run a workload is in no further block of it.

Every order follows from the seed and the round.  ``order: sequential`` is the naive alternative,
kept for comparison: all repetitions of one environment, then those of the next.
"""

import functools
import json
import os
import random
from collections.abc import Iterable
from hashlib import sha256

from strata.util.data_types import Fields, Plan, PlannedEnvironment
from strata.util.errors import UserError
from strata.util.files import read_json

# (environment, workload, repetition)
Cell = tuple[str, str, int]
# (workload, number)
Block = tuple[str, int]

# The environment with which the others are compared; it is in every block.
REFERENCE = "native"
# Native at the sizes of emulated machines, which are compared with it; it is in no block.
SMALL_REFERENCE = "native-beside"
SMALL_SCALE = "tiny"
# How many times in a row a block may be replaced because it was disturbed or torn.
MAX_RETRIES = 2


def available_environments(plan: Plan) -> list[str]:
    """Return the environments that can be measured here, in the order of the configuration."""
    return [name for name, entry in plan["environments"].items() if entry["available"]]


def is_unpaired(entry: PlannedEnvironment) -> bool:
    """Return whether an environment is in no block: an emulated machine, or native beside one."""
    return bool(entry.get("emulated") or entry.get("counterpart"))


def hash_decision_basis(plan: Plan) -> str:
    """Return a hash of everything in a plan that decides how many blocks there are.

    A decision on further blocks is valid only while this hash stays the same, and stored decisions
    contain it: any change of its computation makes them invalid.
    """
    basis = [plan.get("precision"), sorted(plan["workloads"]), sorted(available_environments(plan))]
    if "leave_out" in plan:
        basis.append(plan["leave_out"])
    return sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:16]


class Order:
    """Determine the order of a plan's cells, as far as it is decided.

    The order must stay for a given plan and given decisions: the records of cells hold rounds, and
    results/plan.csv holds positions.

    places: the position (from 1) and the round of every cell, in the planned order.
    last: the number of the last round.
    decision_rounds: the rounds after which a decision on further blocks is due or possible.
    decided: whether no decision is missing, unless a block is torn.
    blocks: the number of blocks of each workload.
    disturbed: the blocks that were disturbed and are set aside.
    replacements: disturbed or torn block → the number of the block that is measured in its place.
    earlier_tries: for a block that replaces another one, how many were measured before it.
    paired: the environments that are in blocks.
    emulated: the environments that are in no block.
    emulated_workloads: the workloads that emulated machines measure.
    """

    def __init__(self, plan: Plan, results: str = "results") -> None:
        """Read the decisions and compute the order.

        results: the folder of results, with the decisions and the records of impossible cells.
        Raises UserError if the file of a decision is unreadable.
        """
        self.plan = plan
        self.results = results
        self.sequential = plan["order"] == "sequential"
        names = sorted(available_environments(plan))
        self.emulated = [name for name in names if is_unpaired(plan["environments"][name])]
        self.paired = [name for name in names if name not in self.emulated]
        not_emulated = plan.get("not_emulated", [])
        self.emulated_workloads = [name for name in plan["workloads"] if name not in not_emulated]
        self._left_out = {
            (name, workload)
            for name, workloads in plan.get("leave_out", {}).items()
            for workload in workloads
        }
        self.blocks: dict[str, int] = dict.fromkeys(sorted(plan["workloads"]), 0)
        self.places: dict[Cell, tuple[int, int]] = {}
        self.last = 0
        self.decision_rounds: list[int] = []
        self.disturbed: set[Block] = set()
        self.replacements: dict[Block, int] = {}
        self.earlier_tries: dict[Block, int] = {}
        least = plan["precision"]["min"] if "precision" in plan else plan["repetitions"]
        self._add_blocks(
            {workload: [self._first_block(workload)] * least for workload in self.blocks}
        )
        self.decided = "precision" not in plan
        if self.sequential:
            self.places = self._sequential_places(least)
            return
        while self.decision_rounds[-1:] != [self.last]:
            self.decision_rounds.append(self.last)
            if decision := self._read_decision():
                self._apply_decision(decision["workloads"])
                self.decided = "precision" not in plan or self.decision_rounds[-1] == self.last

    def _sequential_places(self, repetitions: int) -> dict[Cell, tuple[int, int]]:
        """Return the places of all cells, one environment after the other.

        repetitions: the number of repetitions of each cell; emulated machines have only one.
        """
        cells: list[Cell] = []
        for name in available_environments(self.plan):
            emulated = name in self.emulated
            workloads = self.emulated_workloads if emulated else [*self.plan["workloads"]]
            for number in range(1, (1 if emulated else repetitions) + 1):
                kept = [
                    workload for workload in workloads if (name, workload) not in self._left_out
                ]
                cells += [(name, workload, number) for workload in kept]
        return {cell: (place, cell[2]) for place, cell in enumerate(cells, 1)}

    def _read_decision(self) -> Fields | None:
        """Return the decision after the last round; None if there is none for this plan."""
        path = os.path.join(self.results, "precision", f"{self.last}.json")
        if not os.path.exists(path):
            return None
        decision: Fields | None = read_json(path)
        if decision is None:
            raise UserError(
                f"{path}: is not a decision on more blocks: remove it, and Strata decides again"
            )
        return decision if decision.get("rests_on") == hash_decision_basis(self.plan) else None

    def _apply_decision(self, states: Fields) -> None:
        """Add the blocks that replace others, then the further blocks of each workload.

        states: ``{workload: {again, torn, more, environments}}`` of the decision.
        """
        added: dict[str, list[list[str]]] = {workload: [] for workload in self.blocks}
        for workload, state in states.items():
            self.disturbed.update((workload, number) for number in state["again"])
            replaced = [*state["again"], *state.get("torn", ())]
            for place, number in enumerate(replaced, self.blocks[workload] + 1):
                self.replacements[workload, number] = place
                # The replaced block may itself have replaced one.
                self.earlier_tries[workload, place] = (
                    self.earlier_tries.get((workload, number), 0) + 1
                )
            whole = self.environments_of_next_block(workload)
            chosen = state.get("environments") or whole
            replacements = [
                [name for name in whole if (name, workload, number) in self.places]
                for number in replaced
            ]
            further = [name for name in whole if name in chosen]
            added[workload] = replacements + [further] * state["more"]
        self._add_blocks(added)

    def add_replacements(self, torn: Iterable[Block]) -> None:
        """Add the blocks that the next decision adds in place of torn ones."""
        states: Fields = {
            workload: {"again": [], "torn": [], "more": 0} for workload in self.blocks
        }
        for workload, number in torn:
            states[workload]["torn"].append(number)
        self._apply_decision(states)

    def _add_blocks(self, added: dict[str, list[list[str]]]) -> None:
        """Append blocks, spread evenly over the rounds that the workload with most of them needs.

        added: for each workload, the environments of each of its new blocks.
        The random order follows from the plan's seed and the round.  The number and sequence of
        random draws must stay: a change would reorder the cells of every plan.
        """
        length = max(map(len, added.values()))
        for position in range(1, length + 1):
            self.last += 1
            units: list[list[Cell]] = []
            for workload, new_blocks in added.items():
                number = position * len(new_blocks) // length
                if number > (position - 1) * len(new_blocks) // length:
                    self.blocks[workload] += 1
                    block = self.blocks[workload]
                    units.append([(name, workload, block) for name in new_blocks[number - 1]])
            if self.last == 1:
                units += self._emulated_units()
            chance = random.Random(f"{self.plan['seed']}/{self.last}")
            chance.shuffle(units)
            for unit in units:
                chance.shuffle(unit)
                for cell in unit:
                    self.places[cell] = (len(self.places) + 1, self.last)

    def _emulated_units(self) -> list[list[Cell]]:
        """Return the cells of each emulated machine, which are measured one after the other."""
        units: list[list[Cell]] = []
        for name in self.emulated:
            workloads = [
                workload
                for workload in sorted(self.emulated_workloads)
                if (name, workload) not in self._left_out
            ]
            units.append([(name, workload, 1) for workload in workloads])
        return units

    @functools.cached_property
    def _cannot(self) -> set[tuple[str, str]]:
        """The (environment, workload) pairs that proved impossible in their first repetition."""
        doubtful = [name for name in self.paired if self.plan["environments"][name].get("doubtful")]
        impossible = set()
        for pair in [(name, workload) for name in doubtful for workload in self.blocks]:
            record = read_json(os.path.join(self.results, "raw", *pair, "1.json"))
            if "cannot" in (record or {}):
                impossible.add(pair)
        return impossible

    def environments_of_next_block(self, workload: str) -> list[str]:
        """Return the environments that a further block of a workload can hold."""
        names = self._first_block(workload)
        return [name for name in names if (name, workload) not in self._cannot]

    def _first_block(self, workload: str) -> list[str]:
        """Return the environments in the first blocks of a workload."""
        return [name for name in self.paired if (name, workload) not in self._left_out]

    def cells(self) -> list[Cell]:
        """Return every cell in the planned order."""
        return list(self.places)

    def explain_missing(self, environment: str, workload: str, repetition: int) -> str:
        """Return a sentence that says why a cell is not in the plan."""
        environments = self.plan["environments"]
        planned = {
            "environment": (environment, [*environments]),
            "workload": (workload, [*self.plan["workloads"]]),
        }
        for kind, (name, names) in planned.items():
            if name not in names:
                return f"there is no {kind} '{name}'; there are {', '.join(names)}"
        if reason := environments[environment].get("reason"):
            return f"environment '{environment}' is not available here: {reason}"
        count = sum(cell[:2] == (environment, workload) for cell in self.places)
        later = "" if self.decided else " so far; more are decided once these are measured"
        pair = f"{environment} · {workload}"
        return f"there is no repetition {repetition} of {pair}: {count} are planned{later}"

    def cells_of_block(self, environment: str, workload: str, repetition: int) -> list[Cell]:
        """Return the cells of the block that a cell belongs to, in the planned order.

        A cell that is in no block is returned alone.
        """
        cell = (environment, workload, repetition)
        if self.sequential or environment in self.emulated:
            return [cell]
        block = [mate for mate in self.places if mate[1:] == cell[1:]]
        return [mate for mate in block if mate[0] in self.paired]

    def as_csv(self) -> str:
        """Return the text of results/plan.csv: one row for each cell, in the planned order.

        The format must stay: the check of an archive compares its file with this text.
        """
        lines = ["position,round,environment,workload,repetition"]
        lines += [",".join(map(str, (*place, *cell))) for cell, place in self.places.items()]
        return "\n".join(lines) + "\n"
