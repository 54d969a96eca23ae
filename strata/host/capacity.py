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
    memory_bytes = observe.parse_kib_as_bytes(observe.read_file(observe.MEMORY), "MemTotal")
    if not memory_bytes:
        raise UserError(
            f"{observe.MEMORY}: has no line 'MemTotal: … kB', and sizes follow from the memory: "
            "run Strata where /proc is mounted and shows it"
        )
    cpus = list_usable_cpus()
    mask = None if cpus >= starting_state.list_online_cpus() else format_ranges(cpus)
    return {
        "cpus": len(cpus),
        "mask": mask,
        "memory_bytes": memory_bytes,
        "cache_bytes": observe.sum_last_level_caches(cpus),
    }


def read_topology() -> list[Fields]:
    """Return ``[{cpu, socket, core, node}, …]`` of the usable CPUs.

    The entries are in the order of NUMA node, socket, core and CPU: the threads of a core are
    adjacent.  Virtual machines get CPUs in this order (:mod:`strata.vm.settings`).
    """
    # check=False: if lscpu fails, it prints nothing, and each CPU counts as a separate core.
    output = capture_output(["lscpu", "--parse=CPU,SOCKET,CORE,NODE"], check=False).stdout
    return parse_topology(output, list_usable_cpus())


def parse_topology(printed: str, cpus: set[int]) -> list[Fields]:
    """Return ``[{cpu, socket, core, node}, …]`` of some CPUs, in the order of node, socket, core.

    printed: the output of ``lscpu --parse=CPU,SOCKET,CORE,NODE``.
    cpus: the numbers of the CPUs.  A CPU that `printed` does not list counts as a separate core on
    the first socket and NUMA node.
    Threads of a core are in the order of their CPU numbers.
    """
    # CPU → [socket, core, node], each None if the machine has no number for it.  Comment lines get
    # the key None, which no CPU has.
    places: dict[int | None, list[int | None]] = {}
    for line in printed.splitlines():
        columns = [observe.parse_number(text) for text in line.split(",")]
        if len(columns) == 4:
            places[columns[0]] = columns[1:]
    topology = []
    for cpu in cpus:
        socket, core, node = places.get(cpu, [None, None, None])
        topology.append(
            {
                "cpu": cpu,
                "socket": socket or 0,
                "core": cpu if core is None else core,
                "node": node or 0,
            }
        )
    sort_keys = ("node", "socket", "core", "cpu")
    return sorted(topology, key=lambda place: [place[key] for key in sort_keys])
