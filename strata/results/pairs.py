"""Find the torn blocks, in which some runs are not measured together with native's run.

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
    """Return the torn blocks that must be replaced, in the order of numbers, then of workloads.

    In a torn block, some runs were not measured together with native's run.  If only some cells of
    a block are measured, the others count as if they were measured now.
    Blocks that were replaced already or too often, or were measured on several nodes, are left out.
    An environment that cannot run the workload tears no block.
    """
    environments: dict[Block, list[str]] = defaultdict(list)
    for environment, workload, number in order.places:
        if environment in order.paired and not order.sequential:
            environments[workload, number].append(environment)
    torn: Torn = {}
    for block in sorted(environments, key=lambda block: (block[1], block[0])):
        names = environments[block]
        tries = order.earlier_tries.get(block, 0)
        if REFERENCE not in names or block in order.replacements or tries >= blocks.MAX_RETRIES:
            continue
        records = {name: pending.read_measured_record(experiment, (name, *block)) for name in names}
        if unpaired := _list_unpaired_environments(records):
            torn[block] = unpaired
    return torn


def _list_unpaired_environments(records: Mapping[str, Fields]) -> list[str]:
    """Return the environments of a block whose runs form no pair with native's run.

    records: environment → its record in the block; empty if the cell is due.
    The list is empty for a block of which no cell is measured yet, and for one that was measured on
    several nodes.
    """
    measured = [record for record in records.values() if record]
    if not measured or len(set(map(node.find_node_name, measured))) > 1:
        return []
    # Due cells are expected to take the mean time of measured ones.
    seconds = sum(record["seconds"] for record in measured) * len(records) / len(measured)
    native = records[REFERENCE]
    return [
        name
        for name, record in records.items()
        if name != REFERENCE and not _is_measured_together(record, native, seconds)
    ]


def _is_measured_together(record: Fields, native: Fields, seconds: float) -> bool:
    """Return whether a cell and native's cell of the same block are measured together.

    record, native: the records of the two cells; empty if a cell is due.
    seconds: the time that all cells of the block take: the longest allowed time from the end of
    the first cell to the start of the other.
    Returns True also if neither cell is measured, or if one cannot run: another block would not
    change that.
    analysis/statistics.R chooses the runs that form a ratio by the same rule: change both together.
    """
    measured = [entry for entry in (record, native) if entry]
    if not measured or any("cannot" in entry for entry in measured):
        return True
    # The measurement that interleaved a cell with others, as measure/block.py records it.
    measurements = [entry.get("together") for entry in measured]
    if len(measured) == 2 and all(measurements):
        return measurements[0] == measurements[1]
    starts = [_parse_moment(entry["started"]) for entry in measured]
    if len(measured) == 1:
        # The due cell starts now at the earliest.
        starts.append(time.time())
    return max(starts) - min(_parse_moment(entry["ended"]) for entry in measured) <= seconds


def _parse_moment(text: str) -> float:
    """Convert a record's time, a text in ISO 8601, to seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def describe_torn_blocks(torn: Torn) -> list[str]:
    """Return a sentence for each workload with torn blocks, which names them and what is added."""
    numbers: dict[str, list[int]] = defaultdict(list)
    # Dictionaries keep the order in which names first occur.
    environments: dict[str, dict[str, None]] = defaultdict(dict)
    for (workload, number), names in torn.items():
        numbers[workload].append(number)
        environments[workload].update(dict.fromkeys(names))
    sentences = []
    for workload, repetitions in numbers.items():
        noun, added = "repetition", "a whole block is added in its place"
        if len(repetitions) > 1:
            noun, added = "repetitions", f"{len(repetitions)} whole blocks are added in their place"
        listed = ", ".join(map(str, repetitions))
        clause = describe_unpaired_environments([*environments[workload]])
        sentences.append(f"{workload}, {noun} {listed}: {clause}; {added}")
    return sentences


def describe_unpaired_environments(names: Sequence[str]) -> str:
    """Return a clause that says which environments are measured apart from native."""
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb} measured apart from {REFERENCE}"
