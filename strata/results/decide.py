"""Decide which blocks come next: in place of disturbed and torn ones, and where intervals are wide.

Widths of intervals (analysis/widths.R), costs, the budget, the machine's flags and the times of
runs decide, and never a difference between environments, unless the plan names a margin: then the
verdicts do that the tables would hold now (docs/statistics.md).
"""

import json
import math
from collections import defaultdict
from collections.abc import Container, Sequence

from strata.experiment import blocks, plan, precision
from strata.experiment.precision import Precision
from strata.measure import interference
from strata.results import pairs, tidy
from strata.util import programs, progress
from strata.util.constants import result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import write_json


def decide(round: int) -> None:
    """Decide after a round which blocks come next, write the decision, and print it in one line.

    round: the number of the round that has been measured.
    Writes results/precision of that round, flushed to disk, and then the plan's order of cells.
    Raises UserError where no decision is due after the round, or its cells are not measured.
    """
    experiment = plan.read_checked_plan()
    order = blocks.Order(experiment)
    if order.decision_rounds[-1:] != [round]:
        due = "an order of cells without blocks has none"
        if order.decision_rounds:
            due = f"one is due after {order.last}"
        raise UserError(f"no decision is due after round {round}; {due}")
    decision = _Decision(experiment, order, tidy.parse_cells()).fields()
    write_json(result_path("precision", round=round), decision, lasting=True)
    # The next cell prints how many cells there are.
    plan.write_cell_order(experiment)
    outcome = "no more blocks" if decision["enough"] else "more blocks follow"
    progress.print_line(f"round {round}: {outcome}: {decision['reason']}")


class _Decision:
    """The decision that is due in a plan's order of cells, by the values measured so far.

    again: the blocks that are measured again → the disturbance.
    torn: the blocks in whose place another is measured → the environments that are measured apart.
    left: the seconds of the budget that are not used; infinite without a budget.
    states: workload → the number of its blocks, its width and its cost, as a :class:`Precision`.
    more: workload → how many blocks are added.
    claims: workload → the published claim for which blocks are added, if they are added for one.
    """

    def __init__(self, experiment: Plan, order: blocks.Order, values: tidy.CellValues) -> None:
        self._experiment = experiment
        self._order = order
        settings: Fields = experiment.get("precision", {})
        self._margin: float | None = settings.get("margin")
        self._claims: bool | float = settings.get("claims", False)
        self._retries: int = settings.get("retries", 0)
        self._target: float | None = settings.get("target")
        self._budget: float | None = settings.get("budget")
        self._costs = precision.mean_cell_seconds(values.records)
        self.torn = pairs.find_torn_blocks(experiment, order)
        # A block in whose place another one is measured costs the budget nothing.
        torn = {*self.torn, *order.replacements} - order.disturbed
        counted = [record for cell, record in values.records.items() if cell[1:] not in torn]
        self._spent = sum(record["seconds"] for record in counted)
        self.left = math.inf if self._budget is None else self._budget - self._spent
        self.again: dict[blocks.Block, str] = {}
        self._repeat_disturbed_blocks(values)
        self._ratios: dict[tuple[str, str], list[Fields]] = defaultdict(list)
        self._adds = self._target is not None or self._margin is not None or bool(self._claims)
        for row in _interval_widths(values, self.again) if self._adds else ():
            self._ratios[row["workload"], row["id"]].append(row)
        self.states = {name: self._state(name) for name in experiment["workloads"]}
        self.more = dict.fromkeys(self.states, 0)
        self.claims: dict[str, Precision] = {}
        if self._margin is not None:
            self._add_blocks_to_look()
        elif self._adds:
            self._add_blocks()

    def _block_seconds(self, workload: str, environments: Container[str]) -> float:
        """Return the expected seconds of a workload's next block in some environments.

        Environments without any measured cell count as 0.
        """
        names = [
            name
            for name in self._order.environments_of_next_block(workload)
            if name in environments
        ]
        return sum(self._costs.get((name, workload), 0.0) for name in names)

    def _repeat_disturbed_blocks(self, values: tidy.CellValues) -> None:
        """Choose the disturbed blocks that are measured again, as far as the budget allows.

        Sets `again`, reduces `left`, and takes the chosen blocks out of `torn`.
        """
        order = self._order
        disturbed: dict[blocks.Block, str] = {}
        for cell, record in values.records.items():
            flags = record.get("interference", {}).get("flags")
            if flags and cell[0] in order.paired and cell[1:] not in order.disturbed:
                disturbed[cell[1:]] = interference.describe_cause(flags)
        # By their numbers, then by workload.
        for block in sorted(disturbed, key=lambda block: block[::-1]):
            environments = {cell[0] for cell in order.places if cell[1:] == block}
            seconds = self._block_seconds(block[0], environments)
            if order.earlier_tries.get(block, 0) < self._retries and seconds <= self.left:
                self.again[block] = disturbed[block]
                self.torn.pop(block, None)
                self.left -= seconds

    def _state(self, workload: str, claim: str = "") -> Precision:
        """Return the precision of a workload, or of a published claim on the workload.

        claim: the claim's ID; "": the workload as a whole.
        """
        order, rows = self._order, self._ratios[workload, claim]
        repeated = sum(block[0] == workload for block in [*self.again, *self.torn])
        replaced = sum(block[0] == workload for block in order.replacements)
        # A block that could not be measured takes the place of another; one replaced does not.
        room = self._experiment["repetitions"] - order.blocks[workload] + replaced
        wide = [
            row for row in rows if self._target is not None and row["half_width"] > self._target
        ]
        staged = min((row["n"] for row in rows), default=0) >= precision.FIRST_STAGE
        narrowed = bool(wide) and staged and not claim
        undecided = [row for row in rows if _is_open(row)]
        if narrowed:
            # The next blocks leave out environments whose ratio is within the target already.
            rows = wide
        environments = order.paired
        if undecided:
            rows, narrowed = undecided, True
        if claim or narrowed:
            chosen = {blocks.REFERENCE}
            chosen.update(row[side] for row in rows for side in ("environment", "reference"))
            environments = [name for name in order.paired if name in chosen]
        half_width = max((row["half_width"] for row in rows), default=math.inf)
        target = 0.0
        if claim:
            # Of several parts the one decides that is farthest from its width.
            half_width, target = max(
                ((row["half_width"], self._claim_width(row)) for row in rows),
                key=lambda widths: widths[0] / widths[1],
            )
        return Precision(
            counted=min((row["n"] for row in rows), default=0),
            again=repeated,
            room=room,
            half_width=half_width,
            seconds=self._block_seconds(workload, environments),
            ratios=max(len(rows), 1),
            target=target,
            environments=environments,
            claim=claim,
        )

    def _claim_width(self, row: Fields) -> float:
        """Return the half-width that decides a claim's part, or the one that the plan demands."""
        if self._claims is not True:
            return float(self._claims)
        return precision.deciding_half_width(row["low"], row["high"], row["published"])

    def _add_blocks(self) -> None:
        """Choose how many blocks each workload gets: for the target, else for published claims.

        Sets `more` and `claims`.  Without a target there is the first stage, and then claims.
        """
        target = math.inf if self._target is None else self._target
        self.more = precision.allot_blocks(self.states, target, self._budget, self.left)
        if not self._claims or any(self.more.values()):
            return
        states = [
            (workload, self._state(workload, claim)) for workload, claim in [*self._ratios] if claim
        ]
        for workload, (number, claim) in precision.allot_blocks_to_claims(
            states, self.left
        ).items():
            self.more[workload], self.claims[workload] = number, claim

    def _add_blocks_to_look(self) -> None:
        """Choose how many blocks follow until differences are tested again.

        Workloads with an undecided ratio get blocks, of native and the undecided environments.
        Sets `more`.
        """
        for workload, state in self.states.items():
            if any(map(_is_open, self._ratios[workload, ""])):
                blocks_to_look = precision.count_blocks_to_look(
                    self._order.blocks[workload], state.seconds, self.left
                )
                self.more[workload] = min(blocks_to_look, max(state.room, 0))
                self.left -= self.more[workload] * state.seconds

    def fields(self) -> Fields:
        """Return the decision for results/precision: readers rely on its keys (docs/files.md)."""
        workloads = {workload: self._entry(workload) for workload in self.states}
        of_reason: dict[str, list[str]] = defaultdict(list)
        for workload, entry in workloads.items():
            of_reason[entry["reason"]].append(workload)
        sentences = [f"{', '.join(names)}: {reason}" for reason, names in of_reason.items()]
        if self._budget is not None:
            sentences.append(f"{self._spent:.0f} of {self._budget:.0f} s are used")
        return {
            "round": self._order.last,
            "enough": not any(
                entry["again"] or entry["torn"] or entry["more"] for entry in workloads.values()
            ),
            "reason": "; ".join(sentences),
            "rests_on": blocks.hash_decision_basis(self._experiment),
            "spent_seconds": round(self._spent, 3),
            "workloads": workloads,
        }

    def _entry(self, workload: str) -> Fields:
        """Return the decision on one workload, as an entry of `workloads` in :meth:`fields`."""
        state, more = self.states[workload], self.more[workload]
        claim = self.claims.get(workload)
        environments: Sequence[str] | None = (claim or state).environments
        if not more or environments == self._order.paired:
            environments = None
        again = {number: cause for (name, number), cause in self.again.items() if name == workload}
        torn = {number: names for (name, number), names in self.torn.items() if name == workload}
        return {
            "blocks": self._order.blocks[workload],
            "seconds": round(state.seconds, 3),
            "half_width": state.half_width if math.isfinite(state.half_width) else None,
            "again": [*again],
            "torn": [*torn],
            "more": more,
            "environments": environments,
            "claim": claim.claim if claim else None,
            "reason": _reason(
                self._adds, state, more, environments, self._target, claim, again, torn
            ),
            **self._describe_verdicts(workload),
        }

    def _describe_verdicts(self, workload: str) -> Fields:
        """Return ``{verdicts}`` where a margin decides: the ratios so far, with their verdicts."""
        if self._margin is None:
            return {}
        keys = ("environment", "n", "ratio", "from", "to", "verdict")
        rows = self._ratios[workload, ""]
        return {"verdicts": [{key: row[key] for key in keys} for row in rows]}


def _is_open(row: Fields) -> bool:
    """Return whether more blocks may decide a ratio: it is undecided, and varies between blocks."""
    is_early: bool = row["n"] < precision.LOOKS[0]
    return row["verdict"] == "undecided" and (row["from"] is not None or is_early)


def _interval_widths(values: tidy.CellValues, aside: Container[blocks.Block]) -> list[Fields]:
    """Return one row for each ratio to native whose interval width decides on blocks.

    values: the measured values.  aside: blocks whose values are not used.
    Each row is ``{id, workload, environment, reference, n, half_width, low, high, published}``:
    `half_width` is relative, and infinite without an interval; `id` is that of the claim to which
    the ratio belongs, whose tolerance ranges from `low` to `high` (None: no limit) and whose value
    is `published` (None: none), or "" without a claim.  Where a margin decides, `verdict` is
    "undecided", "different" or "equivalent", and `ratio`, `from` and `to` give the ratio and its
    interval; otherwise these are "" and None.
    Runs R (analysis/widths.R), which relies on the columns of the tables.
    """
    counted = {
        workload: [row for row in rows if (workload, row["repetition"]) not in aside]
        for workload, rows in values.values.items()
    }
    if not any(counted.values()):
        return []
    with programs.temporary_folder("widths") as folder:
        tidy.write_value_tables(values._replace(values=counted), folder)
        printed = programs.run_r("analysis/widths.R", "results", folder)
    ratios: list[Fields] = json.loads(printed)
    for ratio in ratios:
        if ratio["half_width"] is None:
            ratio["half_width"] = math.inf
    return ratios


def _reason(
    adds: bool,
    state: Precision,
    more: int,
    environments: Sequence[str] | None,
    target: float | None,
    claim: Precision | None,
    again: dict[int, str],
    torn: dict[int, list[str]],
) -> str:
    """Return a phrase on a workload's interval width and target, and on the blocks that are added.

    adds: whether blocks may be added; else they only replace disturbed and torn ones.
    more: the number of added blocks.  environments: those of the added blocks; None: all.
    target: the largest relative half-width that is wanted; None without one.
    claim: the published claim for which blocks are added, or None.
    again: number of a block that is measured again → its disturbance.
    torn: number of a torn block that is replaced → its environments that are measured apart.
    """
    phrases = [f"block {number} again: {cause}" for number, cause in again.items()]
    for number, names in torn.items():
        phrases.append(f"block {number} is replaced: {pairs.describe_environments(names)}")
    if not adds:
        return ", ".join(phrases) or "no block was disturbed or torn"
    known = math.isfinite(state.half_width)
    width = f"± {100 * state.half_width:.1f} %" if known else "no interval"
    if target is not None:
        width += f" (target ± {100 * target:.1f} %)"
    phrases.insert(0, width)
    if more:
        blocks_added = f"{more} more"
        if environments:
            blocks_added += f" of {', '.join(environments)}"
        if claim:
            wide = f"± {100 * claim.half_width:.1f} %, " if math.isfinite(claim.half_width) else ""
            blocks_added += f" for {claim.claim} ({wide}target ± {100 * claim.target:.1f} %)"
        phrases.append(blocks_added)
    elif target is None:
        phrases.append("no more")
    elif state.half_width <= target:
        phrases.append("within the target")
    elif state.room <= 0:
        phrases.append("the largest number of blocks")
    else:
        phrases.append("the budget pays for no more")
    return ", ".join(phrases)
