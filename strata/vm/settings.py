"""From a profile, the host and the accelerator to every setting of a machine: pure functions, tested for KVM too.

The result is what ``vagrant/Vagrantfile`` reads; what Vagrant cannot say is put into libvirt's
domain by :mod:`strata.vm.domain` before the machine starts.
"""

import math
from collections import Counter
from typing import Any

from strata.host.sizing import at_scale
from strata.util.data_types import Fields, WantedMachine
from strata.util.units import size

GIB = 1024**3
MIB = 1024**2
# Without cx16: QEMU 7.2 corrupts flags when it emulates cmpxchg16b, and Linux 6.12 panics.
# A model without AVX, which is emulated slowly.
EMULATED_CPU = {
    "mode": "custom",
    "model": "Nehalem",
    "features": [{"name": "cx16", "policy": "disable"}],
}
# The clock of an emulated machine would otherwise be mistrusted, and a busy host be taken for a stuck CPU.
EMULATED_ARGUMENTS = "tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# Memory by what the workloads take, of a machine's memory at most this share.
NEEDED, LEAST_GIB, MOST_OF_MEMORY = "needed", 4, 0.9
DEFAULTS: dict[str, Any] = {
    "cpus": "host",
    "memory": "host",
    "pin": False,
    "topology": "flat",
    "huge_pages": False,
    "disk_cache": "default",
    "disk_io": "default",
    "iothread": False,
    "pin_emulator": False,
    "vhost": False,
    "queues": 1,
    "data_disk": "24GiB",
    "passthrough": [],
}


def complete(profile: Fields | None, scale: str, takes: int = 0) -> Fields:
    """A profile with every key that it leaves out, and of those that differ by scale the one of this scale.

    takes: bytes that the largest workload takes, for a machine whose memory is what is needed.
    """
    found = {key: at_scale(value, scale) for key, value in (DEFAULTS | (profile or {})).items()}
    if found["memory"] == NEEDED:
        found["memory"] = f"{max(LEAST_GIB, math.ceil(takes / MOST_OF_MEMORY / GIB))}GiB"
    return found


def spare_memory(total: int) -> int:
    """Bytes that a host can give away: all but an eighth, at least 2 GiB, in whole 64 MiB.

    The rest is for the host's kernel, its cache, and QEMU itself.
    """
    rest = max(total // 8, 2 * GIB)
    return max(total - rest, total // 2) // (64 * MIB) * (64 * MIB)


def shape(found: list[Fields]) -> Fields | None:
    """``{sockets, cores, threads}`` of a topology; None where it is uneven and no such numbers describe it."""
    cores = Counter((entry["socket"], entry["core"]) for entry in found)
    sockets = Counter(socket for socket, _ in cores)
    if len(set(cores.values())) != 1 or len(set(sockets.values())) != 1:
        return None
    return {
        "sockets": len(sockets),
        "cores": next(iter(sockets.values())),
        "threads": next(iter(cores.values())),
    }


def _cells(chosen: list[Fields], memory_mib: int) -> list[Fields]:
    """Nodes of the guest: vCPUs beside each other on a node, the memory shared among them by their number."""
    cells: list[Fields] = []
    first = 0
    for count in Counter(entry["node"] for entry in chosen).values():
        # Whole huge pages.
        share = memory_mib * count // len(chosen) // 2 * 2
        cells.append({"cpus": f"{first}-{first + count - 1}", "memory": share})
        first += count
    cells[-1]["memory"] += memory_mib - sum(cell["memory"] for cell in cells)
    return cells


def resolve(
    profile: Fields,
    topology: list[Fields],
    memory_bytes: int,
    accelerator: str,
    part: int = 0,
    of: int = 1,
    mask: str | None = None,
) -> WantedMachine:
    """Every setting of a machine that follows from its profile and the host.

    profile: as :func:`complete` gives it.  topology: of :func:`strata.host.capacity.topology`.
    mask: the processors to which the experiment is held; None: all.
    part, of: this is machine `part` (from 0) of so many equal ones, which share CPUs and memory evenly.
    Returns ``{cpus, memory_mib, driver, cpu, topology, affinity, numa, huge_pages, disk, extra}``; what does not
    apply is None or empty.  `extra` goes to :func:`strata.vm.domain.tune`.
    """
    share = max(1, len(topology) // of)
    wanted = share if profile["cpus"] == "host" else int(profile["cpus"])

    def cpus_of(part: int) -> list[Fields]:
        """The CPUs of a machine; more vCPUs than CPUs take turns on them."""
        first = part * max(share, wanted)
        return [topology[(first + number) % len(topology)] for number in range(wanted)]

    chosen = cpus_of(part)
    memory = (
        spare_memory(memory_bytes) // of if profile["memory"] == "host" else size(profile["memory"])
    )
    memory_mib = memory // MIB // 2 * 2
    kvm, hosts = accelerator == "kvm", profile["topology"] == "host"
    form = shape(chosen) if hosts and wanted <= len(topology) else None
    taken = {entry["cpu"] for machine in range(of) for entry in cpus_of(machine)}
    others = sorted({entry["cpu"] for entry in topology} - taken)
    queues = wanted if profile["queues"] == "cpus" else int(profile["queues"])
    # Where vCPUs stay on their nodes, their memory does too.
    several = len({entry["node"] for entry in topology}) > 1
    nodes = (
        list(dict.fromkeys(entry["node"] for entry in chosen))
        if form and several and profile["pin"]
        else None
    )
    return {
        "cpus": wanted,
        "memory_mib": memory_mib,
        "driver": "kvm" if kvm else "qemu",
        "cpu": {"mode": "host-passthrough" if hosts else "host-model", "features": []}
        if kvm
        else EMULATED_CPU,
        "topology": form,
        "affinity": {
            str(vcpu): str(entry["cpu"]) for vcpu, entry in enumerate(chosen) if profile["pin"]
        },
        "numa": _cells(chosen, memory_mib) if form else None,
        "huge_pages": profile["huge_pages"],
        "disk": {
            key: said for key in ("cache", "io") if (said := profile[f"disk_{key}"]) != "default"
        },
        "data_disk_bytes": size(profile["data_disk"]),
        "passthrough": profile["passthrough"],
        "card": profile.get("card"),
        # Beside arguments of the kernel this is what Vagrant cannot say.
        "extra": {
            # All that the profile does not pin runs on the processors to which the experiment is held.
            "mask": mask,
            # Only a processor that is passed through can show the host's caches.
            "host_caches": bool(form and kvm),
            "emulator": ",".join(map(str, others or [chosen[0]["cpu"]]))
            if profile["pin_emulator"]
            else None,
            "iothread": profile["iothread"],
            # QEMU under emulation has no vhost-net.
            "vhost": profile["vhost"] and kvm,
            "queues": queues if queues > 1 else None,
            # The host's node for each of the guest's.
            "memory_nodes": nodes,
            "arguments": None if kvm else EMULATED_ARGUMENTS,
        },
    }
