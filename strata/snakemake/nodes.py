"""Cells on the nodes of Slurm: each set as one job on one node, on nodes that are as the plan has its machine.

Snakemake's executor brings them there.  On a node it starts Snakemake for the job, which is a set, and from that once
more for each of its cells (docs/slurm.md): these are the parts of a run.
"""

import os
from collections.abc import Collection

from strata.base import places
from strata.base.errors import UserError
from strata.base.files import read_json
from strata.experiment import sets
from strata.host import capacity, node
from strata.vm.acceleration import shown

# The options of a job that the profile gives too, where nothing more is known of a set.
EXCLUSIVE = "--exclusive"
# Machines of one kind have about the same memory: the kernel keeps a little more or less of it for itself.
MEMORY = 0.02
_SHOWN = {"cpus": "CPUs", "memory_bytes": "bytes of memory", "cache_bytes": "bytes of last-level cache"}


def check(plan: dict, facts: dict | None = None) -> None:
    """Raise UserError where this node is not as the machine that a plan was made on, or a job has only a part of it.

    facts: as of :func:`strata.host.capacity.facts`, of what this process may use.
    """
    here, planned = facts or capacity.facts(), plan["machine"]
    name = node.name() or os.uname().nodename
    online = os.sysconf("SC_NPROCESSORS_ONLN")
    if here["cpus"] < online and here["cpus"] != planned["cpus"]:
        raise UserError(
            f"node {name}: Slurm gives this job {here['cpus']} of {online} CPUs; a set needs the whole node: take "
            f"profiles/slurm as it is, or give its jobs `{EXCLUSIVE}` and all CPUs (docs/slurm.md)"
        )
    found = []
    for key, words in _SHOWN.items():
        has, wants = here.get(key), planned.get(key)
        near = key == "memory_bytes" and has and wants and abs(has - wants) <= MEMORY * wants
        if has != wants and not near and wants is not None:
            found.append(f"{words}: {has} here, {wants} in {places.PLAN}")
    if found:
        raise UserError(
            f"node {name} is not as the machine that the plan was made on ({'; '.join(found)}): start the run on a "
            "machine like the nodes, and use nodes of one kind (docs/slurm.md)"
        )


def check_accelerator(plan: dict, found: str) -> None:
    """Raise UserError where virtual machines run otherwise on this node than the plan says."""
    for name in sets.available(plan):
        planned = plan["environments"][name].get("accelerator")
        if planned not in (None, found):
            here = node.name() or os.uname().nodename
            raise UserError(
                f"node {here}: {name} is {shown(planned)} in {places.PLAN}, and {shown(found)} here: use nodes of one "
                "kind (docs/slurm.md)"
            )


def of_set(order: sets.Order, cell: sets.Cell, coming: Collection[sets.Cell]) -> str | None:
    """The node on which the rest of a cell's set was measured; None where it was not, or not on one.

    coming: cells that are measured now, whose records say nothing of what will be.
    """
    _, workload, repetition = cell
    found = set()
    for environment in [*order.paired, *order.emulated]:
        other = (environment, workload, repetition)
        if other != cell and other not in coming and repetition in order.repetitions(environment, workload):
            log, record = (places.cell_path("raw", *other, kind) for kind in ("log", "json"))
            found |= {node.of_record(read_json(record))} if os.path.exists(log) else set()
    [one] = found if len(found) == 1 else [None]
    return one


def options(order: sets.Order, cell: sets.Cell, coming: Collection[sets.Cell]) -> str:
    """What Slurm is asked for a cell beside what the profile says: its whole node, and that of its set."""
    one = of_set(order, cell, coming)
    return EXCLUSIVE if one is None else f"{EXCLUSIVE} --nodelist={one}"
