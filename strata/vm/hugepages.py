"""Huge pages of the host: reserved before machines start, returned after they end."""

from collections import Counter

from strata.host.context import Context
from strata.util.data_types import WantedMachine
from strata.util.process import as_root, capture

# The kernel's folders for the huge pages of the whole host, and of one of its memory nodes.
HOST = "/sys/kernel/mm/hugepages/hugepages-2048kB"
NODE = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB"
COMPACT_MEMORY = ["sh", "-c", "echo 1 >/proc/sys/vm/compact_memory"]


def _read(folder: str, counter: str) -> int:
    """Return a count of huge pages in the kernel's folder; counter: nr (all reserved) or free."""
    with open(f"{folder}/{counter}_hugepages") as file:
        return int(file.read())


def _setting(folder: str, count: int) -> list[str]:
    """Return the command that sets the number of reserved huge pages in the kernel's folder."""
    return ["sh", "-c", 'echo "$1" >"$2"', "strata", str(count), f"{folder}/nr_hugepages"]


def _needed_pages(machines: list[WantedMachine]) -> Counter[str]:
    """Return the kernel's folder → number of huge pages of 2 MiB that all machines need.

    The folders are those of memory nodes if all machines are bound to nodes, else the host's.
    """
    pages: Counter[str] = Counter()
    for machine in machines:
        if not _are_bound(machines):
            pages[HOST] += machine["memory_mib"] // 2
            continue
        nodes = machine["extra"]["memory_nodes"]
        for cell, node in zip(machine["numa"] or [], nodes, strict=True):
            pages[NODE.format(node=node)] += cell["memory"] // 2
    return pages


def _are_bound(machines: list[WantedMachine]) -> bool:
    """Return whether the memory of every machine is bound to memory nodes of the host."""
    return all(machine["extra"]["memory_nodes"] for machine in machines)


def reserve(machines: list[WantedMachine], context: Context) -> str | None:
    """Reserve huge pages of 2 MiB for the memory of all machines; return None if that succeeded.

    context: the system's, into whose journal the return of the pages is written first.  Pages in
    use at that time are returned with their machine.
    If it failed, nothing stays reserved, and the reason is returned.
    """
    needed = _needed_pages(machines)
    try:
        before = {folder: _read(folder, "nr") for folder in needed}
    except OSError:
        return "the host's kernel has no huge pages of 2 MiB"
    give_back = [_setting(folder, count) for folder, count in before.items()]
    context.note_cleanup(
        {
            "kind": "huge pages",
            "id": context.id,
            "root": True,
            "find": ["true"],
            "remove": give_back,
        }
    )
    capture(as_root(COMPACT_MEMORY), check=False)
    for folder, count in needed.items():
        missing = max(0, count - _read(folder, "free"))
        capture(as_root(_setting(folder, before[folder] + missing)), check=False)
    reserved = sum(min(_read(folder, "free"), count) for folder, count in needed.items())
    if reserved == needed.total():
        return None
    for command in give_back:
        capture(as_root(command), check=False)
    place = " on the memory nodes of its CPUs" if _are_bound(machines) else ""
    return f"the host could reserve {reserved} of {needed.total()} huge pages of 2 MiB{place}"
