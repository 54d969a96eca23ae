"""All settings of a machine, from profile, host and accelerator, as pure functions.

``vagrant/Vagrantfile`` reads the result.  What Vagrant cannot write, :mod:`strata.vm.domain` puts
into libvirt's domain before the machine starts.
"""

import math
from collections import Counter
from typing import Any

from strata.host.sizing import value_at_scale
from strata.util.data_types import Fields, WantedMachine
from strata.util.units import parse_size

GIB = 1024**3
MIB = 1024**2
# A model without AVX, whose emulation is slow, and without cx16: QEMU 7.2 corrupts flags when it
# emulates cmpxchg16b, and Linux 6.12 panics.
EMULATED_CPU = {
    "mode": "custom",
    "model": "Nehalem",
    "features": [{"name": "cx16", "policy": "disable"}],
}
# Without them the kernel mistrusts an emulated clock, and takes a busy host for a stuck CPU.
EMULATED_ARGUMENTS = "tsc=reliable no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1"
# The value of `memory` with which a machine gets as much as the workloads take; they fill at most
# this share of it.
NEEDED, MOST_OF_MEMORY = "needed", 0.9
# GiB of such a machine, at least.
LEAST_GIB = 4
# The settings that a profile leaves out; schemas/vm.schema.json explains each.
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


def complete(profile: Fields | None, scale: str, memory_bytes: int = 0) -> Fields:
    """Return a profile with all its settings, each with its value at this scale.

    memory_bytes: what the largest workload takes, for a machine with ``memory: needed``.
    """
    given = DEFAULTS | (profile or {})
    settings = {key: value_at_scale(value, scale) for key, value in given.items()}
    if settings["memory"] == NEEDED:
        gib = max(LEAST_GIB, math.ceil(memory_bytes / MOST_OF_MEMORY / GIB))
        settings["memory"] = f"{gib}GiB"
    return settings


def spare_memory(total: int) -> int:
    """Return the bytes that a host can give away, in whole 64 MiB.

    It keeps an eighth, and at least 2 GiB, but never more than half.

    The rest is for the host's kernel, its cache, and QEMU itself.
    """
    kept = max(total // 8, 2 * GIB)
    return max(total - kept, total // 2) // (64 * MIB) * (64 * MIB)


def shape(cpus: list[Fields]) -> dict[str, int] | None:
    """Return ``{sockets, cores, threads}`` of CPUs.

    None where they are uneven and no such numbers describe them.
    """
    threads = Counter((cpu["socket"], cpu["core"]) for cpu in cpus)
    cores = Counter(socket for socket, _ in threads)
    if len(set(threads.values())) != 1 or len(set(cores.values())) != 1:
        return None
    return {
        "sockets": len(cores),
        "cores": next(iter(cores.values())),
        "threads": next(iter(threads.values())),
    }


def _guest_nodes(cpus: list[Fields], memory_mib: int) -> list[Fields]:
    """Return ``[{cpus, memory}, …]``, a guest's memory nodes: vCPUs in a row, and MiB."""
    nodes: list[Fields] = []
    first = 0
    for count in Counter(cpu["node"] for cpu in cpus).values():
        # Whole huge pages.
        share = memory_mib * count // len(cpus) // 2 * 2
        nodes.append({"cpus": f"{first}-{first + count - 1}", "memory": share})
        first += count
    nodes[-1]["memory"] += memory_mib - sum(node["memory"] for node in nodes)
    return nodes


def _cpus_of(part: int, wanted: int, topology: list[Fields], of: int) -> list[Fields]:
    """Return the CPUs of one of several equal machines.

    Where it has more vCPUs than there are CPUs, these recur.
    """
    first = part * max(_cpu_share(topology, of), wanted)
    return [topology[(first + number) % len(topology)] for number in range(wanted)]


def _cpu_share(topology: list[Fields], of: int) -> int:
    return max(1, len(topology) // of)


def resolve(
    profile: Fields,
    topology: list[Fields],
    memory_bytes: int,
    accelerator: str,
    part: int = 0,
    of: int = 1,
    mask: str | None = None,
) -> WantedMachine:
    """Return all settings of a machine that follow from its profile and the host.

    profile: as :func:`complete` returns it.  topology: the host's CPUs, of
    :func:`strata.host.capacity.read_topology`. mask: the processors to which the experiment is held;
    None: all. part, of: this is machine `part` (from 0) of so many equal ones, which share CPUs and
    memory evenly. Returns ``{cpus, memory_mib, driver, cpu, topology, affinity, numa, huge_pages,
    disk, extra}``; what does not apply is None or empty.  `extra` is for
    :func:`strata.vm.domain.tune`, except the kernel's `arguments`.
    """
    kvm, from_host = accelerator == "kvm", profile["topology"] == "host"
    wanted = _cpu_share(topology, of) if profile["cpus"] == "host" else int(profile["cpus"])
    cpus = _cpus_of(part, wanted, topology, of)
    from_profile = profile["memory"] != "host"
    memory = parse_size(profile["memory"]) if from_profile else spare_memory(memory_bytes) // of
    memory_mib = memory // MIB // 2 * 2
    guest_shape = shape(cpus) if from_host and wanted <= len(topology) else None
    affinity = {}
    if profile["pin"]:
        affinity = {str(vcpu): str(cpu["cpu"]) for vcpu, cpu in enumerate(cpus)}
    processor: Fields = EMULATED_CPU
    if kvm:
        processor = {"mode": "host-passthrough" if from_host else "host-model", "features": []}
    disk = {}
    for key in ("cache", "io"):
        if profile[f"disk_{key}"] != "default":
            disk[key] = profile[f"disk_{key}"]
    queues = wanted if profile["queues"] == "cpus" else int(profile["queues"])
    return {
        "cpus": wanted,
        "memory_mib": memory_mib,
        "driver": "kvm" if kvm else "qemu",
        "cpu": processor,
        "topology": guest_shape,
        "affinity": affinity,
        "numa": _guest_nodes(cpus, memory_mib) if guest_shape else None,
        "huge_pages": profile["huge_pages"],
        "disk": disk,
        "data_disk_bytes": parse_size(profile["data_disk"]),
        "passthrough": profile["passthrough"],
        "card": profile.get("card"),
        "extra": {
            # Everything that the profile does not pin runs on these processors.
            "mask": mask,
            # Only a processor that is passed through can show the host's caches.
            "host_caches": bool(guest_shape and kvm),
            "emulator": _emulator_cpus(wanted, topology, part, of)
            if profile["pin_emulator"]
            else None,
            "iothread": profile["iothread"],
            # QEMU under emulation has no vhost-net.
            "vhost": profile["vhost"] and kvm,
            "queues": queues if queues > 1 else None,
            "memory_nodes": _host_nodes(cpus, topology) if guest_shape and profile["pin"] else None,
            "arguments": None if kvm else EMULATED_ARGUMENTS,
        },
    }


def _emulator_cpus(wanted: int, topology: list[Fields], part: int, of: int) -> str:
    """Return the CPUs that no machine's vCPUs have, or else the first one of the machine's own."""
    taken: set[int] = set()
    for machine in range(of):
        taken.update(cpu["cpu"] for cpu in _cpus_of(machine, wanted, topology, of))
    free = sorted({cpu["cpu"] for cpu in topology} - taken)
    first = _cpus_of(part, wanted, topology, of)[0]["cpu"]
    return ",".join(map(str, free or [first]))


def _host_nodes(cpus: list[Fields], topology: list[Fields]) -> list[int] | None:
    """Return the host's memory node for each of the guest's, to which its memory is bound.

    None on a host with one.
    """
    if len({cpu["node"] for cpu in topology}) == 1:
        return None
    return list(dict.fromkeys(cpu["node"] for cpu in cpus))
