"""Huge pages of the host for a machine: reserved before it starts, given back when it is gone."""

from strata.host.context import Context
from strata.util.data_types import WantedMachine
from strata.util.process import as_root, capture

# Those of the whole host, and those of one of its memory nodes.
HOST = "/sys/kernel/mm/hugepages/hugepages-2048kB"
NODE = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB"


def _read(place: str, name: str) -> int:
    with open(f"{place}/{name}_hugepages") as file:
        return int(file.read())


def _setting(place: str, count: int) -> list[str]:
    return ["sh", "-c", 'echo "$1" >"$2"', "strata", str(count), f"{place}/nr_hugepages"]


def reserve(machines: list[WantedMachine], context: Context) -> str | None:
    """Reserve pages of 2 MiB for machines, on memory nodes if all are bound to some; why there are none, or None.

    It is noted before (context) how they are given back: those that are still in use then go with their machine.
    """
    wanted = {HOST: sum(machine["memory_mib"] // 2 for machine in machines)}
    if bound := all(machine["extra"]["memory_nodes"] for machine in machines):
        wanted = {}
        for machine in machines:
            for cell, node in zip(
                machine["numa"] or [], machine["extra"]["memory_nodes"], strict=True
            ):
                place = NODE.format(node=node)
                wanted[place] = wanted.get(place, 0) + cell["memory"] // 2
    try:
        before = {place: _read(place, "nr") for place in wanted}
    except OSError:
        return "the host's kernel has no huge pages of 2 MiB"
    back = [_setting(place, count) for place, count in before.items()]
    context.note(
        {"kind": "huge pages", "id": context.id, "root": True, "find": ["true"], "remove": back}
    )
    more = [
        _setting(place, before[place] + max(0, needed - _read(place, "free")))
        for place, needed in wanted.items()
    ]
    for command in (["sh", "-c", "echo 1 >/proc/sys/vm/compact_memory"], *more):
        capture(as_root(command), check=False)
    there, needed = (
        sum(min(_read(place, "free"), count) for place, count in wanted.items()),
        sum(wanted.values()),
    )
    if there == needed:
        return None
    for command in back:
        capture(as_root(command), check=False)
    on = " on the memory nodes of its CPUs" if bound else ""
    return f"the host could reserve {there} of {needed} huge pages of 2 MiB{on}"
