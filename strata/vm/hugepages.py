"""Huge pages of the host: reserved before machines start, returned after they end."""

from collections import Counter

from strata.host.context import Context
from strata.util.data_types import WantedMachine
from strata.util.process import capture_output, wrap_as_root

# The kernel's folders for the huge pages of the whole host, and of one of its memory nodes.
HOST = "/sys/kernel/mm/hugepages/hugepages-2048kB"
NODE = "/sys/devices/system/node/node{node}/hugepages/hugepages-2048kB"
COMPACT_MEMORY = ["sh", "-c", "echo 1 >/proc/sys/vm/compact_memory"]


def _read_page_count(folder: str, counter: str) -> int:
    """Return a number of huge pages of 2 MiB, as the kernel counts them.

    folder: the kernel's folder of the host's pages, or of those of a memory node.
    counter: nr (all reserved pages) or free.
    Raises OSError if the kernel has no such pages.
    """
    with open(f"{folder}/{counter}_hugepages") as file:
        return int(file.read())


def _build_reserve_command(folder: str, count: int) -> list[str]:
    """Return the command, for root, that sets the number of huge pages that a folder reserves.

    folder: the kernel's folder of the host's pages, or of those of a memory node.
    count: the number of all reserved pages, in use or free.  If the kernel lacks memory, it
    reserves fewer without an error.
    """
    return ["sh", "-c", 'echo "$1" >"$2"', "strata", str(count), f"{folder}/nr_hugepages"]


def _count_needed_pages(machines: list[WantedMachine]) -> Counter[str]:
    """Return the huge pages of 2 MiB that machines need: the kernel's folder → number of pages.

    The folders are those of memory nodes if all machines are bound to nodes, else the host's.
    A machine's memory is a whole number of such pages.
    """
    if not _is_memory_bound(machines):
        return Counter({HOST: sum(machine["memory_mib"] // 2 for machine in machines)})
    pages: Counter[str] = Counter()
    for machine in machines:
        nodes = machine["extra"]["memory_nodes"]
        for cell, node in zip(machine["numa"] or [], nodes, strict=True):
            pages[NODE.format(node=node)] += cell["memory"] // 2
    return pages


def _is_memory_bound(machines: list[WantedMachine]) -> bool:
    """Return whether the memory of every machine is bound to memory nodes of the host."""
    return all(machine["extra"]["memory_nodes"] for machine in machines)


def reserve_huge_pages(machines: list[WantedMachine], context: Context) -> str | None:
    """Reserve huge pages of 2 MiB for the memory of all machines; return why that failed, or None.

    machines: the settings of the machines.
    context: the context of the system.  The commands that return the pages to the kernel are
    written into the journal first; pages in use stay reserved until their machine ends.
    After a failure, the earlier number of pages is restored.  The reason appears in the records.
    """
    needed = _count_needed_pages(machines)
    try:
        before = {folder: _read_page_count(folder, "nr") for folder in needed}
    except OSError:
        return "the host's kernel has no huge pages of 2 MiB"
    undo_commands = [_build_reserve_command(folder, count) for folder, count in before.items()]
    # `find` prints nothing: a failed return of pages is not an error.
    cleanup = {"root": True, "find": ["true"], "remove": undo_commands}
    context.note_cleanup({"kind": "huge pages", "id": context.id, **cleanup})
    # Only contiguous memory can become huge pages.  Errors show in the number of pages below.
    capture_output(wrap_as_root(COMPACT_MEMORY), check=False)
    for folder, count in needed.items():
        missing = max(0, count - _read_page_count(folder, "free"))
        capture_output(
            wrap_as_root(_build_reserve_command(folder, before[folder] + missing)), check=False
        )
    reserved = sum(min(_read_page_count(folder, "free"), count) for folder, count in needed.items())
    if reserved == needed.total():
        return None
    for command in undo_commands:
        capture_output(wrap_as_root(command), check=False)
    location = " on the memory nodes of its CPUs" if _is_memory_bound(machines) else ""
    return f"the host could reserve {reserved} of {needed.total()} huge pages of 2 MiB{location}"
