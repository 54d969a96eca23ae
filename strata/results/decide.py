"""Decide which blocks come next: in place of disturbed and torn ones, and where intervals are wide.

The decision uses widths of intervals (analysis/widths.R), costs, the budget, flags of interference
and the times of runs, and never a difference between environments.  If the plan names a margin, it
uses the current verdicts instead of widths (docs/statistics.md).
"""

import glob
import json
import math
import os
from collections import defaultdict
from collections.abc import Container, Mapping, Sequence

from strata.experiment import blocks, claims, plan, precision
from strata.experiment.precision import Precision
from strata.measure import interference
from strata.results import pairs, tidy
from strata.util import programs, progress
from strata.util.constants import get_result_path
from strata.util.data_types import Fields, Plan
from strata.util.errors import UserError
from strata.util.files import write_json


def decide_next_blocks(round_number: int) -> None:
    """Decide after a round which blocks come next, write the decision, and print it in one line.

    round_number: the number of the round that has been measured.
    Writes results/precision/{round}.json, flushed to disk, and then results/plan.csv, since
    :class:`strata.experiment.blocks.Order` computes the order of cells from all decisions.
    Removes the decisions after later rounds.
    Raises UserError if no decision is due after the round, or its cells are not measured.
    """
    experiment = plan.read_checked_plan()
    order = blocks.Order(experiment)
    if order.decision_rounds[-1:] != [round_number]:
        hint = "an order of cells without blocks has none"
        if order.decision_rounds:
            hint = f"one is due after {order.last}"
        raise UserError(f"no decision is due after round {round_number}; {hint}")
    decision = _Decision(experiment, order, tidy.parse_cells()).to_dict()
    path = get_result_path("precision", round=round_number)
    for existing_path in glob.glob(get_result_path("precision", round="*")):
        # A decision after a later round followed from the decision that this one replaces.
        if int(os.path.basename(existing_path).removesuffix(".json")) > round_number:
            os.unlink(existing_path)
    write_json(path, decision, lasting=True)
    # The next cell prints how many cells there are.
    plan.write_cell_order(experiment)
    # experiment/measuring.py recognizes this line.
    outcome = "no more blocks" if decision["enough"] else "more blocks follow"
    progress.print_line(f"round {round_number}: {outcome}: {decision['reason']}")


class _Decision:
    """The decision that is due in a plan's order of cells, by the values measured so far.

    repeated_blocks: disturbed block that is measured again → the disturbance.
    torn_blocks: torn block that is replaced by another → the environments measured apart.
    seconds_left: the seconds of the budget that remain; infinite without a budget.
    states: workload → the number of its blocks, its width and its cost, as a :class:`Precision`.
    added_counts: workload → how many blocks are added.
    claims: workload → the published claim that gets blocks of it; other workloads are missing.
    """

    def __init__(self, experiment: Plan, order: blocks.Order, cell_values: tidy.CellValues) -> None:
        """Decide which blocks are repeated; then spend the rest of the budget on further blocks.

        experiment: the plan; its `precision` has the settings of decisions.
        order: the order of the plan; the decision is due after its last round.
        cell_values: the values of all measured cells.
        Runs R if blocks may be added.
        """
        self._experiment = experiment
        self._order = order
        settings: Fields = experiment.get("precision", {})
        self._margin: float | None = settings.get("margin")
        # Whether blocks are added for claims; a number is the half-width that each has to reach.
        self._claims: bool | float = settings.get("claims", False)
        self._retries: int = settings.get("retries", 0)
        self._target: float | None = settings.get("target")
        self._budget: float | None = settings.get("budget")
        records = cell_values.records
        self._costs = precision.compute_median_cell_seconds(records)
        self.torn_blocks = pairs.find_torn_blocks(experiment, order)
        # Torn blocks, replaced or not, are not charged to the budget; disturbed blocks are.
        uncharged_blocks = {*self.torn_blocks, *order.replacements} - order.disturbed
        self._measured_seconds = sum(
            record["seconds"]
            for cell, record in records.items()
            if cell[1:] not in uncharged_blocks
        )
        self.seconds_left = (
            math.inf if self._budget is None else self._budget - self._measured_seconds
        )
        self.repeated_blocks: dict[blocks.Block, str] = {}
        self._choose_repeated_blocks(records)
        # Whether blocks may be added; else they only replace disturbed and torn ones.
        self._adds_blocks = blocks.adds_blocks(experiment)
        # (Workload, ID of a claim or "") → the rows of its ratios, see _compute_interval_widths.
        self._ratio_rows: dict[tuple[str, str], list[Fields]] = defaultdict(list)
        if self._adds_blocks:
            for row in _compute_interval_widths(cell_values, self.repeated_blocks):
                self._ratio_rows[row["workload"], row["id"]].append(row)
        self.states = {name: self._estimate_precision(name) for name in experiment["workloads"]}
        self.added_counts = dict.fromkeys(self.states, 0)
        self.claims: dict[str, Precision] = {}
        if self._margin is not None:
            self._allot_blocks_to_next_test()
        elif self._adds_blocks:
            self._allot_blocks()

    def _estimate_block_seconds(self, workload: str, environments: Container[str]) -> float:
        """Return the expected duration, in seconds, of a workload's next block.

        environments: the environments that the block holds.  One without a measured cell counts as
        0 seconds.
        """
        return sum(
            self._costs.get((name, workload), 0.0)
            for name in self._order.list_environments_of_next_block(workload)
            if name in environments
        )

    def _choose_repeated_blocks(self, records: Mapping[blocks.Cell, Fields]) -> None:
        """Choose the disturbed blocks that are measured again, as far as the budget allows.

        records: the records of all measured cells, with disturbances as ``interference.flags``.
        Adds to `repeated_blocks`, reduces `seconds_left`, and takes the chosen blocks out of
        `torn_blocks`.  A block that was tried as often as the plan allows is not chosen.
        """
        order = self._order
        # Disturbed block → the phrase on its cause; of several disturbed cells the last one counts.
        causes: dict[blocks.Block, str] = {}
        for cell, record in records.items():
            flags = record.get("interference", {}).get("flags")
            if flags and cell[0] in order.paired and cell[1:] not in order.disturbed:
                causes[cell[1:]] = interference.describe_main_cause(flags)
        # In the order of numbers, then of workloads, since the budget may not suffice for all.
        for block in sorted(causes, key=lambda block: (block[1], block[0])):
            environments = {cell[0] for cell in order.places if cell[1:] == block}
            seconds = self._estimate_block_seconds(block[0], environments)
            has_tries_left = order.earlier_tries.get(block, 0) < self._retries
            if has_tries_left and seconds <= self.seconds_left:
                self.repeated_blocks[block] = causes[block]
                self.torn_blocks.pop(block, None)
                self.seconds_left -= seconds

    def _estimate_precision(self, workload: str, claim: str = "") -> Precision:
        """Return how precisely a workload, or a published claim on it, is measured so far.

        claim: the claim's ID; "" for the workload as a whole.
        Of several ratios, the smallest number of blocks and the widest interval count.  For a
        claim, the interval counts that is widest in relation to the half-width that decides its
        ratio.
        """
        order = self._order
        again_count = sum(
            block[0] == workload for block in [*self.repeated_blocks, *self.torn_blocks]
        )
        replacement_count = sum(block[0] == workload for block in order.replacements)
        rows, is_selection = self._select_ratios(workload, claim)
        environments = order.paired
        if is_selection:
            compared_names = {blocks.REFERENCE}
            for row in rows:
                compared_names |= {row["environment"], row["reference"]}
            environments = [name for name in order.paired if name in compared_names]
        half_width = max((row["half_width"] for row in rows), default=math.inf)
        target = 0.0
        if claim:
            row = max(rows, key=lambda row: row["half_width"] / self._find_deciding_half_width(row))
            half_width = row["half_width"]
            target = self._find_deciding_half_width(row)
        return Precision(
            counted=min((row["n"] for row in rows), default=0),
            again=again_count,
            # A replaced block does not count toward the largest number of blocks; others do.
            room=self._experiment["repetitions"] - order.blocks[workload] + replacement_count,
            half_width=half_width,
            seconds=self._estimate_block_seconds(workload, environments),
            ratios=max(len(rows), 1),
            target=target,
            environments=environments,
            claim=claim,
        )

    def _select_ratios(self, workload: str, claim: str) -> tuple[list[Fields], bool]:
        """Return ``(rows, is_selection)``: the rows of the ratios that further blocks narrow.

        claim: the claim's ID; "" for the workload as a whole.
        is_selection: whether further blocks hold only the environments of these rows; otherwise
        they hold all environments.
        The rows are, in this order of preference: the open ratios, if the plan names a margin; all
        ratios of the claim; after the first stage, the ratios whose interval is wider than the
        target; all ratios.
        """
        rows = self._ratio_rows[workload, claim]
        open_rows = [row for row in rows if _is_open_ratio(row)]
        if open_rows:
            return open_rows, True
        if claim:
            return rows, True
        target = math.inf if self._target is None else self._target
        wide_rows = [row for row in rows if row["half_width"] > target]
        if wide_rows and min(row["n"] for row in rows) >= precision.FIRST_STAGE:
            return wide_rows, True
        return rows, False

    def _find_deciding_half_width(self, row: Fields) -> float:
        """Return the relative half-width that decides one ratio of a claim.

        row: the row of the ratio, as from :func:`_compute_interval_widths`.
        """
        # `claims` is True, or a number that holds for all claims; here it is never False.
        if self._claims is not True:
            return float(self._claims)
        return precision.compute_deciding_half_width(row["low"], row["high"], row["published"])

    def _allot_blocks(self) -> None:
        """Choose how many blocks each workload gets: for verdicts, the target, or published claims.

        Sets `added_counts` and `claims`.  Claims get blocks only if no workload needs one for its
        verdicts, the first stage or the target.  A workload gets no blocks for the target if the
        budget does not suffice for its verdicts.
        """
        self.added_counts = precision.allot_blocks_after_verdicts(
            self.states,
            self._count_missing_blocks(),
            self._count_verdicts(),
            math.inf if self._target is None else self._target,
            self._budget,
            self.seconds_left,
        )
        if not self._claims or any(self.added_counts.values()):
            return
        states = []
        # A copy of the keys, since reading a defaultdict may add one.
        for workload, claim in list(self._ratio_rows):
            if claim:
                states.append((workload, self._estimate_precision(workload, claim)))
        allotted = precision.allot_blocks_to_claims(states, self.seconds_left)
        for workload, (count, claim_state) in allotted.items():
            self.added_counts[workload] = count
            self.claims[workload] = claim_state

    def _count_missing_blocks(self) -> dict[str, int]:
        """Return how many blocks each workload still needs for a verdict.

        The result has no key for a workload that needs none or could not be measured.  It is empty
        if the plan allows fewer blocks than a verdict takes.
        """
        if self._experiment["repetitions"] < precision.VERDICT_BLOCKS:
            return {}
        measured_workloads = {workload for _, workload in self._costs}
        missing_counts = {}
        for workload, planned_count in self._order.blocks.items():
            # Of a replaced block and its replacement only one counts in the end.
            replacement_count = sum(block[0] == workload for block in self._order.replacements)
            missing_count = precision.VERDICT_BLOCKS - (planned_count - replacement_count)
            if workload in measured_workloads and missing_count > 0:
                missing_counts[workload] = missing_count
        return missing_counts

    def _count_verdicts(self) -> dict[str, int]:
        """Return how many verdicts the blocks of each workload give.

        These are verdicts on published claims if blocks are added for claims, otherwise on ratios.
        """
        if self._claims:
            return claims.count_testable_claims(self._experiment)
        return {name: state.ratios for name, state in self.states.items()}

    def _allot_blocks_to_next_test(self) -> None:
        """Choose how many blocks of each workload follow until differences are tested again.

        Workloads with an open ratio get blocks, of native and the environments of open ratios.
        Sets `added_counts`, and reduces `seconds_left`.
        """
        for workload, state in self.states.items():
            if any(_is_open_ratio(row) for row in self._ratio_rows[workload, ""]):
                block_count = precision.count_blocks_to_next_test(
                    self._order.blocks[workload], state.seconds, self.seconds_left
                )
                added_count = min(block_count, max(state.room, 0))
                self.added_counts[workload] = added_count
                self.seconds_left -= added_count * state.seconds

    def to_dict(self) -> Fields:
        """Return the decision as the object that results/precision/{round}.json stores.

        schemas/decision.schema.json describes the keys.  experiment/blocks.py computes the order of
        cells from `rests_on`, `blocks_rest_on` and `workloads`; the commands `try` and `reproduce`
        show other keys.  Seconds are rounded to milliseconds.
        `reason` joins the workloads with equal reasons, as in "stream, xz: ± 2.0 %, no more; 50 of
        60 s are used".
        """
        decisions = {workload: self._describe_workload(workload) for workload in self.states}
        workloads_by_reason: dict[str, list[str]] = defaultdict(list)
        for workload, decision in decisions.items():
            workloads_by_reason[decision["reason"]].append(workload)
        reasons = [f"{', '.join(names)}: {why}" for why, names in workloads_by_reason.items()]
        if self._budget is not None:
            reasons.append(f"{self._measured_seconds:.0f} of {self._budget:.0f} s are used")
        return {
            "round": self._order.last,
            "enough": not (
                self.repeated_blocks or self.torn_blocks or any(self.added_counts.values())
            ),
            "reason": "; ".join(reasons),
            "rests_on": blocks.hash_decision_basis(self._experiment),
            "blocks_rest_on": blocks.hash_block_basis(self._experiment),
            "spent_seconds": round(self._measured_seconds, 3),
            "workloads": decisions,
        }

    def _describe_workload(self, workload: str) -> Fields:
        """Return the decision on one workload, the value in `workloads` of the stored decision.

        `environments` names the environments of the added blocks; it is None if they are all
        environments, or no block is added.  The key `verdicts` is present only if the plan names a
        margin.  experiment/blocks.py reads `again`, `torn`, `more` and `environments`.
        """
        state = self.states[workload]
        added_count = self.added_counts[workload]
        claim = self.claims.get(workload)
        environments: Sequence[str] | None = (claim or state).environments
        if not added_count or environments == self._order.paired:
            environments = None
        decision: Fields = {
            "blocks": self._order.blocks[workload],
            "seconds": round(state.seconds, 3),
            "half_width": state.half_width if math.isfinite(state.half_width) else None,
            "again": [number for name, number in self.repeated_blocks if name == workload],
            "torn": [number for name, number in self.torn_blocks if name == workload],
            "more": added_count,
            "environments": environments,
            "claim": claim.claim if claim else None,
            "reason": self._explain_blocks(workload, environments),
        }
        if self._margin is not None:
            keys = ("environment", "n", "ratio", "from", "to", "verdict")
            rows = self._ratio_rows[workload, ""]
            decision["verdicts"] = [{key: row[key] for key in keys} for row in rows]
        return decision

    def _explain_blocks(self, workload: str, environments: Sequence[str] | None) -> str:
        """Return phrases, joined by commas, on the blocks of a workload that are measured next.

        environments: the environments of the added blocks; None means all.
        The phrases name each block that is measured again or replaced, with the cause.  If blocks
        may be added, the half-width and its target come first, and the added blocks last, as in
        "± 3.1 % (target ± 2.0 %), block 2 again: cc1 used 87 % of a CPU, 4 more".
        """
        replacements = []
        for (name, number), cause in self.repeated_blocks.items():
            if name == workload:
                replacements.append(f"block {number} again: {cause}")
        for (name, number), names in self.torn_blocks.items():
            if name == workload:
                clause = pairs.describe_unpaired_environments(names)
                replacements.append(f"block {number} is replaced: {clause}")
        if not self._adds_blocks:
            return ", ".join(replacements) or "no block was disturbed or torn"
        half_width = self.states[workload].half_width
        width = _format_width(half_width) if math.isfinite(half_width) else "no interval"
        if self._target is not None:
            width += f" (target {_format_width(self._target)})"
        return ", ".join(
            [width, *replacements, self._describe_added_blocks(workload, environments)]
        )

    def _describe_added_blocks(self, workload: str, environments: Sequence[str] | None) -> str:
        """Return a phrase that says how many blocks a workload gets, or why it gets none.

        environments: the environments of the added blocks; None means all.
        Examples are "4 more of native, docker" and "within the target".
        """
        state = self.states[workload]
        added_count = self.added_counts[workload]
        if added_count:
            phrase = f"{added_count} more"
            if environments:
                phrase += f" of {', '.join(environments)}"
            if claim := self.claims.get(workload):
                widths = f"target {_format_width(claim.target)}"
                if math.isfinite(claim.half_width):
                    widths = f"{_format_width(claim.half_width)}, {widths}"
                phrase += f" for {claim.claim} ({widths})"
            return phrase
        if self._target is None:
            return "no more"
        if state.half_width <= self._target:
            return "within the target"
        if state.room <= 0:
            return "the largest number of blocks"
        return "the budget pays for no more"


def _format_width(half_width: float) -> str:
    """Return a relative half-width in percent, for example ``± 2.0 %``."""
    return f"± {100 * half_width:.1f} %"


def _is_open_ratio(row: Fields) -> bool:
    """Return whether more blocks may decide a ratio: it is undecided, and varies between blocks.

    row: the row of the ratio, as from :func:`_compute_interval_widths`; without a margin its
    verdict is "", and the result is False.
    If a ratio still has no interval (`from` is None) after the first test, its blocks are all equal
    or give no number, and more blocks change nothing.
    """
    is_before_first_test: bool = row["n"] < precision.LOOKS[0]
    return row["verdict"] == "undecided" and (row["from"] is not None or is_before_first_test)


def _compute_interval_widths(
    cell_values: tidy.CellValues, excluded_blocks: Container[blocks.Block]
) -> list[Fields]:
    """Return one row for each ratio to native whose interval width decides on blocks.

    cell_values: the values of all measured cells.
    excluded_blocks: blocks whose values are left out.
    Each row is ``{id, workload, environment, reference, n, half_width, low, high, published,
    verdict, ratio, from, to}``:
    - `n` is the number of blocks; `half_width` is relative, and infinite without an interval.
    - `id` is the ID of the claim to which the ratio belongs, or "".  The claim's tolerance ranges
      from `low` to `high` (None: no limit), and its value is `published` (None: unknown).
    - If the plan names a margin, `verdict` is "undecided", "different" or "equivalent", and
      `ratio`, `from` and `to` are the ratio and its interval.  Otherwise they are "" and None.
    Runs R: analysis/widths.R writes these keys, and relies on the columns of the tables.
    """
    values = {
        workload: [row for row in rows if (workload, row["repetition"]) not in excluded_blocks]
        for workload, rows in cell_values.values.items()
    }
    if not any(values.values()):
        return []
    with programs.create_temporary_folder("widths") as folder:
        tidy.write_value_tables(cell_values._replace(values=values), folder)
        printed = programs.run_r("analysis/widths.R", "results", folder)
    ratios: list[Fields] = json.loads(printed)
    # JSON has no infinity: R writes null.
    for ratio in ratios:
        if ratio["half_width"] is None:
            ratio["half_width"] = math.inf
    return ratios
