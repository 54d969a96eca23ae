"""Facts of the host that sizes and the settings of virtual machines derive from."""

import os

from strata.base.amounts import ranges
from strata.base.process import capture
from strata.base.shapes import Fields, HostFacts
from strata.host import observe, starting_state


def facts() -> HostFacts:
    """``{cpus, mask, memory_bytes, cache_bytes}`` of this host; cache_bytes may be None.

    mask: the processors to which whoever started this is held (``taskset``, a cpuset), as a list such as ``0-1,3``;
    None where that is all of them.
    """
    usable = os.sched_getaffinity(0)
    seen = observe.understand(observe.read_files(observe.FILES))
    cache = seen["cache_bytes"]
    return {
        "cpus": len(usable),
        "mask": None if usable >= starting_state.online() else ranges(usable),
        "memory_bytes": seen["memory_bytes"],
        "cache_bytes": None if cache == observe.NOT_AVAILABLE else cache,
    }


def topology() -> list[Fields]:
    """``[{cpu, socket, core, node}, …]`` of the usable CPUs, neighbours (threads of a core) beside each other."""
    return neighbours(capture(["lscpu", "--parse=CPU,SOCKET,CORE,NODE"]).stdout, os.sched_getaffinity(0))


def neighbours(printed: str, allowed: set[int]) -> list[Fields]:
    """The topology of those CPUs that are allowed, as lscpu printed it."""
    rows = [line.split(",") for line in printed.splitlines() if not line.startswith("#")]
    # Where the kernel does not say, every CPU is a core of one socket.
    found = [
        {"cpu": int(cpu), "socket": int(socket or 0), "core": int(core or cpu), "node": int(node or 0)}
        for cpu, socket, core, node in rows
        if int(cpu) in allowed
    ]
    return sorted(found, key=lambda entry: (entry["node"], entry["socket"], entry["core"], entry["cpu"]))
