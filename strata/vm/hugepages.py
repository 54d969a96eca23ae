"""Huge pages of the host for a machine: reserved before it starts, given back when it is gone."""

import os

from strata.base.files import read_json, write_json
from strata.base.process import as_root, capture

# Those of the whole host, and those of one of its memory nodes.
HOST = "/sys/kernel/mm/hugepages/hugepages-2048kB"
NODE = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB"
# What was reserved before, in the system's folder.
RECORD = "huge_pages.json"


def _read(place: str, name: str) -> int:
    with open(f"{place}/{name}_hugepages") as file:
        return int(file.read())


def _set(place: str, count: int) -> None:
    script = 'echo 1 >/proc/sys/vm/compact_memory; echo "$1" >"$2"'
    capture(as_root(["sh", "-c", script, "strata", str(count), f"{place}/nr_hugepages"]), check=False)


def reserve(memory_mib: int, folder: str, nodes: dict[str, int] | None = None) -> str | None:
    """Reserve pages of 2 MiB for machines of that size; why the host cannot give them, or None.

    nodes: how many MiB of it on each of the host's memory nodes, where that is asked for.
    What was reserved before is noted in `folder` for :func:`release`.
    """
    wanted = {NODE.format(node=node): mib // 2 for node, mib in nodes.items()} if nodes else {HOST: memory_mib // 2}
    try:
        before = {place: _read(place, "nr") for place in wanted}
    except OSError:
        return "the host's kernel has no huge pages of 2 MiB"
    write_json(os.path.join(folder, RECORD), before)
    for place, needed in wanted.items():
        _set(place, before[place] + max(0, needed - _read(place, "free")))
    there = {place: min(_read(place, "free"), needed) for place, needed in wanted.items()}
    if there == wanted:
        return None
    release(folder)
    on = " on the memory nodes of its CPUs" if nodes else ""
    return f"the host could reserve {sum(there.values())} of {sum(wanted.values())} huge pages of 2 MiB{on}"


def release(folder: str) -> None:
    """Give back what :func:`reserve` took; it may be called twice."""
    if before := read_json(os.path.join(folder, RECORD)):
        for place, count in before.items():
            _set(place, count)
        os.unlink(os.path.join(folder, RECORD))
