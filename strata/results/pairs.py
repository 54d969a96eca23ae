"""Find the torn blocks, in which some runs are not measured together with native's run.

Such runs form no ratio to native, so a whole block is added in place of a torn one.  Only the times
in records decide this, never a measured value.
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

    experiment: the plan.
    order: the plan's order of cells.
    The result maps each block to the environments whose runs are not measured together with
    native's run.  If only some cells of a block are measured, the others count as if they were
    measured now.
    Blocks that were replaced already or MAX_RETRIES times, or were measured on several nodes, are
    left out.  An environment that cannot run the workload tears no block.
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
    The list is empty if no cell of the block is measured yet, or if the block was measured on
    several nodes.
    """
    measured_records = [record for record in records.values() if record]
    if not measured_records or len(set(map(node.find_node_name, measured_records))) > 1:
        return []
    # The time of all cells of the block; a due cell is expected to take the mean of measured ones.
    seconds = (
        sum(record["seconds"] for record in measured_records) * len(records) / len(measured_records)
    )
    native = records[REFERENCE]
    return [
        name
        for name, record in records.items()
        if name != REFERENCE and not _is_measured_together(record, native, seconds)
    ]


def _is_measured_together(record: Fields, native: Fields, seconds: float) -> bool:
    """Return whether a cell and native's cell of the same block are measured together.

    record: the record of the cell; empty if the cell is due.
    native: the record of native's cell; empty if that cell is due.
    seconds: the time that all cells of the block take.  This is the longest allowed time from the
    end of one cell to the start of the other.
    Returns True also if neither cell is measured, or if one cannot run: another block would not
    change that.
    analysis/statistics.R chooses the runs that form a ratio by the same rule: change both together.
    """
    records = [entry for entry in (record, native) if entry]
    if not records or any("cannot" in entry for entry in records):
        return True
    if "together" in record and "together" in native:
        # measure/block.py gives the same value to all cells that it interleaved.
        return bool(record["together"] == native["together"])
    starts = [_parse_timestamp(entry["started"]) for entry in records]
    if len(records) == 1:
        # The due cell starts now at the earliest.
        starts.append(time.time())
    ends = [_parse_timestamp(entry["ended"]) for entry in records]
    return max(starts) - min(ends) <= seconds


def _parse_timestamp(text: str) -> float:
    """Convert a timestamp of a record, a string in ISO 8601, to seconds since the epoch."""
    return datetime.fromisoformat(text).timestamp()


def describe_torn_blocks(torn: Torn) -> list[str]:
    """Return a sentence for each workload with torn blocks, which names them and what is added.

    torn: as from :func:`find_torn_blocks`.
    An example is "stream, repetition 2: docker is measured apart from native; a whole block is
    added in its place".
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    # Workload → its environments, as keys: dictionaries keep the order in which names first occur.
    environments: dict[str, dict[str, None]] = defaultdict(dict)
    for (workload, number), names in torn.items():
        numbers[workload].append(number)
        environments[workload].update(dict.fromkeys(names))
    sentences = []
    for workload, repetitions in numbers.items():
        noun = "repetition"
        remedy = "a whole block is added in its place"
        if len(repetitions) > 1:
            noun = "repetitions"
            remedy = f"{len(repetitions)} whole blocks are added in their place"
        joined_numbers = ", ".join(map(str, repetitions))
        clause = describe_unpaired_environments([*environments[workload]])
        sentences.append(f"{workload}, {noun} {joined_numbers}: {clause}; {remedy}")
    return sentences


def describe_unpaired_environments(names: Sequence[str]) -> str:
    """Return a clause such as "docker, lxc are measured apart from native".

    names: the names of the environments, at least one.
    """
    verb = "is" if len(names) == 1 else "are"
    return f"{', '.join(names)} {verb} measured apart from {REFERENCE}"
