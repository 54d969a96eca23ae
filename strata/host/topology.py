"""Facts of the host that the settings of a virtual machine derive from: its CPUs, their caches, its memory."""

import os
import re
from collections import Counter

from strata.base.amounts import numbers
from strata.base.shapes import Fields
from strata.host import observe

CPUS = "/sys/devices/system/cpu"
NODES = "/sys/devices/system/node"


def _read(path: str) -> str:
    return observe.read_files([path]).get(path, "").strip()


def topology(cpus: str = CPUS, nodes: str = NODES, allowed: set[int] | None = None) -> list[Fields]:
    """``[{cpu, socket, core, node}, …]`` of the usable CPUs, neighbours (threads of a core) beside each other.

    `allowed`: numbers of the CPUs that this process may use; those of the scheduler where it is None.
    """
    allowed = os.sched_getaffinity(0) if allowed is None else allowed
    node_of = {}
    for name in sorted(os.listdir(nodes)) if os.path.isdir(nodes) else []:
        if re.fullmatch(r"node\d+", name):
            for cpu in numbers(_read(f"{nodes}/{name}/cpulist")):
                node_of[cpu] = int(name.removeprefix("node"))
    found = []
    for cpu in sorted(allowed):
        place = f"{cpus}/cpu{cpu}/topology"
        socket, core = _read(f"{place}/physical_package_id"), _read(f"{place}/core_id")
        # Where the kernel does not say, every CPU is a core of one socket.
        found.append({"cpu": cpu, "socket": int(socket or 0), "core": int(core or cpu), "node": node_of.get(cpu, 0)})
    return sorted(found, key=lambda entry: (entry["node"], entry["socket"], entry["core"], entry["cpu"]))


def shape(found: list[Fields]) -> Fields | None:
    """``{sockets, cores, threads}`` of a topology; None where it is uneven and no such numbers describe it."""
    cores = Counter((entry["socket"], entry["core"]) for entry in found)
    sockets = Counter(socket for socket, _ in cores)
    if len(set(cores.values())) != 1 or len(set(sockets.values())) != 1:
        return None
    return {"sockets": len(sockets), "cores": next(iter(sockets.values())), "threads": next(iter(cores.values()))}
