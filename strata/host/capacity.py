"""Facts of the host that decide sizes and the settings of virtual machines."""

import os

from strata.host import observe, starting_state
from strata.util.data_types import Fields, HostFacts
from strata.util.errors import UserError
from strata.util.process import capture_output
from strata.util.units import format_ranges


def list_usable_cpus() -> set[int]:
    """Return the numbers of the CPUs that measurements may use: this process's CPU affinity.

    In a cell, :func:`strata.host.starting_state.apply_declared_state` must have set it before.
    """
    return os.sched_getaffinity(0)


def read_host_facts() -> HostFacts:
    """Return ``{cpus, mask, memory_bytes, cache_bytes}`` of this host, which the plan holds.

    The rules of :mod:`strata.host.sizing` derive sizes from these keys.
    cpus: the number of CPUs that measurements may use.
    mask: a list such as ``0-1,3`` of the CPUs that the caller of Strata is restricted to
    (``taskset``, a cpuset); None if it may use all online CPUs.
    cache_bytes: the sum of the last-level caches of the usable CPUs; None if not known.
    Raises UserError if the memory is not known: sizes follow from it.
    """
    memory = observe.parse_kib_as_bytes(observe.read_file(observe.MEMORY), "MemTotal")
    if not memory:
        raise UserError(
            f"{observe.MEMORY}: has no line 'MemTotal: … kB', and sizes follow from the memory: "
            "run Strata where /proc is mounted and shows it"
        )
    usable = list_usable_cpus()
    return {
        "cpus": len(usable),
        "mask": None if usable >= starting_state.list_online_cpus() else format_ranges(usable),
        "memory_bytes": memory,
        "cache_bytes": observe.sum_last_level_caches(usable),
    }


def read_topology() -> list[Fields]:
    """Return ``[{cpu, socket, core, node}, …]`` of the usable CPUs.

    The entries are in the order of NUMA node, socket, core and CPU: the threads of a core are
    adjacent.  Virtual machines get CPUs in this order (:mod:`strata.vm.settings`).
    """
    # If lscpu fails, each CPU counts as a separate core.
    printed = capture_output(["lscpu", "--parse=CPU,SOCKET,CORE,NODE"], check=False).stdout
    return parse_topology(printed, list_usable_cpus())


def parse_topology(printed: str, allowed: set[int]) -> list[Fields]:
    """Return ``[{cpu, socket, core, node}, …]`` of the allowed CPUs, ordered from node to CPU.

    printed: the output of ``lscpu --parse=CPU,SOCKET,CORE,NODE``.
    allowed: the numbers of the CPUs; one that `printed` does not list counts as a separate core
    on the first socket and NUMA node.
    """
    # CPU → its socket, core and node, each None if the machine has no number for it.  Comment lines
    # get the key None, which no CPU has.
    listed: dict[int | None, list[int | None]] = {}
    for line in printed.splitlines():
        columns = [observe.parse_number(text) for text in line.split(",")]
        if len(columns) == 4:
            listed[columns[0]] = columns[1:]
    threads = []
    for cpu in allowed:
        socket, core, node = listed.get(cpu, [None, None, None])
        core = cpu if core is None else core
        threads.append({"cpu": cpu, "socket": socket or 0, "core": core, "node": node or 0})
    order = ("node", "socket", "core", "cpu")
    return sorted(threads, key=lambda thread: [thread[key] for key in order])
