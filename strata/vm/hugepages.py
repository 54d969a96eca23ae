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

    folder: :data:`HOST`, or :data:`NODE` with the number of a memory node.
    counter: "nr" (all reserved pages) or "free".
    Raises OSError if the kernel has no such pages.
    """
    with open(f"{folder}/{counter}_hugepages") as file:
        return int(file.read())


def _build_reserve_command(folder: str, count: int) -> list[str]:
    """Return the command, for root, that sets the number of huge pages that a folder reserves.

    folder: :data:`HOST`, or :data:`NODE` with the number of a memory node.
    count: the number of all reserved pages, in use or free.  If the kernel lacks memory, it
    reserves fewer without an error.
    """
    return ["sh", "-c", 'echo "$1" >"$2"', "strata", str(count), f"{folder}/nr_hugepages"]


def _count_needed_pages(machines: list[WantedMachine]) -> Counter[str]:
    """Return the huge pages of 2 MiB that machines need: the kernel's folder → number of pages.

    machines: the settings of the machines; the memory of each is a whole number of such pages.
    The result has a folder of each memory node (:data:`NODE`) if all machines are bound to nodes,
    else only the host's folder (:data:`HOST`).
    """
    if not _is_memory_bound(machines):
        return Counter({HOST: sum(machine["memory_mib"] // 2 for machine in machines)})
    pages: Counter[str] = Counter()
    for machine in machines:
        host_nodes = machine["extra"]["memory_nodes"]
        guest_nodes = machine["numa"] or []
        for guest_node, host_node in zip(guest_nodes, host_nodes, strict=True):
            # The memory is in MiB, and a page has two.
            pages[NODE.format(node=host_node)] += guest_node["memory"] // 2
    return pages


def _is_memory_bound(machines: list[WantedMachine]) -> bool:
    """Return whether the memory of every machine is bound to memory nodes of the host."""
    return all(machine["extra"]["memory_nodes"] for machine in machines)


def reserve_huge_pages(machines: list[WantedMachine], context: Context) -> str | None:
    """Reserve huge pages of 2 MiB for the memory of all machines; return why that failed, or None.

    machines: the settings of the machines.
    context: the context of the system.
    The commands that return the pages to the kernel are written into the journal first; pages in
    use stay reserved until their machine ends.  After a failure, the earlier number of pages is
    restored.  The reason, which appears in the records, is, for example, "the host could reserve
    100 of 512 huge pages of 2 MiB".
    """
    # For each folder of the kernel: the pages that the machines need, and those reserved before.
    needed_counts = _count_needed_pages(machines)
    try:
        counts_before = {folder: _read_page_count(folder, "nr") for folder in needed_counts}
    except OSError:
        return "the host's kernel has no huge pages of 2 MiB"
    undo_commands = [
        _build_reserve_command(folder, count) for folder, count in counts_before.items()
    ]
    # `find` prints nothing: a failed return of pages is not an error.
    cleanup = {"root": True, "find": ["true"], "remove": undo_commands}
    context.note_cleanup({"kind": "huge pages", "id": context.id, **cleanup})
    # Only contiguous memory can become huge pages.  Errors show in the number of pages below.
    capture_output(wrap_as_root(COMPACT_MEMORY), check=False)
    for folder, needed_count in needed_counts.items():
        further_count = max(0, needed_count - _read_page_count(folder, "free"))
        reserve = _build_reserve_command(folder, counts_before[folder] + further_count)
        capture_output(wrap_as_root(reserve), check=False)
    reserved_count = 0
    for folder, needed_count in needed_counts.items():
        # Free pages beyond the need do not make up for those that another folder lacks.
        reserved_count += min(_read_page_count(folder, "free"), needed_count)
    if reserved_count == needed_counts.total():
        return None
    for command in undo_commands:
        capture_output(wrap_as_root(command), check=False)
    location = " on the memory nodes of its CPUs" if _is_memory_bound(machines) else ""
    return (
        f"the host could reserve {reserved_count} of {needed_counts.total()} huge pages of 2 MiB"
        f"{location}"
    )
