"""Facts of the host that sizes and the settings of virtual machines derive from."""

import os

from strata.host import observe, starting_state
from strata.util.data_types import Fields, HostFacts
from strata.util.errors import UserError
from strata.util.process import capture
from strata.util.units import ranges


def processors() -> set[int]:
    """The processors that measurements may use."""
    return os.sched_getaffinity(0)


def facts() -> HostFacts:
    """``{cpus, mask, memory_bytes, cache_bytes}`` of this host; cache_bytes may be None.

    mask: the processors to which whoever started this is held (``taskset``, a cpuset), as a list such as ``0-1,3``;
    None where that is all of them.
    cache_bytes: of all last-level caches of :func:`processors` together.  Raises UserError where
    the memory is not known, from which sizes follow.
    """
    memory = observe.kib(observe.read(observe.MEMORY), "MemTotal")
    if not memory:
        raise UserError(
            f"{observe.MEMORY}: has no line 'MemTotal: … kB', and sizes follow from the memory: "
            "run Strata where /proc is mounted and says it"
        )
    usable = processors()
    return {
        "cpus": len(usable),
        "mask": None if usable >= starting_state.online() else ranges(usable),
        "memory_bytes": memory,
        "cache_bytes": observe.last_level_caches(usable),
    }


def topology() -> list[Fields]:
    """``[{cpu, socket, core, node}, …]`` of the usable CPUs, threads of a core side by side."""
    printed = capture(["lscpu", "--parse=CPU,SOCKET,CORE,NODE"], check=False).stdout
    return neighbours(printed, processors())


def neighbours(printed: str, allowed: set[int]) -> list[Fields]:
    """The topology of those CPUs that are allowed, as lscpu printed it.

    One of which it does not say so is a core of its own, on the first socket.
    """
    rows = [[observe.number(word) for word in line.split(",")] for line in printed.splitlines()]
    known = {row[0]: row[1:] for row in rows if len(row) == 4}
    found = []
    for cpu in allowed:
        socket, core, node = known.get(cpu, [None] * 3)
        core = cpu if core is None else core
        found.append({"cpu": cpu, "socket": socket or 0, "core": core, "node": node or 0})
    order = ("node", "socket", "core", "cpu")
    return sorted(found, key=lambda entry: [entry[key] for key in order])
