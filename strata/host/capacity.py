"""Facts of the host from which sizes and the settings of virtual machines derive."""

import os

from strata.host import observe, starting_state
from strata.util.data_types import Fields, HostFacts
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.units import format_ranges


def usable_processors() -> set[int]:
    """Return the numbers of the processors that measurements may use."""
    return os.sched_getaffinity(0)


def read_facts() -> HostFacts:
    """Read ``{cpus, mask, memory_bytes, cache_bytes}`` of this host.

    cpus: how many processors measurements may use.
    mask: a list such as ``0-1,3`` of the processors to which the caller of Strata is held
    (``taskset``, a cpuset); None where these are all that are online.
    cache_bytes: the sum of the last-level caches of the usable processors; None where not known.
    Raises UserError where the memory, from which sizes follow, is not known.
    """
    memory = observe.parse_kib(observe.read_file(observe.MEMORY), "MemTotal")
    if not memory:
        raise UserError(
            f"{observe.MEMORY}: has no line 'MemTotal: … kB', and sizes follow from the memory: "
            "run Strata where /proc is mounted and shows it"
        )
    usable = usable_processors()
    return {
        "cpus": len(usable),
        "mask": None if usable >= starting_state.online_processors() else format_ranges(usable),
        "memory_bytes": memory,
        "cache_bytes": observe.last_level_caches(usable),
    }


def read_topology() -> list[Fields]:
    """Read ``[{cpu, socket, core, node}, …]`` of the usable CPUs, a core's threads in a row."""
    printed = capture(["lscpu", "--parse=CPU,SOCKET,CORE,NODE"], check=False).stdout
    return parse_topology(printed, usable_processors())


def parse_topology(printed: str, allowed: set[int]) -> list[Fields]:
    """Return the topology of the allowed CPUs, as :func:`read_topology` does.

    printed: what ``lscpu --parse`` printed.  A CPU that it does not list counts as a core of its
    own on the first socket.
    """
    rows = [
        [observe.parse_number(word) for word in line.split(",")] for line in printed.splitlines()
    ]
    known = {row[0]: row[1:] for row in rows if len(row) == 4}
    entries = []
    for cpu in allowed:
        socket, core, node = known.get(cpu, [None] * 3)
        core = cpu if core is None else core
        entries.append({"cpu": cpu, "socket": socket or 0, "core": core, "node": node or 0})
    order = ("node", "socket", "core", "cpu")
    return sorted(entries, key=lambda entry: [entry[key] for key in order])
