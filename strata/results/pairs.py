"""Find the blocks that are torn: runs of them are measured apart from native's.

Such runs form no ratio to native, so that a whole block is added in place of a torn one.  Only the
times in records decide that, never a value.
"""

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime

from strata.experiment import blocks
from strata.experiment.blocks import REFERENCE, Block
from strata.host import node
from strata.measure import pending
from strata.util.data_types import Fields, Plan

# Torn block → the environments whose runs are measured apart from native's.
Torn = dict[Block, list[str]]


def find_torn_blocks(experiment: Plan, order: blocks.Order) -> Torn:
    """Return the torn blocks in whose place another block is due, by number, then by workload.

    A due cell counts as measured now if others of its block are measured already.
    Left out are blocks that were replaced already or too often, those measured on several nodes,
    and pairs with a cell whose environment cannot run the workload.
    """
    cells: dict[Block, list[str]] = defaultdict(list)
    for environment, workload, number in order.places:
        if environment in order.paired and not order.sequential:
            cells[workload, number].append(environment)
    torn: Torn = {}
    for block, names in sorted(cells.items(), key=lambda item: item[0][::-1]):
        tries = order.earlier_tries.get(block, 0)
        if REFERENCE not in names or block in order.replacements or tries >= blocks.MAX_RETRIES:
            continue
        records = {name: pending.read_measured(experiment, (name, *block)) for name in names}
        if unpaired_runs := _list_apart(records):
            torn[block] = unpaired_runs
    return torn


def _list_apart(records: Mapping[str, Fields]) -> list[str]:
    """Return the environments of a block that are, or will be, measured apart from native.

    records: environment → its record in the block; empty where the cell is due.
    """
    measured = [record for record in records.values() if record]
    if not measured or len(set(map(node.node_of_record, measured))) > 1:
        return []
    # The others are expected to take as long.
    seconds = sum(record["seconds"] for record in measured) * len(records) / len(measured)
    native = records[REFERENCE]
    pairs = {name: (record, native) for name, record in records.items() if name != REFERENCE}
    return [name for name, pair in pairs.items() if _are_apart(pair, seconds)]


def _are_apart(pair: Sequence[Fields], seconds: float) -> bool:
    """Return whether two cells of a block are, or will be, measured apart.

    pair: their records; empty where a cell is due.
    seconds: the time of all cells of the block, the longest gap between the two.
    The same rule decides in analysis/statistics.R which runs form a ratio.
    """
    measured = [record for record in pair if record]
    if not measured or any("cannot" in record for record in measured):
        return False
    together = [record.get("together") for record in measured]
    if len(measured) == 2 and all(together):
        return together[0] != together[1]
    begun = [_read_moment(record["started"]) for record in measured]
    if len(measured) == 1:
        begun.append(time.time())
    return max(begun) - min(_read_moment(record["ended"]) for record in measured) > seconds


def _read_moment(text: str) -> float:
    """Return a moment of a record in seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def describe_torn_blocks(torn: Torn) -> list[str]:
    """Return a sentence for each workload with torn blocks: which they are, and what is added."""
    of_workload: dict[str, Torn] = defaultdict(dict)
    for block, names in torn.items():
        of_workload[block[0]][block] = names
    sentences = []
    for workload, its_torn in of_workload.items():
        names = list(
            dict.fromkeys(name for unpaired_runs in its_torn.values() for name in unpaired_runs)
        )
        numbers = ", ".join(str(number) for _, number in its_torn)
        repetitions, added = "repetition", "a whole block is added in its place"
        if len(its_torn) > 1:
            repetitions = "repetitions"
            added = f"{len(its_torn)} whole blocks are added in their place"
        sentences.append(
            f"{workload}, {repetitions} {numbers}: {describe_environments(names)}; {added}"
        )
    return sentences


def describe_environments(names: Sequence[str]) -> str:
    """Return a clause that says which environments are measured apart from native."""
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb} measured apart from {REFERENCE}"
