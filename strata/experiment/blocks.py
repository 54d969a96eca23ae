"""Determine the order of cells: blocks of compared environments, and rounds of blocks.

A block is one workload, once in each environment that is compared, one right after the other in
random order: a slow drift of the machine affects all of them, and runs of one block are paired.
The number of a block is the repetition of its cells.

A round holds, in random order, one block of every workload that is still open.  First there are as
many rounds as every workload has blocks; then a decision (results/decide.py) gives each workload
its further blocks, spread evenly over as many rounds as the largest number needs.  A decision also
says which environments further blocks hold: those with wide intervals, or those that a published
claim compares.  The configuration may leave workloads out of environments.

Targets and budgets decide only on further blocks: when they change, all rounds that were begun
stay, and a new decision follows them.

A decision also adds a whole block in place of one that was disturbed, which is set aside, and of
one that is torn: some of its runs were not measured together with native's (results/pairs.py), and
form no ratio to it.  The other pairs of a torn block, and the values of its runs, still count.

Emulated machines are compared with no published number.  They measure each of their workloads
once, in the first round, at the smallest scale, and so does native beside them.  An environment
that cannot run a workload is in no further block of it.

Every order follows from the seed and the round.  ``order: sequential`` is the naive alternative,
kept for comparison: all repetitions of one environment, then those of the next.
"""

import functools
import itertools
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

# The environment that the others are compared with; it is in every block.
REFERENCE = "native"
# Native at the sizes of emulated machines, which are compared with it; it is in no block.
SMALL_REFERENCE = "native-beside"
SMALL_SCALE = "tiny"
# How many times in a row a block may be replaced because it was disturbed or torn.
MAX_RETRIES = 2


def list_available_environments(plan: Plan) -> list[str]:
    """Return the environments that can be measured here, in the order of the configuration."""
    return [name for name, environment in plan["environments"].items() if environment["available"]]


def is_unpaired(environment: PlannedEnvironment) -> bool:
    """Return whether an environment is in no block.

    These are emulated machines, and the copy of native that is measured at their tiny sizes.
    """
    return bool(environment.get("emulated") or environment.get("counterpart"))


def hash_decision_basis(plan: Plan) -> str:
    """Return a hash of everything in a plan that decides how many blocks there are.

    The hash has 16 hexadecimal digits.  Stored decisions on further blocks contain it as
    `rests_on`, and are valid only for a plan with the same hash: any change of the computation
    makes all of them invalid.
    """
    basis = [
        plan.get("precision"),
        plan.get("scale"),
        sorted(plan["workloads"]),
        sorted(list_available_environments(plan)),
    ]
    if "leave_out" in plan:
        basis.append(plan["leave_out"])
    return sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:16]


def adds_blocks(plan: Plan) -> bool:
    """Return whether decisions add blocks; else they only replace disturbed and torn ones."""
    settings: Fields = plan.get("precision", {})
    return any(settings.get(key) for key in ("target", "margin", "claims"))


def hash_block_basis(plan: Plan) -> str:
    """Return a hash of everything in a plan on which its measured blocks depend.

    The hash has 16 hexadecimal digits.  It is equal for plans that measure the same cells in the
    same first rounds, whatever their targets and budgets are.  Stored decisions contain it as
    `blocks_rest_on`: any change of the computation makes their blocks invalid.
    """
    settings: Fields = {key: plan.get(key) for key in ("seed", "scale", "leave_out", "client")}
    workloads = plan["workloads"].items()
    basis = [
        _count_first_blocks(plan),
        adds_blocks(plan),
        settings,
        plan["image"]["recipe"],
        {name: plan["environments"][name]["layers"] for name in list_available_environments(plan)},
        {name: [planned["parameters"], planned["cell"]] for name, planned in workloads},
    ]
    return sha256(json.dumps(basis, sort_keys=True).encode()).hexdigest()[:16]


def _count_first_blocks(plan: Plan) -> int:
    """Return how many blocks every workload has before the first decision."""
    settings: Fields = plan.get("precision", {})
    return int(settings.get("min", plan["repetitions"]))


class Order:
    """Determine the order of a plan's cells, as far as it is decided.

    The order must stay for a given plan and given decisions: the records of cells hold rounds, and
    results/plan.csv holds positions.

    places: cell → (position from 1, round), in the planned order.
    last: the number of the last round.
    decision_rounds: the rounds after which a decision on further blocks is due or possible.
    decided: whether no decision is missing; torn blocks are not considered.
    bases: round → the `rests_on` of the decision after it, for each decision that is valid.
    blocks: workload → the number of its blocks.
    disturbed: the blocks that were disturbed and are set aside.
    replacements: disturbed or torn block → the number of the block that is measured in its place.
    earlier_tries: a block that replaces another one → how many blocks were measured before it in
    its place.
    paired: the environments that are in blocks.
    emulated: the environments that are in no block.
    emulated_workloads: the workloads that emulated machines measure.
    """

    def __init__(self, plan: Plan, results: str = "results") -> None:
        """Read the decisions and compute the order.

        plan: the plan, which the object keeps.
        results: the path of the folder of results, with the decisions and the records of impossible
        cells.
        Raises UserError if the file of a decision is unreadable.
        """
        self.plan = plan
        self.results = results
        self.sequential = plan["order"] == "sequential"
        names = sorted(list_available_environments(plan))
        self.emulated = [name for name in names if is_unpaired(plan["environments"][name])]
        self.paired = [name for name in names if name not in self.emulated]
        not_emulated = plan.get("not_emulated", [])
        self.emulated_workloads = [name for name in plan["workloads"] if name not in not_emulated]
        # The (environment, workload) pairs that the configuration leaves out.
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
        self.bases: dict[int, str] = {}
        first_count = _count_first_blocks(plan)
        first_blocks = {
            workload: [self._list_compared_environments(workload)] * first_count
            for workload in self.blocks
        }
        self._add_blocks(first_blocks)
        # Without `precision`, the first blocks are all, unless decisions replace torn ones.
        self.decided = "precision" not in plan
        if self.sequential:
            self.places = self._order_sequentially(first_count)
        else:
            self._apply_stored_decisions()

    def _apply_stored_decisions(self) -> None:
        """Read the decision after each round where one is due, and add its blocks to the order.

        Sets `decision_rounds`, `bases` and `decided`.  Ends after a round without a decision, or
        with a decision that adds no block.
        """
        # A decision that adds blocks adds rounds.  After the last of them the next one is due.
        while self.last not in self.decision_rounds:
            decision_round = self.last
            self.decision_rounds.append(decision_round)
            decision = self._read_decision(decision_round)
            if decision is None:
                continue
            # A decision for other targets or budgets adds its blocks, but decides nothing else.
            is_current = decision["rests_on"] == self._basis
            self._apply_decision(decision["workloads"], is_current)
            is_last = self.last == decision_round
            if is_current or not is_last:
                self.bases[decision_round] = decision["rests_on"]
            self.decided = "precision" not in self.plan or (is_current and is_last)

    def _order_sequentially(self, repetitions: int) -> dict[Cell, tuple[int, int]]:
        """Return ``{cell: (position, round)}`` for all cells, one environment after the other.

        repetitions: the number of repetitions of each cell; emulated machines have only one.
        The round is the repetition.
        """
        cells: list[Cell] = []
        for name in list_available_environments(self.plan):
            workloads = [*self.plan["workloads"]]
            count = repetitions
            if name in self.emulated:
                workloads = self.emulated_workloads
                count = 1
            included_workloads = [
                workload for workload in workloads if (name, workload) not in self._left_out
            ]
            for number in range(1, count + 1):
                cells += [(name, workload, number) for workload in included_workloads]
        return {cell: (position, cell[2]) for position, cell in enumerate(cells, 1)}

    @functools.cached_property
    def _basis(self) -> str:
        """The `rests_on` of a decision that is made now; see :func:`hash_decision_basis`."""
        return hash_decision_basis(self.plan)

    @functools.cached_property
    def _block_basis(self) -> str:
        """The `blocks_rest_on` of a decision that is made now; see :func:`hash_block_basis`."""
        return hash_block_basis(self.plan)

    def _read_decision(self, round_number: int) -> Fields | None:
        """Return the stored decision after a round; None if there is none for this plan.

        A decision is for this plan if it was made for the same settings, or for the same blocks
        under other targets or budgets.
        Raises UserError if the decision's file is unreadable.
        """
        path = os.path.join(self.results, "precision", f"{round_number}.json")
        if not os.path.exists(path):
            return None
        decision: Fields | None = read_json(path)
        if decision is None:
            raise UserError(
                f"{path}: is not a decision on more blocks: remove it, and Strata decides again"
            )
        if decision.get("rests_on") == self._basis:
            return decision
        # Without both keys it was made by an earlier version, or by hand.
        if "rests_on" not in decision or "blocks_rest_on" not in decision:
            return None
        return decision if decision["blocks_rest_on"] == self._block_basis else None

    def _apply_decision(self, states: Fields, is_current: bool = True) -> None:
        """Add the blocks of a decision to the order: first those that replace others.

        states: ``{workload: {again, torn, more, environments}}`` of the decision, as
        results/decide.py writes it: the numbers of the disturbed blocks and of the torn blocks, how
        many blocks are added, and their environments (None means all).
        is_current: whether the decision is for the present settings; see :meth:`_withdraw_rounds`.
        Changes `places`, `blocks`, `last`, `replacements`, `earlier_tries` and `disturbed`.
        """
        # Workload → the environments of each of its new blocks.
        new_blocks: dict[str, list[list[str]]] = {workload: [] for workload in self.blocks}
        decision_round = self.last
        # (Workload, number) of the new block → the number of the block that it replaces.
        replaced_numbers: dict[Block, int] = {}
        for workload, state in states.items():
            possible_names = self.list_environments_of_next_block(workload)
            # Replacements come first; `_add_blocks` numbers the new blocks in this order.
            numbers = [*state["again"], *state.get("torn", ())]
            for new_number, number in enumerate(numbers, self.blocks[workload] + 1):
                replaced_numbers[workload, new_number] = number
                # A replacement holds the environments of the block that it replaces.
                new_blocks[workload].append(
                    [name for name in possible_names if (name, workload, number) in self.places]
                )
            chosen_names = state.get("environments") or possible_names
            names = [name for name in possible_names if name in chosen_names]
            new_blocks[workload] += [names] * state["more"]
        self._add_blocks(new_blocks)
        self._withdraw_rounds(decision_round, is_current)
        for (workload, new_number), number in replaced_numbers.items():
            # The block was withdrawn again.
            if new_number > self.blocks[workload]:
                continue
            self.replacements[workload, number] = new_number
            # The replaced block may itself have replaced one.
            tries_before = self.earlier_tries.get((workload, number), 0)
            self.earlier_tries[workload, new_number] = tries_before + 1
            if number in states[workload]["again"]:
                self.disturbed.add((workload, number))

    def _withdraw_rounds(self, decision_round: int, is_current: bool) -> None:
        """Take rounds that the last decision no longer adds out of the order.

        decision_round: the round after which the decision was made.
        is_current: whether the decision is for the present settings.
        The decision's rounds end where a later decision follows.  Without a later one, all rounds
        of a current decision stay; of another decision, those up to the last round in which a cell
        is measured.
        Changes `last`, `places` and `blocks`.
        """
        last_round = self.last
        if not is_current:
            last_round = self._find_last_measured_round(decision_round)
        for number in range(decision_round + 1, self.last + 1):
            # A decision without the key is of an earlier version, which did not remove decisions
            # that had been replaced.
            later_decision = self._read_decision(number)
            if later_decision is not None and "blocks_rest_on" in later_decision:
                last_round = number
                break
        self.last = last_round
        withdrawn_cells = {cell for cell, (_, number) in self.places.items() if number > self.last}
        for cell in withdrawn_cells:
            del self.places[cell]
        for workload, _ in {cell[1:] for cell in withdrawn_cells}:
            self.blocks[workload] -= 1

    def _find_last_measured_round(self, first_round: int) -> int:
        """Return the number of the last round in which a cell has a log.

        first_round: the number of the first candidate, which is returned if no later round has one.
        """
        rounds = [
            number
            for (environment, workload, repetition), (_, number) in self.places.items()
            if number > first_round
            and os.path.exists(
                os.path.join(self.results, "raw", environment, workload, f"{repetition}.log")
            )
        ]
        return max(rounds, default=first_round)

    def add_replacements(self, torn: Iterable[Block]) -> None:
        """Add to the order the blocks that the next decision adds in place of torn ones.

        Only this object changes, for a forecast; no decision is written.
        torn: (workload, number) of each torn block.
        """
        states: Fields = {
            workload: {"again": [], "torn": [], "more": 0} for workload in self.blocks
        }
        for workload, number in torn:
            states[workload]["torn"].append(number)
        self._apply_decision(states)

    def _add_blocks(self, environments_of_blocks: dict[str, list[list[str]]]) -> None:
        """Append blocks, spread evenly over the rounds that the workload with most of them needs.

        environments_of_blocks: workload → the environments of each of its new blocks.
        Changes `places`, `blocks` and `last`.
        The random order follows from the plan's seed and the round.  The number and sequence of
        random draws must stay: a change would reorder the cells of every plan.
        """
        round_count = max(map(len, environments_of_blocks.values()))
        for round_number in range(1, round_count + 1):
            self.last += 1
            # The cells of a unit are measured one right after the other.
            units: list[list[Cell]] = []
            for workload, new_blocks in environments_of_blocks.items():
                # How many of the new blocks are in the rounds up to this one, and before it.
                placed = round_number * len(new_blocks) // round_count
                placed_before = (round_number - 1) * len(new_blocks) // round_count
                if placed > placed_before:
                    self.blocks[workload] += 1
                    block = self.blocks[workload]
                    units.append([(name, workload, block) for name in new_blocks[placed - 1]])
            if self.last == 1:
                units += self._list_unpaired_cells()
            generator = random.Random(f"{self.plan['seed']}/{self.last}")
            generator.shuffle(units)
            for unit in units:
                generator.shuffle(unit)
                for cell in unit:
                    self.places[cell] = (len(self.places) + 1, self.last)

    def _list_unpaired_cells(self) -> list[list[Cell]]:
        """Return the cells of environments that are in no block: one list for each environment.

        The cells of a list are measured one after the other, as those of a block are.
        """
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
    def _impossible_pairs(self) -> set[tuple[str, str]]:
        """The (environment, workload) pairs that proved impossible in their first repetition.

        The record of such a cell has the key `cannot` (measure/cell.py).  Only records of
        environments that the plan marks as doubtful are read, and only once for each object.
        """
        doubtful = [name for name in self.paired if self.plan["environments"][name].get("doubtful")]
        pairs = set()
        for pair in itertools.product(doubtful, self.blocks):
            record = read_json(os.path.join(self.results, "raw", *pair, "1.json")) or {}
            if "cannot" in record:
                pairs.add(pair)
        return pairs

    def list_environments_of_next_block(self, workload: str) -> list[str]:
        """Return the environments that a further block of a workload can hold, sorted by name.

        Environments that proved unable to run the workload are left out.
        """
        names = self._list_compared_environments(workload)
        return [name for name in names if (name, workload) not in self._impossible_pairs]

    def _list_compared_environments(self, workload: str) -> list[str]:
        """Return the environments that are compared for a workload, sorted by name.

        Emulated machines, and environments that the configuration leaves out, are not compared.
        """
        return [name for name in self.paired if (name, workload) not in self._left_out]

    def list_cells(self) -> list[Cell]:
        """Return every cell in the planned order."""
        return list(self.places)

    def explain_missing_cell(self, environment: str, workload: str, repetition: int) -> str:
        """Return a clause that says why a cell is not in the plan, for the end of a message.

        The caller has checked that the cell is not planned.  An example is "there is no repetition
        9 of docker · stream: 5 are planned".
        """
        environments = self.plan["environments"]
        if environment not in environments:
            return f"there is no environment '{environment}'; there are {', '.join(environments)}"
        workloads = self.plan["workloads"]
        if workload not in workloads:
            return f"there is no workload '{workload}'; there are {', '.join(workloads)}"
        if reason := environments[environment].get("reason"):
            return f"environment '{environment}' is not available here: {reason}"
        planned_count = sum(cell[:2] == (environment, workload) for cell in self.places)
        later = "" if self.decided else " so far; more are decided once these are measured"
        pair = f"{environment} · {workload}"
        return f"there is no repetition {repetition} of {pair}: {planned_count} are planned{later}"

    def list_cells_of_block(self, environment: str, workload: str, repetition: int) -> list[Cell]:
        """Return the cells of the block that a cell belongs to, in the planned order.

        A cell is in no block if the order is sequential or its environment is emulated; the list
        then holds only this cell.
        """
        if self.sequential or environment in self.emulated:
            return [(environment, workload, repetition)]
        cells = [cell for cell in self.places if cell[1:] == (workload, repetition)]
        return [cell for cell in cells if cell[0] in self.paired]

    def format_csv(self) -> str:
        """Return the text of results/plan.csv: one row for each cell, in the planned order.

        The format must stay: analysis/read.R reads the columns, and the check of an archive
        compares its file with this text.
        """
        lines = ["position,round,environment,workload,repetition"]
        for cell, (position, round_number) in self.places.items():
            lines.append(",".join(map(str, (position, round_number, *cell))))
        return "\n".join(lines) + "\n"
